/* The program as a whole, by the host's team: for the faults of prepare and execute. */
#include "broken.h"

#include <string.h>

struct plan {
    struct broken *b;
    const kopi_program *p;
    uint32_t first, n, nth;
    void **data;
    char *arena, *scratch;
    uint64_t scratch_size;
    const kopi_run *run;
};

static void *take(const kopi_host *h, uint64_t size) { return h->alloc(h->ctx, size ? size : 1, 64); }

static uint64_t scratch_of(const struct broken *b, const kopi_program *p, uint32_t first, uint32_t n)
{
    uint64_t most = 0;
    for (uint32_t i = first; i < first + n; i++) {
        const kopi_op *op = kopi_op_at(p, i);
        uint64_t (*fn)(const kopi_program *, const kopi_op *) = b->cpu.kernels->scratch[op->op];
        uint64_t size = fn ? fn(p, op) : 0;
        if (size > most) most = size;
    }
    return (most + 63) / 64 * 64;
}

void broken__plan_free(void *be, void *plan)
{
    const kopi_host *h = ((struct broken *)be)->cpu.host;
    struct plan *x = plan;
    h->free(h->ctx, x->data);
    if (!HAS(leaks_plan)) h->free(h->ctx, x->arena);
    h->free(h->ctx, x->scratch);
    h->free(h->ctx, x);
}

kopi_status broken__prepare(void *be, const kopi_program *p, uint32_t first_op, uint32_t n_ops, void **plan)
{
    struct broken *b = be;
    const kopi_host *h = b->cpu.host;
    struct plan *x = take(h, sizeof *x);
    if (!x) return h->fail(h->ctx, KOPI_E_NOMEM, "plan");
    *x = (struct plan){.b = b, .p = p, .first = first_op, .n = n_ops, .nth = h->team_size(h->ctx)};
    x->scratch_size = scratch_of(b, p, first_op, n_ops);
    x->data = take(h, p->n_tensors * sizeof *x->data);
    x->arena = take(h, p->act_bytes);
    x->scratch = take(h, x->scratch_size * x->nth);
    if (!x->data || !x->arena || !x->scratch) {
        broken__plan_free(be, x);
        return h->fail(h->ctx, KOPI_E_NOMEM, "memory of a plan");
    }
    *plan = x;
    return KOPI_OK;
}

static kopi_status work(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    const struct plan *x = arg;
    const kopi_host *h = x->b->cpu.host;
    kopi_kctx k = {.struct_size = sizeof k,
                   .ith = ith,
                   .nth = nth,
                   .prog = x->p,
                   .run = x->run,
                   .data = x->data,
                   .scratch = x->scratch + ith * x->scratch_size,
                   .scratch_size = x->scratch_size};
    for (uint32_t i = 0; i < x->n; i++) {
        kopi_status s = !HAS(ignores_cancel) && ith == 0 && h->cancelled(h->ctx) ? KOPI_E_CANCELLED : KOPI_OK;
        s = h->barrier(team, s);
        if (s == KOPI_OK) s = broken__run(x->b, &k, kopi_op_at(x->p, x->first + i));
        s = h->barrier(team, s);
        if (s != KOPI_OK) return s;
    }
    return KOPI_OK;
}

kopi_status broken__execute(void *be, void *plan, const kopi_run *run)
{
    struct broken *b = be;
    struct plan *x = plan;
    const kopi_host *h = b->cpu.host;
    for (uint32_t i = 0; i < x->p->n_tensors; i++) {
        const kopi_tensor *t = kopi_tensor_at(x->p, (int32_t)i);
        x->data[i] = t->kind == KOPI_KIND_OUTPUT ? (t->group < run->n_out ? kopi_output_at(run, t->group)->host : NULL)
                     : t->kind == KOPI_KIND_ACT && !t->data ? x->arena + t->off
                                                            : t->data;
    }
    if (HAS(spoilt_by_cancel) && b->spoilt) { /* as if it were still to be stopped */
        b->spoilt = false;
        return KOPI_OK;
    }
    x->run = run;
    kopi_status s = h->team(h->ctx, work, x);
    b->spoilt = s == KOPI_E_CANCELLED;
    return s;
}
