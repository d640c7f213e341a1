#include "run/guess.h"

#include "run/speculate.h"

/* Before anything is known. High enough to be tried, low enough to be given up after a few failures. */
static const float FIRST = 0.7f;

bool kopi__guess_init(struct kopi_guess *g, const struct kopi_speculation *spec, uint32_t n_ctx)
{
    *g = (struct kopi_guess){0};
    for (int i = 0; i < KOPI_GUESS_KINDS; i++) g->rate[i] = FIRST;
    if (!spec || spec->draft) return true;
    return kopi__ngram_init(&g->index, spec->ngram_min, spec->ngram_max, n_ctx + 1);
}

void kopi__guess_free(struct kopi_guess *g) { kopi__ngram_free(&g->index); }

void kopi__guess_learn(struct kopi_guess *g, uint32_t right, bool wrong)
{
    float *rate = &g->rate[g->kind];
    for (uint32_t i = 0; i < right; i++) *rate += (1 - *rate) / 4;
    if (wrong) *rate -= *rate / 4;
    g->n = 0;
}

void kopi__guess_skip(struct kopi_guess *g)
{
    float *rate = &g->rate[g->kind];
    if (*rate < FIRST) *rate += (FIRST - *rate) / 256;
}
