/* core/backend/exec_state.h - what exec.c makes and exec_run.c runs. For these two. */
#ifndef KOPI_CORE_BACKEND_EXEC_STATE_H
#define KOPI_CORE_BACKEND_EXEC_STATE_H

#include "backend/exec.h"

/* One operation and who runs it. */
struct kopi_exec_call {
    struct kopi_instance *who;
    const kopi_kernel *kernel; /* NULL: by a plan */
};

/* A maximal run of operations that are executed in one go: by a plan of the main backend, or kernel by kernel. */
struct kopi_exec_segment {
    uint32_t first, n;
    void *plan; /* NULL: kernels */
};

struct kopi_exec {
    struct kopi_instance *main, *fallback;
    struct kopi__program *p;
    struct kopi_exec_call *calls; /* [n_ops] */
    struct kopi_exec_segment *segments;
    uint32_t n_segments;
    bool imported;
    uint64_t weight_bytes;
    /* Of the kernel segments: */
    void *arena;               /* activations */
    void **data;               /* [n_tensors] addresses in this run */
    unsigned threads;
    char *scratch;             /* scratch_size bytes per worker */
    uint64_t scratch_size;
    struct kopi_outputs *outputs; /* of a device that the host can't see into; else NULL */
};

static inline bool kopi__exec_is_plan(const struct kopi_exec *x, const struct kopi_exec_segment *s)
{
    return !x->calls[s->first].kernel;
}

#endif
