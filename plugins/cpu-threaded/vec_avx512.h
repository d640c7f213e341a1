/* plugins/cpu-threaded/vec_avx512.h - v16 as one register of AVX-512 F; see vec.h. */
#ifndef KT_VEC_AVX512_H
#define KT_VEC_AVX512_H

#include <immintrin.h>

typedef __m512 v16;

VEC __mmask16 v16_first(unsigned n) { return (__mmask16)((1u << n) - 1); }

VEC v16 v16_set(float x) { return _mm512_set1_ps(x); }
VEC v16 v16_load(const float *p) { return _mm512_loadu_ps(p); }
VEC v16 v16_load_n(const float *p, unsigned n) { return _mm512_maskz_loadu_ps(v16_first(n), p); }
VEC v16 v16_load_f16(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}
VEC void v16_store(float *p, v16 x) { _mm512_storeu_ps(p, x); }
VEC void v16_store_n(float *p, v16 x, unsigned n) { _mm512_mask_storeu_ps(p, v16_first(n), x); }
VEC void v16_store_f16(uint16_t *p, v16 x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

VEC v16 v16_add(v16 x, v16 y) { return _mm512_add_ps(x, y); }
VEC v16 v16_sub(v16 x, v16 y) { return _mm512_sub_ps(x, y); }
VEC v16 v16_mul(v16 x, v16 y) { return _mm512_mul_ps(x, y); }
VEC v16 v16_div(v16 x, v16 y) { return _mm512_div_ps(x, y); }
VEC v16 v16_fma(v16 x, v16 y, v16 z) { return _mm512_fmadd_ps(x, y, z); }
VEC v16 v16_fms(v16 x, v16 y, v16 z) { return _mm512_fmsub_ps(x, y, z); }
VEC v16 v16_firsts(v16 x) { return _mm512_moveldup_ps(x); }
VEC v16 v16_seconds(v16 x) { return _mm512_movehdup_ps(x); }
VEC v16 v16_swapped(v16 x) { return _mm512_permute_ps(x, 0xb1); }
VEC v16 v16_fma_sub_add(v16 x, v16 y, v16 z) { return _mm512_fmaddsub_ps(x, y, z); }

VEC __m512i v16_bits_of(v16 x) { return _mm512_castps_si512(x); }
VEC v16 v16_negate(v16 x)
{
    return _mm512_castsi512_ps(_mm512_xor_si512(v16_bits_of(x), _mm512_set1_epi32(INT32_MIN)));
}
VEC v16 v16_abs(v16 x) { return _mm512_castsi512_ps(_mm512_and_si512(v16_bits_of(x), _mm512_set1_epi32(INT32_MAX))); }
VEC v16 v16_with_sign(v16 x, v16 s) /* the third operand chooses between the other two, bit by bit */
{
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN), v16_bits_of(s), v16_bits_of(x), 0xca));
}

VEC v16 v16_max(v16 x, v16 y) { return _mm512_max_ps(x, y); }
/* The instruction gives its second operand where one is NaN. */
VEC v16 v16_min_keep_nan(v16 limit, v16 x) { return _mm512_min_ps(limit, x); }
VEC v16 v16_zero_if_less(v16 x, v16 y, v16 v)
{
    return _mm512_maskz_mov_ps((__mmask16)~_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), v);
}
VEC v16 v16_pick_less(v16 x, v16 y, v16 v, v16 w)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, y, _CMP_LT_OQ), w, v);
}
VEC v16 v16_pick(uint32_t bits, v16 x, v16 y) { return _mm512_mask_blend_ps((__mmask16)bits, y, x); }
VEC v16 v16_pow2(v16 z)
{
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_slli_epi32(v16_bits_of(z), 23), _mm512_set1_epi32(0x3f800000)));
}

VEC uint32_t v16_nan_bits(v16 x) { return _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q); }
VEC float v16_fold(v16 x, int sum)
{
    __m256 a = _mm512_castps512_ps256(x), b = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(x), 1));
    a = sum ? _mm256_add_ps(a, b) : _mm256_max_ps(a, b);
    __m128 lo = _mm256_castps256_ps128(a), hi = _mm256_extractf128_ps(a, 1);
    lo = sum ? _mm_add_ps(lo, hi) : _mm_max_ps(lo, hi);
    hi = _mm_movehl_ps(lo, lo);
    lo = sum ? _mm_add_ps(lo, hi) : _mm_max_ps(lo, hi);
    hi = _mm_movehdup_ps(lo);
    return _mm_cvtss_f32(sum ? _mm_add_ss(lo, hi) : _mm_max_ss(lo, hi));
}
VEC float v16_tree(v16 s) { return v16_fold(s, 1); }
VEC float v16_largest(v16 x) { return v16_fold(x, 0); }

#endif
