/* core/run/answer.h - one request on its way to an answer: what it wants evaluated next, and what a row of logits makes
 * of it. Knows nothing of steps and batches; run/round.h drives one or many. [one thread at a time] */
#ifndef KOPI_CORE_RUN_ANSWER_H
#define KOPI_CORE_RUN_ANSWER_H

#include "run/cache.h"
#include "run/guess.h"

struct kopi_answer;

/* Checks and copies the request (not the callbacks' ctx). KOPI_E_INVALID: a field, id or stop string; KOPI_E_RANGE: the
 * prompt does not fit the context, with both numbers. */
kopi_status kopi__answer_new(kopi_model *m, const kopi_request *rq, struct kopi_answer **out, kopi_error *err);
void kopi__answer_free(struct kopi_answer *a); /* NULL allowed */

/* The prompt. */
const int32_t *kopi__answer_prompt(const struct kopi_answer *a, size_t *n);

/* Takes the cache (borrowed until the end) and keeps what it has in common with the prompt, but for the last token,
 * whose logits are needed. */
void kopi__answer_start(struct kopi_answer *a, kopi_cache *cache);
bool kopi__answer_done(const struct kopi_answer *a);
kopi_cache *kopi__answer_cache(const struct kopi_answer *a);

/* Tokens that wait for evaluation behind the cache's content: the rest of the prompt, or the last token; the guessed
 * ones behind them count. */
const int32_t *kopi__answer_wants(const struct kopi_answer *a, uint32_t *n);
/* Logits wanted with the last of them: 0; or 1, and one more for each guess. */
uint32_t kopi__answer_wants_rows(const struct kopi_answer *a);
/* Only its last token waits. */
bool kopi__answer_decoding(const struct kopi_answer *a);
/* The first n of the waiting tokens are in the cache now; rows: logits after the last ones, or NULL where none was
 * evaluated. Samples, delivers text and may end the answer; guesses that did not come true leave the cache. */
void kopi__answer_evaluated(struct kopi_answer *a, uint32_t n, const float *rows);

/* For run/speculate.h. tokens: prompt and answer, n of them; behind them is room for guesses. */
int32_t *kopi__answer_tokens(struct kopi_answer *a, size_t *n);
struct kopi_guess *kopi__answer_guess(struct kopi_answer *a);
/* Guessed tokens that can be of use, given the context and n_predict; 0 unless it is decoding. */
uint32_t kopi__answer_guess_room(const struct kopi_answer *a);
/* The token that the answer's sampling makes of a row behind its first n tokens, guesses included; nothing changes. */
kopi_status kopi__answer_sample(struct kopi_answer *a, const float *row, size_t n, int32_t *id, kopi_error *err);
bool kopi__answer_ends_with(const struct kopi_answer *a, int32_t id); /* id is an end token to it */

void kopi__answer_cancel(struct kopi_answer *a); /* no effect on one that is done */
/* Ends it with an error. The cache drops what the failed step left; after KOPI_E_NONFINITE all of it. */
void kopi__answer_fail(struct kopi_answer *a, kopi_status status, const kopi_error *why);

/* Moves the result out, once. Returns the request's own status. */
kopi_status kopi__answer_result(struct kopi_answer *a, kopi_result *result, kopi_error *err);

#endif
