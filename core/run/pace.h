/* core/run/pace.h - what a step costs, by its number of tokens: measured, and guessed in between. Decides how many
 * guesses pay; never what is generated. [one thread at a time] */
#ifndef KOPI_CORE_RUN_PACE_H
#define KOPI_CORE_RUN_PACE_H

#include <stdint.h>

enum { KOPI_PACE_MAX = 128 }; /* tokens of a step that are told apart */

struct kopi_pace {
    float ns[KOPI_PACE_MAX + 1];      /* running mean of steps of so many tokens */
    uint32_t seen[KOPI_PACE_MAX + 1]; /* step in which it was last measured; 0: never */
    uint32_t now;
};

void kopi__pace_note(struct kopi_pace *p, uint32_t n_tok, uint64_t ns);
/* Expected cost of a step of 1 <= n_tok <= KOPI_PACE_MAX tokens, in any unit: only ratios mean something before the
 * first measurement. Sizes not measured for a while are taken for cheap, so that they are tried again. */
double kopi__pace_cost(const struct kopi_pace *p, uint32_t n_tok);

#endif
