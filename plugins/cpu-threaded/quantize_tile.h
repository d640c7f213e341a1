/* plugins/cpu-threaded/quantize_tile.h - QUANTIZE into the layout of format.h. Plain loops of constant length that the
 * compiler turns into the vectors of the level; included once per level (linear_*.c). */
#ifndef KT_QUANTIZE_TILE_H
#define KT_QUANTIZE_TILE_H

#include "format.h"

#include <kopi/math.h>

#include <string.h>

/* The integers of a block of n values; the result is its scale. */
KT_INLINE float quantize_block(const float *restrict x, int n, int8_t *restrict q)
{
    int32_t a = 0; /* the largest |x| as bits: without the sign these order like the numbers, NaN above infinity */
    for (int i = 0; i < n; i++) {
        int32_t u = (int32_t)(kopi_f32_bits(x[i]) & 0x7fffffffu);
        a = u > a ? u : a;
    }
    float max = kopi_bits_f32((uint32_t)a);
    if (a >= 0x7f800000 || max < 0x1p-100f) {
        memset(q, 0, (size_t)n);
        return a >= 0x7f800000 ? kopi_bits_f32(0x7fc00000u) : 0.0f;
    }
    float r = 127.0f / max;
    for (int i = 0; i < n; i++) { /* adding 1.5 * 2^23 rounds to an integer, ties to even, in the low bits */
        float z = x[i] * r + 0x1.8p23f;
        q[i] = (int8_t)(uint8_t)kopi_f32_bits(z);
    }
    return max / 127.0f;
}

KT_INLINE int32_t sum_of(const int8_t *q, int n)
{
    int32_t s = 0;
    for (int i = 0; i < n; i++) s += q[i];
    return s;
}

/* 32 columns of token t of w. */
KT_INLINE void put_record(uint8_t *record, const int8_t *q, int32_t sum, uint32_t w, uint32_t t)
{
    KT_EACH (c, 8) memcpy(record + 4 * (c * w + t), q + 4 * c, 4);
    memcpy(record + 4 * (8 * w + t), &sum, 4);
}

static void put_a8_32(const float *x, uint32_t block, uint8_t *p, uint32_t w, uint32_t t)
{
    int8_t q[32];
    float d = quantize_block(x + 32 * block, 32, q);
    int32_t sum = sum_of(q, 32);
    float ds = d * (float)sum;
    p += (uint64_t)block * w * KT_A8_32;
    put_record(p, q, -128 * sum, w, t);
    memcpy(p + w * KT_RECORD + 4 * t, &d, 4);
    memcpy(p + w * KT_RECORD + 4 * (w + t), &ds, 4);
}

static void put_a8_256(const float *x, uint32_t block, uint8_t *p, uint32_t w, uint32_t t)
{
    int8_t q[256];
    float d = quantize_block(x + 256 * block, 256, q);
    p += (uint64_t)block * w * KT_A8_256;
    for (int j = 0; j < 8; j++, p += w * KT_RECORD) {
        uint32_t first = (uint32_t)sum_of(q + 32 * j, 16), second = (uint32_t)sum_of(q + 32 * j + 16, 16);
        put_record(p, q + 32 * j, (int32_t)((first & 0xffffu) | second << 16), w, t);
    }
    memcpy(p + 4 * t, &d, 4);
}

static void put_f32(const float *x, uint32_t i, uint8_t *p, uint32_t w, uint32_t t)
{
    memcpy(p + 4 * ((uint64_t)i * w + t), x + i, 4);
}

/* Block by block over the tokens of a unit, so that what is written stays near. */
#define KT_QUANTIZE_(name, len)                                                                                        \
    static void quantize_##name(const float *x, uint64_t ldx, uint32_t tok0, uint32_t n_tok, const struct kt_act *act) \
    {                                                                                                                  \
        uint64_t token_bytes = kt_token_bytes(act->dtype, act->k);                                                     \
        for (uint32_t t0 = tok0, w; t0 < tok0 + n_tok; t0 += w) {                                                      \
            uint8_t *p = (uint8_t *)act->data + t0 * token_bytes;                                                      \
            w = kt_unit_width(t0, act->n_tok);                                                                         \
            for (uint32_t b = 0; b < act->k / len; b++)                                                                \
                for (uint32_t t = 0; t < w; t++) put_##name(x + (t0 - tok0 + t) * ldx, b, p, w, t);                    \
        }                                                                                                              \
    }
KT_QUANTIZE_(a8_32, 32)
KT_QUANTIZE_(a8_256, 256)
KT_QUANTIZE_(f32, 1)

#endif
