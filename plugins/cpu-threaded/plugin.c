/* The entry of the plugin: options, capability, life. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

/* ---- levels ------------------------------------------------------------------------------------------------------ */

static const struct kt_kernels *kernels_of(enum kt_level level)
{
#if defined(__x86_64__)
    static const struct kt_kernels *const table[KT_N_LEVELS] = {
        [KT_C] = &kt__kernels_c, [KT_AVX2] = &kt__kernels_avx2, [KT_AVX512VNNI] = &kt__kernels_avx512vnni};
    return table[level];
#else
    (void)level;
    return &kt__kernels_c;
#endif
}

static kopi_status read_level(const kopi_host *host, enum kt_level *level)
{
    char err[200];
    if (kt_level_parse(host->option(host->ctx, "isa"), kt_level_detect(), level, err, sizeof err)) return KOPI_OK;
    return host->fail(host->ctx, KOPI_E_CONFIG, err);
}

/* ---- capability -------------------------------------------------------------------------------------------------- */

static const kopi_tensor *operand(const kopi_program *p, const int32_t *list, uint32_t n, uint32_t i)
{
    return i < n && list[i] >= 0 && (uint32_t)list[i] < p->n_tensors ? kopi_tensor_at(p, list[i]) : NULL;
}
static const kopi_tensor *in_of(const kopi_program *p, const kopi_op *op, uint32_t i)
{
    return operand(p, op->in, op->n_in, i);
}
static const kopi_tensor *out_of(const kopi_program *p, const kopi_op *op, uint32_t i)
{
    return operand(p, op->out, op->n_out, i);
}

static bool is_f32(const kopi_tensor *t) { return t && t->dtype == KOPI_DTYPE_F32 && t->n_dims >= 1; }

/* An operation with its number of F32 inputs that have to be there, and of bytes of its parameters. */
struct shape { uint32_t n_f32, params; };
static const struct shape shapes[KOPI_OP_END_] = {
    [KOPI_OP_EMBED] = {0, sizeof(kopi_embed_params)}, [KOPI_OP_NORM] = {1, sizeof(kopi_norm_params)},
    [KOPI_OP_QUANTIZE] = {1, 0},                      [KOPI_OP_LINEAR] = {0, 0},
    [KOPI_OP_ROPE] = {2, sizeof(kopi_rope_params)},   [KOPI_OP_KV_WRITE] = {2, sizeof(kopi_kv_write_params)},
    [KOPI_OP_ATTN] = {1, sizeof(kopi_attn_params)},   [KOPI_OP_GLU] = {1, sizeof(kopi_glu_params)},
    [KOPI_OP_ADD] = {2, 0},                           [KOPI_OP_SCALE] = {1, sizeof(kopi_scale_params)},
    [KOPI_OP_SOFTCAP] = {1, sizeof(kopi_scale_params)}, [KOPI_OP_GATHER] = {1, 0},
};

static bool has_shape(const kopi_program *p, const kopi_op *op)
{
    if (op->op < 1 || op->op >= KOPI_OP_END_ || op->version != 1) return false;
    const struct shape *s = &shapes[op->op];
    for (uint32_t i = 0; i < s->n_f32; i++)
        if (!is_f32(in_of(p, op, i))) return false;
    return op->params_size >= s->params && (op->params || !s->params) && in_of(p, op, 0) && out_of(p, op, 0);
}

static bool has_linear(const kopi_program *p, const kopi_op *op)
{
    const kopi_tensor *w = in_of(p, op, 1), *x = in_of(p, op, 0);
    return w && x && is_f32(out_of(p, op, 0)) && kt_linear_find(w->dtype, KT_C) &&
           x->dtype == kopi_activation_dtype(w->dtype);
}

/* Quantized activations never leave the plan: their layout is private. So all operations on the tensor have to be ours.
 */
static bool all_ours(const kopi_program *p, int32_t tensor)
{
    bool made = false;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const kopi_op *op = kopi_op_at(p, i);
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k] == tensor && !(op->op == KOPI_OP_LINEAR && k == 0 && has_shape(p, op) && has_linear(p, op)))
                return false;
        for (uint32_t k = 0; k < op->n_out; k++) {
            if (op->out[k] != tensor) continue;
            if (op->op != KOPI_OP_QUANTIZE || !has_shape(p, op)) return false;
            made = true;
        }
    }
    return made;
}

static int32_t supports(void *be, const kopi_program *p, const kopi_op *op)
{
    (void)be;
    if (!has_shape(p, op)) return 0;
    const kopi_tensor *x = in_of(p, op, 0), *y = out_of(p, op, 0);
    switch (op->op) {
    case KOPI_OP_EMBED: return is_f32(y) && kt_linear_find(x->dtype, KT_C);
    case KOPI_OP_QUANTIZE:
        return (y->dtype == KOPI_DTYPE_A8_32 || y->dtype == KOPI_DTYPE_A8_256) && all_ours(p, op->out[0]);
    case KOPI_OP_LINEAR: return has_linear(p, op) && (is_f32(x) || all_ours(p, op->in[0]));
    case KOPI_OP_KV_WRITE: return out_of(p, op, 1) && kt_kv_fits(p, op);
    case KOPI_OP_ATTN: return in_of(p, op, 1) && in_of(p, op, 2) && is_f32(y) && kt_kv_fits(p, op);
    default: return is_f32(y);
    }
}

static const char *describe(void *be, const kopi_program *p, const kopi_op *op)
{
    static const char *const levels[KT_N_LEVELS] = {"kernel_c", "kernel_avx2", "kernel_avx512vnni"};
    static const char *const attn[KT_N_LEVELS] = {"attn_c", "attn_avx2", "attn_avx512vnni"};
    const struct kt *kt = be;
    if (!supports(be, p, op)) return NULL;
    if (op->op == KOPI_OP_LINEAR) return kt_linear_find(in_of(p, op, 1)->dtype, kt->level)->name;
    return op->op == KOPI_OP_ATTN ? attn[kt->level] : levels[kt->level];
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    enum kt_level level;
    (void)device;
    kopi_status s = read_level(host, &level);
    if (s != KOPI_OK) return s;
    struct kt *kt = kt_calloc(host, 1, sizeof *kt);
    if (!kt) return kt_nomem(host, "the backend's state");
    *kt = (struct kt){.host = host, .level = level, .kernels = kernels_of(level)};
    if (KOPI_HAS(host, extension)) {
        kt->trace = host->extension(host->ctx, KOPI_EXT_TRACE);
        kt->release = host->extension(host->ctx, KOPI_EXT_RELEASE);
    }
    *be = kt;
    return KOPI_OK;
}

static void destroy(void *be)
{
    const struct kt *kt = be;
    kt_free(kt->host, be);
}

static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    enum kt_level level;
    if (index > 0) return KOPI_E_RANGE;
    kopi_status s = read_level(host, &level);
    if (s != KOPI_OK) return s;
    kopi_device d = {.struct_size = sizeof d, .kind = KOPI_DEVICE_CPU, .align = 64, .name = "cpu",
                     .flags = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE};
    uint32_t n = host->team_size(host->ctx), given = out->struct_size;
    snprintf(d.detail, sizeof d.detail, "%s, %u thread%s", kt_level_name(level), n, n == 1 ? "" : "s");
    memcpy(out, &d, given < sizeof d ? given : sizeof d);
    out->struct_size = given < sizeof d ? given : (uint32_t)sizeof d;
    return KOPI_OK;
}

static const char *const option_keys[] = {"isa", NULL};

static const kopi_backend_ops ops = {
    .struct_size = sizeof ops,
    .create = create,
    .destroy = destroy,
    .supports = supports,
    .weight_import = kt_weight_import,
    .weight_free = kt_weight_free,
    .prepare = kt_prepare,
    .execute = kt_execute,
    .plan_free = kt_plan_free,
    .kv_export = kt_kv_export,
    .kv_import = kt_kv_import,
    .describe = describe,
};

static const kopi_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_minor = KOPI_ABI_MINOR,
    .min_host_minor = KOPI_ABI_MINOR,
    .sanitizer = KOPI_SANITIZER,
    .fingerprint = KOPI_FINGERPRINT,
    .name = "cpu-threaded",
    .version = KT_VERSION,
    .license = "MIT",
    .device = device,
    .option_keys = option_keys,
    .ops = &ops,
};

const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
