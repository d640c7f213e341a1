#include "gguf/reader.h"

#include <stdarg.h>
#include <stdio.h>

enum { VERSION_MIN = 2, VERSION_MAX = 3 };
/* Bytes of the smallest entry: length, one byte of key, type, one byte of value; and of the smallest tensor: length,
 * one byte of name, number of dimensions, one dimension, type, offset. */
enum { MIN_KV = 8 + 1 + 4 + 1, MIN_TENSOR = 8 + 1 + 4 + 8 + 4 + 8 };

/* What people pass in place of a GGUF file, by its first four bytes. */
static const struct { char magic[5]; const char *what; } strangers[] = {
    {"FUGG", "is a GGUF file in the other byte order; kopi reads little-endian files"},
    {"tjgg", "is a GGJT file, the format before GGUF; convert the model again"},
    {"lmgg", "is a GGML file, the format before GGUF; convert the model again"},
    {"fmgg", "is a GGMF file, the format before GGUF; convert the model again"},
    {"vers", "is a Git LFS pointer, not the model itself; run git lfs pull"},
    {"<!DO", "is a web page, not a GGUF file"},
    {"<htm", "is a web page, not a GGUF file"},
    {"PK\3\4", "is a ZIP archive (a PyTorch model?), not a GGUF file"},
};

kopi_status kopi__gguf_fail(const struct kopi_gguf_reader *r, const char *fmt, ...)
{
    char text[sizeof r->err->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return kopi__fail(r->err, KOPI_E_MODEL, "%s: %s", r->g->parts[r->part].path, text);
}

static kopi_status short_header(const struct kopi_gguf_reader *r)
{
    return kopi__gguf_fail(r, "is not a GGUF file or was truncated: it ends inside the header, after %llu bytes",
                           (unsigned long long)r->g->parts[r->part].size);
}

static kopi_status check_magic(struct kopi_gguf_reader *r)
{
    char magic[5] = {0};
    if (!kopi__gguf_read(&r->at, magic, 4)) return short_header(r);
    if (!memcmp(magic, "GGUF", 4)) return KOPI_OK;
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++)
        if (!memcmp(magic, strangers[i].magic, 4)) return kopi__gguf_fail(r, "%s", strangers[i].what);
    return kopi__gguf_fail(r, "is not a GGUF file: it begins with the bytes %02x %02x %02x %02x", (uint8_t)magic[0],
                           (uint8_t)magic[1], (uint8_t)magic[2], (uint8_t)magic[3]);
}

static kopi_status check_version(struct kopi_gguf_reader *r)
{
    if (!kopi__gguf_read_u32(&r->at, &r->version)) return short_header(r);
    if (r->version >= VERSION_MIN && r->version <= VERSION_MAX) return KOPI_OK;
    uint32_t swapped = __builtin_bswap32(r->version);
    if (swapped && swapped <= 0xffff) /* numbers of versions are small */
        return kopi__gguf_fail(
            r, "is in the other byte order (GGUF version %u, big-endian); kopi reads little-endian files", swapped);
    return kopi__gguf_fail(r, "GGUF version %u is not supported, only %d and %d are; convert the model again",
                           r->version, VERSION_MIN, VERSION_MAX);
}

/* n records of at least min bytes each have to fit into what is left of the file, and into the limit over all parts. */
static kopi_status check_count(const struct kopi_gguf_reader *r, const char *what, uint64_t n, uint64_t before,
                               uint64_t min)
{
    uint64_t left = kopi__gguf_left(&r->at);
    if (n > left / min)
        return kopi__gguf_fail(r, "the header announces %llu %s, more than its %llu bytes can hold",
                               (unsigned long long)n, what, (unsigned long long)left);
    if (n > KOPI__GGUF_MAX_ENTRIES - before)
        return kopi__gguf_fail(r, "the header announces %llu %s, at most %d in all are supported",
                               (unsigned long long)n, what, KOPI__GGUF_MAX_ENTRIES);
    return KOPI_OK;
}

kopi_status kopi__gguf_read_header(struct kopi_gguf_reader *r)
{
    kopi_status st = check_magic(r);
    if (st == KOPI_OK) st = check_version(r);
    if (st != KOPI_OK) return st;
    if (!kopi__gguf_read_u64(&r->at, &r->n_tensors) || !kopi__gguf_read_u64(&r->at, &r->n_kv)) return short_header(r);
    st = check_count(r, "tensors", r->n_tensors, r->g->n_entries, MIN_TENSOR);
    if (st == KOPI_OK) st = check_count(r, "keys", r->n_kv, r->g->n_keys, MIN_KV);
    return st;
}
