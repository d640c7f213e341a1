/* plugins/cpu-threaded/linear_run.h - from the tiles of linear_tile.h to the functions of a level: one per type and
 * width of a unit, and the order in which groups meet tokens. Included once per level (linear_*.c). */
#ifndef KT_LINEAR_RUN_H
#define KT_LINEAR_RUN_H

#include "linear_tile.h"

/* ---- one function per type and width of a unit ------------------------------------------------------------------- */

/* What a type has for units of 1, 2, 4, 8 and KT_UNIT tokens. */
struct widths {
    void (*unit[5])(const struct tile *);
    void (*bytes[2])(const struct tile *);                          /* of 8 and KT_UNIT tokens, with unpacked codes */
    void (*unpack)(const uint8_t *group, uint32_t k, uint8_t *out); /* NULL: there is nothing to unpack */
};

static uint32_t smaller(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

/* Columns [k0, k0 + a.k) of a group (or a pair, if unpacked) for tokens [t, end) of the run. */
static void run_units(const struct widths *f, struct tile a, uint32_t k0, const struct kt_act *x, uint32_t t,
                      uint32_t end)
{
    uint64_t token_bytes = kt_token_bytes(x->dtype, x->k), skip = kt_token_bytes(x->dtype, k0);
    for (uint32_t w; t < end; t += w, a.y += w * a.ldy) {
        w = kt_unit_width(t, x->n_tok);
        a.x = (const uint8_t *)x->data + t * token_bytes + w * skip;
        void (*unit)(const struct tile *) = f->unit[w == KT_UNIT ? 4 : __builtin_ctz(w)];
        if (a.bytes && w >= 8) {
            f->bytes[w > 8](&a);
            continue;
        }
        unit(&a);
        if (!a.bytes || !KT_PAIR || a.rows <= KT_ROWS) continue;
        struct tile b = a;
        b.group += a.pair;
        b.rows -= KT_ROWS;
        b.y += KT_ROWS;
        if (b.bias) b.bias += KT_ROWS;
        unit(&b);
    }
}

/* Many tokens: KT_COLUMNS at a time, so that the activations stay in the second-level cache while they meet all groups;
 * their codes are unpacked once. */
static void run_many(const struct widths *f, uint64_t group_bytes, uint32_t n_groups, const struct kt_act *x,
                     uint32_t tok0, uint32_t n_tok, const struct tile *all)
{
    enum { GROUPS = KT_PAIR ? 2 : 1 };
    uint8_t bytes[GROUPS * KT_COLUMNS * KT_ROWS] __attribute__((aligned(64)));
    for (uint32_t k0 = 0; k0 < all->k; k0 += KT_COLUMNS)
        for (uint32_t g = 0, n; g < n_groups; g += n) {
            struct tile a = *all;
            n = !f->unpack || n_groups - g < GROUPS ? 1 : GROUPS;
            a.k = smaller(all->k - k0, KT_COLUMNS);
            a.rows = smaller(all->rows - KT_ROWS * g, KT_ROWS * n);
            a.group += g * group_bytes + group_bytes * k0 / all->k;
            a.pair = n > 1 ? group_bytes : 0;
            a.bytes = f->unpack ? bytes : NULL;
            a.more = k0 > 0;
            a.bias = a.bias && k0 + a.k == all->k ? a.bias + KT_ROWS * g : NULL;
            a.y += KT_ROWS * g;
            for (uint32_t i = 0; i < n && f->unpack; i++)
                f->unpack(a.group + i * group_bytes, a.k, bytes + i * KT_COLUMNS * KT_ROWS);
            run_units(f, a, k0, x, tok0, tok0 + n_tok);
        }
}

static void run_all(const struct widths *f, uint64_t group_bytes, uint32_t n_groups, const struct kt_act *x,
                    uint32_t tok0, uint32_t n_tok, const struct tile *all)
{
    enum { PART = 50 * KT_UNIT }; /* tokens whose KT_COLUMNS columns stay in the second-level cache */
    struct tile a = *all;
    if (n_tok >= 2 * KT_UNIT) {
        for (uint32_t p = 0; p < n_tok; p += PART, a.y += PART * a.ldy)
            run_many(f, group_bytes, n_groups, x, tok0 + p, smaller(n_tok - p, PART), &a);
        return;
    }
    const uint64_t token_bytes = kt_token_bytes(x->dtype, x->k);
    for (uint32_t g = 0; g < n_groups; g++, a.group += group_bytes) {
        a.rows = smaller(all->rows - KT_ROWS * g, KT_ROWS);
        a.bias = all->bias ? all->bias + KT_ROWS * g : NULL;
        a.y = all->y + KT_ROWS * g;
        for (uint32_t t = tok0, w; t < tok0 + n_tok; t += w, a.y += w * a.ldy) {
            w = kt_unit_width(t, x->n_tok);
            a.x = (const uint8_t *)x->data + t * token_bytes;
            f->unit[w == KT_UNIT ? 4 : __builtin_ctz(w)](&a);
        }
    }
}

/* A unit of W tokens is cut into tiles of KT_T_(W) tokens and KT_R slices. */
#define KT_T_(W, most) (W % (most) == 0 ? (most) : W < (most) ? W : 4)
#define KT_UNIT_FN_(name, W, most, slices, TILE, ...)                                                                  \
    static void name##_##W(const struct tile *a)                                                                       \
    {                                                                                                                  \
        for (int t = 0; t < W; t += KT_T_(W, most))                                                                    \
            for (int s = 0; s < KT_SLICES; s += slices) TILE(__VA_ARGS__, a, KT_T_(W, most), W, s, t);                 \
    }
#define KT_UNITS_(name, TILE, ...)                                                                                     \
    KT_UNIT_FN_(name, 1, KT_TILE, KT_R, TILE, __VA_ARGS__)                                                             \
    KT_UNIT_FN_(name, 2, KT_TILE, KT_R, TILE, __VA_ARGS__)                                                             \
    KT_UNIT_FN_(name, 4, KT_TILE, KT_R, TILE, __VA_ARGS__)                                                             \
    KT_UNIT_FN_(name, 8, KT_TILE, KT_R, TILE, __VA_ARGS__)                                                             \
    KT_UNIT_FN_(name, 12, KT_TILE, KT_R, TILE, __VA_ARGS__)
#define KT_RUN_(name, ...)                                                                                             \
    static void name##_run(const void *groups, uint32_t n_groups, uint32_t n_rows, uint32_t k, const struct kt_act *x, \
                           uint32_t tok0, uint32_t n_tok, const float *bias, float *y, uint64_t ldy)                   \
    {                                                                                                                  \
        static const struct widths f = {{name##_1, name##_2, name##_4, name##_8, name##_12}, __VA_ARGS__};             \
        const struct tile all = {groups, NULL, NULL, 0, k, n_rows, false, bias, y, ldy};                               \
        run_all(&f, kt_##name##_group_bytes(k), n_groups, x, tok0, n_tok, &all);                                       \
    }
#define KT_QUANTS_(name, TILE)                                                                                         \
    KT_UNITS_(name, TILE, &kt_##name, false)                                                                           \
    KT_UNIT_FN_(name##_bytes, 8, KT_BYTES_TILE, n_slices(true), TILE, &kt_##name, true)                                \
    KT_UNIT_FN_(name##_bytes, 12, KT_BYTES_TILE, n_slices(true), TILE, &kt_##name, true)                               \
    static void name##_unpack(const uint8_t *group, uint32_t k, uint8_t *out) { unpack(&kt_##name, group, k, out); }   \
    KT_RUN_(name, {name##_bytes_8, name##_bytes_12}, name##_unpack)
#define KT_BLOCK32_(name, ...) KT_QUANTS_(name, tile32)
#define KT_BLOCK256_(name, ...) KT_QUANTS_(name, tile256)
#define KT_FLOAT_(name, DTYPE, bytes)                                                                                  \
    KT_UNITS_(name, tile_float, load_##name, bytes)                                                                    \
    KT_RUN_(name, {NULL, NULL}, NULL)
KT_BLOCK32_TYPES(KT_BLOCK32_)
KT_BLOCK256_TYPES(KT_BLOCK256_)
KT_FLOAT_TYPES(KT_FLOAT_)

#endif
