/* A whole kopi backend in one file: one kernel, LINEAR for Q8_0 weights, with exactly the bits that kopi/op.h asks for.
 * Every other operation is computed by the cpu backend that kopi loads beside this one. Start here and add kernels. */
#include <kopi/backend.h>
#include <kopi/math.h>

/* State of one instance. No globals: several instances live in one process. */
struct backend {
    const kopi_host *host;
};

/* A block of the file: 32 weights, each d * q. */
struct q8_0 {
    uint16_t d; /* F16 */
    int8_t q[32];
};

static float dot(const struct q8_0 *w, const kopi_a8_32 *x, int64_t n_blocks)
{
    float acc = 0;
    for (int64_t b = 0; b < n_blocks; b++) {
        int32_t sum = 0;
        for (int i = 0; i < 32; i++) sum += w[b].q[i] * x[b].q[i];
        acc = __builtin_fmaf(kopi_f16_to_f32(w[b].d) * x[b].d, (float)sum, acc);
    }
    return acc;
}

/* Bytes from one token's row of an activation to the next. */
static int64_t row_bytes(const kopi_kctx *k, const kopi_tensor *t)
{
    return t->kind == KOPI_KIND_OUTPUT ? kopi_output_at(k->run, t->group)->row_bytes : t->nb[t->n_dims - 1];
}

/* y = w * x (+ bias). All workers call this at the same time; worker ith of nth computes its share of the rows of w. */
static kopi_status linear_q8_0(void *be, const kopi_kctx *k, const kopi_op *op)
{
    (void)be;
    const kopi_tensor *x = kopi_tensor_at(k->prog, op->in[0]), *w = kopi_tensor_at(k->prog, op->in[1]);
    const kopi_tensor *y = kopi_tensor_at(k->prog, op->out[0]);
    const char *xs = k->data[op->in[0]], *ws = k->data[op->in[1]];
    const float *bias = op->n_in > 2 && op->in[2] >= 0 ? k->data[op->in[2]] : NULL;
    char *ys = k->data[op->out[0]];
    int64_t n_tok = kopi_extent(k->run, x, x->n_dims - 1), n_rows = w->dim[1].n, n_blocks = w->dim[0].n / 32;
    for (int64_t r = n_rows * k->ith / k->nth; r < n_rows * (k->ith + 1) / k->nth; r++) {
        const void *row = ws + r * w->nb[1];
        for (int64_t t = 0; t < n_tok; t++) {
            float v = dot(row, (const void *)(xs + t * row_bytes(k, x)), n_blocks);
            ((float *)(void *)(ys + t * row_bytes(k, y)))[r] = bias ? v + bias[r] : v;
        }
    }
    return KOPI_OK;
}

/* What this backend can do: operation, version, types of weight and activation, the function. */
static const uint32_t q8_0[] = {KOPI_DTYPE_Q8_0}, a8_32[] = {KOPI_DTYPE_A8_32};
static const kopi_kernel kernels[] = {
    {KOPI_OP_LINEAR, 1, q8_0, a8_32, 1, 1, linear_q8_0, NULL},
};

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    (void)device;
    struct backend *b = host->alloc(host->ctx, sizeof *b, 16);
    if (!b) return host->fail(host->ctx, KOPI_E_NOMEM, "state of the backend");
    b->host = host;
    *be = b;
    return KOPI_OK;
}

static void destroy(void *be)
{
    const kopi_host *host = ((struct backend *)be)->host;
    host->free(host->ctx, be);
}

/* The one device. Flags: exact and repeatable bits, works on host memory (so that the cpu backend can fill in). */
static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    (void)host;
    if (index > 0) return KOPI_E_RANGE;
    kopi_device d = {.struct_size = out->struct_size < sizeof d ? out->struct_size : sizeof d,
                     .kind = KOPI_DEVICE_CPU,
                     .flags = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE,
                     .name = "cpu",
                     .detail = "plain C"};
    __builtin_memcpy(out, &d, d.struct_size);
    return KOPI_OK;
}

static const kopi_backend_ops ops = {
    .struct_size = sizeof ops,
    .create = create,
    .destroy = destroy,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
    .kernel_stride = sizeof *kernels,
};

static const kopi_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_minor = KOPI_ABI_MINOR,
    .min_host_minor = KOPI_ABI_MINOR,
    .sanitizer = KOPI_SANITIZER,
    .fingerprint = KOPI_FINGERPRINT,
    .name = "demo",
    .version = "0.1",
    .device = device,
    .ops = &ops,
};

const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
