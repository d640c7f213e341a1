/* plugins/cpu-threaded/kernels.h - kernels on rows and on the KV cache: one table of functions per level.
 *
 * rows.c and attn.c are written once in v16 (vec.h) and compiled per level; KT_ISA names the level in every symbol that
 * leaves a file. Bits: kopi/op.h. All functions are [worker]. */
#ifndef KT_KERNELS_H
#define KT_KERNELS_H

#include <kopi/op.h>
#include <stdbool.h>

/* Constants of ATTN (kopi/op.h), and positions that the private KV layout interleaves. */
enum { KT_CHUNK = 256, KT_BLOCK = 32, KT_LANES = 16, KT_CHUNK_PARTS = KT_CHUNK / KT_LANES };

/* Running softmax sum of one query over one chunk or over all chunks so far: l in sixteen lanes (after the chunk its
 * tree, in the first), m, then o [head_dim_v]. */
enum { KT_SUM_L = 0, KT_SUM_M = 16, KT_SUM_O = 32 }; /* offsets in floats */
static inline uint32_t kt_sum_floats(uint32_t head_dim_v) { return KT_SUM_O + (head_dim_v + 15u) / 16u * 16u; }

/* Queries that one call takes. */
enum { KT_MAX_QUERIES = 32 };

/* Queries that share a KV head, on one chunk of it. */
struct kt_attn_chunk {
    uint32_t n_queries, head_dim_k, head_dim_v; /* n_queries <= KT_MAX_QUERIES */
    bool k_f16, v_f16;                          /* else F32 */
    float scale, softcap;
    const float *const *q;                      /* [n_queries] rows of head_dim_k */
    const uint16_t *begin, *end;   /* [n_queries] visible positions, counted from the chunk's first; begin < end */
    const void *k[KT_CHUNK_PARTS]; /* 16 positions each: [head_dim_k][16]; read where something is visible */
    const void *v[KT_CHUNK_PARTS];              /* [16][head_dim_v] */
    float *const *sum;                          /* [n_queries] results, kt_sum_floats each */
};

struct kt_kernels {
    const char *name; /* "avx512vnni" */
    void (*norm)(const float *x, float *y, uint32_t n, const kopi_norm_params *p, const float *weight,
                 const float *bias);
    /* All heads of one token; table: its row. */
    void (*rope)(const float *x, float *y, uint32_t head_dim, uint32_t n_heads, const kopi_rope_params *p,
                 const float *table);
    void (*add)(const float *a, const float *b, float *y, uint32_t n);
    void (*scale)(const float *x, float *y, uint32_t n, float value);
    void (*softcap)(const float *x, float *y, uint32_t n, float cap);
    void (*glu)(const float *gate, const float *up, float *y, uint32_t n, uint32_t act); /* up NULL: none */
    /* One position into 16 interleaved ones ([n][16], `lane`), and as a row. */
    void (*store_k)(const float *x, void *part, uint32_t lane, uint32_t n, bool f16);
    void (*store_v)(const float *x, void *row, uint32_t n, bool f16);
    void (*attn_chunk)(const struct kt_attn_chunk *c);
    void (*attn_merge)(float *total, const float *sum, uint32_t head_dim_v); /* sum: the next visible chunk */
    void (*attn_finish)(const float *total, float *y, uint32_t head_dim_v);
};
extern const struct kt_kernels kt__kernels_c, kt__kernels_avx2, kt__kernels_avx512vnni;

/* ---- inside a level ---------------------------------------------------------------------------------------------- */

#ifdef KT_ISA

#define KT_PASTE_(a, b) a##b
#define KT_PASTE(a, b) KT_PASTE_(a, b)
#define KT_AT_LEVEL(name) KT_PASTE(name, KT_ISA)
#define KT_STRING_(a) #a
#define KT_STRING(a) KT_STRING_(a)

#define kt__attn_chunk KT_AT_LEVEL(kt__attn_chunk_)
#define kt__attn_merge KT_AT_LEVEL(kt__attn_merge_)
#define kt__attn_finish KT_AT_LEVEL(kt__attn_finish_)
void kt__attn_chunk(const struct kt_attn_chunk *c);
void kt__attn_merge(float *total, const float *sum, uint32_t head_dim_v);
void kt__attn_finish(const float *total, float *y, uint32_t head_dim_v);

#endif

#endif
