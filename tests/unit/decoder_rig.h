/* tests/unit/decoder_rig.h - a model file on one backend, driven step by step without the rest of the core: what the
 * backend tests and measurements of whole programs share. Nothing fails softly: a test that can't open its model
 * aborts. */
#ifndef KOPI_TESTS_DECODER_RIG_H
#define KOPI_TESTS_DECODER_RIG_H

#include <stdbool.h>
#include <stdint.h>

struct rig;

struct rig_config {
    const char *model, *plugin; /* files */
    const char *isa;            /* option of the plugin, or NULL */
    unsigned threads;
    uint32_t n_ctx, max_tok, n_seq;
    uint32_t kv_dtype;          /* KOPI_DTYPE_F16 or _F32 */
};
struct rig *rig_open(const struct rig_config *c);
int rig_try(const struct rig_config *c,
            struct rig **out); /* a kopi_status; on failure *out is NULL and all is given back */
void rig_close(struct rig *r);                             /* NULL allowed */

/* Tokens that continue a sequence. */
struct rig_part { uint32_t seq, n_tok; const int32_t *tokens; };
/* One run; a kopi_status. logits: a row of n_vocab for each token, for the last token of each part, or none. */
enum rig_want { RIG_NONE, RIG_LAST, RIG_ALL };
int rig_run(struct rig *r, const struct rig_part *parts, uint32_t n, enum rig_want want, float *logits);
void rig_forget(struct rig *r); /* all sequences start anew; what the pages hold is overwritten by NaNs */
void rig_cancel(struct rig *r, bool yes);

uint32_t rig_n_vocab(const struct rig *r);
const char *rig_code(struct rig *r, uint32_t op); /* describe() of the first such operation */
/* A sequence's page in the canonical layout, to and from. */
uint64_t rig_page_bytes(const struct rig *r);
void rig_get_page(struct rig *r, uint32_t seq, uint32_t page, void *out);
void rig_set_page(struct rig *r, uint32_t seq, uint32_t page, const void *in);
void rig_set_past(struct rig *r, uint32_t seq, uint32_t n); /* the sequence's pages hold n positions */

#endif
