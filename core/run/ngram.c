#include "run/ngram.h"

#include "base/mem.h"

enum {
    BITS = 12,
    MAX_CHAIN = 64 /* positions that one search looks at: a run of one token can't make it slow */
};

bool kopi__ngram_init(struct kopi_ngram *x, uint32_t min, uint32_t max, uint32_t cap)
{
    *x = (struct kopi_ngram){.min = min, .max = max, .cap = cap};
    x->head = kopi__calloc((size_t)1 << BITS, sizeof *x->head);
    x->prev = kopi__calloc(cap, sizeof *x->prev);
    return x->head && x->prev;
}

void kopi__ngram_free(struct kopi_ngram *x)
{
    kopi__free(x->head);
    kopi__free(x->prev);
    *x = (struct kopi_ngram){0};
}

/* Of the n tokens that end before `end`. */
static uint32_t hash(const int32_t *end, uint32_t n)
{
    uint32_t h = 0;
    for (uint32_t i = 1; i <= n; i++) h = (h ^ (uint32_t)end[-(int64_t)i]) * 0x9e3779b1u;
    return h >> (32 - BITS);
}

static void add(struct kopi_ngram *x, const int32_t *tokens, uint32_t position)
{
    uint32_t *head = &x->head[hash(tokens + position, x->min)];
    x->prev[position] = *head;
    *head = position;
}

/* Tokens before a and before b that agree; a < b, so a is the bound. */
static uint32_t agree(const struct kopi_ngram *x, const int32_t *tokens, uint32_t a, uint32_t b)
{
    uint32_t i = 0, most = a < x->max ? a : x->max;
    while (i < most && tokens[a - 1 - i] == tokens[b - 1 - i]) i++;
    return i;
}

uint32_t kopi__ngram_find(struct kopi_ngram *x, const int32_t *tokens, uint32_t n, uint32_t *match)
{
    uint32_t best = 0, most = 0;
    *match = 0;
    if (n < x->min || n > x->cap) return 0;
    for (uint32_t p = x->n < x->min ? x->min : x->n; p < n; p++) add(x, tokens, p);
    if (x->n < n) x->n = n;
    uint32_t p = x->head[hash(tokens + n, x->min)];
    for (int i = 0; p && i < MAX_CHAIN && most < x->max; i++, p = x->prev[p]) {
        if (p >= n) continue;
        uint32_t k = agree(x, tokens, p, n);
        if (k <= most || k < x->min) continue;
        most = k;
        best = p;
    }
    *match = most;
    return best;
}
