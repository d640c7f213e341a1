/* One step: segments of kernels, walked by all workers, and of plans, which their backend executes; declared in exec.h.
 */
#include "backend/exec_state.h"

#include "backend/assign.h"
#include "backend/device.h"
#include "base/mem.h"
#include "base/sys.h"

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

struct region {
    struct kopi_exec *x;
    const struct kopi_exec_segment *segment;
    const kopi_run *run;
};

static void resolve(struct kopi_exec *x, const kopi_run *run)
{
    for (uint32_t i = 0; i < x->p->p.n_tensors; i++) {
        const kopi_tensor *t = &x->p->tensors[i];
        x->data[i] = t->kind == KOPI_KIND_OUTPUT ? (t->group < run->n_out ? kopi_output_at(run, t->group)->host : NULL)
                                                 : t->data;
    }
}

static kopi_status run_kernel(struct kopi_exec *x, uint32_t i, const kopi_kctx *k)
{
    const struct kopi_exec_call *c = &x->calls[i];
    struct kopi_trace *t = x->main->trace;
    uint64_t begin = t ? kopi__now_ns() : 0;
    kopi_status s = c->kernel->run(c->who->be, k, &x->p->ops[i]);
    if (t) kopi__trace_span(t, k->ith, begin, kopi__now_ns(), &i, 1);
    kopi__guard_check(c->who, kopi__op_name(x->p->ops[i].op));
    return s;
}

/* All workers walk the list; between levels they meet. */
static kopi_status walk(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    const struct region *r = arg;
    struct kopi_exec *x = r->x;
    const kopi_program *p = &x->p->p;
    kopi_kctx k = {.struct_size = sizeof k, .ith = ith, .nth = nth, .prog = p, .run = r->run, .data = x->data,
                   .scratch = x->scratch + ith * x->scratch_size, .scratch_size = x->scratch_size};
    kopi_status s = KOPI_OK;
    for (uint32_t i = r->segment->first, end = i + r->segment->n; i < end; i++) {
        const struct kopi_exec_call *c = &x->calls[i];
        if (i > r->segment->first && x->p->ops[i].level != x->p->ops[i - 1].level) {
            s = kopi__team_barrier(team, s);
            if (s != KOPI_OK) return s;
        }
        if (s == KOPI_OK && c->who->host.cancelled(c->who->host.ctx)) s = KOPI_E_CANCELLED;
        if (s == KOPI_OK) s = run_kernel(x, i, &k);
        if (s > 0) s = KOPI_E_INTERNAL;
    }
    return s;
}

static kopi_status run_kernels(struct kopi_exec *x, const struct kopi_exec_segment *s, const kopi_run *run,
                               kopi_error *err)
{
    struct region r = {x, s, run};
    struct kopi_guard guard;
    kopi__guard_enter(&guard);
    kopi_status status = kopi__team_run(x->main->env.team, walk, &r, x->threads);
    return kopi__guard_leave(&guard, x->main, "step", status, err);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

/* A plan whose backend doesn't say what its workers do keeps all of them busy with all of it. */
static void trace_plan(struct kopi_exec *x, const struct kopi_exec_segment *s, uint64_t begin, uint64_t end)
{
    uint32_t *ops = kopi__calloc(s->n, sizeof *ops);
    for (uint32_t i = 0; ops && i < s->n; i++) ops[i] = s->first + i;
    for (unsigned w = 0; ops && w < kopi__exec_workers(x); w++)
        kopi__trace_span(x->main->trace, w, begin, end, ops, s->n);
    kopi__free(ops);
}

static kopi_status run_plan(struct kopi_exec *x, const struct kopi_exec_segment *s, const kopi_run *run,
                            kopi_error *err)
{
    const struct kopi_trace *t = x->main->trace;
    uint64_t n_spans = t ? kopi__trace_n_spans(t) : 0, begin = t ? kopi__now_ns() : 0;
    struct kopi_guard guard;
    kopi__guard_enter(&guard);
    kopi_status status = x->main->ops.execute(x->main->be, s->plan, run);
    status = kopi__guard_leave(&guard, x->main, "execute", status, err);
    if (t && kopi__trace_n_spans(t) == n_spans) trace_plan(x, s, begin, kopi__now_ns());
    return status;
}

/* ---- a step ------------------------------------------------------------------------------------------------------ */

static kopi_status run_segments(struct kopi_exec *x, const kopi_run *run, kopi_error *err)
{
    kopi_status s = KOPI_OK;
    const kopi_run *theirs = run;
    if (x->data) resolve(x, run);
    if (x->outputs) s = kopi__outputs_place(x->outputs, run, &theirs, err);
    for (uint32_t i = 0; i < x->n_segments && s == KOPI_OK; i++)
        s = kopi__exec_is_plan(x, &x->segments[i]) ? run_plan(x, &x->segments[i], theirs, err)
                                                   : run_kernels(x, &x->segments[i], theirs, err);
    return s == KOPI_OK && x->outputs ? kopi__outputs_read(x->outputs, run, err) : s;
}

kopi_status kopi__exec_run(struct kopi_exec *x, const kopi_run *run, kopi_error *err)
{
    struct kopi_trace *t = x->main->trace;
    if (t) kopi__trace_step_begin(t);
    kopi_status s = run_segments(x, run, err);
    if (t) kopi__trace_step_end(t, run);
    return s;
}

void kopi__exec_trace(struct kopi_exec *x, struct kopi_trace *t) { x->main->trace = t; }
unsigned kopi__exec_workers(const struct kopi_exec *x)
{
    return x->data && x->threads > x->main->threads ? x->threads : x->main->threads;
}
