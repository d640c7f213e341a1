#include "memory.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MAX_NAMED = 64 };

/* Buffers that a fault is looked up in; more are not named. */
static struct cf_buf known[MAX_NAMED];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void replace(const void *map, const struct cf_buf *by)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_NAMED; i++)
        if (known[i].map == map) {
            known[i] = *by;
            break;
        }
    pthread_mutex_unlock(&lock);
}

void cf_buf_name_fault(const void *address, char *text, size_t n)
{
    const char *at = address;
    for (int i = 0; i < MAX_NAMED; i++) {
        const struct cf_buf *b = &known[i];
        const char *from = b->map, *to = from + b->map_size;
        if (!b->map || at < from || at >= to) continue;
        if (at >= b->data + b->size)
            snprintf(text, n, "%ld bytes past the end of a buffer of %zu bytes",
                     (long)(at - b->data - (long)b->size) + 1, b->size);
        else if (at < b->data)
            snprintf(text, n, "%ld bytes before the start of a buffer of %zu bytes", (long)(b->data - at), b->size);
        else snprintf(text, n, "write to byte %ld of a buffer that is only to be read", (long)(at - b->data));
    }
}

struct cf_buf cf_buf_new(size_t size, size_t align)
{
    struct cf_buf b = {.size = size};
    size_t padded = (size + align - 1) / align * align, body = (padded + PAGE - 1) / PAGE * PAGE;
    b.map_size = body + 2 * PAGE;
    b.map = mmap(NULL, b.map_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED || (body && mprotect((char *)b.map + PAGE, body, PROT_READ | PROT_WRITE))) {
        fprintf(stderr, "no memory for a buffer of %zu bytes\n", size);
        exit(99);
    }
    b.data = (char *)b.map + PAGE + body - padded;
    cf_buf_fill(&b);
    replace(NULL, &b);
    return b;
}

void cf_buf_free(struct cf_buf *b)
{
    if (b->map) {
        replace(b->map, &(struct cf_buf){0});
        munmap(b->map, b->map_size);
    }
    *b = (struct cf_buf){0};
}

static char *begin(const struct cf_buf *b) { return (char *)b->map + PAGE; }
static char *end(const struct cf_buf *b) { return (char *)b->map + b->map_size - PAGE; }

void cf_buf_fill(const struct cf_buf *b) { memset(begin(b), CF_FILL, (size_t)(end(b) - begin(b))); }

/* Each byte equals the next, and the first is the fill: memcmp is far quicker than a loop under a sanitizer. */
static bool filled(const char *from, const char *to)
{
    return from >= to || ((unsigned char)*from == CF_FILL && !memcmp(from, from + 1, (size_t)(to - from) - 1));
}

bool cf_buf_intact(const struct cf_buf *b, size_t used)
{
    return filled(begin(b), b->data) && filled(b->data + used, end(b));
}

void cf_buf_protect(const struct cf_buf *b, enum cf_access access)
{
    static const int flags[] = {
        [CF_NO_ACCESS] = PROT_NONE, [CF_READ] = PROT_READ, [CF_READ_WRITE] = PROT_READ | PROT_WRITE};
    if (end(b) > begin(b)) mprotect(begin(b), (size_t)(end(b) - begin(b)), flags[access]);
}
