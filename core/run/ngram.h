/* core/run/ngram.h - prompt lookup: where the end of a list of tokens has stood before, and so what may follow it.
 * Hash chains over all n-grams of the shortest length, newest first, as in LZ77. [one thread at a time] */
#ifndef KOPI_CORE_RUN_NGRAM_H
#define KOPI_CORE_RUN_NGRAM_H

#include <kopi/kopi.h>
#include <stdbool.h>

struct kopi_ngram {
    uint32_t min, max; /* tokens that have to agree; more than max count as max */
    uint32_t cap, n;   /* positions that fit, that are indexed */
    uint32_t *head;    /* last position of each hash; 0: none */
    uint32_t *prev;    /* [cap] the position before with the same hash */
};

/* For lists of up to cap tokens; 1 <= min <= max. Freed by kopi__ngram_free, also after a failure. */
bool kopi__ngram_init(struct kopi_ngram *x, uint32_t min, uint32_t max, uint32_t cap);
void kopi__ngram_free(struct kopi_ngram *x);

/* The position p < n for which most tokens before it (at least min) agree with those before n, the last one of equals;
 * *match: how many agree, at most max. 0: none. Tokens that were there in an earlier call must not have changed. */
uint32_t kopi__ngram_find(struct kopi_ngram *x, const int32_t *tokens, uint32_t n, uint32_t *match);

#endif
