/* core/text/bpe.h - byte-level BPE (Sennrich et al. 2016; GPT-2): words of the pre-tokenizer, bytes merged by rank.
 * [any] */
#ifndef KOPI_CORE_TEXT_BPE_H
#define KOPI_CORE_TEXT_BPE_H

#include "text/pretok.h"
#include "text/vocab.h"

struct kopi_ids {
    int32_t *at;
    size_t n, cap;
};
bool kopi__ids_add(struct kopi_ids *l, int32_t id); /* false: out of memory */

struct kopi_bpe;

/* Reads tokenizer.ggml.merges and .pre, and sets the flags that the pre-tokenizer implies in v. */
kopi_status kopi__bpe_new(const struct kopi_gguf *g, struct kopi_vocab *v, struct kopi_bpe **out, kopi_error *err);
void kopi__bpe_free(struct kopi_bpe *b);
/* Appends the ids of a plain text (no special tokens in it); bytes that are no UTF-8 are treated as in
 * llama.cpp: stray ones count as U+FFFD, overlong forms as their character. */
kopi_status kopi__bpe_encode(const struct kopi_bpe *b, const struct kopi_vocab *v, const char *text, size_t n,
                             struct kopi_ids *out, int (*cancelled)(void *), void *ctx, kopi_error *err);

#endif
