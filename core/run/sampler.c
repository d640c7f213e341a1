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

/* Lists are in order of id, so the first of equal ones is the lower id, or best first. */
static const struct candidate *best(const struct kopi_sampler *s)
{
    const struct candidate *b = &s->list[0];
    for (size_t i = 1; i < s->n && !s->sorted; i++)
        if (s->list[i].logit > b->logit) b = &s->list[i];
    return b;
}

/* e^d for d <= 0, to 1e-6: kopi_exp without its fused operations, which are slow where the compiler may not assume
 * them. */
static float weight(float d)
{
    if (d < KOPI_EXP_LO) return 0;
    float z = d * KOPI_EXP_LOG2E + KOPI_EXP_MAGIC, n = z - KOPI_EXP_MAGIC;
    float r = (d - n * KOPI_EXP_LN2_HI) - n * KOPI_EXP_LN2_LO;
    float p = ((KOPI_EXP_C6 * r + KOPI_EXP_C5) * r + KOPI_EXP_C4) * r + KOPI_EXP_C3;
    p = ((p * r + KOPI_EXP_C2) * r + 1) * r + 1;
    return p * kopi_bits_f32((kopi_f32_bits(z) << 23) + 0x3f800000u);
}

/* ---- the chain --------------------------------------------------------------------------------------------------- */

static kopi_status nonfinite(kopi_error *err, const char *what, int32_t id, float v)
{
    char text[40];
    return kopi__fail(err, KOPI_E_NONFINITE, "%s of token %d is %s", what, id, kopi__format_f32(v, text, sizeof text));
}

/* Expects the list in order of id. Counted are the last repeat_last_n tokens of prompt and answer. */
static kopi_status penalties(struct kopi_sampler *s, kopi_error *err)
{
    const kopi_sampling *p = &s->p;
    size_t n = s->n_tokens;
    int32_t bad = -1;
    if (p->repeat_penalty == 1 && p->presence_penalty == 0 && p->frequency_penalty == 0) return KOPI_OK;
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
        if (!isfinite(*l)) bad = window[i];
    }
    return bad < 0 ? KOPI_OK : nonfinite(err, "the penalised logit", bad, s->list[bad].logit);
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
    for (size_t i = 0; i < s->n; i++) total += (double)weight(s->list[i].logit - max);
    /* The best few nearly always reach it, so sort a growing front instead of everything. */
    size_t done = 0, front = s->sorted ? s->n : 128;
    for (; done < s->n; front *= 8) {
        if (front > s->n) front = s->n;
        if (!s->sorted) best_first(s->list + done, s->n - done, front - done);
        for (; done < front; done++) {
            sum += (double)weight(s->list[done].logit - max);
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
        if (weight(s->list[i].logit - max) >= s->p.min_p) s->list[n++] = s->list[i];
    s->n = n;
}

/* The logits become weights, e^(logit / temperature) relative to the best: no temperature, however small, overflows. */
static void temperature(struct kopi_sampler *s)
{
    float max = best(s)->logit;
    for (size_t i = 0; i < s->n; i++) s->list[i].logit = weight((s->list[i].logit - max) / s->p.temperature);
}

static int32_t draw(const struct kopi_sampler *s)
{
    double total = 0, sum = 0;
    for (size_t i = 0; i < s->n; i++) total += (double)s->list[i].logit;
    double u = kopi__random_at(s->p.seed, s->n_tokens) * total;
    for (size_t i = 0; i < s->n; i++) {
        sum += (double)s->list[i].logit;
        if (sum > u) return s->list[i].id;
    }
    return best(s)->id; /* not reached: u is below the total, which is the same sum */
}

static void (*const chain[])(struct kopi_sampler *) = {top_k, top_p, min_p, temperature};

/* Fills the list in order of id. Two passes, the first without a branch: rows are long and the fault is rare. */
static kopi_status fill(struct kopi_sampler *s, const float *logits, kopi_error *err)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        bad |= (kopi_f32_bits(logits[i]) & 0x7f800000u) == 0x7f800000u;
        s->list[i] = (struct candidate){(int32_t)i, logits[i]};
    }
    for (uint32_t i = 0; i < s->n_vocab && bad; i++)
        if (!isfinite(logits[i])) return nonfinite(err, "the logit", (int32_t)i, logits[i]);
    s->n = s->n_vocab;
    s->sorted = false;
    return KOPI_OK;
}

kopi_status kopi__sampler_next(struct kopi_sampler *s, const float *logits, const int32_t *tokens, size_t n,
                               int32_t *out, kopi_error *err)
{
    s->tokens = tokens;
    s->n_tokens = n;
    kopi_status st = fill(s, logits, err);
    if (st == KOPI_OK) st = penalties(s, err);
    if (st != KOPI_OK) return st;
    if (s->p.temperature <= 0) {
        *out = best(s)->id;
        return KOPI_OK;
    }
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) chain[i](s);
    *out = draw(s);
    return KOPI_OK;
}
