/* tests/backend/fake-memory.h - the memory of a device that is none: pages without access, but for the time between
 * enter and leave. Handles are small numbers, so that whoever takes one for an address faults. One thread per instance.
 */
#ifndef FAKE_MEMORY_H
#define FAKE_MEMORY_H

#include <kopi/backend.h>

struct fake_buffer {
    char *at; /* NULL: free */
    uint64_t size, mapped;
};
struct fake_memory {
    const kopi_host *host;
    struct fake_buffer *buffers;
    uint32_t n;
    int open; /* between enter and leave */
};

/* Every byte is 0xff (NaN in F32 and F16) until it is written. KOPI_E_NOMEM with the host's text. */
kopi_status fake_alloc(struct fake_memory *m, uint64_t size, void **handle);
void fake_free(struct fake_memory *m, void *handle); /* NULL allowed */
void fake_end(struct fake_memory *m);                /* after every buffer was freed */

void fake_enter(struct fake_memory *m);
void fake_leave(struct fake_memory *m);
/* Address of bytes [off, off + n) of a buffer, to be used between enter and leave; NULL with the host's text where they
 * are not inside it, or the handle is none. */
char *fake_at(struct fake_memory *m, void *handle, uint64_t off, uint64_t n);

#endif
