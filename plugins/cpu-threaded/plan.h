/* plugins/cpu-threaded/plan.h - a prepared plan, and what a worker sees while it runs. */
#ifndef KT_PLAN_H
#define KT_PLAN_H

#include "schedule.h"

struct kt_plan {
    struct kt *kt;
    struct kt_graph graph;
    struct kt_sched sched[KT_N_SECTIONS][KT_N_POLICIES];
    uint32_t nth, mid_rows;                /* workers; largest number of rows that MID takes */
    uint64_t shared_at[KT_N_SECTIONS];     /* where a section's values start in `shared` */
    uint64_t private_at[KT_N_SECTIONS];    /* and in a worker's memory */
    char *shared;
    char *private;                         /* private_bytes per worker */
    uint64_t private_bytes, scratch_at;    /* scratch: of the step at work */
    float *partials;                       /* of attention split by chunks */
    uint64_t n_partials;                   /* floats */
};

/* Rows [begin, end). */
struct kt_range { uint32_t begin, end; };

struct kt_worker {
    const struct kt_plan *plan;
    const kopi_run *run;
    kopi_team *team;
    uint32_t ith, nth;
    const struct kt_sched *sched[KT_N_SECTIONS]; /* of this run */
    uint32_t section, n_rows;                    /* at work */
    const int32_t *wanted;                       /* token of each wanted row */
    struct kt_range tile;                        /* rows that private values hold */
    char *private;
    float *scratch;
    const kopi_ext_trace *trace; /* NULL: none is taken */
    kopi_status status;
};

/* Memory of a value in this run. */
struct kt_place {
    char *base;
    uint64_t ld;    /* floats */
    uint32_t first; /* row at base */
    uint32_t n, cap; /* rows of this run from there on; that fit */
};
struct kt_place kt_place_of(const struct kt_worker *w, int32_t value);

/* Row r of node n's value v: a node on wanted rows takes the token's row of a value that has one row per token. */
static inline uint32_t kt_row_of(const struct kt_worker *w, const struct kt_node *n, int32_t v, uint32_t r)
{
    return n->wanted && !w->plan->graph.values[v].wanted ? (uint32_t)w->wanted[r] : r;
}
static inline float *kt_at(const struct kt_place *p, uint32_t row)
{
    return (float *)(void *)p->base + (uint64_t)(row - p->first) * p->ld;
}
static inline struct kt_act kt_act_of(const struct kt_worker *w, int32_t v, struct kt_place p)
{
    const struct kt_value *value = &w->plan->graph.values[v];
    return (struct kt_act){value->act_dtype, value->n, p.cap, p.n, p.base};
}
/* Run token of row r. */
static inline uint32_t kt_token(const struct kt_worker *w, const struct kt_node *n, uint32_t r)
{
    return n->wanted ? (uint32_t)w->wanted[r] : r;
}

/* The steps: rows r of the worker's tile, or all rows. Failures go to w->status. [worker] */
void kt_step_rows(struct kt_worker *w, const struct kt_step *s, struct kt_range r);
void kt_step_linear(struct kt_worker *w, const struct kt_step *s, struct kt_range r);
void kt_step_attn(struct kt_worker *w, const struct kt_step *s, struct kt_range r);
void kt_step_merge(struct kt_worker *w, const struct kt_step *s, struct kt_range r);
/* True if this run's ATTN is split by chunks, which MERGE then puts together. The same for all workers. */
bool kt_attn_merges(const struct kt_worker *w, const struct kt_step *s);

/* Floats of scratch that the kinds of steps need, one at a time, and of partials. [load] */
uint64_t kt_rows_scratch(const struct kt_graph *g);
uint64_t kt_linear_scratch(void);
uint64_t kt_attn_scratch(const struct kt_graph *g);
uint64_t kt_attn_partials(const struct kt_graph *g, uint32_t n_rows);

#endif
