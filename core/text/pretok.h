/* core/text/pretok.h - pre-tokenization: the published expressions that cut a text into words before BPE merges. [any]
 */
#ifndef KOPI_CORE_TEXT_PRETOK_H
#define KOPI_CORE_TEXT_PRETOK_H

#include <kopi/kopi.h>
#include <stdbool.h>

struct kopi_pretok;

struct kopi_pretok_traits {
    bool ignore_merges, add_bos;
}; /* whole words in the vocabulary need no merges; default of add_bos */

/* name: tokenizer.ggml.pre ("" or NULL: "default"). KOPI_E_MODEL with the known names for another one. */
kopi_status kopi__pretok_new(const char *name, struct kopi_pretok **out, struct kopi_pretok_traits *traits,
                             kopi_error *err);
void kopi__pretok_free(struct kopi_pretok *p);

/* Cuts text (valid UTF-8) into words and gives them to fn in order; together they are the text. A non-zero answer of fn
 * stops and is returned. Time and memory are linear in n: no recursion (PCRE2's limits are set). KOPI_E_INTERNAL: a
 * limit was met. */
kopi_status kopi__pretok_split(const struct kopi_pretok *p, const char *text, size_t n,
                               kopi_status (*fn)(void *ctx, const char *word, size_t len), void *ctx, kopi_error *err);

#endif
