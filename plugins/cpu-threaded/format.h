/* plugins/cpu-threaded/format.h - the weight types as numbers, and the layout of a group of 16 rows that follows from
 * them.
 *
 * A quantized weight is code - off (IQ4_NL: value[code]); the code's `lo` low bits and `hi` high bits are kept in
 * planes. Four columns of the 16 rows, a *quad*, are 64 codes: code 4 * row + column. A plane of b bits holds 8 / b
 * quads in 64 bytes: quad i in the bits from b * i of each byte. A block of `len` columns is
 *
 *   d [16] F16;  m [16] F16, with a minimum;  scales [len / sub][16] bytes and minimums alike, for blocks of 256
 *   (packed: the scale in the low four bits, the minimum in the high ones);  plane of hi bits;  plane of lo bits
 *
 * and a group is its blocks in ascending order. Float weights: [k][16]. A vector lane is a row, one broadcast of four
 * activations meets all rows, and no sum goes across lanes. */
#ifndef KT_FORMAT_H
#define KT_FORMAT_H

#include "linear.h"

struct kt_format {
    int len, sub;    /* columns in a block; columns that share a scale byte (0: blocks of 32, which have none) */
    int lo, hi, off; /* bits of the planes; what is subtracted from a code */
    int max;         /* largest code as the kernels see it */
    bool min, packed, codes;
};

/* X(name, DTYPE, bytes of a block in the file, len, sub, lo, hi, off, max, min, packed, codes) */
#define KT_BLOCK32_TYPES(X)                                                                                            \
    X(q4_0, Q4_0, 18, 32, 0, 4, 0, 8, 15, false, false, false)                                                         \
    X(q4_1, Q4_1, 20, 32, 0, 4, 0, 0, 15, true, false, false)                                                          \
    X(q5_0, Q5_0, 22, 32, 0, 4, 1, 16, 31, false, false, false)                                                        \
    X(q5_1, Q5_1, 24, 32, 0, 4, 1, 0, 31, true, false, false)                                                          \
    X(q8_0, Q8_0, 34, 32, 0, 8, 0, 128, 255, false, false, false)                                                      \
    X(iq4_nl, IQ4_NL, 18, 32, 0, 4, 0, 128, 255, false, false, true)
#define KT_BLOCK256_TYPES(X)                                                                                           \
    X(q2_k, Q2_K, 84, 256, 16, 2, 0, 0, 3, true, true, false)                                                          \
    X(q3_k, Q3_K, 110, 256, 16, 2, 1, 4, 7, false, false, false)                                                       \
    X(q4_k, Q4_K, 144, 256, 32, 4, 0, 0, 15, true, false, false)                                                       \
    X(q5_k, Q5_K, 176, 256, 32, 4, 1, 0, 31, true, false, false)                                                       \
    X(q6_k, Q6_K, 210, 256, 16, 4, 2, 32, 63, false, false, false)
/* X(name, DTYPE, bytes of an element) */
#define KT_FLOAT_TYPES(X)                                                                                              \
    X(f32, F32, 4)                                                                                                     \
    X(f16, F16, 2)                                                                                                     \
    X(bf16, BF16, 2)

#define KT_FORMAT_(name, DTYPE, file, len, sub, lo, hi, off, max, min, packed, codes)                                  \
    static const struct kt_format kt_##name __attribute__((unused)) = {len, sub, lo, hi, off, max, min, packed, codes};
KT_BLOCK32_TYPES(KT_FORMAT_)
KT_BLOCK256_TYPES(KT_FORMAT_)

/* IQ4_NL: value + 128 of each code. */
#define KT_IQ4_NL_VALUES 1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241

#define KT_INLINE static inline __attribute__((always_inline))
/* A loop that is unrolled whole, so that what its index selects lies in registers. */
#if defined(__clang__)
#define KT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define KT_UNROLL _Pragma("GCC unroll 16")
#endif
#define KT_EACH(i, n) KT_UNROLL for (int i = 0; i < (n); i++)

/* Offsets inside a block of a group. */
KT_INLINE int kt_scale_at(const struct kt_format *f) { return f->min ? 64 : 32; }
KT_INLINE int kt_scale_bytes(const struct kt_format *f) { return f->sub ? KT_ROWS * f->len / f->sub : 0; }
KT_INLINE int kt_min_at(const struct kt_format *f) { return kt_scale_at(f) + kt_scale_bytes(f); }
KT_INLINE int kt_hi_at(const struct kt_format *f)
{
    return kt_min_at(f) + (f->min && !f->packed ? kt_scale_bytes(f) : 0);
}
KT_INLINE int kt_lo_at(const struct kt_format *f) { return kt_hi_at(f) + KT_ROWS * f->len * f->hi / 8; }
KT_INLINE int kt_block_bytes(const struct kt_format *f) { return kt_lo_at(f) + KT_ROWS * f->len * f->lo / 8; }

/* ---- activations ------------------------------------------------------------------------------------------------- */

/* Each 32 columns of a unit of w tokens are a record: eight quads [8][w] of 4 bytes, then [w] of the sum: int32,
 * times -128, for A8_32; the int16 sums of each 16 columns for A8_256. A block of A8_32 is a record, d [w], d * sum
 * [w]; one of A8_256 is eight records, d [w]. F32: [k][w]. */
enum { KT_UNIT = 12, KT_RECORD = 36, KT_A8_32 = KT_RECORD + 8, KT_A8_256 = 8 * KT_RECORD + 4 }; /* bytes per token */

/* Tokens in the unit that starts at t. */
static inline uint32_t kt_unit_width(uint32_t t, uint32_t n_tok)
{
    uint32_t left = n_tok - t;
    return left >= KT_UNIT ? KT_UNIT : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}
static inline uint64_t kt_token_bytes(uint32_t dtype, uint32_t k)
{
    if (dtype == KOPI_DTYPE_A8_32) return (uint64_t)(k / 32) * KT_A8_32;
    if (dtype == KOPI_DTYPE_A8_256) return (uint64_t)(k / 256) * KT_A8_256;
    return (uint64_t)k * 4;
}

/* ---- functions of each type, the same for all levels (repack.c) -------------------------------------------------- */

#define KT_ROW_FUNCTIONS_(name, ...)                                                                                   \
    uint64_t kt_##name##_group_bytes(uint32_t k);                                                                      \
    void kt_##name##_repack(const void *rows, uint64_t row_bytes, uint32_t n_rows, uint32_t k, void *group);           \
    void kt_##name##_to_f32(const void *group, uint32_t row, uint32_t k, float *out);
KT_BLOCK32_TYPES(KT_ROW_FUNCTIONS_)
KT_BLOCK256_TYPES(KT_ROW_FUNCTIONS_)
KT_FLOAT_TYPES(KT_ROW_FUNCTIONS_)

/* ---- tables of each level ---------------------------------------------------------------------------------------- */

enum { KT_N_LINEARS = 14 };
struct kt_kernel_table {
    struct kt_linear linear[KT_N_LINEARS];
    kt_quantize_fn a8_32, a8_256, f32;
};
extern const struct kt_kernel_table kt_table_c, kt_table_avx2, kt_table_avx512vnni;

#endif
