/* plugins/cpu-threaded/vec.h - sixteen floats as one value, at the level that the file is compiled for: what the row
 * and attention kernels are written in. Every operation is one IEEE operation per lane, so all levels give the same
 * bits.
 *
 * Bits: a mask of lanes, bit i for lane i. Loads and stores are unaligned; the _n forms touch the first n < 16 lanes
 * (missing lanes load as +0). */
#ifndef KT_VEC_H
#define KT_VEC_H

#include <kopi/math.h>

#define VEC static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
#include "vec_avx512.h"
#elif defined(__AVX2__)
#include "vec_avx2.h"
#else
#include "vec_c.h"
#endif

/* ---- functions of kopi/math.h ------------------------------------------------------------------------------------ */

VEC v16 v16_exp(v16 x)
{
    v16 top = v16_min_keep_nan(v16_set(KOPI_EXP_HI), x);
    v16 z = v16_fma(top, v16_set(KOPI_EXP_LOG2E), v16_set(KOPI_EXP_MAGIC));
    v16 n = v16_sub(z, v16_set(KOPI_EXP_MAGIC));
    v16 r = v16_fma(n, v16_set(-KOPI_EXP_LN2_HI), top);
    r = v16_fma(n, v16_set(-KOPI_EXP_LN2_LO), r);
    v16 p = v16_set(KOPI_EXP_C6);
    p = v16_fma(p, r, v16_set(KOPI_EXP_C5));
    p = v16_fma(p, r, v16_set(KOPI_EXP_C4));
    p = v16_fma(p, r, v16_set(KOPI_EXP_C3));
    p = v16_fma(p, r, v16_set(KOPI_EXP_C2));
    p = v16_fma(p, r, v16_set(1.0f));
    p = v16_fma(p, r, v16_set(1.0f));
    return v16_zero_if_less(x, v16_set(KOPI_EXP_LO), v16_mul(p, v16_pow2(z)));
}

VEC v16 v16_tanh(v16 x)
{
    v16 a = v16_abs(x), s = v16_mul(a, a), p = v16_set(KOPI_TANH_C4);
    p = v16_fma(p, s, v16_set(KOPI_TANH_C3));
    p = v16_fma(p, s, v16_set(KOPI_TANH_C2));
    p = v16_fma(p, s, v16_set(KOPI_TANH_C1));
    p = v16_fma(p, s, v16_set(KOPI_TANH_C0));
    v16 small = v16_fma(v16_mul(a, s), p, a);
    v16 e = v16_exp(v16_mul(v16_set(-2.0f), v16_min_keep_nan(v16_set(KOPI_TANH_MAX), a)));
    v16 large = v16_div(v16_sub(v16_set(1.0f), e), v16_add(v16_set(1.0f), e));
    return v16_with_sign(v16_pick_less(a, v16_set(KOPI_TANH_SMALL), small, large), x);
}

VEC v16 v16_silu(v16 x) { return v16_div(x, v16_add(v16_set(1.0f), v16_exp(v16_negate(x)))); }

VEC v16 v16_gelu_tanh(v16 x)
{
    v16 u2 = v16_mul(v16_mul(v16_set(KOPI_GELU_2C), x),
                     v16_fma(v16_mul(v16_set(KOPI_GELU_A), x), x, v16_set(1.0f)));
    return v16_div(x, v16_add(v16_set(1.0f), v16_exp(v16_negate(u2))));
}

#endif
