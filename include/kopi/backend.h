/* kopi/backend.h - the contract between kopi and a backend plugin; the one header that a plugin includes.
 *
 * A plugin is a shared object that exports one function, kopi_plugin_v1. It links against nothing of kopi. There are two ways
 * to write one: fill in kernels (kopi_kernel rows; the core's executor walks the program and calls them), or take the whole
 * program (prepare, execute). What a backend lacks is computed by the `cpu` backend loaded beside it, unless the user
 * configures `fallback: none`. docs/backend-guide.md starts from nothing.
 *
 * Rules that hold everywhere
 * - Structs start with struct_size = sizeof as the giver knew it. A reader uses KOPI_HAS for fields that are newer than the
 *   minimum; the core copies min(size, own size) into zeroed structs of its own, so an absent tail is NULL or 0. Arrays of
 *   structs are walked by the given stride. Ids are numbers, append-only; unknown op: KOPI_E_UNSUPPORTED, unknown extension: NULL.
 * - Whoever allocates frees. Pointers given to a call are valid during the call unless said otherwise; strings and tables of a
 *   plugin live as long as the plugin (it is never unloaded after a successful create).
 * - Errors: return a kopi_status; the text goes to host->fail. Plugins never abort, exit, print, install signal handlers,
 *   start threads or keep mutable globals (several instances live in one process at once). The floating-point state is left as
 *   found; the core checks that and names a plugin that changes it.
 * - Thread tags: [any] any thread, any time; [load] one thread at a time per instance, outside a run; [run] the thread that
 *   calls execute; [worker] all workers of the team at once. */
#ifndef KOPI_BACKEND_H
#define KOPI_BACKEND_H

#include <kopi/op.h>

KOPI_BEGIN_DECLS

/* ---- services of the host ---------------------------------------------------------------------------------------- */

typedef struct kopi_team kopi_team; /* one running parallel region */
/* Called once per worker; ith < nth. Its status is the worker's result. */
typedef kopi_status (*kopi_team_fn)(void *arg, uint32_t ith, uint32_t nth, kopi_team *team);

typedef struct kopi_host {
    uint32_t struct_size, abi_minor;
    void *ctx; /* first argument of every function below */
    /* [any] One line, no newline; level 0 error, 1 warning, 2 info, 3 debug. */
    void (*log)(void *ctx, int32_t level, const char *utf8);
    /* [any] Keeps the text for the error that the user sees and returns code: `return h->fail(h->ctx, KOPI_E_NOMEM, "...")`. */
    kopi_status (*fail)(void *ctx, kopi_status code, const char *utf8);
    /* [any] NULL when memory is short. align: a power of two. Freed with free. */
    void *(*alloc)(void *ctx, uint64_t size, uint64_t align);
    void (*free)(void *ctx, void *p);
    /* [any] Tells the host of memory it cannot see; space: KOPI_SPACE_DEVICE or KOPI_SPACE_PINNED; delta in bytes. */
    void (*account)(void *ctx, uint32_t space, int64_t delta);
    /* [load] [run] Runs fn once on each worker of the process's team and returns the first failure by rank. Not from a worker. */
    kopi_status (*team)(void *ctx, kopi_team_fn fn, void *arg);
    uint32_t (*team_size)(void *ctx); /* [any] at least 1, constant for an instance */
    /* [worker] All workers of the region meet; each gets the first failure by rank. */
    kopi_status (*barrier)(kopi_team *team, kopi_status mine);
    int32_t (*cancelled)(void *ctx); /* [any] not 0: return KOPI_E_CANCELLED soon (polled at least once per op) */
    /* [any] Value of the user's option for this backend, or NULL. Keys are those of kopi_plugin.option_keys. */
    const char *(*option)(void *ctx, const char *key);
    const void *(*extension)(void *ctx, const char *id); /* [any] NULL: not offered */
} kopi_host;

enum { KOPI_SPACE_HOST = 0, KOPI_SPACE_DEVICE = 1, KOPI_SPACE_PINNED = 2 };

/* ---- the program: built once per model, passed to prepare --------------------------------------------------------- */

/* Extent of a dimension: n, or (sym != 0) value of the symbol in this run times mul, with n as its upper bound. */
enum { KOPI_DIM_STATIC = 0, KOPI_DIM_TOK = 1, KOPI_DIM_OUT = 2 };
typedef struct kopi_dim {
    int64_t n;
    uint32_t sym, mul;
} kopi_dim;

enum {
    KOPI_KIND_ACT = 0,    /* activation: lives in the arena of act_bytes at `off`, or wherever the backend likes; where `handle`
                             is set, somebody else reads or writes it, at `off` of that buffer */
    KOPI_KIND_WEIGHT = 1, /* from the model file; data and handle as weight_import arranged */
    KOPI_KIND_CONST = 2,  /* host constant made by the core (RoPE table): data */
    KOPI_KIND_KV = 3,     /* part of a page of KV group `group`, at byte `off` of the page */
    KOPI_KIND_OUTPUT = 4  /* written straight to run->outputs[group]: host rows of row_bytes */
};
typedef struct kopi_tensor {
    uint32_t dtype, kind, n_dims, flags;
    kopi_dim dim[4];   /* dim[0] contiguous; only the slowest one may be symbolic */
    int64_t nb[4];     /* byte strides; nb[0] is the block's bytes for block types; constant, never depending on a symbol */
    uint32_t space, group;
    uint64_t off;
    void *data;        /* host pointer or NULL */
    void *handle;      /* from weight_import or buf_alloc, or NULL */
    const char *name;  /* for messages; never NULL */
} kopi_tensor;

typedef struct kopi_op {
    uint32_t op, version;
    uint32_t level;    /* operations of one level do not depend on each other; levels ascend */
    uint32_t flags;
    const int32_t *in, *out; /* tensor indices, -1: absent; order as in kopi/op.h */
    uint32_t n_in, n_out;
    const void *params;      /* kopi_*_params of the operation, or NULL */
    uint32_t params_size;
    uint32_t layer;          /* of the model, for traces; UINT32_MAX outside the layers */
} kopi_op;

/* Layers with the same page lifetime and row size. */
enum { KOPI_KV_PAGES = 0, KOPI_KV_WINDOW = 1, KOPI_KV_STATE = 2 };
typedef struct kopi_kv_group {
    uint32_t struct_size, kind;
    uint32_t page_len, window;   /* positions per page; window of KOPI_KV_WINDOW */
    uint32_t dtype_k, dtype_v;   /* F16 or F32 */
    uint64_t page_bytes, n_pages;
    void *base;                  /* page p is at base + p * page_bytes; NULL when the backend owns the memory */
    void *handle;                /* from buf_alloc, then the pages are inside it; else NULL */
} kopi_kv_group;

typedef struct kopi_program {
    uint32_t struct_size, opset;
    uint32_t n_ops, op_stride, n_tensors, tensor_stride, n_groups, group_stride;
    const kopi_op *ops;
    const kopi_tensor *tensors;
    const kopi_kv_group *groups;
    uint64_t act_bytes;                 /* of the core's plan of the activations, for max_tok tokens */
    uint32_t max_tok, max_out, max_seq; /* upper bounds of one run */
    uint32_t max_pos;                   /* positions per sequence: context size */
    uint32_t flags, reserved;           /* KOPI_PROGRAM_* */
} kopi_program;

static inline const kopi_tensor *kopi_tensor_at(const kopi_program *p, int32_t i)
{
    return (const kopi_tensor *)(const void *)((const char *)p->tensors + (size_t)i * p->tensor_stride);
}
static inline const kopi_op *kopi_op_at(const kopi_program *p, uint32_t i)
{
    return (const kopi_op *)(const void *)((const char *)p->ops + (size_t)i * p->op_stride);
}
static inline const kopi_kv_group *kopi_group_at(const kopi_program *p, uint32_t i)
{
    return (const kopi_kv_group *)(const void *)((const char *)p->groups + (size_t)i * p->group_stride);
}

/* ---- one step ----------------------------------------------------------------------------------------------------- */

typedef struct kopi_seq_run {
    uint32_t struct_size, id;         /* id: stable name of the sequence, for traces */
    uint32_t first, n_new;            /* its tokens are run tokens [first, first + n_new), positions ascending by one */
    uint32_t n_past, reserved;        /* position of its first token; what the pages hold beyond is undefined */
    const int32_t *const *pages;      /* [group] -> page ids: page i holds positions [i * page_len, (i + 1) * page_len);
                                         -1 where a window group has dropped the page */
} kopi_seq_run;

enum { KOPI_OUTPUT_LOGITS = 0, KOPI_OUTPUT_HIDDEN = 1 };
typedef struct kopi_output {
    uint32_t struct_size, kind, dtype, n_rows;
    const int32_t *rows;              /* run tokens whose rows are wanted, ascending */
    void *host, *handle;              /* where the rows go: handle (a buffer of buf_alloc, from its start on) for a device that is
                                         not HOST_VISIBLE, else host; the other is NULL */
    int64_t row_bytes;
} kopi_output;

typedef struct kopi_run {
    uint32_t struct_size, n_tok, n_seq, n_out, seq_stride, output_stride;
    const int32_t *tokens;            /* [n_tok] ids, checked by the core; or NULL and embd */
    const float *embd;                /* [n_embd, n_tok], or NULL */
    const int32_t *pos;               /* [n_tok] */
    const int32_t *seq;               /* [n_tok] index into seqs */
    const kopi_seq_run *seqs;         /* [n_seq] */
    const kopi_output *outputs;       /* [n_out] */
} kopi_run;

static inline const kopi_seq_run *kopi_seq_at(const kopi_run *r, uint32_t i)
{
    return (const kopi_seq_run *)(const void *)((const char *)r->seqs + (size_t)i * r->seq_stride);
}
static inline const kopi_output *kopi_output_at(const kopi_run *r, uint32_t i)
{
    return (const kopi_output *)(const void *)((const char *)r->outputs + (size_t)i * r->output_stride);
}
/* Extent of dimension i of tensor t in this run. */
static inline int64_t kopi_extent(const kopi_run *r, const kopi_tensor *t, uint32_t i)
{
    const kopi_dim *d = &t->dim[i];
    if (d->sym == KOPI_DIM_TOK) return (int64_t)r->n_tok * d->mul;
    if (d->sym == KOPI_DIM_OUT) return (int64_t)(r->n_out ? kopi_output_at(r, 0)->n_rows : 0) * d->mul;
    return d->n;
}

/* ---- kernels: the easy way ---------------------------------------------------------------------------------------- */

/* What one call of a kernel sees. The call does its share ith of nth of the operation; calls of one operation run at the
 * same time on nth workers and never wait for each other. */
typedef struct kopi_kctx {
    uint32_t struct_size, ith, nth, reserved;
    const kopi_program *prog;
    const kopi_run *run;
    void *const *data;       /* [n_tensors] host address of each tensor in this run; NULL where it has none (KV: use groups) */
    void *scratch;           /* of this worker, scratch_size bytes, aligned to 64 */
    uint64_t scratch_size;
} kopi_kctx;

/* One row of the capability table: operation x version x types. Lists of dtypes, or NULL for "any". */
typedef struct kopi_kernel {
    uint32_t op, version;
    const uint32_t *w_types; /* of the weight (LINEAR, EMBED), of the KV cache (KV_WRITE, ATTN) */
    const uint32_t *a_types; /* of the activation: x of LINEAR, out of QUANTIZE; else NULL */
    uint32_t n_w, n_a;
    kopi_status (*run)(void *be, const kopi_kctx *k, const kopi_op *op);                    /* [worker] */
    uint64_t (*scratch)(void *be, const kopi_program *p, const kopi_op *op, uint32_t nth); /* [load] bytes per worker; NULL: 0 */
} kopi_kernel;

/* ---- weights, devices, the ops table ------------------------------------------------------------------------------ */

enum { KOPI_ROLE_EMBED = 1u << 0, KOPI_ROLE_LINEAR = 1u << 1, KOPI_ROLE_VECTOR = 1u << 2 }; /* VECTOR: norm weights, biases */
typedef struct kopi_weight {
    uint32_t struct_size, dtype;
    uint32_t roles, n_dims;     /* every use that this backend's own operations make of it */
    const char *name;
    int64_t ne[4], nb[4];
    const void *data;           /* as in the file; valid until weights_done returns, and for good where the answer is REF */
    uint64_t size;
} kopi_weight;

enum {
    KOPI_WEIGHT_REF = 0,      /* uses the file's bytes in place */
    KOPI_WEIGHT_COPIED = 1,   /* has its own copy */
    KOPI_WEIGHT_REPACKED = 2  /* has its own copy in another layout */
};
typedef struct kopi_weight_out {
    uint32_t struct_size, mode;
    uint32_t roles, reserved;   /* the uses that `handle` serves; the others get the file's bytes */
    void *handle;               /* appears as kopi_tensor.handle; freed by weight_free */
    uint64_t bytes;             /* memory that it takes */
    const char *layout;         /* short name for logs: "q4_1 x16 interleaved" */
} kopi_weight_out;

enum { KOPI_DEVICE_CPU = 0, KOPI_DEVICE_GPU = 1, KOPI_DEVICE_ACCEL = 2 };
enum {
    KOPI_DEVICE_EXACT = 1u << 0,        /* gives exactly the bits of kopi/op.h */
    KOPI_DEVICE_REPEATABLE = 1u << 1,   /* gives its own bits again for the same call */
    KOPI_DEVICE_HOST_VISIBLE = 1u << 2  /* works on host pointers, so the fallback can share tensors with it. Without it the
                                           backend has the buf_ functions, weight_import (which takes every weight for all its
                                           uses), prepare and execute, and supports every operation of the model */
};
typedef struct kopi_device {
    uint32_t struct_size, kind, flags, align;  /* align: wanted alignment of activations and pages, a power of two or 0 */
    uint64_t mem_total, mem_free, max_alloc;   /* 0: not known */
    char name[64];                             /* "cpu" */
    char detail[128];                          /* "avx512vnni, 2 threads" */
} kopi_device;

enum {
    KOPI_BF_ONE_THREAD = 1u << 0,       /* the default team is one worker (the user may ask for more) */
    KOPI_BF_PARALLEL_IMPORT = 1u << 1   /* weight_import may be called from several threads at once */
};
typedef struct kopi_backend_ops {
    uint32_t struct_size, flags;
    /* [load] Required. One instance serves one model; *be is passed to all others. host stays valid until destroy. */
    kopi_status (*create)(const kopi_host *host, uint32_t device, void **be);
    void (*destroy)(void *be); /* [load] Required. After plan_free and weight_free. */
    const kopi_kernel *kernels; /* may be NULL (n_kernels 0) when prepare and execute are there */
    uint32_t n_kernels, kernel_stride;
    /* [load] Finer than the kernel rows: 1 takes op, 0 doesn't. NULL: what has a kernel row. Required with prepare. */
    int32_t (*supports)(void *be, const kopi_program *p, const kopi_op *op);
    /* [load] Memory of the device; all five or none. host_ptr (may be NULL): address for the host, NULL if there is none. */
    kopi_status (*buf_alloc)(void *be, uint64_t size, uint32_t usage, void **handle, void **host_ptr);
    void (*buf_free)(void *be, void *handle);
    kopi_status (*buf_read)(void *be, void *handle, uint64_t off, void *host, uint64_t n);
    kopi_status (*buf_write)(void *be, void *handle, uint64_t off, const void *host, uint64_t n);
    kopi_status (*buf_copy)(void *be, void *dst, uint64_t dst_off, void *src, uint64_t src_off, uint64_t n); /* copy of a page */
    /* [load] Offered once per weight that its own ops read, after assignment, before prepare. NULL: all by REF. */
    kopi_status (*weight_import)(void *be, const kopi_weight *w, kopi_weight_out *out);
    kopi_status (*weights_done)(void *be);        /* [load] NULL allowed */
    void (*weight_free)(void *be, void *handle);  /* [load] Required with weight_import. */
    /* [load] Takes the program's operations [first_op, first_op + n_ops), a maximal run of what it supports. p lives as long
     * as the plan. NULL: the core's executor runs the kernels. */
    kopi_status (*prepare)(void *be, const kopi_program *p, uint32_t first_op, uint32_t n_ops, void **plan);
    kopi_status (*execute)(void *be, void *plan, const kopi_run *run); /* [run] */
    void (*plan_free)(void *be, void *plan);                           /* [load] */
    /* [load] Page of a private KV layout to and from the canonical one of kopi/op.h, page_bytes. Both or none. */
    kopi_status (*kv_export)(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical);
    kopi_status (*kv_import)(void *be, const kopi_program *p, uint32_t group, int32_t page, const void *canonical);
    /* [any] Name of the code that runs this operation, for `kopi backends` and tests: "linear_q4_1_avx2"; NULL: unknown. */
    const char *(*describe)(void *be, const kopi_program *p, const kopi_op *op);
    const void *(*extension)(void *be, const char *id); /* [any] NULL allowed */
} kopi_backend_ops;

/* ---- the plugin --------------------------------------------------------------------------------------------------- */

enum { KOPI_SANITIZER_NONE = 0, KOPI_SANITIZER_ADDRESS = 1, KOPI_SANITIZER_THREAD = 2 };
#if defined(__SANITIZE_ADDRESS__)
#define KOPI_SANITIZER KOPI_SANITIZER_ADDRESS
#elif defined(__SANITIZE_THREAD__)
#define KOPI_SANITIZER KOPI_SANITIZER_THREAD
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KOPI_SANITIZER KOPI_SANITIZER_ADDRESS
#elif __has_feature(thread_sanitizer)
#define KOPI_SANITIZER KOPI_SANITIZER_THREAD
#endif
#endif
#ifndef KOPI_SANITIZER
#define KOPI_SANITIZER KOPI_SANITIZER_NONE
#endif

/* Catches packed structs and hand-made headers: pointer size, byte order and the end of the first version's last field of the
 * structs that both sides walk. Stays constant while structs grow. */
#define KOPI_FINGERPRINT                                                                                               \
    ((uint64_t)sizeof(void *) | ((uint64_t)(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__) << 8) |                         \
     ((uint64_t)KOPI_END_OF(kopi_tensor, name) << 16) | ((uint64_t)KOPI_END_OF(kopi_op, layer) << 28) |                \
     ((uint64_t)KOPI_END_OF(kopi_kernel, scratch) << 40) | ((uint64_t)KOPI_END_OF(kopi_run, outputs) << 52))

typedef struct kopi_plugin {
    uint32_t struct_size, abi_minor;       /* KOPI_ABI_MINOR of its headers */
    uint32_t min_host_minor, sanitizer;    /* KOPI_SANITIZER */
    uint64_t fingerprint;                  /* KOPI_FINGERPRINT */
    const char *name, *version;            /* required; name is the NAME of kopi-NAME.so */
    const char *vendor, *license, *build;  /* may be NULL */
    /* [load] Device `index`; KOPI_E_RANGE past the last one. Must not run code of an optional instruction set. */
    kopi_status (*device)(const kopi_host *host, uint32_t index, kopi_device *out);
    const char *const *option_keys;        /* NULL-terminated list, or NULL */
    const kopi_dtype_info *dtypes;         /* own weight types, or NULL */
    uint32_t n_dtypes, dtype_stride;
    const kopi_backend_ops *ops;           /* required */
} kopi_plugin;

/* The one exported symbol. Pure: no side effects, same answer every time. [any] */
KOPI_EXPORT const kopi_plugin *kopi_plugin_v1(void);

KOPI_END_DECLS

#endif
