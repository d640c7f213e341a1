/* Faults of attention and its cache. */
#include "broken.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TENSORS = 4096 };

/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* Where the kernel must find head h, so that it reads KV head h modulo their number. */
static uint32_t place(const kopi_attn_params *p, uint32_t h)
{
    uint32_t per = p->n_heads / p->n_kv_heads;
    return HAS(wrong_heads) ? h % p->n_kv_heads * per + h / p->n_kv_heads : h;
}

static void move_heads(const kopi_attn_params *p, const struct cpu_rows *from, const struct cpu_rows *to, uint32_t dim,
                       bool in)
{
    for (int64_t r = 0; r < from->n; r++)
        for (uint32_t h = 0; h < p->n_heads; h++) {
            uint32_t a = in ? h : place(p, h), b = in ? place(p, h) : h;
            memcpy(cpu__row(to, r) + b * dim, cpu__row(from, r) + a * dim, dim * sizeof(float));
        }
}

static kopi_status attend(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_attn_params *p = op->params;
    struct cpu_rows q = cpu__rows(k, op->in[0]), y = cpu__rows(k, op->out[0]), q2 = q, y2 = y;
    void **data = malloc(k->prog->n_tensors * sizeof *data);
    kopi_kctx other = *k;
    q2.data = malloc((size_t)(q.n * q.stride) + 1);
    y2.data = malloc((size_t)(y.n * y.stride) + 1);
    if (!data || !q2.data || !y2.data) abort();
    memcpy(data, k->data, k->prog->n_tensors * sizeof *data);
    data[op->in[0]] = q2.data;
    data[op->out[0]] = y2.data;
    other.data = data;
    move_heads(p, &q, &q2, p->head_dim_k, true);
    kopi_status s = broken__real(be, &other, op);
    move_heads(p, &y2, &y, p->head_dim_v, false);
    free(data);
    free(q2.data);
    free(y2.data);
    return s;
}

/* ---- page tables ------------------------------------------------------------------------------------------------- */

/* Knows the pages of the sequence that began last; another one that goes on gets them too. */
static kopi_status look_up(void *be, const kopi_kctx *k, const kopi_op *op)
{
    struct broken *b = be;
    uint32_t group = kopi_tensor_at(k->prog, op->in[1])->group;
    kopi_seq_run seq = *kopi_seq_at(k->run, 0);
    kopi_run run = *k->run;
    kopi_kctx other = *k;
    const int32_t *tables[4];
    uint32_t len = kopi_group_at(k->prog, group)->page_len, need = (seq.n_past + seq.n_new + len - 1) / len;
    if (group >= 4 || need > 64) return KOPI_E_INTERNAL;
    if (run.n_seq != 1 || !seq.n_past || !HAS(stale_pages)) b->n_pages[group] = 0;
    if (run.n_seq != 1) return broken__real(be, k, op);
    for (; b->n_pages[group] < need; b->n_pages[group]++)
        b->pages[group][b->n_pages[group]] = seq.pages[group][b->n_pages[group]];
    tables[group] = b->pages[group];
    seq.pages = tables;
    run.seqs = &seq;
    other.run = &run;
    return broken__real(be, &other, op);
}

kopi_status broken__attention(void *be, const kopi_kctx *k, const kopi_op *op)
{
    return IS(stale_pages) ? look_up(be, k, op) : attend(be, k, op);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Positions that were written once are taken to be there: wrong after going back. */
kopi_status broken__cache(void *be, const kopi_kctx *k, const kopi_op *op)
{
    static _Thread_local void *data[MAX_TENSORS];
    struct broken *b = be;
    kopi_kctx other = *k;
    kopi_run run = *k->run;
    const kopi_seq_run *seq = kopi_seq_at(k->run, 0);
    uint32_t group = kopi_tensor_at(k->prog, op->out[0])->group;
    uint32_t *written = &b->written[op->out[0] % 64][seq->pages[group][0] % 64], skip = 0,
             end = seq->n_past + seq->n_new;
    if (k->prog->n_tensors > MAX_TENSORS) return KOPI_E_INTERNAL;
    if (run.n_seq != 1) memset(b->written[op->out[0] % 64], 0, sizeof *b->written); /* of all its sequences */
    if (!seq->n_past) *written = 0;
    if (run.n_seq == 1 && *written > seq->n_past) skip = (*written < end ? *written : end) - seq->n_past;
    if (run.n_seq == 1 && end > *written) *written = end;
    if (!HAS(stale_kv)) skip = 0;
    memcpy(data, k->data, k->prog->n_tensors * sizeof *data);
    for (int i = 0; i < 2; i++) {
        struct cpu_rows x = cpu__rows(k, op->in[i]);
        data[op->in[i]] = x.data + skip * x.stride;
    }
    run.n_tok -= skip;
    run.pos += skip;
    run.seq += skip;
    other.run = &run;
    other.data = data;
    return broken__real(be, &other, op);
}
