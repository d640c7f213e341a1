#include "tinygguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T_U32 = 4, T_I32 = 5, T_F32 = 6, T_BOOL = 7, T_STR = 8, T_ARR = 9, T_U64 = 10, ALIGN = 32 };

struct bytes {
    unsigned char *p;
    size_t n, cap;
};
struct tiny {
    struct bytes kv, info, data;
    uint64_t n_kv, n_tensors;
};

static void die(const char *what)
{
    perror(what);
    abort();
}

static void put(struct bytes *b, const void *p, size_t n)
{
    if (b->n + n > b->cap) {
        b->cap = (b->n + n) * 2;
        if (!(b->p = realloc(b->p, b->cap))) die("realloc");
    }
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}
static void put_u32(struct bytes *b, uint32_t v) { put(b, &v, sizeof v); }
static void put_u64(struct bytes *b, uint64_t v) { put(b, &v, sizeof v); }
static void put_text(struct bytes *b, const char *s, size_t n)
{
    put_u64(b, n);
    put(b, s, n);
}
static void pad(struct bytes *b)
{
    static const char zero[ALIGN];
    put(b, zero, (ALIGN - b->n % ALIGN) % ALIGN);
}

struct tiny *tiny_new(void)
{
    struct tiny *t = calloc(1, sizeof *t);
    if (!t) die("calloc");
    return t;
}

void tiny_free(struct tiny *t)
{
    free(t->kv.p);
    free(t->info.p);
    free(t->data.p);
    free(t);
}

void tiny_raw(struct tiny *t, const char *key, uint32_t type, const void *bytes, size_t n)
{
    put_text(&t->kv, key, strlen(key));
    put_u32(&t->kv, type);
    put(&t->kv, bytes, n);
    t->n_kv++;
}

void tiny_u32(struct tiny *t, const char *key, uint32_t v) { tiny_raw(t, key, T_U32, &v, sizeof v); }
void tiny_i32(struct tiny *t, const char *key, int32_t v) { tiny_raw(t, key, T_I32, &v, sizeof v); }
void tiny_u64(struct tiny *t, const char *key, uint64_t v) { tiny_raw(t, key, T_U64, &v, sizeof v); }
void tiny_f32(struct tiny *t, const char *key, float v) { tiny_raw(t, key, T_F32, &v, sizeof v); }
void tiny_bool(struct tiny *t, const char *key, bool v) { tiny_raw(t, key, T_BOOL, &(uint8_t){v}, 1); }
void tiny_str(struct tiny *t, const char *key, const char *v)
{
    tiny_raw(t, key, T_STR, NULL, 0);
    put_text(&t->kv, v, strlen(v));
}

static void array(struct tiny *t, const char *key, uint32_t type, const void *v, size_t n, size_t size)
{
    tiny_raw(t, key, T_ARR, &type, sizeof type);
    put_u64(&t->kv, n);
    put(&t->kv, v, size);
}
void tiny_arr_f32(struct tiny *t, const char *key, const float *v, size_t n)
{
    array(t, key, T_F32, v, n, n * sizeof *v);
}
void tiny_arr_i32(struct tiny *t, const char *key, const int32_t *v, size_t n)
{
    array(t, key, T_I32, v, n, n * sizeof *v);
}
void tiny_arr_str(struct tiny *t, const char *key, const char *const *v, size_t n)
{
    array(t, key, T_STR, NULL, n, 0);
    for (size_t i = 0; i < n; i++) put_text(&t->kv, v[i], strlen(v[i]));
}

void tiny_tensor(struct tiny *t, const char *name, uint32_t dtype, const int64_t *ne, uint32_t n_dims, const void *data,
                 size_t size)
{
    pad(&t->data);
    put_text(&t->info, name, strlen(name));
    put_u32(&t->info, n_dims);
    put(&t->info, ne, n_dims * sizeof *ne);
    put_u32(&t->info, dtype);
    put_u64(&t->info, t->data.n);
    put(&t->data, data, size);
    t->n_tensors++;
}

/* Nearest, ties to even; finite values below 65520. */
static uint16_t to_f16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a < 0x38800000) return (uint16_t)(sign | (uint32_t)lrintf(fabsf(f) * 0x1p24f)); /* below 2^-14 */
    return (uint16_t)(sign | (((a + 0xfff + (a >> 13 & 1)) >> 13) - (112u << 10)));
}

/* Blocks of a scale and 32 bytes. */
static void put_q8_0(struct bytes *b, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i += 32) {
        float max = 0;
        for (size_t j = 0; j < 32; j++) max = fmaxf(max, fabsf(v[i + j]));
        uint16_t d = to_f16(max / 127);
        put(b, &d, sizeof d);
        for (size_t j = 0; j < 32; j++) {
            int8_t q = (int8_t)(max > 0 ? lrintf(v[i + j] * 127 / max) : 0);
            put(b, &q, 1);
        }
    }
}

void tiny_matrix(struct tiny *t, const char *name, uint32_t dtype, int64_t n, int64_t rows, const float *v)
{
    int64_t ne[2] = {n, rows};
    size_t count = (size_t)(n * (rows ? rows : 1));
    struct bytes b = {0};
    if (dtype == KOPI_DTYPE_F32) put(&b, v, count * sizeof *v);
    else if (dtype == KOPI_DTYPE_Q8_0) put_q8_0(&b, v, count);
    else if (dtype == KOPI_DTYPE_F16)
        for (size_t i = 0; i < count; i++) put(&b, &(uint16_t){to_f16(v[i])}, 2);
    else abort();
    tiny_tensor(t, name, dtype, ne, rows ? 2 : 1, b.p, b.n);
    free(b.p);
}

void tiny_write(struct tiny *t, const char *path)
{
    struct bytes head = {0};
    put(&head, "GGUF", 4);
    put_u32(&head, 3);
    put_u64(&head, t->n_tensors);
    put_u64(&head, t->n_kv);
    put(&head, t->kv.p, t->kv.n);
    put(&head, t->info.p, t->info.n);
    pad(&head);
    pad(&t->data);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(head.p, 1, head.n, f) != head.n ||
        (t->data.n && fwrite(t->data.p, 1, t->data.n, f) != t->data.n) || fclose(f))
        die(path);
    free(head.p);
}

float tiny_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (float)((z ^ (z >> 31)) >> 40) * 0x1p-23f - 1.0f;
}
