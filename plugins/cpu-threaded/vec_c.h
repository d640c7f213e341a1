/* plugins/cpu-threaded/vec_c.h - v16 in plain C; see vec.h. */
#ifndef KT_VEC_C_H
#define KT_VEC_C_H

typedef struct { float f[16]; } v16;

#define V16_EACH(expr)                                                                                                 \
    v16 y;                                                                                                             \
    for (int i = 0; i < 16; i++) y.f[i] = (expr);                                                                      \
    return y

VEC v16 v16_set(float x) { V16_EACH(x); }
VEC v16 v16_load(const float *p) { V16_EACH(p[i]); }
VEC v16 v16_load_n(const float *p, unsigned n) { V16_EACH((unsigned)i < n ? p[i] : 0.0f); }
VEC v16 v16_load_f16(const uint16_t *p) { V16_EACH(kopi_f16_to_f32(p[i])); }
VEC void v16_store(float *p, v16 x) { __builtin_memcpy(p, x.f, sizeof x.f); }
VEC void v16_store_n(float *p, v16 x, unsigned n) { __builtin_memcpy(p, x.f, n * sizeof *p); }
VEC void v16_store_f16(uint16_t *p, v16 x)
{
    for (int i = 0; i < 16; i++) p[i] = kopi_f32_to_f16(x.f[i]);
}

VEC v16 v16_add(v16 a, v16 b) { V16_EACH(a.f[i] + b.f[i]); }
VEC v16 v16_sub(v16 a, v16 b) { V16_EACH(a.f[i] - b.f[i]); }
VEC v16 v16_mul(v16 a, v16 b) { V16_EACH(a.f[i] * b.f[i]); }
VEC v16 v16_div(v16 a, v16 b) { V16_EACH(a.f[i] / b.f[i]); }
VEC v16 v16_fma(v16 a, v16 b, v16 c) { V16_EACH(__builtin_fmaf(a.f[i], b.f[i], c.f[i])); }
VEC v16 v16_fms(v16 a, v16 b, v16 c)
{
    V16_EACH(__builtin_fmaf(a.f[i], b.f[i], -c.f[i]));
} /* a * b - c, rounded once */
/* Of pairs (0, 1), (2, 3) ...: the first twice, the second twice, the two swapped. */
VEC v16 v16_firsts(v16 a) { V16_EACH(a.f[i & ~1]); }
VEC v16 v16_seconds(v16 a) { V16_EACH(a.f[i | 1]); }
VEC v16 v16_swapped(v16 a) { V16_EACH(a.f[i ^ 1]); }
VEC v16 v16_fma_sub_add(v16 a, v16 b, v16 c) { V16_EACH(__builtin_fmaf(a.f[i], b.f[i], i % 2 ? c.f[i] : -c.f[i])); }
VEC v16 v16_negate(v16 a) { V16_EACH(-a.f[i]); }
VEC v16 v16_abs(v16 a) { V16_EACH(kopi_bits_f32(kopi_f32_bits(a.f[i]) & 0x7fffffffu)); }

VEC v16 v16_max(v16 a, v16 b) { V16_EACH(a.f[i] > b.f[i] ? a.f[i] : b.f[i]); }
VEC v16 v16_min_keep_nan(v16 limit, v16 x) { V16_EACH(x.f[i] > limit.f[i] ? limit.f[i] : x.f[i]); }
VEC v16 v16_zero_if_less(v16 a, v16 b, v16 x) { V16_EACH(a.f[i] < b.f[i] ? 0.0f : x.f[i]); }
VEC v16 v16_pick_less(v16 a, v16 b, v16 x, v16 y_) { V16_EACH(a.f[i] < b.f[i] ? x.f[i] : y_.f[i]); }
VEC v16 v16_pick(uint32_t bits, v16 a, v16 b) { V16_EACH(bits >> i & 1 ? a.f[i] : b.f[i]); }
VEC v16 v16_with_sign(v16 a, v16 sign)
{
    V16_EACH(kopi_bits_f32((kopi_f32_bits(a.f[i]) & 0x7fffffffu) | (kopi_f32_bits(sign.f[i]) & 0x80000000u)));
}
/* 2^n for z = magic + n (kopi_exp). */
VEC v16 v16_pow2(v16 z) { V16_EACH(kopi_bits_f32((kopi_f32_bits(z.f[i]) << 23) + 0x3f800000u)); }

VEC uint32_t v16_nan_bits(v16 a)
{
    uint32_t bits = 0;
    for (int i = 0; i < 16; i++) bits |= (uint32_t)(a.f[i] != a.f[i]) << i;
    return bits;
}
/* The tree that ends sum16 of kopi/op.h. */
VEC float v16_tree(v16 s)
{
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++) s.f[j] = s.f[j] + s.f[j + half];
    return s.f[0];
}
VEC float v16_largest(v16 a)
{
    float m = a.f[0];
    for (int i = 1; i < 16; i++) m = a.f[i] > m ? a.f[i] : m;
    return m;
}

#endif
