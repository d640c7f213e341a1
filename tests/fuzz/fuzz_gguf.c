/* Fuzz target: a GGUF file of one part. What is accepted is walked to the last byte. */
#include "fuzz.h"
#include "gguf/reader.h"
#include <string.h>

static unsigned sum; /* keeps the reads */

static void touch(const void *p, uint64_t n)
{
    for (const uint8_t *q = p; n--; q++) sum += *q;
}

static void walk_values(const struct kopi_gguf_kv *kv)
{
    touch(kv->value, kv->value_size);
    struct kopi_gguf_iter it = kopi__gguf_strings(kv);
    struct kopi_gguf_str s;
    uint64_t n = 0, u;
    int64_t i;
    double f;
    bool b;
    for (; kopi__gguf_next(&it, &s); n++) touch(s.data, s.len);
    FUZZ_CHECK(n == (kv->elem_type == KOPI_GGUF_STRING ? kv->n : 0));
    if (n) return;
    for (n = 0; n < kv->n; n++) {
        int ways = kopi__gguf_get_u64(kv, n, &u) + kopi__gguf_get_i64(kv, n, &i) + kopi__gguf_get_f64(kv, n, &f) +
                   kopi__gguf_get_bool(kv, n, &b);
        FUZZ_CHECK(ways >= 1 && ways <= 3);
    }
    FUZZ_CHECK(!kopi__gguf_get_f64(kv, n, &f) && !kopi__gguf_get_str(kv, n, &s));
}

static void check_tensor(const struct kopi_gguf *g, const struct kopi_gguf_tensor *t, const uint8_t *data, size_t size)
{
    FUZZ_CHECK(t->data >= data && t->size <= size && (size_t)(t->data - data) <= size - t->size);
    FUZZ_CHECK(t->data == data + t->file_offset && t->file_offset % kopi__gguf_alignment(g) == 0);
    FUZZ_CHECK(t->n_dims >= 1 && t->n_dims <= 4 && strlen(t->name) < 64 && kopi__gguf_tensor(g, t->name) == t);
    for (int d = 0; d < 4; d++) FUZZ_CHECK(t->ne[d] >= 1);
    touch(t->data, t->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kopi_gguf *g;
    kopi_error e = {0};
    kopi_status st = kopi__gguf_open_memory(data, size, "f", &g, &e);
    if (st != KOPI_OK) {
        FUZZ_CHECK(st == KOPI_E_MODEL && !g && e.code == st && e.text[0] && !strchr(e.text, '\n'));
        return 0;
    }
    for (uint64_t i = 0; i < kopi__gguf_n_kv(g); i++) {
        const struct kopi_gguf_kv *kv = kopi__gguf_kv_at(g, i);
        touch(kv->key.data, kv->key.len);
        walk_values(kv);
    }
    for (uint64_t i = 0; i < kopi__gguf_n_tensors(g); i++) check_tensor(g, kopi__gguf_tensor_at(g, i), data, size);
    kopi__gguf_close(g);
    return 0;
}
