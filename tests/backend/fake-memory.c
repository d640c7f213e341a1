#include "fake-memory.h"

#include <string.h>
#include <sys/mman.h>

enum { FIRST = 256, PAGE = 4096 }; /* handles: FIRST + index */

static void protect(const struct fake_memory *m, const struct fake_buffer *b)
{
    mprotect(b->at, b->mapped, m->open ? PROT_READ | PROT_WRITE : PROT_NONE);
}

static void protect_all(const struct fake_memory *m)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->buffers[i].at) protect(m, &m->buffers[i]);
}

void fake_enter(struct fake_memory *m)
{
    m->open = 1;
    protect_all(m);
}

void fake_leave(struct fake_memory *m)
{
    m->open = 0;
    protect_all(m);
}

/* A free place in the table, which doubles when there is none. */
static struct fake_buffer *place(struct fake_memory *m)
{
    uint32_t i = 0, more = m->n ? 2 * m->n : 16;
    while (i < m->n && m->buffers[i].at) i++;
    if (i < m->n) return &m->buffers[i];
    struct fake_buffer *table = m->host->alloc(m->host->ctx, more * sizeof *table, 16);
    if (!table) return NULL;
    memset(table, 0, more * sizeof *table);
    if (m->n) memcpy(table, m->buffers, m->n * sizeof *table);
    m->host->free(m->host->ctx, m->buffers);
    m->buffers = table;
    m->n = more;
    return &m->buffers[i];
}

kopi_status fake_alloc(struct fake_memory *m, uint64_t size, void **handle)
{
    struct fake_buffer *b = place(m);
    uint64_t mapped = (size / PAGE + 1) * PAGE;
    *handle = NULL;
    void *at =
        b ? mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
    if (at == MAP_FAILED) return m->host->fail(m->host->ctx, KOPI_E_NOMEM, "memory of the device");
    *b = (struct fake_buffer){at, size, mapped};
    memset(at, 0xff, size);
    protect(m, b);
    m->host->account(m->host->ctx, KOPI_SPACE_DEVICE, (int64_t)size);
    *handle = (void *)(uintptr_t)(FIRST + (b - m->buffers));
    return KOPI_OK;
}

static struct fake_buffer *find(const struct fake_memory *m, const void *handle)
{
    uintptr_t h = (uintptr_t)handle;
    return h >= FIRST && h < FIRST + m->n && m->buffers[h - FIRST].at ? &m->buffers[h - FIRST] : NULL;
}

void fake_free(struct fake_memory *m, void *handle)
{
    struct fake_buffer *b = find(m, handle);
    if (!b) return;
    munmap(b->at, b->mapped);
    m->host->account(m->host->ctx, KOPI_SPACE_DEVICE, -(int64_t)b->size);
    *b = (struct fake_buffer){0};
}

void fake_end(struct fake_memory *m) { m->host->free(m->host->ctx, m->buffers); }

char *fake_at(struct fake_memory *m, void *handle, uint64_t off, uint64_t n)
{
    const struct fake_buffer *b = find(m, handle);
    if (!b || off > b->size || n > b->size - off) {
        m->host->fail(m->host->ctx, KOPI_E_INVALID,
                      b ? "outside of a buffer of the device" : "what should be a buffer of the device is none");
        return NULL;
    }
    return b->at + off;
}
