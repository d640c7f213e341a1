#include "text/jinja/arena.h"
#include "base/mem.h"
#include <stdalign.h>
#include <string.h>

enum { FIRST_BLOCK = 16 << 10, LARGEST_BLOCK = 1 << 20 };

struct kopi_jblock {
    struct kopi_jblock *next;
    size_t size;
    alignas(max_align_t) char data[];
};

void kopi__jarena_init(struct kopi_jarena *a, size_t limit, uint64_t work)
{
    *a = (struct kopi_jarena){.limit = limit, .work = work};
}

void kopi__jarena_free(struct kopi_jarena *a)
{
    for (struct kopi_jblock *b = a->blocks, *next; b; b = next) {
        next = b->next;
        kopi__free(b);
    }
    a->blocks = NULL;
    a->at = a->end = NULL;
}

static void *refuse(struct kopi_jarena *a, enum kopi_jstop why)
{
    if (!a->stop) a->stop = why;
    return NULL;
}

/* A block that holds `size`; large requests get their own and leave the current block in use. */
static void *from_new_block(struct kopi_jarena *a, size_t size)
{
    size_t want = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
    if (want > LARGEST_BLOCK) want = LARGEST_BLOCK;
    bool own = size > want / 4;
    if (own) want = size;
    struct kopi_jblock *b = kopi__alloc(sizeof *b + want);
    if (!b) return refuse(a, KOPI_JSTOP_NOMEM);
    b->size = own && a->blocks ? a->blocks->size : want; /* growth goes on from the ordinary blocks */
    b->next = a->blocks;
    a->blocks = b;
    if (!own) {
        a->at = b->data + size;
        a->end = b->data + want;
    }
    return b->data;
}

void *kopi__jalloc(struct kopi_jarena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > a->limit) return refuse(a, KOPI_JSTOP_BYTES);
    size = size ? (size + align - 1) & ~(align - 1) : align;
    if (a->used + size > a->limit) return refuse(a, KOPI_JSTOP_BYTES);
    if (!kopi__jwork(a, size / 64)) return NULL;
    void *p = a->at;
    if (a->at && (size_t)(a->end - a->at) >= size) a->at += size;
    else p = from_new_block(a, size);
    if (p) a->used += size;
    return p;
}

void *kopi__jzalloc(struct kopi_jarena *a, size_t n, size_t size)
{
    uint64_t total;
    if (!kopi__mul(n, size, &total)) return refuse(a, KOPI_JSTOP_BYTES);
    void *p = kopi__jalloc(a, total);
    if (p) memset(p, 0, total);
    return p;
}

bool kopi__jgrow(struct kopi_jarena *a, void **v, uint32_t n, uint32_t *cap, size_t size)
{
    if (n < *cap) return true;
    if (n > UINT32_MAX / 4) return refuse(a, KOPI_JSTOP_BYTES);
    uint32_t bigger = n ? n * 2 : 4;
    void *p = kopi__jalloc(a, bigger * size);
    if (!p) return false;
    if (n) memcpy(p, *v, n * size);
    *v = p;
    *cap = bigger;
    return true;
}
