/* core/run/drafter.h - guesses by a draft model, for several answers in common steps. [one thread at a time] */
#ifndef KOPI_CORE_RUN_DRAFTER_H
#define KOPI_CORE_RUN_DRAFTER_H

#include "run/speculate.h"

/* An answer and how many tokens are to be guessed for it. */
struct kopi_wish {
    struct kopi_answer *a;
    uint32_t limit; /* of use */
    uint32_t take;  /* worth their cost */
};

struct kopi_drafter;
kopi_status kopi__drafter_new(struct kopi_speculation *spec, uint32_t max_answers, struct kopi_drafter **out,
                              kopi_error *err);
void kopi__drafter_free(struct kopi_drafter *d); /* NULL allowed */

/* Guesses up to `take` tokens for each. An answer whose prompt the draft model has not read yet gets on with that, one
 * step per call, and guesses nothing. On an error of the draft model it is not used any more (logged once). */
void kopi__drafter_run(struct kopi_drafter *d, struct kopi_wish *wishes, uint32_t n);

#endif
