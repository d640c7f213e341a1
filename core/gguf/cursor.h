/* core/gguf/cursor.h - a bounded position in a file's bytes: the only way in which the parser reads. [any]
 * Each function returns false, and leaves the cursor where it is, when fewer bytes are left than it needs. */
#ifndef KOPI_CORE_GGUF_CURSOR_H
#define KOPI_CORE_GGUF_CURSOR_H

#include "gguf/gguf.h"
#include <stddef.h>
#include <string.h>

struct kopi_gguf_cursor {
    const uint8_t *p, *end;
};

static inline uint64_t kopi__gguf_left(const struct kopi_gguf_cursor *c) { return (uint64_t)(c->end - c->p); }

static inline bool kopi__gguf_skip(struct kopi_gguf_cursor *c, uint64_t n)
{
    if (n > kopi__gguf_left(c)) return false;
    c->p += n;
    return true;
}

static inline bool kopi__gguf_read(struct kopi_gguf_cursor *c, void *out, size_t n)
{
    if (n > kopi__gguf_left(c)) return false;
    memcpy(out, c->p, n);
    c->p += n;
    return true;
}

static inline bool kopi__gguf_read_u32(struct kopi_gguf_cursor *c, uint32_t *out)
{
    return kopi__gguf_read(c, out, sizeof *out);
}

static inline bool kopi__gguf_read_u64(struct kopi_gguf_cursor *c, uint64_t *out)
{
    return kopi__gguf_read(c, out, sizeof *out);
}

/* A 64-bit length and as many bytes. */
static inline bool kopi__gguf_read_str(struct kopi_gguf_cursor *c, struct kopi_gguf_str *out)
{
    struct kopi_gguf_cursor at = *c;
    if (!kopi__gguf_read_u64(&at, &out->len)) return false;
    out->data = (const char *)at.p;
    if (!kopi__gguf_skip(&at, out->len)) return false;
    *c = at;
    return true;
}

#endif
