/* A whole model on a device whose memory the host can't see: the bits of cpu, with one sequence and several, shared
 * prefixes and rollback; and what is said when such a backend lacks something. */
#include "backend/plugin.h"
#include "run/cache.h"
#include "run/step.h"
#include "tests/support/load.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 90, MAX_VOCAB = 512 }; /* N: more than one page */

static const char *const devices[] = {"fake-device", "fake-canonical"};
#define DIRS "plugin_dirs=" BUILD "/.libs:" BUILD "/tests/backend/.libs"
static const char *const f32[] = {DIRS, "models[].context.size=128", "models[].context.parallel=3",
                                  "models[].context.batch=64", NULL};
static const char *const f16[] = {DIRS,
                                  "models[].context.size=128",
                                  "models[].context.parallel=3",
                                  "models[].kv.type_k=f16",
                                  "models[].kv.type_v=f16",
                                  NULL};
static const char *const *const settings[] = {f32, f16};

static const char *const files[] = {"llama-gqa-Q4_K_M.gguf", "gemma3-Q4_0.gguf", "qwen2-untied-yarn-Q5_0.gguf"};

static const char *file(int i, char *buf, size_t n)
{
    snprintf(buf, n, SOURCE "/tests/data/%s", files[i]);
    return buf;
}

static int32_t id(const kopi_model *m, int i)
{
    return (int32_t)((uint32_t)(i * 37 + i * i) % kopi_model_vocab_size(m));
}

static void forward(kopi_model *m, kopi_cache *c, int first, int n, float *rows)
{
    kopi_error e;
    int32_t ids[N];
    for (int i = 0; i < n; i++) ids[i] = id(m, first + i);
    if (kopi_model_forward(m, c, ids, (size_t)n, rows, &e) != KOPI_OK) ck_abort_msg("%s", e.text);
}

static kopi_cache *new_cache(kopi_model *m)
{
    kopi_cache *c;
    ck_assert_int_eq(kopi_cache_new(m, &c, NULL), KOPI_OK);
    return c;
}

/* Room for everything that a scenario computes; rows are vocab values each. */
struct result {
    float *rows;
    size_t n, vocab;
};
static float *rows_of(struct result *r, const kopi_model *m, size_t n)
{
    r->vocab = kopi_model_vocab_size(m);
    ck_assert_uint_le(r->vocab, MAX_VOCAB);
    if (!r->rows) r->rows = calloc((size_t)4 * N * MAX_VOCAB, sizeof *r->rows);
    float *at = r->rows + r->n * r->vocab;
    r->n += n;
    ck_assert(r->rows && r->n <= 4 * N);
    return at;
}

/* ---- scenarios --------------------------------------------------------------------------------------------------- */

static void one_sequence(kopi_model *m, struct result *r)
{
    kopi_cache *c = new_cache(m);
    forward(m, c, 0, 70, rows_of(r, m, 70));
    for (int i = 70; i < N; i++) forward(m, c, i, 1, rows_of(r, m, 1));
    kopi_cache_free(c);
}

/* Three sequences of other lengths in one step, then one token each. */
static void several_sequences(kopi_model *m, struct result *r)
{
    static const int len[] = {5, 30, 17};
    kopi_cache *c[3];
    struct kopi_step *st;
    kopi_error e;
    ck_assert_int_eq(kopi__step_new(m, &st, NULL), KOPI_OK);
    for (int s = 0; s < 3; s++) c[s] = new_cache(m);
    for (int round = 0; round < 4; round++) {
        size_t n = 0;
        kopi__step_clear(st);
        for (int s = 0; s < 3; s++) {
            int32_t ids[N];
            int k = round ? 1 : len[s];
            for (int i = 0; i < k; i++) ids[i] = id(m, 11 * s + i + (round ? len[s] + round : 0));
            if (kopi__step_add(st, c[s]->seq, ids, (uint32_t)k, s == 1 ? (uint32_t)k : 1, &e) != KOPI_OK)
                ck_abort_msg("%s", e.text);
            n += s == 1 ? (size_t)k : 1;
        }
        if (kopi__step_run(st, rows_of(r, m, n), &e) != KOPI_OK) ck_abort_msg("%s", e.text);
    }
    for (int s = 0; s < 3; s++) kopi_cache_free(c[s]);
    kopi__step_free(st);
}

/* b shares a beginning of a that ends within a page; both go on, and a goes back and on again. Without a copy of that
 * page the one would read what the other wrote. */
static void shared_prefix_and_rollback(kopi_model *m, struct result *r)
{
    kopi_cache *a = new_cache(m), *b = new_cache(m);
    kopi_error e;
    forward(m, a, 0, 75, rows_of(r, m, 75));
    if (kopi__cache_share(b, a, 70, &e) != KOPI_OK) ck_abort_msg("%s", e.text);
    forward(m, b, 30, 9, rows_of(r, m, 9));
    forward(m, a, 50, 9, rows_of(r, m, 9));
    forward(m, b, 60, 9, rows_of(r, m, 9));
    ck_assert_int_eq(kopi_cache_truncate(a, 40, NULL), KOPI_OK);
    forward(m, a, 3, 40, rows_of(r, m, 40));
    forward(m, b, 80, 2, rows_of(r, m, 2));
    kopi_cache_free(a);
    kopi_cache_free(b);
}

static void (*const scenarios[])(kopi_model *m, struct result *r) = {one_sequence, several_sequences,
                                                                     shared_prefix_and_rollback};
enum { N_FILES = sizeof files / sizeof *files, N_SCENARIOS = sizeof scenarios / sizeof *scenarios };

static struct result run(const char *path, const char *backend, const char *const *set, int scenario)
{
    struct tiny_loaded l;
    struct result r = {0};
    tiny_load(&l, path, backend, set);
    scenarios[scenario](l.model, &r);
    tiny_unload(&l);
    return r;
}

static void same_as_cpu(const char *path, int scenario)
{
    for (size_t s = 0; s < 2; s++) {
        struct result want = run(path, "cpu", settings[s], scenario);
        for (size_t d = 0; d < 2; d++) {
            struct result have = run(path, devices[d], settings[s], scenario);
            ck_assert_uint_eq(want.n, have.n);
            ck_assert_mem_eq(want.rows, have.rows, want.n * want.vocab * sizeof *want.rows);
            free(have.rows);
        }
        free(want.rows);
    }
}

START_TEST(bits_of_cpu)
{
    char path[512];
    for (int s = 0; s < N_SCENARIOS; s++) same_as_cpu(file(_i, path, sizeof path), s);
}
END_TEST

/* One weight with two uses. */
START_TEST(tied_embedding)
{
    const struct tiny_llama c = {.n_vocab = 96,
                                 .n_embd = 64,
                                 .n_ff = 96,
                                 .context = 128,
                                 .dtype = KOPI_DTYPE_F16,
                                 .output = TINY_TIED,
                                 .seed = 3};
    char path[512];
    tiny_path(path, "tiny.gguf");
    tiny_llama_model(path, &c);
    same_as_cpu(path, 0);
    tiny_remove(path);
}
END_TEST

/* ---- refusals ---------------------------------------------------------------------------------------------------- */

static void refused(const char *const *set, kopi_status status, const char *const *texts)
{
    struct tiny_loaded l;
    char path[512];
    kopi_error e;
    ck_assert_int_eq(tiny_try(&l, file(0, path, sizeof path), "fake-device", set, &e), status);
    for (; *texts; texts++) ck_assert_msg(strstr(e.text, *texts), "'%s' is not in: %s", *texts, e.text);
    tiny_unload(&l);
}

START_TEST(no_fallback_shares_its_memory)
{
    static const char *const set[] = {DIRS, "backend.fallback=cpu", "backend.options.fake-device.without=NORM", NULL};
    refused(set, KOPI_E_BACKEND, (const char *const[]){"fake-device", "cannot run NORM", "not visible", NULL});
}
END_TEST

/* The tables of the loaded plugin, to be changed: every later load of the file has them. */
static kopi_backend_ops *tables(void)
{
    const struct kopi_plugin_search s = {.path = BUILD "/tests/backend/.libs/kopi-fake-device.so"};
    const struct kopi_plugin_handle *h;
    kopi_error e;
    if (kopi__plugin_load(&s, &h, &e) != KOPI_OK) ck_abort_msg("%s", e.text);
    return (kopi_backend_ops *)(uintptr_t)&h->ops;
}

START_TEST(a_device_without_what_it_needs)
{
    kopi_backend_ops *o = tables(), all = *o;
    o->buf_alloc = NULL;
    refused(f32, KOPI_E_BACKEND, (const char *const[]){"fake-device", "not visible to the host", "buf_", NULL});
    *o = all;
    o->weight_import = NULL;
    refused(f32, KOPI_E_BACKEND, (const char *const[]){"weight_import", NULL});
    *o = all;
    o->prepare = NULL;
    refused(f32, KOPI_E_BACKEND, (const char *const[]){"prepare", NULL});
    *o = all;
}
END_TEST

static kopi_backend_ops real;
static long fail_at;

static kopi_status import_ref(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    (void)be, (void)w;
    out->mode = KOPI_WEIGHT_REF;
    return KOPI_OK;
}
static kopi_status import_some(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    kopi_status s = real.weight_import(be, w, out);
    out->roles &= ~(uint32_t)KOPI_ROLE_VECTOR;
    return s;
}

START_TEST(a_weight_that_stays_in_the_file)
{
    kopi_backend_ops *o = tables();
    real = *o;
    o->weight_import = import_ref;
    refused(f32, KOPI_E_BACKEND, (const char *const[]){"token_embd.weight", "can't see the file", NULL});
    o->weight_import = import_some;
    refused(f32, KOPI_E_BACKEND, (const char *const[]){"norm", "can't see the file", NULL});
    *o = real;
}
END_TEST

static kopi_status short_of_memory(void *be, uint64_t size, uint32_t usage, void **handle, void **host_ptr)
{
    return --fail_at == 0 ? KOPI_E_NOMEM : real.buf_alloc(be, size, usage, handle, host_ptr);
}

/* The KV cache, then the rows of the first step and of a larger one. */
START_TEST(memory_of_the_device_runs_out)
{
    kopi_backend_ops *o = tables();
    struct tiny_loaded l;
    char path[512];
    float rows[8 * MAX_VOCAB];
    kopi_error e;
    real = *o;
    o->buf_alloc = short_of_memory;
    fail_at = 1;
    refused(f32, KOPI_E_NOMEM, (const char *const[]){"KV cache", NULL});
    for (int when = 2; when < 4; when++) {
        fail_at = when;
        tiny_load(&l, file(0, path, sizeof path), "fake-device", f32);
        kopi_cache *c = new_cache(l.model);
        if (when == 3) forward(l.model, c, 0, 1, rows);
        int32_t ids[8] = {1, 2, 3};
        ck_assert_int_eq(kopi_model_forward(l.model, c, ids, 8, rows, &e), KOPI_E_NOMEM);
        ck_assert_ptr_nonnull(strstr(e.text, "rows of the outputs"));
        forward(l.model, c, 0, 8, rows); /* there is memory again */
        kopi_cache_free(c);
        tiny_unload(&l);
    }
    *o = real;
}
END_TEST

int main(void)
{
    Suite *s = suite_create("device");
    TCase *t = tcase_create("device");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, bits_of_cpu, 0, N_FILES);
    tcase_add_test(t, tied_embedding);
    tcase_add_test(t, no_fallback_shares_its_memory);
    tcase_add_test(t, a_device_without_what_it_needs);
    tcase_add_test(t, a_weight_that_stays_in_the_file);
    tcase_add_test(t, memory_of_the_device_runs_out);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
