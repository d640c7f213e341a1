/* plugins/cpu/dequant.h - the weight types: from the blocks of a file to integers with scales, and from those to F32.
 */
#ifndef CPU_DEQUANT_H
#define CPU_DEQUANT_H

#include "kernels.h"

/* Blocks of 32 and 256 elements, unpacked. q holds the integers of the formulas in kopi/op.h; for the types of 256 it
 * is sc * q, each sub-block's scale already multiplied in: at most 128 * 32, so it fits. */
struct cpu_block32 {
    float d, m; /* w = d * q + m */
    int16_t q[32];
};
struct cpu_block256 {
    float d, dmin; /* w = d * q - dmin * mn[i / 16] */
    int16_t mn[16];
    int16_t q[256];
};

struct cpu_format {
    uint32_t dtype, len, bytes; /* elements (1, 32, 256) and bytes per block */
    bool has_min;               /* has m, or dmin and mn; they are 0 otherwise */
    /* n blocks to struct cpu_block32 or cpu_block256; NULL for float types. */
    void (*unpack)(const void *blocks, void *out, int64_t n);
    /* n elements, a multiple of len: to_f32 of kopi/op.h. */
    void (*to_f32)(const void *blocks, float *out, int64_t n);
    const char *linear, *linear_f32, *embed; /* names for describe() */
};
#define cpu__format CPU_AT_LEVEL(cpu__format_)
const struct cpu_format *cpu__format(uint32_t dtype); /* NULL: not a weight type of this backend */

#endif
