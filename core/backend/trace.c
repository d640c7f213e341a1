#include "backend/trace.h"

#include "backend/assign.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include <pthread.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#define uthash_malloc kopi__alloc
#define uthash_free(p, n) kopi__free(p)
#include <uthash.h>

enum { MAX_SPANS = 1 << 20, MAX_PARTS = 6 }; /* kept per worker; different operations that a label lists */

/* A group; its busy time is with the workers until it is read. */
struct group {
    UT_hash_handle hh; /* by pub.ops */
    struct kopi_trace_group pub;
    uint64_t last_step;
    uint32_t index;
    uint32_t ops[];
};

/* A group as one worker has seen it. */
struct seen {
    UT_hash_handle hh; /* by ops */
    struct group *group;
    uint64_t busy_ns, last_step;
    uint32_t ops[];
};

struct worker {
    _Alignas(64) struct seen *seen;
    struct kopi_trace_span *spans;
    size_t n_spans, cap;
    uint64_t n, dropped;
    bool failed;
};

struct kopi_trace {
    const kopi_program *p;
    bool keep_spans;
    unsigned n_workers;
    struct worker *workers;
    pthread_mutex_t lock; /* of groups, while workers record */
    struct group *groups;
    uint64_t n_steps, n_tokens, step_ns, begun;
    struct kopi_trace_group *result;
    struct kopi_trace_spans *result_spans;
};

kopi_status kopi__trace_new(const kopi_program *p, unsigned workers, bool keep_spans, struct kopi_trace **out,
                            kopi_error *err)
{
    struct kopi_trace *t = kopi__calloc(1, sizeof *t);
    *out = NULL;
    if (!t) return kopi__nomem(err, "trace");
    pthread_mutex_init(&t->lock, NULL);
    t->p = p;
    t->keep_spans = keep_spans;
    t->n_workers = workers;
    t->workers = kopi__alloc_aligned(workers * sizeof *t->workers, 64);
    t->result_spans = kopi__calloc(workers, sizeof *t->result_spans);
    if (t->workers) memset(t->workers, 0, workers * sizeof *t->workers);
    if (!t->workers || !t->result_spans) {
        kopi__trace_free(t);
        return kopi__nomem(err, "trace");
    }
    *out = t;
    return KOPI_OK;
}

static void free_worker(struct worker *w)
{
    struct seen *s, *next;
    HASH_ITER(hh, w->seen, s, next) {
        HASH_DEL(w->seen, s);
        kopi__free(s);
    }
    kopi__free(w->spans);
}

void kopi__trace_free(struct kopi_trace *t)
{
    struct group *g, *next;
    if (!t) return;
    for (unsigned i = 0; t->workers && i < t->n_workers; i++) free_worker(&t->workers[i]);
    HASH_ITER(hh, t->groups, g, next) {
        HASH_DEL(t->groups, g);
        kopi__free(g);
    }
    pthread_mutex_destroy(&t->lock);
    kopi__free(t->workers);
    kopi__free(t->result_spans);
    kopi__free(t->result);
    kopi__free(t);
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

static struct group *find_group(struct kopi_trace *t, const uint32_t *ops, uint32_t n)
{
    struct group *g;
    size_t bytes = n * sizeof *ops;
    HASH_FIND(hh, t->groups, ops, bytes, g);
    if (g || !(g = kopi__calloc(1, sizeof *g + bytes))) return g;
    memcpy(g->ops, ops, bytes);
    g->pub.ops = g->ops;
    g->pub.n_ops = n;
    g->index = HASH_COUNT(t->groups);
    HASH_ADD_KEYPTR(hh, t->groups, g->ops, bytes, g);
    if (g->hh.tbl) return g;
    kopi__free(g); /* no memory for the table */
    return NULL;
}

/* The worker's record of a group; made, together with the group, when it is new. */
static struct seen *find_seen(struct kopi_trace *t, struct worker *w, const uint32_t *ops, uint32_t n)
{
    struct seen *s;
    size_t bytes = n * sizeof *ops;
    HASH_FIND(hh, w->seen, ops, bytes, s);
    if (s) return s;
    pthread_mutex_lock(&t->lock);
    struct group *g = find_group(t, ops, n);
    pthread_mutex_unlock(&t->lock);
    if (!g || !(s = kopi__calloc(1, sizeof *s + bytes))) return NULL;
    s->group = g;
    memcpy(s->ops, ops, bytes);
    HASH_ADD_KEYPTR(hh, w->seen, s->ops, bytes, s);
    if (s->hh.tbl) return s;
    kopi__free(s);
    return NULL;
}

static void keep(struct worker *w, struct kopi_trace_span span)
{
    if (w->n_spans == w->cap && w->cap < MAX_SPANS) {
        size_t cap = w->cap ? 2 * w->cap : 1024;
        struct kopi_trace_span *more = kopi__realloc_array(w->spans, cap, sizeof *more);
        if (more) {
            w->spans = more;
            w->cap = cap;
        }
    }
    if (w->n_spans < w->cap)
        w->spans[w->n_spans++] = span;
    else
        w->dropped++;
}

void kopi__trace_span(struct kopi_trace *t, uint32_t ith, uint64_t begin, uint64_t end, const uint32_t *ops, uint32_t n)
{
    if (ith >= t->n_workers || end < begin || !n) return;
    for (uint32_t i = 0; i < n; i++)
        if (ops[i] >= t->p->n_ops) return;
    struct worker *w = &t->workers[ith];
    struct seen *s = find_seen(t, w, ops, n);
    w->n++;
    if (!s) {
        w->failed = true;
        return;
    }
    s->busy_ns += end - begin;
    s->last_step = t->n_steps;
    if (t->keep_spans) keep(w, (struct kopi_trace_span){begin, end, s->group->index});
}

uint64_t kopi__trace_n_spans(const struct kopi_trace *t)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < t->n_workers; i++) n += t->workers[i].n;
    return n;
}

void kopi__trace_step_begin(struct kopi_trace *t)
{
    t->n_steps++; /* steps count from 1: 0 is "never" */
    t->begun = kopi__now_ns();
}

static void add_call(struct kopi_trace *t, struct group *g, const kopi_run *run)
{
    if (g->last_step == t->n_steps) return; /* another worker's share of it */
    g->last_step = t->n_steps;
    g->pub.calls++;
    for (uint32_t i = 0; i < g->pub.n_ops; i++) {
        struct kopi_cost c = kopi__op_cost(t->p, kopi_op_at(t->p, g->ops[i]), run);
        g->pub.cost.bytes += c.bytes;
        g->pub.cost.flops += c.flops;
    }
}

void kopi__trace_step_end(struct kopi_trace *t, const kopi_run *run)
{
    t->step_ns += kopi__now_ns() - t->begun;
    t->n_tokens += run->n_tok;
    for (unsigned i = 0; i < t->n_workers; i++)
        for (struct seen *s = t->workers[i].seen; s; s = s->hh.next)
            if (s->last_step == t->n_steps) add_call(t, s->group, run);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool is_complete(const struct kopi_trace *t)
{
    for (unsigned i = 0; i < t->n_workers; i++)
        if (t->workers[i].failed) return false;
    return true;
}

kopi_status kopi__trace_read(struct kopi_trace *t, struct kopi_trace_result *out, kopi_error *err)
{
    uint32_t n = HASH_COUNT(t->groups);
    struct kopi_trace_group *groups = kopi__realloc_array(t->result, n ? n : 1, sizeof *groups);
    if (groups) t->result = groups;
    if (!groups || !is_complete(t)) return kopi__nomem(err, "trace");
    for (const struct group *g = t->groups; g; g = g->hh.next) groups[g->index] = g->pub;
    *out = (struct kopi_trace_result){t->n_steps, t->n_tokens, t->step_ns, t->n_workers, n, groups, t->result_spans, 0};
    for (unsigned i = 0; i < t->n_workers; i++) {
        struct worker *w = &t->workers[i];
        for (const struct seen *s = w->seen; s; s = s->hh.next) groups[s->group->index].busy_ns += s->busy_ns;
        t->result_spans[i] = (struct kopi_trace_spans){w->spans, w->n_spans};
        out->dropped += w->dropped;
    }
    return KOPI_OK;
}

bool kopi__trace_label(const kopi_program *p, const struct kopi_trace_group *g, struct kopi_buf *out)
{
    char text[MAX_PARTS][64], one[64];
    uint32_t count[MAX_PARTS], n = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        uint32_t k = 0;
        kopi__op_text(p, kopi_op_at(p, g->ops[i]), one, sizeof one);
        while (k < n && strcmp(text[k], one)) k++;
        if (k == MAX_PARTS) return kopi__buf_fmt(out, "%u operations as one", g->n_ops);
        if (k == n) {
            memcpy(text[n], one, sizeof one);
            count[n++] = 0;
        }
        count[k]++;
    }
    for (uint32_t k = 0; k < n; k++) {
        kopi__buf_str(out, k ? " + " : "");
        if (count[k] > 1) kopi__buf_fmt(out, "%u ", count[k]);
        kopi__buf_str(out, text[k]);
    }
    return !out->failed;
}
