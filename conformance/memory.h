/* conformance/memory.h - buffers that end at a page without access, so that a read or write past the end is a fault. */
#ifndef KOPI_CF_MEMORY_H
#define KOPI_CF_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

struct cf_buf {
    char *data; /* aligned as asked; at most align - 1 bytes before the guard page are left */
    size_t size;
    void *map;
    size_t map_size;
};
/* align: a power of two up to 4096. Filled with CF_FILL. Ends the process when memory is short: this is a test tool. */
struct cf_buf cf_buf_new(size_t size, size_t align);
void cf_buf_free(struct cf_buf *b);
void cf_buf_fill(const struct cf_buf *b);
/* No byte outside [0, used) was written since the fill. */
bool cf_buf_intact(const struct cf_buf *b, size_t used);
enum cf_access { CF_NO_ACCESS, CF_READ, CF_READ_WRITE };
void cf_buf_protect(const struct cf_buf *b, enum cf_access access);

/* For a signal handler: "12 bytes past the end of a buffer of 720 bytes"; unchanged where the address lies in no
 * buffer's guard pages. */
void cf_buf_name_fault(const void *address, char *text, size_t n);

enum { CF_FILL = 0xa5 };

#endif
