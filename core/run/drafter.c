#include "run/drafter.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sys.h"
#include "run/step.h"
#include <string.h>

struct kopi_drafter {
    struct kopi_speculation *spec;
    struct kopi_step *step;
    float *logits;      /* [max_answers, n_vocab] */
    struct part *parts; /* [max_answers] of the running step */
    uint32_t n_parts, n_rows;
};

struct part {
    struct kopi_wish *w;
    uint32_t n;       /* tokens */
    const float *row; /* NULL: the prompt is not read to its end */
};

kopi_status kopi__drafter_new(struct kopi_speculation *spec, uint32_t max_answers, struct kopi_drafter **out,
                              kopi_error *err)
{
    *out = NULL;
    struct kopi_drafter *d = kopi__calloc(1, sizeof *d);
    if (!d) return kopi__nomem(err, "speculation");
    d->spec = spec;
    d->parts = kopi__calloc(max_answers, sizeof *d->parts);
    d->logits = kopi__realloc_array(NULL, max_answers, spec->draft->n_vocab * sizeof *d->logits);
    kopi_status s =
        d->parts && d->logits ? kopi__step_new(spec->draft, &d->step, err) : kopi__nomem(err, "speculation");
    if (s == KOPI_OK) *out = d;
    else kopi__drafter_free(d);
    return s;
}

void kopi__drafter_free(struct kopi_drafter *d)
{
    if (!d) return;
    kopi__step_free(d->step);
    kopi__free(d->logits);
    kopi__free(d->parts);
    kopi__free(d);
}

/* The draft model's cache of an answer, holding only tokens of it, or NULL when memory is short. */
static kopi_cache *own_cache(struct kopi_drafter *d, struct kopi_answer *a)
{
    size_t n;
    kopi_cache *c = kopi__answer_cache(a);
    struct kopi_guess *g = kopi__answer_guess(a);
    const int32_t *tokens = kopi__answer_tokens(a, &n);
    if (!c->draft && kopi_cache_new(d->spec->draft, &c->draft, NULL) != KOPI_OK) return NULL;
    uint32_t held = kopi_cache_length(c->draft), keep = (uint32_t)n - 1;
    /* Later on, all but the last token of the answer were guessed right or came from here. */
    if (!g->synced) keep = kopi__cache_common(c->draft, tokens, n - 1);
    g->synced = true;
    if (held > keep) kopi__kv_seq_truncate(c->draft->seq, keep);
    return c->draft;
}

/* Adds what the draft model has to read before it can guess the next token of a wish. */
static void add(struct kopi_drafter *d, struct kopi_wish *w)
{
    size_t n;
    struct kopi_guess *g = kopi__answer_guess(w->a);
    const int32_t *tokens = kopi__answer_tokens(w->a, &n);
    kopi_cache *c = kopi__answer_cache(w->a)->draft;
    uint32_t held = kopi_cache_length(c), want = (uint32_t)n + g->n - held, room = kopi__step_room(d->step);
    bool row = want <= room && kopi__step_room_rows(d->step);
    uint32_t take = row ? want : want <= room ? want - 1 : room;
    if (!take || kopi__step_add(d->step, c->seq, tokens + held, take, row, NULL) != KOPI_OK) {
        w->take = g->n; /* no room in the step, or no page is free: it goes without */
        return;
    }
    const float *at = row ? d->logits + (size_t)d->n_rows++ * d->spec->draft->n_vocab : NULL;
    d->parts[d->n_parts++] = (struct part){w, take, at};
}

static void pack(struct kopi_drafter *d, struct kopi_wish *wishes, uint32_t n)
{
    kopi__step_clear(d->step);
    d->n_parts = d->n_rows = 0;
    for (uint32_t i = 0; i < n; i++)
        if (kopi__answer_guess(wishes[i].a)->n < wishes[i].take) add(d, &wishes[i]);
}

/* The draft model guesses with the answer's own sampling and the random number of the position: the nearer the two
 * models are, the more often both draw the same token. */
static void take_row(const struct part *p)
{
    size_t n;
    int32_t id;
    struct kopi_guess *g = kopi__answer_guess(p->w->a);
    int32_t *tokens = kopi__answer_tokens(p->w->a, &n);
    if (kopi__answer_sample(p->w->a, p->row, n + g->n, &id, NULL) != KOPI_OK) {
        p->w->take = g->n;
        return;
    }
    tokens[n + g->n++] = id;
    if (kopi__answer_ends_with(p->w->a, id)) p->w->take = g->n;
}

static void give_up(struct kopi_drafter *d, kopi_status s, const kopi_error *e)
{
    if (s == KOPI_E_CANCELLED) return; /* the step of the model itself will say so */
    d->spec->broken = true;
    kopi__log(KOPI_LOG_WARN, "draft model %s failed and is not used any more: %s", d->spec->draft->id, e->text);
}

/* One step of the draft model. False: none was needed, or it failed. */
static bool run_step(struct kopi_drafter *d, struct kopi_wish *wishes, uint32_t n)
{
    kopi_error e;
    pack(d, wishes, n);
    if (!d->n_parts) return false;
    uint64_t began = kopi__now_ns();
    kopi_status s = kopi__step_run(d->step, d->logits, &e);
    if (s != KOPI_OK) {
        give_up(d, s, &e);
        return false;
    }
    uint64_t ns = kopi__now_ns() - began;
    bool guessing = true; /* and not reading prompts */
    for (const struct part *p = d->parts; p < d->parts + d->n_parts; p++) {
        size_t total;
        kopi_cache *c = kopi__answer_cache(p->w->a)->draft;
        uint32_t held = kopi_cache_length(c);
        memcpy(c->ids + held - p->n, kopi__answer_tokens(p->w->a, &total) + held - p->n, p->n * sizeof *c->ids);
        guessing &= p->n <= 2 && p->row;
        if (p->row) take_row(p);
        else p->w->take = kopi__answer_guess(p->w->a)->n;
    }
    if (guessing) kopi__pace_note(&d->spec->draft_pace, d->n_parts, ns);
    return true;
}

void kopi__drafter_run(struct kopi_drafter *d, struct kopi_wish *wishes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (wishes[i].take && !own_cache(d, wishes[i].a)) wishes[i].take = 0;
    while (run_step(d, wishes, n)) {}
}
