/* core/text/spm.h - SentencePiece with merges by score and byte fallback (Kudo and Richardson 2018). [any] */
#ifndef KOPI_CORE_TEXT_SPM_H
#define KOPI_CORE_TEXT_SPM_H

#include "text/bpe.h"

/* Appends the ids of a plain text: one at the text's beginning or behind a special token, where add_space_prefix
 * applies. */
kopi_status kopi__spm_encode(const struct kopi_vocab *v, const char *text, size_t n, struct kopi_ids *out,
                             int (*cancelled)(void *), void *ctx, kopi_error *err);

#endif
