/* core/run/step.h - packs tokens of one or several sequences into one kopi_run, executes it, and commits their lengths.
 * All arrays are made once, for the largest step. [one thread at a time per model] */
#ifndef KOPI_CORE_RUN_STEP_H
#define KOPI_CORE_RUN_STEP_H

#include "run/kv.h"
#include "run/model.h"

struct kopi_step;

kopi_status kopi__step_new(kopi_model *m, struct kopi_step **out, kopi_error *err);
void kopi__step_free(struct kopi_step *st); /* NULL allowed */

void kopi__step_clear(struct kopi_step *st);
uint32_t kopi__step_room(const struct kopi_step *st);      /* tokens that still fit; 0 when no further sequence fits */
uint32_t kopi__step_room_rows(const struct kopi_step *st); /* rows of logits that still fit */
uint32_t kopi__step_tokens(const struct kopi_step *st);    /* tokens in it */

/* Adds the next n tokens of s (not in the step yet), with the logits of the last n_rows of them. n and n_rows must fit;
 * the ids are checked: KOPI_E_INVALID names the first wrong one. On failure the step is as before. */
kopi_status kopi__step_add(struct kopi_step *st, struct kopi_kv_seq *s, const int32_t *ids, uint32_t n, uint32_t n_rows,
                           kopi_error *err);

/* Executes. logits: [rows, n_vocab], in the order of the additions; may be NULL if no row was wanted; not checked
 * (kopi__model_check_row). On success the sequences have grown; on failure none has. */
kopi_status kopi__step_run(struct kopi_step *st, float *logits, kopi_error *err);

/* KOPI_E_INVALID naming the first id outside [0, n_vocab). */
kopi_status kopi__check_ids(const kopi_model *m, const int32_t *ids, size_t n, kopi_error *err);

#endif
