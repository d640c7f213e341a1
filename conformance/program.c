#include "program.h"

#include "values.h"
#include <stdlib.h>
#include <string.h>

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) abort(); /* a test tool */
    return p;
}

/* ---- the tokens -------------------------------------------------------------------------------------------------- */

void cf_program_init(struct cf_program *c, const uint32_t *len, uint32_t n_seq)
{
    memset(c, 0, sizeof *c);
    c->n_seq = n_seq;
    for (uint32_t s = 0; s < n_seq; s++) c->n_tok += c->len[s] = len[s];
    c->n_out = c->n_tok;
    c->tokens = zeros(c->n_tok, sizeof *c->tokens);
    c->pos = zeros(c->n_tok, sizeof *c->pos);
    c->seq = zeros(c->n_tok, sizeof *c->seq);
    c->wanted = zeros(c->n_tok, sizeof *c->wanted);
    c->kv[0] = c->kv[1] = -1;
    uint32_t t = 0;
    for (uint32_t s = 0; s < n_seq; s++)
        for (uint32_t i = 0; i < len[s]; i++, t++) {
            c->pos[t] = (int32_t)i;
            c->seq[t] = (int32_t)s;
            c->wanted[t] = true;
        }
    c->first_op = 0;
    c->p = (kopi_program){.struct_size = sizeof c->p,
                          .opset = KOPI_OPSET,
                          .op_stride = sizeof(kopi_op),
                          .tensor_stride = sizeof(kopi_tensor),
                          .group_stride = sizeof(kopi_kv_group),
                          .ops = c->ops,
                          .tensors = c->t,
                          .groups = &c->group,
                          .max_tok = c->n_tok,
                          .max_out = c->n_tok,
                          .max_seq = n_seq,
                          .max_pos = c->n_tok};
}

void cf_program_free(struct cf_program *c)
{
    for (int i = 0; i < CF_MAX_TENSORS; i++) {
        cf_buf_free(&c->buf[i]);
        free(c->in[i].rows);
        free(c->out[i].rows);
    }
    cf_buf_free(&c->pages);
    for (int s = 0; s < CF_MAX_SEQ; s++) free(c->page_ids[s]);
    for (int w = 0; w < 2; w++) free(c->kv_rows[w].rows);
    free(c->tokens);
    free(c->pos);
    free(c->seq);
    free(c->wanted);
    free(c->embd);
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static void block_of(uint32_t dtype, uint32_t *len, uint32_t *bytes)
{
    const struct cf_weight_type *w = cf_weight_type(dtype);
    *len = w ? w->len : dtype == KOPI_DTYPE_A8_32 ? 32 : 256;
    *bytes = w ? w->bytes : dtype == KOPI_DTYPE_A8_32 ? sizeof(kopi_a8_32) : sizeof(kopi_a8_256);
}

uint64_t cf_row_bytes(uint32_t dtype, int64_t n)
{
    uint32_t len, bytes;
    block_of(dtype, &len, &bytes);
    return (uint64_t)n / len * bytes;
}

static int32_t add(struct cf_program *c, uint32_t kind, uint32_t dtype, uint32_t n_dims, const kopi_dim *dim,
                   const char *name)
{
    uint32_t len, bytes;
    int32_t i = (int32_t)c->p.n_tensors++;
    kopi_tensor *t = &c->t[i];
    if (i >= CF_MAX_TENSORS) abort();
    *t = (kopi_tensor){.dtype = dtype, .kind = kind, .n_dims = n_dims, .name = name};
    for (uint32_t d = 0; d < 4; d++) t->dim[d] = d < n_dims ? dim[d] : (kopi_dim){1, 0, 0};
    block_of(dtype, &len, &bytes);
    t->nb[0] = bytes;
    t->nb[1] = t->dim[0].n / len * bytes;
    for (uint32_t d = 2; d < 4; d++) t->nb[d] = t->nb[d - 1] * (d - 1 < n_dims ? t->dim[d - 1].n : 1);
    return i;
}

/* Memory for a tensor of static shape, or of the largest one. */
static void give_memory(struct cf_program *c, int32_t i, size_t align)
{
    kopi_tensor *t = &c->t[i];
    c->buf[i] = cf_buf_new((size_t)(t->nb[t->n_dims - 1] * t->dim[t->n_dims - 1].n), align);
    t->data = c->buf[i].data;
}

int32_t cf_act(struct cf_program *c, uint32_t dtype, int64_t n, int64_t heads, uint32_t sym)
{
    kopi_dim dim[3] = {{n, 0, 0}, {heads, 0, 0}};
    uint32_t n_dims = heads > 1 ? 3 : 2;
    dim[n_dims - 1] = (kopi_dim){c->n_tok, sym, 1};
    int32_t i = add(c, KOPI_KIND_ACT, dtype, n_dims, dim, "activation");
    give_memory(c, i, 64);
    c->t[i].off = c->p.act_bytes;
    c->p.act_bytes += (c->buf[i].size + 63) / 64 * 64;
    return i;
}

static void make_image(struct cf_program *c, int32_t i, struct cf_image *image)
{
    const kopi_tensor *t = &c->t[i];
    image->row_bytes = (uint64_t)t->nb[t->n_dims - 1];
    image->n = t->dim[t->n_dims - 1].sym == KOPI_DIM_OUT ? c->n_out : c->n_tok;
    image->rows = zeros(image->n, image->row_bytes);
}

int32_t cf_input(struct cf_program *c, uint32_t dtype, int64_t n, int64_t heads, uint32_t sym)
{
    int32_t i = cf_act(c, dtype, n, heads, sym);
    make_image(c, i, &c->in[i]);
    return i;
}

void cf_make_output(struct cf_program *c, int32_t i) { make_image(c, i, &c->out[i]); }

int32_t cf_output(struct cf_program *c, uint32_t dtype, int64_t n, int64_t heads, uint32_t sym)
{
    int32_t i = cf_act(c, dtype, n, heads, sym);
    cf_make_output(c, i);
    return i;
}

int32_t cf_host_rows(struct cf_program *c, int64_t n, int64_t gap)
{
    const kopi_dim dim[2] = {{n, 0, 0}, {c->n_tok, KOPI_DIM_OUT, 1}};
    int32_t i = add(c, KOPI_KIND_OUTPUT, KOPI_DTYPE_F32, 2, dim, "rows");
    c->buf[i] = cf_buf_new((size_t)((n + gap) * (int64_t)sizeof(float) * c->n_tok), 64);
    make_image(c, i, &c->out[i]);
    return i;
}

int32_t cf_weight(struct cf_program *c, uint32_t dtype, int64_t k, int64_t n)
{
    const kopi_dim dim[2] = {{k, 0, 0}, {n, 0, 0}};
    int32_t i = add(c, KOPI_KIND_WEIGHT, dtype, 2, dim, "weight");
    give_memory(c, i, 32);
    return i;
}

int32_t cf_own_weight(struct cf_program *c, const kopi_dtype_info *d, int64_t k, int64_t n)
{
    const kopi_dim dim[2] = {{k, 0, 0}, {n, 0, 0}};
    int32_t i = add(c, KOPI_KIND_WEIGHT, KOPI_DTYPE_F32, 2, dim, "weight");
    kopi_tensor *t = &c->t[i];
    t->dtype = d->id;
    t->nb[0] = d->block_bytes;
    t->nb[1] = k / d->block_len * d->block_bytes;
    t->nb[2] = t->nb[3] = t->nb[1] * n;
    give_memory(c, i, 32);
    return i;
}

int32_t cf_vector(struct cf_program *c, int64_t n)
{
    int32_t i = add(c, KOPI_KIND_WEIGHT, KOPI_DTYPE_F32, 1, &(kopi_dim){n, 0, 0}, "vector");
    give_memory(c, i, 32);
    return i;
}

int32_t cf_table(struct cf_program *c, int64_t a, int64_t b, int64_t n)
{
    const kopi_dim dim[3] = {{a, 0, 0}, {b, 0, 0}, {n, 0, 0}};
    int32_t i = add(c, KOPI_KIND_CONST, KOPI_DTYPE_F32, 3, dim, "table");
    give_memory(c, i, 64);
    return i;
}

/* ---- the KV cache: pages of CF_KV_LAYERS layers, of which the last one is used ----------------------------------- */

static void deal_pages(struct cf_program *c, uint64_t seed)
{
    struct cf_random r = {seed};
    uint32_t n = 0, max = (c->n_tok + c->group.page_len - 1) / c->group.page_len;
    uint32_t *order = zeros(c->group.n_pages, sizeof *order);
    for (uint32_t i = 0; i < c->group.n_pages; i++) order[i] = i;
    for (uint32_t i = (uint32_t)c->group.n_pages; i > 1; i--) {
        uint32_t k = cf_below(&r, i), swap = order[i - 1];
        order[i - 1] = order[k];
        order[k] = swap;
    }
    for (uint32_t s = 0; s < c->n_seq; s++) {
        c->page_ids[s] = zeros(max, sizeof **c->page_ids);
        for (uint32_t i = 0; i < max; i++)
            c->page_ids[s][i] = i * c->group.page_len < c->len[s] ? (int32_t)order[n++] : -1;
    }
    free(order);
}

void cf_kv_cache(struct cf_program *c, uint32_t dtype, int64_t row_k, int64_t row_v, uint32_t page_len, uint64_t seed)
{
    uint64_t k = cf_row_bytes(dtype, row_k) * page_len, v = cf_row_bytes(dtype, row_v) * page_len;
    uint64_t off = (CF_KV_LAYERS - 1) * (k + v);
    const kopi_dim dim_k[2] = {{row_k, 0, 0}, {page_len, 0, 0}}, dim_v[2] = {{row_v, 0, 0}, {page_len, 0, 0}};
    c->group = (kopi_kv_group){.struct_size = sizeof c->group,
                               .kind = KOPI_KV_PAGES,
                               .page_len = page_len,
                               .dtype_k = dtype,
                               .dtype_v = dtype,
                               .page_bytes = CF_KV_LAYERS * (k + v),
                               .n_pages = 1};
    for (uint32_t s = 0; s < c->n_seq; s++) c->group.n_pages += (c->len[s] + page_len - 1) / page_len;
    c->p.n_groups = 1;
    c->kv[0] = add(c, KOPI_KIND_KV, dtype, 2, dim_k, "cache_k");
    c->kv[1] = add(c, KOPI_KIND_KV, dtype, 2, dim_v, "cache_v");
    c->t[c->kv[0]].off = off;
    c->t[c->kv[1]].off = off + k;
    c->pages = cf_buf_new(c->group.page_bytes * c->group.n_pages, 64);
    c->group.base = c->pages.data;
    for (int w = 0; w < 2; w++) make_image(c, c->kv[w], &c->kv_rows[w]);
    deal_pages(c, seed);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static const int32_t *keep_list(struct cf_program *c, const int32_t *list, uint32_t n)
{
    if (c->n_lists == 2 * CF_MAX_OPS || n > 4) abort();
    memcpy(c->lists[c->n_lists], list, n * sizeof *list);
    return c->lists[c->n_lists++];
}

static void append(struct cf_program *c, kopi_op op, const int32_t *in, const int32_t *out)
{
    if (c->p.n_ops == CF_MAX_OPS) abort();
    op.version = 1;
    op.level = c->p.n_ops;
    op.layer = UINT32_MAX;
    op.in = keep_list(c, in, op.n_in);
    op.out = keep_list(c, out, op.n_out);
    c->ops[c->p.n_ops++] = op;
}

void cf_op(struct cf_program *c, uint32_t op, const int32_t *in, uint32_t n_in, const int32_t *out, uint32_t n_out,
           const void *params, uint32_t params_size)
{
    append(c, (kopi_op){.op = op, .n_in = n_in, .n_out = n_out, .params = params, .params_size = params_size}, in, out);
    c->n_ops++;
}

/* A SCALE that reads and writes tensor i. */
static void neighbour(struct cf_program *c, int32_t i)
{
    static const kopi_scale_params one = {1.0f, 0};
    append(c, (kopi_op){.op = KOPI_OP_SCALE, .n_in = 1, .n_out = 1, .params = &one, .params_size = sizeof one}, &i, &i);
}

void cf_program_finish(struct cf_program *c)
{
    kopi_op segment[CF_MAX_OPS];
    memcpy(segment, c->ops, sizeof segment);
    c->p.n_ops = 0;
    for (uint32_t i = 0; i < c->p.n_tensors; i++)
        if (c->in[i].rows) neighbour(c, (int32_t)i);
    c->first_op = c->p.n_ops;
    for (uint32_t i = 0; i < c->n_ops; i++) {
        if (c->p.n_ops == CF_MAX_OPS) abort();
        segment[i].level = c->p.n_ops;
        c->ops[c->p.n_ops++] = segment[i];
    }
    for (uint32_t i = 0; i < c->p.n_tensors; i++)
        if (c->out[i].rows && c->t[i].kind == KOPI_KIND_ACT) neighbour(c, (int32_t)i);
}
