#include "base/error.h"
#include "base/mem.h"
#include "run/round.h"

struct job {
    uint64_t id;
    struct kopi_answer *a;
    bool running; /* has a slot */
    struct job *next;
};

/* A cache that stays filled after its job, so that the next one may find its prefix there. */
struct slot {
    kopi_cache *cache;
    struct job *job; /* NULL: free */
    uint64_t last_used;
};

struct kopi_scheduler {
    kopi_model *m;
    struct kopi_round *round;
    struct slot *slots; /* [n_slots] */
    uint32_t n_slots;
    struct job *first;           /* in the order of submission, finished ones until they are taken */
    struct kopi_answer **active; /* [n_slots] of the running step */
    uint64_t last_id, clock;
};

kopi_status kopi_scheduler_new(kopi_model *model, kopi_scheduler **out, kopi_error *err)
{
    *out = NULL;
    kopi_scheduler *s = kopi__calloc(1, sizeof *s);
    if (!s) return kopi__nomem(err, "scheduler");
    s->m = model;
    s->n_slots = model->max_seq;
    s->slots = kopi__calloc(s->n_slots, sizeof *s->slots);
    s->active = kopi__calloc(s->n_slots, sizeof *s->active);
    kopi_status st =
        s->slots && s->active ? kopi__round_new(model, s->n_slots, &s->round, err) : kopi__nomem(err, "scheduler");
    for (uint32_t i = 0; i < s->n_slots && st == KOPI_OK; i++) st = kopi_cache_new(model, &s->slots[i].cache, err);
    if (st == KOPI_OK) *out = s;
    else kopi_scheduler_free(s);
    return st;
}

static void free_job(struct job *j)
{
    kopi__answer_free(j->a);
    kopi__free(j);
}

void kopi_scheduler_free(kopi_scheduler *s)
{
    if (!s) return;
    while (s->first) {
        struct job *j = s->first;
        s->first = j->next;
        free_job(j);
    }
    for (uint32_t i = 0; s->slots && i < s->n_slots; i++) kopi_cache_free(s->slots[i].cache);
    kopi__round_free(s->round);
    kopi__free(s->slots);
    kopi__free(s->active);
    kopi__free(s);
}

kopi_status kopi_scheduler_submit(kopi_scheduler *s, const kopi_request *request, uint64_t *id, kopi_error *err)
{
    struct job *j = kopi__calloc(1, sizeof *j);
    if (!j) return kopi__nomem(err, "request");
    kopi_status st = kopi__answer_new(s->m, request, &j->a, err);
    if (st != KOPI_OK) {
        kopi__free(j);
        return st;
    }
    j->id = *id = ++s->last_id;
    struct job **end = &s->first;
    while (*end) end = &(*end)->next;
    *end = j;
    return KOPI_OK;
}

/* ---- slots ------------------------------------------------------------------------------------------------------- */

static struct slot *oldest_free(kopi_scheduler *s)
{
    struct slot *best = NULL;
    for (struct slot *k = s->slots; k < s->slots + s->n_slots; k++)
        if (!k->job && (!best || k->last_used < best->last_used)) best = k;
    return best;
}

/* The slot, free or not, whose cache has the longest prefix of the prompt. */
static struct slot *best_prefix(kopi_scheduler *s, const struct kopi_answer *a, uint32_t *n)
{
    size_t n_prompt;
    const int32_t *prompt = kopi__answer_prompt(a, &n_prompt);
    struct slot *best = NULL;
    *n = 0;
    for (struct slot *k = s->slots; k < s->slots + s->n_slots; k++) {
        uint32_t common = kopi__cache_common(k->cache, prompt, n_prompt);
        if (common <= *n) continue;
        *n = common;
        best = k;
    }
    return best;
}

/* The free slot for a job, its cache holding what is known of the prompt. A free slot goes on with its own content;
 * content that a running job has, or of which less than half would be kept, is shared instead, so that both go on. */
static struct slot *prepare_slot(kopi_scheduler *s, const struct kopi_answer *a)
{
    uint32_t n;
    struct slot *to = oldest_free(s), *from = best_prefix(s, a, &n);
    if (!to || !from) return to;
    if (!from->job && n >= kopi_cache_length(from->cache) / 2) return from;
    if (from != to) kopi__cache_share(to->cache, from->cache, n, NULL); /* on failure: computed again */
    return to;
}

static void start_jobs(kopi_scheduler *s)
{
    for (struct job *j = s->first; j; j = j->next) {
        if (j->running || kopi__answer_done(j->a)) continue;
        struct slot *k = prepare_slot(s, j->a);
        if (!k) return; /* first come, first served */
        k->job = j;
        j->running = true;
        kopi__answer_start(j->a, k->cache);
    }
}

static void release_slots(kopi_scheduler *s)
{
    for (struct slot *k = s->slots; k < s->slots + s->n_slots; k++)
        if (k->job && kopi__answer_done(k->job->a)) {
            k->job = NULL;
            k->last_used = ++s->clock;
        }
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

kopi_status kopi_scheduler_step(kopi_scheduler *s, size_t *active, kopi_error *err)
{
    (void)err;
    size_t n = 0, waiting = 0;
    release_slots(s); /* of jobs that were cancelled since */
    start_jobs(s);
    for (struct job *j = s->first; j; j = j->next)
        if (j->running && !kopi__answer_done(j->a)) s->active[n++] = j->a;
    kopi__round_run(s->round, s->active, n);
    release_slots(s);
    for (struct job *j = s->first; j; j = j->next) waiting += !kopi__answer_done(j->a);
    if (active) *active = waiting;
    return KOPI_OK;
}

void kopi_scheduler_cancel(kopi_scheduler *s, uint64_t id)
{
    for (struct job *j = s->first; j; j = j->next)
        if (j->id == id) kopi__answer_cancel(j->a);
}

kopi_status kopi_scheduler_result(kopi_scheduler *s, uint64_t id, kopi_result *result, kopi_error *err)
{
    struct job **at = &s->first;
    *result = (kopi_result){0};
    while (*at && (*at)->id != id) at = &(*at)->next;
    struct job *j = *at;
    if (!j) return kopi__fail(err, KOPI_E_RANGE, "no request has the id %llu", (unsigned long long)id);
    if (!kopi__answer_done(j->a))
        return kopi__fail(err, KOPI_E_RANGE, "request %llu is not finished", (unsigned long long)id);
    release_slots(s); /* none may point to it */
    *at = j->next;
    kopi_status st = kopi__answer_result(j->a, result, err);
    free_job(j);
    return st;
}
