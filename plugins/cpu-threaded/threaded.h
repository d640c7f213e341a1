/* plugins/cpu-threaded/threaded.h - an instance of the backend, and its weights.
 *
 * The files, from the outside in: plugin.c (entry, options, capability), weights.c (import), graph.c (the program as
 * values and nodes), schedule.c (steps, barriers and places in memory), plan.c (prepare), run.c (execute: who does
 * which step), step_*.c (the steps), kv.c (the pages), then the kernels: linear.h, kernels.h. */
#ifndef KT_THREADED_H
#define KT_THREADED_H

#include "kernels.h"
#include "linear.h"
#include <kopi/ext/draft/release.h>
#include <kopi/ext/draft/trace.h>

struct kt {
    const kopi_host *host;
    const kopi_ext_trace *trace;     /* of the host, or NULL */
    const kopi_ext_release *release; /* the same */
    enum kt_level level;
    const struct kt_kernels *kernels;
    struct kt_slab *slabs; /* memory of the repacked weights */
};

/* Memory through the host: NULL when short. kt_calloc zeroes. Freed with kt_free (NULL allowed). [load] */
void *kt_alloc(const kopi_host *host, uint64_t size, uint64_t align);
void *kt_calloc(const kopi_host *host, uint64_t n, uint64_t size);
void kt_free(const kopi_host *host, void *p);
kopi_status kt_nomem(const kopi_host *host, const char *what); /* KOPI_E_NOMEM with its text */

/* A repacked weight: `handle` of weight_import. */
struct kt_weight {
    const struct kt_linear *kernel;
    char *groups;         /* of 16 rows each, group_bytes apart */
    uint64_t group_bytes;
    uint32_t k, n;        /* row length, rows */
    struct kt_slab *slab;
};
kopi_status kt_weight_import(void *be, const kopi_weight *w, kopi_weight_out *out); /* [load] */
void kt_weight_free(void *be, void *handle);                                        /* [load] */

kopi_status kt_prepare(void *be, const kopi_program *p, uint32_t first_op, uint32_t n_ops, void **plan); /* [load] */
kopi_status kt_execute(void *be, void *plan, const kopi_run *run);                                       /* [run] */
void kt_plan_free(void *be, void *plan);                                                                 /* [load] */

#endif
