/* tests/unit/gguf_build.h - the pieces of a GGUF file, for files that are wrong on purpose: every count, type, length
 * and offset is taken as given. Appended in file order. (tests/support/tinygguf.h writes whole, right models.) */
#ifndef KOPI_TESTS_UNIT_GGUF_BUILD_H
#define KOPI_TESTS_UNIT_GGUF_BUILD_H

#include "base/buf.h"
#include "gguf/gguf.h"
#include <stddef.h>
#include <stdint.h>

void gguf_u16(struct kopi_buf *b, uint16_t v);
void gguf_u32(struct kopi_buf *b, uint32_t v);
void gguf_u64(struct kopi_buf *b, uint64_t v);
void gguf_str(struct kopi_buf *b, const char *s);                  /* length and bytes */
void gguf_bytes(struct kopi_buf *b, const void *bytes, uint64_t n); /* the same for any bytes */
void gguf_zero(struct kopi_buf *b, size_t n);
void gguf_pad(struct kopi_buf *b, size_t align);

void gguf_header(struct kopi_buf *b, uint32_t version, uint64_t n_tensors, uint64_t n_kv);
void gguf_key(struct kopi_buf *b, const char *key, uint32_t type); /* the value follows */
void gguf_kv_u32(struct kopi_buf *b, const char *key, uint32_t v);
void gguf_kv_str(struct kopi_buf *b, const char *key, const char *v);
void gguf_array(struct kopi_buf *b, const char *key, uint32_t elem_type, uint64_t n); /* the elements follow */
/* n_dims of dims are written. */
void gguf_tensor(struct kopi_buf *b, const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t dtype,
                 uint64_t offset);

void gguf_write(const struct kopi_buf *b, const char *path); /* fails the test when it can't */

#endif
