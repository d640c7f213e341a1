#include "drive.h"

#include "device.h"
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- who runs an operation --------------------------------------------------------------------------------------- */

static uint32_t type_at(const struct cf_program *c, int32_t tensor)
{
    return tensor >= 0 ? c->t[tensor].dtype : UINT32_MAX;
}

/* The types that kernel rows are matched on (kopi/backend.h). */
static void types_of(const struct cf_program *c, const kopi_op *op, uint32_t *w, uint32_t *a)
{
    *w = *a = UINT32_MAX;
    if (op->op == KOPI_OP_EMBED) *w = type_at(c, op->in[0]);
    if (op->op == KOPI_OP_ATTN) *w = type_at(c, op->in[1]);
    if (op->op == KOPI_OP_KV_WRITE) *w = type_at(c, op->out[0]);
    if (op->op == KOPI_OP_QUANTIZE) *a = type_at(c, op->out[0]);
    if (op->op == KOPI_OP_LINEAR) *w = type_at(c, op->in[1]), *a = type_at(c, op->in[0]);
}

static bool listed(uint32_t type, const uint32_t *list, uint32_t n)
{
    for (uint32_t i = 0; list && i < n; i++)
        if (list[i] == type) return true;
    return !list;
}

static const kopi_kernel *kernel_of(const struct cf_instance *i, const struct cf_program *c, const kopi_op *op)
{
    uint32_t w, a;
    types_of(c, op, &w, &a);
    for (uint32_t k = 0; k < i->ops.n_kernels; k++) {
        const kopi_kernel *row = (const void *)((const char *)i->ops.kernels + (size_t)k * i->ops.kernel_stride);
        if (row->run && row->op == op->op && row->version == op->version && listed(w, row->w_types, row->n_w) &&
            listed(a, row->a_types, row->n_a))
            return row;
    }
    return NULL;
}

static const kopi_op *op_at(const struct cf_program *c, uint32_t i) { return kopi_op_at(&c->p, c->first_op + i); }

bool cf_takes(struct cf_instance *i, const struct cf_program *c)
{
    for (uint32_t k = 0; k < c->n_ops; k++) {
        const kopi_op *op = op_at(c, k);
        if (i->ops.supports && !i->ops.supports(i->be, &c->p, op)) return false;
        if (!i->ops.prepare && !kernel_of(i, c, op)) return false;
    }
    return true;
}

const char *cf_code(struct cf_instance *i, const struct cf_program *c)
{
    const char *name = i->ops.describe ? i->ops.describe(i->be, &c->p, op_at(c, c->n_ops - 1)) : NULL;
    return name ? name : "";
}

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) abort();
    return p;
}

/* ---- larger structs: as a later host has them -------------------------------------------------------------------- */

/* A copy of n structs with `grow` bytes of nonsense behind each; struct_size, where the struct begins with it, says so.
 */
static void *grown(const void *array, uint32_t n, size_t size, uint32_t grow, bool sized)
{
    char *copy = zeros(n, size + grow);
    for (uint32_t i = 0; i < n; i++) {
        char *to = copy + i * (size + grow);
        memcpy(to, (const char *)array + i * size, size);
        memset(to + size, CF_FILL, grow);
        if (sized) memcpy(to, &(uint32_t){(uint32_t)size + grow}, sizeof(uint32_t));
    }
    return copy;
}

static void grow_program(struct cf_program *c)
{
    if (!c->grow) return;
    c->p.struct_size += c->grow;
    c->p.op_stride += c->grow;
    c->p.tensor_stride += c->grow;
    c->p.group_stride += c->grow;
    c->p.ops = grown(c->ops, c->p.n_ops, sizeof *c->ops, c->grow, false);
    c->p.tensors = grown(c->t, c->p.n_tensors, sizeof *c->t, c->grow, false);
    c->p.groups = grown(&c->group, c->p.n_groups, sizeof c->group, c->grow, true);
}

static void shrink_program(struct cf_program *c)
{
    if (!c->grow) return;
    free((void *)(uintptr_t)c->p.ops);
    free((void *)(uintptr_t)c->p.tensors);
    free((void *)(uintptr_t)c->p.groups);
    c->p.struct_size -= c->grow;
    c->p.op_stride -= c->grow;
    c->p.tensor_stride -= c->grow;
    c->p.group_stride -= c->grow;
    c->p.ops = c->ops;
    c->p.tensors = c->t;
    c->p.groups = &c->group;
}

/* ---- one run: tokens [first, first + n) -------------------------------------------------------------------------- */

struct step {
    uint32_t first, n, first_out, n_out;
    kopi_run run;
    kopi_seq_run seqs[CF_MAX_SEQ];
    const int32_t *pages[CF_MAX_SEQ][1];
    int32_t *seq, *rows;
    kopi_output output;
    void *grown[2];
};

static void step_seqs(struct step *s, struct cf_program *c)
{
    for (uint32_t t = s->first; t < s->first + s->n; t++) {
        bool new = t == s->first || c->seq[t] != c->seq[t - 1];
        if (new) {
            uint32_t k = s->run.n_seq++;
            s->pages[k][0] = c->page_ids[c->seq[t]];
            s->seqs[k] = (kopi_seq_run){.struct_size = sizeof *s->seqs,
                                        .id = (uint32_t)c->seq[t],
                                        .first = t - s->first,
                                        .n_past = (uint32_t)c->pos[t],
                                        .pages = s->pages[k]};
        }
        s->seqs[s->run.n_seq - 1].n_new++;
        s->seq[t - s->first] = (int32_t)s->run.n_seq - 1;
    }
}

static void step_init(struct step *s, struct cf_program *c, const struct cf_device *d, uint32_t first, uint32_t n)
{
    memset(s, 0, sizeof *s);
    s->first = first;
    s->n = n;
    s->seq = zeros(n, sizeof *s->seq);
    s->rows = zeros(n, sizeof *s->rows);
    for (uint32_t t = 0; t < first; t++) s->first_out += c->wanted[t];
    for (uint32_t t = first; t < first + n; t++)
        if (c->wanted[t]) s->rows[s->n_out++] = (int32_t)(t - first);
    step_seqs(s, c);
    s->output = (kopi_output){.struct_size = sizeof s->output,
                              .kind = KOPI_OUTPUT_LOGITS,
                              .dtype = KOPI_DTYPE_F32,
                              .n_rows = s->n_out,
                              .rows = s->rows};
    for (uint32_t i = 0; i < c->p.n_tensors; i++)
        if (c->t[i].kind == KOPI_KIND_OUTPUT) {
            s->output.host = d->apart ? NULL : c->buf[i].data;
            s->output.handle = d->rows;
            s->output.row_bytes = (int64_t)(c->buf[i].size / c->n_tok);
        }
    s->run.struct_size = sizeof s->run;
    s->run.n_tok = n;
    s->run.n_out = 1;
    s->run.seq_stride = sizeof *s->seqs;
    s->run.output_stride = sizeof s->output;
    s->run.tokens = c->embd ? NULL : c->tokens + first;
    s->run.embd = c->embd ? c->embd + (uint64_t)first * c->n_embd : NULL;
    s->run.pos = c->pos + first;
    s->run.seq = s->seq;
    s->run.seqs = s->seqs;
    s->run.outputs = &s->output;
    if (!c->grow) return;
    s->run.struct_size += c->grow;
    s->run.seq_stride += c->grow;
    s->run.output_stride += c->grow;
    s->run.seqs = s->grown[0] = grown(s->seqs, s->run.n_seq, sizeof *s->seqs, c->grow, true);
    s->run.outputs = s->grown[1] = grown(&s->output, 1, sizeof s->output, c->grow, true);
}

static void step_free(struct step *s)
{
    free(s->grown[0]);
    free(s->grown[1]);
    free(s->seq);
    free(s->rows);
}

/* First row and number of rows of tensor i in this step. */
static uint32_t rows_of(const struct step *s, const kopi_tensor *t, uint32_t *first)
{
    bool out = t->dim[t->n_dims - 1].sym == KOPI_DIM_OUT;
    *first = out ? s->first_out : s->first;
    return out ? s->n_out : s->n;
}

static void load(const struct step *s, struct cf_program *c)
{
    uint32_t first;
    for (uint32_t i = 0; i < c->p.n_tensors; i++) {
        if (c->t[i].kind != KOPI_KIND_ACT && c->t[i].kind != KOPI_KIND_OUTPUT) continue;
        cf_buf_fill(&c->buf[i]);
        uint32_t n = rows_of(s, &c->t[i], &first);
        const struct cf_image *m = &c->in[i];
        if (m->rows) memcpy(c->buf[i].data, m->rows + first * m->row_bytes, n * m->row_bytes);
    }
}

/* Collects the outputs, and looks whether anything else was touched; NULL: all well. */
static const char *store(const struct step *s, struct cf_program *c)
{
    uint32_t first;
    for (uint32_t i = 0; i < c->p.n_tensors; i++) {
        const kopi_tensor *t = &c->t[i];
        if (t->kind != KOPI_KIND_ACT && t->kind != KOPI_KIND_OUTPUT) {
            if (t->data && c->buf[i].map && !cf_buf_intact(&c->buf[i], c->buf[i].size)) /* a device has its weights */
                return "memory beside a weight was written";
            continue;
        }
        uint32_t n = rows_of(s, t, &first);
        const struct cf_image *in = &c->in[i], *out = &c->out[i];
        int64_t stride = t->kind == KOPI_KIND_OUTPUT ? s->output.row_bytes : t->nb[t->n_dims - 1];
        if (!cf_buf_intact(&c->buf[i], (size_t)(n * stride))) return "rows past the last token were written";
        if (in->rows && !out->rows && memcmp(c->buf[i].data, in->rows + first * in->row_bytes, n * in->row_bytes))
            return "an input was changed";
        for (uint32_t r = 0; out->rows && r < n; r++)
            memcpy(out->rows + (first + r) * out->row_bytes, c->buf[i].data + r * stride, out->row_bytes);
    }
    return NULL;
}

/* One operation by its kernel. */
struct call {
    struct cf_instance *i;
    const struct cf_program *c;
    const kopi_run *run;
    void **data;
    const kopi_kernel *row;
    const kopi_op *op;
    uint64_t scratch_size;
};

static kopi_status call_kernel(const struct call *k, uint32_t ith, uint32_t nth)
{
    struct cf_buf scratch = cf_buf_new(k->scratch_size, 64);
    kopi_kctx one = {.struct_size = sizeof one,
                     .ith = ith,
                     .nth = nth,
                     .reserved = k->c->grow,
                     .prog = &k->c->p,
                     .run = k->run,
                     .data = k->data,
                     .scratch = scratch.data,
                     .scratch_size = k->scratch_size};
    kopi_kctx *ctx = grown(&one, 1, sizeof one, k->c->grow, true);
    kopi_status s = k->row->run(k->i->be, ctx, k->op);
    free(ctx);
    cf_buf_free(&scratch);
    return s;
}

static kopi_status work(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    const struct call *k = arg;
    k->i->host.h.barrier(team, KOPI_OK); /* all at once */
    return call_kernel(k, ith, nth);
}

static kopi_status run_kernels(struct cf_instance *i, struct cf_program *c, const kopi_run *run, uint32_t nth)
{
    void *data[CF_MAX_TENSORS];
    for (uint32_t k = 0; k < c->p.n_tensors; k++)
        data[k] = c->t[k].kind == KOPI_KIND_OUTPUT ? run->outputs[0].host : c->t[k].data;
    for (uint32_t k = 0; k < c->n_ops; k++) {
        struct call call = {.i = i, .c = c, .run = run, .data = data, .op = op_at(c, k)};
        call.row = kernel_of(i, c, call.op);
        call.scratch_size = call.row->scratch ? call.row->scratch(i->be, &c->p, call.op, nth) : 0;
        kopi_status s = c->threads ? i->host.h.team(i->host.h.ctx, work, &call) : KOPI_OK;
        for (uint32_t w = c->threads ? 0 : nth; w-- > 0 && s == KOPI_OK;) /* last first: the order must not matter */
            s = call_kernel(&call, w, nth);
        if (s != KOPI_OK) return s;
    }
    return KOPI_OK;
}

/* ---- weights and plans ------------------------------------------------------------------------------------------- */

static uint32_t roles_of(const struct cf_program *c, int32_t weight)
{
    uint32_t roles = 0;
    for (uint32_t k = 0; k < c->n_ops; k++)
        for (uint32_t n = 0; n < op_at(c, k)->n_in; n++)
            if (op_at(c, k)->in[n] == weight)
                roles |= c->t[weight].n_dims == 1           ? KOPI_ROLE_VECTOR
                         : op_at(c, k)->op == KOPI_OP_EMBED ? KOPI_ROLE_EMBED
                                                            : KOPI_ROLE_LINEAR;
    return roles;
}

static kopi_status import(struct cf_instance *i, struct cf_program *c)
{
    if (!i->ops.weight_import) return KOPI_OK;
    for (uint32_t k = 0; k < c->p.n_tensors; k++) {
        kopi_tensor *t = &c->t[k];
        uint32_t roles = t->kind == KOPI_KIND_WEIGHT ? roles_of(c, (int32_t)k) : 0;
        if (!roles) continue;
        kopi_weight w = {.struct_size = sizeof w,
                         .dtype = t->dtype,
                         .roles = roles,
                         .n_dims = t->n_dims,
                         .name = t->name,
                         .data = t->data,
                         .size = c->buf[k].size};
        for (int d = 0; d < 4; d++) w.ne[d] = t->dim[d].n, w.nb[d] = t->nb[d];
        kopi_weight_out out = {.struct_size = sizeof out};
        kopi_weight *given = grown(&w, 1, sizeof w, c->grow, true);
        kopi_status s = i->ops.weight_import(i->be, given, &out);
        free(given);
        if (s != KOPI_OK) return s;
        t->handle = out.mode == KOPI_WEIGHT_REF ? NULL : out.handle;
    }
    return i->ops.weights_done ? i->ops.weights_done(i->be) : KOPI_OK;
}

static void export(struct cf_instance *i, struct cf_program *c)
{
    for (uint32_t k = 0; k < c->p.n_tensors; k++) {
        if (c->t[k].handle) i->ops.weight_free(i->be, c->t[k].handle);
        c->t[k].handle = NULL;
    }
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static kopi_status steps(struct cf_instance *i, struct cf_program *c, struct cf_device *d, void *plan, uint32_t nth,
                         enum cf_split split, const char **what)
{
    kopi_status status = KOPI_OK;
    c->run_ns = 0;
    for (uint32_t first = 0, n; first < c->n_tok && status == KOPI_OK && !*what; first += n) {
        struct step s;
        n = split == CF_WHOLE ? c->n_tok : split == CF_ONE_BY_ONE ? 1 : first % 3 + 1 + first / 2;
        if (n > c->n_tok - first) n = c->n_tok - first;
        step_init(&s, c, d, first, n);
        load(&s, c);
        status = cf_device_push(d, i, c);
        uint64_t begin = now_ns();
        if (status == KOPI_OK) status = plan ? i->ops.execute(i->be, plan, &s.run) : run_kernels(i, c, &s.run, nth);
        c->run_ns += now_ns() - begin;
        if (status == KOPI_OK) status = cf_device_pull(d, i, c, what);
        if (status == KOPI_OK && !*what) *what = store(&s, c);
        step_free(&s);
    }
    return status;
}

static bool own_layout(const struct cf_instance *i) { return i->ops.kv_export && i->ops.kv_import; }

/* A page in canonical form. Where the layout is the backend's own, what comes out must also go in again over nonsense.
 */
static const char *read_page(struct cf_instance *i, struct cf_program *c, struct cf_device *d, int32_t id, char *page)
{
    uint64_t n = c->group.page_bytes, at = (uint64_t)id * n;
    if (!own_layout(i)) {
        memcpy(page, c->pages.data + at, n);
        return NULL;
    }
    if (i->ops.kv_export(i->be, &c->p, 0, id, page) != KOPI_OK) return "kv_export failed";
    if (cf_device_scribble(d, i, c, at, n) != KOPI_OK) return "buf_write of a KV page failed";
    if (i->ops.kv_import(i->be, &c->p, 0, id, page) != KOPI_OK) return "kv_import failed";
    memset(page, CF_FILL, n);
    return i->ops.kv_export(i->be, &c->p, 0, id, page) == KOPI_OK ? NULL : "kv_export after kv_import failed";
}

/* The rows of all tokens from the canonical pages. NULL: all well. */
static const char *read_kv(struct cf_instance *i, struct cf_program *c, struct cf_device *d)
{
    const char *what = cf_device_pull_pages(d, i, c) == KOPI_OK ? NULL : "buf_read of the KV pages failed";
    char *page = zeros(1, c->group.page_bytes);
    for (uint32_t t = 0; t < c->n_tok && !what; t++) {
        uint32_t pos = (uint32_t)c->pos[t], len = c->group.page_len;
        int32_t id = c->page_ids[c->seq[t]][pos / len];
        what = read_page(i, c, d, id, page);
        for (int w = 0; w < 2; w++) {
            const struct cf_image *m = &c->kv_rows[w];
            memcpy(m->rows + t * m->row_bytes, page + c->t[c->kv[w]].off + pos % len * m->row_bytes, m->row_bytes);
        }
        for (uint64_t b = 0; b < c->t[c->kv[0]].off && !what && !own_layout(i); b++)
            if ((unsigned char)page[b] != CF_FILL) what = "the page of another layer was written";
    }
    free(page);
    if (!what && !cf_buf_intact(&c->pages, c->pages.size)) what = "memory beside the KV pages was written";
    return what;
}

static void protect_weights(struct cf_program *c, bool yes)
{
    for (uint32_t k = 0; k < c->p.n_tensors; k++)
        if (c->t[k].kind == KOPI_KIND_WEIGHT || c->t[k].kind == KOPI_KIND_CONST)
            cf_buf_protect(&c->buf[k], yes ? CF_READ : CF_READ_WRITE);
}

/* Rounding mode and denormals as C starts with them. */
static bool float_state_is_plain(void)
{
    volatile float tiny = 0x1p-140f, half = 0.5f;
    return fegetround() == FE_TONEAREST && tiny * half != 0;
}

kopi_status cf_drive(struct cf_instance *i, struct cf_program *c, uint32_t nth, enum cf_split split, char *text,
                     size_t n)
{
    const char *what = NULL;
    void *plan = NULL;
    struct cf_device d = {0};
    fenv_t before;
    fegetenv(&before);
    i->host.text[0] = 0;
    protect_weights(c, true);
    if (c->pages.map) cf_buf_fill(&c->pages);
    kopi_status s = import(i, c);
    if (s == KOPI_OK) s = cf_device_begin(&d, i, c);
    grow_program(c);
    if (s == KOPI_OK && i->ops.prepare) s = i->ops.prepare(i->be, &c->p, c->first_op, c->n_ops, &plan);
    if (s != KOPI_OK) plan = NULL; /* nothing is ours to free, whatever it left there */
    if (s == KOPI_OK) s = steps(i, c, &d, plan, nth, split, &what);
    if (s == KOPI_OK && !what && c->pages.map) what = read_kv(i, c, &d);
    if (plan) i->ops.plan_free(i->be, plan);
    shrink_program(c);
    cf_device_end(&d, i, c);
    export(i, c);
    protect_weights(c, false);
    if (!float_state_is_plain()) what = "the floating-point state was changed";
    fesetenv(&before);
    if (s == KOPI_OK && what) s = KOPI_E_INTERNAL;
    if (s != KOPI_OK)
        snprintf(text, n, "%s (status %d)", what ? what : i->host.text[0] ? i->host.text : "no text", (int)s);
    return s;
}
