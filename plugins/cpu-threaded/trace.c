#include "trace.h"

enum { MOST = 64 }; /* operations of one step that are listed */

struct list { uint32_t ops[MOST], n; };

/* The operation of the program that a node stands for; that of the value it packs for a PACK. */
static void add(struct list *l, const struct kt_graph *g, int32_t node)
{
    if (node >= 0 && g->nodes[node].kind == KT_NODE_PACK) node = g->values[g->nodes[node].in[0]].node;
    if (node < 0 || l->n == MOST) return;
    size_t offset = (size_t)((const char *)g->nodes[node].op - (const char *)g->prog->ops);
    l->ops[l->n++] = (uint32_t)(offset / g->prog->op_stride);
}

void kt_trace_step(const struct kt_worker *w, const struct kt_step *s, uint64_t begin)
{
    const struct kt_graph *g = &w->plan->graph;
    const struct kt_sched *sched = w->sched[w->section];
    const kopi_host *host = w->plan->kt->host;
    struct list l = {.n = 0};
    uint64_t end = w->trace->now(host->ctx);
    for (uint32_t i = s->first; i < s->first + s->n; i++) {
        if (s->kind != KT_STEP_LINEAR) {
            add(&l, g, (int32_t)sched->order[i]);
            continue;
        }
        add(&l, g, sched->units[i].linear[0]);
        add(&l, g, sched->units[i].linear[1]);
        add(&l, g, sched->units[i].glu);
    }
    if (l.n) w->trace->span(host->ctx, w->ith, begin, end, l.ops, l.n);
}
