/* core/run/guess.h - what one answer knows about guessing its next tokens: where they may come from, and how often such
 * guesses came true. [one thread at a time] */
#ifndef KOPI_CORE_RUN_GUESS_H
#define KOPI_CORE_RUN_GUESS_H

#include "run/ngram.h"

struct kopi_speculation; /* core/run/speculate.h */

enum { KOPI_GUESS_KINDS = 16 }; /* kinds of guesses that are told apart, by the number of tokens that agreed */

struct kopi_guess {
    struct kopi_ngram index;      /* unused with a draft model */
    float rate[KOPI_GUESS_KINDS]; /* running chance of a token to come true, given that those before it did */
    uint32_t kind;                /* of the pending guess */
    uint32_t n;                   /* pending: this many tokens behind those of the answer */
    bool synced;                  /* the draft model's cache holds nothing but tokens of this answer */
};

/* spec NULL: never guesses. n_ctx: positions of the context. Freed by kopi__guess_free, also after a failure. */
bool kopi__guess_init(struct kopi_guess *g, const struct kopi_speculation *spec, uint32_t n_ctx);
void kopi__guess_free(struct kopi_guess *g);

/* The pending guess is over: `right` tokens came true, and then one did not if wrong. */
void kopi__guess_learn(struct kopi_guess *g, uint32_t right, bool wrong);
/* A guess was there but not worth its cost: forgets bad luck slowly, so that it is tried again. */
void kopi__guess_skip(struct kopi_guess *g);

#endif
