#include "backend/assign.h"

#include <stdio.h>

const char *kopi__dtype_name(uint32_t dtype)
{
    switch (dtype) {
#define NAME(name, id, len, bytes) case id: return #name;
        KOPI_DTYPES(NAME)
#undef NAME
    case KOPI_DTYPE_A8_32: return "A8_32";
    case KOPI_DTYPE_A8_256: return "A8_256";
    default: return "?";
    }
}

const char *kopi__op_name(uint32_t op)
{
    switch (op) {
#define NAME(name, id, version) case id: return #name;
        KOPI_OPS(NAME)
#undef NAME
    default: return "?";
    }
}

static uint32_t dtype_of(const kopi_program *p, const int32_t *list, uint32_t n, uint32_t i)
{
    return i < n && list[i] >= 0 ? kopi_tensor_at(p, list[i])->dtype : UINT32_MAX;
}

void kopi__op_types(const kopi_program *p, const kopi_op *op, uint32_t *w_type, uint32_t *a_type)
{
    /* Operand that carries each type: index into in; 16 + index into out; -1: none. */
    static const signed char from[][2] = {
        [KOPI_OP_EMBED] = {0, -1},  [KOPI_OP_NORM] = {-1, -1},    [KOPI_OP_QUANTIZE] = {-1, 16},
        [KOPI_OP_LINEAR] = {1, 0},  [KOPI_OP_ROPE] = {-1, -1},    [KOPI_OP_KV_WRITE] = {16, -1},
        [KOPI_OP_ATTN] = {1, -1},   [KOPI_OP_GLU] = {-1, -1},     [KOPI_OP_ADD] = {-1, -1},
        [KOPI_OP_SCALE] = {-1, -1}, [KOPI_OP_SOFTCAP] = {-1, -1}, [KOPI_OP_GATHER] = {-1, -1}};
    uint32_t *out[2] = {w_type, a_type};
    for (int k = 0; k < 2; k++) {
        int f = op->op < sizeof from / sizeof *from ? from[op->op][k] : -1;
        *out[k] = f < 0    ? UINT32_MAX
                  : f < 16 ? dtype_of(p, op->in, op->n_in, (uint32_t)f)
                           : dtype_of(p, op->out, op->n_out, (uint32_t)f - 16);
    }
}

enum kopi_how kopi__instance_how(struct kopi_instance *i, const kopi_program *p, const kopi_op *op,
                                 const kopi_kernel **kernel)
{
    uint32_t w, a;
    *kernel = NULL;
    if (i->ops.supports) {
        struct kopi_guard g;
        kopi__guard_enter(&g);
        int32_t yes = i->ops.supports(i->be, p, op);
        kopi__guard_leave(&g, i, "supports", KOPI_OK, NULL);
        if (!yes) return KOPI_HOW_NOT;
        if (i->ops.prepare) return KOPI_HOW_PLAN;
    }
    kopi__op_types(p, op, &w, &a);
    *kernel = kopi__instance_kernel(i, op->op, op->version, w, a);
    return *kernel ? KOPI_HOW_KERNEL : KOPI_HOW_NOT;
}

/* A program of this one operation, with shapes that every type allows. */
bool kopi__instance_takes(void *ctx, uint32_t w, uint32_t a)
{
    static const int32_t in[] = {0, 1, -1}, out[] = {2};
    const kopi_tensor t[] = {
        {.dtype = a, .kind = KOPI_KIND_ACT, .n_dims = 2, .dim = {{256, 0, 0}, {1, KOPI_DIM_TOK, 1}}, .name = "x"},
        {.dtype = w, .kind = KOPI_KIND_WEIGHT, .n_dims = 2, .dim = {{256, 0, 0}, {16, 0, 0}}, .name = "w"},
        {.dtype = KOPI_DTYPE_F32,
         .kind = KOPI_KIND_ACT,
         .n_dims = 2,
         .dim = {{16, 0, 0}, {1, KOPI_DIM_TOK, 1}},
         .name = "y"}};
    const kopi_op op = {
        .op = KOPI_OP_LINEAR, .version = 1, .in = in, .out = out, .n_in = 3, .n_out = 1, .layer = UINT32_MAX};
    const kopi_program p = {.struct_size = sizeof p,
                            .opset = KOPI_OPSET,
                            .n_ops = 1,
                            .op_stride = sizeof op,
                            .n_tensors = 3,
                            .tensor_stride = sizeof *t,
                            .group_stride = sizeof(kopi_kv_group),
                            .ops = &op,
                            .tensors = t,
                            .max_tok = 1,
                            .max_out = 1,
                            .max_seq = 1,
                            .max_pos = 1};
    const kopi_kernel *kernel;
    return kopi__instance_how(ctx, &p, &op, &kernel) != KOPI_HOW_NOT;
}

/* " Q4_1", with its number if it is a type that a plugin brings. */
static const char *type_text(const char *before, uint32_t dtype, char *buf, size_t n)
{
    const char *name = kopi__dtype_name(dtype);
    if (dtype == UINT32_MAX) return "";
    if (*name != '?') snprintf(buf, n, "%s%s", before, name);
    else snprintf(buf, n, "%stype 0x%08x", before, dtype);
    return buf;
}

const char *kopi__op_text(const kopi_program *p, const kopi_op *op, char *buf, size_t n)
{
    uint32_t w, a;
    kopi__op_types(p, op, &w, &a);
    char text[2][24];
    snprintf(buf, n, "%s%s%s", kopi__op_name(op->op), type_text(" ", w, text[0], sizeof *text),
             type_text(" x ", a, text[1], sizeof *text));
    return buf;
}
