/* core/base/mem.h - the one place where the core allocates. [any]
 * All return NULL when memory is short; sizes are checked for overflow. kopi__free(NULL) is allowed. */
#ifndef KOPI_CORE_BASE_MEM_H
#define KOPI_CORE_BASE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *kopi__alloc(size_t size);                   /* uninitialised; size 0 gives a valid pointer */
void *kopi__calloc(size_t n, size_t size);        /* zeroed, n * size checked */
void *kopi__realloc(void *p, size_t size);
void *kopi__realloc_array(void *p, size_t n, size_t size); /* n * size checked */
void *kopi__alloc_aligned(size_t size, size_t align);      /* align: power of two; freed by kopi__free */
void kopi__free(void *p);
char *kopi__strdup(const char *s);
char *kopi__strndup(const char *s, size_t n);
char *kopi__asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *kopi__vasprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* Tests: the n-th allocation from now on (counted from 1, all threads) fails, and all after it; 0 switches it off. */
void kopi__mem_fail_at(uint64_t n);
/* Number of allocations since the process began. */
uint64_t kopi__mem_count(void);

/* Checked arithmetic: true and *out set, or false on overflow. */
static inline bool kopi__mul(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool kopi__add(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }
/* Rounds up to a multiple of align, a power of two. */
static inline bool kopi__pad(uint64_t a, uint64_t align, uint64_t *out)
{
    if (!kopi__add(a, align - 1, out)) return false;
    *out &= ~(align - 1);
    return true;
}

#endif
