/* core/base/num.h - numbers read and written independently of the locale. [any] */
#ifndef KOPI_CORE_BASE_NUM_H
#define KOPI_CORE_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of s must be the number: no spaces, no tail. Decimal only (a leading '-' where signed). */
bool kopi__parse_i64(const char *s, int64_t *out);
bool kopi__parse_u64(const char *s, uint64_t *out);
/* Decimal or exponent notation; "inf" and "nan" are refused. */
bool kopi__parse_f64(const char *s, double *out);
/* "512", "8KiB", "2MiB", "1GiB", "8KB" (1000) ... */
bool kopi__parse_size(const char *s, uint64_t *out);

/* Shortest decimal that reads back as the same float / double, whole numbers in full; "nan", "inf", "-inf". buf of 40
 * bytes is enough. */
const char *kopi__format_f64(double v, char *buf, size_t n);
const char *kopi__format_f32(float v, char *buf, size_t n);
/* Fixed notation with `digits` after the point; with an exponent and as many digits where buf is too short for that. */
const char *kopi__format_fixed(double v, int digits, char *buf, size_t n);
/* "397.4 MiB" */
const char *kopi__format_bytes(uint64_t v, char *buf, size_t n);

#endif
