#include "run/answer.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include "run/engine.h"
#include "run/sampler.h"
#include "run/speculate.h"
#include "run/step.h"
#include "run/stop.h"
#include <stdatomic.h>
#include <string.h>

struct kopi_answer {
    kopi_model *m;
    kopi_cache *cache;
    kopi_request rq; /* ids and stop strings are not used after the start: tokens and stop hold copies */
    int32_t *tokens; /* prompt and answer, and room for guesses behind them */
    size_t n, cap, n_prompt, spare;
    struct kopi_guess guess;
    struct kopi_sampler *sampler;
    struct kopi_stop stop;
    struct kopi_detok detok;
    struct kopi_buf fresh, text; /* text of the last token; all delivered text */
    uint64_t began, first;       /* times: start, first token */
    kopi_result r;
    bool done;
    kopi_status status;
    kopi_error err;
};

static kopi_status check(const kopi_model *m, const kopi_request *rq, kopi_error *err)
{
    if (!KOPI_HAS(rq, ctx)) return kopi__fail(err, KOPI_E_INVALID, "request: struct_size is %u", rq->struct_size);
    if (rq->n_predict < -1)
        return kopi__fail(err, KOPI_E_INVALID, "n_predict is %d, allowed is -1 or more", rq->n_predict);
    if (!rq->n_ids) return kopi__fail(err, KOPI_E_INVALID, "the prompt has no tokens");
    if (rq->n_ids > m->n_ctx)
        return kopi__fail(err, KOPI_E_RANGE, "the prompt has %zu tokens, the context holds %u; raise --ctx-size",
                          rq->n_ids, m->n_ctx);
    return kopi__check_ids(m, rq->ids, rq->n_ids, err);
}

/* n_predict under the configured limit (limits.max_tokens; -1: none). */
static int32_t limit_of(const kopi_model *m, int32_t n_predict)
{
    int64_t limit = kopi__config_int(m->engine->cfg, "models[].limits.max_tokens", m->config_index);
    return limit >= 0 && (n_predict < 0 || n_predict > limit) ? (int32_t)limit : n_predict;
}

kopi_status kopi__answer_new(kopi_model *m, const kopi_request *rq, struct kopi_answer **out, kopi_error *err)
{
    *out = NULL;
    kopi_status s = check(m, rq, err);
    if (s != KOPI_OK) return s;
    struct kopi_answer *a = kopi__calloc(1, sizeof *a);
    if (!a) return kopi__nomem(err, "request");
    a->m = m;
    a->rq = *rq;
    a->rq.n_predict = limit_of(m, rq->n_predict);
    a->detok.not_first = true; /* the answer continues the prompt: its first space is text */
    a->spare = m->spec ? m->spec->max_tokens : 0;
    a->cap = rq->n_ids + 64 + a->spare;
    a->tokens = kopi__realloc_array(NULL, a->cap, sizeof *a->tokens);
    s = a->tokens ? kopi__stop_init(&a->stop, rq->stop, rq->n_stop, err) : kopi__nomem(err, "request");
    if (s == KOPI_OK) s = kopi__sampler_new(&rq->sampling, m->n_vocab, &a->sampler, err);
    if (s == KOPI_OK && !kopi__guess_init(&a->guess, m->spec, m->n_ctx)) s = kopi__nomem(err, "request");
    if (s != KOPI_OK) {
        kopi__answer_free(a);
        return s;
    }
    memcpy(a->tokens, rq->ids, rq->n_ids * sizeof *a->tokens);
    a->n = a->n_prompt = a->r.n_prompt = rq->n_ids;
    a->r.seed = kopi__sampler_seed(a->sampler);
    a->r.finish = KOPI_FINISH_LENGTH;
    *out = a;
    return KOPI_OK;
}

void kopi__answer_free(struct kopi_answer *a)
{
    if (!a) return;
    kopi__sampler_free(a->sampler);
    kopi__guess_free(&a->guess);
    kopi__stop_free(&a->stop);
    kopi__buf_free(&a->fresh);
    kopi__buf_free(&a->text);
    kopi__free(a->tokens);
    kopi__free(a);
}

const int32_t *kopi__answer_prompt(const struct kopi_answer *a, size_t *n)
{
    *n = a->n_prompt;
    return a->tokens;
}

void kopi__answer_start(struct kopi_answer *a, kopi_cache *cache)
{
    uint32_t keep = kopi__cache_common(cache, a->tokens, a->n_prompt - 1);
    a->cache = cache;
    a->r.n_cached = keep;
    a->began = kopi__now_ns();
    kopi__kv_seq_truncate(cache->seq, keep);
}

bool kopi__answer_done(const struct kopi_answer *a) { return a->done; }
kopi_cache *kopi__answer_cache(const struct kopi_answer *a) { return a->cache; }

const int32_t *kopi__answer_wants(const struct kopi_answer *a, uint32_t *n)
{
    uint32_t held = kopi_cache_length(a->cache);
    *n = (uint32_t)(a->n - held) + a->guess.n;
    return a->tokens + held;
}

uint32_t kopi__answer_wants_rows(const struct kopi_answer *a) { return a->rq.n_predict ? 1 + a->guess.n : 0; }

bool kopi__answer_decoding(const struct kopi_answer *a) { return a->n - kopi_cache_length(a->cache) == 1; }

int32_t *kopi__answer_tokens(struct kopi_answer *a, size_t *n)
{
    *n = a->n;
    return a->tokens;
}

struct kopi_guess *kopi__answer_guess(struct kopi_answer *a) { return &a->guess; }

uint32_t kopi__answer_guess_room(const struct kopi_answer *a)
{
    if (!a->spare || !a->r.n_generated || !kopi__answer_decoding(a)) return 0;
    size_t room = a->m->n_ctx - a->n, left = (size_t)a->rq.n_predict - a->r.n_generated - 1;
    if (a->rq.n_predict > 0 && room > left) room = left; /* the row after the last guess gives a token as well */
    return room < a->spare ? (uint32_t)room : (uint32_t)a->spare;
}

kopi_status kopi__answer_sample(struct kopi_answer *a, const float *row, size_t n, int32_t *id, kopi_error *err)
{
    return kopi__sampler_next(a->sampler, row, a->tokens, n, id, err);
}

bool kopi__answer_ends_with(const struct kopi_answer *a, int32_t id)
{
    return a->m->tokenizer && !a->rq.ignore_eos && kopi__is_eog(a->m->tokenizer, id);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

static void end(struct kopi_answer *a, uint32_t finish)
{
    uint64_t now = kopi__now_ns();
    a->done = true;
    a->guess.n = 0;
    a->r.finish = finish;
    a->r.prompt_ns = (a->first ? a->first : now) - (a->began ? a->began : now);
    a->r.generate_ns = a->first ? now - a->first : 0;
}

void kopi__answer_fail(struct kopi_answer *a, kopi_status status, const kopi_error *why)
{
    if (a->done) return;
    end(a, a->r.finish);
    a->status = status;
    if (why) a->err = *why;
    /* A NaN may have been in the cache for several steps before a logit showed it. */
    if (a->cache) kopi__kv_seq_truncate(a->cache->seq, status == KOPI_E_NONFINITE ? 0 : kopi_cache_length(a->cache));
}

static void fail_nomem(struct kopi_answer *a)
{
    kopi_error e;
    kopi__nomem(&e, "answer");
    kopi__answer_fail(a, KOPI_E_NOMEM, &e);
}

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* Hands over what was appended to text since `from`. False: the receiver wants no more. */
static bool hand_over(struct kopi_answer *a, size_t from)
{
    if (a->text.len == from || !a->rq.on_text) return true;
    return a->rq.on_text(a->rq.ctx, a->text.data + from, a->text.len - from) == 0;
}

/* Sends the fresh text through the stop strings. last: releases what is held back as well. Returns how the answer ends
 * by it, or -1. */
static int deliver(struct kopi_answer *a, bool last)
{
    size_t from = a->text.len;
    bool matched, ok = kopi__stop_push(&a->stop, a->fresh.data, a->fresh.len, &a->text, &matched);
    if (ok && last && !matched) ok = kopi__stop_flush(&a->stop, &a->text);
    kopi__buf_clear(&a->fresh);
    if (!ok) {
        fail_nomem(a);
        return -1;
    }
    if (!hand_over(a, from)) return KOPI_FINISH_CANCELLED;
    return matched ? KOPI_FINISH_STOP : -1;
}

/* The end with all text out: a cut-off character and what could have become a stop string. */
static void end_with_text(struct kopi_answer *a, uint32_t finish)
{
    if (a->m->tokenizer && !kopi__detok_flush(&a->detok, &a->fresh)) {
        fail_nomem(a);
        return;
    }
    int by_text = deliver(a, true);
    if (!a->done) end(a, by_text >= 0 ? (uint32_t)by_text : finish);
}

void kopi__answer_cancel(struct kopi_answer *a)
{
    if (!a->done) end_with_text(a, KOPI_FINISH_CANCELLED);
}

/* ---- tokens ------------------------------------------------------------------------------------------------------ */

static bool append(struct kopi_answer *a, int32_t id)
{
    if (a->n + a->spare == a->cap) {
        int32_t *grown = kopi__realloc_array(a->tokens, a->cap * 2, sizeof *grown);
        if (!grown) return false;
        a->tokens = grown;
        a->cap *= 2;
    }
    a->tokens[a->n++] = id;
    a->r.n_generated++;
    return true;
}

/* The token that was just appended has no place in the context. */
static void end_full(struct kopi_answer *a)
{
    kopi_error e;
    const char *how = kopi__config_str(a->m->engine->cfg, "models[].context.overflow", a->m->config_index);
    if (strcmp(how, "error")) {
        end_with_text(a, KOPI_FINISH_LENGTH);
        return;
    }
    kopi__fail(&e, KOPI_E_RANGE, "the context of %u tokens is full after %zu of the answer; raise --ctx-size",
               a->m->n_ctx, a->r.n_generated);
    kopi__answer_fail(a, KOPI_E_RANGE, &e);
}

static void accept(struct kopi_answer *a, int32_t id)
{
    const struct kopi_tokenizer *t = a->m->tokenizer;
    if (!append(a, id)) {
        fail_nomem(a);
        return;
    }
    if (kopi__answer_ends_with(a, id)) {
        end_with_text(a, KOPI_FINISH_STOP);
        return;
    }
    if (t && !kopi__detok_push(&a->detok, t, id, a->rq.special != 0, &a->fresh)) {
        fail_nomem(a);
        return;
    }
    int by_text = deliver(a, false);
    if (a->done) return;
    if (by_text >= 0) end(a, (uint32_t)by_text);
    else if (a->rq.n_predict > 0 && a->r.n_generated >= (size_t)a->rq.n_predict) end_with_text(a, KOPI_FINISH_LENGTH);
    else if (a->n > a->m->n_ctx) end_full(a);
}

/* Takes the next token from a row. *id: the token. False: a logit is not finite. */
static bool take_row(struct kopi_answer *a, const float *row, int32_t *id)
{
    kopi_error e, why;
    kopi_status s = kopi__answer_sample(a, row, a->n, id, &e);
    if (s == KOPI_OK) {
        accept(a, *id);
        return true;
    }
    kopi__answer_fail(a, s, kopi__model_check_row(a->m, row, &why) == KOPI_OK ? &e : &why);
    return false;
}

/* Row by row, as if each had come in a step of its own: the next one counts only if the guess that it stands on is the
 * token that was taken. What the state of sampling, stop strings and text makes of a guess is thus never seen before it
 * is true. */
static void take_rows(struct kopi_answer *a, const float *rows)
{
    uint32_t n = a->guess.n, right = 0;
    bool wrong = false;
    for (;;) {
        int32_t id, guessed = right < n ? a->tokens[a->n] : -1;
        if (!take_row(a, rows + (size_t)right * a->m->n_vocab, &id) || right == n) break;
        wrong = id != guessed;
        right += !wrong;
        if (wrong || a->done || atomic_load(a->m->stop)) break;
    }
    a->r.n_drafted += n;
    a->r.n_accepted += right;
    kopi__guess_learn(&a->guess, right, wrong);
    if (n && kopi_cache_length(a->cache) >= a->n) kopi__kv_seq_truncate(a->cache->seq, (uint32_t)a->n - 1);
}

void kopi__answer_evaluated(struct kopi_answer *a, uint32_t n, const float *rows)
{
    uint32_t held = kopi_cache_length(a->cache);
    memcpy(a->cache->ids + (held - n), a->tokens + (held - n), n * sizeof *a->tokens);
    bool prefill = !a->r.n_generated;
    if (prefill && a->rq.progress &&
        a->rq.progress(a->rq.ctx, "prefill", held - a->r.n_cached, a->n_prompt - a->r.n_cached)) {
        kopi__answer_cancel(a);
        return;
    }
    if (held < a->n) return;
    if (!a->first) a->first = kopi__now_ns();
    if (rows) take_rows(a, rows);
    else end_with_text(a, KOPI_FINISH_LENGTH);
}

kopi_status kopi__answer_result(struct kopi_answer *a, kopi_result *result, kopi_error *err)
{
    *result = a->r;
    size_t bytes = a->r.n_generated * sizeof *result->ids;
    kopi__buf_add(&a->text, "", 0); /* an empty answer is an empty string, not NULL */
    result->text_len = a->text.len;
    result->text = kopi__buf_take(&a->text);
    result->ids = kopi__alloc(bytes);
    if (!result->text || !result->ids) {
        kopi_result_clear(result);
        return kopi__nomem(err, "result");
    }
    memcpy(result->ids, a->tokens + a->n_prompt, bytes);
    if (a->status != KOPI_OK && err) *err = a->err;
    return a->status;
}

void kopi_result_clear(kopi_result *r)
{
    if (!r) return;
    kopi__free(r->ids);
    kopi__free(r->text);
    *r = (kopi_result){0};
}
