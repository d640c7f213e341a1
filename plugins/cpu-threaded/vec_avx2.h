/* plugins/cpu-threaded/vec_avx2.h - v16 as two registers of AVX2 with FMA and F16C; see vec.h. */
#ifndef KT_VEC_AVX2_H
#define KT_VEC_AVX2_H

#include <immintrin.h>

typedef struct { __m256 a, b; } v16;

VEC v16 v16_set(float x) { return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
VEC v16 v16_load(const float *p) { return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
VEC v16 v16_load_f16(const uint16_t *p)
{
    return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)p)),
                 _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + 8)))};
}
VEC void v16_store(float *p, v16 x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
VEC v16 v16_load_n(const float *p, unsigned n)
{
    float f[16] = {0};
    __builtin_memcpy(f, p, n * sizeof *p);
    return v16_load(f);
}
VEC void v16_store_n(float *p, v16 x, unsigned n)
{
    float f[16];
    v16_store(f, x);
    __builtin_memcpy(p, f, n * sizeof *p);
}
VEC void v16_store_f16(uint16_t *p, v16 x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x.a, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(void *)(p + 8), _mm256_cvtps_ph(x.b, _MM_FROUND_TO_NEAREST_INT));
}

VEC v16 v16_add(v16 x, v16 y) { return (v16){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
VEC v16 v16_sub(v16 x, v16 y) { return (v16){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
VEC v16 v16_mul(v16 x, v16 y) { return (v16){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
VEC v16 v16_div(v16 x, v16 y) { return (v16){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
VEC v16 v16_fma(v16 x, v16 y, v16 z) { return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
VEC v16 v16_fms(v16 x, v16 y, v16 z) { return (v16){_mm256_fmsub_ps(x.a, y.a, z.a), _mm256_fmsub_ps(x.b, y.b, z.b)}; }
VEC v16 v16_firsts(v16 x) { return (v16){_mm256_moveldup_ps(x.a), _mm256_moveldup_ps(x.b)}; }
VEC v16 v16_seconds(v16 x) { return (v16){_mm256_movehdup_ps(x.a), _mm256_movehdup_ps(x.b)}; }
VEC v16 v16_swapped(v16 x) { return (v16){_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)}; }
VEC v16 v16_fma_sub_add(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fmaddsub_ps(x.a, y.a, z.a), _mm256_fmaddsub_ps(x.b, y.b, z.b)};
}

VEC __m256 v8_sign(void) { return _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN)); }
VEC v16 v16_negate(v16 x) { return (v16){_mm256_xor_ps(x.a, v8_sign()), _mm256_xor_ps(x.b, v8_sign())}; }
VEC v16 v16_abs(v16 x) { return (v16){_mm256_andnot_ps(v8_sign(), x.a), _mm256_andnot_ps(v8_sign(), x.b)}; }
VEC v16 v16_with_sign(v16 x, v16 s)
{
    v16 m = v16_abs(x);
    return (v16){_mm256_or_ps(m.a, _mm256_and_ps(v8_sign(), s.a)), _mm256_or_ps(m.b, _mm256_and_ps(v8_sign(), s.b))};
}

VEC v16 v16_max(v16 x, v16 y) { return (v16){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
/* The instruction gives its second operand where one is NaN. */
VEC v16 v16_min_keep_nan(v16 limit, v16 x) { return (v16){_mm256_min_ps(limit.a, x.a), _mm256_min_ps(limit.b, x.b)}; }
VEC v16 v16_zero_if_less(v16 x, v16 y, v16 v)
{
    return (v16){_mm256_andnot_ps(_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), v.a),
                 _mm256_andnot_ps(_mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ), v.b)};
}
VEC v16 v16_pick_less(v16 x, v16 y, v16 v, v16 w)
{
    return (v16){_mm256_blendv_ps(w.a, v.a, _mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ)),
                 _mm256_blendv_ps(w.b, v.b, _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ))};
}
VEC __m256 v8_mask(uint32_t bits)
{
    __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), lane), lane));
}
VEC v16 v16_pick(uint32_t bits, v16 x, v16 y)
{
    return (v16){_mm256_blendv_ps(y.a, x.a, v8_mask(bits)), _mm256_blendv_ps(y.b, x.b, v8_mask(bits >> 8))};
}
VEC __m256 v8_pow2(__m256 z)
{
    return _mm256_castsi256_ps(
        _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(z), 23), _mm256_set1_epi32(0x3f800000)));
}
VEC v16 v16_pow2(v16 z) { return (v16){v8_pow2(z.a), v8_pow2(z.b)}; }

VEC uint32_t v16_nan_bits(v16 x)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q)) |
           (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q)) << 8;
}
VEC float v8_fold(__m256 v, int sum)
{
    __m128 lo = _mm256_castps256_ps128(v), hi = _mm256_extractf128_ps(v, 1);
    lo = sum ? _mm_add_ps(lo, hi) : _mm_max_ps(lo, hi);
    hi = _mm_movehl_ps(lo, lo);
    lo = sum ? _mm_add_ps(lo, hi) : _mm_max_ps(lo, hi);
    hi = _mm_movehdup_ps(lo);
    return _mm_cvtss_f32(sum ? _mm_add_ss(lo, hi) : _mm_max_ss(lo, hi));
}
VEC float v16_tree(v16 s) { return v8_fold(_mm256_add_ps(s.a, s.b), 1); }
VEC float v16_largest(v16 x) { return v8_fold(_mm256_max_ps(x.a, x.b), 0); }

#endif
