/* prepare: graph, schedules, memory. Nothing is allocated after it. */
#include "plan.h"

#include <string.h>

/* Rows per worker from which MANY pays: below, it would read all weights for too few rows. */
enum { MANY_ROWS_PER_WORKER = 32 };

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t pad(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

/* Rows that a policy needs memory for. */
static struct kt_rows rows_of(const struct kt_plan *p, uint32_t section, enum kt_policy policy)
{
    const uint64_t limit[] = {[KT_FEW] = KT_FEW_ROWS, [KT_MID] = p->mid_rows, [KT_MANY] = UINT32_MAX};
    uint64_t max = smaller(section == KT_TOKENS ? p->graph.prog->max_tok : p->graph.prog->max_out, limit[policy]);
    max = pad(max, kt_act_unit());
    return (struct kt_rows){(uint32_t)max, (uint32_t)smaller(max, (uint64_t)KT_TILE_UNITS * kt_act_unit())};
}

/* Makes all schedules and sets where the sections' values start; *shared, *private: bytes in all. */
static kopi_status schedule(struct kt_plan *p, uint64_t *shared, uint64_t *private)
{
    *shared = *private = 0;
    for (uint32_t section = 0; section < KT_N_SECTIONS; section++) {
        uint64_t most_shared = 0, most_private = 0;
        for (uint32_t policy = 0; policy < KT_N_POLICIES; policy++) {
            struct kt_sched *sched = &p->sched[section][policy];
            kopi_status s = kt_schedule(p->kt, &p->graph, section, policy, rows_of(p, section, policy), sched);
            if (s != KOPI_OK) return s;
            most_shared = larger(most_shared, sched->shared_bytes);
            most_private = larger(most_private, sched->private_bytes);
        }
        p->shared_at[section] = *shared;
        p->private_at[section] = *private;
        *shared += most_shared;
        *private += most_private;
    }
    return KOPI_OK;
}

static kopi_status alloc_memory(struct kt_plan *p, uint64_t shared, uint64_t private)
{
    const kopi_host *host = p->kt->host;
    uint64_t floats = larger(larger(kt_rows_scratch(&p->graph), kt_linear_scratch()), kt_attn_scratch(&p->graph));
    p->scratch_at = pad(private, 64);
    p->private_bytes = pad(p->scratch_at + floats * sizeof(float), 4096);
    p->n_partials = p->nth > 1 ? kt_attn_partials(&p->graph, KT_FEW_ROWS) : 0;
    p->shared = kt_alloc(host, pad(shared + 1, 64), 4096);
    p->private = kt_alloc(host, p->private_bytes * p->nth, 4096);
    p->partials = kt_alloc(host, (p->n_partials + 1) * sizeof(float), 64);
    return p->shared && p->private && p->partials ? KOPI_OK : kt_nomem(host, "activations; lower --batch-size");
}

kopi_status kt_prepare(void *be, const kopi_program *prog, uint32_t first_op, uint32_t n_ops, void **plan)
{
    struct kt *kt = be;
    uint64_t shared, private;
    struct kt_plan *p = kt_calloc(kt->host, 1, sizeof *p);
    *plan = NULL;
    if (!p) return kt_nomem(kt->host, "plan");
    p->kt = kt;
    p->nth = kt->host->team_size(kt->host->ctx);
    kopi_status s = kt_graph_make(kt, prog, first_op, n_ops, &p->graph);
    p->mid_rows = p->graph.outside ? UINT32_MAX : p->nth == 1 ? 0 : MANY_ROWS_PER_WORKER * p->nth;
    if (s == KOPI_OK) s = schedule(p, &shared, &private);
    if (s == KOPI_OK) s = alloc_memory(p, shared, private);
    if (s == KOPI_OK)
        *plan = p;
    else
        kt_plan_free(be, p);
    return s;
}

void kt_plan_free(void *be, void *plan)
{
    struct kt *kt = be;
    struct kt_plan *p = plan;
    for (uint32_t i = 0; i < KT_N_SECTIONS * KT_N_POLICIES; i++) kt_sched_free(kt, &p->sched[0][0] + i);
    kt_graph_free(kt, &p->graph);
    kt_free(kt->host, p->shared);
    kt_free(kt->host, p->private);
    kt_free(kt->host, p->partials);
    kt_free(kt->host, p);
}
