/* plugins/cpu-threaded/simd_c.h - what linear_tile.h is written in, in plain C on vectors of 16 bytes: the compiler
 * turns them into whatever the machine has. A group of 16 rows is KT_SLICES vectors (KT_SLICE bytes, a 32-bit lane per
 * row each). */
#ifndef KT_SIMD_H
#define KT_SIMD_H

#include "format.h"

#include <kopi/math.h>

/* KT_TILE: tokens of one tile. KT_DOT32: v_dot sums in int32 and needs no flush; KT_SIGNED8: v_dot8 takes codes of 8
 * bits as signed numbers (code - 128), else as they are. */
#define KT_LEVEL c
enum { KT_SLICE = 16, KT_SLICES = 4, KT_TILE = 2, KT_DOT32 = 1, KT_SIGNED8 = 0 };

typedef int32_t vi __attribute__((vector_size(16)));
typedef float vf __attribute__((vector_size(16)));
typedef uint32_t v_u32 __attribute__((vector_size(16)));
typedef uint16_t v_u16 __attribute__((vector_size(16)));
typedef int16_t v_i16 __attribute__((vector_size(16)));

KT_INLINE vi v_load(const uint8_t *p)
{
    vi v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
KT_INLINE vi v_bcast(const uint8_t *p) /* 4 bytes to each lane */
{
    int32_t x;
    __builtin_memcpy(&x, p, 4);
    return (vi){x, x, x, x};
}
KT_INLINE vi v_zero(void) { return (vi){0}; }
KT_INLINE vi v_bytes(int b) { return (vi)((v_u32){1, 1, 1, 1} * (uint32_t)(b * 0x01010101u)); }
KT_INLINE vi v_and(vi a, vi b) { return a & b; }
KT_INLINE vi v_insert(vi w, vi h, vi mask) { return w | (h & mask); }
KT_INLINE vi v_shl16(vi v, int n) { return (vi)((v_u16)v << (uint16_t)n); }
KT_INLINE vi v_shr16(vi v, int n) { return (vi)((v_u16)v >> (uint16_t)n); }
KT_INLINE vi v_lookup(const uint8_t *table, vi v) /* bytes in 0..15 to table[byte] */
{
    uint8_t b[sizeof v];
    __builtin_memcpy(b, &v, sizeof v);
    for (size_t i = 0; i < sizeof v; i++) b[i] = table[b[i]];
    return v_load(b);
}

KT_INLINE vi v_add(vi a, vi b) { return (vi)((v_u32)a + (v_u32)b); } /* also of four bytes at once: no sign */
KT_INLINE vi v_shl32(vi v, int n) { return (vi)((v_u32)v << (uint32_t)n); }
KT_INLINE vi v_sar32(vi v, int n) { return v >> n; } /* with the sign */
KT_INLINE vi v_shr32(vi v, int n) { return (vi)((v_u32)v >> (uint32_t)n); }
KT_INLINE vi v_neg(vi v) { return -v; }

/* The two signed halves of each lane. */
KT_INLINE vi v_low(vi v) { return v_shl32(v, 16) >> 16; }
KT_INLINE vi v_high(vi v) { return v >> 16; }

/* A dot product in the making, of v_dot_steps(largest code) quads at most: + sum of the lane's four codes (w, unsigned)
 * times the four signed bytes of x. */
KT_INLINE int v_dot_steps(int max) { return (void)max, 8; }
KT_INLINE vi v_dot(vi d, vi w, vi x)
{
    vi even = (vi)((v_i16)((v_u16)w & (uint16_t)0xff) * ((v_i16)v_shl16(x, 8) >> 8));
    vi odd = (vi)((v_i16)v_shr16(w, 8) * ((v_i16)x >> 8));
    return d + v_low(even) + v_high(even) + v_low(odd) + v_high(odd);
}
/* The same to an int32 sum, for codes of 8 bits. */
KT_INLINE vi v_dot8(vi sum, vi w, vi x) { return v_dot(sum, w, x); }

/* sum + scale * d. wide: d may be beyond int16. Scales are prepared by v_scale. */
KT_INLINE vi v_scale(vi s, bool wide) { return (void)wide, s; }
KT_INLINE vi v_flush(vi sum, vi d, vi scale, bool wide) { return (void)wide, sum + d * scale; }
KT_INLINE vi v_flush1(vi sum, vi d) { return sum + d; } /* scale 1 */

KT_INLINE vi v_scales(const uint8_t *p) /* a signed byte per row to its lane */
{
    const int8_t *s = (const int8_t *)p;
    return (vi){s[0], s[1], s[2], s[3]};
}
/* Two numbers of 16 bits per lane, and sum + the products of both. */
KT_INLINE vi v_pair(vi lo, vi hi) { return (lo & 0xffff) | v_shl32(hi, 16); }
KT_INLINE vi v_madd(vi sum, vi a, vi b) { return sum + v_low(a) * v_low(b) + v_high(a) * v_high(b); }

KT_INLINE vf v_zerof(void) { return (vf){0}; }
KT_INLINE vf v_loadf(const float *p)
{
    vf v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
KT_INLINE void v_storef(float *p, vf v) { __builtin_memcpy(p, &v, sizeof v); }
KT_INLINE vf v_bcastf(const uint8_t *p) { return (vf)v_bcast(p); }
KT_INLINE vf v_float(vi v) { return __builtin_convertvector(v, vf); }
KT_INLINE vf v_mul(vf a, vf b) { return a * b; }
KT_INLINE vf v_addf(vf a, vf b) { return a + b; }
KT_INLINE vf v_fma(vf a, vf b, vf c) /* a * b + c */
{
    for (int i = 0; i < 4; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
KT_INLINE vf v_fnma(vf a, vf b, vf c) { return v_fma(-a, b, c); } /* -(a * b) + c */
KT_INLINE vf v_f16(const uint8_t *p)
{
    uint16_t h[4];
    __builtin_memcpy(h, p, sizeof h);
    return (vf){kopi_f16_to_f32(h[0]), kopi_f16_to_f32(h[1]), kopi_f16_to_f32(h[2]), kopi_f16_to_f32(h[3])};
}
KT_INLINE vf v_bf16(const uint8_t *p)
{
    uint16_t h[4];
    __builtin_memcpy(h, p, sizeof h);
    return (vf)((v_u32){h[0], h[1], h[2], h[3]} << 16);
}

#endif
