/* Import of weights: rows are repacked by the whole team straight from the file's mapping into slabs of huge pages.
 * Many small weights share a slab; a slab goes with its last weight. */
#include "threaded.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { HUGE = 2 << 20, SLAB = 32 << 20, RELEASE = 4 << 20 /* bytes of a source that are given back at a time */ };

struct kt_slab {
    struct kt_slab *next;
    char *memory;
    uint64_t size, used;
    uint32_t n_weights;
};

void *kt_alloc(const kopi_host *host, uint64_t size, uint64_t align) { return host->alloc(host->ctx, size, align); }

void *kt_calloc(const kopi_host *host, uint64_t n, uint64_t size)
{
    if (size && n > UINT64_MAX / size) return NULL;
    void *p = kt_alloc(host, n * size, 64);
    if (p) memset(p, 0, n * size);
    return p;
}

void kt_free(const kopi_host *host, void *p)
{
    if (p) host->free(host->ctx, p);
}

kopi_status kt_nomem(const kopi_host *host, const char *what)
{
    char text[160];
    snprintf(text, sizeof text, "no memory for %s", what);
    return host->fail(host->ctx, KOPI_E_NOMEM, text);
}

/* ---- slabs ------------------------------------------------------------------------------------------------------- */

static uint64_t pad(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

static struct kt_slab *new_slab(struct kt *kt, uint64_t size)
{
    struct kt_slab *s = kt_calloc(kt->host, 1, sizeof *s);
    if (!s) return NULL;
    s->size = pad(size, HUGE);
    s->memory = kt_alloc(kt->host, s->size, HUGE);
    if (!s->memory) {
        kt_free(kt->host, s);
        return NULL;
    }
    madvise(s->memory, s->size, MADV_HUGEPAGE); /* a wish: without it all works, slower */
    s->next = kt->slabs;
    kt->slabs = s;
    return s;
}

/* Memory for one weight, in the newest slab if it fits there. */
static bool take(struct kt *kt, struct kt_weight *w, uint64_t size)
{
    struct kt_slab *s = kt->slabs;
    size = pad(size, 64);
    if (!s || s->size - s->used < size) s = new_slab(kt, size < SLAB ? SLAB : size);
    if (!s) return false;
    w->slab = s;
    w->groups = s->memory + s->used;
    s->used += size;
    s->n_weights++;
    return true;
}

static void give(struct kt *kt, struct kt_slab *s)
{
    if (--s->n_weights) return;
    for (struct kt_slab **at = &kt->slabs; *at; at = &(*at)->next)
        if (*at == s) {
            *at = s->next;
            break;
        }
    kt_free(kt->host, s->memory);
    kt_free(kt->host, s);
}

/* ---- import ------------------------------------------------------------------------------------------------------ */

struct repack {
    const struct kt *kt;
    const kopi_weight *from;
    const struct kt_weight *to;
    bool whole; /* for all the roles of the weight: its source may go */
};

/* Rows [begin, end) of the source have been read. */
static void release(const struct repack *r, uint64_t begin, uint64_t end)
{
    const struct kt *kt = r->kt;
    uint64_t stride = (uint64_t)r->from->nb[1];
    if (r->whole && kt->release)
        kt->release->bytes(kt->host->ctx, (const char *)r->from->data + begin * stride, (end - begin) * stride);
}

static kopi_status repack(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    const struct repack *r = arg;
    const struct kt_weight *w = r->to;
    (void)team;
    uint64_t n_groups = (w->n + KT_ROWS - 1u) / KT_ROWS, stride = (uint64_t)r->from->nb[1];
    uint64_t g = n_groups * ith / nth, end = n_groups * (ith + 1) / nth, released = g * KT_ROWS;
    for (; g < end; g++) {
        uint64_t row = g * KT_ROWS, left = w->n - row, n = left < KT_ROWS ? left : KT_ROWS;
        w->kernel->repack((const char *)r->from->data + row * stride, stride, (uint32_t)n, w->k,
                          w->groups + g * w->group_bytes);
        if ((row + n - released) * stride < RELEASE) continue;
        release(r, released, row + n);
        released = row + n;
    }
    return KOPI_OK;
}

kopi_status kt_weight_import(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    struct kt *kt = be;
    const kopi_host *host = kt->host;
    out->mode = KOPI_WEIGHT_REF;
    out->roles = w->roles;
    out->handle = NULL;
    out->bytes = 0;
    out->layout = "as in the file";
    if (!(w->roles & KOPI_ROLE_LINEAR)) return KOPI_OK;
    const struct kt_linear *kernel = kt_linear_find(w->dtype, kt->level);
    if (!kernel || w->ne[0] < 1 || w->ne[0] > UINT32_MAX || w->ne[1] < 1 || w->ne[1] > INT32_MAX)
        return host->fail(host->ctx, KOPI_E_UNSUPPORTED, "type or shape of a weight of LINEAR");
    struct kt_weight *handle = kt_calloc(host, 1, sizeof *handle);
    if (!handle) return kt_nomem(host, w->name);
    handle->kernel = kernel;
    handle->k = (uint32_t)w->ne[0];
    handle->n = (uint32_t)w->ne[1];
    handle->group_bytes = kernel->group_bytes(handle->k);
    uint64_t bytes = handle->group_bytes * ((handle->n + KT_ROWS - 1u) / KT_ROWS);
    if (!take(kt, handle, bytes)) {
        kt_free(host, handle);
        return kt_nomem(host, w->name);
    }
    out->roles = w->roles & (KOPI_ROLE_LINEAR | KOPI_ROLE_EMBED);
    struct repack r = {kt, w, handle, out->roles == w->roles};
    kopi_status s = host->team(host->ctx, repack, &r);
    if (s != KOPI_OK) {
        kt_weight_free(be, handle);
        return s;
    }
    out->mode = KOPI_WEIGHT_REPACKED;
    out->handle = handle;
    out->bytes = bytes;
    out->layout = "x16 interleaved";
    return KOPI_OK;
}

void kt_weight_free(void *be, void *handle)
{
    struct kt *kt = be;
    struct kt_weight *w = handle;
    give(kt, w->slab);
    kt_free(kt->host, w);
}
