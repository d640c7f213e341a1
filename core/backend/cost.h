/* core/backend/cost.h - what an operation has to move and to compute in a step, whoever does it. [any] */
#ifndef KOPI_CORE_BACKEND_COST_H
#define KOPI_CORE_BACKEND_COST_H

#include <kopi/backend.h>

struct kopi_cost {
    uint64_t bytes; /* read and written, each once: weights, activations, and the visible part of the KV cache */
    uint64_t flops; /* of LINEAR and ATTN, a multiplication and an addition each; 0 for the others */
};
struct kopi_cost kopi__op_cost(const kopi_program *p, const kopi_op *op, const kopi_run *run);

#endif
