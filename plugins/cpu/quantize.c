#include "kernels.h"

/* Largest |x| as bits: for numbers without a sign these order like the numbers, with NaN above infinity. */
static uint32_t largest(const float *x, int n)
{
    uint32_t a = 0;
    for (int i = 0; i < n; i++) {
        uint32_t u = kopi_f32_bits(x[i]) & 0x7fffffffu;
        a = u > a ? u : a;
    }
    return a;
}

/* The integers of one block; its scale is the result. */
static float quantize(const float *x, int n, int8_t *q)
{
    uint32_t bits = largest(x, n);
    float a = kopi_bits_f32(bits);
    if (bits >= 0x7f800000u || a < 0x1p-100f) {
        for (int i = 0; i < n; i++) q[i] = 0;
        return bits >= 0x7f800000u ? kopi_bits_f32(0x7fc00000u) : 0.0f;
    }
    float r = 127.0f / a;
    for (int i = 0; i < n; i++) { /* adding 1.5 * 2^23 rounds to an integer, ties to even */
        float z = x[i] * r + 0x1.8p23f;
        q[i] = (int8_t)(int32_t)(z - 0x1.8p23f);
    }
    return a / 127.0f;
}

static int32_t sum(const int8_t *q, int n)
{
    int32_t s = 0;
    for (int i = 0; i < n; i++) s += q[i];
    return s;
}

static void row_32(const float *x, kopi_a8_32 *out, int64_t n)
{
    for (int64_t b = 0; b < n / 32; b++) {
        out[b].d = quantize(x + 32 * b, 32, out[b].q);
        out[b].sum = sum(out[b].q, 32);
    }
}

static void row_256(const float *x, kopi_a8_256 *out, int64_t n)
{
    for (int64_t b = 0; b < n / 256; b++) {
        out[b].d = quantize(x + 256 * b, 256, out[b].q);
        out[b].reserved = 0;
        for (int j = 0; j < 16; j++) out[b].sum[j] = (int16_t)sum(out[b].q + 16 * j, 16);
    }
}

CPU_RUN(quantize)
{
    (void)be;
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    bool by_32 = kopi_tensor_at(k->prog, op->out[0])->dtype == KOPI_DTYPE_A8_32;
    struct cpu_range part = cpu__share(k, x.n);
    for (int64_t t = part.begin; t < part.end; t++) {
        if (by_32) row_32(cpu__row(&x, t), (void *)cpu__row(&y, t), x.len);
        else row_256(cpu__row(&x, t), (void *)cpu__row(&y, t), x.len);
    }
    return KOPI_OK;
}
