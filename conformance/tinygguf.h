/* conformance/tinygguf.h - writes small GGUF files: metadata and tensors. For `kopi backends check` and for tests.
 * Nothing here fails softly: who cannot write his fixture aborts. */
#ifndef KOPI_CF_TINYGGUF_H
#define KOPI_CF_TINYGGUF_H

#include <kopi/dtype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tiny; /* a file under construction */

struct tiny *tiny_new(void);
/* Appends an entry or a tensor; everything is copied. Keys are written as given, also twice. */
void tiny_u32(struct tiny *t, const char *key, uint32_t v);
void tiny_i32(struct tiny *t, const char *key, int32_t v);
void tiny_u64(struct tiny *t, const char *key, uint64_t v);
void tiny_f32(struct tiny *t, const char *key, float v);
void tiny_bool(struct tiny *t, const char *key, bool v);
void tiny_str(struct tiny *t, const char *key, const char *v);
void tiny_arr_str(struct tiny *t, const char *key, const char *const *v, size_t n);
void tiny_arr_f32(struct tiny *t, const char *key, const float *v, size_t n);
void tiny_arr_i32(struct tiny *t, const char *key, const int32_t *v, size_t n);
void tiny_raw(struct tiny *t, const char *key, uint32_t type, const void *bytes, size_t n); /* any type, any bytes */
void tiny_tensor(struct tiny *t, const char *name, uint32_t dtype, const int64_t *ne, uint32_t n_dims, const void *data,
                 size_t size);
/* [n, rows] (rows 0: a vector [n]) from F32 values, stored as F32, F16 or Q8_0. */
void tiny_matrix(struct tiny *t, const char *name, uint32_t dtype, int64_t n, int64_t rows, const float *v);
void tiny_write(struct tiny *t, const char *path); /* version 3, alignment 32 */
void tiny_free(struct tiny *t);

/* Uniform in [-1, 1), a stream per *state. */
float tiny_random(uint64_t *state);

#endif
