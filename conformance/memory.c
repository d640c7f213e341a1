#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

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
    return b;
}

void cf_buf_free(struct cf_buf *b)
{
    if (b->map) munmap(b->map, b->map_size);
    *b = (struct cf_buf){0};
}

static char *begin(const struct cf_buf *b) { return (char *)b->map + PAGE; }
static char *end(const struct cf_buf *b) { return (char *)b->map + b->map_size - PAGE; }

void cf_buf_fill(const struct cf_buf *b) { memset(begin(b), CF_FILL, (size_t)(end(b) - begin(b))); }

static bool filled(const char *from, const char *to)
{
    while (from < to && (unsigned char)*from == CF_FILL) from++;
    return from >= to;
}

bool cf_buf_intact(const struct cf_buf *b, size_t used)
{
    return filled(begin(b), b->data) && filled(b->data + used, end(b));
}

void cf_buf_read_only(const struct cf_buf *b, bool yes)
{
    if (end(b) > begin(b)) mprotect(begin(b), (size_t)(end(b) - begin(b)), yes ? PROT_READ : PROT_READ | PROT_WRITE);
}
