/* plugins/cpu-threaded/simd_avx512vnni.h - what linear_tile.h is written in, for AVX-512 F, BW, DQ, VL and VNNI.
 * simd_c.h says what each function has to do. */
#ifndef KT_SIMD_H
#define KT_SIMD_H

#include "format.h"

#include <immintrin.h>

#define KT_LEVEL avx512vnni
enum { KT_SLICE = 64, KT_SLICES = 1, KT_TILE = 12, KT_DOT32 = 1, KT_SIGNED8 = 0 };

typedef __m512i vi;
typedef __m512 vf;
typedef uint16_t v_u16 __attribute__((vector_size(64)));

KT_INLINE vi v_load(const uint8_t *p) { return _mm512_loadu_si512(p); }
KT_INLINE vi v_bcast(const uint8_t *p)
{
    int32_t x;
    __builtin_memcpy(&x, p, 4);
    return _mm512_set1_epi32(x);
}
KT_INLINE vi v_zero(void) { return _mm512_setzero_si512(); }
KT_INLINE vi v_bytes(int b) { return _mm512_set1_epi8((char)b); }
KT_INLINE vi v_and(vi a, vi b) { return _mm512_and_si512(a, b); }
KT_INLINE vi v_insert(vi w, vi h, vi mask) { return _mm512_ternarylogic_epi32(w, h, mask, 0xf8); }
KT_INLINE vi v_shl16(vi v, int n) { return (vi)((v_u16)v << (uint16_t)n); }
KT_INLINE vi v_shr16(vi v, int n) { return (vi)((v_u16)v >> (uint16_t)n); }
KT_INLINE vi v_lookup(const uint8_t *table, vi v)
{
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)table)), v);
}

KT_INLINE vi v_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
KT_INLINE vi v_shl32(vi v, int n) { return _mm512_sll_epi32(v, _mm_cvtsi32_si128(n)); }
KT_INLINE vi v_sar32(vi v, int n) { return _mm512_sra_epi32(v, _mm_cvtsi32_si128(n)); } /* with the sign */
KT_INLINE vi v_neg(vi v) { return _mm512_sub_epi32(_mm512_setzero_si512(), v); }

KT_INLINE int v_dot_steps(int max) { return (void)max, 8; }
KT_INLINE vi v_dot(vi d, vi w, vi x) { return _mm512_dpbusd_epi32(d, w, x); }
KT_INLINE vi v_dot8(vi sum, vi w, vi x) { return _mm512_dpbusd_epi32(sum, w, x); }

KT_INLINE vi v_shuffle(vi v, __m128i bytes) { return _mm512_shuffle_epi8(v, _mm512_broadcast_i32x4(bytes)); }
/* A dot product that fits int16 is multiplied as it is: its high half meets 0. Else its low byte meets the scale and
 * the rest 256 times the scale. */
KT_INLINE vi v_scale(vi s, bool wide)
{
    if (!wide) return _mm512_and_si512(s, _mm512_set1_epi32(0xffff));
    return v_shuffle(s, _mm_setr_epi8(0, 1, -1, 0, 4, 5, -1, 4, 8, 9, -1, 8, 12, 13, -1, 12));
}
KT_INLINE vi v_flush(vi sum, vi d, vi scale, bool wide)
{
    if (wide) d = v_shuffle(d, _mm_setr_epi8(0, -1, 1, 2, 4, -1, 5, 6, 8, -1, 9, 10, 12, -1, 13, 14));
    return _mm512_dpwssd_epi32(sum, d, scale);
}
KT_INLINE vi v_flush1(vi sum, vi d) { return _mm512_add_epi32(sum, d); }

KT_INLINE vi v_scales(const uint8_t *p)
{
    return _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
}
KT_INLINE vi v_shr32(vi v, int n) { return _mm512_srl_epi32(v, _mm_cvtsi32_si128(n)); }
KT_INLINE vi v_pair(vi lo, vi hi) { return _mm512_mask_blend_epi16(0xaaaaaaaa, lo, _mm512_slli_epi32(hi, 16)); }
KT_INLINE vi v_madd(vi sum, vi a, vi b) { return _mm512_dpwssd_epi32(sum, a, b); }

KT_INLINE vf v_zerof(void) { return _mm512_setzero_ps(); }
KT_INLINE vf v_loadf(const float *p) { return _mm512_loadu_ps(p); }
KT_INLINE void v_storef(float *p, vf v) { _mm512_storeu_ps(p, v); }
KT_INLINE vf v_bcastf(const uint8_t *p) { return _mm512_castsi512_ps(v_bcast(p)); }
KT_INLINE vf v_float(vi v) { return _mm512_cvtepi32_ps(v); }
KT_INLINE vf v_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
KT_INLINE vf v_addf(vf a, vf b) { return _mm512_add_ps(a, b); }
KT_INLINE vf v_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
KT_INLINE vf v_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
KT_INLINE vf v_f16(const uint8_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p)); }
KT_INLINE vf v_bf16(const uint8_t *p)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)p)), 16));
}

#endif
