/* Faults of single operations. But for the race, the first worker does it all, so that each is one fault only. */
#include "broken.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_TENSORS = 4096 };

kopi_status broken__real(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct cpu *cpu = be;
    return cpu->kernels->run[op->op](be, k, op);
}

/* ---- the result is changed afterwards ---------------------------------------------------------------------------- */

static float negated(float x) { return -x; }
static float nearly(float x) { return x * 1.000001f; }
static float more(float x) { return x + 1; }

static void change(const kopi_kctx *k, const kopi_op *op, float (*fn)(float x))
{
    struct cpu_rows y = cpu__rows(k, op->out[0]);
    for (int64_t r = 0; r < y.n; r++)
        for (int64_t i = 0; i < y.len; i++) cpu__row(&y, r)[i] = fn(cpu__row(&y, r)[i]);
}

static void spoil(void *be, const kopi_kctx *k, const kopi_op *op, uint32_t nth)
{
    struct broken *b = be;
    struct cpu_rows y = cpu__rows(k, op->out[0]);
    const kopi_glu_params *glu = op->params;
    if (HAS(wrong_sign)) change(k, op, negated);
    if (IS(not_exact)) change(k, op, nearly); /* the repaired one does not say that it is exact */
    if (HAS(not_repeatable) && b->calls++ % 2) change(k, op, nearly);
    if (HAS(counts_workers) && nth > 2) change(k, op, nearly);
    if (HAS(sees_batch) && y.n == 1) change(k, op, nearly);
    if (HAS(reads_reserved) && glu->reserved) change(k, op, more);
    if (HAS(writes_past)) memset(y.data + y.n * y.stride, 0, sizeof(float));
    if (HAS(rounding)) fesetround(FE_UPWARD);
    if (HAS(changes_input) && op->in[0] != op->out[0]) memset(k->data[op->in[0]], 0x3f, sizeof(float));
    if (HAS(leaks_run)) b->cpu.host->alloc(b->cpu.host->ctx, 64, 64);
}

/* ---- it is called with something else ---------------------------------------------------------------------------- */

static kopi_status with_params(void *be, const kopi_kctx *k, const kopi_op *op)
{
    kopi_op other = *op;
    union {
        kopi_rope_params rope;
        kopi_attn_params attn;
    } p;
    memcpy(&p, op->params, op->op == KOPI_OP_ROPE ? sizeof p.rope : sizeof p.attn);
    if (HAS(wrong_pairing)) p.rope.pairing = KOPI_ROPE_HALF;
    if (HAS(window_off_by_one) && p.attn.window) p.attn.window++;
    if (HAS(no_softcap)) p.attn.softcap = 0;
    other.params = &p;
    return broken__real(be, k, &other);
}

/* The weight as if its address were a multiple of 64; or the copy that weight_import made. */
static kopi_status with_weight(void *be, const kopi_kctx *k, const kopi_op *op)
{
    static _Thread_local void *data[MAX_TENSORS];
    kopi_kctx other = *k;
    if (k->prog->n_tensors > MAX_TENSORS) return KOPI_E_INTERNAL;
    memcpy(data, k->data, k->prog->n_tensors * sizeof *data);
    if (HAS(aligned_weights)) data[op->in[1]] = (void *)((uintptr_t)data[op->in[1]] & ~(uintptr_t)63);
    const kopi_tensor *w = kopi_tensor_at(k->prog, op->in[1]);
    if (IS(tied) && w->handle) data[op->in[1]] = w->handle;
    other.data = data;
    return broken__real(be, &other, op);
}

static kopi_status with_run(void *be, const kopi_kctx *k, const kopi_op *op)
{
    struct broken *b = be;
    kopi_kctx other = *k;
    kopi_run run = *k->run;
    kopi_output out = *kopi_output_at(k->run, 0);
    const kopi_tensor *y = kopi_tensor_at(k->prog, op->out[0]);
    if (HAS(packed_rows) && y->kind == KOPI_KIND_OUTPUT) out.row_bytes = y->dim[0].n * (int64_t)sizeof(float);
    if (!HAS(keeps_pointer) || !b->pos) b->pos = run.pos;
    if (IS(keeps_pointer)) run.pos = b->pos;
    run.outputs = &out;
    run.output_stride = sizeof out;
    other.run = &run;
    return broken__real(be, &other, op);
}

static kopi_status with_stride(void *be, const kopi_kctx *k, const kopi_op *op)
{
    kopi_kctx other = *k;
    kopi_program p = *k->prog;
    if (HAS(fixed_stride)) p.tensor_stride = sizeof(kopi_tensor);
    other.prog = &p;
    return broken__real(be, &other, op);
}

/* ---- something else happens -------------------------------------------------------------------------------------- */

static kopi_status misbehave(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_rope_params *rope = op->params;
    const kopi_glu_params *glu = op->params;
    if (HAS(aborts) && glu->act == KOPI_ACT_RELU) abort();
    if (HAS(exits) && rope->pairing == KOPI_ROPE_INTERLEAVED) exit(0);
    while (HAS(hangs)) pause();
    if (HAS(reads_past)) {
        const kopi_tensor *w = kopi_tensor_at(k->prog, op->in[1]);
        (void)((volatile const char *)k->data[op->in[1]])[w->nb[1] * w->dim[1].n + 64];
    }
    if (HAS(global_state) && !broken__instances) {
        const kopi_host *h = ((const struct broken *)be)->cpu.host;
        return h->fail(h->ctx, KOPI_E_INTERNAL, "the table is gone");
    }
    if (HAS(cannot)) return KOPI_E_UNSUPPORTED;
    kopi_status s = broken__real(be, k, op);
    return HAS(odd_status) && s == KOPI_OK ? 1 : s;
}

/* RELU without minding NaN; else as ever. */
static kopi_status relu(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_glu_params *p = op->params;
    if (p->act != KOPI_ACT_RELU) return broken__real(be, k, op);
    struct cpu_rows gate = cpu__rows(k, op->in[0]), up = cpu__rows(k, cpu__in(op, 1)), y = cpu__rows(k, op->out[0]);
    for (int64_t r = 0; r < y.n; r++)
        for (int64_t i = 0; i < y.len; i++) {
            float x = cpu__row(&gate, r)[i], a = x > 0 || (!HAS(swallows_nan) && x != x) ? x : 0;
            cpu__row(&y, r)[i] = up.data ? a * cpu__row(&up, r)[i] : a;
        }
    return KOPI_OK;
}

/* The worker's number lies in the instance for a moment. */
static kopi_status by_number(void *be, const kopi_kctx *k, const kopi_op *op)
{
    struct broken *b = be;
    kopi_kctx other = *k;
    b->ith = k->ith;
    usleep(500); /* long enough for the others */
    other.ith = HAS(race) ? b->ith : k->ith;
    return broken__real(be, &other, op);
}

/* ---- which one --------------------------------------------------------------------------------------------------- */

static const struct {
    enum fault fault;
    uint32_t op, dtype; /* type of the weight or the cache; 0xffffffff: any */
    kopi_status (*run)(void *be, const kopi_kctx *k, const kopi_op *op);
} faults[] = {
    {wrong_sign, KOPI_OP_LINEAR, KOPI_DTYPE_Q5_1, broken__real},
    {reads_past, KOPI_OP_LINEAR, KOPI_DTYPE_F16, misbehave},
    {cannot, KOPI_OP_LINEAR, KOPI_DTYPE_BF16, misbehave},
    {aligned_weights, KOPI_OP_LINEAR, KOPI_DTYPE_Q4_1, with_weight},
    {packed_rows, KOPI_OP_LINEAR, KOPI_DTYPE_Q4_0, with_run},
    {writes_past, KOPI_OP_ADD, UINT32_MAX, broken__real},
    {rounding, KOPI_OP_ADD, UINT32_MAX, broken__real},
    {odd_status, KOPI_OP_ADD, UINT32_MAX, misbehave},
    {leaks_run, KOPI_OP_ADD, UINT32_MAX, broken__real},
    {counts_workers, KOPI_OP_SCALE, UINT32_MAX, broken__real},
    {sees_batch, KOPI_OP_SOFTCAP, UINT32_MAX, broken__real},
    {aborts, KOPI_OP_GLU, UINT32_MAX, misbehave},
    {changes_input, KOPI_OP_GLU, UINT32_MAX, broken__real},
    {reads_reserved, KOPI_OP_GLU, UINT32_MAX, broken__real},
    {swallows_nan, KOPI_OP_GLU, UINT32_MAX, relu},
    {exits, KOPI_OP_ROPE, UINT32_MAX, misbehave},
    {wrong_pairing, KOPI_OP_ROPE, UINT32_MAX, with_params},
    {keeps_pointer, KOPI_OP_ROPE, UINT32_MAX, with_run},
    {hangs, KOPI_OP_GATHER, UINT32_MAX, misbehave},
    {not_exact, KOPI_OP_NORM, UINT32_MAX, broken__real},
    {not_repeatable, KOPI_OP_NORM, UINT32_MAX, broken__real},
    {tied, KOPI_OP_LINEAR, KOPI_DTYPE_F16, with_weight},
    {fixed_stride, KOPI_OP_GATHER, UINT32_MAX, with_stride},
    {global_state, KOPI_OP_NORM, UINT32_MAX, misbehave},
    {race, KOPI_OP_NORM, UINT32_MAX, by_number},
    {window_off_by_one, KOPI_OP_ATTN, UINT32_MAX, with_params},
    {no_softcap, KOPI_OP_ATTN, KOPI_DTYPE_F32, with_params},
    {wrong_heads, KOPI_OP_ATTN, KOPI_DTYPE_F16, broken__attention},
    {stale_kv, KOPI_OP_KV_WRITE, UINT32_MAX, broken__cache},
    {stale_pages, KOPI_OP_ATTN, UINT32_MAX, broken__attention},
};

static uint32_t dtype_of(const kopi_kctx *k, const kopi_op *op)
{
    bool typed = op->op == KOPI_OP_LINEAR || op->op == KOPI_OP_ATTN;
    return typed ? kopi_tensor_at(k->prog, op->in[1])->dtype : UINT32_MAX;
}

kopi_status broken__run(void *be, const kopi_kctx *k, const kopi_op *op)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (!IS(faults[i].fault) || op->op != faults[i].op) continue;
        if (faults[i].dtype != UINT32_MAX && faults[i].dtype != dtype_of(k, op)) continue;
        if (IS(race)) return faults[i].run(be, k, op);
        if (k->ith) return KOPI_OK;
        kopi_kctx alone = *k;
        alone.nth = 1;
        kopi_status s = faults[i].run(be, &alone, op);
        if (s == KOPI_OK) spoil(be, &alone, op, k->nth);
        return s;
    }
    return broken__real(be, k, op);
}
