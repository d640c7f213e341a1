/* core/run/sampler.h - one row of logits to one token. A chain of small steps over a list of candidates, in the order
 * penalties, top_k, top_p, min_p, temperature, then one draw keyed by (seed, position). Equal logits: the lower id.
 * One object per answer. [one thread at a time] */
#ifndef KOPI_CORE_RUN_SAMPLER_H
#define KOPI_CORE_RUN_SAMPLER_H

#include <kopi/kopi.h>

struct kopi_sampler;

/* Checks every field: KOPI_E_INVALID names it, its value and its limits. Seed -1 is replaced by a random one. */
kopi_status kopi__sampler_new(const kopi_sampling *s, uint32_t n_vocab, struct kopi_sampler **out, kopi_error *err);
void kopi__sampler_free(struct kopi_sampler *s); /* NULL allowed */
int64_t kopi__sampler_seed(const struct kopi_sampler *s);

/* The token that follows tokens[0 .. n), all of them in [0, n_vocab); n is also the position of the draw.
 * logits: [n_vocab], not changed. A logit that is not finite is KOPI_E_NONFINITE, never a token. */
kopi_status kopi__sampler_next(struct kopi_sampler *s, const float *logits, const int32_t *tokens, size_t n,
                               int32_t *out, kopi_error *err);

#endif
