/* core/text/special.h - finding control and user-defined tokens in a text. [any] */
#ifndef KOPI_CORE_TEXT_SPECIAL_H
#define KOPI_CORE_TEXT_SPECIAL_H

#include "text/vocab.h"

/* Control, unknown and user-defined tokens as a tree of bytes; index 0 means none. */
struct kopi_special_node {
    uint32_t child, sibling;
    int32_t id; /* token that ends here, or -1 */
    unsigned char byte;
};
struct kopi_specials {
    struct kopi_special_node *nodes;
    uint32_t n, root[256];
};
struct kopi_special_match {
    size_t pos;
    uint32_t len;
    int32_t id;
};

kopi_status kopi__specials_new(const struct kopi_vocab *v, struct kopi_specials *out, kopi_error *err);
void kopi__specials_clear(struct kopi_specials *s);

/* The matches that count, ascending, not overlapping: longer tokens are cut out of the text before shorter ones.
 * Control tokens match only where allowed[i] is 1 for all their bytes (allowed NULL: nowhere; user-defined ones
 * everywhere). *out is freed by kopi__free. Memory and, for tokens of bounded length, time: O(n) and O(n log n). */
kopi_status kopi__specials_find(const struct kopi_specials *s, const struct kopi_vocab *v, const char *text, size_t n,
                                const unsigned char *allowed, struct kopi_special_match **out, size_t *n_out,
                                kopi_error *err);

#endif
