/* Unit tests of core/run/sampler, row and random. Expected sets come from a naive chain in double. */
#include "base/mem.h"
#include "run/random.h"
#include "run/row.h"
#include "run/sampler.h"
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { V = 300 };

static kopi_sampling neutral(float temperature)
{
    return (kopi_sampling){.struct_size = sizeof(kopi_sampling),
                           .temperature = temperature,
                           .top_p = 1,
                           .repeat_penalty = 1,
                           .repeat_last_n = -1,
                           .seed = 1};
}

static kopi_status sample(const kopi_sampling *p, const float *logits, uint32_t n_vocab, const int32_t *tokens,
                          size_t n, int32_t *id, kopi_error *err)
{
    struct kopi_sampler *s;
    kopi_status st = kopi__sampler_new(p, n_vocab, &s, err);
    if (st != KOPI_OK) return st;
    st = kopi__sampler_next(s, logits, tokens, n, id, err);
    kopi__sampler_free(s);
    return st;
}

/* ---- row 34: a logit that is not finite is an error, alone and chained, greedy and not --------------------------- */

START_TEST(nonfinite_is_an_error)
{
    static const float row[][3] = {{NAN, 1, 2},      {1, NAN, 2},     {1, 2, NAN},
                                   {INFINITY, 1, 2}, {NAN, NAN, NAN}, {-INFINITY, -INFINITY, -INFINITY},
                                   {1, -INFINITY, 2}};
    kopi_sampling p[8];
    for (int i = 0; i < 8; i++) p[i] = neutral(i % 2 ? 1 : 0);
    p[2].top_k = p[3].top_k = 2;
    p[4].top_p = p[5].top_p = 0.5f;
    p[6].min_p = p[7].min_p = 0.1f;
    p[6].repeat_penalty = p[7].repeat_penalty = 1.5f;
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int k = 0; k < 8; k++) {
            int32_t id = -7;
            kopi_error e;
            ck_assert_int_eq(sample(&p[k], row[i], 3, (int32_t[]){0, 2}, 2, &id, &e), KOPI_E_NONFINITE);
            ck_assert_int_eq(id, -7);
            ck_assert(strstr(e.text, "token"));
        }
    /* Penalties that overflow are reported as well. */
    kopi_sampling over = neutral(0);
    over.repeat_penalty = 10;
    int32_t id;
    ck_assert_int_eq(sample(&over, (float[]){-3e38f, 1}, 2, (int32_t[]){0}, 1, &id, NULL), KOPI_E_NONFINITE);
}
END_TEST

START_TEST(greedy)
{
    kopi_sampling p = neutral(0);
    int32_t id;
    ck_assert_int_eq(sample(&p, (float[]){1, 3, 3, 2}, 4, NULL, 0, &id, NULL), KOPI_OK);
    ck_assert_int_eq(id, 1); /* ties: the lower id */
    p.temperature = -1;
    ck_assert_int_eq(sample(&p, (float[]){-5, -3, -3, -3}, 4, NULL, 0, &id, NULL), KOPI_OK);
    ck_assert_int_eq(id, 1);
    ck_assert_int_eq(sample(&p, (float[]){2}, 1, NULL, 0, &id, NULL), KOPI_OK);
    ck_assert_int_eq(id, 0);
}
END_TEST

/* ---- row 35: penalties ------------------------------------------------------------------------------------------- */

/* The value of logits[id] after the penalties lies at `want`: a rival there loses the tie (higher id), one just above
 * wins. */
static void value_is(const kopi_sampling *p, const float *logits3, const int32_t *tokens, size_t n, int id, float want)
{
    for (int above = 0; above < 2; above++) {
        float l[4] = {-100, -100, -100, above ? nextafterf(want, INFINITY) : want};
        l[id] = logits3[id];
        int32_t got;
        ck_assert_int_eq(sample(p, l, 4, tokens, n, &got, NULL), KOPI_OK);
        ck_assert_msg(got == (above ? 3 : id), "id %d at %a: token %d, above %d", id, (double)want, got, above);
    }
}

START_TEST(penalties)
{
    static const float l[3] = {-1, -2, 1.5f};
    static const int32_t history[] = {0, 2}, repeated[] = {0, 2, 0, 2, 2};
    kopi_sampling p = neutral(0);
    p.repeat_penalty = 1.5f;
    value_is(&p, l, history, 2, 0, -1.5f);
    value_is(&p, l, history, 2, 1, -2);
    value_is(&p, l, history, 2, 2, 1.0f);
    value_is(&p, l, repeated, 5, 0, -1.5f); /* once per distinct token */
    value_is(&p, l, repeated, 5, 2, 1.0f);
    p.repeat_last_n = 1;
    value_is(&p, l, history, 2, 0, -1); /* outside the window */
    value_is(&p, l, history, 2, 2, 1.0f);
    p.repeat_last_n = 0;
    value_is(&p, l, history, 2, 2, 1.5f);
    p.repeat_last_n = 64; /* more than there is */
    value_is(&p, l, history, 2, 2, 1.0f);
    p = neutral(0);
    p.presence_penalty = 0.5f;
    p.frequency_penalty = 0.25f;
    value_is(&p, l, repeated, 5, 2, 1.5f - 0.5f - 0.75f);
    value_is(&p, l, repeated, 5, 0, -1 - 0.5f - 0.5f);
    value_is(&p, l, repeated, 5, 1, -2);
    p = neutral(0);
    value_is(&p, l, repeated, 5, 2, 1.5f); /* 1.0 is off, to the bit */
}
END_TEST

/* ---- the chain against a naive one ------------------------------------------------------------------------------- */

struct pair {
    double logit;
    int id;
};
static int descending(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id - y->id;
}

/* Probability of each token by the definitions; zero where cut. */
static void naive(const kopi_sampling *p, const float *logits, double *prob)
{
    struct pair c[V];
    size_t n = V;
    for (int i = 0; i < V; i++) c[i] = (struct pair){(double)logits[i], i}, prob[i] = 0;
    qsort(c, n, sizeof *c, descending);
    if (p->top_k > 0 && (size_t)p->top_k < n) n = (size_t)p->top_k;
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) total += exp(c[i].logit - c[0].logit);
    for (size_t i = 0; i < n && p->top_p < 1; i++)
        if ((sum += exp(c[i].logit - c[0].logit)) >= (double)p->top_p * total) n = i + 1;
    for (size_t i = 0; i < n; i++)
        if (exp(c[i].logit - c[0].logit) < (double)p->min_p) n = i;
    total = 0;
    for (size_t i = 0; i < n; i++) total += prob[c[i].id] = exp((c[i].logit - c[0].logit) / (double)p->temperature);
    for (size_t i = 0; i < n; i++) prob[c[i].id] /= total;
}

static const struct {
    int32_t top_k;
    float top_p, min_p, temperature;
} settings[] = {{0, 1, 0, 1},
                {40, 0.95f, 0.05f, 0.8f},
                {5, 1, 0, 1},
                {0, 0.5f, 0, 1},
                {0, 0.9999f, 0, 2},
                {0, 1, 0.2f, 1},
                {1, 1, 0, 5},
                {0, 0, 0, 1},
                {299, 0.9f, 0.01f, 1.5f},
                {1000, 1, 1, 1},
                {-1, 0.99f, 0, 3}};

START_TEST(frequencies_are_the_probabilities)
{
    enum { N = 40000 };
    float logits[V];
    double prob[V];
    int seen[V] = {0};
    for (int i = 0; i < V; i++) logits[i] = (float)(4 * sin(i * 1.7) + (i % 7) * 0.3);
    kopi_sampling p = neutral(settings[_i].temperature);
    p.top_k = settings[_i].top_k;
    p.top_p = settings[_i].top_p;
    p.min_p = settings[_i].min_p;
    naive(&p, logits, prob);
    struct kopi_sampler *s;
    int32_t *tokens = kopi__calloc(N, sizeof *tokens);
    ck_assert_int_eq(kopi__sampler_new(&p, V, &s, NULL), KOPI_OK);
    for (size_t n = 0; n < N; n++) {
        int32_t id;
        ck_assert_int_eq(kopi__sampler_next(s, logits, tokens, n, &id, NULL), KOPI_OK);
        ck_assert(id >= 0 && id < V);
        seen[id]++;
    }
    for (int i = 0; i < V; i++) {
        double want = prob[i] * N, slack = 5 * sqrt(want) + 1; /* five standard deviations, fixed seed */
        if (prob[i] <= 0) ck_assert_int_eq(seen[i], 0);
        else ck_assert_msg(fabs(seen[i] - want) <= slack, "token %d: %d seen, %g expected", i, seen[i], want);
    }
    kopi__sampler_free(s);
    kopi__free(tokens);
}
END_TEST

/* ---- row 39: seeds ----------------------------------------------------------------------------------------------- */

static void answer(int64_t seed, int32_t *ids, size_t n)
{
    float logits[V];
    for (int i = 0; i < V; i++) logits[i] = (float)sin(i);
    kopi_sampling p = neutral(1);
    p.seed = seed;
    struct kopi_sampler *s;
    ck_assert_int_eq(kopi__sampler_new(&p, V, &s, NULL), KOPI_OK);
    ck_assert_int_eq(kopi__sampler_seed(s), seed);
    for (size_t i = 0; i < n; i++) ck_assert_int_eq(kopi__sampler_next(s, logits, ids, i, &ids[i], NULL), KOPI_OK);
    kopi__sampler_free(s);
}

START_TEST(same_seed_same_tokens)
{
    static const int64_t seeds[] = {0, 1, 7, 1ll << 31, 1ll << 32, INT64_MAX, INT64_MIN, -2};
    int32_t a[8][20], b[20];
    for (size_t i = 0; i < 8; i++) {
        answer(seeds[i], a[i], 20);
        answer(seeds[i], b, 20);
        ck_assert_mem_eq(a[i], b, sizeof b);
        for (size_t k = 0; k < i; k++) ck_assert(memcmp(a[i], a[k], sizeof b));
    }
}
END_TEST

START_TEST(random_seed_is_reported)
{
    kopi_sampling p = neutral(1);
    int64_t seen[3];
    p.seed = -1;
    for (int i = 0; i < 3; i++) {
        struct kopi_sampler *s;
        ck_assert_int_eq(kopi__sampler_new(&p, V, &s, NULL), KOPI_OK);
        seen[i] = kopi__sampler_seed(s);
        ck_assert(seen[i] >= 0 && seen[i] < 1ll << 32);
        kopi__sampler_free(s);
    }
    ck_assert(seen[0] != seen[1] || seen[1] != seen[2]);
}
END_TEST

/* The number of a position does not depend on which numbers were asked before, and neighbours are unrelated. */
START_TEST(random_is_keyed)
{
    double mean = 0, product = 0;
    int bins[16] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        double u = kopi__random_at(42, i), v = kopi__random_at(43, i);
        ck_assert(u >= 0 && u < 1);
        mean += u / 100000;
        product += (u - 0.5) * (v - 0.5) / 100000;
        bins[(int)(u * 16)]++;
    }
    ck_assert_double_eq_tol(mean, 0.5, 0.005);
    ck_assert_double_eq_tol(product, 0, 0.002);
    for (int i = 0; i < 16; i++) ck_assert_int_lt(abs(bins[i] - 6250), 400);
    double first = kopi__random_at(42, 5);
    kopi__random_at(1, 1);
    ck_assert(kopi__random_at(42, 5) == first);
}
END_TEST

START_TEST(refuses_bad_settings)
{
    static const struct {
        size_t field;
        float v;
        const char *name;
    } bad[] = {{offsetof(kopi_sampling, temperature), NAN, "temperature"},
               {offsetof(kopi_sampling, temperature), INFINITY, "temperature"},
               {offsetof(kopi_sampling, top_p), -0.1f, "top_p"},
               {offsetof(kopi_sampling, top_p), 1.5f, "top_p"},
               {offsetof(kopi_sampling, min_p), 2, "min_p"},
               {offsetof(kopi_sampling, repeat_penalty), 0, "repeat_penalty"},
               {offsetof(kopi_sampling, repeat_penalty), -1, "repeat_penalty"},
               {offsetof(kopi_sampling, presence_penalty), NAN, "presence_penalty"},
               {offsetof(kopi_sampling, frequency_penalty), -INFINITY, "frequency_penalty"}};
    struct kopi_sampler *s;
    kopi_error e;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kopi_sampling p = neutral(1);
        memcpy((char *)&p + bad[i].field, &bad[i].v, sizeof bad[i].v);
        ck_assert_int_eq(kopi__sampler_new(&p, V, &s, &e), KOPI_E_INVALID);
        ck_assert_msg(strstr(e.text, bad[i].name), "%s", e.text);
    }
    kopi_sampling p = neutral(1);
    p.top_k = -2;
    ck_assert_int_eq(kopi__sampler_new(&p, V, &s, &e), KOPI_E_INVALID);
    ck_assert_str_eq(e.text, "sampling: top_k is -2, allowed is -1 to 2147483647");
    p = neutral(1);
    p.repeat_last_n = -2;
    ck_assert_int_eq(kopi__sampler_new(&p, V, &s, &e), KOPI_E_INVALID);
    p = neutral(1);
    p.struct_size = 0;
    ck_assert_int_eq(kopi__sampler_new(&p, V, &s, &e), KOPI_E_INVALID);
}
END_TEST

/* A tiny temperature is greedy, a huge one uniform; neither leaves the numbers. */
START_TEST(extreme_temperatures)
{
    float logits[V] = {0};
    logits[17] = 1e-3f;
    for (size_t n = 0; n < 50; n++) {
        kopi_sampling p = neutral(1e-30f);
        int32_t id, tokens[50] = {0};
        ck_assert_int_eq(sample(&p, logits, V, tokens, n, &id, NULL), KOPI_OK);
        ck_assert_int_eq(id, 17);
        p.temperature = 1e30f;
        ck_assert_int_eq(sample(&p, logits, V, tokens, n, &id, NULL), KOPI_OK);
        ck_assert(id >= 0 && id < V);
    }
}
END_TEST

START_TEST(out_of_memory)
{
    kopi_sampling p = neutral(1);
    p.presence_penalty = 1;
    p.top_p = 0.9f;
    for (uint64_t n = 1; n <= 6; n++) {
        struct kopi_sampler *s;
        kopi__mem_fail_at(n);
        kopi_status st = kopi__sampler_new(&p, V, &s, NULL);
        kopi__mem_fail_at(0);
        ck_assert_int_eq(st, n <= 5 ? KOPI_E_NOMEM : KOPI_OK);
        if (st == KOPI_OK) kopi__sampler_free(s);
    }
}
END_TEST

/* ---- long rows: blocks, lanes and their ends, many equal values -------------------------------------------------- */

enum { LONG = 2500, LONGEST = 20000 };

static void random_row(float *x, uint32_t n, uint32_t *state)
{
    for (uint32_t i = 0; i < n; i++) {
        *state = *state * 1664525u + 1013904223u;
        x[i] = (float)((*state >> 20) % 19) - 9; /* few values */
        if (x[i] == 0 && i % 2) x[i] = -0.0f;
    }
}

START_TEST(long_rows)
{
    static float x[LONG];
    uint32_t state = 1;
    for (uint32_t n = 1; n <= LONG; n += n < 40 ? 1 : 97) {
        bool finite;
        uint32_t best = 0;
        random_row(x, n, &state);
        for (uint32_t i = 0; i < n; i++)
            if (x[i] > x[best]) best = i;
        ck_assert_uint_eq(kopi__row_best(x, n, &finite), best);
        ck_assert(finite);
        ck_assert_uint_eq(kopi__row_nonfinite(x, n), n);
        for (uint32_t from = 0; from < n; from += 5) {
            uint32_t i = from;
            while (i < n && !(x[i] > 8)) i++;
            ck_assert_uint_eq(kopi__row_above(x, from, n, 8), i);
        }
        static const float bad[] = {NAN, INFINITY, -INFINITY};
        for (uint32_t i = 0; i < n; i += 1 + n / 60) {
            float was = x[i];
            x[i] = bad[i % 3];
            kopi__row_best(x, n, &finite);
            ck_assert(!finite);
            ck_assert_uint_eq(kopi__row_nonfinite(x, n), i);
            x[i] = was;
        }
    }
    bool finite;
    for (int i = 0; i < LONG; i++) x[i] = -FLT_MAX;
    ck_assert(kopi__row_best(x, LONG, &finite) == 0 && finite);
}
END_TEST

static const float *ordered;
static int by_logit(const void *a, const void *b)
{
    int32_t i = *(const int32_t *)a, k = *(const int32_t *)b;
    return ordered[i] != ordered[k] ? (ordered[i] < ordered[k] ? 1 : -1) : i - k;
}

/* At a temperature without end the k best are equally likely, in their order: the draw names one by its place. */
START_TEST(long_rows_keep_the_best)
{
    static float x[LONGEST];
    static int32_t order[LONGEST], tokens[64];
    uint32_t state = 2;
    for (int round = 0; round < 80; round++) {
        uint32_t n_vocab = round < 40 ? LONG : LONGEST;
        kopi_sampling p = neutral(1e30f);
        struct kopi_sampler *s;
        p.top_k = 1 + round * round * (round < 40 ? 1 : 3); /* up to 18724 */
        random_row(x, n_vocab, &state);
        for (uint32_t i = 0; i < n_vocab; i++) order[i] = (int32_t)i;
        ordered = x;
        qsort(order, n_vocab, sizeof *order, by_logit);
        ck_assert_int_eq(kopi__sampler_new(&p, n_vocab, &s, NULL), KOPI_OK);
        for (size_t n = 0; n < 64; n++) {
            int32_t id;
            ck_assert_int_eq(kopi__sampler_next(s, x, tokens, n, &id, NULL), KOPI_OK);
            ck_assert_int_eq(id, order[(int)(kopi__random_at(p.seed, n) * p.top_k)]);
        }
        kopi__sampler_free(s);
    }
}
END_TEST

/* All logits are equal, 0 and -0: top_p keeps the lowest ids, however many it takes. */
START_TEST(flat_rows)
{
    static float x[LONGEST];
    static int32_t tokens[64];
    for (int i = 0; i < LONGEST; i++) x[i] = i % 3 ? 0.0f : -0.0f;
    for (int round = 0; round < 20; round++) {
        kopi_sampling p = neutral(1);
        struct kopi_sampler *s;
        p.top_p = 0.001f + (float)round * 0.05f;
        double kept = ceil((double)p.top_p * LONGEST);
        ck_assert_int_eq(kopi__sampler_new(&p, LONGEST, &s, NULL), KOPI_OK);
        for (size_t n = 0; n < 64; n++) {
            int32_t id;
            ck_assert_int_eq(kopi__sampler_next(s, x, tokens, n, &id, NULL), KOPI_OK);
            ck_assert_int_eq(id, (int)(kopi__random_at(p.seed, n) * kept));
        }
        kopi__sampler_free(s);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sampler");
    tcase_add_test(t, nonfinite_is_an_error);
    tcase_add_test(t, greedy);
    tcase_add_test(t, penalties);
    tcase_add_loop_test(t, frequencies_are_the_probabilities, 0, sizeof settings / sizeof *settings);
    tcase_add_test(t, same_seed_same_tokens);
    tcase_add_test(t, random_seed_is_reported);
    tcase_add_test(t, random_is_keyed);
    tcase_add_test(t, refuses_bad_settings);
    tcase_add_test(t, extreme_temperatures);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, long_rows);
    tcase_add_test(t, long_rows_keep_the_best);
    tcase_add_test(t, flat_rows);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("sampler");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
