/* core/text/merge.h - merging neighbours of a symbol list, best pair first: the loop that BPE and SentencePiece share.
 * O(n log n) with a heap; ties go to the leftmost pair. [any] */
#ifndef KOPI_CORE_TEXT_MERGE_H
#define KOPI_CORE_TEXT_MERGE_H

#include <kopi/kopi.h>
#include <stdbool.h>

struct kopi_symbol {
    int32_t prev, next; /* -1: none */
    uint32_t pos, len;  /* bytes of the word; len 0: merged away */
    int32_t id;         /* token, or -1 */
};

/* One candidate: higher rank is merged first. */
struct kopi_pair {
    double rank;
    int32_t left, right;
    uint32_t len;
    int32_t id;
};

struct kopi_merger {
    struct kopi_symbol *symbols;
    struct kopi_pair *heap;
    size_t n_symbols, cap_symbols, n_heap, cap_heap;
    /* Fills rank and id of the pair of symbols a, b of text; false: they don't merge. */
    bool (*pair)(const void *ctx, const char *text, const struct kopi_symbol *a, const struct kopi_symbol *b,
                 struct kopi_pair *out);
    const void *ctx;
};

/* Adds a symbol behind the others; false: out of memory. Cleared by n_symbols = 0. */
bool kopi__merger_add(struct kopi_merger *m, uint32_t pos, uint32_t len, int32_t id);
/* Merges until no pair is left. cancelled (may be NULL) is polled. */
kopi_status kopi__merger_run(struct kopi_merger *m, const char *text, int (*cancelled)(void *), void *ctx,
                             kopi_error *err);
void kopi__merger_clear(struct kopi_merger *m);

#endif
