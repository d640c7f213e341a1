/* plugins/cpu-threaded/linear_tile.h - LINEAR of a group of 16 rows and a few tokens, for all types, in the functions
 * of a simd_*.h; included once per level (linear_*.c). Everything is inlined into one function per (type, number of
 * tokens), with the format a constant, so that what reads like an interpreter of formats becomes straight code. */
#ifndef KT_LINEAR_TILE_H
#define KT_LINEAR_TILE_H

#include "format.h"

#include <string.h>

enum {
    KT_R = KT_SLICES < 2 ? KT_SLICES : 2, /* slices of a tile: they share the broadcast of the activations */
    KT_LANES = KT_SLICE / 4,
    KT_AHEAD = 1024 /* bytes between what is read and what is prefetched */
};

/* One group meets the tokens of one unit. */
struct tile {
    const uint8_t *group, *x; /* x: the unit's activations */
    uint32_t k, rows;         /* rows to write */
    const float *bias;        /* NULL or [rows] */
    float *y;                 /* of the unit's first token */
    uint64_t ldy;
};

/* sums[r][t]: slice r, token t of the tile. */
typedef vi sums[KT_R][KT_TILE];

KT_INLINE void prefetch(const uint8_t *p, int bytes)
{
    for (int i = 0; i < bytes; i += 64) __builtin_prefetch(p + KT_AHEAD + i);
}

/* Codes of quad c (0..7) of 32 columns. */
KT_INLINE vi codes(const struct kt_format *f, const uint8_t *hi, const uint8_t *lo, int c)
{
    static const uint8_t iq4_nl[16] = {KT_IQ4_NL_VALUES};
    int per = 8 / f->lo;
    vi w = v_load(lo + 64 * (c / per));
    if (c % per) w = v_shr16(w, c % per * f->lo);
    if (per > 1) w = v_and(w, v_bytes((1 << f->lo) - 1));
    if (f->hi) {
        per = 8 / f->hi;
        int at = c % per * f->hi - f->lo; /* where the bits are, from where they go */
        vi h = v_load(hi + 64 * (c / per));
        h = at < 0 ? v_shl16(h, -at) : at > 0 ? v_shr16(h, at) : h;
        w = v_insert(w, h, v_bytes(((1 << f->hi) - 1) << f->lo));
    }
    if (f->codes) w = v_lookup(iq4_nl, w);
    if (KT_SIGNED8 && f->max == 255) w ^= v_bytes(128);
    return w;
}

/* sum += codes x activations over 32 columns; scale[r][half]: NULL, or factors of each 16 columns. */
KT_INLINE void dot32(const struct kt_format *f, int T, int W, const uint8_t *hi, const uint8_t *lo, const uint8_t *x,
                     sums sum, vi (*scale)[2], bool wide)
{
    bool direct = !scale && (KT_DOT32 || f->max == 255);
    int steps = scale && f->sub == 16 ? 4 : 8;
    if (v_dot_steps(f->max) < steps) steps = v_dot_steps(f->max);
    sums d;
    KT_EACH (c, 8) {
        vi w[KT_R];
        KT_EACH (r, KT_R) w[r] = codes(f, hi + r * KT_SLICE, lo + r * KT_SLICE, c);
        KT_EACH (t, T) {
            vi xc = v_bcast(x + 4 * (c * W + t));
            KT_EACH (r, KT_R) {
                if (direct) {
                    sum[r][t] = v_dot8(sum[r][t], w[r], xc);
                    continue;
                }
                d[r][t] = v_dot(c % steps ? d[r][t] : v_zero(), w[r], xc);
                if ((c + 1) % steps) continue;
                sum[r][t] = scale ? v_flush(sum[r][t], d[r][t], scale[r][c / 4], wide) : v_flush1(sum[r][t], d[r][t]);
            }
        }
    }
}

/* The accumulators of a tile to y. */
KT_INLINE void store(const struct tile *a, int T, int slice, int t0, vf (*acc)[KT_TILE])
{
    KT_EACH (r, KT_R) {
        uint32_t row = (uint32_t)(slice + r) * KT_LANES;
        if (row >= a->rows) return;
        uint32_t n = a->rows - row;
        KT_EACH (t, T) {
            float *y = a->y + (uint64_t)(t0 + t) * a->ldy + row, v[KT_LANES];
            if (n >= KT_LANES) {
                v_storef(y, a->bias ? v_addf(acc[r][t], v_loadf(a->bias + row)) : acc[r][t]);
                continue;
            }
            v_storef(v, acc[r][t]);
            for (uint32_t i = 0; i < n; i++) y[i] = a->bias ? v[i] + a->bias[row + i] : v[i];
        }
    }
}

/* ---- blocks of 32 ---------------------------------------------------------------------------------------- */

/* Tokens t0 .. t0 + T of a unit of W, slices slice .. slice + KT_R. */
KT_INLINE void tile32(const struct kt_format *f, const struct tile *a, int T, int W, int slice, int t0)
{
    const uint8_t *g = a->group + slice * KT_SLICE, *d16 = a->group + slice * KT_LANES * 2, *x = a->x + 4 * t0;
    const int block = kt_block_bytes(f), off = KT_SIGNED8 && f->max == 255 ? 0 : f->off;
    vf acc[KT_R][KT_TILE];
    KT_EACH (r, KT_R)
        KT_EACH (t, T) acc[r][t] = v_zerof();
    for (uint32_t b = a->k / 32; b > 0; b--, g += block, d16 += block, x += W * KT_A8_32) {
        const uint8_t *xs = x + 32 * W, *xd = xs + 4 * W, *xds = xd + 4 * W;
        prefetch(g, block);
        sums sum;
        KT_EACH (t, T)
            KT_EACH (r, KT_R) sum[r][t] = off ? v_shl32(v_bcast(xs + 4 * t), __builtin_ctz((unsigned)off)) : v_zero();
        dot32(f, T, W, g + kt_hi_at(f), g + kt_lo_at(f), x, sum, NULL, false);
        KT_EACH (r, KT_R) {
            vf d = v_f16(d16 + r * KT_LANES * 2), m = f->min ? v_f16(d16 + 32 + r * KT_LANES * 2) : d;
            KT_EACH (t, T) {
                acc[r][t] = v_fma(v_mul(d, v_bcastf(xd + 4 * t)), v_float(sum[r][t]), acc[r][t]);
                if (f->min) acc[r][t] = v_fma(m, v_bcastf(xds + 4 * t), acc[r][t]);
            }
        }
    }
    store(a, T, slice, t0, acc);
}

/* ---- blocks of 256 --------------------------------------------------------------------------------------- */

/* Scales (or minimums) of scale j of the rows of a slice. */
KT_INLINE vi scale_of(const struct kt_format *f, const uint8_t *p, int j, bool min)
{
    vi s = v_scales(p + KT_ROWS * j);
    return !f->packed ? s : v_and(min ? v_shr32(s, 4) : s, v_shr32(v_bytes(255), 28));
}

/* Where the scales (or minimums) of a slice start. */
KT_INLINE const uint8_t *scales_at(const struct kt_format *f, const uint8_t *block, int slice, bool min)
{
    return block + (min && !f->packed ? kt_min_at(f) : kt_scale_at(f)) + slice * KT_LANES;
}

/* sum += over all columns: minimums, or -off * scales, times the sums of the activations. */
KT_INLINE void dot_sums(const struct kt_format *f, int T, int W, const uint8_t *g, int slice, const uint8_t *x,
                        sums sum)
{
    for (int j = 0; j < 8; j++, x += W * KT_RECORD) {
        KT_EACH (r, KT_R) {
            const uint8_t *p = scales_at(f, g, slice + r, f->min);
            vi a = scale_of(f, p, f->sub == 16 ? 2 * j : j, f->min),
               b = f->sub == 16 ? scale_of(f, p, 2 * j + 1, f->min) : a;
            if (!f->min) {
                a = v_neg(v_shl32(a, __builtin_ctz((unsigned)f->off)));
                b = v_neg(v_shl32(b, __builtin_ctz((unsigned)f->off)));
            }
            vi pair = v_pair(a, b);
            KT_EACH (t, T) sum[r][t] = v_madd(sum[r][t], pair, v_bcast(x + 32 * W + 4 * t));
        }
    }
}

KT_INLINE void tile256(const struct kt_format *f, const struct tile *a, int T, int W, int slice, int t0)
{
    const uint8_t *g = a->group, *x = a->x + 4 * t0;
    const int block = kt_block_bytes(f);
    const bool wide = f->max * 127 * f->sub > 32767;
    vf acc[KT_R][KT_TILE];
    KT_EACH (r, KT_R)
        KT_EACH (t, T) acc[r][t] = v_zerof();
    for (uint32_t b = a->k / 256; b > 0; b--, g += block, x += W * KT_A8_256) {
        const uint8_t *hi = g + kt_hi_at(f) + slice * KT_SLICE, *lo = g + kt_lo_at(f) + slice * KT_SLICE, *xj = x;
        const uint8_t *xd = x + 8 * W * KT_RECORD;
        sums sum, msum;
        KT_EACH (r, KT_R)
            KT_EACH (t, T) sum[r][t] = msum[r][t] = v_zero();
        dot_sums(f, T, W, g, slice, x, f->min ? msum : sum);
        for (int j = 0; j < 8; j++, hi += 64 * f->hi, lo += 64 * f->lo, xj += W * KT_RECORD) {
            prefetch(g + j * block / 8, block / 8);
            vi scale[KT_R][2];
            KT_EACH (r, KT_R) {
                const uint8_t *p = scales_at(f, g, slice + r, false);
                KT_EACH (h, 2) scale[r][h] = v_scale(scale_of(f, p, f->sub == 16 ? 2 * j + h : j, false), wide);
            }
            dot32(f, T, W, hi, lo, xj, sum, scale, wide);
        }
        KT_EACH (r, KT_R) {
            const uint8_t *d16 = g + (slice + r) * KT_LANES * 2;
            vf d = v_f16(d16), m = f->min ? v_f16(d16 + 32) : d;
            KT_EACH (t, T) {
                vf da = v_bcastf(xd + 4 * t);
                acc[r][t] = v_fma(v_mul(d, da), v_float(sum[r][t]), acc[r][t]);
                if (f->min) acc[r][t] = v_fnma(v_mul(m, da), v_float(msum[r][t]), acc[r][t]);
            }
        }
    }
    store(a, T, slice, t0, acc);
}

/* ---- floats ---------------------------------------------------------------------------------------------- */

KT_INLINE vf load_f32(const uint8_t *p) { return v_loadf((const float *)(const void *)p); }
KT_INLINE vf load_f16(const uint8_t *p) { return v_f16(p); }
KT_INLINE vf load_bf16(const uint8_t *p) { return v_bf16(p); }

KT_INLINE void tile_float(vf (*load)(const uint8_t *), int bytes, const struct tile *a, int T, int W, int slice, int t0)
{
    const uint8_t *g = a->group + slice * KT_LANES * bytes, *x = a->x + 4 * t0;
    vf acc[KT_R][KT_TILE];
    KT_EACH (r, KT_R)
        KT_EACH (t, T) acc[r][t] = v_zerof();
    for (uint32_t i = 0; i < a->k; i++, g += KT_ROWS * bytes, x += 4 * W) {
        prefetch(g, KT_ROWS * bytes);
        vf w[KT_R];
        KT_EACH (r, KT_R) w[r] = load(g + r * KT_LANES * bytes);
        KT_EACH (t, T) {
            vf xt = v_bcastf(x + 4 * t);
            KT_EACH (r, KT_R) acc[r][t] = v_fma(w[r], xt, acc[r][t]);
        }
    }
    store(a, T, slice, t0, acc);
}

/* ---- one function per type and width of a unit ----------------------------------------------------------- */

/* A unit of W tokens is cut into tiles of T tokens and KT_R slices. */
#define KT_TILES_(W, TILE, ...)                                                                                        \
    for (int t = 0; t < W; t += KT_TILE)                                                                               \
        for (int s = 0; s < KT_SLICES; s += KT_R) TILE(__VA_ARGS__, a, W < KT_TILE ? W : KT_TILE, W, s, t)
#define KT_UNITS_(name, TILE, ...)                                                                                     \
    static void name##_16(const struct tile *a) { KT_TILES_(16, TILE, __VA_ARGS__); }                                  \
    static void name##_8(const struct tile *a) { KT_TILES_(8, TILE, __VA_ARGS__); }                                    \
    static void name##_4(const struct tile *a) { KT_TILES_(4, TILE, __VA_ARGS__); }                                    \
    static void name##_2(const struct tile *a) { KT_TILES_(2, TILE, __VA_ARGS__); }                                    \
    static void name##_1(const struct tile *a) { KT_TILES_(1, TILE, __VA_ARGS__); }                                    \
    static void name##_run(const void *groups, uint32_t n_groups, uint32_t n_rows, uint32_t k, const struct kt_act *x, \
                           uint32_t tok0, uint32_t n_tok, const float *bias, float *y, uint64_t ldy)                   \
    {                                                                                                                  \
        static void (*const unit[])(const struct tile *) = {name##_1, name##_2, name##_4, name##_8, name##_16};        \
        const struct tile first = {groups, NULL, k, n_rows, bias, y, ldy};                                             \
        run_tiles(unit, kt_##name##_group_bytes(k), n_groups, x, tok0, n_tok, &first);                                 \
    }

/* Tokens are taken in parts whose activations stay in the second-level cache while they meet all groups; a group stays
 * in the first-level cache while it meets a part's units. */
static void run_tiles(void (*const *unit)(const struct tile *), uint64_t group_bytes, uint32_t n_groups,
                      const struct kt_act *x, uint32_t tok0, uint32_t n_tok, const struct tile *first)
{
    uint64_t token_bytes = kt_token_bytes(x->dtype, x->k);
    uint32_t part = (uint32_t)((384u << 10) / token_bytes) / KT_UNIT * KT_UNIT;
    if (part < KT_UNIT) part = KT_UNIT;
    for (uint32_t p = 0; p < n_tok; p += part) {
        uint32_t n = n_tok - p < part ? n_tok - p : part;
        for (uint32_t g = 0; g < n_groups; g++) {
            struct tile a = *first;
            a.group += g * group_bytes;
            a.rows = first->rows - KT_ROWS * g < KT_ROWS ? first->rows - KT_ROWS * g : KT_ROWS;
            if (a.bias) a.bias += KT_ROWS * g;
            for (uint32_t t = p, w; t < p + n; t += w) {
                w = kt_unit_width(tok0 + t, x->n_tok);
                a.x = (const uint8_t *)x->data + (tok0 + t) * token_bytes;
                a.y = first->y + t * first->ldy + KT_ROWS * g;
                unit[__builtin_ctz(w)](&a);
            }
        }
    }
}

#define KT_BLOCK32_(name, ...) KT_UNITS_(name, tile32, &kt_##name)
#define KT_BLOCK256_(name, ...) KT_UNITS_(name, tile256, &kt_##name)
#define KT_FLOAT_(name, DTYPE, bytes) KT_UNITS_(name, tile_float, load_##name, bytes)
KT_BLOCK32_TYPES(KT_BLOCK32_)
KT_BLOCK256_TYPES(KT_BLOCK256_)
KT_FLOAT_TYPES(KT_FLOAT_)

#endif
