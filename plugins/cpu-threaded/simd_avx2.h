/* plugins/cpu-threaded/simd_avx2.h - what linear_tile.h is written in, for AVX2, FMA and F16C.
 * simd_c.h says what each function has to do. */
#ifndef KT_SIMD_H
#define KT_SIMD_H

#include "format.h"

#include <immintrin.h>

#define KT_LEVEL avx2
enum { KT_SLICE = 32, KT_SLICES = 2, KT_TILE = 4, KT_DOT32 = 0, KT_SIGNED8 = 1 };

typedef __m256i vi;
typedef __m256 vf;
typedef uint16_t v_u16 __attribute__((vector_size(32)));

KT_INLINE vi v_load(const uint8_t *p) { return _mm256_loadu_si256((const __m256i *)(const void *)p); }
KT_INLINE vi v_bcast(const uint8_t *p)
{
    int32_t x;
    __builtin_memcpy(&x, p, 4);
    return _mm256_set1_epi32(x);
}
KT_INLINE vi v_zero(void) { return _mm256_setzero_si256(); }
KT_INLINE vi v_bytes(int b) { return _mm256_set1_epi8((char)b); }
KT_INLINE vi v_and(vi a, vi b) { return _mm256_and_si256(a, b); }
KT_INLINE vi v_insert(vi w, vi h, vi mask) { return _mm256_or_si256(w, _mm256_and_si256(h, mask)); }
KT_INLINE vi v_shl16(vi v, int n) { return (vi)((v_u16)v << (uint16_t)n); }
KT_INLINE vi v_shr16(vi v, int n) { return (vi)((v_u16)v >> (uint16_t)n); }
KT_INLINE vi v_lookup(const uint8_t *table, vi v)
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)table)), v);
}

KT_INLINE vi v_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
KT_INLINE vi v_shl32(vi v, int n) { return _mm256_sll_epi32(v, _mm_cvtsi32_si128(n)); }
KT_INLINE vi v_sar32(vi v, int n) { return _mm256_sra_epi32(v, _mm_cvtsi32_si128(n)); } /* with the sign */
KT_INLINE vi v_neg(vi v) { return _mm256_sub_epi32(_mm256_setzero_si256(), v); }

/* Sums of pairs stay in int16 for as many steps as can't overflow: 32767 / (2 * 127 * max). */
KT_INLINE int v_dot_steps(int max) { return max <= 15 ? 8 : max <= 31 ? 4 : max <= 63 ? 2 : 0; }
KT_INLINE vi v_dot(vi d, vi w, vi x) { return _mm256_add_epi16(d, _mm256_maddubs_epi16(w, x)); }
/* w in -128..127: |w| as unsigned times x with the sign of w. */
KT_INLINE vi v_dot8(vi sum, vi w, vi x)
{
    vi pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

KT_INLINE vi v_scale(vi s, bool wide) /* twice, for madd */
{
    const __m128i bytes = _mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13);
    return (void)wide, _mm256_shuffle_epi8(s, _mm256_broadcastsi128_si256(bytes));
}
KT_INLINE vi v_flush(vi sum, vi d, vi scale, bool wide)
{
    return (void)wide, _mm256_add_epi32(sum, _mm256_madd_epi16(d, scale));
}
KT_INLINE vi v_flush1(vi sum, vi d) { return _mm256_add_epi32(sum, _mm256_madd_epi16(d, _mm256_set1_epi16(1))); }

KT_INLINE vi v_scales(const uint8_t *p)
{
    int64_t s;
    __builtin_memcpy(&s, p, 8);
    return _mm256_cvtepi8_epi32(_mm_cvtsi64_si128(s));
}
KT_INLINE vi v_shr32(vi v, int n) { return _mm256_srl_epi32(v, _mm_cvtsi32_si128(n)); }
KT_INLINE vi v_pair(vi lo, vi hi) { return _mm256_blend_epi16(lo, _mm256_slli_epi32(hi, 16), 0xaa); }
KT_INLINE vi v_madd(vi sum, vi a, vi b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }

KT_INLINE vf v_zerof(void) { return _mm256_setzero_ps(); }
KT_INLINE vf v_loadf(const float *p) { return _mm256_loadu_ps(p); }
KT_INLINE void v_storef(float *p, vf v) { _mm256_storeu_ps(p, v); }
KT_INLINE vf v_bcastf(const uint8_t *p) { return _mm256_castsi256_ps(v_bcast(p)); }
KT_INLINE vf v_float(vi v) { return _mm256_cvtepi32_ps(v); }
KT_INLINE vf v_mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
KT_INLINE vf v_addf(vf a, vf b) { return _mm256_add_ps(a, b); }
KT_INLINE vf v_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
KT_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
KT_INLINE vf v_f16(const uint8_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)); }
KT_INLINE vf v_bf16(const uint8_t *p)
{
    __m128i h = _mm_loadu_si128((const __m128i *)(const void *)p);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}

#endif
