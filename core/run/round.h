/* core/run/round.h - the engine under every generation: one step for one or many answers. Decoding answers come first
 * (a token each), prompts fill what is left, in order. kopi_generate runs it with one answer, the scheduler with many.
 * [one thread at a time per model] */
#ifndef KOPI_CORE_RUN_ROUND_H
#define KOPI_CORE_RUN_ROUND_H

#include "run/answer.h"

struct kopi_round;

kopi_status kopi__round_new(kopi_model *m, uint32_t max_answers, struct kopi_round **out, kopi_error *err);
void kopi__round_free(struct kopi_round *r); /* NULL allowed */

/* One step for as many of the n answers as fit (none of them done; at least one gets further), with guesses of their
 * next tokens where the model has speculation. A failure ends the answers that were in the step; a row that is not
 * finite ends its own. kopi_model_cancel ends all that were in it as cancelled. */
void kopi__round_run(struct kopi_round *r, struct kopi_answer *const *answers, size_t n);

#endif
