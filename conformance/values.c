#include "values.h"

#include <kopi/math.h>
#include <kopi/op.h>
#include <string.h>

uint64_t cf_next(struct cf_random *r) /* splitmix64 (Steele, Lea and Flood 2014) */
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

uint32_t cf_below(struct cf_random *r, uint32_t n) { return (uint32_t)((cf_next(r) >> 32) * n >> 32); }
uint32_t cf_pick(struct cf_random *r, const uint32_t *list, uint32_t n) { return list[cf_below(r, n)]; }

float cf_normal(struct cf_random *r) /* sum of uniform numbers: enough of a bell for tests, and exactly reproducible */
{
    float s = 0;
    for (int i = 0; i < 12; i++) s += (float)(cf_next(r) >> 40) * 0x1p-24f;
    return s - 6.0f;
}

const char *cf_values_name(enum cf_values v)
{
    static const char *const names[CF_N_VALUES] = {"mild", "wide", "edge"};
    return names[v];
}

static float power_of_two(int e) { return kopi_bits_f32((uint32_t)(e + 127) << 23); }

static float edge(struct cf_random *r)
{
    static const uint32_t special[] = {0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x00800000,
                                       0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001,
                                       0x3f800000, 0xbf800000, 0x0d800000, 0x0d7fffff};
    return kopi_bits_f32(special[cf_below(r, sizeof special / sizeof *special)]);
}

void cf_floats(struct cf_random *r, enum cf_values v, float *x, size_t n)
{
    uint32_t rare = 1 + cf_below(r, 200); /* so that some rows stay free of special values */
    for (size_t i = 0; i < n; i++) {
        x[i] = cf_normal(r);
        if (v == CF_WIDE) x[i] = x[i] * power_of_two((int)cf_below(r, 61) - 40);
        if (v == CF_EDGE && cf_below(r, rare) == 0) x[i] = edge(r);
    }
    if (v == CF_EDGE && n && cf_below(r, 2)) x[cf_below(r, (uint32_t)n)] = kopi_bits_f32(0x7fc00000u);
}

static const struct cf_weight_type types[] = {
    {KOPI_DTYPE_F32, 1, 4, "f32", {-1, -1}},        {KOPI_DTYPE_F16, 1, 2, "f16", {0, -1}},
    {KOPI_DTYPE_BF16, 1, 2, "bf16", {-1, -1}},      {KOPI_DTYPE_Q4_0, 32, 18, "q4_0", {0, -1}},
    {KOPI_DTYPE_Q4_1, 32, 20, "q4_1", {0, 2}},      {KOPI_DTYPE_Q5_0, 32, 22, "q5_0", {0, -1}},
    {KOPI_DTYPE_Q5_1, 32, 24, "q5_1", {0, 2}},      {KOPI_DTYPE_Q8_0, 32, 34, "q8_0", {0, -1}},
    {KOPI_DTYPE_IQ4_NL, 32, 18, "iq4_nl", {0, -1}}, {KOPI_DTYPE_Q2_K, 256, 84, "q2_k", {80, 82}},
    {KOPI_DTYPE_Q3_K, 256, 110, "q3_k", {108, -1}}, {KOPI_DTYPE_Q4_K, 256, 144, "q4_k", {0, 2}},
    {KOPI_DTYPE_Q5_K, 256, 176, "q5_k", {0, 2}},    {KOPI_DTYPE_Q6_K, 256, 210, "q6_k", {208, -1}},
};

const struct cf_weight_type *cf_weight_types(uint32_t *n)
{
    *n = sizeof types / sizeof *types;
    return types;
}

const struct cf_weight_type *cf_weight_type(uint32_t dtype)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (types[i].dtype == dtype) return &types[i];
    return NULL;
}

const char *cf_type_name(uint32_t dtype)
{
    const struct cf_weight_type *w = cf_weight_type(dtype);
    return w ? w->name : dtype == KOPI_DTYPE_A8_32 ? "a8_32" : dtype == KOPI_DTYPE_A8_256 ? "a8_256" : "?";
}

/* EDGE: now and then any 16 bits, so also infinities and NaNs. */
static uint16_t half(struct cf_random *r, enum cf_values v)
{
    if (v == CF_EDGE && cf_below(r, 40) == 0) return (uint16_t)cf_next(r);
    float f = cf_normal(r) * (v == CF_WIDE ? power_of_two((int)cf_below(r, 25) - 20) : 0x1p-6f);
    return kopi_f32_to_f16(f);
}

void cf_blocks(struct cf_random *r, enum cf_values v, const struct cf_weight_type *t, void *blocks, size_t n_blocks)
{
    for (size_t b = 0; b < n_blocks; b++) {
        uint8_t *p = (uint8_t *)blocks + b * t->bytes;
        for (uint32_t i = 0; i < t->bytes; i++) p[i] = (uint8_t)cf_next(r);
        for (int i = 0; i < 2 && t->f16_at[i] >= 0; i++) {
            uint16_t h = half(r, v);
            memcpy(p + t->f16_at[i], &h, sizeof h);
        }
        if (t->dtype != KOPI_DTYPE_F32 && t->dtype != KOPI_DTYPE_BF16) continue;
        float f;
        cf_floats(r, v, &f, 1);
        uint16_t top = (uint16_t)(kopi_f32_bits(f) >> 16);
        memcpy(p, t->dtype == KOPI_DTYPE_F32 ? (void *)&f : (void *)&top, t->bytes);
    }
}

/* ---- quantized activations --------------------------------------------------------------------------------------- */

/* Scale and integers of one block. */
static float quantize_block(const float *x, int8_t *q, size_t n)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t u = kopi_f32_bits(x[i]) & 0x7fffffffu;
        if (u > top) top = u;
    }
    float a = kopi_bits_f32(top);
    memset(q, 0, n);
    if (top >= 0x7f800000u) return kopi_bits_f32(0x7fc00000u);
    if (a < 0x1p-100f) return 0.0f;
    float r = 127.0f / a;
    for (size_t i = 0; i < n; i++) {
        float shifted = x[i] * r + 0x1.8p+23f; /* rounds to the nearest integer, ties to even */
        q[i] = (int8_t)(shifted - 0x1.8p+23f);
    }
    return a / 127.0f;
}

void cf_quantize(uint32_t dtype, const float *x, void *blocks, size_t n)
{
    kopi_a8_32 *b32 = blocks;
    kopi_a8_256 *b256 = blocks;
    for (size_t b = 0; dtype == KOPI_DTYPE_A8_32 && b < n / 32; b++) {
        b32[b].d = quantize_block(x + b * 32, b32[b].q, 32);
        b32[b].sum = 0;
        for (int i = 0; i < 32; i++) b32[b].sum += b32[b].q[i];
    }
    for (size_t b = 0; dtype == KOPI_DTYPE_A8_256 && b < n / 256; b++) {
        b256[b].d = quantize_block(x + b * 256, b256[b].q, 256);
        b256[b].reserved = 0;
        for (int j = 0; j < 16; j++) {
            b256[b].sum[j] = 0;
            for (int i = 0; i < 16; i++) b256[b].sum[j] = (int16_t)(b256[b].sum[j] + b256[b].q[j * 16 + i]);
        }
    }
}
