/* A kernels-only backend with a weight type of its own: 32 whole numbers of a byte behind the exponent of their scale.
 * EMBED and LINEAR have the bits that F32 weights of the same values have on the reference backend; the rest is left to
 * the fallback. */
#include <kopi/backend.h>
#include <kopi/math.h>

#include <string.h>

enum { TOY = 0x40544f59, LEN = 32, BYTES = 33 };

static void to_f32(const void *blocks, float *out, int64_t n)
{
    const int8_t *b = blocks;
    for (int64_t i = 0; i < n; i += LEN, b += BYTES) {
        float scale = kopi_bits_f32((uint32_t)(127 + b[0]) << 23);
        for (int j = 0; j < LEN; j++) out[i + j] = (float)b[1 + j] * scale;
    }
}

static int64_t begin(const kopi_kctx *k, int64_t n) { return n * k->ith / k->nth; }
static int64_t end(const kopi_kctx *k, int64_t n) { return n * (k->ith + 1) / k->nth; }

static kopi_status embed(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_tensor *w = kopi_tensor_at(k->prog, op->in[0]), *y = kopi_tensor_at(k->prog, op->out[0]);
    const kopi_embed_params *p = op->params;
    int64_t n = w->dim[0].n;
    (void)be;
    for (int64_t t = begin(k, k->run->n_tok); t < end(k, k->run->n_tok); t++) {
        float *row = (float *)(void *)((char *)k->data[op->out[0]] + t * y->nb[1]);
        if (k->run->embd) memcpy(row, k->run->embd + t * n, (size_t)n * sizeof *row);
        else to_f32((const char *)k->data[op->in[0]] + k->run->tokens[t] * w->nb[1], row, n);
        for (int64_t i = 0; i < n && p->scale != 1; i++) row[i] *= p->scale;
    }
    return KOPI_OK;
}

static uint64_t linear_scratch(void *be, const kopi_program *p, const kopi_op *op, uint32_t nth)
{
    (void)be, (void)nth;
    return (uint64_t)kopi_tensor_at(p, op->in[1])->dim[0].n * sizeof(float);
}

static kopi_status linear(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_tensor *x = kopi_tensor_at(k->prog, op->in[0]), *w = kopi_tensor_at(k->prog, op->in[1]);
    const kopi_tensor *y = kopi_tensor_at(k->prog, op->out[0]);
    int64_t len = w->dim[0].n, n = w->dim[1].n, rows = kopi_extent(k->run, y, y->n_dims - 1);
    int64_t y_row = y->kind == KOPI_KIND_OUTPUT ? kopi_output_at(k->run, y->group)->row_bytes : y->nb[y->n_dims - 1];
    const float *bias = op->n_in > 2 && op->in[2] >= 0 ? k->data[op->in[2]] : NULL;
    float *unpacked = k->scratch;
    (void)be;
    for (int64_t r = begin(k, n); r < end(k, n); r++) {
        to_f32((const char *)k->data[op->in[1]] + r * w->nb[1], unpacked, len);
        for (int64_t t = 0; t < rows; t++) {
            const float *in =
                (const float *)(const void *)((const char *)k->data[op->in[0]] + t * x->nb[x->n_dims - 1]);
            float acc = 0;
            for (int64_t i = 0; i < len; i++) acc = __builtin_fmaf(unpacked[i], in[i], acc);
            float *out = (float *)(void *)((char *)k->data[op->out[0]] + t * y_row);
            out[r] = bias ? acc + bias[r] : acc;
        }
    }
    return KOPI_OK;
}

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    (void)device;
    *be = (void *)(uintptr_t)host; /* all the state it has */
    return KOPI_OK;
}
static void destroy(void *be) { (void)be; }

static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    const kopi_device d = {.struct_size = sizeof d, .kind = KOPI_DEVICE_CPU, .name = "toy",
                           .flags = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE};
    uint32_t given = out->struct_size < sizeof d ? out->struct_size : (uint32_t)sizeof d;
    (void)host;
    if (index > 0) return KOPI_E_RANGE;
    memcpy(out, &d, given);
    out->struct_size = given;
    return KOPI_OK;
}

static const uint32_t toy[] = {TOY}, f32[] = {KOPI_DTYPE_F32};
static const kopi_kernel kernels[] = {{KOPI_OP_EMBED, 1, toy, NULL, 1, 0, embed, NULL},
                                      {KOPI_OP_LINEAR, 1, toy, f32, 1, 1, linear, linear_scratch}};
static const kopi_dtype_info types[] = {{sizeof *types, TOY, "TOY", LEN, BYTES, to_f32}};
static const kopi_backend_ops ops = {.struct_size = sizeof ops,
                                     .create = create,
                                     .destroy = destroy,
                                     .kernels = kernels,
                                     .n_kernels = 2,
                                     .kernel_stride = sizeof *kernels};
static const kopi_plugin plugin = {.struct_size = sizeof plugin,
                                   .abi_minor = KOPI_ABI_MINOR,
                                   .min_host_minor = KOPI_ABI_MINOR,
                                   .sanitizer = KOPI_SANITIZER,
                                   .fingerprint = KOPI_FINGERPRINT,
                                   .name = "toy-type",
                                   .version = "1",
                                   .license = "MIT",
                                   .device = device,
                                   .dtypes = types,
                                   .n_dtypes = 1,
                                   .dtype_stride = sizeof *types,
                                   .ops = &ops};
const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
