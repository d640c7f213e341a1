/* Steps of LINEAR: units of one or two weights, with the GLU that reads them. */
#include "plan.h"

#include <string.h>

/* One block of a unit with GLU: gate and up of some rows and columns, between LINEAR and GLU. */
static uint32_t block_rows(void) { return KT_TILE_UNITS * kt_act_unit(); }
static uint64_t block_floats(void) { return (uint64_t)block_rows() * KT_GLU_COLUMNS; }

uint64_t kt_linear_scratch(void) { return 2 * block_floats(); }

static const struct kt_node *node(const struct kt_worker *w, int32_t i) { return &w->plan->graph.nodes[i]; }
static uint32_t groups_of(const struct kt_weight *w) { return (w->n + KT_ROWS - 1) / KT_ROWS; }

/* Groups [g.begin, g.end) of one LINEAR for rows r; y: their first column of the first row. */
static void run_linear(const struct kt_worker *w, const struct kt_node *n, struct kt_range g, struct kt_range r,
                       float *y, uint64_t ldy)
{
    const struct kt_weight *weight = n->weight;
    const struct kt_place px = kt_place_of(w, n->in[0]);
    const struct kt_act x = kt_act_of(w, n->in[0], px);
    uint32_t column = g.begin * KT_ROWS, columns = (g.end - g.begin) * KT_ROWS, left = weight->n - column;
    weight->kernel->run(weight->groups + g.begin * weight->group_bytes, g.end - g.begin,
                        columns < left ? columns : left, weight->k, &x, r.begin - px.first, r.end - r.begin,
                        n->bias ? n->bias + column : NULL, y, ldy);
}

static void run_plain(const struct kt_worker *w, const struct kt_node *n, struct kt_range g, struct kt_range r)
{
    const struct kt_place py = kt_place_of(w, n->out);
    run_linear(w, n, g, r, kt_at(&py, r.begin) + g.begin * KT_ROWS, py.ld);
}

/* Block by block: what is between never leaves the cache. */
static void run_glu(const struct kt_worker *w, const struct kt_unit *u, struct kt_range g, struct kt_range r)
{
    const struct kt_node *glu = node(w, u->glu);
    const kopi_glu_params *p = glu->op->params;
    const struct kt_place py = kt_place_of(w, glu->out);
    uint32_t n = node(w, u->linear[0])->weight->n;
    float *gate = w->scratch, *up = u->linear[1] < 0 ? NULL : w->scratch + block_floats();
    for (struct kt_range c = g; c.begin < g.end; c.begin = c.end) {
        c.end = g.end - c.begin < KT_GLU_COLUMNS / KT_ROWS ? g.end : c.begin + KT_GLU_COLUMNS / KT_ROWS;
        uint32_t column = c.begin * KT_ROWS,
                 columns = (c.end < groups_of(node(w, u->linear[0])->weight) ? c.end * KT_ROWS : n) - column;
        for (struct kt_range b = r; b.begin < r.end; b.begin = b.end) {
            b.end = r.end - b.begin < block_rows() ? r.end : b.begin + block_rows();
            run_linear(w, node(w, u->linear[0]), c, b, gate, KT_GLU_COLUMNS);
            if (up) run_linear(w, node(w, u->linear[1]), c, b, up, KT_GLU_COLUMNS);
            for (uint32_t i = b.begin; i < b.end; i++) {
                uint64_t at = (uint64_t)(i - b.begin) * KT_GLU_COLUMNS;
                w->plan->kt->kernels->glu(gate + at, up ? up + at : NULL, kt_at(&py, i) + column, columns, p->act);
            }
        }
    }
}

static void run_unit(const struct kt_worker *w, const struct kt_unit *u, struct kt_range g, struct kt_range r)
{
    if (u->glu >= 0)
        run_glu(w, u, g, r);
    else
        run_plain(w, node(w, u->linear[0]), g, r);
}

/* ---- split by columns -------------------------------------------------------------------------------------------- */

/* Bytes that one group of the unit reads. */
static uint64_t group_cost(const struct kt_worker *w, const struct kt_unit *u)
{
    return node(w, u->linear[0])->weight->group_bytes +
           (u->linear[1] < 0 ? 0 : node(w, u->linear[1])->weight->group_bytes);
}

/* Group of a unit whose bytes start at `start` that is nearest to byte `at` of the step. */
static uint32_t group_at(uint64_t at, uint64_t start, uint64_t cost, uint32_t n_groups)
{
    uint64_t g = at < start ? 0 : (at - start + cost / 2) / cost;
    return g < n_groups ? (uint32_t)g : n_groups;
}

void kt_step_linear(struct kt_worker *w, const struct kt_step *s, struct kt_range r)
{
    const struct kt_unit *units = w->sched[w->section]->units + s->first;
    uint64_t total = 0, start = 0;
    for (uint32_t i = 0; i < s->n; i++)
        total += group_cost(w, &units[i]) * groups_of(node(w, units[i].linear[0])->weight);
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t cost = group_cost(w, &units[i]);
        uint32_t n_groups = groups_of(node(w, units[i].linear[0])->weight);
        struct kt_range g = {0, n_groups};
        if (s->split == KT_SPLIT_COLS) {
            g.begin = group_at(total * w->ith / w->nth, start, cost, n_groups);
            g.end = w->ith + 1 == w->nth ? n_groups : group_at(total * (w->ith + 1) / w->nth, start, cost, n_groups);
        }
        if (g.begin < g.end) run_unit(w, &units[i], g, r);
        start += cost * n_groups;
    }
}
