/* conformance/values.h - reproducible random numbers, activations and weight blocks. */
#ifndef KOPI_CF_VALUES_H
#define KOPI_CF_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cf_random {
    uint64_t state;
};
uint64_t cf_next(struct cf_random *r);
uint32_t cf_below(struct cf_random *r, uint32_t n);
uint32_t cf_pick(struct cf_random *r, const uint32_t *list, uint32_t n);
float cf_normal(struct cf_random *r); /* mean 0, deviation 1 */

/* MILD: as in a model. WIDE: magnitudes from 2^-40 to 2^20. EDGE: zeros of both signs, denormals, the largest numbers,
 * infinities and NaNs among mild ones. */
enum cf_values { CF_MILD, CF_WIDE, CF_EDGE, CF_N_VALUES };
const char *cf_values_name(enum cf_values v);
void cf_floats(struct cf_random *r, enum cf_values v, float *x, size_t n);

/* Types of weight blocks that can be made up: where their F16 scales are. */
struct cf_weight_type {
    uint32_t dtype, len, bytes;
    const char *name;
    int16_t f16_at[2]; /* offsets in a block; -1: none */
};
const struct cf_weight_type *cf_weight_types(uint32_t *n);
const struct cf_weight_type *cf_weight_type(uint32_t dtype); /* NULL: unknown */
const char *cf_type_name(uint32_t dtype);                    /* "q4_1", "a8_32"; "?" if unknown */
/* n_blocks of random bits with scales that suit v. */
void cf_blocks(struct cf_random *r, enum cf_values v, const struct cf_weight_type *t, void *blocks, size_t n_blocks);
/* QUANTIZE of kopi/op.h: n values, a multiple of the block, to A8_32 or A8_256. */
void cf_quantize(uint32_t dtype, const float *x, void *blocks, size_t n);

#endif
