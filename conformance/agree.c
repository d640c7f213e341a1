#include "agree.h"

#include <kopi/math.h>
#include <stdio.h>
#include <string.h>

static uint32_t bits_at(const char *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u; /* NaNs are equal whatever their payload */
}

/* Same bits, but for the payload of NaNs in F32 rows. */
static bool same(const struct cf_image *a, const struct cf_image *b, bool f32, char *text, size_t n)
{
    uint64_t size = f32 ? 4 : 1;
    for (uint64_t i = 0; i < a->n * a->row_bytes; i += size) {
        if (f32 ? bits_at(a->rows + i) == bits_at(b->rows + i) : a->rows[i] == b->rows[i]) continue;
        uint64_t row = i / a->row_bytes, at = i % a->row_bytes / size;
        if (f32)
            snprintf(text, n, "row %llu element %llu: %08x (%g), expected %08x (%g)", (unsigned long long)row,
                     (unsigned long long)at, bits_at(b->rows + i), (double)kopi_bits_f32(bits_at(b->rows + i)),
                     bits_at(a->rows + i), (double)kopi_bits_f32(bits_at(a->rows + i)));
        else
            snprintf(text, n, "row %llu byte %llu: %02x, expected %02x", (unsigned long long)row,
                     (unsigned long long)at, (unsigned char)b->rows[i], (unsigned char)a->rows[i]);
        return false;
    }
    return true;
}

/* Sum of squared differences over sum of squares, at most bound. */
static bool near(const struct cf_image *a, const struct cf_image *b, float bound, char *text, size_t n)
{
    double diff = 0, all = 1e-30;
    for (uint64_t i = 0; i < a->n * a->row_bytes; i += 4) {
        double x = kopi_bits_f32(bits_at(a->rows + i)), y = kopi_bits_f32(bits_at(b->rows + i));
        diff += (x - y) * (x - y);
        all += x * x;
    }
    if (diff <= (double)bound * all) return true;
    snprintf(text, n, "normalized error %.3g, at most %.3g", diff / all, (double)bound);
    return false;
}

bool cf_agree(const struct cf_program *a, const struct cf_program *b, bool exact, float bound, char *text, size_t n)
{
    for (uint32_t i = 0, k = 0; i < a->p.n_tensors;
         i++) { /* the k-th output of a is that of b: they may differ by a QUANTIZE */
        if (!a->out[i].rows) continue;
        while (!b->out[k].rows) k++;
        bool f32 = a->t[i].dtype == KOPI_DTYPE_F32;
        if (exact || !f32 ? !same(&a->out[i], &b->out[k], f32, text, n) : !near(&a->out[i], &b->out[k], bound, text, n))
            return false;
        k++;
    }
    for (int w = 0; w < 2; w++) /* a KV cache rounds by rule, whatever the device */
        if (a->kv[w] >= 0 && !same(&a->kv_rows[w], &b->kv_rows[w], a->t[a->kv[w]].dtype == KOPI_DTYPE_F32, text, n))
            return false;
    return true;
}
