/* A small backend that supplies ADD, exactly, and the mould of the plugins that tests/abi/loading.py builds: each macro
 * below can be given another value on the compiler's command line, which makes one thing wrong. */
#include <kopi/backend.h>
#include <kopi/ext/draft/release.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NAME
#define NAME "good"
#endif
#ifndef VERSION
#define VERSION "1"
#endif
#ifndef STRUCT_SIZE
#define STRUCT_SIZE sizeof(kopi_plugin)
#endif
#ifndef ABI_MINOR
#define ABI_MINOR KOPI_ABI_MINOR
#endif
#ifndef MIN_HOST_MINOR
#define MIN_HOST_MINOR ABI_MINOR
#endif
#ifndef SANITIZER
#define SANITIZER KOPI_SANITIZER
#endif
#ifndef FINGERPRINT
#define FINGERPRINT KOPI_FINGERPRINT
#endif
#ifndef DEVICE
#define DEVICE device
#endif
#ifndef DEVICE_FIELDS
#define DEVICE_FIELDS
#endif
#ifndef OPS
#define OPS &ops.known
#endif
#ifndef OPS_SIZE
#define OPS_SIZE sizeof ops
#endif
#ifndef OPS_FIELDS
#define OPS_FIELDS
#endif
#ifndef PLUGIN_FIELDS
#define PLUGIN_FIELDS
#endif
#ifndef RESULT
#define RESULT &plugin.known
#endif
#ifndef IN_CONSTRUCTOR
#define IN_CONSTRUCTOR
#endif
#ifndef IN_ENTRY
#define IN_ENTRY
#endif
#ifndef IN_KERNEL
#define IN_KERNEL
#endif
#ifndef IN_IMPORT
#define IN_IMPORT
#endif
#ifndef IN_CREATE
#define IN_CREATE
#endif

#define UNUSED __attribute__((unused))

#ifdef __x86_64__
#define SPOIL_FP __builtin_ia32_ldmxcsr(0xffc0) /* denormals to zero, rounding towards zero */
#else
#define SPOIL_FP (void)0
#endif

/* The same name in every variant, not static: each must call its own. */
const char *common_name(void);
__attribute__((visibility("default"))) const char *common_name(void) { return NAME; }

UNUSED __attribute__((constructor)) static void on_load(void) { IN_CONSTRUCTOR; }

static kopi_status add(void *be, const kopi_kctx *k, const kopi_op *op)
{
    (void)be;
    const kopi_tensor *t = kopi_tensor_at(k->prog, op->out[0]);
    const float *a = k->data[op->in[0]], *b = k->data[op->in[1]];
    float *y = k->data[op->out[0]];
    int64_t n = kopi_extent(k->run, t, t->n_dims - 1) * t->nb[t->n_dims - 1] / 4;
    for (int64_t i = n * k->ith / k->nth; i < n * (k->ith + 1) / k->nth; i++) y[i] = a[i] + b[i];
    IN_KERNEL;
    return KOPI_OK;
}

UNUSED static kopi_status mute(void *be, const kopi_kctx *k, const kopi_op *op)
{
    return (void)be, (void)k, (void)op, KOPI_OK;
}

UNUSED static const kopi_kernel kernels[] = {{KOPI_OP_ADD, 1, NULL, NULL, 0, 0, add, NULL}};
UNUSED static const kopi_kernel mute_norm[] = {
    {KOPI_OP_NORM, 1, NULL, NULL, 0, 0, mute, NULL}}; /* an operation with a weight */
UNUSED static const kopi_kernel no_function[] = {{KOPI_OP_ADD, 1, NULL, NULL, 0, 0, NULL, NULL}};
UNUSED static void to_f32(const void *blocks, float *out, int64_t n) { (void)blocks, (void)out, (void)n; }
UNUSED static const kopi_dtype_info types[] = {{sizeof(kopi_dtype_info), 0x40000001u, "GOOD", 32, 16, to_f32},
                                               {sizeof(kopi_dtype_info), 8u, "TAKEN", 32, 34, to_f32},
                                               {sizeof(kopi_dtype_info), 0x40000002u, "EMPTY", 0, 16, to_f32},
                                               {sizeof(kopi_dtype_info), 0x40000003u, "MUTE", 32, 16, NULL}};

UNUSED static int32_t supports(void *be, const kopi_program *p, const kopi_op *op)
{
    return (void)be, (void)p, op->op == KOPI_OP_ADD;
}
UNUSED static kopi_status prepare(void *be, const kopi_program *p, uint32_t first, uint32_t n, void **plan)
{
    (void)be, (void)p, (void)first, (void)n, (void)plan;
    return KOPI_E_UNSUPPORTED;
}
UNUSED static kopi_status weight_import(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    const kopi_host *host = *(const kopi_host **)be;
    const kopi_ext_release *release = host->extension(host->ctx, KOPI_EXT_RELEASE);
    if (!release) return KOPI_E_UNSUPPORTED;
    IN_IMPORT;
    (void)w, out->mode = KOPI_WEIGHT_REF;
    return KOPI_OK;
}
UNUSED static void weight_free(void *be, void *handle) { (void)be, (void)handle; }
UNUSED static kopi_status kv_export(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical)
{
    (void)be, (void)p, (void)group, (void)page, (void)canonical;
    return KOPI_OK;
}
UNUSED static kopi_status buf_alloc(void *be, uint64_t size, uint32_t usage, void **handle, void **host_ptr)
{
    (void)be, (void)size, (void)usage, (void)handle, (void)host_ptr;
    return KOPI_E_NOMEM;
}

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    (void)device;
    IN_CREATE;
    if (!(*be = host->alloc(host->ctx, sizeof host, 16))) return host->fail(host->ctx, KOPI_E_NOMEM, "state");
    *(const kopi_host **)*be = host;
    if (__builtin_strcmp(common_name(), NAME))
        return host->fail(host->ctx, KOPI_E_INTERNAL, "common_name is that of another plugin");
    return KOPI_OK;
}
static void destroy(void *be)
{
    const kopi_host *host = *(const kopi_host **)be;
    host->free(host->ctx, be);
}

UNUSED static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    if (index) return KOPI_E_RANGE;
    out->flags = KOPI_DEVICE_EXACT | KOPI_DEVICE_HOST_VISIBLE;
    snprintf(out->name, sizeof out->name, "%s", NAME);
    snprintf(out->detail, sizeof out->detail, "version %s", VERSION);
    DEVICE_FIELDS;
    (void)host;
    return KOPI_OK;
}
UNUSED static kopi_status no_device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    return (void)host, (void)index, (void)out, KOPI_E_RANGE;
}
UNUSED static kopi_status broken_device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    (void)index, (void)out;
    return host->fail(host->ctx, KOPI_E_DEVICE_LOST, "the card does not answer");
}

/* As if compiled with later headers: more fields behind the known ones. */
UNUSED static const struct later_ops { kopi_backend_ops known; uint64_t more[4]; } ops = {
    .known = {.struct_size = OPS_SIZE, .create = create, .destroy = destroy, .kernels = kernels, .n_kernels = 1,
              .kernel_stride = sizeof *kernels, OPS_FIELDS},
    .more = {~0ull, ~0ull, ~0ull, ~0ull}};
UNUSED static const struct later_plugin { kopi_plugin known; uint64_t more[4];
} plugin = {.known = {.struct_size = STRUCT_SIZE,
                      .abi_minor = ABI_MINOR,
                      .min_host_minor = MIN_HOST_MINOR,
                      .sanitizer = SANITIZER,
                      .fingerprint = FINGERPRINT,
                      .name = NAME,
                      .version = VERSION,
                      .device = DEVICE,
                      .ops = OPS,
                      PLUGIN_FIELDS},
            .more = {~0ull, ~0ull, ~0ull, ~0ull}};

const kopi_plugin *kopi_plugin_v1(void)
{
    IN_ENTRY;
    return RESULT;
}
