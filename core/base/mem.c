#include "base/mem.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Atomic uint64_t count, fail_at;

/* True if this allocation has to fail. */
static bool failing(void)
{
    uint64_t n = atomic_fetch_add_explicit(&count, 1, memory_order_relaxed) + 1;
    uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
    return at && n >= at;
}

void kopi__mem_fail_at(uint64_t n) { atomic_store(&fail_at, n ? atomic_load(&count) + n : 0); }
uint64_t kopi__mem_count(void) { return atomic_load(&count); }

void *kopi__alloc(size_t size) { return failing() ? NULL : malloc(size ? size : 1); }
void *kopi__calloc(size_t n, size_t size) { return failing() ? NULL : calloc(n ? n : 1, size ? size : 1); }
void *kopi__realloc(void *p, size_t size) { return failing() ? NULL : realloc(p, size ? size : 1); }

void *kopi__realloc_array(void *p, size_t n, size_t size)
{
    uint64_t bytes;
    if (!kopi__mul(n, size, &bytes)) return NULL;
    return kopi__realloc(p, bytes);
}

void *kopi__alloc_aligned(size_t size, size_t align)
{
    uint64_t padded;
    if (failing() || !kopi__pad(size ? size : 1, align, &padded)) return NULL;
    return aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align, padded);
}

void kopi__free(void *p) { free(p); }

char *kopi__strndup(const char *s, size_t n)
{
    char *p = kopi__alloc(n + 1);
    if (!p) return NULL;
    memcpy(p, s, n);
    p[n] = 0;
    return p;
}

char *kopi__strdup(const char *s) { return kopi__strndup(s, strlen(s)); }

char *kopi__vasprintf(const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *p = n < 0 ? NULL : kopi__alloc((size_t)n + 1);
    if (p) vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

char *kopi__asprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = kopi__vasprintf(fmt, ap);
    va_end(ap);
    return p;
}
