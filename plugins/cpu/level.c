/* The table of one level, and its names. */
#include "dequant.h"

static const char *const names[KOPI_OP_END_] = {
    [KOPI_OP_NORM] = "norm" CPU_SUFFIX,       [KOPI_OP_QUANTIZE] = "quantize" CPU_SUFFIX,
    [KOPI_OP_ROPE] = "rope" CPU_SUFFIX,       [KOPI_OP_KV_WRITE] = "kv_write" CPU_SUFFIX,
    [KOPI_OP_ATTN] = "attn" CPU_SUFFIX,       [KOPI_OP_GLU] = "glu" CPU_SUFFIX,
    [KOPI_OP_ADD] = "add" CPU_SUFFIX,         [KOPI_OP_SCALE] = "scale" CPU_SUFFIX,
    [KOPI_OP_SOFTCAP] = "softcap" CPU_SUFFIX, [KOPI_OP_GATHER] = "gather" CPU_SUFFIX,
};

static const struct cpu_format *format_of(const kopi_program *p, int32_t tensor)
{
    return tensor >= 0 ? cpu__format(kopi_tensor_at(p, tensor)->dtype) : NULL;
}

static const char *describe(const kopi_program *p, const kopi_op *op)
{
    const struct cpu_format *f;
    if (op->op == KOPI_OP_EMBED) return (f = format_of(p, op->in[0])) ? f->embed : NULL;
    if (op->op == KOPI_OP_LINEAR) {
        if (!(f = format_of(p, op->in[1]))) return NULL;
        return f->len > 1 && kopi_tensor_at(p, op->in[0])->dtype == KOPI_DTYPE_F32 ? f->linear_f32 : f->linear;
    }
    return op->op < KOPI_OP_END_ ? names[op->op] : NULL;
}

const struct cpu_kernels CPU_AT_LEVEL(cpu__kernels_) = {
#define RUN(NAME, name) [KOPI_OP_##NAME] = CPU_AT_LEVEL(cpu__##name##_)
    .run = {RUN(EMBED, embed), RUN(NORM, norm), RUN(QUANTIZE, quantize), RUN(LINEAR, linear), RUN(ROPE, rope),
            RUN(KV_WRITE, kv_write), RUN(ATTN, attn), RUN(GLU, glu), RUN(ADD, add), RUN(SCALE, scale),
            RUN(SOFTCAP, softcap), RUN(GATHER, gather)},
    .scratch =
        {[KOPI_OP_LINEAR] = CPU_AT_LEVEL(cpu__linear_scratch_), [KOPI_OP_ATTN] = CPU_AT_LEVEL(cpu__attn_scratch_)},
    .describe = describe,
};
