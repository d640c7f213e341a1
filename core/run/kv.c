#include "run/kv.h"

#include "backend/exec.h"
#include "base/error.h"
#include "base/mem.h"
#include <string.h>

/* Pages of one group: who holds them. */
struct pool {
    uint32_t page_len, n_pages;
    uint32_t *refs; /* [n_pages] page tables that name it */
    int32_t *free;  /* stack of the pages with no reference */
    uint32_t n_free;
};

struct kopi_kv {
    struct kopi_exec *exec;
    struct pool *pools; /* [n_groups] */
    uint32_t n_groups, max_pos;
    uint32_t next_id; /* of the next sequence */
};

struct table {
    int32_t *pages;
    uint32_t n;
}; /* room for max_pos positions, n pages taken */

struct kopi_kv_seq {
    struct kopi_kv *kv;
    struct table *tables;  /* [n_groups] */
    const int32_t **pages; /* [n_groups], the tables as kopi_seq_run wants them */
    uint32_t length, id;
};

static uint32_t pages_for(const struct pool *p, uint64_t positions)
{
    return (uint32_t)((positions + p->page_len - 1) / p->page_len);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static kopi_status pool_init(struct pool *p, const kopi_kv_group *g, kopi_error *err)
{
    if (g->kind == KOPI_KV_STATE || !g->page_len)
        return kopi__fail(err, KOPI_E_UNSUPPORTED, "KV groups of kind %u with pages of %u positions", g->kind,
                          g->page_len);
    if (g->n_pages > INT32_MAX)
        return kopi__fail(err, KOPI_E_RANGE,
                          "KV cache of %llu pages, at most %d are possible; lower context.size or context.parallel",
                          (unsigned long long)g->n_pages, INT32_MAX);
    p->page_len = g->page_len;
    p->n_pages = p->n_free = (uint32_t)g->n_pages;
    p->refs = kopi__calloc(p->n_pages, sizeof *p->refs);
    p->free = kopi__calloc(p->n_pages, sizeof *p->free);
    if (!p->refs || !p->free) return kopi__nomem(err, "KV cache");
    for (uint32_t i = 0; i < p->n_pages; i++) p->free[i] = (int32_t)(p->n_pages - 1 - i); /* low pages first */
    return KOPI_OK;
}

/* The caller has checked that one is free. The page used last is taken first: it is warm. */
static int32_t take(struct pool *p)
{
    int32_t page = p->free[--p->n_free];
    p->refs[page] = 1;
    return page;
}

static void drop(struct pool *p, int32_t page)
{
    if (--p->refs[page] == 0) p->free[p->n_free++] = page;
}

kopi_status kopi__kv_new(const kopi_program *p, struct kopi_exec *exec, struct kopi_kv **out, kopi_error *err)
{
    *out = NULL;
    struct kopi_kv *kv = kopi__calloc(1, sizeof *kv);
    if (!kv) return kopi__nomem(err, "KV cache");
    kv->exec = exec;
    kv->n_groups = p->n_groups;
    kv->max_pos = p->max_pos;
    kv->pools = kopi__calloc(p->n_groups, sizeof *kv->pools);
    kopi_status s = kv->pools ? KOPI_OK : kopi__nomem(err, "KV cache");
    for (uint32_t i = 0; i < p->n_groups && s == KOPI_OK; i++) s = pool_init(&kv->pools[i], kopi_group_at(p, i), err);
    if (s == KOPI_OK) *out = kv;
    else kopi__kv_free(kv);
    return s;
}

void kopi__kv_free(struct kopi_kv *kv)
{
    if (!kv) return;
    for (uint32_t i = 0; i < kv->n_groups && kv->pools; i++) {
        kopi__free(kv->pools[i].refs);
        kopi__free(kv->pools[i].free);
    }
    kopi__free(kv->pools);
    kopi__free(kv);
}

uint64_t kopi__kv_pages_free(const struct kopi_kv *kv, uint32_t group) { return kv->pools[group].n_free; }

/* ---- sequences --------------------------------------------------------------------------------------------------- */

kopi_status kopi__kv_seq_new(struct kopi_kv *kv, struct kopi_kv_seq **out, kopi_error *err)
{
    *out = NULL;
    struct kopi_kv_seq *s = kopi__calloc(1, sizeof *s);
    if (!s) return kopi__nomem(err, "sequence");
    s->kv = kv;
    s->id = kv->next_id++;
    s->tables = kopi__calloc(kv->n_groups, sizeof *s->tables);
    s->pages = kopi__calloc(kv->n_groups, sizeof *s->pages);
    bool ok = s->tables && s->pages;
    for (uint32_t i = 0; i < kv->n_groups && ok; i++) {
        s->pages[i] = s->tables[i].pages = kopi__calloc(pages_for(&kv->pools[i], kv->max_pos), sizeof(int32_t));
        ok = s->pages[i] != NULL;
    }
    if (!ok) {
        kopi__kv_seq_free(s);
        return kopi__nomem(err, "sequence");
    }
    *out = s;
    return KOPI_OK;
}

void kopi__kv_seq_free(struct kopi_kv_seq *s)
{
    if (!s) return;
    if (s->tables && s->pages) kopi__kv_seq_truncate(s, 0);
    for (uint32_t i = 0; i < s->kv->n_groups && s->tables; i++) kopi__free(s->tables[i].pages);
    kopi__free(s->tables);
    kopi__free(s->pages);
    kopi__free(s);
}

uint32_t kopi__kv_seq_length(const struct kopi_kv_seq *s) { return s->length; }
uint32_t kopi__kv_seq_id(const struct kopi_kv_seq *s) { return s->id; }
const int32_t *const *kopi__kv_seq_pages(const struct kopi_kv_seq *s) { return s->pages; }

/* The page that holds the next position is already there and another sequence reads it. */
static bool writes_shared(const struct kopi_kv_seq *s, uint32_t group)
{
    const struct pool *p = &s->kv->pools[group];
    const struct table *t = &s->tables[group];
    uint32_t page = s->length / p->page_len;
    return page < t->n && p->refs[t->pages[page]] > 1;
}

static kopi_status own_page(struct kopi_kv_seq *s, uint32_t group, kopi_error *err)
{
    struct pool *p = &s->kv->pools[group];
    int32_t *page = &s->tables[group].pages[s->length / p->page_len], fresh = take(p);
    kopi_status st = kopi__exec_copy_page(s->kv->exec, group, fresh, *page, err);
    if (st != KOPI_OK) {
        drop(p, fresh);
        return st;
    }
    drop(p, *page);
    *page = fresh;
    return KOPI_OK;
}

kopi_status kopi__kv_seq_reserve(struct kopi_kv_seq *s, uint32_t n, kopi_error *err)
{
    struct kopi_kv *kv = s->kv;
    if (n > kv->max_pos - s->length)
        return kopi__fail(err, KOPI_E_RANGE, "%u tokens behind %u are more than the context of %u; raise --ctx-size", n,
                          s->length, kv->max_pos);
    if (!n) return KOPI_OK;
    for (uint32_t i = 0; i < kv->n_groups; i++) {
        uint32_t want = pages_for(&kv->pools[i], (uint64_t)s->length + n), have = s->tables[i].n;
        uint32_t need = (want > have ? want - have : 0) + writes_shared(s, i);
        if (need > kv->pools[i].n_free)
            return kopi__fail(err, KOPI_E_RANGE,
                              "the KV cache is full: %u pages of %u tokens are needed, %u of %u are free"
                              " (context.parallel is the number of full sequences)",
                              need, kv->pools[i].page_len, kv->pools[i].n_free, kv->pools[i].n_pages);
    }
    for (uint32_t i = 0; i < kv->n_groups; i++) {
        kopi_status st = writes_shared(s, i) ? own_page(s, i, err) : KOPI_OK;
        if (st != KOPI_OK) {
            kopi__kv_seq_truncate(s, s->length); /* gives back what the groups before took */
            return st;
        }
        struct table *t = &s->tables[i];
        for (uint32_t want = pages_for(&kv->pools[i], (uint64_t)s->length + n); t->n < want;)
            t->pages[t->n++] = take(&kv->pools[i]);
    }
    return KOPI_OK;
}

void kopi__kv_seq_commit(struct kopi_kv_seq *s, uint32_t n) { s->length += n; }

void kopi__kv_seq_truncate(struct kopi_kv_seq *s, uint32_t n)
{
    s->length = n;
    for (uint32_t i = 0; i < s->kv->n_groups; i++) {
        struct table *t = &s->tables[i];
        for (uint32_t keep = pages_for(&s->kv->pools[i], n); t->n > keep;) drop(&s->kv->pools[i], t->pages[--t->n]);
    }
}

kopi_status kopi__kv_seq_fork(struct kopi_kv_seq *s, uint32_t n, struct kopi_kv_seq **out, kopi_error *err)
{
    kopi_status st = kopi__kv_seq_new(s->kv, out, err);
    if (st != KOPI_OK) return st;
    struct kopi_kv_seq *f = *out;
    f->length = n;
    for (uint32_t i = 0; i < s->kv->n_groups; i++) {
        f->tables[i].n = pages_for(&s->kv->pools[i], n);
        for (uint32_t k = 0; k < f->tables[i].n; k++) {
            f->tables[i].pages[k] = s->tables[i].pages[k];
            s->kv->pools[i].refs[f->tables[i].pages[k]]++;
        }
    }
    return KOPI_OK;
}
