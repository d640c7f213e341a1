/* execute: one region of the team; every worker walks the steps of the two sections. */
#include "plan.h"
#include "trace.h"

#include <string.h>

struct kt_place kt_place_of(const struct kt_worker *w, int32_t value)
{
    const struct kt_plan *p = w->plan;
    const struct kt_value *v = &p->graph.values[value];
    const kopi_tensor *t = kopi_tensor_at(p->graph.prog, v->tensor);
    uint32_t section = v->wanted;
    const struct kt_loc *loc = &w->sched[section]->loc[value];
    switch (loc->where) {
    case KT_SHARED:
        return (struct kt_place){p->shared + p->shared_at[section] + loc->off, loc->ld, 0, w->n_rows, loc->cap};
    case KT_PRIVATE:
        return (struct kt_place){w->private + p->private_at[section] + loc->off, loc->ld, w->tile.begin,
                                 w->tile.end - w->tile.begin, loc->cap};
    case KT_OUTPUT: {
        const kopi_output *o = kopi_output_at(w->run, (uint32_t)v->output);
        return (struct kt_place){o->host, (uint64_t)o->row_bytes / sizeof(float), 0, 0, 0};
    }
    default: return (struct kt_place){t->data, (uint64_t)t->nb[t->n_dims - 1] / sizeof(float), 0, 0, 0};
    }
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static bool is_many(const struct kt_worker *w) { return w->sched[w->section] == &w->plan->sched[w->section][KT_MANY]; }

/* Number of tiles, a multiple of the workers: every worker gets as many. Tiles are whole units of activations. */
static uint32_t n_tiles(const struct kt_worker *w)
{
    uint64_t unit = kt_act_unit(), units = (w->n_rows + unit - 1) / unit,
             most = is_many(w) ? KT_TILE_UNITS : UINT32_MAX;
    return (uint32_t)((units + w->nth * most - 1) / (w->nth * most)) * w->nth;
}

/* The worker's tile of a round. Rounds go back and forth over the workers, since later rows have longer attention. */
static struct kt_range tile_of(const struct kt_worker *w, uint32_t round, uint32_t n)
{
    uint64_t unit = kt_act_unit(), units = (w->n_rows + unit - 1) / unit;
    uint64_t i = (uint64_t)round * w->nth + (round % 2 ? w->nth - 1 - w->ith : w->ith);
    uint64_t begin = units * i / n * unit, end = units * (i + 1) / n * unit;
    return (struct kt_range){(uint32_t)begin, (uint32_t)(end < w->n_rows ? end : w->n_rows)};
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void do_step(struct kt_worker *w, const struct kt_step *s, struct kt_range r)
{
    static void (*const run[])(struct kt_worker *, const struct kt_step *, struct kt_range) = {
        [KT_STEP_ROWS] = kt_step_rows,
        [KT_STEP_LINEAR] = kt_step_linear,
        [KT_STEP_ATTN] = kt_step_attn,
        [KT_STEP_MERGE] = kt_step_merge,
    };
    const kopi_host *host = w->plan->kt->host;
    if (w->status == KOPI_OK && host->cancelled(host->ctx)) w->status = KOPI_E_CANCELLED;
    if (w->status != KOPI_OK) return;
    uint64_t begin = w->trace ? w->trace->now(host->ctx) : 0;
    run[s->kind](w, s, r);
    if (w->trace) kt_trace_step(w, s, begin);
}

/* Steps [i, end), all split by rows and without a barrier between them: tile after tile, so that a tile's values stay
 * in the cache from step to step. */
static void do_tiles(struct kt_worker *w, uint32_t i, uint32_t end)
{
    uint32_t n = n_tiles(w);
    for (uint32_t round = 0; round < n / w->nth; round++) {
        struct kt_range r = tile_of(w, round, n);
        if (r.begin >= r.end) continue;
        if (is_many(w)) w->tile = r;
        for (uint32_t s = i; s < end; s++) do_step(w, &w->sched[w->section]->steps[s], r);
    }
}

static void do_section(struct kt_worker *w, uint32_t section, uint32_t n_rows)
{
    const struct kt_sched *s = w->sched[section];
    w->section = section;
    w->n_rows = n_rows;
    w->tile = (struct kt_range){0, n_rows};
    for (uint32_t i = 0, end; i < s->n_steps; i = end) {
        const struct kt_step *step = &s->steps[i];
        end = i + 1;
        if (step->kind == KT_STEP_MERGE && !kt_attn_merges(w, step)) continue;
        if (step->barrier) w->status = w->plan->kt->host->barrier(w->team, w->status);
        if (step->split != KT_SPLIT_ROWS) {
            do_step(w, step, (struct kt_range){0, n_rows});
            continue;
        }
        while (end < s->n_steps && s->steps[end].split == KT_SPLIT_ROWS && !s->steps[end].barrier) end++;
        do_tiles(w, i, end);
    }
}

/* ---- the region -------------------------------------------------------------------------------------------------- */

struct region {
    const struct kt_plan *plan;
    const kopi_ext_trace *trace;
    const kopi_run *run;
    const struct kt_sched *sched[KT_N_SECTIONS];
    uint32_t n_rows[KT_N_SECTIONS];
};

static kopi_status work(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    const struct region *r = arg;
    const struct kt_plan *p = r->plan;
    char *private = p->private + ith * p->private_bytes;
    struct kt_worker w = {.plan = p,
                          .run = r->run,
                          .team = team,
                          .ith = ith,
                          .nth = nth,
                          .sched = {r->sched[0], r->sched[1]},
                          .private = private,
                          .scratch = (float *)(void *)(private + p->scratch_at),
                          .trace = r->trace};
    if (r->n_rows[KT_WANTED]) w.wanted = kopi_output_at(r->run, 0)->rows;
    do_section(&w, KT_TOKENS, r->n_rows[KT_TOKENS]);
    if (r->n_rows[KT_WANTED] && r->sched[KT_WANTED]->n_steps) {
        w.status = p->kt->host->barrier(team, w.status);
        do_section(&w, KT_WANTED, r->n_rows[KT_WANTED]);
    }
    return w.status;
}

static enum kt_policy policy_of(const struct kt_plan *p, uint32_t n_rows)
{
    if (p->graph.outside) return KT_MID;
    return n_rows <= KT_FEW_ROWS ? KT_FEW : n_rows <= p->mid_rows ? KT_MID : KT_MANY;
}

kopi_status kt_execute(void *be, void *plan, const kopi_run *run)
{
    const struct kt *kt = be;
    const struct kt_plan *p = plan;
    const kopi_program *prog = p->graph.prog;
    struct region r = {.plan = p, .run = run, .n_rows = {run->n_tok, run->n_out ? kopi_output_at(run, 0)->n_rows : 0}};
    if (kt->host->cancelled(kt->host->ctx)) return KOPI_E_CANCELLED; /* asked by a run without a step to do, too */
    if (!run->n_tok) return KOPI_OK;
    if (run->n_tok > prog->max_tok || r.n_rows[KT_WANTED] > prog->max_out)
        return kt->host->fail(kt->host->ctx, KOPI_E_INVALID, "a run has more tokens or outputs than was prepared for");
    for (uint32_t s = 0; s < KT_N_SECTIONS; s++) r.sched[s] = &p->sched[s][policy_of(p, r.n_rows[s])];
    if (kt->trace && kt->trace->on(kt->host->ctx)) r.trace = kt->trace;
    return kt->host->team(kt->host->ctx, work, &r);
}
