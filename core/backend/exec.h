/* core/backend/exec.h - who computes what: operations assigned to a backend or the fallback, weights imported, plans
 * prepared, steps executed. The core's executor for kernels-only backends lives behind it as well. */
#ifndef KOPI_CORE_BACKEND_EXEC_H
#define KOPI_CORE_BACKEND_EXEC_H

#include "backend/instance.h"
#include "model/program.h"

struct kopi_exec;

/* Assigns every operation of p to `main` or, where it lacks it, to `fallback` (NULL: refused with the list of missing
 * (op, type)); imports the weights (pages of repacked ones are given back); prepares plans. Takes neither instance:
 * both must outlive the exec. progress (may be NULL) is told the share of weights done, and cancels by returning
 * non-zero. */
kopi_status kopi__exec_new(struct kopi_instance *main, struct kopi_instance *fallback, struct kopi__program *p,
                           const struct kopi_gguf *g, int (*progress)(void *ctx, float share), void *ctx,
                           struct kopi_exec **out, kopi_error *err);
void kopi__exec_free(struct kopi_exec *x); /* NULL allowed */

kopi_status kopi__exec_run(struct kopi_exec *x, const kopi_run *run, kopi_error *err);

/* From the next step on, what is done goes to t, made for kopi__exec_workers workers; NULL: no more. */
void kopi__exec_trace(struct kopi_exec *x, struct kopi_trace *t);
unsigned kopi__exec_workers(const struct kopi_exec *x);

/* Copies page src to dst of a group (copy on write). */
kopi_status kopi__exec_copy_page(struct kopi_exec *x, uint32_t group, int32_t dst, int32_t src, kopi_error *err);

/* Bytes that imported weights take beside the file's own pages; and the working memory of the executor. */
uint64_t kopi__exec_weight_bytes(const struct kopi_exec *x);
uint64_t kopi__exec_work_bytes(const struct kopi_exec *x);
/* Which backend and code runs operation i: "cpu-threaded linear_q4_1_avx2". */
const char *kopi__exec_describe(const struct kopi_exec *x, uint32_t i, char *buf, size_t n);

#endif
