/* Row kernels and this level's table. */
#include "kernels.h"
#include "vec.h"

#include <string.h>

/* Runs `body` for the whole groups of 16 from i = 0, and `rest` for the last n - i < 16 elements. */
#define FOR_16(body, rest)                                                                                             \
    do {                                                                                                               \
        uint32_t i = 0;                                                                                                \
        for (; i + 16 <= n; i += 16) body;                                                                             \
        if (i < n) rest;                                                                                               \
    } while (0)

/* y = f(x), y = f(a, b) */
#define MAP1(x, y, f)                                                                                                  \
    FOR_16(v16_store((y) + i, f(v16_load((x) + i))), v16_store_n((y) + i, f(v16_load_n((x) + i, n - i)), n - i))
#define MAP2(a, b, y, f)                                                                                               \
    FOR_16(v16_store((y) + i, f(v16_load((a) + i), v16_load((b) + i))),                                                \
           v16_store_n((y) + i, f(v16_load_n((a) + i, n - i), v16_load_n((b) + i, n - i)), n - i))

/* ---- norms ------------------------------------------------------------------------------------------------------- */

static float sum_of(const float *x, uint32_t n)
{
    v16 s = v16_set(0);
    FOR_16(s = v16_add(s, v16_load(x + i)), s = v16_add(s, v16_load_n(x + i, n - i)));
    return v16_tree(s);
}

static float sum_of_squares(const float *x, uint32_t n)
{
    v16 s = v16_set(0);
    FOR_16(s = v16_fma(v16_load(x + i), v16_load(x + i), s), {
        v16 v = v16_load_n(x + i, n - i);
        s = v16_fma(v, v, s);
    });
    return v16_tree(s);
}

/* y = ((x - mean) * r) * weight + bias, each step only where it is there. */
VEC v16 normalized(v16 x, v16 r, const float *weight, const float *bias, uint32_t n)
{
    v16 y = v16_mul(x, r);
    if (weight) y = v16_mul(y, n == 16 ? v16_load(weight) : v16_load_n(weight, n));
    if (bias) y = v16_add(y, n == 16 ? v16_load(bias) : v16_load_n(bias, n));
    return y;
}

static void norm(const float *x, float *y, uint32_t n, const kopi_norm_params *p, const float *weight,
                 const float *bias)
{
    if (p->kind == KOPI_NORM_LAYER) {
        v16 mean = v16_set(sum_of(x, n) / (float)n);
#define LESS_MEAN(v) v16_sub(v, mean)
        MAP1(x, y, LESS_MEAN);
        x = y;
    }
    v16 r = v16_set(1.0f / __builtin_sqrtf(sum_of_squares(x, n) / (float)n + p->eps));
    FOR_16(
        v16_store(y + i, normalized(v16_load(x + i), r, weight ? weight + i : NULL, bias ? bias + i : NULL, 16)),
        v16_store_n(y + i,
                    normalized(v16_load_n(x + i, n - i), r, weight ? weight + i : NULL, bias ? bias + i : NULL, n - i),
                    n - i));
}

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

static void rope_pair(const float *x, float *y, uint32_t i0, uint32_t i1, const float *cs)
{
    float x0 = x[i0], x1 = x[i1];
    y[i0] = __builtin_fmaf(x0, cs[0], -(x1 * cs[1]));
    y[i1] = __builtin_fmaf(x0, cs[1], x1 * cs[0]);
}

/* Pairs [0, n) of halves that are `apart`, n a multiple of 16; c, s: cosines and sines. */
static void rope_halves(const float *x, float *y, uint32_t n, uint32_t apart, const float *c, const float *s)
{
    for (uint32_t i = 0; i < n; i += 16) {
        v16 x0 = v16_load(x + i), x1 = v16_load(x + apart + i), co = v16_load(c + i), si = v16_load(s + i);
        v16_store(y + i, v16_fms(x0, co, v16_mul(x1, si)));
        v16_store(y + apart + i, v16_fma(x0, si, v16_mul(x1, co)));
    }
}

/* Pairs [0, n) of neighbours, n a multiple of 8; cs: cosine and sine of each. */
static void rope_neighbours(const float *x, float *y, uint32_t n, const float *cs)
{
    for (uint32_t i = 0; i < 2 * n; i += 16) {
        v16 v = v16_load(x + i), t = v16_load(cs + i);
        v16_store(y + i, v16_fma_sub_add(v16_firsts(v), t, v16_mul(v16_seconds(v), v16_swapped(t))));
    }
}

enum { ROPE_PAIRS = 128 }; /* that the table is split up for at once */

static void rope(const float *x, float *y, uint32_t head_dim, uint32_t n_heads, const kopi_rope_params *p,
                 const float *table)
{
    float c[ROPE_PAIRS], s[ROPE_PAIRS];
    bool halves = p->pairing == KOPI_ROPE_HALF;
    uint32_t n_pairs = p->n_rot / 2, wide = !halves ? n_pairs / 8 * 8 : n_pairs <= ROPE_PAIRS ? n_pairs / 16 * 16 : 0;
    for (uint32_t i = 0; halves && i < wide; i++) {
        c[i] = table[2 * i];
        s[i] = table[2 * i + 1];
    }
    for (uint32_t h = 0; h < n_heads; h++, x += head_dim, y += head_dim) {
        if (halves)
            rope_halves(x, y, wide, n_pairs, c, s);
        else
            rope_neighbours(x, y, wide, table);
        for (uint32_t i = wide; i < n_pairs; i++)
            if (halves)
                rope_pair(x, y, i, i + n_pairs, table + 2 * i);
            else
                rope_pair(x, y, 2 * i, 2 * i + 1, table + 2 * i);
        if (y != x) memcpy(y + 2 * n_pairs, x + 2 * n_pairs, (head_dim - 2 * n_pairs) * sizeof *x);
    }
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

static void add(const float *a, const float *b, float *y, uint32_t n) { MAP2(a, b, y, v16_add); }

static void scale(const float *x, float *y, uint32_t n, float value)
{
    v16 factor = v16_set(value);
#define SCALED(v) v16_mul(v, factor)
    MAP1(x, y, SCALED);
}

static void softcap(const float *x, float *y, uint32_t n, float value)
{
    v16 cap = v16_set(value);
#define CAPPED(v) v16_mul(cap, v16_tanh(v16_div(v, cap)))
    MAP1(x, y, CAPPED);
}

/* x > 0 ? x : +0, NaN stays NaN */
VEC v16 relu(v16 x) { return v16_zero_if_less(x, v16_set(0), v16_add(x, v16_set(0))); }

#define SILU_UP(g, u) v16_mul(v16_silu(g), u)
#define GELU_UP(g, u) v16_mul(v16_gelu_tanh(g), u)
#define RELU_UP(g, u) v16_mul(relu(g), u)
static void glu(const float *gate, const float *up, float *y, uint32_t n, uint32_t act)
{
    if (!up) {
        if (act == KOPI_ACT_SILU)
            MAP1(gate, y, v16_silu);
        else if (act == KOPI_ACT_GELU_TANH)
            MAP1(gate, y, v16_gelu_tanh);
        else
            MAP1(gate, y, relu);
        return;
    }
    if (act == KOPI_ACT_SILU)
        MAP2(gate, up, y, SILU_UP);
    else if (act == KOPI_ACT_GELU_TANH)
        MAP2(gate, up, y, GELU_UP);
    else
        MAP2(gate, up, y, RELU_UP);
}

/* ---- the KV cache ------------------------------------------------------------------------------------------------ */

static void store_v(const float *x, void *row, uint32_t n, bool f16)
{
    uint16_t *h = row;
    if (!f16) {
        memcpy(row, x, n * sizeof *x);
        return;
    }
    FOR_16(v16_store_f16(h + i, v16_load(x + i)), {
        uint16_t last[16];
        v16_store_f16(last, v16_load_n(x + i, n - i));
        memcpy(h + i, last, (n - i) * sizeof *h);
    });
}

static void store_k(const float *x, void *part, uint32_t lane, uint32_t n, bool f16)
{
    float *f = part;
    uint16_t *h = part, some[16];
    if (!f16)
        for (uint32_t i = 0; i < n; i++) f[i * KT_LANES + lane] = x[i];
    else
        for (uint32_t i = 0; i < n; i += 16) {
            uint32_t m = n - i < 16 ? n - i : 16;
            v16_store_f16(some, m == 16 ? v16_load(x + i) : v16_load_n(x + i, m));
            for (uint32_t j = 0; j < m; j++) h[(i + j) * KT_LANES + lane] = some[j];
        }
}

const struct kt_kernels KT_AT_LEVEL(kt__kernels_) = {
    .name = KT_STRING(KT_ISA),
    .norm = norm,
    .rope = rope,
    .add = add,
    .scale = scale,
    .softcap = softcap,
    .glu = glu,
    .store_k = store_k,
    .store_v = store_v,
    .attn_chunk = kt__attn_chunk,
    .attn_merge = kt__attn_merge,
    .attn_finish = kt__attn_finish,
};
