/* tests/simde/immintrin.h - in place of the compiler's: AVX-512 in plain C, by SIMDe, so that the sources of level
 * avx512vnni run on any processor. SIMDE_NO_NATIVE: no instruction but the C compiler's own choice. SIMDE_NO_INLINE:
 * intrinsics that are called; inlined into the unrolled kernels they take minutes to compile.
 *
 * What SIMDe 0.7.4 (Debian 12) lacks is added here, lane by lane, and so is FMA, which it rounds twice. */
#ifndef KT_SIMDE_IMMINTRIN_H
#define KT_SIMDE_IMMINTRIN_H

#define SIMDE_NO_NATIVE
#define SIMDE_NO_INLINE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>

#include <kopi/math.h>

typedef simde__mmask16 __mmask16;

#define KT_LANES_ static __attribute__((noinline, unused))
/* The bodies: lane i, of 32 bits, is the value. */
#define KT_EACH_F32_(value)                                                              \
    {                                                                                    \
        simde__m512_private y;                                                           \
        for (int i = 0; i < 16; i++) y.f32[i] = (value);                                 \
        return simde__m512_from_private(y);                                              \
    }
#define KT_EACH_I32_(value)                                                              \
    {                                                                                    \
        simde__m512i_private y;                                                          \
        for (int i = 0; i < 16; i++) y.i32[i] = (value);                                 \
        return simde__m512i_from_private(y);                                             \
    }

/* ---- rounded once ------------------------------------------------------------------------------------------------ */

#undef _mm512_fmadd_ps
#undef _mm512_fmsub_ps
#undef _mm512_fnmadd_ps
#undef _mm512_fmaddsub_ps
#define _mm512_fmadd_ps kt_fmadd
#define _mm512_fmsub_ps kt_fmsub
#define _mm512_fnmadd_ps kt_fnmadd
#define _mm512_fmaddsub_ps kt_fmaddsub
KT_LANES_ __m512 kt_fmadd(__m512 a, __m512 b, __m512 c) KT_EACH_F32_(__builtin_fmaf(a[i], b[i], c[i]))
KT_LANES_ __m512 kt_fmsub(__m512 a, __m512 b, __m512 c) KT_EACH_F32_(__builtin_fmaf(a[i], b[i], -c[i]))
KT_LANES_ __m512 kt_fnmadd(__m512 a, __m512 b, __m512 c) KT_EACH_F32_(__builtin_fmaf(-a[i], b[i], c[i]))
KT_LANES_ __m512 kt_fmaddsub(__m512 a, __m512 b, __m512 c)
    KT_EACH_F32_(__builtin_fmaf(a[i], b[i], i % 2 ? c[i] : -c[i]))

/* ---- lacking ----------------------------------------------------------------------------------------------------- */

#undef _mm512_moveldup_ps
#undef _mm512_movehdup_ps
#undef _mm512_permute_ps
#define _mm512_moveldup_ps kt_moveldup
#define _mm512_movehdup_ps kt_movehdup
#define _mm512_permute_ps kt_permute
KT_LANES_ __m512 kt_moveldup(__m512 a) KT_EACH_F32_(a[i & ~1])
KT_LANES_ __m512 kt_movehdup(__m512 a) KT_EACH_F32_(a[i | 1])
KT_LANES_ __m512 kt_permute(__m512 a, int from) KT_EACH_F32_(a[(i & ~3) | (from >> 2 * (i & 3) & 3)])

#undef _mm512_maskz_loadu_ps
#undef _mm512_mask_storeu_ps
#define _mm512_maskz_loadu_ps kt_maskz_loadu
#define _mm512_mask_storeu_ps kt_mask_storeu
KT_LANES_ __m512 kt_maskz_loadu(__mmask16 mask, const float *p) KT_EACH_F32_(mask >> i & 1 ? p[i] : 0.0f)
KT_LANES_ void kt_mask_storeu(float *p, __mmask16 mask, __m512 a)
{
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) p[i] = a[i];
}

#undef _mm512_cvtepi32_ps
#undef _mm512_cvtepi8_epi32
#undef _mm512_cvtepu16_epi32
#undef _mm512_cvtph_ps
#undef _mm512_cvtps_ph
#undef _mm512_sra_epi32
#define _mm512_cvtepi32_ps kt_cvtepi32
#define _mm512_cvtepi8_epi32 kt_cvtepi8
#define _mm512_cvtepu16_epi32 kt_cvtepu16
#define _mm512_cvtph_ps kt_cvtph
#define _mm512_cvtps_ph(a, nearest) kt_cvtps(a)
#define _mm512_sra_epi32 kt_sra
KT_LANES_ __m512 kt_cvtepi32(__m512i a) KT_EACH_F32_((float)simde__m512i_to_private(a).i32[i])
KT_LANES_ __m512i kt_cvtepi8(__m128i a) KT_EACH_I32_(simde__m128i_to_private(a).i8[i])
KT_LANES_ __m512i kt_cvtepu16(__m256i a) KT_EACH_I32_(simde__m256i_to_private(a).u16[i])
KT_LANES_ __m512 kt_cvtph(__m256i a) KT_EACH_F32_(kopi_f16_to_f32(simde__m256i_to_private(a).u16[i]))
KT_LANES_ __m256i kt_cvtps(__m512 a)
{
    simde__m256i_private y;
    for (int i = 0; i < 16; i++) y.u16[i] = kopi_f32_to_f16(a[i]);
    return simde__m256i_from_private(y);
}
KT_LANES_ __m512i kt_sra(__m512i a, __m128i n)
    KT_EACH_I32_(simde__m512i_to_private(a).i32[i] >> simde__m128i_to_private(n).i32[0])

#endif
