/* core/model/rope.h - tables of cosines and sines for ROPE. [load] */
#ifndef KOPI_CORE_MODEL_ROPE_H
#define KOPI_CORE_MODEL_ROPE_H

#include "model/decoder.h"

/* Angular frequency of each pair (radians per position) with the scaling applied, into freq[n_rot / 2], and the factor
 * that cosines and sines are multiplied with. Sources: RoFormer (Su et al. 2021); YaRN (Peng et al. 2023), section 3;
 * Llama 3 model card for its divisors. */
void kopi__rope_frequencies(const struct kopi_rope *r, uint32_t n_rot, double *freq, double *magnitude);

/* F32 [2, n_rot / 2, n_pos], allocated with kopi__alloc_aligned: as KOPI_OP_ROPE reads it. NULL: out of memory. */
float *kopi__rope_table(const struct kopi_rope *r, uint32_t n_rot, uint32_t n_pos);

#endif
