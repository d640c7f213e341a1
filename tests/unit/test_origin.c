/* The properties that kopi's origin tested, here for every backend, and the promise of docs/numerics.md: the logits of
 * a token depend on the tokens before it and on nothing else. */
#include "run/model.h"
#include "tests/support/load.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCAB = 96, N = 33 };

static const struct tiny_llama base = {
    .n_vocab = VOCAB, .n_embd = 64, .n_ff = 96, .context = 64, .dtype = KOPI_DTYPE_F32, .seed = 1};
static char file[512];

static const char *write_model(uint32_t dtype, enum tiny_output output)
{
    struct tiny_llama c = base;
    c.dtype = dtype;
    c.output = output;
    tiny_path(file, "tiny.gguf");
    tiny_llama_model(file, &c);
    return file;
}

static void prompt(int32_t ids[N])
{
    for (int i = 0; i < N; i++) ids[i] = (i * 37 + i * i) % VOCAB;
}

/* Logits of all N tokens in one call. */
static float *reference(kopi_model *m)
{
    kopi_cache *c;
    int32_t ids[N];
    float *logits = calloc((size_t)N * VOCAB, sizeof *logits);
    prompt(ids);
    ck_assert_int_eq(kopi_cache_new(m, &c, NULL), KOPI_OK);
    ck_assert_int_eq(kopi_model_forward(m, c, ids, N, logits, NULL), KOPI_OK);
    kopi_cache_free(c);
    return logits;
}

static void all_finite(const float *v, size_t n)
{
    double spread = 0;
    for (size_t i = 0; i < n; i++) {
        ck_assert(isfinite(v[i]));
        spread += fabs((double)v[i]);
    }
    ck_assert(spread / (double)n > 0.01); /* not all zero */
}

static float *logits_of(const char *path, const char *backend, const char *const *settings)
{
    struct tiny_loaded l;
    tiny_load(&l, path, backend, settings);
    float *logits = reference(l.model);
    tiny_unload(&l);
    return logits;
}

START_TEST(end_to_end)
{
    for (const char **b = tiny_backends; *b; b++) {
        struct tiny_loaded l;
        kopi_cache *c;
        int32_t ids[N], next = 0;
        float row[VOCAB];
        prompt(ids);
        tiny_load(&l, write_model(KOPI_DTYPE_F32, TINY_OWN), *b, NULL);
        ck_assert_uint_eq(kopi_model_vocab_size(l.model), VOCAB);
        ck_assert_uint_eq(kopi_model_max_context(l.model), 64);
        float *logits = reference(l.model);
        all_finite(logits, (size_t)N * VOCAB);

        /* A greedy step, and the cache grows by exactly one. */
        ck_assert_int_eq(kopi_cache_new(l.model, &c, NULL), KOPI_OK);
        ck_assert_uint_eq(kopi_cache_length(c), 0);
        ck_assert_int_eq(kopi_model_forward_last(l.model, c, ids, N, 1, row, NULL), KOPI_OK);
        ck_assert_mem_eq(row, logits + (size_t)(N - 1) * VOCAB, sizeof row);
        ck_assert_uint_eq(kopi_cache_length(c), N);
        for (int i = 1; i < VOCAB; i++)
            if (row[i] > row[next]) next = i;
        ck_assert_int_eq(kopi_model_forward(l.model, c, &next, 1, row, NULL), KOPI_OK);
        ck_assert_uint_eq(kopi_cache_length(c), N + 1);
        all_finite(row, VOCAB);
        kopi_cache_free(c);
        free(logits);
        tiny_unload(&l);
        tiny_remove(file);
    }
}
END_TEST

START_TEST(tied_output)
{
    float *tied = logits_of(write_model(KOPI_DTYPE_F32, TINY_TIED), tiny_backends[0], NULL);
    tiny_remove(file);
    float *copy = logits_of(write_model(KOPI_DTYPE_F32, TINY_COPY), tiny_backends[0], NULL);
    tiny_remove(file);
    float *own = logits_of(write_model(KOPI_DTYPE_F32, TINY_OWN), tiny_backends[0], NULL);
    tiny_remove(file);
    all_finite(tied, (size_t)N * VOCAB);
    ck_assert_mem_eq(tied, copy, sizeof *tied * N * VOCAB); /* the same weights saved twice */
    ck_assert(memcmp(tied, own, sizeof *tied * N * VOCAB)); /* its own tensor is used where there is one */
    free(tied);
    free(copy);
    free(own);
}
END_TEST

/* In pieces of `piece` tokens, bit for bit. */
static void by_pieces(kopi_model *m, const float *want, size_t piece)
{
    kopi_cache *c;
    int32_t ids[N];
    float logits[N * VOCAB];
    prompt(ids);
    ck_assert_int_eq(kopi_cache_new(m, &c, NULL), KOPI_OK);
    for (size_t at = 0, n; at < N; at += n) {
        n = N - at < piece ? N - at : piece;
        ck_assert_int_eq(kopi_model_forward(m, c, ids + at, n, logits + at * VOCAB, NULL), KOPI_OK);
        ck_assert_uint_eq(kopi_cache_length(c), at + n);
    }
    ck_assert_msg(!memcmp(logits, want, sizeof logits), "pieces of %zu", piece);
    kopi_cache_free(c);
}

/* Two pieces, cut at every place; then back to the cut, and the rest again. */
static void by_cut(kopi_model *m, const float *want)
{
    int32_t ids[N];
    prompt(ids);
    for (size_t k = 1; k < N; k++) {
        kopi_cache *c;
        float row[VOCAB];
        ck_assert_int_eq(kopi_cache_new(m, &c, NULL), KOPI_OK);
        ck_assert_int_eq(kopi_model_forward_last(m, c, ids, k, 1, row, NULL), KOPI_OK);
        ck_assert_mem_eq(row, want + (k - 1) * VOCAB, sizeof row);
        for (int again = 0; again < 2; again++) {
            ck_assert_int_eq(kopi_model_forward_last(m, c, ids + k, N - k, 1, row, NULL), KOPI_OK);
            ck_assert_mem_eq(row, want + (size_t)(N - 1) * VOCAB, sizeof row);
            ck_assert_int_eq(kopi_cache_truncate(c, (uint32_t)k, NULL), KOPI_OK);
        }
        kopi_cache_free(c);
    }
}

static const uint32_t types[] = {KOPI_DTYPE_F32, KOPI_DTYPE_F16, KOPI_DTYPE_Q8_0};

START_TEST(same_bits_however_computed)
{
    const char *path = write_model(types[_i], TINY_OWN);
    float *want = logits_of(path, tiny_backends[0], NULL);
    static const char *const batches[] = {"1", "2", "7", "32"}, *const threads[] = {"1", "2", "3"};
    for (const char **b = tiny_backends; *b; b++)
        for (size_t i = 0; i < 12; i++) {
            char batch[64], team[64];
            snprintf(batch, sizeof batch, "models[].context.batch=%s", batches[i % 4]);
            snprintf(team, sizeof team, "backend.threads=%s", threads[i / 4]);
            struct tiny_loaded l;
            tiny_load(&l, path, *b, (const char *[]){batch, team, NULL});
            float *got = reference(l.model);
            ck_assert_msg(!memcmp(got, want, sizeof *got * N * VOCAB), "%s, %s, %s", *b, batch, team);
            free(got);
            static const size_t pieces[] = {1, 2, 7, 32};
            by_pieces(l.model, want, pieces[i / 3]);
            if (i == 3 || i == 10) by_cut(l.model, want);
            tiny_unload(&l);
        }
    free(want);
    tiny_remove(file);
}
END_TEST

/* ---- many at once ---------------------------------------------------------------------------------------------------
 */

enum { JOBS = 10 };

/* Requests that share prefixes of several lengths, greedy and sampled. ids: N of them, owned by the caller. */
static kopi_request job(int i, const int32_t *ids)
{
    kopi_request q = {
        .struct_size = sizeof q, .n_predict = i % 4 ? 9 : -1, .ids = ids + i % 3, .n_ids = 1 + (size_t)(i * 11) % 30};
    kopi_sampling_default(NULL, &q.sampling);
    q.sampling.temperature = i % 2 ? 1.5f : 0;
    q.sampling.repeat_penalty = i % 5 ? 1 : 1.3f;
    q.sampling.seed = i;
    return q;
}

static void same_result(kopi_scheduler *s, uint64_t id, const kopi_result *want, size_t *cached)
{
    kopi_result r;
    ck_assert_int_eq(kopi_scheduler_result(s, id, &r, NULL), KOPI_OK);
    ck_assert_uint_eq(r.finish, want->finish);
    ck_assert_uint_eq(r.n_generated, want->n_generated);
    ck_assert_mem_eq(r.ids, want->ids, r.n_generated * sizeof *r.ids);
    *cached += r.n_cached;
    kopi_result_clear(&r);
}

/* Packed steps, shared pages, reused caches: each request gets the tokens that it gets alone. */
START_TEST(company_changes_nothing)
{
    write_model(KOPI_DTYPE_Q8_0, TINY_OWN);
    for (const char **b = tiny_backends; *b; b++) {
        struct tiny_loaded l;
        kopi_result want[JOBS];
        kopi_scheduler *s;
        int32_t ids[N];
        prompt(ids);
        tiny_load(&l, file, *b, (const char *[]){"models[].context.parallel=3", "models[].context.batch=7", NULL});
        for (int i = 0; i < JOBS; i++) {
            kopi_cache *c;
            kopi_request q = job(i, ids);
            ck_assert_int_eq(kopi_cache_new(l.model, &c, NULL), KOPI_OK);
            ck_assert_int_eq(kopi_generate(l.model, c, &q, &want[i], NULL), KOPI_OK);
            kopi_cache_free(c);
        }
        ck_assert_int_eq(kopi_scheduler_new(l.model, &s, NULL), KOPI_OK);
        size_t cached[2] = {0};
        for (int round = 0; round < 2; round++) {
            uint64_t id[JOBS];
            size_t active = 1;
            for (int i = 0; i < JOBS || active;) { /* they arrive while others run */
                kopi_request q = job(i, ids);
                if (i < JOBS) ck_assert_int_eq(kopi_scheduler_submit(s, &q, &id[i++], NULL), KOPI_OK);
                ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
            }
            for (int i = 0; i < JOBS; i++) same_result(s, id[i], &want[i], &cached[round]);
        }
        ck_assert_uint_gt(cached[0], 10); /* prefixes were shared at all */
        kopi_scheduler_free(s);
        for (int i = 0; i < JOBS; i++) kopi_result_clear(&want[i]);
        tiny_unload(&l);
    }
    tiny_remove(file);
}
END_TEST

/* No expansion at load: the program's weights have the types of the file. */
START_TEST(weights_keep_their_type)
{
    uint64_t bytes[2];
    for (const char **b = tiny_backends; *b; b++) {
        for (int quantized = 0; quantized < 2; quantized++) {
            struct tiny_loaded l;
            kopi_backend_info info;
            uint32_t matrices = 0;
            tiny_load(&l, write_model(quantized ? KOPI_DTYPE_Q8_0 : KOPI_DTYPE_F32, TINY_OWN), *b, NULL);
            const kopi_program *p = &l.model->program->p;
            for (uint32_t i = 0; i < p->n_tensors; i++) {
                const kopi_tensor *t = kopi_tensor_at(p, (int32_t)i);
                if (t->kind != KOPI_KIND_WEIGHT || t->n_dims < 2) continue;
                ck_assert_uint_eq(t->dtype, quantized ? KOPI_DTYPE_Q8_0 : KOPI_DTYPE_F32);
                matrices++;
            }
            ck_assert_uint_eq(matrices, 2 + 2 * 7);
            float *logits = reference(l.model);
            all_finite(logits, (size_t)N * VOCAB);
            kopi_backend_device(l.model, &info);
            ck_assert_str_eq(info.name, *b);
            bytes[quantized] = info.weight_bytes;
            free(logits);
            tiny_unload(&l);
            tiny_remove(file);
        }
        ck_assert(bytes[1] <= bytes[0]); /* copies that a backend makes are no larger for being quantized */
    }
}
END_TEST

START_TEST(q8_0_is_close_to_f32)
{
    double difference = 0, size = 0;
    float *f32 = logits_of(write_model(KOPI_DTYPE_F32, TINY_OWN), tiny_backends[0], NULL);
    tiny_remove(file);
    float *q8 = logits_of(write_model(KOPI_DTYPE_Q8_0, TINY_OWN), tiny_backends[0], NULL);
    tiny_remove(file);
    for (size_t i = 0; i < (size_t)N * VOCAB; i++) {
        difference += pow((double)(q8[i] - f32[i]), 2);
        size += pow((double)f32[i], 2);
    }
    ck_assert_msg(sqrt(difference / size) < 0.03, "relative difference %g", sqrt(difference / size));
    ck_assert(difference > 0);
    free(f32);
    free(q8);
}
END_TEST

START_TEST(context_is_a_limit)
{
    for (const char **b = tiny_backends; *b; b++) {
        struct tiny_loaded l;
        kopi_cache *c;
        kopi_error e;
        int32_t ids[65] = {0};
        float before[VOCAB], after[VOCAB];
        tiny_load(&l, write_model(KOPI_DTYPE_F32, TINY_OWN), *b, NULL);
        ck_assert_int_eq(kopi_cache_new(l.model, &c, NULL), KOPI_OK);
        ck_assert_int_eq(kopi_model_forward(l.model, c, ids, 65, NULL, &e), KOPI_E_RANGE);
        ck_assert_msg(strstr(e.text, "65") && strstr(e.text, "64"), "%s", e.text);
        ck_assert_uint_eq(kopi_cache_length(c), 0);
        ck_assert_int_eq(kopi_model_forward_last(l.model, c, ids, 64, 1, before, NULL), KOPI_OK);
        ck_assert_int_eq(kopi_model_forward(l.model, c, ids, 1, NULL, &e), KOPI_E_RANGE);
        ck_assert_uint_eq(kopi_cache_length(c), 64);
        ck_assert_int_eq(kopi_cache_truncate(c, 65, &e), KOPI_E_RANGE);
        ck_assert_int_eq(kopi_cache_truncate(c, 63, NULL), KOPI_OK);
        ck_assert_int_eq(kopi_model_forward(l.model, c, (int32_t[]){VOCAB}, 1, NULL, &e), KOPI_E_INVALID);
        ck_assert_int_eq(kopi_model_forward(l.model, c, ids, 1, after, NULL), KOPI_OK);
        ck_assert_mem_eq(before, after, sizeof before);
        kopi_cache_free(c);
        tiny_unload(&l);
        tiny_remove(file);
    }
}
END_TEST

/* A real model, if KOPI_TEST_MODEL names one: loads, answers, and gives the same tokens again from a reused cache. */
START_TEST(real_model)
{
    const char *path = getenv("KOPI_TEST_MODEL");
    if (!path) {
        fputs("real_model: skipped, KOPI_TEST_MODEL is not set\n", stderr);
        return;
    }
    static const char text[] = "The capital of France is";
    struct tiny_loaded l;
    int32_t *ids;
    size_t n;
    kopi_cache *c;
    kopi_result r[2];
    int last = 0;
    while (tiny_backends[last + 1]) last++; /* the fastest */
    tiny_load(&l, path, tiny_backends[last],
              (const char *[]){"models[].context.size=256", "backend.fallback=cpu", NULL});
    ck_assert_int_eq(kopi_tokenize(l.model, text, strlen(text), KOPI_ADD_SPECIAL, &ids, &n, NULL), KOPI_OK);
    ck_assert_uint_ge(n, 4);
    ck_assert_int_eq(kopi_cache_new(l.model, &c, NULL), KOPI_OK);
    kopi_request q = {.struct_size = sizeof q, .n_predict = 12, .ids = ids, .n_ids = n};
    kopi_sampling_default(l.model, &q.sampling);
    q.sampling.temperature = 0;
    for (int i = 0; i < 2; i++) ck_assert_int_eq(kopi_generate(l.model, c, &q, &r[i], NULL), KOPI_OK);
    fprintf(stderr, "real_model: %s ->%s\n", text, r[0].text);
    ck_assert_uint_gt(r[0].n_generated, 0);
    ck_assert_uint_eq(r[0].n_cached, 0);
    ck_assert_uint_eq(r[1].n_cached, n - 1);
    ck_assert_uint_eq(r[0].n_generated, r[1].n_generated);
    ck_assert_mem_eq(r[0].ids, r[1].ids, r[0].n_generated * sizeof(int32_t));
    ck_assert_str_eq(r[0].text, r[1].text);
    kopi_result_clear(&r[0]);
    kopi_result_clear(&r[1]);
    kopi_free(ids);
    kopi_cache_free(c);
    tiny_unload(&l);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("origin");
    tcase_add_test(t, end_to_end);
    tcase_add_test(t, tied_output);
    tcase_add_loop_test(t, same_bits_however_computed, 0, sizeof types / sizeof *types);
    tcase_add_test(t, company_changes_nothing);
    tcase_add_test(t, weights_keep_their_type);
    tcase_add_test(t, q8_0_is_close_to_f32);
    tcase_add_test(t, context_is_a_limit);
    tcase_add_test(t, real_model);
    tcase_set_timeout(t, 120);
    Suite *s = suite_create("origin");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
