/* The reference backend's entry: capability table, options, and the choice of the level. */
#include "kernels.h"

#include <stdio.h>
#include <string.h>

#ifndef CPU_HAVE_V3
#define CPU_HAVE_V3 0
#endif

/* ---- options ----------------------------------------------------------------------------------------------------- */

struct options {
    bool linear_f32;
    const struct cpu_kernels *kernels;
    const char *level;
};

/* The processor has the instructions of level v3 and the system saves their registers (the builtin asks both). */
static bool v3_runs(void)
{
#if CPU_HAVE_V3
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

static kopi_status refuse(const kopi_host *host, const char *key, const char *value, const char *instead)
{
    char text[256];
    snprintf(text, sizeof text, "option %s: '%.64s' is not possible; %s", key, value, instead);
    return host->fail(host->ctx, KOPI_E_CONFIG, text);
}

static kopi_status read_options(const kopi_host *host, struct options *o)
{
    const char *linear = host->option(host->ctx, "linear"), *isa = host->option(host->ctx, "isa");
    bool v3 = v3_runs();
    if (linear && strcmp(linear, "int8") != 0 && strcmp(linear, "f32") != 0)
        return refuse(host, "linear", linear, "allowed are int8 and f32");
    o->linear_f32 = linear && strcmp(linear, "f32") == 0;
    if (isa && strcmp(isa, "auto") != 0) {
        if (strcmp(isa, "baseline") != 0 && strcmp(isa, "v3") != 0)
            return refuse(host, "isa", isa, "allowed are auto, baseline and v3");
        if (strcmp(isa, "v3") == 0 && !v3)
            return refuse(host, "isa", isa, "it needs AVX2 and FMA; allowed here are auto and baseline");
        v3 = strcmp(isa, "v3") == 0;
    }
    o->kernels = &cpu__kernels_baseline;
    o->level = "baseline";
#if CPU_HAVE_V3
    if (v3) {
        o->kernels = &cpu__kernels_v3;
        o->level = "v3";
    }
#endif
    return KOPI_OK;
}

static const char *const option_keys[] = {"linear", "isa", NULL};

/* ---- capability -------------------------------------------------------------------------------------------------- */

static kopi_status run(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct cpu *cpu = be;
    return cpu->kernels->run[op->op](be, k, op);
}

static uint64_t scratch(void *be, const kopi_program *p, const kopi_op *op, uint32_t nth)
{
    const struct cpu *cpu = be;
    (void)nth;
    return cpu->kernels->scratch[op->op] ? cpu->kernels->scratch[op->op](p, op) : 0;
}

static const uint32_t weights[] = {KOPI_DTYPE_F32,    KOPI_DTYPE_F16,  KOPI_DTYPE_BF16, KOPI_DTYPE_Q4_0,
                                   KOPI_DTYPE_Q4_1,   KOPI_DTYPE_Q5_0, KOPI_DTYPE_Q5_1, KOPI_DTYPE_Q8_0,
                                   KOPI_DTYPE_IQ4_NL, KOPI_DTYPE_Q2_K, KOPI_DTYPE_Q3_K, KOPI_DTYPE_Q4_K,
                                   KOPI_DTYPE_Q5_K,   KOPI_DTYPE_Q6_K};
static const uint32_t weights_32[] = {KOPI_DTYPE_Q4_0, KOPI_DTYPE_Q4_1, KOPI_DTYPE_Q5_0,
                                      KOPI_DTYPE_Q5_1, KOPI_DTYPE_Q8_0, KOPI_DTYPE_IQ4_NL};
static const uint32_t weights_256[] = {KOPI_DTYPE_Q2_K, KOPI_DTYPE_Q3_K, KOPI_DTYPE_Q4_K, KOPI_DTYPE_Q5_K,
                                       KOPI_DTYPE_Q6_K};
static const uint32_t kv[] = {KOPI_DTYPE_F32, KOPI_DTYPE_F16};
static const uint32_t f32[] = {KOPI_DTYPE_F32}, a8_32[] = {KOPI_DTYPE_A8_32}, a8_256[] = {KOPI_DTYPE_A8_256};
static const uint32_t a8[] = {KOPI_DTYPE_A8_32, KOPI_DTYPE_A8_256};

#define N(list) sizeof(list) / sizeof *(list)
#define PLAIN(NAME)                                                                                                    \
    {                                                                                                                  \
        KOPI_OP_##NAME, 1, NULL, NULL, 0, 0, run, NULL                                                                 \
    }
/* Both ways of LINEAR are listed; supports() says which one the options leave. */
static const kopi_kernel kernels[] = {
    {KOPI_OP_EMBED, 1, weights, NULL, N(weights), 0, run, NULL},
    {KOPI_OP_QUANTIZE, 1, NULL, a8, 0, N(a8), run, NULL},
    {KOPI_OP_LINEAR, 1, weights, f32, N(weights), N(f32), run, scratch},
    {KOPI_OP_LINEAR, 1, weights_32, a8_32, N(weights_32), N(a8_32), run, scratch},
    {KOPI_OP_LINEAR, 1, weights_256, a8_256, N(weights_256), N(a8_256), run, scratch},
    {KOPI_OP_KV_WRITE, 1, kv, NULL, N(kv), 0, run, NULL},
    {KOPI_OP_ATTN, 1, kv, NULL, N(kv), 0, run, scratch},
    PLAIN(NORM),
    PLAIN(ROPE),
    PLAIN(GLU),
    PLAIN(ADD),
    PLAIN(SCALE),
    PLAIN(SOFTCAP),
    PLAIN(GATHER),
};

static bool in_list(uint32_t value, const uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == value) return true;
    return false;
}

static uint32_t dtype_of(const kopi_program *p, int32_t tensor)
{
    return tensor >= 0 ? kopi_tensor_at(p, tensor)->dtype : UINT32_MAX;
}

static bool is_kv(const kopi_program *p, int32_t key, int32_t value)
{
    return in_list(dtype_of(p, key), kv, N(kv)) && in_list(dtype_of(p, value), kv, N(kv));
}

static bool takes_linear(const struct cpu *cpu, const kopi_program *p, const kopi_op *op)
{
    uint32_t w = dtype_of(p, op->in[1]), x = dtype_of(p, op->in[0]);
    return in_list(w, weights, N(weights)) &&
           x == (cpu->linear_f32 ? (uint32_t)KOPI_DTYPE_F32 : kopi_activation_dtype(w));
}

static bool takes_attn(const kopi_program *p, const kopi_op *op)
{
    const kopi_attn_params *a = op->params;
    return is_kv(p, op->in[1], op->in[2]) && a->n_kv_heads && a->n_heads % a->n_kv_heads == 0;
}

/* What an operation must have: inputs, outputs, bytes of parameters. */
static const struct {
    uint32_t n_in, n_out, params;
} needs[KOPI_OP_END_] = {
    [KOPI_OP_EMBED] = {1, 1, sizeof(kopi_embed_params)},
    [KOPI_OP_NORM] = {1, 1, sizeof(kopi_norm_params)},
    [KOPI_OP_QUANTIZE] = {1, 1, 0},
    [KOPI_OP_LINEAR] = {2, 1, 0},
    [KOPI_OP_ROPE] = {2, 1, sizeof(kopi_rope_params)},
    [KOPI_OP_KV_WRITE] = {2, 2, sizeof(kopi_kv_write_params)},
    [KOPI_OP_ATTN] = {3, 1, sizeof(kopi_attn_params)},
    [KOPI_OP_GLU] = {1, 1, sizeof(kopi_glu_params)},
    [KOPI_OP_ADD] = {2, 1, 0},
    [KOPI_OP_SCALE] = {1, 1, sizeof(kopi_scale_params)},
    [KOPI_OP_SOFTCAP] = {1, 1, sizeof(kopi_scale_params)},
    [KOPI_OP_GATHER] = {1, 1, 0},
};

static bool all_present(const int32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] < 0) return false;
    return true;
}

static bool well_formed(const kopi_op *op)
{
    if (op->version != 1 || !op->op || op->op >= KOPI_OP_END_) return false;
    if (op->n_in < needs[op->op].n_in || op->n_out < needs[op->op].n_out) return false;
    if (op->params_size < needs[op->op].params) return false;
    return all_present(op->in, needs[op->op].n_in) && all_present(op->out, needs[op->op].n_out);
}

static int32_t supports(void *be, const kopi_program *p, const kopi_op *op)
{
    if (!well_formed(op)) return 0;
    switch (op->op) {
    case KOPI_OP_EMBED: return in_list(dtype_of(p, op->in[0]), weights, N(weights));
    case KOPI_OP_QUANTIZE: return in_list(dtype_of(p, op->out[0]), a8, N(a8));
    case KOPI_OP_LINEAR: return takes_linear(be, p, op);
    case KOPI_OP_KV_WRITE: return is_kv(p, op->out[0], op->out[1]);
    case KOPI_OP_ATTN: return takes_attn(p, op);
    default: return 1;
    }
}

static const char *describe(void *be, const kopi_program *p, const kopi_op *op)
{
    return supports(be, p, op) ? ((const struct cpu *)be)->kernels->describe(p, op) : NULL;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    struct options o;
    (void)device;
    kopi_status s = read_options(host, &o);
    if (s != KOPI_OK) return s;
    struct cpu *cpu = host->alloc(host->ctx, sizeof *cpu, 64);
    if (!cpu) return host->fail(host->ctx, KOPI_E_NOMEM, "state of the backend");
    *cpu = (struct cpu){host, o.kernels, o.linear_f32};
    *be = cpu;
    return KOPI_OK;
}

static void destroy(void *be)
{
    const kopi_host *host = ((struct cpu *)be)->host;
    host->free(host->ctx, be);
}

static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    struct options o;
    if (index > 0) return KOPI_E_RANGE;
    kopi_status s = read_options(host, &o);
    if (s != KOPI_OK) return s;
    kopi_device d = {.struct_size = sizeof d,
                     .kind = KOPI_DEVICE_CPU,
                     .align = 64,
                     .name = "cpu",
                     .flags =
                         KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE | (o.linear_f32 ? 0 : KOPI_DEVICE_EXACT)};
    snprintf(d.detail, sizeof d.detail, "reference, %s%s", o.level, o.linear_f32 ? ", linear f32" : "");
    uint32_t given = out->struct_size;
    memcpy(out, &d, given < sizeof d ? given : sizeof d);
    out->struct_size = given < sizeof d ? given : (uint32_t)sizeof d;
    return KOPI_OK;
}

static const kopi_backend_ops ops = {
    .struct_size = sizeof ops,
    .flags = KOPI_BF_ONE_THREAD,
    .create = create,
    .destroy = destroy,
    .kernels = kernels,
    .n_kernels = N(kernels),
    .kernel_stride = sizeof *kernels,
    .supports = supports,
    .describe = describe,
};

static const kopi_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_minor = KOPI_ABI_MINOR,
    .min_host_minor = KOPI_ABI_MINOR,
    .sanitizer = KOPI_SANITIZER,
    .fingerprint = KOPI_FINGERPRINT,
    .name = "cpu",
    .version = CPU_VERSION,
    .license = "MIT",
    .device = device,
    .option_keys = option_keys,
    .ops = &ops,
};

const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
