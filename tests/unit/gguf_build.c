#include "gguf_build.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

void gguf_u16(struct kopi_buf *b, uint16_t v) { ck_assert(kopi__buf_add(b, &v, sizeof v)); }
void gguf_u32(struct kopi_buf *b, uint32_t v) { ck_assert(kopi__buf_add(b, &v, sizeof v)); }
void gguf_u64(struct kopi_buf *b, uint64_t v) { ck_assert(kopi__buf_add(b, &v, sizeof v)); }

void gguf_bytes(struct kopi_buf *b, const void *bytes, uint64_t n)
{
    gguf_u64(b, n);
    ck_assert(kopi__buf_add(b, bytes, n));
}

void gguf_str(struct kopi_buf *b, const char *s) { gguf_bytes(b, s, strlen(s)); }

void gguf_zero(struct kopi_buf *b, size_t n)
{
    while (n--) ck_assert(kopi__buf_char(b, 0));
}

void gguf_pad(struct kopi_buf *b, size_t align) { gguf_zero(b, (align - b->len % align) % align); }

void gguf_header(struct kopi_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv)
{
    ck_assert(kopi__buf_str(b, "GGUF"));
    gguf_u32(b, version);
    gguf_u64(b, n_tensors);
    gguf_u64(b, n_kv);
}

void gguf_key(struct kopi_buf *b, const char *key, uint32_t type)
{
    gguf_str(b, key);
    gguf_u32(b, type);
}

void gguf_kv_u32(struct kopi_buf *b, const char *key, uint32_t v)
{
    gguf_key(b, key, KOPI_GGUF_U32);
    gguf_u32(b, v);
}

void gguf_kv_str(struct kopi_buf *b, const char *key, const char *v)
{
    gguf_key(b, key, KOPI_GGUF_STRING);
    gguf_str(b, v);
}

void gguf_array(struct kopi_buf *b, const char *key, uint32_t elem_type, uint64_t n)
{
    gguf_key(b, key, KOPI_GGUF_ARRAY);
    gguf_u32(b, elem_type);
    gguf_u64(b, n);
}

void gguf_tensor(struct kopi_buf *b, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t dtype,
                 uint64_t offset)
{
    gguf_str(b, name);
    gguf_u32(b, n_dims);
    for (uint32_t i = 0; i < n_dims; i++) gguf_u64(b, dims[i]);
    gguf_u32(b, dtype);
    gguf_u64(b, offset);
}

void gguf_write(const struct kopi_buf *b, const char *path)
{
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "cannot write %s", path);
    if (b->len) ck_assert_uint_eq(fwrite(b->data, 1, b->len, f), b->len);
    ck_assert_int_eq(fclose(f), 0);
}
