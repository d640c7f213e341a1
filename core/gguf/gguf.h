/* core/gguf/gguf.h - GGUF reader: a bounded cursor over a read-only mapping gives metadata and the tensor directory.
 * Nothing in the file is trusted: every count, length and offset is checked before it is used (format specification:
 * ggml/docs/gguf.md). Versions 2 and 3, little endian, split files. The object is immutable after open: [any thread].
 */
#ifndef KOPI_CORE_GGUF_GGUF_H
#define KOPI_CORE_GGUF_GGUF_H

#include <kopi/dtype.h>
#include <kopi/kopi.h>
#include <stdbool.h>

enum kopi_gguf_type {
    KOPI_GGUF_U8 = 0, KOPI_GGUF_I8, KOPI_GGUF_U16, KOPI_GGUF_I16, KOPI_GGUF_U32, KOPI_GGUF_I32, KOPI_GGUF_F32,
    KOPI_GGUF_BOOL, KOPI_GGUF_STRING, KOPI_GGUF_ARRAY, KOPI_GGUF_U64, KOPI_GGUF_I64, KOPI_GGUF_F64, KOPI_GGUF_N_TYPES
};

/* Bytes in the mapping, not NUL-terminated. */
struct kopi_gguf_str { const char *data; uint64_t len; };

/* One metadata entry. For a scalar n is 1 and elem_type == type; for an array type is ARRAY and elem_type that of the
 * elements (nested arrays are refused at open). `value` points to the raw little-endian bytes of the value / first
 * element, possibly unaligned: use the accessors. A string is its 64-bit length and its bytes. Of a split model the
 * first part's entries come first; split.* and general.alignment of the other parts are left out. */
struct kopi_gguf_kv {
    struct kopi_gguf_str key;
    uint32_t type, elem_type;
    uint64_t n;
    const uint8_t *value;
    uint64_t value_size; /* bytes of all elements */
};

struct kopi_gguf_tensor {
    const char *name;     /* NUL-terminated, at most 63 bytes */
    uint32_t dtype;       /* GGUF id, known to dtype.h or to one of the plugin's own types */
    uint32_t n_dims;      /* 1..4 */
    int64_t ne[4];        /* ne[0] is contiguous; unused ones are 1 */
    uint64_t size;        /* bytes, without padding; 0: the type is unknown (KOPI__GGUF_ANY_TYPE) */
    const uint8_t *data;  /* in the mapping (or the private copy), aligned to general.alignment */
    uint32_t part;        /* which file of a split model */
    uint32_t block_bytes; /* of dtype; 0: the type is unknown */
    uint64_t file_offset; /* of data in that file */
};

struct kopi_gguf;

enum {
    KOPI__GGUF_NO_MMAP = 1, /* read into private memory instead of mapping */
    KOPI__GGUF_ANY_TYPE =
        2 /* types of a backend's own that aren't in `dtypes` are taken too, without their sizes: to look at a file */
};

/* Opens a model; path may be any part of a split model (-00001-of-0000N.gguf), all parts are opened. `dtypes`: types
 * beyond dtype.h that a backend declares (n may be 0). Errors: KOPI_E_IO (cannot be read: errno text), KOPI_E_MODEL
 * (one line naming file, key or tensor, value and limit), KOPI_E_NOMEM. */
kopi_status kopi__gguf_open(const char *path, unsigned flags, const kopi_dtype_info *dtypes, uint32_t n_dtypes,
                            struct kopi_gguf **out, kopi_error *err);
void kopi__gguf_close(struct kopi_gguf *g); /* NULL allowed */

const char *kopi__gguf_path(const struct kopi_gguf *g);
uint32_t kopi__gguf_version(const struct kopi_gguf *g);
uint32_t kopi__gguf_alignment(const struct kopi_gguf *g);
uint32_t kopi__gguf_n_parts(const struct kopi_gguf *g);
uint64_t kopi__gguf_file_size(const struct kopi_gguf *g); /* of all parts */
bool kopi__gguf_is_mapped(const struct kopi_gguf *g);

uint64_t kopi__gguf_n_kv(const struct kopi_gguf *g);
const struct kopi_gguf_kv *kopi__gguf_kv_at(const struct kopi_gguf *g, uint64_t i);
const struct kopi_gguf_kv *kopi__gguf_find(const struct kopi_gguf *g, const char *key); /* hash; NULL if absent */
uint64_t kopi__gguf_n_tensors(const struct kopi_gguf *g);
const struct kopi_gguf_tensor *kopi__gguf_tensor_at(const struct kopi_gguf *g, uint64_t i);
const struct kopi_gguf_tensor *kopi__gguf_tensor(const struct kopi_gguf *g,
                                                 const char *name); /* hash; NULL if absent */

/* Element i of a scalar (i = 0) or array entry. True if the element has a compatible type: any integer type whose value
 * fits (and not BOOL); F32 or F64 or integer for f64; BOOL; STRING. */
bool kopi__gguf_get_u64(const struct kopi_gguf_kv *kv, uint64_t i, uint64_t *out);
bool kopi__gguf_get_i64(const struct kopi_gguf_kv *kv, uint64_t i, int64_t *out);
bool kopi__gguf_get_f64(const struct kopi_gguf_kv *kv, uint64_t i, double *out);
bool kopi__gguf_get_bool(const struct kopi_gguf_kv *kv, uint64_t i, bool *out);
/* Strings of an array are found by walking: O(1) for the next index after the last one only through the iterator. */
bool kopi__gguf_get_str(const struct kopi_gguf_kv *kv, uint64_t i, struct kopi_gguf_str *out);
/* Of an entry that is no array. */
bool kopi__gguf_bool(const struct kopi_gguf_kv *kv, bool *out);
bool kopi__gguf_str(const struct kopi_gguf_kv *kv, struct kopi_gguf_str *out);
/* A number of its type, shortest as kopi__format_f32 and kopi__format_f64 write it; "?" if it is none. */
const char *kopi__gguf_number_text(const struct kopi_gguf_kv *kv, char *buf, size_t n);
struct kopi_gguf_iter { const uint8_t *p; uint64_t left; };
struct kopi_gguf_iter kopi__gguf_strings(const struct kopi_gguf_kv *kv); /* kv must hold strings */
bool kopi__gguf_next(struct kopi_gguf_iter *it, struct kopi_gguf_str *out);

const char *kopi__gguf_type_name(uint32_t type); /* "u32", ...; "?" if unknown */

/* Tells the kernel that these bytes of a tensor will not be read again (page-rounded inwards). */
void kopi__gguf_drop(const struct kopi_gguf *g, const struct kopi_gguf_tensor *t, const void *begin, uint64_t size);
/* KOPI_E_IO naming the file if one that is mapped was written to (by size and time) since it was opened: what was
 * computed since then may be wrong. A file that was renamed or removed is as it was. One system call per part. */
kopi_status kopi__gguf_check_unchanged(const struct kopi_gguf *g, kopi_error *err);
/* Read ahead of the whole file, asynchronously. */
void kopi__gguf_willneed(const struct kopi_gguf *g);

/* Installs a SIGBUS handler that turns "the file was truncated or lost while mapped" into one line on stderr and exit
 * code 4, after before_exit (async-signal-safe; NULL: nothing); other SIGBUS keep their default action. For programs
 * (the kopi command), never called by the library itself. */
void kopi__gguf_guard_sigbus(void (*before_exit)(void));

#endif
