#include "backend/cost.h"

#include <stdbool.h>

static const kopi_tensor *tensor(const kopi_program *p, const int32_t *list, uint32_t n, uint32_t i)
{
    return i < n && list[i] >= 0 ? kopi_tensor_at(p, list[i]) : NULL;
}
static const kopi_tensor *in(const kopi_program *p, const kopi_op *op, uint32_t i)
{
    return tensor(p, op->in, op->n_in, i);
}
static const kopi_tensor *out(const kopi_program *p, const kopi_op *op, uint32_t i)
{
    return tensor(p, op->out, op->n_out, i);
}

/* Bytes of a tensor that an operation touches: all of it, but one row per token of a table that is looked up. KV parts
 * are counted by their operations. */
static uint64_t touched(const kopi_tensor *t, const kopi_run *run, bool table)
{
    if (!t || t->kind == KOPI_KIND_KV || !t->n_dims) return 0;
    uint32_t last = t->n_dims - 1;
    int64_t rows = table ? run->n_tok : kopi_extent(run, t, last);
    return (uint64_t)rows * (uint64_t)t->nb[last];
}

static uint64_t operand_bytes(const kopi_program *p, const kopi_op *op, const kopi_run *run)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < op->n_in; i++)
        n += touched(in(p, op, i), run, (op->op == KOPI_OP_EMBED && i == 0) || (op->op == KOPI_OP_ROPE && i == 1));
    for (uint32_t i = 0; i < op->n_out; i++) n += touched(out(p, op, i), run, false);
    return n;
}

static uint64_t value_bytes(const kopi_tensor *t) { return t && t->dtype == KOPI_DTYPE_F32 ? 4 : 2; }

static struct kopi_cost attn_cost(const kopi_program *p, const kopi_op *op, const kopi_run *run)
{
    const kopi_attn_params *a = op->params;
    uint64_t dims = (uint64_t)a->head_dim_k + a->head_dim_v, row = dims * a->n_kv_heads * value_bytes(in(p, op, 1));
    struct kopi_cost c = {0};
    for (uint32_t s = 0; s < run->n_seq; s++) {
        const kopi_seq_run *q = kopi_seq_at(run, s);
        uint64_t first_sees = q->n_past + 1u, hidden = 0;
        if (a->window && first_sees > a->window) hidden = first_sees - a->window;
        c.bytes += (q->n_past + (uint64_t)q->n_new - hidden) * row;
        for (uint32_t i = 0; i < q->n_new; i++) {
            uint64_t sees = q->n_past + i + 1u;
            if (a->window && sees > a->window) sees = a->window;
            c.flops += 2 * sees * dims * a->n_heads;
        }
    }
    return c;
}

struct kopi_cost kopi__op_cost(const kopi_program *p, const kopi_op *op, const kopi_run *run)
{
    struct kopi_cost c = {0};
    if (op->op == KOPI_OP_ATTN) c = attn_cost(p, op, run);
    if (op->op == KOPI_OP_KV_WRITE) {
        const kopi_kv_write_params *k = op->params;
        c.bytes = (uint64_t)run->n_tok * k->n_kv_heads * ((uint64_t)k->head_dim_k + k->head_dim_v) *
                  value_bytes(out(p, op, 0));
    }
    if (op->op == KOPI_OP_LINEAR) {
        const kopi_tensor *w = in(p, op, 1), *x = in(p, op, 0);
        c.flops = 2 * (uint64_t)w->dim[0].n * (uint64_t)w->dim[1].n * (uint64_t)kopi_extent(run, x, x->n_dims - 1);
    }
    c.bytes += operand_bytes(p, op, run);
    return c;
}
