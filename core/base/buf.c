#include "base/buf.h"

#include "base/mem.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool kopi__buf_reserve(struct kopi_buf *b, size_t extra)
{
    uint64_t need;
    if (b->failed) return false;
    if (!kopi__add(b->len, extra, &need) || !kopi__add(need, 1, &need)) return !(b->failed = true);
    if (need <= b->cap) return true;
    size_t cap = need < 64 ? 64 : need + need / 2;
    char *data = kopi__realloc(b->data, cap);
    if (!data) return !(b->failed = true);
    b->data = data;
    b->cap = cap;
    return true;
}

bool kopi__buf_add(struct kopi_buf *b, const void *bytes, size_t n)
{
    if (!kopi__buf_reserve(b, n)) return false;
    if (n) memcpy(b->data + b->len, bytes, n);
    b->len += n;
    b->data[b->len] = 0;
    return true;
}

bool kopi__buf_str(struct kopi_buf *b, const char *s) { return kopi__buf_add(b, s, strlen(s)); }
bool kopi__buf_char(struct kopi_buf *b, char c) { return kopi__buf_add(b, &c, 1); }

bool kopi__buf_fmt(struct kopi_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = kopi__vasprintf(fmt, ap);
    va_end(ap);
    if (!s) return !(b->failed = true);
    bool ok = kopi__buf_str(b, s);
    kopi__free(s);
    return ok;
}

void kopi__buf_clear(struct kopi_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data) b->data[0] = 0;
}

void kopi__buf_free(struct kopi_buf *b)
{
    kopi__free(b->data);
    *b = (struct kopi_buf)KOPI_BUF_INIT;
}

char *kopi__buf_take(struct kopi_buf *b)
{
    char *s = NULL;
    if (!b->failed && kopi__buf_add(b, "", 0)) {
        s = b->data;
        b->data = NULL;
    }
    kopi__buf_free(b);
    return s;
}
