/* LINEAR for Q8_0 on a copy of the weights, through weight_import, supports, describe, an option, scratch and cancelling: what a
 * plugin of ABI 0.9 uses of its host. */
#include <kopi/backend.h>
#include <kopi/math.h>
#include <stdio.h>
#include <string.h>

struct frozen {
    const kopi_host *host;
    int64_t imported;
};

static const uint32_t q8_0[] = {KOPI_DTYPE_Q8_0}, a8_32[] = {KOPI_DTYPE_A8_32};

/* One row of weights as scales and integers: the worker's scratch. */
static uint64_t scratch(void *be, const kopi_program *p, const kopi_op *op, uint32_t nth)
{
    (void)be, (void)nth;
    return (uint64_t)kopi_tensor_at(p, op->in[1])->dim[0].n / 32 * (sizeof(float) + 32);
}

static void unpack(const unsigned char *row, float *d, int8_t *q, int64_t n)
{
    for (int64_t b = 0; b < n; b++, row += 34) {
        uint16_t h;
        memcpy(&h, row, 2);
        d[b] = kopi_f16_to_f32(h);
        memcpy(q + b * 32, row + 2, 32);
    }
}

static kopi_status linear(void *be, const kopi_kctx *k, const kopi_op *op)
{
    struct frozen *f = be;
    const kopi_tensor *x = kopi_tensor_at(k->prog, op->in[0]), *w = kopi_tensor_at(k->prog, op->in[1]);
    const kopi_tensor *y = kopi_tensor_at(k->prog, op->out[0]);
    int64_t n_tok = kopi_extent(k->run, x, x->n_dims - 1), n = w->dim[0].n / 32, x_row = x->nb[x->n_dims - 1];
    int64_t y_row = y->kind == KOPI_KIND_OUTPUT ? kopi_output_at(k->run, y->group)->row_bytes : y->nb[y->n_dims - 1];
    const float *bias = op->n_in > 2 && op->in[2] >= 0 ? k->data[op->in[2]] : NULL;
    float *d = k->scratch;
    int8_t *q = (int8_t *)(d + n);
    if (!w->handle) return f->host->fail(f->host->ctx, KOPI_E_INTERNAL, "a weight that was never imported");
    if (k->scratch_size < (uint64_t)n * 36) return f->host->fail(f->host->ctx, KOPI_E_INTERNAL, "scratch is short");
    for (int64_t r = k->ith; r < w->dim[1].n; r += k->nth) {
        if (f->host->cancelled(f->host->ctx)) return KOPI_E_CANCELLED;
        unpack((const unsigned char *)w->handle + r * w->nb[1], d, q, n);
        for (int64_t t = 0; t < n_tok; t++) {
            const kopi_a8_32 *a = (const void *)((const char *)k->data[op->in[0]] + t * x_row);
            float acc = 0;
            for (int64_t b = 0; b < n; b++) {
                int32_t sum = 0;
                for (int i = 0; i < 32; i++) sum += q[b * 32 + i] * a[b].q[i];
                acc = __builtin_fmaf(d[b] * a[b].d, (float)sum, acc);
            }
            ((float *)(void *)((char *)k->data[op->out[0]] + t * y_row))[r] = bias ? acc + bias[r] : acc;
        }
    }
    return KOPI_OK;
}

static const kopi_kernel kernels[] = {{KOPI_OP_LINEAR, 1, q8_0, a8_32, 1, 1, linear, scratch}};

static int32_t supports(void *be, const kopi_program *p, const kopi_op *op)
{
    (void)be;
    return op->op == KOPI_OP_LINEAR && kopi_tensor_at(p, op->in[1])->dtype == KOPI_DTYPE_Q8_0;
}

static const char *describe(void *be, const kopi_program *p, const kopi_op *op) { return supports(be, p, op) ? "linear_q8_0_frozen" : NULL; }

static kopi_status weight_import(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    struct frozen *f = be;
    if (w->dtype != KOPI_DTYPE_Q8_0 || !(w->roles & KOPI_ROLE_LINEAR)) return KOPI_OK; /* REF */
    void *copy = f->host->alloc(f->host->ctx, w->size, 64);
    if (!copy) return f->host->fail(f->host->ctx, KOPI_E_NOMEM, w->name);
    memcpy(copy, w->data, w->size);
    out->mode = KOPI_WEIGHT_COPIED;
    out->roles = KOPI_ROLE_LINEAR;
    out->handle = copy;
    out->bytes = w->size;
    out->layout = "as in the file";
    f->imported++;
    return KOPI_OK;
}

static kopi_status weights_done(void *be)
{
    struct frozen *f = be;
    char text[64];
    snprintf(text, sizeof text, "%d weights copied", (int)f->imported);
    f->host->log(f->host->ctx, 2, text);
    return KOPI_OK;
}

static void weight_free(void *be, void *handle)
{
    struct frozen *f = be;
    f->host->free(f->host->ctx, handle);
}

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    const char *mood = host->option(host->ctx, "mood");
    (void)device;
    if (mood && strcmp(mood, "calm")) return host->fail(host->ctx, KOPI_E_CONFIG, "option mood: allowed is calm");
    if (host->extension(host->ctx, "org.example.none")) return host->fail(host->ctx, KOPI_E_INTERNAL, "an extension that nobody knows");
    struct frozen *f = host->alloc(host->ctx, sizeof *f, 64);
    if (!f) return host->fail(host->ctx, KOPI_E_NOMEM, "state");
    *f = (struct frozen){host, 0};
    host->account(host->ctx, KOPI_SPACE_DEVICE, 0);
    *be = f;
    return host->team_size(host->ctx) ? KOPI_OK : KOPI_E_INTERNAL;
}

static void destroy(void *be)
{
    struct frozen *f = be;
    f->host->free(f->host->ctx, f);
}

static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    (void)host;
    if (index) return KOPI_E_RANGE;
    *out = (kopi_device){.struct_size = sizeof *out, .kind = KOPI_DEVICE_CPU, .align = 64, .name = "frozen", .detail = "ABI 0.9",
                         .flags = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE};
    return KOPI_OK;
}

static const char *const keys[] = {"mood", NULL};

static const kopi_backend_ops ops = {
    .struct_size = sizeof ops,
    .create = create,
    .destroy = destroy,
    .kernels = kernels,
    .n_kernels = 1,
    .kernel_stride = sizeof *kernels,
    .supports = supports,
    .weight_import = weight_import,
    .weights_done = weights_done,
    .weight_free = weight_free,
    .describe = describe,
};

static const kopi_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_minor = KOPI_ABI_MINOR,
    .min_host_minor = KOPI_ABI_MINOR,
    .sanitizer = KOPI_SANITIZER,
    .fingerprint = KOPI_FINGERPRINT,
    .name = "frozen",
    .version = "0.9",
    .device = device,
    .option_keys = keys,
    .ops = &ops,
};

const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
