#include "run/round.h"

#include "base/error.h"
#include "base/mem.h"
#include "run/step.h"
#include <math.h>

struct part {
    struct kopi_answer *a;
    uint32_t n;
    const float *row;
};

struct kopi_round {
    kopi_model *m;
    struct kopi_step *step;
    float *logits;      /* a row per answer */
    struct part *parts; /* of the running step, in its order */
    uint32_t n_parts, n_rows, max_parts;
};

kopi_status kopi__round_new(kopi_model *m, uint32_t max_answers, struct kopi_round **out, kopi_error *err)
{
    *out = NULL;
    struct kopi_round *r = kopi__calloc(1, sizeof *r);
    if (!r) return kopi__nomem(err, "step");
    uint64_t row = (uint64_t)m->n_vocab * sizeof *r->logits;
    r->m = m;
    r->max_parts = max_answers < m->max_seq ? max_answers : m->max_seq;
    r->parts = kopi__calloc(r->max_parts, sizeof *r->parts);
    r->logits = kopi__realloc_array(NULL, r->max_parts, row);
    kopi_status s = r->parts && r->logits ? kopi__step_new(m, &r->step, err) : kopi__nomem(err, "logits");
    if (s == KOPI_OK) *out = r;
    else kopi__round_free(r);
    return s;
}

void kopi__round_free(struct kopi_round *r)
{
    if (!r) return;
    kopi__step_free(r->step);
    kopi__free(r->logits);
    kopi__free(r->parts);
    kopi__free(r);
}

/* Adds what fits of an answer's tokens; one that can't be added at all for a reason of its own ends. */
static void add(struct kopi_round *r, struct kopi_answer *a)
{
    uint32_t n, room = kopi__step_room(r->step);
    const int32_t *ids = kopi__answer_wants(a, &n);
    if (!room || r->n_parts == r->max_parts) return;
    bool row = n <= room && kopi__answer_wants_row(a);
    if (n > room) n = room;
    if (row && !kopi__step_room_rows(r->step)) {
        row = false;
        n--; /* the last token waits for a step with room for its row */
    }
    if (!n) return;
    kopi_error e;
    kopi_status s = kopi__step_add(r->step, kopi__answer_cache(a)->seq, ids, n, row, &e);
    if (s != KOPI_OK) {
        kopi__answer_fail(a, s, &e);
        return;
    }
    const float *at = row ? r->logits + (size_t)r->n_rows++ * r->m->n_vocab : NULL;
    r->parts[r->n_parts++] = (struct part){a, n, at};
}

static void pack(struct kopi_round *r, struct kopi_answer *const *answers, size_t n)
{
    kopi__step_clear(r->step);
    r->n_parts = r->n_rows = 0;
    for (int prefill = 0; prefill < 2; prefill++)
        for (size_t i = 0; i < n; i++) {
            uint32_t waiting;
            kopi__answer_wants(answers[i], &waiting);
            if ((waiting > 1) == prefill && !kopi__answer_done(answers[i])) add(r, answers[i]);
        }
}

static bool row_is_finite(const struct kopi_round *r, const float *row)
{
    for (uint32_t i = 0; row && i < r->m->n_vocab; i++)
        if (!isfinite(row[i])) return false;
    return true;
}

void kopi__round_run(struct kopi_round *r, struct kopi_answer *const *answers, size_t n)
{
    kopi_error e = {0};
    pack(r, answers, n);
    if (!r->n_parts) return; /* those that could not be added have ended */
    kopi_status s = kopi__step_run(r->step, r->logits, &e);
    for (uint32_t i = 0; i < r->n_parts; i++) {
        const struct part *p = &r->parts[i];
        bool healthy = s == KOPI_OK || (s == KOPI_E_NONFINITE && r->n_parts > 1 && row_is_finite(r, p->row));
        if (healthy && s != KOPI_OK) kopi__step_commit_one(r->step, i);
        if (healthy) kopi__answer_evaluated(p->a, p->n, p->row);
        else if (s == KOPI_E_CANCELLED) kopi__answer_cancel(p->a);
        else kopi__answer_fail(p->a, s, &e);
    }
    if (s == KOPI_E_CANCELLED) kopi_model_uncancel(r->m);
}
