#include "dequant.h"

/* Rows of float weights that are computed at once: independent chains, one lane each. */
enum { LANES = 32 };

/* y[t][row] for all tokens t. */
static void store(const struct cpu_rows *y, int64_t t, int64_t row, float acc, const float *bias)
{
    cpu__row(y, t)[row] = bias ? acc + bias[row] : acc;
}

/* ---- quantized weights, quantized activations -------------------------------------------------------------------- */

/* Dot product of an unpacked row of n blocks with a quantized token. */
typedef float dot_fn(const void *w, const void *x, int64_t n);

static inline float dot32(const struct cpu_block32 *w, const kopi_a8_32 *x, int64_t n, bool has_min)
{
    float acc = 0;
    for (int64_t b = 0; b < n; b++) {
        int32_t isum = 0;
        for (int i = 0; i < 32; i++) isum += w[b].q[i] * x[b].q[i];
        acc = __builtin_fmaf(w[b].d * x[b].d, (float)isum, acc);
        if (has_min) acc = __builtin_fmaf(w[b].m, x[b].d * (float)x[b].sum, acc);
    }
    return acc;
}

static inline float dot256(const struct cpu_block256 *w, const kopi_a8_256 *x, int64_t n, bool has_min)
{
    float acc = 0;
    for (int64_t b = 0; b < n; b++) {
        int32_t isum = 0, msum = 0;
        for (int i = 0; i < 256; i++) isum += w[b].q[i] * x[b].q[i];
        acc = __builtin_fmaf(w[b].d * x[b].d, (float)isum, acc);
        if (!has_min) continue;
        for (int j = 0; j < 16; j++) msum += w[b].mn[j] * x[b].sum[j];
        acc = __builtin_fmaf(-(w[b].dmin * x[b].d), (float)msum, acc);
    }
    return acc;
}

static float dot32_plain(const void *w, const void *x, int64_t n) { return dot32(w, x, n, false); }
static float dot32_min(const void *w, const void *x, int64_t n) { return dot32(w, x, n, true); }
static float dot256_plain(const void *w, const void *x, int64_t n) { return dot256(w, x, n, false); }
static float dot256_min(const void *w, const void *x, int64_t n) { return dot256(w, x, n, true); }

static void quantized(const kopi_kctx *k, const kopi_tensor *w, const char *rows, const struct cpu_format *f,
                      const struct cpu_rows *x, const struct cpu_rows *y, const float *bias)
{
    dot_fn *dot = f->len == 32 ? (f->has_min ? dot32_min : dot32_plain) : (f->has_min ? dot256_min : dot256_plain);
    int64_t n = w->dim[0].n / f->len;
    struct cpu_range part = cpu__share(k, w->dim[1].n);
    for (int64_t r = part.begin; r < part.end; r++) {
        f->unpack(rows + r * w->nb[1], k->scratch, n);
        for (int64_t t = 0; t < x->n; t++) store(y, t, r, dot(k->scratch, cpu__row(x, t), n), bias);
    }
}

/* ---- any weights, F32 activations -------------------------------------------------------------------------------- */

/* LANES rows as F32, interleaved: column i of lane l at wide[i * LANES + l]; absent rows are 0. PIECE columns at a
 * time, which stay in the first cache; the pieces are a multiple of every block. */
static void interleave(const char *rows, int64_t stride, int64_t n_rows, const struct cpu_format *f, int64_t len,
                       float *wide)
{
    enum { PIECE = 256 };
    float line[LANES][PIECE + 16] = {{0}}; /* + 16: else all lanes meet in few cache sets */
    for (int64_t at = 0; at < len; at += PIECE) {
        int64_t n = len - at < PIECE ? len - at : PIECE;
        for (int64_t l = 0; l < n_rows; l++) f->to_f32(rows + l * stride + at / f->len * f->bytes, line[l], n);
        for (int64_t i = 0; i < n; i++)
            for (int64_t l = 0; l < LANES; l++) wide[(at + i) * LANES + l] = line[l][i];
    }
}

static void chains(const float *wide, const float *x, int64_t len, float *out)
{
    float acc[LANES] = {0};
    for (int64_t i = 0; i < len; i++)
        for (int l = 0; l < LANES; l++) acc[l] = __builtin_fmaf(wide[i * LANES + l], x[i], acc[l]);
    for (int l = 0; l < LANES; l++) out[l] = acc[l];
}

static void plain(const kopi_kctx *k, const kopi_tensor *w, const char *rows, const struct cpu_format *f,
                  const struct cpu_rows *x, const struct cpu_rows *y, const float *bias)
{
    int64_t len = w->dim[0].n, n = w->dim[1].n;
    float *wide = k->scratch, out[LANES];
    struct cpu_range part = cpu__share(k, (n + LANES - 1) / LANES);
    for (int64_t r = part.begin * LANES; r < n && r < part.end * LANES; r += LANES) {
        int64_t n_rows = n - r < LANES ? n - r : LANES;
        interleave(rows + r * w->nb[1], w->nb[1], n_rows, f, len, wide);
        for (int64_t t = 0; t < x->n; t++) {
            chains(wide, cpu__row(x, t), len, out);
            for (int64_t l = 0; l < n_rows; l++) store(y, t, r + l, out[l], bias);
        }
    }
}

CPU_SCRATCH(linear)
{
    const kopi_tensor *w = kopi_tensor_at(p, op->in[1]);
    uint64_t len = (uint64_t)w->dim[0].n;
    const struct cpu_format *f = cpu__format(w->dtype);
    if (kopi_tensor_at(p, op->in[0])->dtype == KOPI_DTYPE_F32) return LANES * len * sizeof(float);
    return len / f->len * (f->len == 32 ? sizeof(struct cpu_block32) : sizeof(struct cpu_block256));
}

CPU_RUN(linear)
{
    (void)be;
    const kopi_tensor *w = kopi_tensor_at(k->prog, op->in[1]);
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    bool f32 = kopi_tensor_at(k->prog, op->in[0])->dtype == KOPI_DTYPE_F32;
    (f32 ? plain : quantized)(k, w, k->data[op->in[1]], cpu__format(w->dtype), &x, &y, cpu__vector(k, op, 2));
    return KOPI_OK;
}
