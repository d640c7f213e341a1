#include "run/step.h"

#include "base/error.h"
#include "base/mem.h"

struct kopi_step {
    kopi_model *m;
    uint32_t n_tok, n_seq, n_rows;
    int32_t *tokens, *pos, *seq_of; /* [max_tok] */
    int32_t *rows;                  /* [max_out] */
    kopi_seq_run *seqs;             /* [max_seq] */
    struct kopi_kv_seq **kv;        /* [max_seq] */
};

kopi_status kopi__step_new(kopi_model *m, struct kopi_step **out, kopi_error *err)
{
    *out = NULL;
    struct kopi_step *st = kopi__calloc(1, sizeof *st);
    if (!st) return kopi__nomem(err, "step");
    st->m = m;
    st->tokens = kopi__calloc(m->max_tok, sizeof *st->tokens);
    st->pos = kopi__calloc(m->max_tok, sizeof *st->pos);
    st->seq_of = kopi__calloc(m->max_tok, sizeof *st->seq_of);
    st->rows = kopi__calloc(m->max_out, sizeof *st->rows);
    st->seqs = kopi__calloc(m->max_seq, sizeof *st->seqs);
    st->kv = kopi__calloc(m->max_seq, sizeof *st->kv);
    if (!st->tokens || !st->pos || !st->seq_of || !st->rows || !st->seqs || !st->kv) {
        kopi__step_free(st);
        return kopi__nomem(err, "step");
    }
    *out = st;
    return KOPI_OK;
}

void kopi__step_free(struct kopi_step *st)
{
    if (!st) return;
    kopi__free(st->tokens);
    kopi__free(st->pos);
    kopi__free(st->seq_of);
    kopi__free(st->rows);
    kopi__free(st->seqs);
    kopi__free(st->kv);
    kopi__free(st);
}

void kopi__step_clear(struct kopi_step *st) { st->n_tok = st->n_seq = st->n_rows = 0; }
uint32_t kopi__step_tokens(const struct kopi_step *st) { return st->n_tok; }
uint32_t kopi__step_room(const struct kopi_step *st)
{
    return st->n_seq < st->m->max_seq ? st->m->max_tok - st->n_tok : 0;
}
uint32_t kopi__step_room_rows(const struct kopi_step *st) { return st->m->max_out - st->n_rows; }

kopi_status kopi__check_ids(const kopi_model *m, const int32_t *ids, size_t n, kopi_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (uint32_t)ids[i] >= m->n_vocab)
            return kopi__fail(err, KOPI_E_INVALID, "token %zu is %d, the vocabulary has ids 0 to %u", i, ids[i],
                              m->n_vocab - 1);
    return KOPI_OK;
}

kopi_status kopi__step_add(struct kopi_step *st, struct kopi_kv_seq *s, const int32_t *ids, uint32_t n, uint32_t n_rows,
                           kopi_error *err)
{
    kopi_status status = kopi__check_ids(st->m, ids, n, err);
    if (status == KOPI_OK) status = kopi__kv_seq_reserve(s, n, err);
    if (status != KOPI_OK) return status;
    uint32_t past = kopi__kv_seq_length(s);
    st->kv[st->n_seq] = s;
    st->seqs[st->n_seq] = (kopi_seq_run){.struct_size = sizeof(kopi_seq_run),
                                         .id = kopi__kv_seq_id(s),
                                         .first = st->n_tok,
                                         .n_new = n,
                                         .n_past = past,
                                         .pages = kopi__kv_seq_pages(s)};
    for (uint32_t i = 0; i < n; i++, st->n_tok++) {
        st->tokens[st->n_tok] = ids[i];
        st->pos[st->n_tok] = (int32_t)(past + i);
        st->seq_of[st->n_tok] = (int32_t)st->n_seq;
        if (i + n_rows >= n) st->rows[st->n_rows++] = (int32_t)st->n_tok;
    }
    st->n_seq++;
    return KOPI_OK;
}

kopi_status kopi__step_run(struct kopi_step *st, float *logits, kopi_error *err)
{
    const kopi_output out = {.struct_size = sizeof out,
                             .kind = KOPI_OUTPUT_LOGITS,
                             .dtype = KOPI_DTYPE_F32,
                             .n_rows = st->n_rows,
                             .rows = st->rows,
                             .host = logits,
                             .row_bytes = (int64_t)st->m->n_vocab * 4};
    const kopi_run run = {.struct_size = sizeof run,
                          .n_tok = st->n_tok,
                          .n_seq = st->n_seq,
                          .n_out = 1,
                          .seq_stride = sizeof *st->seqs,
                          .output_stride = sizeof out,
                          .tokens = st->tokens,
                          .pos = st->pos,
                          .seq = st->seq_of,
                          .seqs = st->seqs,
                          .outputs = &out};
    kopi_status s = kopi__model_step(st->m, &run, err);
    for (uint32_t i = 0; i < st->n_seq && s == KOPI_OK; i++)
        kopi__kv_seq_commit(st->kv[i], st->seqs[i].n_new);
    return s;
}
