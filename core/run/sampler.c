#include "run/sampler.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "run/random.h"
#include "run/row.h"
#include <float.h>
#include <kopi/math.h>
#include <math.h>
#include <string.h>

struct candidate {
    int32_t id;
    float logit;
};

struct kopi_sampler {
    kopi_sampling p;
    uint32_t n_vocab;
    /* The candidates left, n of them; in order of id, or best first if sorted; NULL if greedy. */
    struct candidate *list;
    struct candidate *other; /* [n_vocab] for sort_all; NULL: all are never sorted */
    size_t n;
    bool sorted;
    uint32_t *count;     /* [n_vocab] occurrences in the window of the penalties; zero between calls; NULL: none */
    float *penalised;    /* [n_vocab] logits less the penalties; NULL: none */
    const float *logits; /* of the running call */
    const int32_t *tokens;
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

static bool greedy(const struct kopi_sampler *s) { return s->p.temperature <= 0; }
static bool cuts(const struct kopi_sampler *s) { return s->p.top_k > 0 && (uint32_t)s->p.top_k < s->n_vocab; }
/* A longer front of a row than this is had by sorting all of it, which takes the same time whatever is wanted. */
enum { MAX_FRONT = 4096 };
static bool sorts_all(const struct kopi_sampler *s) { return cuts(s) ? s->p.top_k > MAX_FRONT : s->p.top_p < 1; }
static bool penalises(const struct kopi_sampler *s)
{
    return s->p.repeat_last_n != 0 &&
           (s->p.repeat_penalty != 1 || s->p.presence_penalty != 0 || s->p.frequency_penalty != 0);
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
    if (!greedy(s)) s->list = kopi__calloc(cuts(s) && !sorts_all(s) ? (size_t)s->p.top_k : n_vocab, sizeof *s->list);
    if (!greedy(s) && sorts_all(s)) s->other = kopi__calloc(n_vocab, sizeof *s->other);
    if (penalises(s)) {
        s->count = kopi__calloc(n_vocab, sizeof *s->count);
        s->penalised = kopi__calloc(n_vocab, sizeof *s->penalised);
    }
    if ((!greedy(s) && (!s->list || (sorts_all(s) && !s->other))) || (penalises(s) && (!s->count || !s->penalised))) {
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
    kopi__free(s->other);
    kopi__free(s->count);
    kopi__free(s->penalised);
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

static void heapify(struct candidate *c, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift(c, n, i);
}

/* A heap as of `sift`, best first. */
static void sort_heap(struct candidate *c, size_t n)
{
    for (size_t i = n; i-- > 1;) {
        swap(&c[0], &c[i]);
        sift(c, i, 0);
    }
}

/* Moves the k best to the front, best first. */
static void best_first(struct candidate *c, size_t n, size_t k)
{
    heapify(c, k);
    for (size_t i = k; i < n; i++)
        if (better(&c[i], &c[0])) {
            swap(&c[i], &c[0]);
            sift(c, k, 0);
        }
    sort_heap(c, k);
}

enum { DIGITS = 3, DIGIT_BITS = 11, DIGIT_VALUES = 1 << DIGIT_BITS };

/* The digit of a number that is the greater the smaller the logit is. 0 and -0 are one logit. */
static uint32_t digit(float logit, int i)
{
    uint32_t u = kopi_f32_bits(logit + 0.0f);
    u = u >> 31 ? u : ~u & 0x7fffffffu;
    return u >> (i * DIGIT_BITS) & (DIGIT_VALUES - 1);
}

/* Turns counts into the places where each value begins. */
static void places(uint32_t *n)
{
    uint32_t sum = 0;
    for (int v = 0; v < DIGIT_VALUES; v++) {
        uint32_t count = n[v];
        n[v] = sum;
        sum += count;
    }
}

/* All tokens, best first, by a radix sort: linear however flat they are, and stable, so that of equal ones the lower id
 * stays in front. */
static void sort_all(struct kopi_sampler *s)
{
    uint32_t place[DIGITS][DIGIT_VALUES] = {0};
    struct candidate *from = s->other, *to = s->list;
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        from[i] = (struct candidate){(int32_t)i, s->logits[i]};
        for (int d = 0; d < DIGITS; d++) place[d][digit(s->logits[i], d)]++;
    }
    for (int d = 0; d < DIGITS; d++) {
        places(place[d]);
        for (uint32_t i = 0; i < s->n_vocab; i++) to[place[d][digit(from[i].logit, d)]++] = from[i];
        struct candidate *t = from;
        from = to;
        to = t;
    }
    s->sorted = true; /* the last of an odd number of passes has filled the list */
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

/* Counted are the last repeat_last_n tokens of prompt and answer. */
static kopi_status penalties(struct kopi_sampler *s, kopi_error *err)
{
    const kopi_sampling *p = &s->p;
    size_t n = s->n_tokens;
    int32_t bad = -1;
    if (!penalises(s)) return KOPI_OK;
    memcpy(s->penalised, s->logits, s->n_vocab * sizeof *s->penalised);
    s->logits = s->penalised;
    if (p->repeat_last_n >= 0 && (size_t)p->repeat_last_n < n) n = (size_t)p->repeat_last_n;
    const int32_t *window = s->tokens + (s->n_tokens - n);
    for (size_t i = 0; i < n; i++) s->count[window[i]]++;
    for (size_t i = 0; i < n; i++) {
        uint32_t count = s->count[window[i]];
        if (!count) continue; /* a repeated token has had its share */
        float *l = &s->penalised[window[i]];
        *l = *l > 0 ? *l / p->repeat_penalty : *l * p->repeat_penalty;
        *l -= (float)count * p->frequency_penalty + p->presence_penalty;
        s->count[window[i]] = 0;
        if (!isfinite(*l)) bad = window[i];
    }
    return bad < 0 ? KOPI_OK : nonfinite(err, "the penalised logit", bad, s->penalised[bad]);
}

/* Fills the list: all tokens in order of id, or the top_k best ones, best first. */
static void list_candidates(struct kopi_sampler *s)
{
    uint32_t k = cuts(s) ? (uint32_t)s->p.top_k : s->n_vocab;
    if (cuts(s) && sorts_all(s)) {
        sort_all(s);
        s->n = k;
        return;
    }
    for (uint32_t i = 0; i < k; i++) s->list[i] = (struct candidate){(int32_t)i, s->logits[i]};
    s->n = k;
    s->sorted = cuts(s);
    if (!s->sorted) return;
    heapify(s->list, k);
    /* Ids go up, so one that only equals the worst of the list is worse. */
    for (uint32_t i = k; (i = kopi__row_above(s->logits, i, s->n_vocab, s->list[0].logit)) < s->n_vocab; i++) {
        s->list[0] = (struct candidate){(int32_t)i, s->logits[i]};
        sift(s->list, k, 0);
    }
    sort_heap(s->list, k);
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
        if (front > MAX_FRONT && !s->sorted) sort_all(s), front = s->n;
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

static void (*const chain[])(struct kopi_sampler *) = {list_candidates, top_p, min_p, temperature};

kopi_status kopi__sampler_next(struct kopi_sampler *s, const float *logits, const int32_t *tokens, size_t n,
                               int32_t *out, kopi_error *err)
{
    bool finite;
    uint32_t top = kopi__row_best(logits, s->n_vocab, &finite);
    if (!finite) {
        top = kopi__row_nonfinite(logits, s->n_vocab);
        return nonfinite(err, "the logit", (int32_t)top, logits[top]);
    }
    s->logits = logits;
    s->tokens = tokens;
    s->n_tokens = n;
    kopi_status st = penalties(s, err);
    if (st != KOPI_OK) return st;
    if (greedy(s)) {
        *out = (int32_t)(s->logits == logits ? top : kopi__row_best(s->logits, s->n_vocab, &finite));
        return KOPI_OK;
    }
    for (size_t i = 0; i < sizeof chain / sizeof *chain; i++) chain[i](s);
    *out = draw(s);
    return KOPI_OK;
}
