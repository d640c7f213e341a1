/* Steps of row operations: a few rows at a time go through all nodes of the step, so that they stay in the nearest
 * cache. */
#include "plan.h"

#include <string.h>

typedef void rows_fn(struct kt_worker *w, const struct kt_node *n, struct kt_range r);

static const struct kt_kernels *kernels(const struct kt_worker *w) { return w->plan->kt->kernels; }
static uint32_t width(const struct kt_worker *w, int32_t value) { return w->plan->graph.values[value].n; }
static uint32_t head_dim(const struct kt_worker *w, const struct kt_node *n)
{
    return (uint32_t)kopi_tensor_at(w->plan->graph.prog, n->op->in[0])->dim[0].n;
}

/* For each row of r: x, its input, and y. */
#define EACH_ROW(...)                                                                                                  \
    do {                                                                                                               \
        const struct kt_place px = kt_place_of(w, n->in[0]), py = kt_place_of(w, n->out);                              \
        for (uint32_t i = r.begin; i < r.end; i++) {                                                                   \
            const float *x = kt_at(&px, kt_row_of(w, n, n->in[0], i));                                                 \
            float *y = kt_at(&py, i);                                                                                  \
            __VA_ARGS__;                                                                                               \
        }                                                                                                              \
    } while (0)

static void embed(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const kopi_embed_params *p = n->op->params;
    const struct kt_place py = kt_place_of(w, n->out);
    uint32_t k = width(w, n->out);
    for (uint32_t i = r.begin; i < r.end; i++) {
        float *y = kt_at(&py, i);
        uint32_t t = kt_token(w, n, i), token = w->run->tokens ? (uint32_t)w->run->tokens[t] : 0;
        if (!w->run->tokens)
            memcpy(y, w->run->embd + (uint64_t)t * k, k * sizeof *y);
        else if (n->weight)
            n->weight->kernel->to_f32(n->weight->groups + token / KT_ROWS * n->weight->group_bytes, token % KT_ROWS, k,
                                      y);
        else {
            void *group = w->scratch; /* nothing else uses it in a step of rows */
            n->kernel->repack((const char *)n->data + token * n->data_stride, 0, 1, k, group);
            n->kernel->to_f32(group, 0, k, y);
        }
        if (p->scale != 1.0f) kernels(w)->scale(y, y, k, p->scale);
    }
}

uint64_t kt_rows_scratch(const struct kt_graph *g)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const struct kt_node *n = &g->nodes[i];
        uint64_t need =
            n->kind == KOPI_OP_EMBED && !n->weight ? n->kernel->group_bytes(g->values[n->out].n) / sizeof(float) : 0;
        if (need > most) most = need;
    }
    return most;
}

static void norm(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    uint32_t len = width(w, n->out), d = head_dim(w, n);
    EACH_ROW(
        for (uint32_t h = 0; h < len; h += d) kernels(w)->norm(x + h, y + h, d, n->op->params, n->weight_f32, n->bias));
}

static void quantize(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const struct kt_place px = kt_place_of(w, n->in[0]), py = kt_place_of(w, n->out);
    const struct kt_act act = kt_act_of(w, n->out, py);
    n->quantize(kt_at(&px, r.begin), px.ld, r.begin - py.first, r.end - r.begin, &act);
}

static void rope(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    uint32_t d = head_dim(w, n), n_heads = width(w, n->out) / d;
    EACH_ROW({
        uint64_t pos = (uint64_t)w->run->pos[kt_token(w, n, i)];
        const char *row = (const char *)n->data + pos * (uint64_t)n->data_stride;
        kernels(w)->rope(x, y, d, n_heads, n->op->params, (const float *)(const void *)row);
    });
}

static void kv_write(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const struct kt_place pk = kt_place_of(w, n->in[0]), pv = kt_place_of(w, n->in[1]);
    for (uint32_t i = r.begin; i < r.end; i++) {
        const kopi_seq_run *seq = kopi_seq_at(w->run, (uint32_t)w->run->seq[i]);
        uint32_t pos = (uint32_t)w->run->pos[i], lane = pos % KT_LANES;
        for (uint32_t h = 0; h < n->k.n_heads; h++) {
            char *k = kt_kv_lanes(&n->k, seq, h, pos), *v = kt_kv_lanes(&n->v, seq, h, pos);
            if (!k || !v) {
                const kopi_host *host = w->plan->kt->host;
                w->status = host->fail(host->ctx, KOPI_E_INTERNAL, "a new position has no KV page");
                return;
            }
            kernels(w)->store_k(kt_at(&pk, i) + h * n->k.head_dim, k, lane, n->k.head_dim, n->k.f16);
            uint64_t row = (uint64_t)lane * n->v.head_dim * (n->v.f16 ? 2 : 4);
            kernels(w)->store_v(kt_at(&pv, i) + h * n->v.head_dim, v + row, n->v.head_dim, n->v.f16);
        }
    }
}

static void glu(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const kopi_glu_params *p = n->op->params;
    struct kt_place up = {0};
    if (n->in[1] >= 0) up = kt_place_of(w, n->in[1]);
    EACH_ROW(const float *u = n->in[1] < 0 ? NULL : kt_at(&up, kt_row_of(w, n, n->in[1], i));
             kernels(w)->glu(x, u, y, width(w, n->out), p->act));
}

static void add(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const struct kt_place pb = kt_place_of(w, n->in[1]);
    EACH_ROW(kernels(w)->add(x, kt_at(&pb, kt_row_of(w, n, n->in[1], i)), y, width(w, n->out)));
}

static void scale(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const kopi_scale_params *p = n->op->params;
    EACH_ROW(kernels(w)->scale(x, y, width(w, n->out), p->value));
}

static void softcap(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    const kopi_scale_params *p = n->op->params;
    EACH_ROW(kernels(w)->softcap(x, y, width(w, n->out), p->value));
}

static void gather(struct kt_worker *w, const struct kt_node *n, struct kt_range r)
{
    EACH_ROW(memcpy(y, x, width(w, n->out) * sizeof *y));
}

static rows_fn *const table[KT_NODE_KINDS] = {
    [KOPI_OP_EMBED] = embed,       [KOPI_OP_NORM] = norm, [KOPI_OP_QUANTIZE] = quantize, [KOPI_OP_ROPE] = rope,
    [KOPI_OP_KV_WRITE] = kv_write, [KOPI_OP_GLU] = glu,   [KOPI_OP_ADD] = add,           [KOPI_OP_SCALE] = scale,
    [KOPI_OP_SOFTCAP] = softcap,   [KOPI_OP_GATHER] = gather, [KT_NODE_PACK] = quantize,
};

void kt_step_rows(struct kt_worker *w, const struct kt_step *s, struct kt_range r)
{
    const struct kt_graph *g = &w->plan->graph;
    uint32_t unit = kt_act_unit();
    for (struct kt_range part = r; part.begin < r.end; part.begin = part.end) {
        part.end = r.end - part.begin < unit ? r.end : part.begin + unit;
        for (uint32_t i = s->first; i < s->first + s->n && w->status == KOPI_OK; i++) {
            const struct kt_node *n = &g->nodes[w->sched[w->section]->order[i]];
            table[n->kind](w, n, part);
        }
    }
}
