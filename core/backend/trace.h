/* core/backend/trace.h - records what the workers do in each step, per group of operations that are done as one. */
#ifndef KOPI_CORE_BACKEND_TRACE_H
#define KOPI_CORE_BACKEND_TRACE_H

#include "backend/cost.h"
#include "base/buf.h"
#include <kopi/kopi.h>

struct kopi_trace;

/* For `workers` >= 1 workers. keep_spans: single spans too, up to a bound per worker; else only their sums. p must
 * outlive it. */
kopi_status kopi__trace_new(const kopi_program *p, unsigned workers, bool keep_spans, struct kopi_trace **out,
                            kopi_error *err);
void kopi__trace_free(struct kopi_trace *t); /* NULL allowed */

/* Around a step. [one thread at a time] */
void kopi__trace_step_begin(struct kopi_trace *t);
void kopi__trace_step_end(struct kopi_trace *t, const kopi_run *run);

/* Worker ith was busy from begin to end with ops[n]. Other workers may record at the same time. A memory failure is
 * remembered for kopi__trace_read; a span of a worker that isn't there is left out. [worker] */
void kopi__trace_span(struct kopi_trace *t, uint32_t ith, uint64_t begin, uint64_t end, const uint32_t *ops,
                      uint32_t n);
/* Spans so far, of all workers. Between steps or regions only. */
uint64_t kopi__trace_n_spans(const struct kopi_trace *t);

struct kopi_trace_group {
    const uint32_t *ops;   /* [n_ops] indices into the program */
    uint32_t n_ops;
    uint64_t calls;        /* steps that it was part of */
    uint64_t busy_ns;      /* of all workers together */
    struct kopi_cost cost; /* of all calls */
};
struct kopi_trace_span { uint64_t begin, end; uint32_t group; };
struct kopi_trace_spans { const struct kopi_trace_span *at; size_t n; };

/* What was recorded. Owned by the trace; valid until it records again or goes. */
struct kopi_trace_result {
    uint64_t n_steps, n_tokens, step_ns;     /* step_ns: wall time of the steps */
    uint32_t workers, n_groups;
    const struct kopi_trace_group *groups;   /* in order of appearance */
    const struct kopi_trace_spans *spans;    /* [workers] */
    uint64_t dropped;                        /* spans that were counted but not kept */
};
kopi_status kopi__trace_read(struct kopi_trace *t, struct kopi_trace_result *out, kopi_error *err);

/* "2 LINEAR Q4_K x A8_256 + GLU". false: no memory. */
bool kopi__trace_label(const kopi_program *p, const struct kopi_trace_group *g, struct kopi_buf *out);

#endif
