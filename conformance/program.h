/* conformance/program.h - small programs with their operands, and how an instance runs them.
 *
 * A program has a segment of one or two operations that are tested. Around it stand operations that write its inputs
 * and read its outputs, so that a plugin with prepare/execute sees where its part begins and ends; they are never run.
 */
#ifndef KOPI_CF_PROGRAM_H
#define KOPI_CF_PROGRAM_H

#include "host.h"
#include "memory.h"

enum { CF_MAX_TENSORS = 16, CF_MAX_OPS = 16, CF_MAX_SEQ = 4, CF_KV_LAYERS = 2 };

/* The rows of an operand outside the segment: all of them, in order, packed. */
struct cf_image {
    char *rows;
    uint64_t row_bytes, n;
};

struct cf_program {
    kopi_program p;
    kopi_tensor t[CF_MAX_TENSORS];
    kopi_op ops[CF_MAX_OPS];
    int32_t lists[2 * CF_MAX_OPS][4];
    uint32_t n_lists;
    kopi_kv_group group;
    uint32_t first_op, n_ops;          /* the segment */
    struct cf_buf buf[CF_MAX_TENSORS]; /* of each tensor that has memory of its own */
    struct cf_image in[CF_MAX_TENSORS], out[CF_MAX_TENSORS];
    int32_t kv[2];              /* tensors K and V, or -1 */
    struct cf_image kv_rows[2]; /* after a run: the K and V rows of all tokens, as a canonical page has them */
    struct cf_buf pages;

    /* What is run: the tokens of n_seq sequences one after the other. */
    uint32_t n_tok, n_seq, n_out, len[CF_MAX_SEQ];
    int32_t *tokens, *pos, *seq, *page_ids[CF_MAX_SEQ];
    bool *wanted; /* tokens whose output row is wanted */
    float *embd;  /* [n_embd, n_tok] or NULL */
    uint64_t n_embd;
    /* How it is run: every struct larger by this many bytes of nonsense (a multiple of 8); workers of a kernel as
     * threads that begin together, nth of them the instance's team. */
    uint32_t grow;
    bool threads;
    uint64_t run_ns; /* what the last run took, all its pieces together: the kernels or the plan alone */
    union { /* room for the parameters of the segment's operations */
        kopi_embed_params embed;
        kopi_norm_params norm;
        kopi_rope_params rope;
        kopi_kv_write_params kv_write;
        kopi_attn_params attn;
        kopi_glu_params glu;
        kopi_scale_params scale;
    } params[2];
};

/* Sequences of these lengths; every token's row is wanted until the caller changes `wanted` (and n_out). */
void cf_program_init(struct cf_program *c, const uint32_t *len, uint32_t n_seq);
void cf_program_free(struct cf_program *c);

/* Operands; the result is the tensor's index. Data is filled in by the caller: c->t[i].data for weights, vectors and
 * constants, c->in[i].rows for inputs. sym: KOPI_DIM_TOK or KOPI_DIM_OUT. heads 1: two dimensions. */
int32_t cf_act(struct cf_program *c, uint32_t dtype, int64_t n, int64_t heads, uint32_t sym);
int32_t cf_input(struct cf_program *c, uint32_t dtype, int64_t n, int64_t heads, uint32_t sym);
int32_t cf_output(struct cf_program *c, uint32_t dtype, int64_t n, int64_t heads, uint32_t sym);
void cf_make_output(struct cf_program *c, int32_t tensor);          /* an input that is also written */
int32_t cf_host_rows(struct cf_program *c, int64_t n, int64_t gap); /* KOPI_KIND_OUTPUT; gap: floats between rows */
int32_t cf_weight(struct cf_program *c, uint32_t dtype, int64_t k, int64_t n);
int32_t cf_own_weight(struct cf_program *c, const kopi_dtype_info *d, int64_t k,
                      int64_t n); /* of a plugin's own type */
int32_t cf_vector(struct cf_program *c, int64_t n);
int32_t cf_table(struct cf_program *c, int64_t a, int64_t b, int64_t n); /* F32 constant of three dimensions */
void cf_kv_cache(struct cf_program *c, uint32_t dtype, int64_t row_k, int64_t row_v, uint32_t page_len, uint64_t seed);

/* Appends an operation of the segment; params must live as long as c. */
void cf_op(struct cf_program *c, uint32_t op, const int32_t *in, uint32_t n_in, const int32_t *out, uint32_t n_out,
           const void *params, uint32_t params_size);
/* Adds what stands around the segment; after this the program is complete. */
void cf_program_finish(struct cf_program *c);

/* Size of rows of n elements. */
uint64_t cf_row_bytes(uint32_t dtype, int64_t n);

#endif
