/* core/run/speculate.h - speculative decoding: guesses the next tokens of answers, by prompt lookup or with a draft
 * model, so that one step of the model confirms several. The model's own logits and the position's random number decide
 * about each token, so the output is the one without speculation; guesses only change how long it takes.
 * [one thread at a time per model] */
#ifndef KOPI_CORE_RUN_SPECULATE_H
#define KOPI_CORE_RUN_SPECULATE_H

#include "run/answer.h"
#include "run/pace.h"

/* Of one model. */
struct kopi_speculation {
    uint32_t max_tokens, ngram_min, ngram_max;
    bool adaptive;                     /* as many tokens as pay; else always max_tokens */
    bool broken;                       /* the draft model failed: it has been said, and it is not used any more */
    kopi_model *draft;                 /* owned; NULL: prompt lookup */
    struct kopi_pace pace, draft_pace; /* costs of steps of the model and of the draft model */
};

/* Reads models[].speculation of a loaded model. *out is NULL if it is off. KOPI_E_CONFIG: settings that don't fit
 * together, or a draft model with another vocabulary; and all errors of loading one. */
kopi_status kopi__speculation_new(kopi_model *m, kopi_progress_fn progress, void *ctx, struct kopi_speculation **out,
                                  kopi_error *err);
void kopi__speculation_free(struct kopi_speculation *s); /* NULL allowed */

/* Working memory for rounds of up to max_answers. spec is borrowed. */
struct kopi_speculator;
kopi_status kopi__speculator_new(struct kopi_speculation *spec, uint32_t max_answers, struct kopi_speculator **out,
                                 kopi_error *err);
void kopi__speculator_free(struct kopi_speculator *s); /* NULL allowed */

/* Gives the decoding answers of the next step their guesses, at most `budget` tokens in all. Never fails: without a
 * guess an answer goes on as ever. */
void kopi__speculate(struct kopi_speculator *s, struct kopi_answer *const *answers, size_t n, uint32_t budget);

#endif
