#include "graph.h"

#include <stdio.h>
#include <string.h>

/* ---- values ------------------------------------------------------------------------------------------------------ */

struct maker {
    struct kt *kt;
    struct kt_graph *g;
    int32_t *current; /* [n_tensors] value that the tensor holds now, -1: none yet */
    int32_t *packed;  /* [n_values] PACK's value of a value, -1: none */
    bool *elsewhere;  /* [n_tensors] used by operations outside this plan */
    uint32_t first, end;
};

static bool is_act_dtype(uint32_t dtype) { return dtype == KOPI_DTYPE_A8_32 || dtype == KOPI_DTYPE_A8_256; }

static int32_t new_value(struct maker *m, int32_t tensor, int32_t node)
{
    struct kt_graph *g = m->g;
    const kopi_tensor *t = kopi_tensor_at(g->prog, tensor);
    uint32_t last = t->n_dims - 1;
    struct kt_value v = {
        .tensor = tensor, .node = node, .n = 1, .act_dtype = t->dtype, .act = is_act_dtype(t->dtype), .output = -1};
    for (uint32_t i = 0; i < last; i++) v.n *= (uint32_t)t->dim[i].n;
    v.wanted = t->dim[last].sym == KOPI_DIM_OUT;
    v.outside = m->elsewhere[tensor] || node < 0;
    if (v.outside) g->outside = true;
    if (t->kind == KOPI_KIND_OUTPUT) v.output = (int32_t)t->group;
    m->packed[g->n_values] = -1;
    g->values[g->n_values] = v;
    return (int32_t)g->n_values++;
}

static int32_t read_value(struct maker *m, const kopi_op *op, uint32_t i)
{
    int32_t t = i < op->n_in ? op->in[i] : -1;
    if (t < 0) return -1;
    if (m->current[t] < 0) m->current[t] = new_value(m, t, -1);
    return m->current[t];
}

static int32_t write_value(struct maker *m, int32_t tensor, int32_t node)
{
    return m->current[tensor] = new_value(m, tensor, node);
}

static const float *vector_of(const struct maker *m, const kopi_op *op, uint32_t i)
{
    return i < op->n_in && op->in[i] >= 0 ? kopi_tensor_at(m->g->prog, op->in[i])->data : NULL;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static struct kt_node *new_node(struct maker *m, uint32_t kind, const kopi_op *op)
{
    struct kt_node *n = &m->g->nodes[m->g->n_nodes++];
    *n = (struct kt_node){.kind = kind, .op = op, .in = {-1, -1}, .out = -1, .kv_tensor = -1};
    return n;
}

/* The value of x in the layout of kt_act with F32 elements; the node that makes it comes before the one that asks. */
static int32_t pack(struct maker *m, const kopi_op *op, int32_t x)
{
    if (m->packed[x] >= 0) return m->packed[x];
    struct kt_node *n = new_node(m, KT_NODE_PACK, op);
    n->in[0] = x;
    n->quantize = kt_quantize_find(KOPI_DTYPE_F32, m->kt->level);
    n->out = new_value(m, m->g->values[x].tensor, (int32_t)m->g->n_nodes - 1);
    struct kt_value *v = &m->g->values[n->out];
    v->act = true;
    v->act_dtype = KOPI_DTYPE_F32;
    v->outside = false;
    v->output = -1;
    return m->packed[x] = n->out;
}

static kopi_status add_linear(struct maker *m, const kopi_op *op)
{
    int32_t x = read_value(m, op, 0);
    if (!m->g->values[x].act) x = pack(m, op, x);
    struct kt_node *n = new_node(m, KOPI_OP_LINEAR, op);
    n->in[0] = x;
    n->weight = kopi_tensor_at(m->g->prog, op->in[1])->handle;
    n->bias = vector_of(m, op, 2);
    n->out = write_value(m, op->out[0], (int32_t)m->g->n_nodes - 1);
    return n->weight ? KOPI_OK
                     : m->kt->host->fail(m->kt->host->ctx, KOPI_E_INTERNAL, "a weight of LINEAR was not imported");
}

static void add_embed(struct maker *m, const kopi_op *op)
{
    struct kt_node *n = new_node(m, KOPI_OP_EMBED, op);
    const kopi_tensor *w = kopi_tensor_at(m->g->prog, op->in[0]);
    n->weight = w->handle;
    n->data = w->data;
    n->data_stride = w->nb[1];
    n->kernel = kt_linear_find(w->dtype, m->kt->level);
    n->out = write_value(m, op->out[0], (int32_t)m->g->n_nodes - 1);
}

static void add_kv(struct maker *m, const kopi_op *op)
{
    const kopi_program *p = m->g->prog;
    struct kt_node *n = new_node(m, op->op, op);
    n->in[0] = read_value(m, op, 0);
    if (op->op == KOPI_OP_KV_WRITE) {
        const kopi_kv_write_params *w = op->params;
        n->in[1] = read_value(m, op, 1);
        n->kv_tensor = op->out[0];
        kt_kv_part(&n->k, p, op->out[0], w->n_kv_heads, w->head_dim_k);
        kt_kv_part(&n->v, p, op->out[1], w->n_kv_heads, w->head_dim_v);
    } else {
        const kopi_attn_params *a = op->params;
        n->kv_tensor = op->in[1];
        kt_kv_part(&n->k, p, op->in[1], a->n_kv_heads, a->head_dim_k);
        kt_kv_part(&n->v, p, op->in[2], a->n_kv_heads, a->head_dim_v);
        n->out = write_value(m, op->out[0], (int32_t)m->g->n_nodes - 1);
    }
}

static void add_rows(struct maker *m, const kopi_op *op)
{
    struct kt_node *n = new_node(m, op->op, op);
    n->in[0] = read_value(m, op, 0);
    if (op->op == KOPI_OP_GLU || op->op == KOPI_OP_ADD) n->in[1] = read_value(m, op, 1);
    if (op->op == KOPI_OP_NORM) {
        n->weight_f32 = vector_of(m, op, 1);
        n->bias = vector_of(m, op, 2);
    }
    if (op->op == KOPI_OP_ROPE) {
        const kopi_tensor *t = kopi_tensor_at(m->g->prog, op->in[1]);
        n->data = t->data;
        n->data_stride = t->nb[2];
    }
    if (op->op == KOPI_OP_QUANTIZE)
        n->quantize = kt_quantize_find(kopi_tensor_at(m->g->prog, op->out[0])->dtype, m->kt->level);
    n->out = write_value(m, op->out[0], (int32_t)m->g->n_nodes - 1);
}

static kopi_status add_op(struct maker *m, const kopi_op *op)
{
    switch (op->op) {
    case KOPI_OP_LINEAR: return add_linear(m, op);
    case KOPI_OP_EMBED: add_embed(m, op); return KOPI_OK;
    case KOPI_OP_KV_WRITE:
    case KOPI_OP_ATTN: add_kv(m, op); return KOPI_OK;
    default: add_rows(m, op); return KOPI_OK;
    }
}

/* ---- wanted rows ------------------------------------------------------------------------------------------------- */

/* Whether node n may work on wanted rows, given what is decided for the nodes after it. */
static bool feeds_wanted_only(const struct kt_graph *g, uint32_t n, const bool *stays)
{
    const struct kt_node *node = &g->nodes[n];
    if (stays[n] || node->out < 0 || g->values[node->out].outside || g->values[node->out].output >= 0) return false;
    bool used = false;
    for (uint32_t i = n + 1; i < g->n_nodes; i++) {
        const struct kt_node *reader = &g->nodes[i];
        if (reader->in[0] != node->out && reader->in[1] != node->out) continue;
        if (!reader->wanted) return false;
        used = true;
    }
    return used;
}

static bool has_wanted_shape(const struct kt_graph *g, const struct kt_node *n)
{
    const kopi_tensor *t = n->out >= 0 ? kopi_tensor_at(g->prog, g->values[n->out].tensor) : NULL;
    return t && t->dim[t->n_dims - 1].sym == KOPI_DIM_OUT;
}

/* The layout of packed activations is made for all rows at once: neither writing nor reading it can pick rows. */
static bool picks_no_rows(const struct kt_node *n)
{
    return n->kind == KOPI_OP_LINEAR || n->kind == KOPI_OP_QUANTIZE || n->kind == KT_NODE_PACK;
}

/* Decides which nodes work on wanted rows, from the last to the first. Those that can't pick rows stay with the tokens
 * when their input does; that may hold back others, hence the repetition. */
static void move_gather_up(struct kt_graph *g, bool *stays)
{
    for (bool again = true; again;) {
        again = false;
        for (uint32_t n = g->n_nodes; n-- > 0;) {
            struct kt_node *node = &g->nodes[n];
            node->wanted = has_wanted_shape(g, node) || feeds_wanted_only(g, n, stays);
            if (node->out >= 0) g->values[node->out].wanted = node->wanted;
        }
        for (uint32_t n = 0; n < g->n_nodes && !again; n++) {
            const struct kt_node *node = &g->nodes[n];
            if (picks_no_rows(node) && node->wanted && !g->values[node->in[0]].wanted) stays[n] = again = true;
        }
    }
}

/* A GATHER whose input is already on wanted rows only renames it. */
static void drop_gathers(struct kt_graph *g)
{
    for (uint32_t n = 0; n < g->n_nodes; n++) {
        struct kt_node *node = &g->nodes[n];
        const struct kt_value *out = node->out >= 0 ? &g->values[node->out] : NULL;
        if (node->kind != KOPI_OP_GATHER || !g->values[node->in[0]].wanted || out->outside || out->output >= 0)
            continue;
        node->gone = true;
        for (uint32_t i = n + 1; i < g->n_nodes; i++)
            for (int k = 0; k < 2; k++)
                if (g->nodes[i].in[k] == node->out) g->nodes[i].in[k] = node->in[0];
    }
}

/* ---- making ------------------------------------------------------------------------------------------------------ */

static void find_elsewhere(struct maker *m)
{
    const kopi_program *p = m->g->prog;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const kopi_op *op = kopi_op_at(p, i);
        if (i >= m->first && i < m->end) continue;
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k] >= 0) m->elsewhere[op->in[k]] = true;
        for (uint32_t k = 0; k < op->n_out; k++) m->elsewhere[op->out[k]] = true;
    }
}

/* What lives outside has an address, and the layout that others expect. */
static kopi_status check_outside(struct kt *kt, const struct kt_graph *g)
{
    for (uint32_t i = 0; i < g->n_values; i++) {
        const struct kt_value *v = &g->values[i];
        const kopi_tensor *t = kopi_tensor_at(g->prog, v->tensor);
        char text[160];
        if (!v->outside || v->output >= 0 || (t->data && !v->act)) continue;
        snprintf(text, sizeof text,
                 "tensor %.60s goes to or comes from another backend; use backend cpu for this model", t->name);
        return kt->host->fail(kt->host->ctx, KOPI_E_UNSUPPORTED, text);
    }
    return KOPI_OK;
}

static kopi_status make(struct maker *m)
{
    struct kt_graph *g = m->g;
    bool *stays = kt_calloc(m->kt->host, 2 * (m->end - m->first) + 1, sizeof *stays);
    kopi_status s = stays ? KOPI_OK : kt_nomem(m->kt->host, "plan");
    for (uint32_t i = m->first; i < m->end && s == KOPI_OK; i++) s = add_op(m, kopi_op_at(g->prog, i));
    if (s == KOPI_OK) s = check_outside(m->kt, g);
    if (s == KOPI_OK) {
        move_gather_up(g, stays);
        drop_gathers(g);
    }
    kt_free(m->kt->host, stays);
    return s;
}

kopi_status kt_graph_make(struct kt *kt, const kopi_program *p, uint32_t first_op, uint32_t n_ops, struct kt_graph *g)
{
    const kopi_host *host = kt->host;
    /* At most a PACK beside each operation, and two values read from outside. */
    uint64_t cap = 4 * (uint64_t)n_ops + 1;
    *g = (struct kt_graph){.prog = p};
    struct maker m = {.kt = kt, .g = g, .first = first_op, .end = first_op + n_ops};
    g->nodes = kt_calloc(host, cap, sizeof *g->nodes);
    g->values = kt_calloc(host, cap, sizeof *g->values);
    m.current = kt_calloc(host, p->n_tensors, sizeof *m.current);
    m.packed = kt_calloc(host, cap, sizeof *m.packed);
    m.elsewhere = kt_calloc(host, p->n_tensors, sizeof *m.elsewhere);
    kopi_status s = g->nodes && g->values && m.current && m.packed && m.elsewhere ? KOPI_OK : kt_nomem(host, "plan");
    if (s == KOPI_OK) {
        for (uint32_t i = 0; i < p->n_tensors; i++) m.current[i] = -1;
        find_elsewhere(&m);
        s = make(&m);
    }
    kt_free(host, m.current);
    kt_free(host, m.packed);
    kt_free(host, m.elsewhere);
    return s;
}

void kt_graph_free(struct kt *kt, struct kt_graph *g)
{
    kt_free(kt->host, g->nodes);
    kt_free(kt->host, g->values);
}
