#include "model/program.h"

#include "base/error.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>

/* ---- storage that lives as long as the program ------------------------------------------------------------------- */

struct chunk { struct chunk *next; };

static void *keep(struct kopi__program *b, size_t size)
{
    struct chunk *c = kopi__alloc(sizeof *c + 16 + size);
    if (!c) {
        b->failed = KOPI_E_NOMEM;
        return NULL;
    }
    c->next = b->arena;
    b->arena = c;
    return (char *)c + 16;
}

static void *keep_copy(struct kopi__program *b, const void *p, size_t size)
{
    void *copy = keep(b, size);
    if (copy && size) memcpy(copy, p, size);
    return copy;
}

/* Doubles a growing array kept as *p with room for *cap elements. */
static bool grow(struct kopi__program *b, void *p, uint32_t n, uint32_t *cap, size_t size)
{
    void **array = p;
    if (n < *cap) return true;
    uint32_t more = *cap ? *cap * 2 : 64;
    void *q = kopi__realloc_array(*array, more, size);
    if (!q) {
        b->failed = KOPI_E_NOMEM;
        return false;
    }
    *array = q;
    *cap = more;
    return true;
}

kopi_status kopi__program_new(struct kopi__program **out, kopi_error *err)
{
    *out = kopi__calloc(1, sizeof **out);
    return *out ? KOPI_OK : kopi__nomem(err, "program");
}

void kopi__program_free(struct kopi__program *b)
{
    if (!b) return;
    for (uint32_t i = 0; i < b->p.n_tensors; i++)
        if (b->tensors[i].kind == KOPI_KIND_CONST) kopi__free(b->tensors[i].data);
    for (struct chunk *c = b->arena, *next; c; c = next) {
        next = c->next;
        kopi__free(c);
    }
    kopi__free(b->tensors);
    kopi__free(b->sources);
    kopi__free(b->ops);
    kopi__free(b->groups);
    kopi__free(b);
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static uint32_t block_len(uint32_t dtype)
{
    switch (dtype) {
#define LEN(name, id, len, bytes) case id: return len;
        KOPI_DTYPES(LEN)
#undef LEN
    case KOPI_DTYPE_A8_32: return 32;
    case KOPI_DTYPE_A8_256: return 256;
    default: return 0;
    }
}

static uint32_t block_bytes(uint32_t dtype)
{
    switch (dtype) {
#define BYTES(name, id, len, bytes) case id: return bytes;
        KOPI_DTYPES(BYTES)
#undef BYTES
    case KOPI_DTYPE_A8_32: return sizeof(kopi_a8_32);
    case KOPI_DTYPE_A8_256: return sizeof(kopi_a8_256);
    default: return 0;
    }
}

static int32_t add_tensor(struct kopi__program *b, const kopi_tensor *t, const struct kopi_gguf_tensor *source)
{
    uint32_t n = b->p.n_tensors, cap = b->cap_tensors;
    if (b->failed) return -1;
    if (!grow(b, &b->sources, n, &cap, sizeof *b->sources)) return -1;
    if (!grow(b, &b->tensors, n, &b->cap_tensors, sizeof *b->tensors)) return -1;
    b->tensors[n] = *t;
    b->tensors[n].name = keep_copy(b, t->name, strlen(t->name) + 1);
    b->sources[n] = source;
    if (b->failed) return -1;
    b->p.n_tensors++;
    return (int32_t)n;
}

/* Contiguous strides of dim[0 .. n_dims). */
static void set_strides(kopi_tensor *t)
{
    t->nb[0] = block_bytes(t->dtype);
    t->nb[1] = t->dim[0].n / block_len(t->dtype) * t->nb[0];
    for (uint32_t i = 2; i < 4; i++) t->nb[i] = t->nb[i - 1] * (i - 1 < t->n_dims ? t->dim[i - 1].n : 1);
}

static int32_t symbolic(struct kopi__program *b, kopi_tensor t, int64_t n, int64_t heads, uint32_t sym)
{
    t.dim[0].n = n;
    t.n_dims = heads > 1 ? 3 : 2;
    if (heads > 1) t.dim[1].n = heads;
    t.dim[t.n_dims - 1] = (kopi_dim){0, sym, 1}; /* the bound is set by finish */
    set_strides(&t);
    return add_tensor(b, &t, NULL);
}

int32_t kopi__tensor_act(struct kopi__program *b, const char *name, uint32_t dtype, int64_t n, int64_t heads,
                         uint32_t sym)
{
    return symbolic(b, (kopi_tensor){.dtype = dtype, .kind = KOPI_KIND_ACT, .name = name}, n, heads, sym);
}

int32_t kopi__tensor_output(struct kopi__program *b, const char *name, int64_t n, uint32_t output)
{
    return symbolic(b, (kopi_tensor){.dtype = KOPI_DTYPE_F32, .kind = KOPI_KIND_OUTPUT, .group = output, .name = name},
                    n, 1, KOPI_DIM_OUT);
}

int32_t kopi__tensor_weight(struct kopi__program *b, const struct kopi_gguf_tensor *g)
{
    for (uint32_t i = 0; i < b->p.n_tensors; i++)
        if (b->sources[i] == g) return (int32_t)i;
    kopi_tensor t = {.dtype = g->dtype, .kind = KOPI_KIND_WEIGHT, .n_dims = g->n_dims, .name = g->name};
    for (uint32_t i = 0; i < 4; i++) t.dim[i].n = g->ne[i];
    uint64_t rows = (uint64_t)g->ne[1] * (uint64_t)g->ne[2] * (uint64_t)g->ne[3];
    t.nb[1] = (int64_t)(g->size / rows);
    t.nb[0] = g->block_bytes;
    for (uint32_t i = 2; i < 4; i++) t.nb[i] = t.nb[i - 1] * g->ne[i - 1];
    t.data = (void *)(uintptr_t)g->data;
    return add_tensor(b, &t, g);
}

int32_t kopi__tensor_const(struct kopi__program *b, const char *name, const int64_t *ne, uint32_t n_dims, void *f32)
{
    kopi_tensor t = {.dtype = KOPI_DTYPE_F32, .kind = KOPI_KIND_CONST, .n_dims = n_dims, .data = f32, .name = name};
    for (uint32_t i = 0; i < 4; i++) t.dim[i].n = i < n_dims ? ne[i] : 1;
    set_strides(&t);
    int32_t i = f32 ? add_tensor(b, &t, NULL) : -1;
    if (i < 0) {
        kopi__free(f32);
        b->failed = KOPI_E_NOMEM;
    }
    return i;
}

int32_t kopi__tensor_kv(struct kopi__program *b, const char *name, uint32_t dtype, uint32_t group, uint64_t off,
                        int64_t row)
{
    kopi_tensor t = {.dtype = dtype, .kind = KOPI_KIND_KV, .n_dims = 2, .group = group, .off = off, .name = name};
    t.dim[0].n = row;
    t.dim[1].n = b->failed ? 0 : b->groups[group].page_len;
    set_strides(&t);
    return add_tensor(b, &t, NULL);
}

uint32_t kopi__program_group(struct kopi__program *b, const kopi_kv_group *g)
{
    uint32_t n = b->p.n_groups;
    kopi_kv_group *more = kopi__realloc_array(b->groups, n + 1, sizeof *more);
    if (!more) {
        b->failed = KOPI_E_NOMEM;
        return 0;
    }
    b->groups = more;
    b->groups[n] = *g;
    b->p.n_groups++;
    return n;
}

void kopi__program_op(struct kopi__program *b, uint32_t op, uint32_t layer, const int32_t *in, uint32_t n_in,
                      const int32_t *out, uint32_t n_out, const void *params, uint32_t params_size)
{
#define VERSION(name, id, v) [id] = v,
    static const uint32_t version[] = {KOPI_OPS(VERSION)};
#undef VERSION
    if (b->failed || !grow(b, &b->ops, b->p.n_ops, &b->cap_ops, sizeof *b->ops)) return;
    kopi_op o = {
        .op = op, .version = version[op], .layer = layer, .n_in = n_in, .n_out = n_out, .params_size = params_size};
    o.in = keep_copy(b, in, n_in * sizeof *in);
    o.out = keep_copy(b, out, n_out * sizeof *out);
    if (params_size) o.params = keep_copy(b, params, params_size);
    if (!b->failed) b->ops[b->p.n_ops++] = o;
}

/* ---- levels and the memory plan ---------------------------------------------------------------------------------- */

/* Level of an operation: above the writers of what it reads and the readers and writers of what it writes. */
static kopi_status set_levels(struct kopi__program *b)
{
    struct use { uint32_t written, read; } *use = kopi__calloc(b->p.n_tensors, sizeof *use); /* 1 + last level */
    kopi_op *sorted = kopi__alloc(b->p.n_ops * sizeof *sorted);
    uint32_t n_levels = 0, n = 0;
    if (use && sorted) {
        for (uint32_t i = 0; i < b->p.n_ops; i++) {
            kopi_op *o = &b->ops[i];
            uint32_t level = 0;
            for (uint32_t k = 0; k < o->n_in; k++)
                if (o->in[k] >= 0 && use[o->in[k]].written > level) level = use[o->in[k]].written;
            for (uint32_t k = 0; k < o->n_out; k++) {
                struct use *u = &use[o->out[k]];
                if (u->written > level) level = u->written;
                if (u->read > level) level = u->read;
            }
            o->level = level;
            for (uint32_t k = 0; k < o->n_in; k++)
                if (o->in[k] >= 0 && use[o->in[k]].read < level + 1) use[o->in[k]].read = level + 1;
            for (uint32_t k = 0; k < o->n_out; k++) use[o->out[k]].written = level + 1;
            if (level + 1 > n_levels) n_levels = level + 1;
        }
        for (uint32_t l = 0; l < n_levels; l++)
            for (uint32_t i = 0; i < b->p.n_ops; i++)
                if (b->ops[i].level == l) sorted[n++] = b->ops[i];
        memcpy(b->ops, sorted, n * sizeof *sorted);
    }
    bool ok = use && sorted;
    kopi__free(use);
    kopi__free(sorted);
    return ok ? KOPI_OK : KOPI_E_NOMEM;
}

struct life { uint32_t first, last; uint64_t off, size; };

/* Levels in which each activation holds a value. */
static void set_lives(const struct kopi__program *b, struct life *life)
{
    for (uint32_t i = 0; i < b->p.n_tensors; i++) life[i].first = UINT32_MAX;
    for (uint32_t i = 0; i < b->p.n_ops; i++) {
        const kopi_op *o = &b->ops[i];
        for (uint32_t k = 0; k < o->n_in + o->n_out; k++) {
            int32_t t = k < o->n_in ? o->in[k] : o->out[k - o->n_in];
            if (t < 0) continue;
            if (o->level < life[t].first) life[t].first = o->level;
            if (o->level > life[t].last) life[t].last = o->level;
        }
    }
}

/* First fit: each activation, in the order of its first level, at the lowest offset that no tensor alive at the same
 * time covers. Programs have a handful of activations alive at once, so the scan is short. */
static kopi_status place(struct kopi__program *b)
{
    struct life *life = kopi__calloc(b->p.n_tensors, sizeof *life);
    int32_t *placed = kopi__calloc(b->p.n_tensors, sizeof *placed); /* by ascending offset */
    uint32_t n = 0;
    kopi_status status = life && placed ? KOPI_OK : KOPI_E_NOMEM;
    uint64_t end = 0;
    if (status == KOPI_OK) set_lives(b, life);
    for (uint32_t i = 0; i < b->p.n_tensors && status == KOPI_OK; i++) {
        kopi_tensor *t = &b->tensors[i];
        if (t->kind != KOPI_KIND_ACT || life[i].first == UINT32_MAX) continue;
        uint64_t size, off = 0;
        if (!kopi__mul((uint64_t)t->nb[t->n_dims - 1], (uint64_t)t->dim[t->n_dims - 1].n, &size) ||
            !kopi__pad(size, 64, &size)) {
            status = KOPI_E_NOMEM;
            break;
        }
        uint32_t at = n;
        for (uint32_t k = 0; k < n; k++) {
            const struct life *o = &life[placed[k]];
            if (o->first > life[i].last || o->last < life[i].first) continue;
            if (o->off >= off + size) {
                at = k;
                break;
            }
            if (o->off + o->size > off) off = o->off + o->size;
        }
        while (at > 0 && life[placed[at - 1]].off > off) at--;
        while (at < n && life[placed[at]].off <= off) at++;
        memmove(placed + at + 1, placed + at, (n - at) * sizeof *placed);
        placed[at] = (int32_t)i;
        n++;
        life[i].off = t->off = off;
        life[i].size = size;
        if (off + size > end) end = off + size;
    }
    b->p.act_bytes = end;
    kopi__free(life);
    kopi__free(placed);
    return status;
}

kopi_status kopi__program_finish(struct kopi__program *b, uint32_t max_tok, uint32_t max_out, uint32_t max_seq,
                                 uint32_t max_pos, kopi_error *err)
{
    for (uint32_t i = 0; i < b->p.n_tensors; i++)
        for (uint32_t k = 0; k < 4; k++) {
            kopi_dim *d = &b->tensors[i].dim[k];
            if (d->sym) d->n = (int64_t)d->mul * (d->sym == KOPI_DIM_TOK ? max_tok : max_out);
        }
    if (b->failed == KOPI_OK) b->failed = set_levels(b);
    if (b->failed == KOPI_OK) b->failed = place(b);
    if (b->failed != KOPI_OK) return kopi__nomem(err, "program");
    kopi_program *p = &b->p;
    p->struct_size = sizeof *p;
    p->opset = KOPI_OPSET;
    p->op_stride = sizeof(kopi_op);
    p->tensor_stride = sizeof(kopi_tensor);
    p->group_stride = sizeof(kopi_kv_group);
    p->ops = b->ops;
    p->tensors = b->tensors;
    p->groups = b->groups;
    p->max_tok = max_tok;
    p->max_out = max_out;
    p->max_seq = max_seq;
    p->max_pos = max_pos;
    return KOPI_OK;
}

const char *kopi__dims_text(const int64_t *ne, uint32_t n_dims, char *buf, size_t n)
{
    int k = snprintf(buf, n, "[");
    for (uint32_t i = 0; i < n_dims && k >= 0 && (size_t)k < n; i++)
        k += snprintf(buf + k, n - (size_t)k, "%s%lld", i ? ", " : "", (long long)ne[i]);
    if (k >= 0 && (size_t)k < n) snprintf(buf + k, n - (size_t)k, "]");
    return buf;
}
