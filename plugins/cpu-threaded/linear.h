/* plugins/cpu-threaded/linear.h - LINEAR on row-interleaved weights: one table of functions per (weight type, level).
 * Interface between the plan (who runs what on which worker) and the kernels. Bits: kopi/op.h. */
#ifndef KT_LINEAR_H
#define KT_LINEAR_H

#include "level.h"

#include <kopi/backend.h>

/* Rows of a weight are stored in groups of 16, the last one padded with zero rows; one layout for all levels. */
enum { KT_ROWS = 16 };

/* Quantized (or plain F32) activations of up to `cap` tokens for one k, laid out for the kernels. The tokens of a run
 * are cut from the front into units of kt_act_unit() tokens, what is left over into units of 8, 4, 2 and 1. The tokens
 * of a unit are interleaved, so the layout depends on n_tok: set it before the first quantize of a run, for run() as
 * well. */
struct kt_act {
    uint32_t dtype;  /* KOPI_DTYPE_A8_32, _A8_256 or _F32 */
    uint32_t k, cap; /* row length, tokens that fit */
    uint32_t n_tok;  /* tokens of this run, at most cap */
    void *data;      /* kt_act_bytes(), aligned to 64 */
};
uint64_t kt_act_bytes(uint32_t dtype, uint32_t k, uint32_t cap);
/* 12. Ranges of tokens, below, start at a multiple of it and end at one or at n_tok. */
uint32_t kt_act_unit(void);

struct kt_linear {
    const char *name; /* "linear_q4_1_avx512vnni" */
    uint32_t dtype, act_dtype;
    /* Bytes of one group of 16 rows of length k: a multiple of 32. */
    uint64_t (*group_bytes)(uint32_t k);
    /* n_rows (1..16) rows of the file's blocks, row_bytes apart, to one group (aligned to 32). [worker] */
    void (*repack)(const void *rows, uint64_t row_bytes, uint32_t n_rows, uint32_t k, void *group);
    /* Row `row` (0..15) of a group as f32: the same values as to_f32 of the file's row. [worker] */
    void (*to_f32)(const void *group, uint32_t row, uint32_t k, float *out);
    /* Groups [0, n_groups) starting at `groups` times tokens [tok0, tok0 + n_tok) of x:
     * y[t * ldy + 16 * g + r] for t counted from tok0 (bias, NULL or [n_rows], added last); only the first n_rows rows
     * in all are written. Memory somewhat past the groups is prefetched, never read. [worker] */
    void (*run)(const void *groups, uint32_t n_groups, uint32_t n_rows, uint32_t k, const struct kt_act *x,
                uint32_t tok0, uint32_t n_tok, const float *bias, float *y, uint64_t ldy);
};
/* NULL: no kernel for this type. Falls to the next lower level where a level has none of its own. */
const struct kt_linear *kt_linear_find(uint32_t dtype, enum kt_level level);

/* QUANTIZE of tokens [tok0, tok0 + n_tok) (rows of x from token tok0 on, ldx floats apart) into act. F32: copies into
 * the kernels' layout. [worker], different ranges from different workers. */
typedef void (*kt_quantize_fn)(const float *x, uint64_t ldx, uint32_t tok0, uint32_t n_tok, const struct kt_act *act);
kt_quantize_fn kt_quantize_find(uint32_t act_dtype, enum kt_level level);

#endif
