/* What kopi's own executor costs: the kernels, weights and KV layout of cpu-threaded in a backend without prepare and
 * execute. bench/kernels-only compares the two. The plugin of cpu-threaded is compiled in under another name and
 * answers for everything but who runs what. */
#include "plugins/cpu-threaded/kv.h"

#include <string.h>

const kopi_plugin *kt_plugin_v1(void); /* plugins/cpu-threaded/plugin.c */

/* The kernels' layout of A8_32 takes more than that of kopi/op.h, so quantized activations lie in memory of the
 * backend's own: at twice their offset in the arena, where those that are in use at the same time are as far apart as
 * there. */
struct backend {
    struct kt kt; /* first: the functions of cpu-threaded take it for theirs */
    struct kt *made;
    char *quantized;
    uint64_t quantized_bytes;
};

struct range {
    int64_t begin, end;
};
/* The worker's part of n things; it begins and ends at multiples of unit (but for the last). */
static struct range share(const kopi_kctx *k, int64_t n, int64_t unit)
{
    int64_t units = (n + unit - 1) / unit, begin = units * k->ith / k->nth * unit,
            end = units * (k->ith + 1) / k->nth * unit;
    return (struct range){begin < n ? begin : n, end < n ? end : n};
}

/* Rows of floats; n of them in this run, cap in the largest; len floats each, ld apart. */
struct rows {
    float *data;
    int64_t n, cap, len, ld;
};
static struct rows rows_of(const kopi_kctx *k, int32_t tensor)
{
    if (tensor < 0) return (struct rows){0};
    const kopi_tensor *t = kopi_tensor_at(k->prog, tensor);
    uint32_t last = t->n_dims - 1;
    struct rows r = {k->data[tensor], kopi_extent(k->run, t, last), t->dim[last].n, 1, t->nb[last] / 4};
    for (uint32_t i = 0; i < last; i++) r.len *= t->dim[i].n;
    if (t->kind == KOPI_KIND_OUTPUT) r.ld = kopi_output_at(k->run, t->group)->row_bytes / 4;
    return r;
}
static struct rows in_of(const kopi_kctx *k, const kopi_op *op, uint32_t i)
{
    return rows_of(k, i < op->n_in ? op->in[i] : -1);
}
static struct rows out_of(const kopi_kctx *k, const kopi_op *op) { return rows_of(k, op->out[0]); }
static float *row(const struct rows *r, int64_t i) { return r->data + i * r->ld; }
static int64_t head_dim(const kopi_kctx *k, const kopi_op *op) { return kopi_tensor_at(k->prog, op->in[0])->dim[0].n; }

/* ---- row by row -------------------------------------------------------------------------------------------------- */

static kopi_status embed(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct kt *kt = be;
    const kopi_tensor *t = kopi_tensor_at(k->prog, op->in[0]);
    const struct kt_weight *w = t->handle;
    const struct kt_linear *l = kt_linear_find(t->dtype, kt->level);
    const kopi_embed_params *p = op->params;
    struct rows y = out_of(k, op);
    struct range r = share(k, y.n, 1);
    for (int64_t i = r.begin; i < r.end; i++) {
        uint32_t token = k->run->tokens ? (uint32_t)k->run->tokens[i] : 0;
        if (!k->run->tokens) memcpy(row(&y, i), k->run->embd + i * y.len, (size_t)y.len * sizeof(float));
        else if (w) l->to_f32(w->groups + token / KT_ROWS * w->group_bytes, token % KT_ROWS, w->k, row(&y, i));
        else {
            l->repack((const char *)k->data[op->in[0]] + token * t->nb[1], 0, 1, (uint32_t)y.len, k->scratch);
            l->to_f32(k->scratch, 0, (uint32_t)y.len, row(&y, i));
        }
        if (p->scale != 1.0f) kt->kernels->scale(row(&y, i), row(&y, i), (uint32_t)y.len, p->scale);
    }
    return KOPI_OK;
}

static kopi_status norm(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct kt *kt = be;
    struct rows x = in_of(k, op, 0), y = out_of(k, op);
    const float *weight = op->n_in > 1 && op->in[1] >= 0 ? k->data[op->in[1]] : NULL;
    const float *bias = op->n_in > 2 && op->in[2] >= 0 ? k->data[op->in[2]] : NULL;
    int64_t d = head_dim(k, op), heads = x.len / d;
    struct range r = share(k, x.n * heads, 1);
    for (int64_t i = r.begin; i < r.end; i++)
        kt->kernels->norm(row(&x, i / heads) + i % heads * d, row(&y, i / heads) + i % heads * d, (uint32_t)d,
                          op->params, weight, bias);
    return KOPI_OK;
}

static kopi_status rope(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct kt *kt = be;
    const kopi_tensor *table = kopi_tensor_at(k->prog, op->in[1]);
    struct rows x = in_of(k, op, 0), y = out_of(k, op);
    int64_t d = head_dim(k, op), heads = x.len / d;
    struct range r = share(k, x.n * heads, 1);
    for (int64_t i = r.begin; i < r.end; i++) {
        const char *at = (const char *)k->data[op->in[1]] + k->run->pos[i / heads] * table->nb[2];
        kt->kernels->rope(row(&x, i / heads) + i % heads * d, row(&y, i / heads) + i % heads * d, (uint32_t)d, 1,
                          op->params, (const float *)(const void *)at);
    }
    return KOPI_OK;
}

/* Element by element: rows, or parts of the only one. */
static kopi_status elements(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct kt_kernels *f = ((const struct kt *)be)->kernels;
    struct rows x = in_of(k, op, 0), b = {0}, y = out_of(k, op);
    if (op->op == KOPI_OP_GLU || op->op == KOPI_OP_ADD) b = in_of(k, op, 1);
    struct range r = share(k, x.n, 1), c = {0, x.len};
    if (x.n == 1) r = (struct range){0, 1}, c = share(k, x.len, 16);
    uint32_t n = (uint32_t)(c.end - c.begin);
    for (int64_t i = r.begin; i < r.end && n; i++) {
        const float *from = row(&x, i) + c.begin, *other = b.data ? row(&b, i) + c.begin : NULL;
        float *to = row(&y, i) + c.begin;
        switch (op->op) {
        case KOPI_OP_GLU: f->glu(from, other, to, n, ((const kopi_glu_params *)op->params)->act); break;
        case KOPI_OP_ADD: f->add(from, other, to, n); break;
        case KOPI_OP_SCALE: f->scale(from, to, n, ((const kopi_scale_params *)op->params)->value); break;
        default: f->softcap(from, to, n, ((const kopi_scale_params *)op->params)->value); break;
        }
    }
    return KOPI_OK;
}

static kopi_status gather(void *be, const kopi_kctx *k, const kopi_op *op)
{
    struct rows x = in_of(k, op, 0), y = out_of(k, op);
    struct range r = share(k, y.n, 1);
    (void)be;
    for (int64_t i = r.begin; i < r.end; i++)
        memcpy(row(&y, i), row(&x, kopi_output_at(k->run, 0)->rows[i]), (size_t)y.len * sizeof(float));
    return KOPI_OK;
}

/* ---- LINEAR ------------------------------------------------------------------------------------------------------ */

static struct kt_act act_of(const struct backend *b, const kopi_kctx *k, int32_t tensor)
{
    struct rows r = rows_of(k, tensor);
    const kopi_tensor *t = kopi_tensor_at(k->prog, tensor);
    return (struct kt_act){t->dtype, (uint32_t)r.len, (uint32_t)r.cap, (uint32_t)r.n,
                           b->quantized ? b->quantized + 2 * t->off : NULL};
}

static kopi_status quantize(void *be, const kopi_kctx *k, const kopi_op *op)
{
    struct rows x = in_of(k, op, 0);
    const struct kt_act act = act_of(be, k, op->out[0]);
    struct range r = share(k, x.n, kt_act_unit());
    if (!act.data) return kt_nomem(((const struct kt *)be)->host, "quantized activations");
    if (r.begin < r.end)
        kt_quantize_find(act.dtype, ((const struct kt *)be)->level)(row(&x, r.begin), (uint64_t)x.ld, (uint32_t)r.begin,
                                                                   (uint32_t)(r.end - r.begin), &act);
    return KOPI_OK;
}

static kopi_status linear(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct kt_weight *w = kopi_tensor_at(k->prog, op->in[1])->handle;
    const float *bias = op->n_in > 2 && op->in[2] >= 0 ? k->data[op->in[2]] : NULL;
    struct rows x = in_of(k, op, 0), y = out_of(k, op);
    struct kt_act act = act_of(be, k, op->in[0]);
    if (act.dtype == KOPI_DTYPE_F32) { /* every worker lays out all of x for itself */
        act.data = k->scratch;
        kt_quantize_find(KOPI_DTYPE_F32, ((const struct kt *)be)->level)(x.data, (uint64_t)x.ld, 0, act.n_tok, &act);
    }
    struct range r = share(k, w->n, KT_ROWS);
    if (r.begin < r.end && act.n_tok)
        w->kernel->run(w->groups + (uint64_t)(r.begin / KT_ROWS) * w->group_bytes,
                       (uint32_t)((r.end - r.begin + KT_ROWS - 1) / KT_ROWS), (uint32_t)(r.end - r.begin), w->k, &act,
                       0, act.n_tok, bias ? bias + r.begin : NULL, y.data + r.begin, (uint64_t)y.ld);
    return KOPI_OK;
}

/* ---- attention --------------------------------------------------------------------------------------------------- */

static kopi_status no_page(void *be)
{
    const kopi_host *host = ((const struct kt *)be)->host;
    return host->fail(host->ctx, KOPI_E_INTERNAL, "a position has no KV page");
}

static kopi_status kv_write(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const struct kt_kernels *f = ((const struct kt *)be)->kernels;
    const kopi_kv_write_params *p = op->params;
    struct rows key = in_of(k, op, 0), value = in_of(k, op, 1);
    struct kt_kv_part kp, vp;
    kt_kv_part(&kp, k->prog, op->out[0], p->n_kv_heads, p->head_dim_k);
    kt_kv_part(&vp, k->prog, op->out[1], p->n_kv_heads, p->head_dim_v);
    struct range r = share(k, key.n * p->n_kv_heads, 1);
    for (int64_t i = r.begin; i < r.end; i++) {
        int64_t t = i / p->n_kv_heads;
        uint32_t h = (uint32_t)(i % p->n_kv_heads), pos = (uint32_t)k->run->pos[t], lane = pos % KT_LANES;
        const kopi_seq_run *seq = kopi_seq_at(k->run, (uint32_t)k->run->seq[t]);
        char *to = kt_kv_lanes(&kp, seq, h, pos), *v = kt_kv_lanes(&vp, seq, h, pos);
        if (!to || !v) return no_page(be);
        f->store_k(row(&key, t) + h * p->head_dim_k, to, lane, p->head_dim_k, kp.f16);
        f->store_v(row(&value, t) + h * p->head_dim_v, v + (uint64_t)lane * p->head_dim_v * (vp.f16 ? 2 : 4),
                   p->head_dim_v, vp.f16);
    }
    return KOPI_OK;
}

/* One ATTN, and the query heads [first, first + n) of one KV head and token. */
struct attend {
    const struct kt_kernels *kernels;
    const kopi_attn_params *p;
    struct kt_kv_part key, value;
    const kopi_seq_run *seq;
    const float *q;
    float *y, *total, *sum; /* total, sum: slot floats per query */
    uint32_t slot, kv_head, n, begin, end;
};

/* Chunk c; its sums go to `to`. */
static bool one_chunk(const struct attend *a, uint32_t c, float *to)
{
    const float *q[KT_MAX_QUERIES];
    float *sum[KT_MAX_QUERIES];
    uint16_t begin[KT_MAX_QUERIES], end[KT_MAX_QUERIES];
    struct kt_attn_chunk chunk = {.n_queries = a->n,
                                  .head_dim_k = a->p->head_dim_k,
                                  .head_dim_v = a->p->head_dim_v,
                                  .k_f16 = a->key.f16,
                                  .v_f16 = a->value.f16,
                                  .scale = a->p->scale,
                                  .softcap = a->p->softcap,
                                  .q = q,
                                  .begin = begin,
                                  .end = end,
                                  .sum = sum};
    uint32_t base = c * KT_CHUNK, from = a->begin > base ? a->begin - base : 0,
             upto = a->end - base < KT_CHUNK ? a->end - base : KT_CHUNK;
    for (uint32_t i = 0; i < a->n; i++) {
        q[i] = a->q + (size_t)i * a->p->head_dim_k;
        sum[i] = to + (size_t)i * a->slot;
        begin[i] = (uint16_t)from;
        end[i] = (uint16_t)upto;
    }
    for (uint32_t i = from / KT_LANES; i * KT_LANES < upto; i++) {
        chunk.k[i] = kt_kv_lanes(&a->key, a->seq, a->kv_head, base + i * KT_LANES);
        chunk.v[i] = kt_kv_lanes(&a->value, a->seq, a->kv_head, base + i * KT_LANES);
        if (!chunk.k[i] || !chunk.v[i]) return false;
    }
    a->kernels->attn_chunk(&chunk);
    return true;
}

static bool attend(const struct attend *a)
{
    uint32_t first = a->begin / KT_CHUNK;
    for (uint32_t c = first; c * KT_CHUNK < a->end; c++) {
        if (!one_chunk(a, c, c == first ? a->total : a->sum)) return false;
        for (uint32_t i = 0; i < a->n && c > first; i++)
            a->kernels->attn_merge(a->total + (size_t)i * a->slot, a->sum + (size_t)i * a->slot, a->p->head_dim_v);
    }
    for (uint32_t i = 0; i < a->n; i++)
        a->kernels->attn_finish(a->total + (size_t)i * a->slot, a->y + (size_t)i * a->p->head_dim_v, a->p->head_dim_v);
    return true;
}

/* Query heads that share a KV head go together where there is enough to do without taking them apart. */
static kopi_status attn(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_attn_params *p = op->params;
    struct rows q = in_of(k, op, 0), y = out_of(k, op);
    struct attend a = {
        .kernels = ((const struct kt *)be)->kernels, .p = p, .slot = kt_sum_floats(p->head_dim_v), .total = k->scratch};
    a.sum = a.total + (size_t)KT_MAX_QUERIES * a.slot;
    kt_kv_part(&a.key, k->prog, op->in[1], p->n_kv_heads, p->head_dim_k);
    kt_kv_part(&a.value, k->prog, op->in[2], p->n_kv_heads, p->head_dim_v);
    uint32_t group = p->n_heads / p->n_kv_heads, few = group < KT_MAX_QUERIES ? group : KT_MAX_QUERIES;
    uint32_t per = q.n * p->n_kv_heads < k->nth ? 1 : few, parts = (group + per - 1) / per;
    struct range r = share(k, q.n * p->n_kv_heads * parts, 1);
    for (int64_t i = r.begin; i < r.end; i++) {
        int64_t t = i / (p->n_kv_heads * parts);
        uint32_t part = (uint32_t)(i % parts), head;
        a.kv_head = (uint32_t)(i / parts % p->n_kv_heads);
        head = a.kv_head * group + part * per;
        a.n = group - part * per < per ? group - part * per : per;
        a.seq = kopi_seq_at(k->run, (uint32_t)k->run->seq[t]);
        a.end = (uint32_t)k->run->pos[t] + 1;
        a.begin = p->window && a.end > p->window ? a.end - p->window : 0;
        a.q = row(&q, t) + (size_t)head * p->head_dim_k;
        a.y = row(&y, t) + (size_t)head * p->head_dim_v;
        if (!attend(&a)) return no_page(be);
    }
    return KOPI_OK;
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static void make_room(struct backend *b, const kopi_program *p)
{
    if (2 * p->act_bytes <= b->quantized_bytes) return;
    kt_free(b->kt.host, b->quantized);
    b->quantized_bytes = 2 * p->act_bytes;
    b->quantized = kt_alloc(b->kt.host, b->quantized_bytes, 64); /* what of it isn't used is never touched */
    if (!b->quantized) b->quantized_bytes = 0;
}

static uint64_t scratch(void *be, const kopi_program *p, const kopi_op *op, uint32_t nth)
{
    const struct kt *kt = be;
    const kopi_tensor *x = kopi_tensor_at(p, op->in[0]);
    (void)nth;
    if (op->op == KOPI_OP_QUANTIZE) {
        make_room(be, p);
        return 0;
    }
    if (op->op == KOPI_OP_ATTN)
        return 2 * KT_MAX_QUERIES * sizeof(float) * kt_sum_floats(((const kopi_attn_params *)op->params)->head_dim_v);
    if (op->op == KOPI_OP_EMBED) return kt_linear_find(x->dtype, kt->level)->group_bytes((uint32_t)x->dim[0].n);
    if (x->dtype != KOPI_DTYPE_F32) return 0;
    uint64_t len = 1;
    for (uint32_t i = 0; i + 1 < x->n_dims; i++) len *= (uint64_t)x->dim[i].n;
    return kt_act_bytes(KOPI_DTYPE_F32, (uint32_t)len, (uint32_t)x->dim[x->n_dims - 1].n);
}

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    void *made;
    kopi_status s = kt_plugin_v1()->ops->create(host, device, &made);
    if (s != KOPI_OK) return s;
    struct backend *b = kt_calloc(host, 1, sizeof *b);
    if (!b) {
        kt_plugin_v1()->ops->destroy(made);
        return kt_nomem(host, "the backend's state");
    }
    b->kt = *(b->made = made);
    *be = b;
    return KOPI_OK;
}

static void destroy(void *be)
{
    struct backend *b = be;
    const kopi_host *host = b->kt.host;
    kt_plugin_v1()->ops->destroy(b->made);
    kt_free(host, b->quantized);
    kt_free(host, b);
}

#define ROW(NAME, function, scratch) {KOPI_OP_##NAME, 1, NULL, NULL, 0, 0, function, scratch}
static const kopi_kernel kernels[] = {
    ROW(EMBED, embed, scratch),   ROW(NORM, norm, NULL),        ROW(QUANTIZE, quantize, scratch),
    ROW(LINEAR, linear, scratch), ROW(ROPE, rope, NULL),        ROW(KV_WRITE, kv_write, NULL),
    ROW(ATTN, attn, scratch),     ROW(GLU, elements, NULL),     ROW(ADD, elements, NULL),
    ROW(SCALE, elements, NULL),   ROW(SOFTCAP, elements, NULL), ROW(GATHER, gather, NULL),
};

const kopi_plugin *kopi_plugin_v1(void)
{
    static kopi_backend_ops ops; /* the same whoever fills them in, and however often */
    static kopi_plugin plugin;
    const kopi_plugin *all = kt_plugin_v1();
    ops = *all->ops;
    ops.create = create;
    ops.destroy = destroy;
    ops.kernels = kernels;
    ops.n_kernels = sizeof kernels / sizeof *kernels;
    ops.kernel_stride = sizeof *kernels;
    ops.prepare = NULL;
    ops.execute = NULL;
    ops.plan_free = NULL;
    plugin = *all;
    plugin.name = "kernels-only";
    plugin.ops = &ops;
    return &plugin;
}
