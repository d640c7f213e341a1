/* core/run/row.h - passes over a row of logits, written so that compilers make SIMD of them. Rows are long (a hundred
 * thousand tokens and more) and every token of every sequence needs one. [any] */
#ifndef KOPI_CORE_RUN_ROW_H
#define KOPI_CORE_RUN_ROW_H

#include <kopi/kopi.h>
#include <stdbool.h>

/* Index of the greatest of n >= 1 values, the first of equals. *finite: whether all are; if not, the index means
 * nothing. */
uint32_t kopi__row_best(const float *x, uint32_t n, bool *finite);
/* Index of the first value that is not finite, or n. */
uint32_t kopi__row_nonfinite(const float *x, uint32_t n);
/* Index of the first value from `from` on that is greater than limit, or n. */
uint32_t kopi__row_above(const float *x, uint32_t from, uint32_t n, float limit);

#endif
