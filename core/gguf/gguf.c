#include "gguf/gguf.h"

#include "gguf/reader.h"
#include "gguf/split.h"
#include <stdio.h>

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static kopi_status parse_part(struct kopi_gguf *g, struct kopi_gguf_split *split, uint32_t i, kopi_error *err)
{
    struct kopi_gguf_part *part = &g->parts[i];
    struct kopi_gguf_reader r = {.g = g, .part = i, .at = {part->data, part->data + part->size}, .err = err};
    kopi_status st = kopi__gguf_read_header(&r);
    if (st == KOPI_OK) st = kopi__gguf_read_meta(&r);
    if (st == KOPI_OK) st = kopi__gguf_read_directory(&r);
    if (st == KOPI_OK) st = kopi__gguf_split_check(split, &r);
    if (st == KOPI_OK) st = kopi__gguf_part_settle(part, err);
    if (st != KOPI_OK) return st;
    uint32_t alignment = (uint32_t)r.own[KOPI__GGUF_ALIGNMENT];
    if (!i) g->version = r.version;
    if (!i || alignment < g->alignment) g->alignment = alignment;
    return KOPI_OK;
}

static kopi_status open_part(struct kopi_gguf *g, const struct kopi_gguf_split *split, unsigned flags, kopi_error *err)
{
    uint32_t i = g->n_parts;
    char *path = kopi__gguf_split_path(split, i);
    if (!path) return kopi__nomem(err, "the path of a model file");
    kopi_status st = kopi__gguf_part_open(&g->parts[g->n_parts++], path, flags, err);
    kopi__free(path);
    if (st == KOPI_OK || split->n == 1) return st;
    char prefix[64];
    snprintf(prefix, sizeof prefix, "part %u of %u", i + 1, split->n);
    return kopi__fail_prefix(err, prefix);
}

static kopi_status open_parts(struct kopi_gguf *g, struct kopi_gguf_split *split, unsigned flags, kopi_error *err)
{
    kopi_status st = KOPI_OK;
    while (g->n_parts < split->n && st == KOPI_OK) {
        st = open_part(g, split, flags, err);
        if (st == KOPI_OK) st = parse_part(g, split, g->n_parts - 1, err);
    }
    return st;
}

/* An empty model with room for n parts. */
static struct kopi_gguf *new_model(uint32_t n, kopi_error *err)
{
    struct kopi_gguf *g = kopi__calloc(1, sizeof *g);
    if (g) g->parts = kopi__calloc(n, sizeof *g->parts);
    if (g && g->parts) return g;
    kopi__free(g);
    kopi__nomem(err, "a model");
    return NULL;
}

static kopi_status finish(struct kopi_gguf *g, kopi_status st, struct kopi_gguf **out, kopi_error *err)
{
    if (st == KOPI_OK) st = kopi__gguf_index(g, err);
    g->dtypes = NULL;
    g->n_dtypes = 0;
    if (st == KOPI_OK)
        *out = g;
    else
        kopi__gguf_close(g);
    return st;
}

kopi_status kopi__gguf_open(const char *path, unsigned flags, const kopi_dtype_info *dtypes, uint32_t n_dtypes,
                            struct kopi_gguf **out, kopi_error *err)
{
    kopi_error mine; /* the steps below rely on one */
    if (!err) err = &mine;
    *out = NULL;
    struct kopi_gguf_split split = kopi__gguf_split_name(path);
    if (split.n > KOPI__GGUF_MAX_PARTS)
        return kopi__fail(err, KOPI_E_MODEL, "%s: is one of %u parts by its name, at most %d are supported", path,
                          split.n, KOPI__GGUF_MAX_PARTS);
    struct kopi_gguf *g = new_model(split.n, err);
    if (!g) return KOPI_E_NOMEM;
    g->dtypes = dtypes;
    g->n_dtypes = n_dtypes;
    g->flags = flags;
    return finish(g, open_parts(g, &split, flags, err), out, err);
}

kopi_status kopi__gguf_open_memory(const void *data, uint64_t size, const char *name, struct kopi_gguf **out,
                                   kopi_error *err)
{
    kopi_error mine;
    if (!err) err = &mine;
    *out = NULL;
    struct kopi_gguf_split split = {name, 0, 1, 0};
    struct kopi_gguf *g = new_model(1, err);
    if (!g) return KOPI_E_NOMEM;
    g->n_parts = 1;
    kopi_status st = kopi__gguf_part_lend(&g->parts[0], data, size, name, err);
    if (st == KOPI_OK) st = parse_part(g, &split, 0, err);
    return finish(g, st, out, err);
}

void kopi__gguf_close(struct kopi_gguf *g)
{
    if (!g) return;
    kopi__gguf_index_free(g);
    kopi__free(g->keys);
    kopi__free(g->entries);
    for (uint32_t i = 0; i < g->n_parts; i++) kopi__gguf_part_close(&g->parts[i]);
    kopi__free(g->parts);
    kopi__free(g);
}

/* ---- what it holds ----------------------------------------------------------------------------------------------- */

const char *kopi__gguf_path(const struct kopi_gguf *g) { return g->parts[0].path; }
uint32_t kopi__gguf_version(const struct kopi_gguf *g) { return g->version; }
uint32_t kopi__gguf_alignment(const struct kopi_gguf *g) { return g->alignment; }
uint32_t kopi__gguf_n_parts(const struct kopi_gguf *g) { return g->n_parts; }
bool kopi__gguf_is_mapped(const struct kopi_gguf *g) { return g->parts[0].source == KOPI__GGUF_MAPPED; }

uint64_t kopi__gguf_file_size(const struct kopi_gguf *g)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < g->n_parts; i++) sum += g->parts[i].size;
    return sum;
}

uint64_t kopi__gguf_n_kv(const struct kopi_gguf *g) { return g->n_keys; }
const struct kopi_gguf_kv *kopi__gguf_kv_at(const struct kopi_gguf *g, uint64_t i) { return &g->keys[i].kv; }
uint64_t kopi__gguf_n_tensors(const struct kopi_gguf *g) { return g->n_entries; }

const struct kopi_gguf_tensor *kopi__gguf_tensor_at(const struct kopi_gguf *g, uint64_t i)
{
    return &g->entries[i].tensor;
}

kopi_status kopi__gguf_check_unchanged(const struct kopi_gguf *g, kopi_error *err)
{
    kopi_status st = KOPI_OK;
    for (uint32_t i = 0; i < g->n_parts && st == KOPI_OK; i++) st = kopi__gguf_part_check(&g->parts[i], err);
    return st;
}

/* ---- advice to the kernel ---------------------------------------------------------------------------------------- */

void kopi__gguf_drop(const struct kopi_gguf *g, const struct kopi_gguf_tensor *t, const void *begin, uint64_t size)
{
    kopi__gguf_part_drop(&g->parts[t->part], begin, size);
}

void kopi__gguf_willneed(const struct kopi_gguf *g)
{
    for (uint32_t i = 0; i < g->n_parts; i++) kopi__gguf_part_willneed(&g->parts[i]);
}
