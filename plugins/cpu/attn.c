/* KV_WRITE and ATTN: the KV cache in its canonical pages, and attention over it. */
#include "kernels.h"

#include <string.h>

/* CHUNK: positions that one online softmax runs over; BLOCK: positions that it takes at a time (kopi/op.h). */
enum { CHUNK = 256, BLOCK = 32, SUMS = 16 };

/* Row of a position in the pages of a sequence; NULL if the sequence has no page there. */
static char *kv_row(const kopi_kctx *k, const kopi_tensor *t, const kopi_seq_run *s, int64_t pos)
{
    const kopi_kv_group *g = kopi_group_at(k->prog, t->group);
    int32_t page = s->pages[t->group][pos / g->page_len];
    if (page < 0) return NULL;
    return (char *)g->base + (uint64_t)page * g->page_bytes + t->off + (uint64_t)(pos % g->page_len * t->nb[1]);
}

static kopi_status no_page(void *be)
{
    const struct cpu *cpu = be;
    return cpu->host->fail(cpu->host->ctx, KOPI_E_INTERNAL, "a visible position has no KV page");
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void store_row(const float *x, int64_t n, uint32_t dtype, void *to)
{
    uint16_t *h = to;
    if (dtype == KOPI_DTYPE_F32) memcpy(to, x, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++) h[i] = kopi_f32_to_f16(x[i]);
}

CPU_RUN(kv_write)
{
    for (uint32_t part = 0; part < 2; part++) { /* K, then V */
        const kopi_tensor *t = kopi_tensor_at(k->prog, op->out[part]);
        struct cpu_rows x = cpu__rows(k, op->in[part]);
        struct cpu_range share = cpu__share(k, x.n);
        for (int64_t i = share.begin; i < share.end; i++) {
            char *to = kv_row(k, t, kopi_seq_at(k->run, (uint32_t)k->run->seq[i]), k->run->pos[i]);
            if (!to) return no_page(be);
            store_row(cpu__row(&x, i), x.len, t->dtype, to);
        }
    }
    return KOPI_OK;
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

/* A running softmax sum: of a chunk, or of all chunks so far. */
struct sum {
    float m;
    float l[SUMS]; /* over all chunks only l[0] is used */
    float *o;      /* [head_dim_v] */
};

/* The queries of one token that share a KV head, and the working memory for them. */
struct attend {
    const kopi_kctx *k;
    const kopi_attn_params *p;
    const kopi_tensor *key, *value;
    uint32_t n_queries;        /* per KV head */
    struct sum *chunk, *total; /* [n_queries] */
    float *keys;               /* [head_dim_k][BLOCK]: a block of keys, transposed */
    float *values;             /* [BLOCK][head_dim_v] */
    float *line;               /* [head_dim_k] */
};

/* Lays the working memory out in scratch; the result is its size. scratch NULL: only that. */
static uint64_t lay_out(struct attend *a, const kopi_attn_params *p, char *scratch)
{
    uint64_t n = p->n_heads / p->n_kv_heads, at = 2 * n * sizeof(struct sum);
    uint64_t floats = ((uint64_t)BLOCK + 1) * p->head_dim_k + (BLOCK + 2 * n) * p->head_dim_v;
    if (!scratch) return at + floats * sizeof(float);
    a->p = p;
    a->n_queries = (uint32_t)n;
    a->chunk = (void *)scratch;
    a->total = a->chunk + n;
    a->keys = (float *)(void *)(scratch + at);
    a->values = a->keys + (size_t)BLOCK * p->head_dim_k;
    a->line = a->values + (size_t)BLOCK * p->head_dim_v;
    float *o = a->line + p->head_dim_k;
    for (uint64_t i = 0; i < 2 * n; i++) a->chunk[i].o = o + i * p->head_dim_v;
    return 0;
}

/* Part `head` of a KV row as n floats. */
static void load_head(const char *row, uint32_t head, int64_t n, uint32_t dtype, float *x)
{
    const float *f = (const void *)row;
    const uint16_t *h = (const void *)row;
    if (dtype == KOPI_DTYPE_F32) memcpy(x, f + head * n, (size_t)n * sizeof *x);
    else
        for (int64_t i = 0; i < n; i++) x[i] = kopi_f16_to_f32(h[head * n + i]);
}

/* Keys and values at positions [begin, end) of one block; the other lanes of keys become 0. False: a page is missing.
 */
static bool load_block(const struct attend *a, const kopi_seq_run *seq, uint32_t head, int64_t begin, int64_t end)
{
    int64_t nk = a->p->head_dim_k, nv = a->p->head_dim_v;
    memset(a->keys, 0, (size_t)(nk * BLOCK) * sizeof *a->keys);
    for (int64_t j = begin; j < end; j++) {
        const char *key = kv_row(a->k, a->key, seq, j), *value = kv_row(a->k, a->value, seq, j);
        if (!key || !value) return false;
        load_head(key, head, nk, a->key->dtype, a->line);
        for (int64_t d = 0; d < nk; d++) a->keys[d * BLOCK + j % BLOCK] = a->line[d];
        load_head(value, head, nv, a->value->dtype, a->values + j % BLOCK * nv);
    }
    return true;
}

static void scores(const struct attend *a, const float *q, float *score)
{
    const kopi_attn_params *p = a->p;
    float s[BLOCK] = {0};
    for (int64_t d = 0; d < p->head_dim_k; d++)
        for (int j = 0; j < BLOCK; j++) s[j] = __builtin_fmaf(q[d], a->keys[d * BLOCK + j], s[j]);
    for (int j = 0; j < BLOCK; j++) score[j] = s[j] * p->scale;
    if (p->softcap > 0)
        for (int j = 0; j < BLOCK; j++) score[j] = p->softcap * kopi_tanh(score[j] / p->softcap);
}

/* The larger one; NaN if either is. */
static float larger(float a, float b) { return a != a ? a : b > a || b != b ? b : a; }

/* Takes a block whose lanes [begin, end) are visible into the sum of its chunk. */
static void take_block(const struct attend *a, struct sum *c, const float *score, int64_t begin, int64_t end)
{
    int64_t nv = a->p->head_dim_v;
    float mn = c->m;
    for (int64_t j = begin; j < end; j++) mn = larger(mn, score[j]);
    if (!(mn <= c->m)) {
        float shrink = kopi_exp(c->m - mn); /* +0 from m = -inf */
        for (int i = 0; i < SUMS; i++) c->l[i] = c->l[i] * shrink;
        for (int64_t d = 0; d < nv; d++) c->o[d] = c->o[d] * shrink;
        c->m = mn;
    }
    for (int64_t j = begin; j < end; j++) {
        float p = kopi_exp(score[j] - c->m);
        const float *v = a->values + j * nv;
        c->l[j % SUMS] = c->l[j % SUMS] + p;
        for (int64_t d = 0; d < nv; d++) c->o[d] = __builtin_fmaf(p, v[d], c->o[d]);
    }
}

static void start_chunk(const struct attend *a, struct sum *c)
{
    c->m = kopi_bits_f32(0xff800000u);
    memset(c->l, 0, sizeof c->l);
    memset(c->o, 0, a->p->head_dim_v * sizeof *c->o);
}

/* Adds a finished chunk to the total, which the first chunk starts. */
static void merge(const struct attend *a, struct sum *total, struct sum *c, bool first)
{
    int64_t nv = a->p->head_dim_v;
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) c->l[j] = c->l[j] + c->l[j + half];
    if (first) {
        total->m = c->m;
        total->l[0] = c->l[0];
        memcpy(total->o, c->o, (size_t)nv * sizeof *c->o);
        return;
    }
    float mn = larger(total->m, c->m), old = kopi_exp(total->m - mn), new = kopi_exp(c->m - mn);
    total->l[0] = __builtin_fmaf(c->l[0], new, total->l[0] * old);
    for (int64_t d = 0; d < nv; d++) total->o[d] = __builtin_fmaf(c->o[d], new, total->o[d] * old);
    total->m = mn;
}

/* All queries of token t on one KV head: q and y are its rows. */
static bool attend(const struct attend *a, uint32_t t, uint32_t head, const float *q, float *y)
{
    const kopi_attn_params *p = a->p;
    const kopi_seq_run *seq = kopi_seq_at(a->k->run, (uint32_t)a->k->run->seq[t]);
    int64_t end = (int64_t)a->k->run->pos[t] + 1, first = p->window && end > p->window ? end - p->window : 0;
    float score[BLOCK];
    for (int64_t at = first; at < end;) { /* block by block: [at, stop) is visible */
        int64_t base = at / BLOCK * BLOCK, stop = base + BLOCK < end ? base + BLOCK : end;
        if (!load_block(a, seq, head, at, stop)) return false;
        for (uint32_t i = 0; i < a->n_queries; i++) {
            if (at == first || at % CHUNK == 0) start_chunk(a, &a->chunk[i]);
            scores(a, q + (size_t)(head * a->n_queries + i) * p->head_dim_k, score);
            take_block(a, &a->chunk[i], score, at - base, stop - base);
            if (stop == end || stop % CHUNK == 0) merge(a, &a->total[i], &a->chunk[i], at / CHUNK == first / CHUNK);
        }
        at = stop;
    }
    for (uint32_t i = 0; i < a->n_queries; i++)
        for (int64_t d = 0; d < p->head_dim_v; d++)
            y[(size_t)(head * a->n_queries + i) * p->head_dim_v + (size_t)d] = a->total[i].o[d] / a->total[i].l[0];
    return true;
}

CPU_SCRATCH(attn)
{
    struct attend a;
    (void)p;
    return lay_out(&a, op->params, NULL);
}

CPU_RUN(attn)
{
    struct attend a = {.k = k, .key = kopi_tensor_at(k->prog, op->in[1]), .value = kopi_tensor_at(k->prog, op->in[2])};
    const kopi_attn_params *p = op->params;
    struct cpu_rows q = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    lay_out(&a, p, k->scratch);
    struct cpu_range part = cpu__share(k, q.n * p->n_kv_heads);
    for (int64_t i = part.begin; i < part.end; i++) {
        int64_t t = i / p->n_kv_heads;
        if (!attend(&a, (uint32_t)t, (uint32_t)(i % p->n_kv_heads), cpu__row(&q, t), cpu__row(&y, t)))
            return no_page(be);
    }
    return KOPI_OK;
}
