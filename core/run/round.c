#include "run/round.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "run/speculate.h"
#include "run/step.h"

enum { MAX_GUESSES = 64 }; /* rows of logits for guesses, all answers together */

struct part {
    struct kopi_answer *a;
    uint32_t n;
    const float *rows;
};

struct kopi_round {
    kopi_model *m;
    struct kopi_step *step;
    struct kopi_speculator *speculator; /* NULL: none */
    float *logits;                      /* a row per answer, and max_guesses */
    struct part *parts;                 /* of the running step, in its order */
    uint32_t n_parts, n_rows, max_parts, max_guesses;
    bool prefill; /* the running step has tokens of prompts */
};

kopi_status kopi__round_new(kopi_model *m, uint32_t max_answers, struct kopi_round **out, kopi_error *err)
{
    *out = NULL;
    struct kopi_round *r = kopi__calloc(1, sizeof *r);
    if (!r) return kopi__nomem(err, "step");
    uint64_t row = (uint64_t)m->n_vocab * sizeof *r->logits;
    r->m = m;
    r->max_parts = max_answers < m->max_seq ? max_answers : m->max_seq;
    if (m->spec) r->max_guesses = r->max_parts * m->spec->max_tokens;
    if (r->max_guesses > MAX_GUESSES) r->max_guesses = MAX_GUESSES;
    r->parts = kopi__calloc(r->max_parts, sizeof *r->parts);
    r->logits = kopi__realloc_array(NULL, r->max_parts + r->max_guesses, row);
    kopi_status s = r->parts && r->logits ? kopi__step_new(m, &r->step, err) : kopi__nomem(err, "logits");
    if (s == KOPI_OK && m->spec) s = kopi__speculator_new(m->spec, r->max_parts, &r->speculator, err);
    if (s == KOPI_OK) *out = r;
    else kopi__round_free(r);
    return s;
}

void kopi__round_free(struct kopi_round *r)
{
    if (!r) return;
    kopi__step_free(r->step);
    kopi__speculator_free(r->speculator);
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
    struct kopi_guess *g = kopi__answer_guess(a);
    if (g->n && (n > room || n > kopi__step_room_rows(r->step))) {
        n -= g->n;
        g->n = 0;
    }
    uint32_t rows = n <= room ? kopi__answer_wants_rows(a) : 0;
    if (n > room) n = room;
    if (rows > kopi__step_room_rows(r->step)) {
        rows = 0;
        n--; /* the last token waits for a step with room for its row */
    }
    if (!n) return;
    kopi_error e;
    kopi_status s = kopi__step_add(r->step, kopi__answer_cache(a)->seq, ids, n, rows, &e);
    if (s != KOPI_OK && rows > 1) { /* there may be a page for one token, but none for guesses */
        g->n = 0;
        n = rows = 1;
        s = kopi__step_add(r->step, kopi__answer_cache(a)->seq, ids, n, rows, &e);
    }
    if (s != KOPI_OK) {
        kopi__answer_fail(a, s, &e);
        return;
    }
    r->parts[r->n_parts++] = (struct part){a, n, rows ? r->logits + (size_t)r->n_rows * r->m->n_vocab : NULL};
    r->n_rows += rows;
}

/* Guesses for the decoding answers. Half of the tokens that are left stay for prompts, if there are some. */
static void speculate(struct kopi_round *r, struct kopi_answer *const *answers, size_t n)
{
    uint32_t n_decoding = 0, n_prompts = 0;
    for (size_t i = 0; i < n; i++) {
        if (kopi__answer_done(answers[i])) continue;
        if (kopi__answer_decoding(answers[i])) n_decoding++;
        else n_prompts++;
    }
    uint32_t room = kopi__step_room(r->step), rows = kopi__step_room_rows(r->step);
    if (room > rows) room = rows;
    room = room > n_decoding + n_prompts ? room - n_decoding - n_prompts : 0;
    if (n_prompts) room /= 2;
    if (n_decoding && room) kopi__speculate(r->speculator, answers, n, room < r->max_guesses ? room : r->max_guesses);
}

static void pack(struct kopi_round *r, struct kopi_answer *const *answers, size_t n)
{
    kopi__step_clear(r->step);
    r->n_parts = r->n_rows = 0;
    if (r->speculator) speculate(r, answers, n);
    for (int prefill = 0; prefill < 2; prefill++) {
        uint32_t before = r->n_parts;
        for (size_t i = 0; i < n; i++)
            if (!kopi__answer_done(answers[i]) && kopi__answer_decoding(answers[i]) != prefill) add(r, answers[i]);
        r->prefill = r->n_parts > before;
    }
}

void kopi__round_run(struct kopi_round *r, struct kopi_answer *const *answers, size_t n)
{
    kopi_error e = {0};
    pack(r, answers, n);
    if (!r->n_parts) return; /* those that could not be added have ended */
    uint64_t began = kopi__now_ns();
    kopi_status s = kopi__step_run(r->step, r->logits, &e);
    if (r->speculator && !r->prefill && s == KOPI_OK)
        kopi__pace_note(&r->m->spec->pace, kopi__step_tokens(r->step), kopi__now_ns() - began);
    for (uint32_t i = 0; i < r->n_parts; i++) {
        const struct part *p = &r->parts[i];
        if (s == KOPI_OK) kopi__answer_evaluated(p->a, p->n, p->rows);
        else if (s == KOPI_E_CANCELLED) kopi__answer_cancel(p->a);
        else kopi__answer_fail(p->a, s, &e);
    }
    if (s == KOPI_E_CANCELLED) kopi_model_uncancel(r->m);
}
