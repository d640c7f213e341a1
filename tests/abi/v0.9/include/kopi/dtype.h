/* kopi/dtype.h - tensor types. A weight's dtype is the 32-bit id in the GGUF file; block layouts are those of the format
 * (ggml-common.h in the llama.cpp repository is the reference). Self-contained; C99 and C++17. */
#ifndef KOPI_DTYPE_H
#define KOPI_DTYPE_H

#include <kopi/abi.h>

KOPI_BEGIN_DECLS

/* X(NAME, id, elements per block, bytes per block) */
#define KOPI_DTYPES(X)                                                                                                 \
    X(F32, 0u, 1, 4)                                                                                                   \
    X(F16, 1u, 1, 2)                                                                                                   \
    X(Q4_0, 2u, 32, 18)                                                                                                \
    X(Q4_1, 3u, 32, 20)                                                                                                \
    X(Q5_0, 6u, 32, 22)                                                                                                \
    X(Q5_1, 7u, 32, 24)                                                                                                \
    X(Q8_0, 8u, 32, 34)                                                                                                \
    X(Q8_1, 9u, 32, 36)                                                                                                \
    X(Q2_K, 10u, 256, 84)                                                                                              \
    X(Q3_K, 11u, 256, 110)                                                                                             \
    X(Q4_K, 12u, 256, 144)                                                                                             \
    X(Q5_K, 13u, 256, 176)                                                                                             \
    X(Q6_K, 14u, 256, 210)                                                                                             \
    X(Q8_K, 15u, 256, 292)                                                                                             \
    X(IQ2_XXS, 16u, 256, 66)                                                                                           \
    X(IQ2_XS, 17u, 256, 74)                                                                                            \
    X(IQ3_XXS, 18u, 256, 98)                                                                                           \
    X(IQ1_S, 19u, 256, 50)                                                                                             \
    X(IQ4_NL, 20u, 32, 18)                                                                                             \
    X(IQ3_S, 21u, 256, 110)                                                                                            \
    X(IQ2_S, 22u, 256, 82)                                                                                             \
    X(IQ4_XS, 23u, 256, 136)                                                                                           \
    X(I8, 24u, 1, 1)                                                                                                   \
    X(I16, 25u, 1, 2)                                                                                                  \
    X(I32, 26u, 1, 4)                                                                                                  \
    X(I64, 27u, 1, 8)                                                                                                  \
    X(F64, 28u, 1, 8)                                                                                                  \
    X(IQ1_M, 29u, 256, 56)                                                                                             \
    X(BF16, 30u, 1, 2)                                                                                                 \
    X(TQ1_0, 34u, 256, 54)                                                                                             \
    X(TQ2_0, 35u, 256, 66)                                                                                             \
    X(MXFP4, 39u, 32, 17)

#define KOPI_DTYPE_ID_(name, id, len, bytes) KOPI_DTYPE_##name = (int)id,
enum { KOPI_DTYPES(KOPI_DTYPE_ID_) KOPI_DTYPE_END_ };
#undef KOPI_DTYPE_ID_

/* 0x80000000 and above are kopi's own and never in a file: quantized activations (kopi/op.h gives their layout). */
#define KOPI_DTYPE_A8_32 0x80000001u
#define KOPI_DTYPE_A8_256 0x80000002u
/* Weight types of third-party backends, in a file too: [0x40000000, 0x7fffffff]. */
#define KOPI_DTYPE_VENDOR_FIRST 0x40000000u
#define KOPI_DTYPE_VENDOR_LAST 0x7fffffffu

/* A type that a plugin brings; read before any file is opened. Lives as long as the plugin. */
typedef struct kopi_dtype_info {
    uint32_t struct_size, id;
    const char *name;                 /* "ACME_Q3" */
    uint32_t block_len, block_bytes;  /* elements and bytes per block, both > 0 */
    void (*to_f32)(const void *blocks, float *out, int64_t n); /* [any] pure; n a multiple of block_len */
} kopi_dtype_info;

KOPI_END_DECLS

#endif
