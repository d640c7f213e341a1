/* kopi/math.h - the scalar functions of kopi/op.h in C: the definition that every exact kernel has to match bit for bit.
 * Optional for plugins. Compile with -ffp-contract=off: only what is written as fma is fused. [any] */
#ifndef KOPI_MATH_H
#define KOPI_MATH_H

#include <kopi/abi.h>

KOPI_BEGIN_DECLS

/* Coefficients as macros, so that vector code reads the same ones. */
#define KOPI_EXP_HI 88.0f
#define KOPI_EXP_LO (-87.0f)
#define KOPI_EXP_LOG2E 0x1.715476p+0f
#define KOPI_EXP_MAGIC 0x1.8p+23f       /* adding it rounds to an integer, in the low mantissa bits */
#define KOPI_EXP_LN2_HI 0x1.62ep-1f     /* 11 bits: n * LN2_HI is exact */
#define KOPI_EXP_LN2_LO 0x1.0bfbe8p-15f
#define KOPI_EXP_C2 0x1p-1f
#define KOPI_EXP_C3 0x1.55548ep-3f
#define KOPI_EXP_C4 0x1.55545ep-5f
#define KOPI_EXP_C5 0x1.123bdep-7f
#define KOPI_EXP_C6 0x1.6db4e8p-10f
#define KOPI_TANH_SMALL 0.625f
#define KOPI_TANH_MAX 10.0f
#define KOPI_TANH_C0 (-0x1.555534p-2f)
#define KOPI_TANH_C1 0x1.110768p-3f
#define KOPI_TANH_C2 (-0x1.b84448p-5f)
#define KOPI_TANH_C3 0x1.5256d4p-6f
#define KOPI_TANH_C4 (-0x1.76ac0ep-8f)
#define KOPI_GELU_2C (2.0f * 0x1.988454p-1f) /* 2 sqrt(2 / pi) */
#define KOPI_GELU_A 0x1.6e4e26p-5f           /* 0.044715 */

static inline float kopi_bits_f32(uint32_t u)
{
    float f;
    __builtin_memcpy(&f, &u, sizeof f);
    return f;
}
static inline uint32_t kopi_f32_bits(float f)
{
    uint32_t u;
    __builtin_memcpy(&u, &f, sizeof u);
    return u;
}

/* e^x; above 88 the value at 88 (3e38 is not reached), below -87 +0, NaN stays NaN. Relative error under 1.1e-7. */
static inline float kopi_exp(float x)
{
    if (x > KOPI_EXP_HI) x = KOPI_EXP_HI;
    if (x < KOPI_EXP_LO) return 0.0f;
    float z = __builtin_fmaf(x, KOPI_EXP_LOG2E, KOPI_EXP_MAGIC);
    float n = z - KOPI_EXP_MAGIC;
    float r = __builtin_fmaf(n, -KOPI_EXP_LN2_HI, x);
    r = __builtin_fmaf(n, -KOPI_EXP_LN2_LO, r);
    float p = KOPI_EXP_C6;
    p = __builtin_fmaf(p, r, KOPI_EXP_C5);
    p = __builtin_fmaf(p, r, KOPI_EXP_C4);
    p = __builtin_fmaf(p, r, KOPI_EXP_C3);
    p = __builtin_fmaf(p, r, KOPI_EXP_C2);
    p = __builtin_fmaf(p, r, 1.0f);
    p = __builtin_fmaf(p, r, 1.0f);
    return p * kopi_bits_f32((kopi_f32_bits(z) << 23) + 0x3f800000u); /* times 2^n */
}

/* Absolute error under 1.2e-7. */
static inline float kopi_tanh(float x)
{
    float a = kopi_bits_f32(kopi_f32_bits(x) & 0x7fffffffu);
    float t;
    if (a < KOPI_TANH_SMALL) {
        float s = a * a;
        float p = KOPI_TANH_C4;
        p = __builtin_fmaf(p, s, KOPI_TANH_C3);
        p = __builtin_fmaf(p, s, KOPI_TANH_C2);
        p = __builtin_fmaf(p, s, KOPI_TANH_C1);
        p = __builtin_fmaf(p, s, KOPI_TANH_C0);
        t = __builtin_fmaf(a * s, p, a);
    } else {
        if (a > KOPI_TANH_MAX) a = KOPI_TANH_MAX;
        float e = kopi_exp(-2.0f * a);
        t = (1.0f - e) / (1.0f + e);
    }
    return kopi_bits_f32((kopi_f32_bits(t) & 0x7fffffffu) | (kopi_f32_bits(x) & 0x80000000u));
}

/* x * sigmoid(x) (Elfwing et al. 2017). */
static inline float kopi_silu(float x) { return x / (1.0f + kopi_exp(-x)); }

/* GELU in its tanh form (Hendrycks and Gimpel 2016), written as x * sigmoid(2 u): 0.5 (1 + tanh u) = 1 / (1 + e^(-2 u)). */
static inline float kopi_gelu_tanh(float x)
{
    float u2 = (KOPI_GELU_2C * x) * __builtin_fmaf(KOPI_GELU_A * x, x, 1.0f);
    return x / (1.0f + kopi_exp(-u2));
}

/* IEEE binary16 to binary32, exact; a NaN keeps its payload bits and becomes quiet, as the hardware instruction does. */
static inline float kopi_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) /* infinity, NaN */
        return kopi_bits_f32(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u));
    if (rest >= 0x400u) return kopi_bits_f32(sign | ((rest << 13) + 0x38000000u));
    float f = (float)rest * 0x1p-24f; /* subnormal or zero */
    return kopi_bits_f32(sign | kopi_f32_bits(f));
}

/* binary32 to binary16, to nearest even; too large becomes infinity; NaN becomes a quiet NaN with the top payload bits. */
static inline uint16_t kopi_f32_to_f16(float f)
{
    uint32_t u = kopi_f32_bits(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    if (a > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (a >> 13 & 0x3ffu));
    if (a >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);              /* rounds to 65536 or more */
    if (a < 0x38800000u) {                                                /* subnormal in binary16: 0.5 + |f| rounds at 2^-24 */
        uint32_t r = kopi_f32_bits(kopi_bits_f32(a) + 0.5f) - 0x3f000000u;
        return (uint16_t)(sign | r);
    }
    return (uint16_t)(sign | ((a + 0xfffu + (a >> 13 & 1u) - 0x38000000u) >> 13));
}

static inline float kopi_bf16_to_f32(uint16_t b) { return kopi_bits_f32((uint32_t)b << 16); }

KOPI_END_DECLS

#endif
