#include "schedule.h"

#include <string.h>

/* What is known of a value while its section is scheduled. */
struct state {
    uint32_t split, phase, step;         /* that it was made with; phases are what lies between barriers */
    uint32_t born;                       /* first phase that writes to it: ATTN may do without MERGE */
    uint32_t last_step, last_phase;      /* that read it; UINT32_MAX: another section does */
    bool made, fused;                    /* by a node before; read by a GLU inside its unit only */
};

struct scheduler {
    struct kt *kt;
    const struct kt_graph *g;
    struct kt_sched *s;
    struct state *values;                /* [n_values] */
    uint32_t *kv_phase;                  /* [n_tensors] 1 + phase that wrote these pages */
    uint32_t section, phase;
    enum kt_policy policy;
    struct kt_rows rows;
};

/* ---- splits and barriers ----------------------------------------------------------------------------------------- */

static uint32_t kind_of(const struct kt_node *n)
{
    return n->kind == KOPI_OP_LINEAR ? KT_STEP_LINEAR : n->kind == KOPI_OP_ATTN ? KT_STEP_ATTN : KT_STEP_ROWS;
}

/* One row per line; columns: the step kinds. */
static uint32_t split_of(const struct scheduler *b, const struct kt_node *n)
{
    static const uint8_t table[KT_N_POLICIES][3] = {
        [KT_FEW] = {KT_SPLIT_ALL, KT_SPLIT_COLS, KT_SPLIT_ITEMS},
        [KT_MID] = {KT_SPLIT_ROWS, KT_SPLIT_COLS, KT_SPLIT_ROWS},
        [KT_MANY] = {KT_SPLIT_ROWS, KT_SPLIT_ROWS, KT_SPLIT_ROWS},
    };
    uint32_t split = table[b->policy][kind_of(n)];
    const struct kt_value *out = n->out >= 0 ? &b->g->values[n->out] : NULL;
    /* What is written to one place for all must not be written by all. */
    return split == KT_SPLIT_ALL && (!out || out->output >= 0 || out->outside) ? KT_SPLIT_ROWS : split;
}

/* True if node n, split that way, reads something that other workers make in this phase. */
static bool must_meet(const struct scheduler *b, const struct kt_node *n, uint32_t split)
{
    for (int i = 0; i < 2; i++) {
        if (n->in[i] < 0) continue;
        const struct state *v = &b->values[n->in[i]];
        if (!v->made || v->phase != b->phase || v->split == KT_SPLIT_ALL) continue;
        if (v->split == KT_SPLIT_ROWS && split == KT_SPLIT_ROWS) continue;
        return true;
    }
    return n->kind == KOPI_OP_ATTN && b->kv_phase[n->kv_tensor] == b->phase + 1;
}

static struct kt_step *new_step(struct scheduler *b, uint32_t kind, uint32_t split, bool barrier)
{
    struct kt_step *s = &b->s->steps[b->s->n_steps++];
    if (b->g->outside) barrier = true; /* the places outside are planned for levels, not for phases */
    *s = (struct kt_step){.kind = (uint8_t)kind, .split = (uint8_t)split, .barrier = barrier,
                          .first = kind == KT_STEP_LINEAR ? b->s->n_units : b->s->n_order};
    b->phase += barrier;
    return s;
}

static void mark(struct scheduler *b, const struct kt_node *n, uint32_t split)
{
    uint32_t step = b->s->n_steps - 1;
    for (int i = 0; i < 2; i++)
        if (n->in[i] >= 0) {
            b->values[n->in[i]].last_step = step;
            b->values[n->in[i]].last_phase = b->phase;
        }
    if (n->kind == KOPI_OP_KV_WRITE) b->kv_phase[n->kv_tensor] = b->phase + 1;
    if (n->out < 0) return;
    struct state *out = &b->values[n->out];
    *out = (struct state){split, b->phase, step, out->made ? out->born : b->phase, step, b->phase, true, false};
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static struct kt_step *last_step(struct scheduler *b) { return b->s->n_steps ? &b->s->steps[b->s->n_steps - 1] : NULL; }

static bool read_once(const struct kt_graph *g, int32_t value)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i].gone) n += (g->nodes[i].in[0] == value) + (g->nodes[i].in[1] == value);
    return n == 1 && !g->values[value].outside && g->values[value].output < 0;
}

/* The unit of the last step that makes this value, as its only node; NULL otherwise. */
static struct kt_unit *unit_of(struct scheduler *b, int32_t value)
{
    struct kt_step *s = last_step(b);
    if (value < 0 || !s || s->kind != KT_STEP_LINEAR || !read_once(b->g, value)) return NULL;
    for (uint32_t u = s->first; u < s->first + s->n; u++) {
        struct kt_unit *unit = &b->s->units[u];
        if (unit->linear[0] == b->g->values[value].node && unit->linear[1] < 0 && unit->glu < 0) return unit;
    }
    return NULL;
}

/* GLU right behind the LINEARs that feed it becomes part of their unit. */
static bool fuse_glu(struct scheduler *b, uint32_t n)
{
    const struct kt_node *node = &b->g->nodes[n];
    struct kt_unit *gate = unit_of(b, node->in[0]), *up = unit_of(b, node->in[1]), *end = b->s->units + b->s->n_units;
    if (node->kind != KOPI_OP_GLU || !gate || b->g->outside || (node->in[1] >= 0 && (!up || up == gate))) return false;
    if (up && b->g->nodes[up->linear[0]].weight->n != b->g->nodes[gate->linear[0]].weight->n) return false;
    gate->glu = (int32_t)n;
    mark(b, node, last_step(b)->split);
    b->values[node->in[0]].fused = true;
    if (!up) return true;
    gate->linear[1] = up->linear[0];
    b->values[node->in[1]].fused = true;
    memmove(up, up + 1, (size_t)(end - (up + 1)) * sizeof *up);
    b->s->n_units--;
    last_step(b)->n--;
    return true;
}

static void add_linear(struct scheduler *b, uint32_t n, uint32_t split)
{
    const struct kt_node *node = &b->g->nodes[n];
    struct kt_step *s = last_step(b);
    bool meet = must_meet(b, node, split), chained = false;
    if (s && s->kind == KT_STEP_LINEAR && s->split == split) /* units of a step are in any order */
        chained = b->values[node->in[0]].made && b->values[node->in[0]].step == b->s->n_steps - 1;
    if (!s || s->kind != KT_STEP_LINEAR || s->split != split || meet || chained || b->g->outside)
        s = new_step(b, KT_STEP_LINEAR, split, meet);
    b->s->units[b->s->n_units++] = (struct kt_unit){{(int32_t)n, -1}, -1};
    s->n++;
    mark(b, node, split);
}

static void add_other(struct scheduler *b, uint32_t n, uint32_t split)
{
    const struct kt_node *node = &b->g->nodes[n];
    uint32_t kind = kind_of(node);
    struct kt_step *s = last_step(b);
    bool meet = must_meet(b, node, split);
    if (!s || kind != KT_STEP_ROWS || s->kind != kind || s->split != split || meet || b->g->outside)
        s = new_step(b, kind, split, meet);
    b->s->order[b->s->n_order++] = n;
    s->n++;
    mark(b, node, split);
    if (split != KT_SPLIT_ITEMS) return;
    new_step(b, KT_STEP_MERGE, split, true)->first = b->s->n_order - 1;
    last_step(b)->n = 1;
    mark(b, node, split);
}

static void make_steps(struct scheduler *b)
{
    for (uint32_t n = 0; n < b->g->n_nodes; n++) {
        const struct kt_node *node = &b->g->nodes[n];
        if (node->gone || node->wanted != (b->section == KT_WANTED)) continue;
        if (fuse_glu(b, n)) continue;
        (node->kind == KOPI_OP_LINEAR ? add_linear : add_other)(b, n, split_of(b, node));
    }
    for (uint32_t n = 0; n < b->g->n_nodes; n++) /* what the other section reads stays */
        for (int i = 0; i < 2; i++) {
            int32_t v = b->g->nodes[n].in[i];
            if (v >= 0 && b->g->nodes[n].wanted != b->g->values[v].wanted)
                b->values[v].last_step = b->values[v].last_phase = UINT32_MAX;
        }
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

/* A piece of memory and the times (steps or phases) at which it holds something. */
struct piece {
    uint64_t off, size;
    uint32_t first, last;
    int32_t value; /* that it was made for */
};

struct memory {
    struct piece *pieces; /* by ascending offset */
    uint32_t n;
    uint64_t end;
};

/* Lowest offset that no piece alive at the same time covers. */
static uint64_t place(struct memory *m, struct piece p)
{
    uint32_t at = m->n;
    p.off = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct piece *o = &m->pieces[i];
        if (o->first > p.last || o->last < p.first) continue;
        if (o->off >= p.off + p.size) break;
        if (o->off + o->size > p.off) p.off = o->off + o->size;
    }
    while (at > 0 && m->pieces[at - 1].off > p.off) at--;
    memmove(m->pieces + at + 1, m->pieces + at, (m->n - at) * sizeof p);
    m->pieces[at] = p;
    m->n++;
    if (p.off + p.size > m->end) m->end = p.off + p.size;
    return p.off;
}

static uint32_t where(const struct scheduler *b, int32_t v)
{
    const struct state *s = &b->values[v];
    const struct kt_value *value = &b->g->values[v];
    if (value->output >= 0) return KT_OUTPUT;
    if (value->outside) return KT_OUTSIDE;
    if (!s->made || s->fused) return KT_NOWHERE;
    if (b->policy == KT_FEW) return s->split == KT_SPLIT_ALL ? KT_PRIVATE : KT_SHARED;
    return b->policy == KT_MANY && s->last_phase == s->phase ? KT_PRIVATE : KT_SHARED;
}

/* The result of a row operation takes the place of its input where nobody reads that later. */
static bool in_place(struct scheduler *b, struct memory *m, int32_t v)
{
    const struct kt_node *n = &b->g->nodes[b->g->values[v].node];
    const struct state *s = &b->values[v];
    if (kind_of(n) != KT_STEP_ROWS || n->in[0] < 0 || n->in[0] == n->in[1]) return false;
    const struct kt_value *from = &b->g->values[n->in[0]], *to = &b->g->values[v];
    const struct state *f = &b->values[n->in[0]];
    if (from->act || to->act || from->n != to->n || from->wanted != to->wanted || f->split != s->split) return false;
    if (f->last_step != s->step || b->s->loc[n->in[0]].where != b->s->loc[v].where) return false;
    /* Another node of the same step may still read it for the same rows: steps go through their nodes in order, so only
     * a later one matters. */
    for (uint32_t i = (uint32_t)b->g->values[v].node + 1; i < b->g->n_nodes; i++)
        if (b->g->nodes[i].in[0] == n->in[0] || b->g->nodes[i].in[1] == n->in[0]) return false;
    for (uint32_t i = 0; i < m->n; i++) {
        if (m->pieces[i].value != n->in[0]) continue;
        m->pieces[i].value = v;
        m->pieces[i].last = b->s->loc[v].where == KT_PRIVATE ? s->last_step : s->last_phase;
        b->s->loc[v].off = b->s->loc[n->in[0]].off;
        return true;
    }
    return false;
}

static kopi_status make_places(struct scheduler *b)
{
    const struct kt_graph *g = b->g;
    struct memory shared = {0}, private = {0};
    shared.pieces = kt_calloc(b->kt->host, g->n_values + 1, sizeof *shared.pieces);
    private.pieces = kt_calloc(b->kt->host, g->n_values + 1, sizeof *private.pieces);
    bool ok = shared.pieces && private.pieces;
    for (uint32_t v = 0; v < g->n_values && ok; v++) { /* in the order in which they are made */
        const struct kt_value *value = &g->values[v];
        const struct state *s = &b->values[v];
        struct kt_loc *loc = &b->s->loc[v];
        loc->where = value->wanted == (b->section == KT_WANTED) ? where(b, (int32_t)v) : KT_NOWHERE;
        loc->ld = (value->n + 15) / 16 * 16;
        if (loc->where != KT_SHARED && loc->where != KT_PRIVATE) continue;
        bool mine = loc->where == KT_PRIVATE;
        loc->cap = mine ? b->rows.private : b->rows.shared;
        struct memory *m = mine ? &private : &shared;
        if (in_place(b, m, (int32_t)v)) continue;
        uint64_t size =
            value->act ? kt_act_bytes(value->act_dtype, value->n, loc->cap) : loc->ld * loc->cap * sizeof(float);
        struct piece p = {.size = (size + 63) / 64 * 64, .value = (int32_t)v, .first = mine ? s->step : s->born,
                          .last = mine ? s->last_step : s->last_phase};
        loc->off = place(m, p);
    }
    b->s->shared_bytes = shared.end;
    b->s->private_bytes = private.end;
    kt_free(b->kt->host, shared.pieces);
    kt_free(b->kt->host, private.pieces);
    return ok ? KOPI_OK : kt_nomem(b->kt->host, "plan");
}

kopi_status kt_schedule(struct kt *kt, const struct kt_graph *g, uint32_t section, enum kt_policy policy,
                        struct kt_rows rows, struct kt_sched *out)
{
    const kopi_host *host = kt->host;
    struct scheduler b = {.kt = kt, .g = g, .s = out, .section = section, .policy = policy, .rows = rows};
    *out = (struct kt_sched){0};
    out->steps = kt_calloc(host, 2 * (uint64_t)g->n_nodes + 1, sizeof *out->steps);
    out->units = kt_calloc(host, g->n_nodes + 1, sizeof *out->units);
    out->order = kt_calloc(host, g->n_nodes + 1, sizeof *out->order);
    out->loc = kt_calloc(host, g->n_values + 1, sizeof *out->loc);
    b.values = kt_calloc(host, g->n_values + 1, sizeof *b.values);
    b.kv_phase = kt_calloc(host, g->prog->n_tensors + 1, sizeof *b.kv_phase);
    kopi_status s = KOPI_OK;
    if (out->steps && out->units && out->order && out->loc && b.values && b.kv_phase) {
        make_steps(&b);
        s = make_places(&b);
    } else
        s = kt_nomem(host, "plan");
    kt_free(host, b.values);
    kt_free(host, b.kv_phase);
    return s;
}

void kt_sched_free(struct kt *kt, struct kt_sched *s)
{
    kt_free(kt->host, s->steps);
    kt_free(kt->host, s->units);
    kt_free(kt->host, s->order);
    kt_free(kt->host, s->loc);
}
