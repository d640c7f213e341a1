/* core/base/utf8.h - strict UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF). [any] */
#ifndef KOPI_CORE_BASE_UTF8_H
#define KOPI_CORE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the valid character at s (1..4) and its code point; 0 if the bytes at s are not a complete valid one. */
size_t kopi__utf8_decode(const char *s, size_t n, uint32_t *cp);
/* Writes cp (must be valid) and returns its length 1..4. */
size_t kopi__utf8_encode(uint32_t cp, char out[4]);
/* Length of the longest tail of s[0..n) that is an incomplete but still completable character (0..3). */
size_t kopi__utf8_incomplete_tail(const char *s, size_t n);
bool kopi__utf8_valid(const char *s, size_t n);

#endif
