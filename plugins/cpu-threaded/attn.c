/* Attention over one chunk of one KV head, for the queries that share it. The scores of 16 positions are one v16 (the
 * keys lie interleaved); the values are added row by row. Tiles of queries share the loads of keys and values. */
#include "kernels.h"
#include "vec.h"

#include <math.h>
#include <string.h>

/* Queries of a tile, sized so that a tile's accumulators stay in registers: SCORE_TILE * 2 and VALUE_TILE * VALUE_WIDTH
 * v16. */
#if defined(__AVX512F__)
enum { SCORE_TILE = 8, VALUE_TILE = 8, VALUE_WIDTH = 2 };
#else
enum { SCORE_TILE = 3, VALUE_TILE = 2, VALUE_WIDTH = 2 };
#endif

/* One block of 32 positions of a chunk. */
struct block {
    const struct kt_attn_chunk *c;
    uint32_t first;                           /* of the chunk's positions */
    uint32_t q0, q1;                          /* queries that see some of it */
    const char *ahead[4];                     /* what is read next: keys of the next block, values of this one */
    float p[KT_MAX_QUERIES][KT_BLOCK];        /* scores, then weights */
};

VEC v16 load_kv(const void *p, size_t i, bool f16)
{
    return f16 ? v16_load_f16((const uint16_t *)p + i) : v16_load((const float *)p + i);
}
VEC float load_kv1(const void *p, size_t i, bool f16)
{
    return f16 ? kopi_f16_to_f32(((const uint16_t *)p)[i]) : ((const float *)p)[i];
}

/* While row d of the keys is read: as much of what is read next. Two rows of F16 are a line of the cache. */
VEC void fetch_ahead(const char *const *ahead, uint32_t d, const bool f16)
{
    size_t at = (size_t)d * KT_LANES * (f16 ? 2 : 4);
    __builtin_prefetch(ahead[f16 ? d & 1 : 0] + at);
    __builtin_prefetch(ahead[f16 ? 2 + (d & 1) : 2] + at);
    if (f16) return;
    __builtin_prefetch(ahead[1] + at);
    __builtin_prefetch(ahead[3] + at);
}

/* ---- scores ------------------------------------------------------------------------------------------------------ */

VEC void score_tile(struct block *b, uint32_t q, const uint32_t nq, const void *k0, const void *k1, const bool f16)
{
    const struct kt_attn_chunk *c = b->c;
    const bool first = q == b->q0;
    v16 s[SCORE_TILE][2];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < nq; i++) s[i][0] = s[i][1] = v16_set(0);
    for (uint32_t d = 0; d < c->head_dim_k; d++) {
        if (first) fetch_ahead(b->ahead, d, f16);
        v16 a = load_kv(k0, (size_t)d * KT_LANES, f16), e = load_kv(k1, (size_t)d * KT_LANES, f16);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < nq; i++) {
            v16 x = v16_set(c->q[q + i][d]);
            s[i][0] = v16_fma(x, a, s[i][0]);
            s[i][1] = v16_fma(x, e, s[i][1]);
        }
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < nq; i++) {
        v16_store(b->p[q + i], v16_mul(s[i][0], v16_set(c->scale)));
        v16_store(b->p[q + i] + KT_LANES, v16_mul(s[i][1], v16_set(c->scale)));
    }
}

VEC void score_all(struct block *b, const void *k0, const void *k1, const bool f16)
{
    for (uint32_t q = b->q0; q < b->q1; q += SCORE_TILE)
        switch (b->q1 - q) {
        case 1: score_tile(b, q, 1, k0, k1, f16); break;
        case 2: score_tile(b, q, 2, k0, k1, f16); break;
#if defined(__AVX512F__)
        case 3: score_tile(b, q, 3, k0, k1, f16); break;
        case 4: score_tile(b, q, 4, k0, k1, f16); break;
        case 5: score_tile(b, q, 5, k0, k1, f16); break;
        case 6: score_tile(b, q, 6, k0, k1, f16); break;
        case 7: score_tile(b, q, 7, k0, k1, f16); break;
#endif
        default: score_tile(b, q, SCORE_TILE, k0, k1, f16);
        }
}

static void score_f16(struct block *b, const void *k0, const void *k1) { score_all(b, k0, k1, true); }
static void score_f32(struct block *b, const void *k0, const void *k1) { score_all(b, k0, k1, false); }

static void cap_scores(struct block *b)
{
    v16 cap = v16_set(b->c->softcap);
    for (uint32_t q = b->q0; q < b->q1; q++)
        for (uint32_t j = 0; j < KT_BLOCK; j += 16)
            v16_store(b->p[q] + j, v16_mul(cap, v16_tanh(v16_div(v16_load(b->p[q] + j), cap))));
}

/* ---- softmax ----------------------------------------------------------------------------------------------------- */

/* Visible positions of query q in the block: [*from, *to), empty if from >= to. */
static void visible(const struct block *b, uint32_t q, uint32_t *from, uint32_t *to)
{
    uint32_t begin = b->c->begin[q], end = b->c->end[q];
    *from = begin > b->first ? begin - b->first : 0;
    *to = end < b->first + KT_BLOCK ? end - b->first : KT_BLOCK;
    if (end <= b->first) *to = 0;
}

static void shrink(float *sum, float factor, uint32_t head_dim_v)
{
    v16 f = v16_set(factor);
    v16_store(sum + KT_SUM_L, v16_mul(v16_load(sum + KT_SUM_L), f));
    for (uint32_t d = 0; d < head_dim_v; d += 16) /* the padding too: it is there and stays 0 */
        v16_store(sum + KT_SUM_O + d, v16_mul(v16_load(sum + KT_SUM_O + d), f));
}

/* Scores to weights; updates m and l of the query. */
static void softmax(struct block *b, uint32_t q, uint32_t from, uint32_t to)
{
    const v16 nothing = v16_set(-INFINITY);
    float *sum = b->c->sum[q], m = sum[KT_SUM_M];
    uint32_t bits = (to == KT_BLOCK ? 0 : 1u << to) - (1u << from);
    v16 s0 = v16_load(b->p[q]), s1 = v16_load(b->p[q] + KT_LANES);
    if (bits != UINT32_MAX) {
        s0 = v16_pick(bits & 0xffff, s0, nothing);
        s1 = v16_pick(bits >> 16, s1, nothing);
    }
    float most = v16_largest(v16_max(s0, s1));
    if (v16_nan_bits(s0) | v16_nan_bits(s1)) most = NAN;
    if (!(most <= m) && m == m) {
        shrink(sum, m == -INFINITY ? 0.0f : kopi_exp(m - most), b->c->head_dim_v);
        sum[KT_SUM_M] = m = most;
    }
    v16 p0 = v16_exp(v16_sub(s0, v16_set(m))), p1 = v16_exp(v16_sub(s1, v16_set(m)));
    v16_store(b->p[q], p0);
    v16_store(b->p[q] + KT_LANES, p1);
    v16_store(sum + KT_SUM_L, v16_add(v16_add(v16_load(sum + KT_SUM_L), p0), p1));
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* Dimensions [d0, d0 + 16 nv) of queries [q, q + nq), positions [from, to) of 16 at v. */
VEC void value_tile(struct block *b, uint32_t q, const uint32_t nq, const void *v, uint32_t lane0, uint32_t from,
                    uint32_t to, uint32_t d0, const uint32_t nv, const bool f16)
{
    v16 o[VALUE_TILE][VALUE_WIDTH];
#pragma GCC unroll 8
    for (uint32_t i = 0; i < nq; i++)
#pragma GCC unroll 4
        for (uint32_t k = 0; k < nv; k++) o[i][k] = v16_load(b->c->sum[q + i] + KT_SUM_O + d0 + 16 * k);
    for (uint32_t j = from; j < to; j++) {
        v16 x[VALUE_WIDTH];
#pragma GCC unroll 4
        for (uint32_t k = 0; k < nv; k++) x[k] = load_kv(v, (size_t)j * b->c->head_dim_v + d0 + 16 * k, f16);
#pragma GCC unroll 8
        for (uint32_t i = 0; i < nq; i++) {
            v16 p = v16_set(b->p[q + i][lane0 + j]);
#pragma GCC unroll 4
            for (uint32_t k = 0; k < nv; k++) o[i][k] = v16_fma(p, x[k], o[i][k]);
        }
    }
#pragma GCC unroll 8
    for (uint32_t i = 0; i < nq; i++)
#pragma GCC unroll 4
        for (uint32_t k = 0; k < nv; k++) v16_store(b->c->sum[q + i] + KT_SUM_O + d0 + 16 * k, o[i][k]);
}

VEC void value_tiles(struct block *b, uint32_t q, const uint32_t nq, const void *v, uint32_t lane0, uint32_t from,
                     uint32_t to, const bool f16)
{
    uint32_t d = 0, n = b->c->head_dim_v;
    for (; d + 16 * VALUE_WIDTH <= n; d += 16 * VALUE_WIDTH)
        value_tile(b, q, nq, v, lane0, from, to, d, VALUE_WIDTH, f16);
    for (; d + 16 <= n; d += 16) value_tile(b, q, nq, v, lane0, from, to, d, 1, f16);
    for (; d < n; d++)
        for (uint32_t i = 0; i < nq; i++) {
            float *o = b->c->sum[q + i] + KT_SUM_O + d;
            for (uint32_t j = from; j < to; j++)
                *o = __builtin_fmaf(b->p[q + i][lane0 + j], load_kv1(v, (size_t)j * n + d, f16), *o);
        }
}

/* Positions [from, to) of the block for queries [q, q + nq), nq <= VALUE_TILE. */
VEC void add_values(struct block *b, uint32_t q, uint32_t nq, uint32_t from, uint32_t to, const bool f16)
{
    for (uint32_t lane0 = 0; lane0 < KT_BLOCK; lane0 += KT_LANES) {
        const void *v = b->c->v[(b->first + lane0) / KT_LANES];
        uint32_t j0 = from > lane0 ? from - lane0 : 0, j1 = to < lane0 + KT_LANES ? to : lane0 + KT_LANES;
        if (to <= lane0 || j0 >= (j1 -= lane0)) continue;
        switch (nq) {
        case 1: value_tiles(b, q, 1, v, lane0, j0, j1, f16); break;
#if defined(__AVX512F__)
        case 2: value_tiles(b, q, 2, v, lane0, j0, j1, f16); break;
        case 3: value_tiles(b, q, 3, v, lane0, j0, j1, f16); break;
        case 4: value_tiles(b, q, 4, v, lane0, j0, j1, f16); break;
        case 5: value_tiles(b, q, 5, v, lane0, j0, j1, f16); break;
        case 6: value_tiles(b, q, 6, v, lane0, j0, j1, f16); break;
        case 7: value_tiles(b, q, 7, v, lane0, j0, j1, f16); break;
#endif
        default: value_tiles(b, q, VALUE_TILE, v, lane0, j0, j1, f16);
        }
    }
}

static void add_values_f16(struct block *b, uint32_t q, uint32_t nq, uint32_t from, uint32_t to)
{
    add_values(b, q, nq, from, to, true);
}
static void add_values_f32(struct block *b, uint32_t q, uint32_t nq, uint32_t from, uint32_t to)
{
    add_values(b, q, nq, from, to, false);
}

/* All queries of the block: those that see the same positions go together. */
static void values(struct block *b)
{
    void (*add)(struct block *, uint32_t, uint32_t, uint32_t, uint32_t) = b->c->v_f16 ? add_values_f16 : add_values_f32;
    for (uint32_t q = b->q0, n; q < b->q1; q += n) {
        uint32_t from, to, from2, to2;
        visible(b, q, &from, &to);
        for (n = 1; n < VALUE_TILE && q + n < b->q1; n++) {
            visible(b, q + n, &from2, &to2);
            if (from2 != from || to2 != to) break;
        }
        add(b, q, n, from, to);
    }
}

/* ---- the chunk --------------------------------------------------------------------------------------------------- */

static void do_block(struct block *b)
{
    const void *k0 = b->c->k[b->first / KT_LANES], *k1 = b->c->k[b->first / KT_LANES + 1];
    uint32_t from, to;
    if (!k0) k0 = k1; /* nothing there is visible: any readable keys will do */
    if (!k1) k1 = k0;
    const uint32_t next = b->first + KT_BLOCK < KT_CHUNK ? KT_BLOCK / KT_LANES : 0;
    const void *const *k = b->c->k + b->first / KT_LANES + next, *const *v = b->c->v + b->first / KT_LANES;
    for (int i = 0; i < 2; i++) {
        b->ahead[i] = k[i] ? k[i] : k0;
        b->ahead[2 + i] = v[i] ? v[i] : k0;
    }
    (b->c->k_f16 ? score_f16 : score_f32)(b, k0, k1);
    if (b->c->softcap > 0) cap_scores(b);
    for (uint32_t q = b->q0; q < b->q1; q++) {
        visible(b, q, &from, &to);
        softmax(b, q, from, to);
    }
    values(b);
}

void kt__attn_chunk(const struct kt_attn_chunk *c)
{
    struct block b;
    b.c = c;
    for (uint32_t q = 0; q < c->n_queries; q++) {
        memset(c->sum[q], 0, kt_sum_floats(c->head_dim_v) * sizeof(float));
        c->sum[q][KT_SUM_M] = -INFINITY;
    }
    for (b.first = 0; b.first < KT_CHUNK; b.first += KT_BLOCK) {
        /* Queries come in order of position, so both ends of what they see ascend: those that see this block are a
         * range. */
        for (b.q0 = 0; b.q0 < c->n_queries && c->end[b.q0] <= b.first;) b.q0++;
        for (b.q1 = c->n_queries; b.q1 > b.q0 && c->begin[b.q1 - 1] >= b.first + KT_BLOCK;) b.q1--;
        if (b.q0 < b.q1) do_block(&b);
    }
    for (uint32_t q = 0; q < c->n_queries; q++) c->sum[q][KT_SUM_L] = v16_tree(v16_load(c->sum[q] + KT_SUM_L));
}

void kt__attn_merge(float *total, const float *sum, uint32_t head_dim_v)
{
    float old = total[KT_SUM_M], new = sum[KT_SUM_M], m = old != old || old >= new ? old : new;
    float a = kopi_exp(old - m), b = kopi_exp(new - m);
    v16 va = v16_set(a), vb = v16_set(b);
    total[KT_SUM_L] = __builtin_fmaf(sum[KT_SUM_L], b, total[KT_SUM_L] * a);
    for (uint32_t d = KT_SUM_O; d < KT_SUM_O + head_dim_v; d += 16)
        v16_store(total + d, v16_fma(v16_load(sum + d), vb, v16_mul(v16_load(total + d), va)));
    total[KT_SUM_M] = m;
}

void kt__attn_finish(const float *total, float *y, uint32_t head_dim_v)
{
    v16 l = v16_set(total[KT_SUM_L]);
    uint32_t d = 0;
    for (; d + 16 <= head_dim_v; d += 16) v16_store(y + d, v16_div(v16_load(total + KT_SUM_O + d), l));
    if (d < head_dim_v) v16_store_n(y + d, v16_div(v16_load(total + KT_SUM_O + d), l), head_dim_v - d);
}
