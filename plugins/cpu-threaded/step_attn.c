/* Steps of ATTN, in two ways. By rows (prompts): a worker takes all heads and chunks of its rows. By items (decoding):
 * an item is a sequence, a KV head and, where that balances better, one query head or one chunk; chunks are put
 * together by MERGE. */
#include "plan.h"

#include <string.h>

/* Chunk sums and totals of the queries of one call. */
uint64_t kt_attn_scratch(const struct kt_graph *g)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        uint64_t need = 2 * KT_MAX_QUERIES * (uint64_t)kt_sum_floats(g->nodes[i].v.head_dim);
        if (g->nodes[i].kind == KOPI_OP_ATTN && need > most) most = need;
    }
    return most;
}

/* Partial sums for one token at the full context, and for n_rows tokens as far as a few megabytes go. */
uint64_t kt_attn_partials(const struct kt_graph *g, uint32_t n_rows)
{
    const uint64_t enough = (uint64_t)1 << 20;
    uint64_t most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i].kind != KOPI_OP_ATTN) continue;
        const kopi_attn_params *p = g->nodes[i].op->params;
        uint64_t one = ((uint64_t)g->prog->max_pos / KT_CHUNK + 2) * p->n_heads * kt_sum_floats(p->head_dim_v),
                 all = one * n_rows;
        uint64_t need = one > enough ? one : all < enough ? all : enough;
        if (need > most) most = need;
    }
    return most;
}

/* ---- what rows see ----------------------------------------------------------------------------------------------- */

/* Everything about one ATTN at work. */
struct attend {
    struct kt_worker *w;
    const struct kt_node *n;
    const kopi_attn_params *p;
    struct kt_place q, y;
    uint32_t group;            /* query heads per KV head */
    uint32_t slot;             /* floats of a sum */
    uint32_t max_chunks;       /* by chunks: of any row */
};

static struct attend attend_of(struct kt_worker *w, const struct kt_step *s)
{
    struct attend a = {.w = w, .n = &w->plan->graph.nodes[w->sched[w->section]->order[s->first]]};
    a.p = a.n->op->params;
    a.q = kt_place_of(w, a.n->in[0]);
    a.y = kt_place_of(w, a.n->out);
    a.group = a.p->n_heads / a.p->n_kv_heads;
    a.slot = kt_sum_floats(a.p->head_dim_v);
    return a;
}

static uint32_t position(const struct attend *a, uint32_t row)
{
    return (uint32_t)a->w->run->pos[kt_token(a->w, a->n, row)];
}
static int32_t sequence(const struct attend *a, uint32_t row) { return a->w->run->seq[kt_token(a->w, a->n, row)]; }
static uint32_t first_seen(const struct attend *a, uint32_t row)
{
    uint32_t end = position(a, row) + 1;
    return a->p->window && end > a->p->window ? end - a->p->window : 0;
}
static uint32_t n_chunks(const struct attend *a, uint32_t row)
{
    return position(a, row) / KT_CHUNK - first_seen(a, row) / KT_CHUNK + 1;
}

/* Rows from `row` on that belong to one sequence. */
static struct kt_range span(const struct attend *a, uint32_t row, uint32_t end)
{
    struct kt_range r = {row, row + 1};
    while (r.end < end && sequence(a, r.end) == sequence(a, row)) r.end++;
    return r;
}

/* ---- one chunk --------------------------------------------------------------------------------------------------- */

/* Rows of one sequence and query heads of one KV head: at most KT_MAX_QUERIES queries together. */
struct block {
    struct kt_range rows, heads;
    uint32_t kv_head;
};

static bool find_pages(const struct attend *a, struct kt_attn_chunk *c, const struct block *b, uint32_t chunk,
                       uint32_t begin, uint32_t end)
{
    const kopi_seq_run *seq = kopi_seq_at(a->w->run, (uint32_t)sequence(a, b->rows.begin));
    for (uint32_t i = begin / KT_LANES; i * KT_LANES < end; i++) {
        uint32_t pos = chunk * KT_CHUNK + i * KT_LANES;
        c->k[i] = kt_kv_lanes(&a->n->k, seq, b->kv_head, pos);
        c->v[i] = kt_kv_lanes(&a->n->v, seq, b->kv_head, pos);
        if (!c->k[i] || !c->v[i]) return false;
    }
    return true;
}

/* Where the sum of a row and head over a chunk goes. */
typedef float *sum_fn(const struct attend *a, const struct block *b, uint32_t row, uint32_t head, uint32_t chunk);

static void one_chunk(const struct attend *a, const struct block *b, uint32_t chunk, sum_fn *sum_at)
{
    const float *q[KT_MAX_QUERIES];
    float *sum[KT_MAX_QUERIES];
    uint16_t begin[KT_MAX_QUERIES], end[KT_MAX_QUERIES];
    struct kt_attn_chunk c = {.head_dim_k = a->p->head_dim_k,
                              .head_dim_v = a->p->head_dim_v,
                              .k_f16 = a->n->k.f16,
                              .v_f16 = a->n->v.f16,
                              .scale = a->p->scale,
                              .softcap = a->p->softcap,
                              .q = q,
                              .begin = begin,
                              .end = end,
                              .sum = sum};
    uint32_t base = chunk * KT_CHUNK, lowest = KT_CHUNK, highest = 0;
    for (uint32_t row = b->rows.begin; row < b->rows.end; row++) {
        uint32_t from = first_seen(a, row), to = position(a, row) + 1;
        if (to <= base || from >= base + KT_CHUNK) continue;
        from = from > base ? from - base : 0;
        to = to - base < KT_CHUNK ? to - base : KT_CHUNK;
        if (from < lowest) lowest = from;
        if (to > highest) highest = to;
        const float *x = kt_at(&a->q, kt_row_of(a->w, a->n, a->n->in[0], row));
        for (uint32_t h = b->heads.begin; h < b->heads.end; h++, c.n_queries++) {
            q[c.n_queries] = x + (size_t)h * a->p->head_dim_k;
            begin[c.n_queries] = (uint16_t)from;
            end[c.n_queries] = (uint16_t)to;
            sum[c.n_queries] = sum_at(a, b, row, h, chunk);
        }
    }
    if (!c.n_queries) return;
    if (find_pages(a, &c, b, chunk, lowest, highest)) {
        a->w->plan->kt->kernels->attn_chunk(&c);
        return;
    }
    const kopi_host *host = a->w->plan->kt->host;
    a->w->status = host->fail(host->ctx, KOPI_E_INTERNAL, "a visible position has no KV page");
}

/* ---- whole: all chunks by one worker ----------------------------------------------------------------------------- */

/* Scratch: the totals of the block's queries, then their sums over the chunk at hand. */
static float *total_of(const struct attend *a, const struct block *b, uint32_t row, uint32_t head)
{
    uint32_t i = (row - b->rows.begin) * (b->heads.end - b->heads.begin) + head - b->heads.begin;
    return a->w->scratch + (size_t)i * a->slot;
}
static float *sum_or_total(const struct attend *a, const struct block *b, uint32_t row, uint32_t head, uint32_t chunk)
{
    float *total = total_of(a, b, row, head);
    return chunk == first_seen(a, row) / KT_CHUNK ? total : total + (size_t)KT_MAX_QUERIES * a->slot;
}

static void whole_block(const struct attend *a, const struct block *b)
{
    const struct kt_kernels *k = a->w->plan->kt->kernels;
    uint32_t first = first_seen(a, b->rows.begin) / KT_CHUNK, last = position(a, b->rows.end - 1) / KT_CHUNK;
    for (uint32_t chunk = first; chunk <= last && a->w->status == KOPI_OK; chunk++) {
        one_chunk(a, b, chunk, sum_or_total);
        for (uint32_t row = b->rows.begin; row < b->rows.end; row++)
            if (chunk > first_seen(a, row) / KT_CHUNK && chunk <= position(a, row) / KT_CHUNK)
                for (uint32_t h = b->heads.begin; h < b->heads.end; h++)
                    k->attn_merge(total_of(a, b, row, h), sum_or_total(a, b, row, h, chunk), a->p->head_dim_v);
    }
    for (uint32_t row = b->rows.begin; row < b->rows.end; row++)
        for (uint32_t h = b->heads.begin; h < b->heads.end; h++)
            k->attn_finish(total_of(a, b, row, h), kt_at(&a->y, row) + (size_t)h * a->p->head_dim_v, a->p->head_dim_v);
}

/* Cuts rows x heads into blocks of few enough queries; fn for each. */
static void each_block(const struct attend *a, struct block all, uint32_t chunk,
                       void (*fn)(const struct attend *a, const struct block *b, uint32_t chunk))
{
    uint32_t heads = all.heads.end - all.heads.begin, per = heads < KT_MAX_QUERIES ? heads : KT_MAX_QUERIES,
             rows = KT_MAX_QUERIES / per;
    for (uint32_t h = all.heads.begin; h < all.heads.end; h += per)
        for (uint32_t r = all.rows.begin; r < all.rows.end; r += rows) {
            struct block b = {.rows = {r, r + rows < all.rows.end ? r + rows : all.rows.end},
                              .heads = {h, h + per < all.heads.end ? h + per : all.heads.end}, .kv_head = all.kv_head};
            if (a->w->status == KOPI_OK) fn(a, &b, chunk);
        }
}

static void do_whole(const struct attend *a, const struct block *b, uint32_t chunk)
{
    (void)chunk;
    whole_block(a, b);
}

static void by_rows(const struct attend *a, struct kt_range r)
{
    for (struct kt_range s = {r.begin, r.begin}; s.end < r.end;) {
        s = span(a, s.end, r.end);
        for (uint32_t h = 0; h < a->p->n_kv_heads; h++)
            each_block(a, (struct block){s, {h * a->group, (h + 1) * a->group}, h}, 0, do_whole);
    }
}

/* ---- by items ---------------------------------------------------------------------------------------------------- */

/* Partial sums: [row][head][chunk], chunks counted from the row's first. */
static float *partial(const struct attend *a, uint32_t row, uint32_t head, uint32_t i)
{
    return a->w->plan->partials + (((size_t)row * a->p->n_heads + head) * a->max_chunks + i) * a->slot;
}
static float *partial_sum(const struct attend *a, const struct block *b, uint32_t row, uint32_t head, uint32_t chunk)
{
    (void)b;
    return partial(a, row, head, chunk - first_seen(a, row) / KT_CHUNK);
}
static void do_chunk(const struct attend *a, const struct block *b, uint32_t chunk)
{
    one_chunk(a, b, chunk, partial_sum);
}

/* Sets max_chunks: 0 where each item takes all chunks. */
static void choose_chunks(struct attend *a)
{
    const struct kt_plan *plan = a->w->plan;
    uint32_t most = 0;
    for (uint32_t row = 0; row < a->w->n_rows; row++) most = n_chunks(a, row) > most ? n_chunks(a, row) : most;
    uint64_t need = (uint64_t)a->w->n_rows * a->p->n_heads * most * a->slot;
    a->max_chunks = plan->nth > 1 && most > 1 && need <= plan->n_partials ? most : 0;
}

bool kt_attn_merges(const struct kt_worker *w, const struct kt_step *s)
{
    struct attend a = attend_of((struct kt_worker *)(uintptr_t)w, s);
    choose_chunks(&a);
    return a.max_chunks > 0;
}

/* Walks over all items of the step, or only counts them. An item is done by the worker in whose share the middle of its
 * positions falls. */
struct walk {
    const struct attend *a;
    uint64_t total, at; /* positions of all items; before this one */
    uint64_t n_items;
    uint32_t parts;     /* of a KV head's query heads */
    bool counting;
};

static void item(struct walk *k, struct block b, uint32_t chunk, uint64_t cost)
{
    const struct kt_worker *w = k->a->w;
    uint64_t middle = 2 * k->at + cost, low = 2 * k->total * w->ith / w->nth,
             high = 2 * k->total * (w->ith + 1) / w->nth;
    k->at += cost;
    k->n_items++;
    if (!k->counting && middle >= low && (middle < high || w->ith + 1 == w->nth))
        each_block(k->a, b, chunk, k->a->max_chunks ? do_chunk : do_whole);
}

static void items_of(struct walk *k, struct kt_range rows, uint32_t kv_head, struct kt_range heads)
{
    enum { START = 16 }; /* of an item, in positions */
    const struct attend *a = k->a;
    struct block b = {rows, heads, kv_head};
    uint32_t from = first_seen(a, rows.begin), to = position(a, rows.end - 1) + 1;
    if (!a->max_chunks) {
        item(k, b, 0, to - from + START);
        return;
    }
    for (uint32_t c = from / KT_CHUNK; c * KT_CHUNK < to; c++) {
        uint32_t begin = c * KT_CHUNK > from ? c * KT_CHUNK : from,
                 end = (c + 1) * KT_CHUNK < to ? (c + 1) * KT_CHUNK : to;
        item(k, b, c, end - begin + START);
    }
}

static void walk(struct walk *k)
{
    const struct attend *a = k->a;
    k->at = k->n_items = 0;
    for (struct kt_range s = {0, 0}; s.end < a->w->n_rows;) {
        s = span(a, s.end, a->w->n_rows);
        for (uint32_t h = 0; h < a->p->n_kv_heads; h++)
            for (uint32_t i = 0; i < k->parts; i++)
                items_of(k, s, h,
                         (struct kt_range){h * a->group + a->group * i / k->parts,
                                           h * a->group + a->group * (i + 1) / k->parts});
    }
}

static void by_items(struct attend *a)
{
    enum { ENOUGH = 8 }; /* items per worker: with fewer, query heads go apart too and read the same keys again */
    choose_chunks(a);
    struct walk k = {.a = a, .parts = 1, .counting = true};
    walk(&k);
    if (k.n_items < (uint64_t)ENOUGH * a->w->nth && a->w->nth > 1) {
        k.parts = a->group;
        walk(&k);
    }
    k.total = k.at;
    k.counting = false;
    walk(&k);
}

void kt_step_attn(struct kt_worker *w, const struct kt_step *s, struct kt_range r)
{
    struct attend a = attend_of(w, s);
    if (s->split == KT_SPLIT_ITEMS)
        by_items(&a);
    else
        by_rows(&a, r);
}

void kt_step_merge(struct kt_worker *w, const struct kt_step *s, struct kt_range r)
{
    struct attend a = attend_of(w, s);
    const struct kt_kernels *k = w->plan->kt->kernels;
    (void)r;
    choose_chunks(&a);
    uint64_t all = (uint64_t)w->n_rows * a.p->n_heads, end = all * (w->ith + 1) / w->nth;
    for (uint64_t i = all * w->ith / w->nth; i < end; i++) {
        uint32_t row = (uint32_t)(i / a.p->n_heads), head = (uint32_t)(i % a.p->n_heads), n = n_chunks(&a, row);
        float *total = partial(&a, row, head, 0);
        for (uint32_t c = 1; c < n; c++) k->attn_merge(total, partial(&a, row, head, c), a.p->head_dim_v);
        k->attn_finish(total, kt_at(&a.y, row) + (size_t)head * a.p->head_dim_v, a.p->head_dim_v);
    }
}
