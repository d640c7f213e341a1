/* core/model/program.h - a program under construction and finished: tensors, operations, levels, memory plan.
 * [load] one thread; immutable after kopi__program_finish but for tensor data and handles set by weight import. */
#ifndef KOPI_CORE_MODEL_PROGRAM_H
#define KOPI_CORE_MODEL_PROGRAM_H

#include "gguf/gguf.h"
#include <kopi/backend.h>

struct kopi__program {
    kopi_program p;                /* what backends see; arrays point to those below */
    kopi_tensor *tensors;
    kopi_op *ops;
    kopi_kv_group *groups;
    const struct kopi_gguf_tensor **sources; /* [n_tensors] file tensor of each weight, or NULL */
    uint32_t cap_tensors, cap_ops;
    void *arena;                   /* chunked storage of names, operand lists, parameters, constants */
    kopi_status failed;            /* first failure while building; reported by finish */
};

kopi_status kopi__program_new(struct kopi__program **out, kopi_error *err);
void kopi__program_free(struct kopi__program *b);

/* Tensors: the index, or -1 after a failure (later calls are then no-ops). Activations are [n, TOK], or [n, heads, TOK]
 * with heads > 1; sym: KOPI_DIM_TOK or KOPI_DIM_OUT. */
int32_t kopi__tensor_act(struct kopi__program *b, const char *name, uint32_t dtype, int64_t n, int64_t heads,
                         uint32_t sym);
int32_t kopi__tensor_weight(struct kopi__program *b, const struct kopi_gguf_tensor *t); /* one index per file tensor */
int32_t kopi__tensor_const(struct kopi__program *b, const char *name, const int64_t *ne, uint32_t n_dims,
                           void *f32); /* takes f32 */
int32_t kopi__tensor_kv(struct kopi__program *b, const char *name, uint32_t dtype, uint32_t group, uint64_t off,
                        int64_t row);
int32_t kopi__tensor_output(struct kopi__program *b, const char *name, int64_t n, uint32_t output);
/* Appends an operation; in, out: lists of n indices; params copied. */
void kopi__program_op(struct kopi__program *b, uint32_t op, uint32_t layer, const int32_t *in, uint32_t n_in,
                      const int32_t *out, uint32_t n_out, const void *params, uint32_t params_size);
/* Appends a KV group and returns its index. */
uint32_t kopi__program_group(struct kopi__program *b, const kopi_kv_group *g);

/* Computes levels (sorting the operations by them, stably), then places activations in the arena by the levels in which
 * they live. max_*: bounds of a run. */
kopi_status kopi__program_finish(struct kopi__program *b, uint32_t max_tok, uint32_t max_out, uint32_t max_seq,
                                 uint32_t max_pos, kopi_error *err);

/* Dimensions that every line of text about a tensor uses: "[896, 4864]". */
const char *kopi__dims_text(const int64_t *ne, uint32_t n_dims, char *buf, size_t n);

#endif
