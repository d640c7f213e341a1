#include "run/cache.h"

#include "base/error.h"
#include "base/mem.h"
#include "run/step.h"
#include <stdatomic.h>
#include <string.h>

kopi_status kopi_cache_new(kopi_model *model, kopi_cache **out, kopi_error *err)
{
    *out = NULL;
    kopi_cache *c = kopi__calloc(1, sizeof *c);
    if (!c) return kopi__nomem(err, "cache");
    c->m = model;
    c->ids = kopi__calloc(model->n_ctx, sizeof *c->ids);
    kopi_status s = c->ids ? kopi__kv_seq_new(model->kv, &c->seq, err) : kopi__nomem(err, "cache");
    if (s == KOPI_OK) *out = c;
    else kopi_cache_free(c);
    return s;
}

void kopi_cache_free(kopi_cache *c)
{
    if (!c) return;
    kopi_cache_free(c->draft);
    kopi__step_free(c->step);
    kopi__kv_seq_free(c->seq);
    kopi__free(c->ids);
    kopi__free(c);
}

uint32_t kopi_cache_length(const kopi_cache *c) { return kopi__kv_seq_length(c->seq); }

kopi_status kopi_cache_truncate(kopi_cache *c, uint32_t n, kopi_error *err)
{
    uint32_t length = kopi_cache_length(c);
    if (n > length) return kopi__fail(err, KOPI_E_RANGE, "cannot keep %u tokens of a cache that holds %u", n, length);
    kopi__kv_seq_truncate(c->seq, n);
    return KOPI_OK;
}

uint32_t kopi__cache_common(const kopi_cache *c, const int32_t *ids, size_t n)
{
    uint32_t i = 0, length = kopi_cache_length(c);
    while (i < length && i < n && c->ids[i] == ids[i]) i++;
    return i;
}

kopi_status kopi__cache_share(kopi_cache *to, const kopi_cache *from, uint32_t n, kopi_error *err)
{
    struct kopi_kv_seq *seq;
    kopi_status s = kopi__kv_seq_fork(from->seq, n, &seq, err);
    if (s != KOPI_OK) return s;
    kopi__kv_seq_free(to->seq);
    to->seq = seq;
    memmove(to->ids, from->ids, n * sizeof *to->ids);
    return KOPI_OK;
}

/* One step of at most max_tok tokens and max_out rows; first_row: the first of the n tokens whose logits are wanted. */
static kopi_status forward_some(kopi_cache *c, const int32_t *ids, size_t n, size_t first_row, float *logits,
                                uint32_t *n_done, uint32_t *n_rows, kopi_error *err)
{
    uint32_t take = n < c->m->max_tok ? (uint32_t)n : c->m->max_tok;
    if (take > first_row && take - first_row > c->m->max_out) take = (uint32_t)first_row + c->m->max_out;
    *n_done = take;
    *n_rows = take > first_row ? take - (uint32_t)first_row : 0;
    uint32_t past = kopi_cache_length(c);
    kopi__step_clear(c->step);
    kopi_status s = kopi__step_add(c->step, c->seq, ids, take, *n_rows, err);
    if (s == KOPI_OK) s = kopi__step_run(c->step, logits, err);
    for (uint32_t i = 0; i < *n_rows && s == KOPI_OK; i++)
        s = kopi__model_check_row(c->m, logits + (size_t)i * c->m->n_vocab, err);
    if (s == KOPI_OK) memcpy(c->ids + past, ids, take * sizeof *ids);
    return s;
}

kopi_status kopi_model_forward_last(kopi_model *model, kopi_cache *c, const int32_t *ids, size_t n, size_t n_rows,
                                    float *logits, kopi_error *err)
{
    uint32_t past = kopi_cache_length(c), done = 0, rows = 0;
    if (c->m != model) return kopi__fail(err, KOPI_E_INVALID, "the cache belongs to another model");
    if (!n) return kopi__fail(err, KOPI_E_INVALID, "no tokens to evaluate");
    if (n_rows > n) return kopi__fail(err, KOPI_E_INVALID, "%zu rows of logits wanted of %zu tokens", n_rows, n);
    if (n_rows && !logits) return kopi__fail(err, KOPI_E_INVALID, "no memory given for %zu rows of logits", n_rows);
    if (n > model->n_ctx - past)
        return kopi__fail(err, KOPI_E_RANGE, "%zu tokens behind %u are more than the context of %u; raise --ctx-size",
                          n, past, model->n_ctx);
    kopi_status s = kopi__check_ids(model, ids, n, err);
    if (s == KOPI_OK && !c->step) s = kopi__step_new(model, &c->step, err);
    for (size_t at = 0; at < n && s == KOPI_OK; at += done) {
        size_t first_row = n - n_rows > at ? n - n_rows - at : 0;
        s = forward_some(c, ids + at, n - at, first_row, logits, &done, &rows, err);
        if (rows) logits += (size_t)rows * model->n_vocab;
    }
    if (s != KOPI_OK) kopi__kv_seq_truncate(c->seq, past);
    if (s == KOPI_E_CANCELLED) kopi_model_uncancel(model);
    return s;
}

kopi_status kopi_model_forward(kopi_model *model, kopi_cache *cache, const int32_t *ids, size_t n, float *logits,
                               kopi_error *err)
{
    return kopi_model_forward_last(model, cache, ids, n, logits ? n : 0, logits, err);
}
