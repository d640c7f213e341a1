/* The operations that go over the rows of an activation: embedding, norms, rotation, and the element-wise ones. */
#include "dequant.h"

#include <string.h>

CPU_RUN(embed)
{
    (void)be;
    const kopi_tensor *w = kopi_tensor_at(k->prog, op->in[0]);
    const struct cpu_format *f = cpu__format(w->dtype);
    const kopi_embed_params *params = op->params;
    struct cpu_rows y = cpu__rows(k, op->out[0]);
    struct cpu_range part = cpu__share(k, y.n);
    for (int64_t t = part.begin; t < part.end; t++) {
        float *row = cpu__row(&y, t);
        if (k->run->tokens) f->to_f32((const char *)k->data[op->in[0]] + k->run->tokens[t] * w->nb[1], row, y.len);
        else memcpy(row, k->run->embd + t * y.len, (size_t)y.len * sizeof *row);
        if (params->scale == 1.0f) continue;
        for (int64_t i = 0; i < y.len; i++) row[i] = row[i] * params->scale;
    }
    return KOPI_OK;
}

/* ---- norms ------------------------------------------------------------------------------------------------------- */

/* The tree that ends sum16 of kopi/op.h. */
static float tree16(float *s)
{
    for (int half = 8; half > 0; half /= 2)
        for (int j = 0; j < half; j++) s[j] = s[j] + s[j + half];
    return s[0];
}

static float sum16_of(const float *x, int64_t n)
{
    float s[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) s[j] = s[j] + x[i + j];
    for (int j = 0; i + j < n; j++) s[j] = s[j] + x[i + j];
    return tree16(s);
}

/* Of the squares of x - mean. */
static float sum16_of_squares(const float *x, int64_t n, float mean)
{
    float s[16] = {0};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) s[j] = __builtin_fmaf(x[i + j] - mean, x[i + j] - mean, s[j]);
    for (int j = 0; i + j < n; j++) s[j] = __builtin_fmaf(x[i + j] - mean, x[i + j] - mean, s[j]);
    return tree16(s);
}

/* RMS norm is layer norm with a mean of 0: x - 0 is x, bit for bit. */
static void norm_row(const float *x, float *y, int64_t n, const kopi_norm_params *p, const float *weight,
                     const float *bias)
{
    float mean = p->kind == KOPI_NORM_LAYER ? sum16_of(x, n) / (float)n : 0.0f;
    float r = 1.0f / __builtin_sqrtf(sum16_of_squares(x, n, mean) / (float)n + p->eps);
    for (int64_t i = 0; i < n; i++) y[i] = (x[i] - mean) * r;
    if (weight)
        for (int64_t i = 0; i < n; i++) y[i] = y[i] * weight[i];
    if (bias)
        for (int64_t i = 0; i < n; i++) y[i] = y[i] + bias[i];
}

CPU_RUN(norm)
{
    (void)be;
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    const float *weight = cpu__vector(k, op, 1), *bias = cpu__vector(k, op, 2);
    int64_t n = kopi_tensor_at(k->prog, op->in[0])->dim[0].n;
    struct cpu_range part = cpu__share(k, x.n);
    for (int64_t t = part.begin; t < part.end; t++)
        for (int64_t i = 0; i < x.len; i += n)
            norm_row(cpu__row(&x, t) + i, cpu__row(&y, t) + i, n, op->params, weight, bias);
    return KOPI_OK;
}

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

/* table: cos, sin of each pair. */
static void rope_head(const float *x, float *y, int64_t n, const kopi_rope_params *p, const float *table)
{
    int64_t n_pairs = p->n_rot / 2, step = p->pairing == KOPI_ROPE_HALF ? 1 : 2,
            apart = p->pairing == KOPI_ROPE_HALF ? n_pairs : 1;
    for (int64_t i = 0; i < n_pairs; i++) {
        float x0 = x[i * step], x1 = x[i * step + apart], c = table[2 * i], s = table[2 * i + 1];
        y[i * step] = __builtin_fmaf(x0, c, -(x1 * s));
        y[i * step + apart] = __builtin_fmaf(x0, s, x1 * c);
    }
    for (int64_t i = p->n_rot; i < n; i++) y[i] = x[i];
}

CPU_RUN(rope)
{
    (void)be;
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    const kopi_tensor *table = kopi_tensor_at(k->prog, op->in[1]);
    int64_t n = kopi_tensor_at(k->prog, op->in[0])->dim[0].n;
    struct cpu_range part = cpu__share(k, x.n);
    for (int64_t t = part.begin; t < part.end; t++) {
        const char *row = (const char *)k->data[op->in[1]] + k->run->pos[t] * table->nb[2];
        for (int64_t i = 0; i < x.len; i += n)
            rope_head(cpu__row(&x, t) + i, cpu__row(&y, t) + i, n, op->params, (const float *)(const void *)row);
    }
    return KOPI_OK;
}

/* ---- element by element ------------------------------------------------------------------------------------------ */

static float relu(float x) { return x > 0 ? x : x != x ? x : 0.0f; }

static void activate(const float *x, float *y, int64_t n, uint32_t act)
{
    if (act == KOPI_ACT_SILU)
        for (int64_t i = 0; i < n; i++) y[i] = kopi_silu(x[i]);
    else if (act == KOPI_ACT_GELU_TANH)
        for (int64_t i = 0; i < n; i++) y[i] = kopi_gelu_tanh(x[i]);
    else
        for (int64_t i = 0; i < n; i++) y[i] = relu(x[i]);
}

CPU_RUN(glu)
{
    (void)be;
    const kopi_glu_params *params = op->params;
    struct cpu_rows gate = cpu__rows(k, op->in[0]), up = cpu__rows(k, cpu__in(op, 1)), y = cpu__rows(k, op->out[0]);
    struct cpu_range part = cpu__share(k, y.n);
    for (int64_t t = part.begin; t < part.end; t++) {
        float *row = cpu__row(&y, t);
        activate(cpu__row(&gate, t), row, y.len, params->act);
        if (!up.data) continue;
        for (int64_t i = 0; i < y.len; i++) row[i] = row[i] * cpu__row(&up, t)[i];
    }
    return KOPI_OK;
}

CPU_RUN(add)
{
    (void)be;
    struct cpu_rows a = cpu__rows(k, op->in[0]), b = cpu__rows(k, op->in[1]), y = cpu__rows(k, op->out[0]);
    struct cpu_range part = cpu__share(k, y.n);
    for (int64_t t = part.begin; t < part.end; t++)
        for (int64_t i = 0; i < y.len; i++) cpu__row(&y, t)[i] = cpu__row(&a, t)[i] + cpu__row(&b, t)[i];
    return KOPI_OK;
}

CPU_RUN(scale)
{
    (void)be;
    const kopi_scale_params *params = op->params;
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    struct cpu_range part = cpu__share(k, y.n);
    for (int64_t t = part.begin; t < part.end; t++)
        for (int64_t i = 0; i < y.len; i++) cpu__row(&y, t)[i] = cpu__row(&x, t)[i] * params->value;
    return KOPI_OK;
}

CPU_RUN(softcap)
{
    (void)be;
    const kopi_scale_params *params = op->params;
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    struct cpu_range part = cpu__share(k, y.n);
    for (int64_t t = part.begin; t < part.end; t++)
        for (int64_t i = 0; i < y.len; i++)
            cpu__row(&y, t)[i] = params->value * kopi_tanh(cpu__row(&x, t)[i] / params->value);
    return KOPI_OK;
}

CPU_RUN(gather)
{
    (void)be;
    struct cpu_rows x = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]);
    const int32_t *rows = y.n ? kopi_output_at(k->run, 0)->rows : NULL;
    struct cpu_range part = cpu__share(k, y.n);
    for (int64_t i = part.begin; i < part.end; i++)
        memcpy(cpu__row(&y, i), cpu__row(&x, rows[i]), (size_t)y.len * sizeof(float));
    return KOPI_OK;
}
