#include "run/speculate.h"

#include "base/error.h"
#include "base/mem.h"
#include "run/drafter.h"
#include "run/engine.h"
#include "run/load.h"
#include <string.h>

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static kopi_status same_vocabulary(const kopi_model *m, const kopi_model *draft, const struct kopi__setting *set,
                                   kopi_error *err)
{
    if (m->n_vocab != draft->n_vocab)
        return kopi__config_fail(err, set,
                          "draft model %s has %u tokens, %s has %u: the vocabularies must be the same", draft->id,
                          draft->n_vocab, m->id, m->n_vocab);
    if (!m->tokenizer != !draft->tokenizer)
        return kopi__config_fail(err, set, "%s has no tokenizer and %s has one: the vocabularies can't be compared",
                          m->tokenizer ? draft->id : m->id, m->tokenizer ? m->id : draft->id);
    int32_t n = m->tokenizer ? kopi__n_vocab(m->tokenizer) : 0,
            n_draft = m->tokenizer ? kopi__n_vocab(draft->tokenizer) : 0;
    for (int32_t i = 0; i < n && i < n_draft; i++) {
        size_t a, b;
        const char *s = kopi__token_text(m->tokenizer, i, &a), *t = kopi__token_text(draft->tokenizer, i, &b);
        if (a != b || memcmp(s, t, a))
            return kopi__config_fail(
                err, set,
                "draft model %s: token %d is \"%.*s\", in %s it is \"%.*s\": the vocabularies must be the same",
                draft->id, i, b < 40 ? (int)b : 40, t, m->id, a < 40 ? (int)a : 40, s);
    }
    if (n != n_draft)
        return kopi__config_fail(err, set,
                          "draft model %s names %d tokens, %s names %d: the vocabularies must be the same", draft->id,
                          n_draft, m->id, n);
    return KOPI_OK;
}

static kopi_status load_draft(struct kopi_speculation *s, kopi_model *m, kopi_progress_fn progress, void *ctx,
                              kopi_error *err)
{
    const kopi_config *cfg = m->engine->cfg;
    const struct kopi__setting *set = kopi__config_find(cfg, "models[].speculation.draft_model", m->config_index);
    if (!set)
        return kopi__config_fail(err, kopi__config_find(cfg, "models[].speculation.type", m->config_index),
                                 "drafts need a model: --model-draft FILE or speculation.draft_model");
    kopi_status st = kopi__load_draft(m, set->text, progress, ctx, &s->draft, err);
    return st == KOPI_OK ? same_vocabulary(m, s->draft, set, err) : st;
}

/* A flag that says how tokens are guessed, where none are or in another way, is a mistake; in a file it waits for its
 * type. */
static kopi_status refuse_flags(const kopi_model *m, const char *type, kopi_error *err)
{
    static const struct { const char *key, *types; } settings[] = {
        {"models[].speculation.max_tokens", "ngram draft"}, {"models[].speculation.adaptive", "ngram draft"},
        {"models[].speculation.ngram_min", "ngram"},        {"models[].speculation.ngram_max", "ngram"},
        {"models[].speculation.draft_model", "draft"},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct kopi__setting *s = kopi__config_find(m->engine->cfg, settings[i].key, m->config_index);
        if (!s || s->from != KOPI_FROM_FLAG || (type && strstr(settings[i].types, type))) continue;
        return kopi__fail(err, KOPI_E_INVALID, "%s means nothing %s; it goes with %s%s%s", s->where,
                          type ? "with this --spec-type" : "where no tokens are guessed",
                          strstr(settings[i].types, "ngram") ? "--spec-type ngram" : "",
                          strchr(settings[i].types, ' ') ? " or " : "",
                          strstr(settings[i].types, "draft") ? "--model-draft FILE" : "");
    }
    return KOPI_OK;
}

/* "ngram", "draft", or NULL for none; auto: a draft model that is named is used. */
static const char *type_of(const kopi_model *m)
{
    const kopi_config *cfg = m->engine->cfg;
    const char *type = kopi__config_str(cfg, "models[].speculation.type", m->config_index);
    if (!strcmp(type, "auto"))
        type = kopi__config_str(cfg, "models[].speculation.draft_model", m->config_index) ? "draft" : "none";
    return strcmp(type, "none") ? type : NULL;
}

kopi_status kopi__speculation_new(kopi_model *m, kopi_progress_fn progress, void *ctx, struct kopi_speculation **out,
                                  kopi_error *err)
{
    const kopi_config *cfg = m->engine->cfg;
    const char *type = type_of(m);
    *out = NULL;
    kopi_status st = refuse_flags(m, type, err);
    if (!type || st != KOPI_OK) return st;
    struct kopi_speculation *s = kopi__calloc(1, sizeof *s);
    if (!s) return kopi__nomem(err, "speculation");
    s->max_tokens = (uint32_t)kopi__config_int(cfg, "models[].speculation.max_tokens", m->config_index);
    s->ngram_min = (uint32_t)kopi__config_int(cfg, "models[].speculation.ngram_min", m->config_index);
    s->ngram_max = (uint32_t)kopi__config_int(cfg, "models[].speculation.ngram_max", m->config_index);
    s->adaptive = kopi__config_bool(cfg, "models[].speculation.adaptive", m->config_index);
    if (!strcmp(type, "draft")) st = load_draft(s, m, progress, ctx, err);
    else if (s->ngram_min > s->ngram_max)
        st = kopi__config_fail(err, kopi__config_find(cfg, "models[].speculation.ngram_min", m->config_index),
                               "%u is more than speculation.ngram_max, which is %u", s->ngram_min, s->ngram_max);
    if (st == KOPI_OK) *out = s;
    else kopi__speculation_free(s);
    return st;
}

void kopi__speculation_free(struct kopi_speculation *s)
{
    if (!s) return;
    kopi_model_free(s->draft);
    kopi__free(s);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

struct kopi_speculator {
    struct kopi_speculation *spec;
    struct kopi_drafter *drafter; /* NULL: prompt lookup */
    struct kopi_wish *wishes;     /* [max_answers] */
    float *gain;                  /* [max_answers] chance that the next token of a wish comes true */
};

kopi_status kopi__speculator_new(struct kopi_speculation *spec, uint32_t max_answers, struct kopi_speculator **out,
                                 kopi_error *err)
{
    *out = NULL;
    struct kopi_speculator *s = kopi__calloc(1, sizeof *s);
    if (!s) return kopi__nomem(err, "speculation");
    s->spec = spec;
    s->wishes = kopi__calloc(max_answers, sizeof *s->wishes);
    s->gain = kopi__calloc(max_answers, sizeof *s->gain);
    kopi_status st = s->wishes && s->gain ? KOPI_OK : kopi__nomem(err, "speculation");
    if (st == KOPI_OK && spec->draft) st = kopi__drafter_new(spec, max_answers, &s->drafter, err);
    if (st == KOPI_OK) *out = s;
    else kopi__speculator_free(s);
    return st;
}

void kopi__speculator_free(struct kopi_speculator *s)
{
    if (!s) return;
    kopi__drafter_free(s->drafter);
    kopi__free(s->wishes);
    kopi__free(s->gain);
    kopi__free(s);
}

/* Prompt lookup: what stood behind the last place like this one, and again from its beginning where that is short. */
static uint32_t look_up(struct kopi_guess *g, int32_t *tokens, size_t n, uint32_t room)
{
    uint32_t match, p = kopi__ngram_find(&g->index, tokens, (uint32_t)n, &match);
    if (!match) return 0;
    g->kind = match - g->index.min;
    for (uint32_t i = 0; i < room; i++) tokens[n + i] = tokens[p + i];
    return room;
}

/* How many tokens can be guessed for an answer now. */
static uint32_t limit_of(const struct kopi_speculator *s, struct kopi_answer *a)
{
    size_t n;
    uint32_t room = kopi__answer_guess_room(a);
    int32_t *tokens = kopi__answer_tokens(a, &n);
    if (room > s->spec->max_tokens) room = s->spec->max_tokens;
    return room && !s->drafter ? look_up(kopi__answer_guess(a), tokens, n, room) : room;
}

static float rate_of(struct kopi_answer *a)
{
    const struct kopi_guess *g = kopi__answer_guess(a);
    return g->rate[g->kind];
}

/* Gives one token more to the wish that most likely makes something of it. Returns the chance, or 0 if nobody can use
 * one; *depth: how many that one has now. */
static float give_one(struct kopi_speculator *s, uint32_t n, uint32_t *depth)
{
    uint32_t best = n;
    for (uint32_t i = 0; i < n; i++)
        if (s->wishes[i].take < s->wishes[i].limit && (best == n || s->gain[i] > s->gain[best])) best = i;
    if (best == n) return 0;
    float gain = s->gain[best];
    s->gain[best] *= rate_of(s->wishes[best].a);
    *depth = ++s->wishes[best].take;
    return gain;
}

static void clear_takes(struct kopi_speculator *s, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        s->wishes[i].take = 0;
        s->gain[i] = rate_of(s->wishes[i].a);
    }
}

/* How many tokens guessed in all make most of the time: expected tokens per cost is greatest. n of them wish, n_tok are
 * in the step anyway. */
static uint32_t worth(struct kopi_speculator *s, uint32_t n, uint32_t n_tok, uint32_t budget)
{
    double expected = n_tok, drafting = 0,
           best = 1.02 * expected / kopi__pace_cost(&s->spec->pace, n_tok); /* noise is no gain */
    uint32_t chosen = 0, depth, deepest = 0;
    clear_takes(s, n);
    for (uint32_t k = 1; k <= budget && n_tok + k <= KOPI_PACE_MAX; k++) {
        float gain = give_one(s, n, &depth);
        if (gain == 0) break;
        if (s->drafter && depth > deepest) {
            deepest = depth;
            drafting += kopi__pace_cost(&s->spec->draft_pace, n);
        }
        expected += (double)gain;
        double rate = expected / (kopi__pace_cost(&s->spec->pace, n_tok + k) + drafting);
        if (rate <= best) continue;
        best = rate;
        chosen = k;
    }
    return chosen;
}

/* Decides how many of its tokens each may guess. */
static void share(struct kopi_speculator *s, uint32_t n, uint32_t n_tok, uint32_t budget)
{
    uint32_t depth, take = s->spec->adaptive ? worth(s, n, n_tok, budget) : budget;
    clear_takes(s, n);
    while (take && give_one(s, n, &depth) > 0) take--;
    for (uint32_t i = 0; i < n; i++)
        if (!s->wishes[i].take) kopi__guess_skip(kopi__answer_guess(s->wishes[i].a));
}

void kopi__speculate(struct kopi_speculator *s, struct kopi_answer *const *answers, size_t n, uint32_t budget)
{
    uint32_t n_wishes = 0, n_tok = 0;
    if (s->spec->broken) return;
    for (size_t i = 0; i < n; i++) {
        if (kopi__answer_done(answers[i]) || !kopi__answer_decoding(answers[i])) continue;
        n_tok++;
        uint32_t limit = limit_of(s, answers[i]);
        if (limit) s->wishes[n_wishes++] = (struct kopi_wish){.a = answers[i], .limit = limit};
    }
    if (!n_wishes) return;
    share(s, n_wishes, n_tok, budget);
    if (s->drafter) {
        kopi__drafter_run(s->drafter, s->wishes, n_wishes);
        return;
    }
    for (uint32_t i = 0; i < n_wishes; i++) kopi__answer_guess(s->wishes[i].a)->n = s->wishes[i].take;
}
