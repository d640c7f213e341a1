/* kopi-blas: LINEAR of F32, F16 and BF16 weights by OpenBLAS. Prompts are what it is for: then LINEAR is a product of
 * matrices, and nearly all of the work. The other operations, and quantized weights, are computed by the cpu backend
 * that kopi loads beside this one.
 *
 * Sums are taken in whatever order OpenBLAS likes, so the device claims neither EXACT nor REPEATABLE bits. */
#include <kopi/backend.h>
#include <kopi/math.h>

#include <cblas.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Weights of a panel, unpacked to floats: about what the second-level cache holds. */
enum { PANEL = 1 << 18 };

struct backend {
    const kopi_host *host;
    void (*from_f16)(const uint16_t *h, float *f, int64_t n);
};

/* ---- weights to floats ------------------------------------------------------------------------------------------- */

static void f16_plain(const uint16_t *h, float *f, int64_t n)
{
    for (int64_t i = 0; i < n; i++) f[i] = kopi_f16_to_f32(h[i]);
}

#ifdef __x86_64__
__attribute__((target("avx,f16c"))) static void f16_by_eight(const uint16_t *h, float *f, int64_t n)
{
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) _mm256_storeu_ps(f + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(h + i))));
    f16_plain(h + i, f + i, n - i);
}
#endif

static void bf16(const uint16_t *h, float *f, int64_t n)
{
    for (int64_t i = 0; i < n; i++) f[i] = kopi_bf16_to_f32(h[i]);
}

/* ---- LINEAR ------------------------------------------------------------------------------------------------------ */

/* Rows of floats in memory, `stride` floats apart. */
struct rows {
    float *data;
    int64_t n, stride;
};

static struct rows rows_of(const kopi_kctx *k, int32_t tensor)
{
    const kopi_tensor *t = kopi_tensor_at(k->prog, tensor);
    int64_t bytes = t->kind == KOPI_KIND_OUTPUT ? kopi_output_at(k->run, t->group)->row_bytes : t->nb[t->n_dims - 1];
    return (struct rows){k->data[tensor], kopi_extent(k->run, t, t->n_dims - 1), bytes / (int64_t)sizeof(float)};
}

/* y[token][r] = w[r] . x[token] (+ bias[r]) for n rows of w, which are `len` floats each; y and bias begin at the first
 * of them. */
static void multiply(struct rows x, const float *w, int64_t len, int64_t n, const float *bias, struct rows y)
{
    for (int64_t t = 0; t < y.n && bias; t++) __builtin_memcpy(y.data + t * y.stride, bias, (size_t)n * sizeof(float));
    float keep = bias ? 1.0f : 0.0f; /* of what y holds */
    if (y.n == 1)
        cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)len, 1.0f, w, (int)len, x.data, 1, keep, y.data, 1);
    else
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)y.n, (int)n, (int)len, 1.0f, x.data, (int)x.stride, w,
                    (int)len, keep, y.data, (int)y.stride);
}

static int64_t panel_rows(int64_t len) { return len < PANEL ? PANEL / len : 1; }

static uint64_t scratch(void *be, const kopi_program *p, const kopi_op *op, uint32_t nth)
{
    const kopi_tensor *w = kopi_tensor_at(p, op->in[1]);
    (void)be, (void)nth;
    return w->dtype == KOPI_DTYPE_F32 ? 0 : (uint64_t)(panel_rows(w->dim[0].n) * w->dim[0].n) * sizeof(float);
}

/* All workers call this at the same time: each has its share of the rows of the weight. */
static kopi_status linear(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct backend *b = be;
    const kopi_tensor *w = kopi_tensor_at(k->prog, op->in[1]);
    const float *bias = op->n_in > 2 && op->in[2] >= 0 ? k->data[op->in[2]] : NULL;
    struct rows x = rows_of(k, op->in[0]), y = rows_of(k, op->out[0]);
    int64_t len = w->dim[0].n, first = w->dim[1].n * k->ith / k->nth, end = w->dim[1].n * (k->ith + 1) / k->nth;
    int64_t step = w->dtype == KOPI_DTYPE_F32 ? end - first : panel_rows(len);
    for (int64_t r = first; r < end && y.n; r += step) {
        const void *rows = (const char *)k->data[op->in[1]] + r * w->nb[1];
        int64_t n = end - r < step ? end - r : step;
        if (w->dtype == KOPI_DTYPE_F16) b->from_f16(rows, k->scratch, n * len);
        if (w->dtype == KOPI_DTYPE_BF16) bf16(rows, k->scratch, n * len);
        struct rows part = {y.data + r, y.n, y.stride};
        multiply(x, w->dtype == KOPI_DTYPE_F32 ? rows : k->scratch, len, n, bias ? bias + r : NULL, part);
    }
    return KOPI_OK;
}

static const uint32_t weights[] = {KOPI_DTYPE_F32, KOPI_DTYPE_F16, KOPI_DTYPE_BF16}, f32[] = {KOPI_DTYPE_F32};
static const kopi_kernel kernels[] = {{KOPI_OP_LINEAR, 1, weights, f32, 3, 1, linear, scratch}};

/* ---- life -------------------------------------------------------------------------------------------------------- */

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    struct backend *b = host->alloc(host->ctx, sizeof *b, 16);
    (void)device;
    if (!b) return host->fail(host->ctx, KOPI_E_NOMEM, "state of the backend");
    *b = (struct backend){host, f16_plain};
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c")) b->from_f16 = f16_by_eight;
#endif
    openblas_set_num_threads(1); /* the threads are kopi's: each worker computes its own product */
    *be = b;
    return KOPI_OK;
}

static void destroy(void *be)
{
    const kopi_host *host = ((struct backend *)be)->host;
    host->free(host->ctx, be);
}

static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    (void)host;
    if (index > 0) return KOPI_E_RANGE;
    kopi_device d = {.struct_size = out->struct_size < sizeof d ? out->struct_size : sizeof d,
                     .kind = KOPI_DEVICE_CPU,
                     .flags = KOPI_DEVICE_HOST_VISIBLE,
                     .name = "cpu",
                     .detail = "OpenBLAS"};
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
    .name = "blas",
    .version = "0.1",
    .device = device,
    .ops = &ops,
};

const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
