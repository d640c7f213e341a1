/* core/base/buf.h - a growable byte buffer; always NUL-terminated behind `len` once it holds something. */
#ifndef KOPI_CORE_BASE_BUF_H
#define KOPI_CORE_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct kopi_buf {
    char *data; /* NULL while empty */
    size_t len, cap;
    bool failed; /* an append ran out of memory: the content is a prefix; checked once, at the end */
};

#define KOPI_BUF_INIT {NULL, 0, 0, false}

bool kopi__buf_reserve(struct kopi_buf *b, size_t extra);
bool kopi__buf_add(struct kopi_buf *b, const void *bytes, size_t n); /* false (and failed set) when memory is short */
bool kopi__buf_str(struct kopi_buf *b, const char *s);
bool kopi__buf_char(struct kopi_buf *b, char c);
bool kopi__buf_fmt(struct kopi_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void kopi__buf_clear(struct kopi_buf *b); /* len = 0, keeps the memory */
void kopi__buf_free(struct kopi_buf *b);
char *
kopi__buf_take(struct kopi_buf *b); /* the string, owned by the caller (kopi__free); NULL if failed; b is empty after */

#endif
