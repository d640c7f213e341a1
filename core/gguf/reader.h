/* core/gguf/reader.h - the parsed model, and the steps of opening one part of it: header, metadata, directory; then the
 * index over all parts. */
#ifndef KOPI_CORE_GGUF_READER_H
#define KOPI_CORE_GGUF_READER_H

#include "base/error.h"
#include "base/hash.h"
#include "gguf/cursor.h"
#include "gguf/part.h"

/* Files beyond these are refused, with the limit in the message. */
enum {
    KOPI__GGUF_MAX_KEY = 65535,
    KOPI__GGUF_MAX_NAME = 63,
    KOPI__GGUF_MAX_DIMS = 4,
    KOPI__GGUF_MIN_ALIGNMENT = 8,
    KOPI__GGUF_DEFAULT_ALIGNMENT = 32,
    KOPI__GGUF_MAX_ALIGNMENT = 1 << 20,
    KOPI__GGUF_MAX_ENTRIES = 1 << 20, /* keys, and tensors, of all parts */
    KOPI__GGUF_MAX_PARTS = 4096
};

struct kopi_gguf_key {
    struct kopi_gguf_kv kv;
    uint32_t part;
    UT_hash_handle hh;
};

struct kopi_gguf_entry {
    struct kopi_gguf_tensor tensor;
    char name[KOPI__GGUF_MAX_NAME + 1];
    UT_hash_handle hh;
};

struct kopi_gguf {
    struct kopi_gguf_part *parts;
    uint32_t n_parts, version, alignment; /* version of the first part; smallest alignment */
    unsigned flags;                       /* KOPI__GGUF_ANY_TYPE, while it is opened */
    uint64_t n_keys, n_entries;
    struct kopi_gguf_key *keys, *key_index; /* in file order, and the hash over them */
    struct kopi_gguf_entry *entries, *entry_index;
    const kopi_dtype_info *dtypes; /* while opening */
    uint32_t n_dtypes;
};

/* Keys that each part of a split model has for itself; those of the first part are also among g->keys. */
enum kopi_gguf_own { KOPI__GGUF_ALIGNMENT, KOPI__GGUF_SPLIT_NO, KOPI__GGUF_SPLIT_COUNT, KOPI__GGUF_SPLIT_TENSORS,
                     KOPI__GGUF_N_OWN };

/* One part while it is parsed. */
struct kopi_gguf_reader {
    struct kopi_gguf *g;
    uint32_t part, version;
    struct kopi_gguf_cursor at;
    uint64_t n_kv, n_tensors; /* as the header says, bounded by the file's size */
    uint64_t own[KOPI__GGUF_N_OWN];
    bool has[KOPI__GGUF_N_OWN];
    kopi_error *err;
};

/* KOPI_E_MODEL with the path of the part before the text. */
kopi_status kopi__gguf_fail(const struct kopi_gguf_reader *r, const char *fmt, ...) KOPI__PRINTF(2, 3);
/* The arguments of "%.*s" for a string out of a file. */
#define KOPI__GGUF_SHOW(s) (int)((s).len < 100 ? (s).len : 100), (s).data

/* header.c: magic, version, counts. */
kopi_status kopi__gguf_read_header(struct kopi_gguf_reader *r);
/* meta.c: n_kv entries behind g->keys, and r->own. */
kopi_status kopi__gguf_read_meta(struct kopi_gguf_reader *r);
/* directory.c: n_tensors entries behind g->entries, each inside the file, none overlapping another. */
kopi_status kopi__gguf_read_directory(struct kopi_gguf_reader *r);
/* index.c: both hashes, once all parts are read; duplicates are refused. */
kopi_status kopi__gguf_index(struct kopi_gguf *g, kopi_error *err);
void kopi__gguf_index_free(struct kopi_gguf *g);

/* As kopi__gguf_open, for one file that the caller holds in memory and keeps until the close (tests, fuzzing). */
kopi_status kopi__gguf_open_memory(const void *data, uint64_t size, const char *name, struct kopi_gguf **out,
                                   kopi_error *err);

#endif
