#include "run/sampler.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "run/random.h"
#include <float.h>
#include <kopi/math.h>
#include <math.h>

struct candidate {
    int32_t id;
    float logit;
};

struct kopi_sampler {
    kopi_sampling p;
    uint32_t n_vocab;
    struct candidate *list; /* the candidates left, n of them; in order of id, or best first if sorted */
    size_t n;
    bool sorted;
    uint32_t *count;       /* [n_vocab] occurrences in the window of the penalties; zero between calls */
    const int32_t *tokens; /* of the running call */
    size_t n_tokens;
};

static kopi_status check(const kopi_sampling *s, kopi_error *err)
{
    if (!KOPI_HAS(s, seed))
        return kopi__fail(err, KOPI_E_INVALID, "sampling: struct_size is %u; start from kopi_sampling_default",
                          s->struct_size);
    const struct {
        const char *name;
        double v, lo, hi;
    } field[] = {
        {"top_k", s->top_k, -1, INT32_MAX},
        {"temperature", s->temperature, -(double)FLT_MAX, FLT_MAX},
        {"top_p", s->top_p, 0, 1},
        {"min_p", s->min_p, 0, 1},
        {"repeat_penalty", s->repeat_penalty, FLT_MIN, FLT_MAX},
        {"repeat_last_n", s->repeat_last_n, -1, INT32_MAX},
        {"presence_penalty", s->presence_penalty, -(double)FLT_MAX, FLT_MAX},
        {"frequency_penalty", s->frequency_penalty, -(double)FLT_MAX, FLT_MAX},
    };
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        char v[40], lo[40], hi[40];
        if (field[i].v >= field[i].lo && field[i].v <= field[i].hi) continue; /* false for NaN */
        return kopi__fail(err, KOPI_E_INVALID, "sampling: %s is %s, allowed is %s to %s", field[i].name,
                          kopi__format_f64(field[i].v, v, sizeof v), kopi__format_f64(field[i].lo, lo, sizeof lo),
                          kopi__format_f64(field[i].hi, hi, sizeof hi));
    }
    return KOPI_OK;
}

kopi_status kopi__sampler_new(const kopi_sampling *p, uint32_t n_vocab, struct kopi_sampler **out, kopi_error *err)
{
    kopi_status st = check(p, err);
    if (st != KOPI_OK) return st;
    struct kopi_sampler *s = kopi__calloc(1, sizeof *s);
    if (!s) return kopi__nomem(err, "sampler");
    s->p = *p;
    s->n_vocab = n_vocab;
    if (s->p.seed == -1) s->p.seed = kopi__random_seed();
    s->list = kopi__calloc(n_vocab, sizeof *s->list);
    s->count = kopi__calloc(n_vocab, sizeof *s->count);
    if (!s->list || !s->count) {
        kopi__sampler_free(s);
        return kopi__nomem(err, "sampler");
    }
    *out = s;
    return KOPI_OK;
}

void kopi__sampler_free(struct kopi_sampler *s)
{
    if (!s) return;
    kopi__free(s->list);
    kopi__free(s->count);
    kopi__free(s);
}

int64_t kopi__sampler_seed(const struct kopi_sampler *s) { return s->p.seed; }

/* ---- order ------------------------------------------------------------------------------------------------------- */

static bool better(const struct candidate *a, const struct candidate *b)
{
    return a->logit > b->logit || (a->logit == b->logit && a->id < b->id);
}

static void swap(struct candidate *a, struct candidate *b)
{
    struct candidate t = *a;
    *a = *b;
    *b = t;
}

/* Restores a heap of n whose root is its worst element, after a change at i. */
static void sift(struct candidate *c, size_t n, size_t i)
{
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && better(&c[child], &c[child + 1])) child++;
        if (!better(&c[i], &c[child])) return;
        swap(&c[i], &c[child]);
    }
}

/* Moves the k best to the front, best first. */
static void best_first(struct candidate *c, size_t n, size_t k)
{
    for (size_t i = k / 2; i-- > 0;) sift(c, k, i);
    for (size_t i = k; i < n; i++)
        if (better(&c[i], &c[0])) {
            swap(&c[i], &c[0]);
            sift(c, k, 0);
        }
    for (size_t i = k; i-- > 1;) {
        swap(&c[0], &c[i]);
        sift(c, i, 0);
    }
}

static const struct candidate *best(const struct kopi_sampler *s)
{
    const struct candidate *b = &s->list[0];
    for (size_t i = 1; i < s->n; i++)
        if (better(&s->list[i], b)) b = &s->list[i];
    return b;
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

/* Expects the list in order of id. Counted are the last repeat_last_n tokens of prompt and answer. */
static void penalties(struct kopi_sampler *s)
{
    const kopi_sampling *p = &s->p;
    size_t n = s->n_tokens;
    if (p->repeat_penalty == 1 && p->presence_penalty == 0 && p->frequency_penalty == 0) return;
    if (p->repeat_last_n >= 0 && (size_t)p->repeat_last_n < n) n = (size_t)p->repeat_last_n;
    const int32_t *window = s->tokens + (s->n_tokens - n);
    for (size_t i = 0; i < n; i++) s->count[window[i]]++;
    for (size_t i = 0; i < n; i++) {
        uint32_t count = s->count[window[i]];
        if (!count) continue; /* a repeated token has had its share */
        float *l = &s->list[window[i]].logit;
        *l = *l > 0 ? *l / p->repeat_penalty : *l * p->repeat_penalty;
        *l -= (float)count * p->frequency_penalty + p->presence_penalty;
        s->count[window[i]] = 0;
    }
}

static void top_k(struct kopi_sampler *s)
{
    if (s->p.top_k <= 0 || (size_t)s->p.top_k >= s->n) return;
    size_t k = (size_t)s->p.top_k;
    best_first(s->list, s->n, k);
    s->n = k;
    s->sorted = true;
}

/* The fewest best candidates whose probabilities reach top_p, at least one. */
static void top_p(struct kopi_sampler *s)
{
    if (s->p.top_p >= 1) return;
    float max = best(s)->logit;
    double total = 0, sum = 0;
    for (size_t i = 0; i < s->n; i++) total += (double)kopi_exp(s->list[i].logit - max);
    /* The best few nearly always reach it, so sort a growing front instead of everything. */
    size_t done = 0, front = s->sorted ? s->n : 128;
    for (; done < s->n; front *= 8) {
        if (front > s->n) front = s->n;
        if (!s->sorted) best_first(s->list + done, s->n - done, front - done);
        for (; done < front; done++) {
            sum += (double)kopi_exp(s->list[done].logit - max);
            if (sum < (double)s->p.top_p * total) continue;
            s->n = done + 1;
            s->sorted = true;
            return;
        }
    }
    s->sorted = true;
}

/* Those at least min_p times as likely as the best. */
static void min_p(struct kopi_sampler *s)
{
    if (s->p.min_p <= 0) return;
    float max = best(s)->logit;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (kopi_exp(s->list[i].logit - max) >= s->p.min_p) s->list[n++] = s->list[i];
    s->n = n;
}

/* Relative to the best, so that a tiny temperature can't overflow to infinity less infinity. */
static void temperature(struct kopi_sampler *s)
{
    float max = best(s)->logit;
    for (size_t i = 0; i < s->n; i++) s->list[i].logit = (s->list[i].logit - max) / s->p.temperature;
}

static int32_t draw(const struct kopi_sampler *s)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < s->n; i++) total += (double)kopi_exp(s->list[i].logit);
    double u = kopi__random_at(s->p.seed, s->n_tokens) * total;
    for (size_t i = 0; i < s->n; i++) {
        sum += (double)kopi_exp(s->list[i].logit);
        if (sum > u) return s->list[i].id;
    }
    return best(s)->id; /* only if rounding left u at the total */
}

static void (*const chain[])(struct kopi_sampler *) = {top_k, top_p, min_p, temperature};

static kopi_status nonfinite(kopi_error *err, const char *what, size_t id, float v)
{
    char text[40];
    return kopi__fail(err, KOPI_E_NONFINITE, "%s of token %zu is %s", what, id, kopi__format_f32(v, text, sizeof text));
}

kopi_status kopi__sampler_next(struct kopi_sampler *s, const float *logits, const int32_t *tokens, size_t n,
                               int32_t *out, kopi_error *err)
{
    for (size_t i = 0; i < s->n_vocab; i++) {
        if (!isfinite(logits[i])) return nonfinite(err, "the logit", i, logits[i]);
        s->list[i] = (struct candidate){(int32_t)i, logits[i]};
    }
    s->n = s->n_vocab;
    s->sorted = false;
    s->tokens = tokens;
    s->n_tokens = n;
    penalties(s);
    for (size_t i = 0; i < s->n; i++)
        if (!isfinite(s->list[i].logit)) return nonfinite(err, "the penalised logit", i, s->list[i].logit);
    if (s->p.temperature <= 0) {
        *out = best(s)->id;
        return KOPI_OK;
    }
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) chain[i](s);
    *out = draw(s);
    return KOPI_OK;
}
