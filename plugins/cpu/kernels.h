/* plugins/cpu/kernels.h - the reference kernels and what they share. Every operation of kopi/op.h once, in plain C; the
 * code is the definition, the header the text of it.
 *
 * The .c files that include this header (all but plugin.c) are compiled once per level of the instruction set:
 * `baseline` and, on x86-64, `v3` (AVX2, FMA). CPU_LEVEL names the level in every symbol that leaves a file. Same
 * source, same bits. */
#ifndef CPU_KERNELS_H
#define CPU_KERNELS_H

#include <kopi/backend.h>
#include <kopi/math.h>
#include <stdbool.h>

/* One compiled level: functions per operation, and the names that describe() gives. */
struct cpu_kernels {
    kopi_status (*run[KOPI_OP_END_])(void *be, const kopi_kctx *k, const kopi_op *op);
    uint64_t (*scratch[KOPI_OP_END_])(const kopi_program *p, const kopi_op *op); /* bytes per worker; NULL: 0 */
    const char *(*describe)(const kopi_program *p, const kopi_op *op);
};
extern const struct cpu_kernels cpu__kernels_baseline, cpu__kernels_v3;

/* State of an instance. */
struct cpu {
    const kopi_host *host;
    const struct cpu_kernels *kernels;
    bool linear_f32; /* LINEAR of quantized weights on F32 activations */
};

/* ---- inside a level ---------------------------------------------------------------------------------------------- */

#ifdef CPU_LEVEL

#define CPU_PASTE_(a, b) a##b
#define CPU_PASTE(a, b) CPU_PASTE_(a, b)
#define CPU_AT_LEVEL(name) CPU_PASTE(name, CPU_LEVEL)
#define CPU_STRING_(a) #a
#define CPU_STRING(a) CPU_STRING_(a)
#define CPU_SUFFIX "_c_" CPU_STRING(CPU_LEVEL)

#define CPU_RUN(name) kopi_status CPU_AT_LEVEL(cpu__##name##_)(void *be, const kopi_kctx *k, const kopi_op *op)
CPU_RUN(embed);
CPU_RUN(norm);
CPU_RUN(quantize);
CPU_RUN(linear);
CPU_RUN(rope);
CPU_RUN(kv_write);
CPU_RUN(attn);
CPU_RUN(glu);
CPU_RUN(add);
CPU_RUN(scale);
CPU_RUN(softcap);
CPU_RUN(gather);
#define CPU_SCRATCH(name) uint64_t CPU_AT_LEVEL(cpu__##name##_scratch_)(const kopi_program *p, const kopi_op *op)
CPU_SCRATCH(linear);
CPU_SCRATCH(attn);

#endif

/* Part ith of nth of n things. */
struct cpu_range {
    int64_t begin, end;
};
static inline struct cpu_range cpu__share(const kopi_kctx *k, int64_t n)
{
    return (struct cpu_range){n * k->ith / k->nth, n * (k->ith + 1) / k->nth};
}

/* An activation as rows: one per token (or wanted output row). */
struct cpu_rows {
    char *data;     /* NULL: the operand is absent */
    int64_t stride; /* bytes from row to row */
    int64_t n, len; /* rows; elements of a row */
};
static inline struct cpu_rows cpu__rows(const kopi_kctx *k, int32_t index)
{
    struct cpu_rows r = {0};
    if (index < 0) return r;
    const kopi_tensor *t = kopi_tensor_at(k->prog, index);
    uint32_t last = t->n_dims - 1;
    r.data = k->data[index];
    r.stride = t->kind == KOPI_KIND_OUTPUT ? kopi_output_at(k->run, t->group)->row_bytes : t->nb[last];
    r.n = kopi_extent(k->run, t, last);
    r.len = 1;
    for (uint32_t i = 0; i < last; i++) r.len *= t->dim[i].n;
    return r;
}
static inline float *cpu__row(const struct cpu_rows *r, int64_t i)
{
    return (float *)(void *)(r->data + i * r->stride);
}

/* A vector operand (norm weight, bias), or NULL. */
static inline const float *cpu__vector(const kopi_kctx *k, const kopi_op *op, uint32_t i)
{
    return i < op->n_in && op->in[i] >= 0 ? k->data[op->in[i]] : NULL;
}
static inline int32_t cpu__in(const kopi_op *op, uint32_t i) { return i < op->n_in ? op->in[i] : -1; }

#endif
