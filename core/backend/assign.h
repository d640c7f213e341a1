/* core/backend/assign.h - which instance computes an operation. [load] */
#ifndef KOPI_CORE_BACKEND_ASSIGN_H
#define KOPI_CORE_BACKEND_ASSIGN_H

#include "backend/instance.h"

/* Types that the kernel tables are matched on: of the weight or KV cache, and of the activation; UINT32_MAX: none. */
void kopi__op_types(const kopi_program *p, const kopi_op *op, uint32_t *w_type, uint32_t *a_type);

/* How instance i would run op: by its plan, by a kernel, or not at all. */
enum kopi_how { KOPI_HOW_NOT = 0, KOPI_HOW_PLAN, KOPI_HOW_KERNEL };
enum kopi_how kopi__instance_how(struct kopi_instance *i, const kopi_program *p, const kopi_op *op,
                                 const kopi_kernel **kernel);

/* For kopi_build.takes: does instance ctx compute LINEAR of weight type w from activations of type a? */
bool kopi__instance_takes(void *ctx, uint32_t w, uint32_t a);

/* "LINEAR q4_1 x a8_32", for messages. */
const char *kopi__op_text(const kopi_program *p, const kopi_op *op, char *buf, size_t n);
const char *kopi__dtype_name(uint32_t dtype); /* "Q4_1"; "?" if unknown */
const char *kopi__op_name(uint32_t op);

#endif
