/* plugins/cpu-threaded/linear_tile.h - LINEAR of a group of 16 rows and a few tokens, for all types, in the functions
 * of a simd_*.h; included once per level (linear_*.c). Everything is inlined into one function per (type, number of
 * tokens), with the format a constant, so that what reads like an interpreter of formats becomes straight code. */
#ifndef KT_LINEAR_TILE_H
#define KT_LINEAR_TILE_H

#include "format.h"

#include <string.h>

enum {
    KT_R = KT_SLICES < 2 ? KT_SLICES : 2, /* slices of a tile: they share the broadcast of the activations */
    KT_MAX_R = 2,
    KT_BYTES_TILE = KT_SLICES < 2 ? KT_TILE / 2 : KT_TILE,
    KT_PAIR = KT_SLICES < 2, /* where a group is one slice, tiles of unpacked codes take two groups */
    KT_LANES = KT_SLICE / 4,
    KT_AHEAD = 2048, /* bytes between what is read and what is prefetched */
    KT_COLUMNS = 512 /* that are unpacked at once: 8 KiB of codes stay in the first-level cache */
};

/* Some columns of one group meet the tokens of one unit. */
struct tile {
    const uint8_t *group, *x; /* x: the unit's activations */
    const uint8_t *bytes;     /* the codes, unpacked: quad after quad, 64 bytes each; KT_COLUMNS of a group */
    uint64_t pair;            /* bytes to the second group of a pair */
    uint32_t k, rows;         /* columns; rows to write */
    bool more;                /* y holds the sums of the columns before */
    const float *bias;        /* NULL or [rows] */
    float *y;                 /* of the unit's first token */
    uint64_t ldy;
};

/* sums[r][t]: slice r, token t of the tile. */
typedef vi sums[KT_MAX_R][KT_TILE];

/* Slices of a tile. */
KT_INLINE int n_slices(bool bytes) { return bytes && KT_PAIR ? 2 : KT_R; }
/* Where what has `size` bytes per slice starts for slice r of a tile. */
KT_INLINE uint64_t slice_at(const struct tile *a, bool bytes, int slice, int r, int size)
{
    return bytes && KT_PAIR ? (uint64_t)r * a->pair : (uint64_t)((slice + r) * size);
}
KT_INLINE int bytes_at(int slice, int r) { return KT_PAIR ? r * KT_COLUMNS * KT_ROWS : (slice + r) * KT_SLICE; }

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

/* Where products are summed as they come, unpacked codes of blocks of 32 all have the offset 128: no shift per token.
 */
KT_INLINE int moved(const struct kt_format *f) { return KT_DOT32 && f->len == 32 && f->off ? 128 - f->off : 0; }

/* All codes of a group, once for many tokens. */
KT_INLINE void unpack(const struct kt_format *f, const uint8_t *g, uint32_t k, uint8_t *out)
{
    for (uint32_t b = k / (uint32_t)f->len; b > 0; b--, g += kt_block_bytes(f)) {
        const uint8_t *hi = g + kt_hi_at(f), *lo = g + kt_lo_at(f);
        for (int j = 0; j < f->len / 32; j++, hi += 64 * f->hi, lo += 64 * f->lo) {
            KT_EACH (c, 8) {
                KT_EACH (s, KT_SLICES) {
                    vi w = codes(f, hi + s * KT_SLICE, lo + s * KT_SLICE, c);
                    if (moved(f)) w = v_add(w, v_bytes(moved(f))); /* no byte overflows */
                    memcpy(out, &w, sizeof w);
                    out += KT_SLICE;
                }
            }
        }
    }
}

/* sum += codes x activations over 32 columns; lo: of the codes unpacked, if `bytes`; scale[r][half]: NULL, or factors
 * of each 16 columns. */
KT_INLINE void dot32(const struct kt_format *f, bool bytes, int T, int W, int slice, const uint8_t *hi,
                     const uint8_t *lo, const uint8_t *x, sums sum, vi (*scale)[2], bool wide)
{
    const int R = n_slices(bytes);
    bool direct = !scale && (KT_DOT32 || f->max == 255);
    int steps = scale && f->sub == 16 ? 4 : 8;
    if (v_dot_steps(f->max) < steps) steps = v_dot_steps(f->max);
    sums d;
    KT_EACH (c, 8) {
        vi w[KT_MAX_R];
        KT_EACH (r, R) {
            int at = (slice + r) * KT_SLICE;
            w[r] = bytes ? v_load(lo + bytes_at(slice, r) + 64 * c) : codes(f, hi + at, lo + at, c);
        }
        KT_EACH (t, T) {
            vi xc = v_bcast(x + 4 * (c * W + t));
            KT_EACH (r, R) {
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

/* The accumulators of a tile: 0, or what the columns before left in y. */
KT_INLINE void start(const struct tile *a, int R, int T, int slice, int t0, vf (*acc)[KT_TILE])
{
    KT_EACH (r, R) {
        uint32_t row = (uint32_t)(slice + r) * KT_LANES, n = a->rows > row ? a->rows - row : 0;
        KT_EACH (t, T) {
            const float *y = a->y + (uint64_t)(t0 + t) * a->ldy + row;
            acc[r][t] = v_zerof();
            if (!a->more || !n) continue;
            float v[KT_LANES] = {0};
            if (n < KT_LANES) memcpy(v, y, n * sizeof *y);
            acc[r][t] = v_loadf(n < KT_LANES ? v : y);
        }
    }
}

/* The accumulators of a tile to y. */
KT_INLINE void store(const struct tile *a, int R, int T, int slice, int t0, vf (*acc)[KT_TILE])
{
    KT_EACH (r, R) {
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

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

/* Tokens t0 .. t0 + T of a unit of W, slices from `slice` on. */
KT_INLINE void tile32(const struct kt_format *f, bool bytes, const struct tile *a, int T, int W, int slice, int t0)
{
    const uint8_t *g = a->group, *lo = bytes ? a->bytes : g + kt_lo_at(f), *x = a->x + 4 * t0;
    const int block = kt_block_bytes(f), next = bytes ? 32 * KT_ROWS : block, R = n_slices(bytes);
    const int off = KT_SIGNED8 && f->max == 255 ? 0 : f->off ? f->off + (bytes ? moved(f) : 0) : 0;
    vf acc[KT_MAX_R][KT_TILE];
    start(a, R, T, slice, t0, acc);
    for (uint32_t b = a->k / 32; b > 0; b--, g += block, lo += next, x += W * KT_A8_32) {
        const uint8_t *xs = x + 32 * W, *xd = xs + 4 * W, *xds = xd + 4 * W;
        if (!bytes) prefetch(g, block);
        sums sum;
        KT_EACH (t, T) { /* the record has -128 times the sum */
            vi s = !off         ? v_zero()
                   : off == 128 ? v_bcast(xs + 4 * t)
                                : v_sar32(v_bcast(xs + 4 * t), 7 - __builtin_ctz((unsigned)off));
            KT_EACH (r, R) sum[r][t] = s;
        }
        dot32(f, bytes, T, W, slice, g + kt_hi_at(f), lo, x, sum, NULL, false);
        KT_EACH (r, R) {
            const uint8_t *d16 = g + slice_at(a, bytes, slice, r, KT_LANES * 2);
            vf d = v_f16(d16), m = f->min ? v_f16(d16 + 32) : d;
            KT_EACH (t, T) {
                acc[r][t] = v_fma(v_mul(d, v_bcastf(xd + 4 * t)), v_float(sum[r][t]), acc[r][t]);
                if (f->min) acc[r][t] = v_fma(m, v_bcastf(xds + 4 * t), acc[r][t]);
            }
        }
    }
    store(a, R, T, slice, t0, acc);
}

/* ---- blocks of 256 ----------------------------------------------------------------------------------------------- */

/* Scales (or minimums) of scale j of the rows of a slice. */
KT_INLINE vi scale_of(const struct kt_format *f, const uint8_t *p, int j, bool min)
{
    vi s = v_scales(p + KT_ROWS * j);
    return !f->packed ? s : v_and(min ? v_shr32(s, 4) : s, v_shr32(v_bytes(255), 28));
}

KT_INLINE int scales_at(const struct kt_format *f, bool min)
{
    return min && !f->packed ? kt_min_at(f) : kt_scale_at(f);
}

/* sum += over all columns: minimums, or -off * scales, times the sums of the activations. */
KT_INLINE void dot_sums(const struct kt_format *f, bool bytes, const struct tile *tile, int T, int W, const uint8_t *g,
                        int slice, const uint8_t *x, sums sum)
{
    for (int j = 0; j < 8; j++, x += W * KT_RECORD) {
        KT_EACH (r, n_slices(bytes)) {
            const uint8_t *p = g + scales_at(f, f->min) + slice_at(tile, bytes, slice, r, KT_LANES);
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

KT_INLINE void tile256(const struct kt_format *f, bool bytes, const struct tile *a, int T, int W, int slice, int t0)
{
    const uint8_t *g = a->group, *x = a->x + 4 * t0, *u = a->bytes;
    const int block = kt_block_bytes(f), next = bytes ? 32 * KT_ROWS : 64 * f->lo, R = n_slices(bytes);
    const bool wide = f->max * 127 * f->sub > 32767;
    vf acc[KT_MAX_R][KT_TILE];
    start(a, R, T, slice, t0, acc);
    for (uint32_t b = a->k / 256; b > 0; b--, g += block, u += 256 * KT_ROWS, x += W * KT_A8_256) {
        const uint8_t *hi = g + kt_hi_at(f), *lo = bytes ? u : g + kt_lo_at(f), *xj = x, *xd = x + 8 * W * KT_RECORD;
        sums sum, msum;
        KT_EACH (r, R)
            KT_EACH (t, T) sum[r][t] = msum[r][t] = v_zero();
        dot_sums(f, bytes, a, T, W, g, slice, x, f->min ? msum : sum);
        for (int j = 0; j < 8; j++, hi += 64 * f->hi, lo += next, xj += W * KT_RECORD) {
            if (!bytes) prefetch(g + j * block / 8, block / 8);
            vi scale[KT_MAX_R][2];
            KT_EACH (r, R) {
                const uint8_t *p = g + scales_at(f, false) + slice_at(a, bytes, slice, r, KT_LANES);
                KT_EACH (h, 2) scale[r][h] = v_scale(scale_of(f, p, f->sub == 16 ? 2 * j + h : j, false), wide);
            }
            dot32(f, bytes, T, W, slice, hi, lo, xj, sum, scale, wide);
        }
        KT_EACH (r, R) {
            const uint8_t *d16 = g + slice_at(a, bytes, slice, r, KT_LANES * 2);
            vf d = v_f16(d16), m = f->min ? v_f16(d16 + 32) : d;
            KT_EACH (t, T) {
                vf da = v_bcastf(xd + 4 * t);
                acc[r][t] = v_fma(v_mul(d, da), v_float(sum[r][t]), acc[r][t]);
                if (f->min) acc[r][t] = v_fnma(v_mul(m, da), v_float(msum[r][t]), acc[r][t]);
            }
        }
    }
    store(a, R, T, slice, t0, acc);
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

KT_INLINE vf load_f32(const uint8_t *p) { return v_loadf((const float *)(const void *)p); }
KT_INLINE vf load_f16(const uint8_t *p) { return v_f16(p); }
KT_INLINE vf load_bf16(const uint8_t *p) { return v_bf16(p); }

KT_INLINE void tile_float(vf (*load)(const uint8_t *), int bytes, const struct tile *a, int T, int W, int slice, int t0)
{
    const uint8_t *g = a->group + slice * KT_LANES * bytes, *x = a->x + 4 * t0;
    vf acc[KT_MAX_R][KT_TILE];
    start(a, KT_R, T, slice, t0, acc);
    for (uint32_t i = 0; i < a->k; i++, g += KT_ROWS * bytes, x += 4 * W) {
        prefetch(g, KT_ROWS * bytes);
        vf w[KT_R];
        KT_EACH (r, KT_R) w[r] = load(g + r * KT_LANES * bytes);
        KT_EACH (t, T) {
            vf xt = v_bcastf(x + 4 * t);
            KT_EACH (r, KT_R) acc[r][t] = v_fma(w[r], xt, acc[r][t]);
        }
    }
    store(a, KT_R, T, slice, t0, acc);
}

#endif
