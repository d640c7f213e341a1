#include "gguf/reader.h"

#include <stdlib.h>

/* ---- types ------------------------------------------------------------------------------------------------------- */

struct block { const char *name; uint32_t len, bytes; };

static const struct { uint32_t id; struct block block; } known[] = {
#define ROW(name, id, len, bytes) {id, {#name, len, bytes}},
    KOPI_DTYPES(ROW)
#undef ROW
};

static const struct { uint32_t id; const char *name; } removed[] = {
    {4, "Q4_2"},      {5, "Q4_3"},        {31, "Q4_0_4_4"},    {32, "Q4_0_4_8"},
    {33, "Q4_0_8_8"}, {36, "IQ4_NL_4_4"}, {37, "IQ4_NL_4_8"}, {38, "IQ4_NL_8_8"},
};

static bool find_block(const struct kopi_gguf *g, uint32_t id, struct block *out)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].id == id) {
            *out = known[i].block;
            return true;
        }
    for (uint32_t i = 0; i < g->n_dtypes; i++) {
        const kopi_dtype_info *d = &g->dtypes[i];
        if (d->id != id || !d->block_len || !d->block_bytes) continue;
        *out = (struct block){d->name, d->block_len, d->block_bytes};
        return true;
    }
    return false;
}

static bool is_vendor(uint32_t id) { return id >= KOPI_DTYPE_VENDOR_FIRST && id <= KOPI_DTYPE_VENDOR_LAST; }

static kopi_status unknown_type(const struct kopi_gguf_reader *r, const struct kopi_gguf_tensor *t)
{
    for (size_t i = 0; i < sizeof removed / sizeof *removed; i++)
        if (removed[i].id == t->dtype)
            return kopi__gguf_fail(r, "tensor \"%s\" has type %u (%s), which was removed from the format", t->name,
                                   t->dtype, removed[i].name);
    if (is_vendor(t->dtype))
        return kopi__gguf_fail(
            r, "tensor \"%s\" has type %u (0x%08x), a type that a backend brings: choose that backend (-b NAME)",
            t->name, t->dtype, t->dtype);
    return kopi__gguf_fail(r, "tensor \"%s\" has type %u, which neither kopi nor the backend knows", t->name, t->dtype);
}

/* ---- one entry --------------------------------------------------------------------------------------------------- */

static kopi_status past_end(const struct kopi_gguf_reader *r, uint64_t i)
{
    return kopi__gguf_fail(r, "entry %llu of %llu of the tensor directory runs past the end of the file",
                           (unsigned long long)i + 1, (unsigned long long)r->n_tensors);
}

static kopi_status read_name(struct kopi_gguf_reader *r, uint64_t i, char name[KOPI__GGUF_MAX_NAME + 1])
{
    struct kopi_gguf_str s;
    if (!kopi__gguf_read_str(&r->at, &s)) return past_end(r, i);
    if (!s.len) return kopi__gguf_fail(r, "tensor %llu has an empty name", (unsigned long long)i + 1);
    if (s.len > KOPI__GGUF_MAX_NAME)
        return kopi__gguf_fail(r, "the name of tensor %llu (\"%.*s\") has %llu bytes, at most %d are allowed",
                               (unsigned long long)i + 1, KOPI__GGUF_SHOW(s), (unsigned long long)s.len,
                               KOPI__GGUF_MAX_NAME);
    if (memchr(s.data, 0, s.len))
        return kopi__gguf_fail(r, "the name of tensor %llu (\"%.*s\"...) contains a zero byte",
                               (unsigned long long)i + 1, KOPI__GGUF_SHOW(s));
    memcpy(name, s.data, s.len);
    return KOPI_OK;
}

static kopi_status read_shape(struct kopi_gguf_reader *r, uint64_t i, struct kopi_gguf_tensor *t)
{
    if (!kopi__gguf_read_u32(&r->at, &t->n_dims)) return past_end(r, i);
    if (!t->n_dims || t->n_dims > KOPI__GGUF_MAX_DIMS)
        return kopi__gguf_fail(r, "tensor \"%s\" has %u dimensions, it must have 1 to %d", t->name, t->n_dims,
                               KOPI__GGUF_MAX_DIMS);
    for (uint32_t d = 0; d < KOPI__GGUF_MAX_DIMS; d++) {
        uint64_t n = 1;
        if (d < t->n_dims && !kopi__gguf_read_u64(&r->at, &n)) return past_end(r, i);
        if (!n || n > INT64_MAX)
            return kopi__gguf_fail(r, "dimension %u of tensor \"%s\" is %lld, it must be positive", d, t->name,
                                   (long long)n);
        t->ne[d] = (int64_t)n;
    }
    return KOPI_OK;
}

static kopi_status set_size(const struct kopi_gguf_reader *r, struct kopi_gguf_tensor *t)
{
    struct block b;
    if (!find_block(r->g, t->dtype, &b))
        return is_vendor(t->dtype) && r->g->flags & KOPI__GGUF_ANY_TYPE ? KOPI_OK : unknown_type(r, t);
    t->block_bytes = b.bytes;
    if (t->ne[0] % b.len)
        return kopi__gguf_fail(r, "tensor \"%s\" has rows of %lld values, %s needs a multiple of %u", t->name,
                               (long long)t->ne[0], b.name, b.len);
    bool fits = kopi__mul((uint64_t)t->ne[0] / b.len, b.bytes, &t->size);
    for (uint32_t d = 1; d < KOPI__GGUF_MAX_DIMS; d++) fits = fits && kopi__mul(t->size, (uint64_t)t->ne[d], &t->size);
    if (!fits)
        return kopi__gguf_fail(r, "the size of tensor \"%s\" (%lld x %lld x %lld x %lld) does not fit in 64 bits",
                               t->name, (long long)t->ne[0], (long long)t->ne[1], (long long)t->ne[2],
                               (long long)t->ne[3]);
    return KOPI_OK;
}

/* Leaves the offset in the data section in file_offset. */
static kopi_status read_entry(struct kopi_gguf_reader *r, uint64_t i, struct kopi_gguf_entry *e)
{
    struct kopi_gguf_tensor *t = &e->tensor;
    *e = (struct kopi_gguf_entry){.tensor = {.part = r->part}};
    t->name = e->name;
    kopi_status st = read_name(r, i, e->name);
    if (st == KOPI_OK) st = read_shape(r, i, t);
    if (st != KOPI_OK) return st;
    if (!kopi__gguf_read_u32(&r->at, &t->dtype) || !kopi__gguf_read_u64(&r->at, &t->file_offset)) return past_end(r, i);
    return set_size(r, t);
}

/* ---- where the data is ------------------------------------------------------------------------------------------- */

/* begin: of the data section, which may lie past the end of the file. */
static kopi_status place(const struct kopi_gguf_reader *r, struct kopi_gguf_tensor *t, uint64_t begin)
{
    const struct kopi_gguf_part *part = &r->g->parts[r->part];
    uint64_t offset = t->file_offset, available = part->size > begin ? part->size - begin : 0;
    if (offset % r->own[KOPI__GGUF_ALIGNMENT])
        return kopi__gguf_fail(r, "tensor \"%s\" is at offset %llu, not a multiple of the alignment %llu", t->name,
                               (unsigned long long)offset, (unsigned long long)r->own[KOPI__GGUF_ALIGNMENT]);
    if (offset > available)
        return kopi__gguf_fail(r,
                               "tensor \"%s\" begins at offset %llu of the data, past its end at %llu: the file is "
                               "truncated or damaged",
                               t->name, (unsigned long long)offset, (unsigned long long)available);
    if (t->size > available - offset)
        return kopi__gguf_fail(
            r, "%llu of the %llu bytes of tensor \"%s\" are missing: the file is truncated or damaged",
            (unsigned long long)(t->size - (available - offset)), (unsigned long long)t->size, t->name);
    t->file_offset = begin + offset;
    t->data = part->data + t->file_offset;
    return KOPI_OK;
}

static int by_offset(const void *a, const void *b)
{
    uint64_t x = (*(struct kopi_gguf_tensor *const *)a)->file_offset;
    uint64_t y = (*(struct kopi_gguf_tensor *const *)b)->file_offset;
    return (x > y) - (x < y);
}

static kopi_status check_overlap(const struct kopi_gguf_reader *r, struct kopi_gguf_entry *entries)
{
    struct kopi_gguf_tensor **order = kopi__realloc_array(NULL, r->n_tensors, sizeof *order);
    if (!order) return kopi__nomem(r->err, "the tensor directory of a model");
    for (uint64_t i = 0; i < r->n_tensors; i++) order[i] = &entries[i].tensor;
    qsort(order, r->n_tensors, sizeof *order, by_offset);
    kopi_status st = KOPI_OK;
    for (uint64_t i = 1; i < r->n_tensors && st == KOPI_OK; i++)
        if (order[i]->file_offset - order[i - 1]->file_offset < order[i - 1]->size)
            st = kopi__gguf_fail(r, "tensors \"%s\" and \"%s\" overlap at byte %llu of the file", order[i - 1]->name,
                                 order[i]->name, (unsigned long long)order[i]->file_offset);
    kopi__free(order);
    return st;
}

kopi_status kopi__gguf_read_directory(struct kopi_gguf_reader *r)
{
    struct kopi_gguf *g = r->g;
    struct kopi_gguf_entry *entries = kopi__realloc_array(g->entries, g->n_entries + r->n_tensors, sizeof *entries);
    if (!entries) return kopi__nomem(r->err, "the tensor directory of a model");
    g->entries = entries;
    entries += g->n_entries;
    kopi_status st = KOPI_OK;
    for (uint64_t i = 0; i < r->n_tensors && st == KOPI_OK; i++) st = read_entry(r, i, &entries[i]);
    uint64_t begin = (uint64_t)(r->at.p - g->parts[r->part].data);
    if (st == KOPI_OK && !kopi__pad(begin, r->own[KOPI__GGUF_ALIGNMENT], &begin))
        st = kopi__gguf_fail(r, "the data section begins past 2^64");
    for (uint64_t i = 0; i < r->n_tensors && st == KOPI_OK; i++) st = place(r, &entries[i].tensor, begin);
    if (st == KOPI_OK) st = check_overlap(r, entries);
    if (st == KOPI_OK) g->n_entries += r->n_tensors;
    return st;
}
