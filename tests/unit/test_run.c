/* core/run end to end on the chain model: token i is always followed by i + 1, so the vocabulary is the script. Numbers
 * in the comments are rows of the collection of failures that other runtimes had. */
#include "base/mem.h"
#include "run/kv.h"
#include "run/model.h"
#include "tests/support/load.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { V = 64 };

static char file[512];
static struct tiny_loaded l;
static kopi_cache *cache;

static void start(const struct tiny_piece *pieces, int32_t eos, const char *const *settings)
{
    struct tiny_piece all[V] = {0};
    for (int i = 0; pieces && i < V && pieces[i].text; i++) all[i] = pieces[i];
    tiny_chain_model(tiny_path(file, "chain.gguf"), V, pieces ? all : NULL, eos, -1, 128);
    tiny_load(&l, file, tiny_backends[0], settings);
    ck_assert_int_eq(kopi_cache_new(l.model, &cache, NULL), KOPI_OK);
}

static void finish(void)
{
    kopi_cache_free(cache);
    uint64_t all = l.model->program->groups[0].n_pages;
    ck_assert_uint_eq(kopi__kv_pages_free(l.model->kv, 0), all);
    tiny_unload(&l);
    tiny_remove(file);
}

/* What the callback was given. */
struct heard {
    char text[1024];
    size_t n;
    int calls, stop_at;
};

static int hear(void *ctx, const char *utf8, size_t len)
{
    struct heard *h = ctx;
    ck_assert_uint_lt(h->n + len, sizeof h->text);
    memcpy(h->text + h->n, utf8, len);
    h->text[h->n += len] = 0;
    return ++h->calls == h->stop_at;
}

static kopi_request greedy(const int32_t *ids, size_t n, int32_t n_predict)
{
    kopi_request q = {.struct_size = sizeof q, .n_predict = n_predict, .ids = ids, .n_ids = n};
    kopi_sampling_default(NULL, &q.sampling);
    q.sampling.temperature = 0;
    return q;
}

/* Generates behind token 0 and checks text, its delivery and the end. */
static void expect(const char *const *stops, size_t n_stop, int32_t n_predict, const char *text, uint32_t how,
                   size_t n_generated)
{
    struct heard h = {.n = 0};
    kopi_result r;
    kopi_error e;
    kopi_request q = greedy((int32_t[]){0}, 1, n_predict);
    q.stop = stops;
    q.n_stop = n_stop;
    q.on_text = hear;
    q.ctx = &h;
    ck_assert_msg(kopi_generate(l.model, cache, &q, &r, &e) == KOPI_OK, "%s", e.text);
    ck_assert_str_eq(r.text, text);
    ck_assert_str_eq(h.text, text);
    ck_assert_uint_eq(r.text_len, strlen(text));
    ck_assert_uint_eq(r.finish, how);
    ck_assert_uint_eq(r.n_generated, n_generated);
    for (size_t i = 0; i < r.n_generated; i++) ck_assert_int_eq(r.ids[i], (int32_t)(i + 1) % V);
    kopi_result_clear(&r);
}

/* ---- ids only ---------------------------------------------------------------------------------------------------- */

/* 41: limits and what counts as reached; 31: a full context ends the answer. */
START_TEST(limits)
{
    start(NULL, -1, (const char *[]){"models[].context.size=32", NULL});
    expect(NULL, 0, 3, "", KOPI_FINISH_LENGTH, 3);
    expect(NULL, 0, 0, "", KOPI_FINISH_LENGTH, 0);
    expect(NULL, 0, 1, "", KOPI_FINISH_LENGTH, 1);
    expect(NULL, 0, -1, "", KOPI_FINISH_LENGTH, 32); /* the last one is not evaluated */
    expect(NULL, 0, INT32_MAX, "", KOPI_FINISH_LENGTH, 32);
    ck_assert_uint_eq(kopi_cache_length(cache), 32);
    finish();
}
END_TEST

START_TEST(full_context_can_be_an_error)
{
    start(NULL, -1, (const char *[]){"models[].context.size=8", "models[].context.overflow=error", NULL});
    kopi_result r;
    kopi_error e;
    kopi_request q = greedy((int32_t[]){0, 1}, 2, -1);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_RANGE);
    ck_assert_uint_eq(r.n_generated, 7);
    kopi_result_clear(&r);
    q.n_predict = 6;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_OK);
    kopi_result_clear(&r);
    finish();
}
END_TEST

START_TEST(configured_limit)
{
    start(NULL, -1, (const char *[]){"models[].limits.max_tokens=4", NULL});
    expect(NULL, 0, -1, "", KOPI_FINISH_LENGTH, 4);
    expect(NULL, 0, 9, "", KOPI_FINISH_LENGTH, 4);
    expect(NULL, 0, 2, "", KOPI_FINISH_LENGTH, 2);
    finish();
}
END_TEST

/* 42 and the prompt against the context: nothing starts, the cache stays. */
START_TEST(bad_requests)
{
    start(NULL, -1, (const char *[]){"models[].context.size=8", NULL});
    static const int32_t bad_ids[] = {-1, V, INT32_MAX, INT32_MIN};
    int32_t ids[9] = {0};
    kopi_result r;
    kopi_error e;
    kopi_request q = greedy(ids, 8, 1);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_OK); /* fits exactly */
    kopi_result_clear(&r);
    for (size_t i = 0; i < 4; i++) {
        char text[32];
        ids[3] = bad_ids[i];
        ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_INVALID);
        snprintf(text, sizeof text, "token 3 is %d", bad_ids[i]);
        ck_assert_msg(strstr(e.text, text) && strstr(e.text, "63"), "%s", e.text);
        kopi_result_clear(&r);
    }
    ids[3] = 0;
    q.n_ids = 9;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_RANGE);
    ck_assert_msg(strstr(e.text, "9 tokens") && strstr(e.text, "holds 8"), "%s", e.text);
    q.n_ids = 0;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_INVALID);
    q = greedy(ids, 1, -2);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_INVALID);
    q = greedy(ids, 1, 1);
    q.sampling.top_p = 7;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_INVALID);
    q = greedy(ids, 1, 1);
    q.struct_size = 8;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_INVALID);
    ck_assert_uint_eq(kopi_cache_length(cache), 8);
    finish();
}
END_TEST

/* 30: the whole prompt cached, a prefix of the cached one, a different middle. */
START_TEST(prefix_is_reused)
{
    start(NULL, -1, NULL);
    int32_t ids[20];
    for (int i = 0; i < 20; i++) ids[i] = i + 10;
    const struct {
        size_t n;
        int32_t change;
        size_t cached;
    } step[] = {{20, -1, 0}, {20, -1, 19}, {12, -1, 11}, {20, -1, 14}, {20, 5, 5}};
    for (size_t i = 0; i < sizeof step / sizeof *step; i++) {
        kopi_result r;
        if (step[i].change >= 0) ids[step[i].change] = 3;
        kopi_request q = greedy(ids, step[i].n, 3);
        ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
        ck_assert_uint_eq(r.n_prompt, step[i].n);
        ck_assert_msg(r.n_cached == step[i].cached, "step %zu: %zu cached", i, r.n_cached);
        ck_assert_int_eq(r.ids[0], ids[step[i].n - 1] + 1);
        ck_assert_uint_eq(kopi_cache_length(cache), step[i].n + 2); /* the last token waits */
        kopi_result_clear(&r);
    }
    finish();
}
END_TEST

/* 34: a NaN inside the model: an error, nothing of it kept, and the next request is answered. */
START_TEST(nan_poisons_nothing)
{
    tiny_chain_model(tiny_path(file, "chain.gguf"), V, NULL, -1, 20, 128);
    tiny_load(&l, file, tiny_backends[0], (const char *[]){"models[].context.parallel=3", NULL});
    ck_assert_int_eq(kopi_cache_new(l.model, &cache, NULL), KOPI_OK);
    kopi_result r;
    kopi_error e;
    kopi_request q = greedy((int32_t[]){17}, 1, 10), prompt = greedy((int32_t[]){20, 3, 4}, 3, 10),
                 good = greedy((int32_t[]){30}, 1, 10);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, &e), KOPI_E_NONFINITE); /* 18, 19, 20, then NaN */
    ck_assert_uint_eq(r.n_generated, 3);
    ck_assert_uint_eq(kopi_cache_length(cache), 0);
    kopi_result_clear(&r);
    ck_assert_int_eq(kopi_generate(l.model, cache, &prompt, &r, &e), KOPI_E_NONFINITE);
    kopi_result_clear(&r);
    ck_assert_int_eq(kopi_generate(l.model, cache, &good, &r, &e), KOPI_OK);
    ck_assert_int_eq(r.ids[9], 40);
    kopi_result_clear(&r);

    /* In one step with others, only the one fails. */
    kopi_scheduler *s;
    uint64_t id[3];
    size_t active = 1;
    ck_assert_int_eq(kopi_scheduler_new(l.model, &s, NULL), KOPI_OK);
    ck_assert_int_eq(kopi_scheduler_submit(s, &good, &id[0], NULL), KOPI_OK);
    ck_assert_int_eq(kopi_scheduler_submit(s, &q, &id[1], NULL), KOPI_OK);
    ck_assert_int_eq(kopi_scheduler_submit(s, &good, &id[2], NULL), KOPI_OK);
    while (active) ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kopi_scheduler_result(s, id[i], &r, &e), i == 1 ? KOPI_E_NONFINITE : KOPI_OK);
        ck_assert_uint_eq(r.n_generated, i == 1 ? 3 : 10);
        kopi_result_clear(&r);
    }
    kopi_scheduler_free(s);
    finish();
}
END_TEST

/* ---- seeds and company ------------------------------------------------------------------------------------------- */

static kopi_request seeded(const int32_t *ids, int64_t seed)
{
    kopi_request q = greedy(ids, 3, 20);
    q.sampling = (kopi_sampling){
        .struct_size = sizeof q.sampling, .temperature = 8, .top_p = 1, .repeat_penalty = 1, .seed = seed};
    return q;
}

static void recommend(struct tiny *t)
{
    tiny_f32(t, "general.sampling.temp", 0.25f);
    tiny_i32(t, "general.sampling.top_k", 7);
    tiny_f32(t, "general.sampling.top_p", 0.5f);
    tiny_f32(t, "general.sampling.min_p", 3); /* out of range: not taken */
    tiny_str(t, "general.sampling.penalty_repeat", "much");
}

/* User before model file before built-in. */
START_TEST(sampling_defaults)
{
    kopi_sampling s;
    tiny_extra = recommend;
    start(NULL, -1, (const char *[]){"models[].sampling.top_k=3", "models[].sampling.seed=9", NULL});
    kopi_sampling_default(l.model, &s);
    ck_assert(s.temperature == 0.25f && s.top_k == 3 && s.top_p == 0.5f && s.min_p == 0.05f && s.seed == 9);
    ck_assert(s.repeat_penalty == 1 && s.repeat_last_n == 64 && s.struct_size == sizeof s);
    tiny_extra = NULL;
    finish();
    start(NULL, -1, NULL);
    kopi_sampling_default(l.model, &s);
    kopi_sampling own;
    kopi_sampling_default(NULL, &own);
    ck_assert_mem_eq(&s, &own, sizeof s); /* the configuration's defaults are the built-in ones */
    finish();
}
END_TEST

/* 39: same seed, same tokens: alone, again, and beside others; -1 is random and reported. */
START_TEST(seed_decides)
{
    start(NULL, -1, (const char *[]){"models[].context.parallel=4", "models[].context.batch=5", NULL});
    static const int32_t ids[] = {1, 2, 3};
    kopi_result want, r;
    kopi_request q = seeded(ids, 1);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &want, NULL), KOPI_OK);
    ck_assert_int_eq(want.seed, 1);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
        ck_assert_mem_eq(r.ids, want.ids, 20 * sizeof(int32_t));
        kopi_result_clear(&r);
    }
    kopi_scheduler *s;
    uint64_t id[9];
    size_t active = 1;
    ck_assert_int_eq(kopi_scheduler_new(l.model, &s, NULL), KOPI_OK);
    for (int i = 0; i < 9; i++) {
        kopi_request other = seeded(i % 2 ? ids : (int32_t[]){7, 7, 7}, i % 2 ? 1 : i);
        ck_assert_int_eq(kopi_scheduler_submit(s, &other, &id[i], NULL), KOPI_OK);
    }
    ck_assert_int_eq(kopi_scheduler_result(s, id[0], &r, NULL), KOPI_E_RANGE); /* not finished */
    while (active) ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
    for (int i = 0; i < 9; i++) {
        ck_assert_int_eq(kopi_scheduler_result(s, id[i], &r, NULL), KOPI_OK);
        ck_assert_uint_eq(r.n_generated, 20);
        ck_assert_int_eq(!memcmp(r.ids, want.ids, 20 * sizeof(int32_t)), i % 2);
        kopi_result_clear(&r);
        ck_assert_int_eq(kopi_scheduler_result(s, id[i], &r, NULL), KOPI_E_RANGE); /* taken */
    }
    kopi_scheduler_free(s);

    q = seeded(ids, -1);
    int64_t seeds[2];
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
        seeds[i] = r.seed;
        kopi_request same = seeded(ids, r.seed);
        kopi_result again;
        ck_assert_int_eq(kopi_generate(l.model, cache, &same, &again, NULL), KOPI_OK);
        ck_assert_mem_eq(r.ids, again.ids, 20 * sizeof(int32_t));
        kopi_result_clear(&r);
        kopi_result_clear(&again);
    }
    ck_assert(seeds[0] != seeds[1] && seeds[0] >= 0);
    kopi_result_clear(&want);
    finish();
}
END_TEST

/* ---- text (needs the tokenizer) ---------------------------------------------------------------------------------- */

static const struct tiny_piece fox[] = {{"Go: ", 0, 1},       {"The quick br", 0, 1}, {"own", 0, 1}, {" fox", 0, 1},
                                        {"<|im_end|>", 0, 3}, {" again", 0, 1},       {NULL, 0, 0}};

/* 36: stop strings over token borders, and what is held back comes out at the end. */
START_TEST(stop_strings)
{
    start(fox, 4, NULL);
    expect((const char *[]){"own fox"}, 1, -1, "The quick br", KOPI_FINISH_STOP, 3);
    expect(NULL, 0, -1, "The quick brown fox", KOPI_FINISH_STOP, 4);
    expect((const char *[]){"own fox!"}, 1, -1, "The quick brown fox", KOPI_FINISH_STOP, 4); /* by the end token */
    expect((const char *[]){"own fox"}, 1, 2, "The quick brown", KOPI_FINISH_LENGTH, 2);     /* by the limit */
    expect((const char *[]){"The"}, 1, -1, "", KOPI_FINISH_STOP, 1);
    expect((const char *[]){"Go"}, 1, -1, "The quick brown fox", KOPI_FINISH_STOP, 4); /* the prompt does not count */
    finish();
}
END_TEST

/* 38: the marker ends the turn though another token is declared, and stays out of the text; as a normal token it is
 * text. */
START_TEST(end_tokens)
{
    start(fox, 63, NULL); /* declared: 63; known by its text and type: 4 */
    expect(NULL, 0, -1, "The quick brown fox", KOPI_FINISH_STOP, 4);
    kopi_request q = greedy((int32_t[]){0}, 1, 5);
    kopi_result r;
    q.ignore_eos = 1;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
    ck_assert_str_eq(r.text, "The quick brown fox again");
    ck_assert_uint_eq(r.finish, KOPI_FINISH_LENGTH);
    kopi_result_clear(&r);
    finish();

    static const struct tiny_piece plain[] = {
        {"Go: ", 0, 1}, {"a", 0, 1}, {"<|im_end|>", 0, 1}, {"b", 0, 1}, {NULL, 0, 0}};
    start(plain, 63, NULL);
    expect(NULL, 0, 3, "a<|im_end|>b", KOPI_FINISH_LENGTH, 3);
    finish();
}
END_TEST

/* 23: characters over token borders. */
START_TEST(characters)
{
    static const struct tiny_piece emoji[] = {
        {"Go", 0, 1}, {"\xf0\x9f", 0, 1}, {"\x98\x80", 0, 1}, {"!", 0, 1}, {NULL, 0, 0}};
    start(emoji, 63, NULL);
    expect(NULL, 0, 3, "\xf0\x9f\x98\x80!", KOPI_FINISH_LENGTH, 3);
    expect(NULL, 0, 1, "\xef\xbf\xbd", KOPI_FINISH_LENGTH, 1); /* cut inside: one U+FFFD */
    expect((const char *[]){"\xf0\x9f\x98\x80"}, 1, 3, "", KOPI_FINISH_STOP, 2);
    finish();
    static const struct tiny_piece broken[] = {
        {"Go", 0, 1}, {"\xf0\x9f", 0, 1}, {"A", 0, 1}, {"\x80", 0, 1}, {NULL, 0, 0}};
    start(broken, 63, NULL);
    expect(NULL, 0, 2,
           "\xef\xbf\xbd"
           "A",
           KOPI_FINISH_LENGTH, 2);
    expect(NULL, 0, 3,
           "\xef\xbf\xbd"
           "A\xef\xbf\xbd",
           KOPI_FINISH_LENGTH, 3);
    finish();
}
END_TEST

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

static int cancel_prefill(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    ck_assert_str_eq(what, "prefill");
    ck_assert_uint_le(done, total);
    *(uint64_t *)ctx = done;
    return done >= 10;
}

START_TEST(cancelling)
{
    start(fox, 4, (const char *[]){"models[].context.batch=5", NULL});
    /* By the callback: nothing more is delivered. */
    struct heard h = {.stop_at = 2};
    kopi_result r;
    kopi_error e;
    kopi_request q = greedy((int32_t[]){0}, 1, -1);
    q.on_text = hear;
    q.ctx = &h;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
    ck_assert_uint_eq(r.finish, KOPI_FINISH_CANCELLED);
    ck_assert_str_eq(r.text, "The quick brown");
    ck_assert_int_eq(h.calls, 2);
    kopi_result_clear(&r);

    /* By the progress of the prompt: what was evaluated stays. */
    int32_t ids[30] = {0};
    uint64_t done = 0;
    q = greedy(ids, 30, 5);
    q.progress = cancel_prefill;
    q.ctx = &done;
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
    ck_assert_uint_eq(r.finish, KOPI_FINISH_CANCELLED);
    ck_assert_uint_eq(r.n_generated, 0);
    ck_assert_uint_eq(kopi_cache_length(cache), r.n_cached + done);
    kopi_result_clear(&r);

    /* By kopi_model_cancel: the next call, once. */
    kopi_model_cancel(l.model);
    uint32_t before = kopi_cache_length(cache);
    ck_assert_int_eq(kopi_model_forward(l.model, cache, ids, 1, NULL, &e), KOPI_E_CANCELLED);
    ck_assert_uint_eq(kopi_cache_length(cache), before);
    ck_assert_int_eq(kopi_model_forward(l.model, cache, ids, 1, NULL, &e), KOPI_OK);
    kopi_model_cancel(l.model);
    q = greedy(ids, 3, 5);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
    ck_assert_uint_eq(r.finish, KOPI_FINISH_CANCELLED);
    kopi_result_clear(&r);

    /* In the scheduler: a queued one and a running one, the third goes on. */
    kopi_scheduler *s;
    uint64_t id[3];
    size_t active;
    ck_assert_int_eq(kopi_scheduler_new(l.model, &s, NULL), KOPI_OK);
    for (int i = 0; i < 3; i++) ck_assert_int_eq(kopi_scheduler_submit(s, &q, &id[i], NULL), KOPI_OK);
    ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
    ck_assert_uint_eq(active, 3);
    kopi_scheduler_cancel(s, id[0]);
    kopi_scheduler_cancel(s, id[1]);
    kopi_scheduler_cancel(s, 999);
    for (active = 1; active;) ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(kopi_scheduler_result(s, id[i], &r, &e), KOPI_OK);
        ck_assert_uint_eq(r.finish, i < 2 ? KOPI_FINISH_CANCELLED : KOPI_FINISH_STOP);
        ck_assert_uint_eq(r.n_generated, i == 0 ? 1 : i == 1 ? 0 : 4);
        kopi_result_clear(&r);
    }
    kopi_scheduler_free(s);
    finish();
}
END_TEST

static void *cancel_soon(void *model)
{
    nanosleep(&(struct timespec){.tv_nsec = 30000000}, NULL);
    kopi_model_cancel(model);
    return NULL;
}

/* From another thread, in the middle of a long answer; the text so far is kept and the next request is not touched. */
START_TEST(cancelling_from_a_thread)
{
    tiny_chain_model(tiny_path(file, "chain.gguf"), V, NULL, -1, -1, 100000);
    tiny_load(&l, file, tiny_backends[0], (const char *[]){"models[].context.size=100000", NULL});
    ck_assert_int_eq(kopi_cache_new(l.model, &cache, NULL), KOPI_OK);
    pthread_t t;
    kopi_result r;
    kopi_request q = greedy((int32_t[]){0}, 1, -1);
    ck_assert_int_eq(pthread_create(&t, NULL, cancel_soon, l.model), 0);
    ck_assert_int_eq(kopi_generate(l.model, cache, &q, &r, NULL), KOPI_OK);
    pthread_join(t, NULL);
    ck_assert_uint_eq(r.finish, KOPI_FINISH_CANCELLED);
    ck_assert(r.n_generated > 0 && r.n_generated < 99999);
    ck_assert_uint_eq(kopi_cache_length(cache), r.n_generated);
    for (size_t i = 0; i < r.n_generated; i++) ck_assert_int_eq(r.ids[i], (int32_t)(i + 1) % V);
    kopi_result_clear(&r);
    expect(NULL, 0, 5, "", KOPI_FINISH_LENGTH, 5);
    finish();
}
END_TEST

/* ---- chat -------------------------------------------------------------------------------------------------------- */

static void add_template(struct tiny *t)
{
    tiny_str(t, "tokenizer.chat_template",
             "{% for m in messages %}{{ m.role }}:{{ m.content }}<|im_end|>{% endfor %}"
             "{% if add_generation_prompt %}>{% endif %}");
}

static size_t count_ids(const int32_t *ids, size_t n, int32_t id)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) found += ids[i] == id;
    return found;
}

/* 17: what a user types never becomes a control token, and the model sees it as it is. */
START_TEST(chat)
{
    enum { N = 128, END = 100 };
    static char ascii[95][2];
    struct tiny_piece pieces[N] = {0};
    for (int i = 0; i < 95; i++) {
        ascii[i][0] = (char)(' ' + i);
        pieces[i] = (struct tiny_piece){ascii[i], 0, 1};
    }
    pieces[END] = (struct tiny_piece){"<|im_end|>", 0, 3};
    tiny_extra = add_template;
    tiny_chain_model(tiny_path(file, "chain.gguf"), N, pieces, END, -1, 256);
    tiny_extra = NULL;
    tiny_load(&l, file, tiny_backends[0], NULL);
    ck_assert_int_eq(kopi_cache_new(l.model, &cache, NULL), KOPI_OK);
    ck_assert(kopi_model_has_chat_template(l.model));
    ck_assert(kopi_token_is_eog(l.model, END) && !kopi_token_is_eog(l.model, 1));
    ck_assert(!kopi_token_is_eog(l.model, -1) && !kopi_token_is_eog(l.model, N));
    static const char *const said[][2] = {{"hi", "user:hi<|im_end|>>"},
                                          {"hi<|im_end|>you", "user:hi<|im_end|>you<|im_end|>>"}};
    for (int i = 0; i < 2; i++) {
        int32_t *ids;
        char *text;
        size_t n, len;
        kopi_error e;
        const kopi_message m = {"user", said[i][0]};
        ck_assert_msg(kopi_chat_tokenize(l.model, &m, 1, &ids, &n, &e) == KOPI_OK, "%s", e.text);
        ck_assert_uint_eq(count_ids(ids, n, END), 1);
        ck_assert_int_eq(kopi_detokenize(l.model, ids, n, 1, &text, &len, NULL), KOPI_OK);
        ck_assert_str_eq(text, said[i][1]);
        kopi_free(text);
        kopi_free(ids);
        /* A text of its own may ask for control tokens. */
        size_t bytes = strlen(said[i][1]);
        ck_assert_int_eq(kopi_tokenize(l.model, said[i][1], bytes, KOPI_PARSE_SPECIAL, &ids, &n, NULL), KOPI_OK);
        ck_assert_uint_eq(count_ids(ids, n, END), 1 + i);
        kopi_free(ids);
    }
    finish();
}
END_TEST

START_TEST(no_tokenizer)
{
    int32_t *ids;
    size_t n;
    kopi_error e;
    const kopi_message m = {"user", "a"};
    start(NULL, -1, NULL);
    ck_assert_int_eq(kopi_tokenize(l.model, "a", 1, 0, &ids, &n, &e), KOPI_E_UNSUPPORTED);
    ck_assert_int_eq(kopi_chat_tokenize(l.model, &m, 1, &ids, &n, &e), KOPI_E_UNSUPPORTED);
    ck_assert(!kopi_model_has_chat_template(l.model) && !kopi_token_is_eog(l.model, 0));
    finish();
}
END_TEST

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* 33: sizes of the context. */
START_TEST(context_sizes)
{
    tiny_chain_model(tiny_path(file, "chain.gguf"), V, NULL, -1, -1, INT32_MAX);
    kopi_error e;
    static const struct {
        const char *size;
        kopi_status want;
        uint32_t n_ctx;
    } t[] = {{"models[].context.size=-1", KOPI_E_INVALID, 0},
             {"models[].context.size=99999999999", KOPI_E_INVALID, 0},
             {"models[].context.size=1", KOPI_OK, 1},
             {"models[].context.size=2147483647", KOPI_E_NOMEM, 0}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        kopi_status s = tiny_try(&l, file, tiny_backends[0],
                                 (const char *[]){t[i].size, "models[].context.parallel=256", NULL}, &e);
        ck_assert_msg(s == t[i].want, "%s: %d %s", t[i].size, s, s ? e.text : "");
        if (s == KOPI_OK) ck_assert_uint_eq(kopi_model_max_context(l.model), t[i].n_ctx);
        if (s == KOPI_E_NOMEM) ck_assert_msg(strstr(e.text, "--ctx-size"), "%s", e.text);
        tiny_unload(&l);
    }
    tiny_load(&l, file, tiny_backends[0], NULL); /* a model of 2^31 - 1 positions loads with a context that fits */
    ck_assert_uint_le(kopi_model_max_context(l.model), 1u << 20);
    tiny_unload(&l);
    tiny_remove(file);
}
END_TEST

/* Every allocation of a request fails once: an error or an answer, and then the same answer as ever. */
START_TEST(out_of_memory)
{
    start(fox, 4, (const char *[]){"models[].context.parallel=2", NULL});
    uint64_t n = 1;
    for (kopi_status s = KOPI_E_NOMEM; s != KOPI_OK; n++) {
        kopi_result r;
        kopi_request q = greedy((int32_t[]){0}, 1, -1);
        q.stop = (const char *[]){"never"};
        q.n_stop = 1;
        kopi__mem_fail_at(n);
        s = kopi_generate(l.model, cache, &q, &r, NULL);
        kopi__mem_fail_at(0);
        ck_assert_msg(s == KOPI_OK || s == KOPI_E_NOMEM, "allocation %lu: %d", (unsigned long)n, s);
        if (s == KOPI_OK) ck_assert_str_eq(r.text, "The quick brown fox");
        kopi_result_clear(&r);
    }
    ck_assert_uint_gt(n, 10);
    n = 1;
    for (kopi_status s = KOPI_E_NOMEM; s != KOPI_OK; n++) {
        kopi_scheduler *sched = NULL;
        uint64_t id;
        size_t active = 1;
        kopi_request q = greedy((int32_t[]){0}, 1, -1);
        kopi_result r = {0};
        kopi__mem_fail_at(n);
        s = kopi_scheduler_new(l.model, &sched, NULL);
        if (s == KOPI_OK) s = kopi_scheduler_submit(sched, &q, &id, NULL);
        while (s == KOPI_OK && active) s = kopi_scheduler_step(sched, &active, NULL);
        if (s == KOPI_OK) s = kopi_scheduler_result(sched, id, &r, NULL);
        kopi__mem_fail_at(0);
        ck_assert_msg(s == KOPI_OK || s == KOPI_E_NOMEM, "allocation %lu: %d", (unsigned long)n, s);
        kopi_result_clear(&r);
        kopi_scheduler_free(sched);
    }
    expect(NULL, 0, -1, "The quick brown fox", KOPI_FINISH_STOP, 4);
    finish();
}
END_TEST

/* Pages: taken as positions come, shared by a fork, copied on the first write, given back. */
START_TEST(pages)
{
    start(NULL, -1, (const char *[]){"models[].context.parallel=2", "models[].context.size=128", NULL});
    struct kopi_kv *kv = l.model->kv;
    uint32_t len = l.model->program->groups[0].page_len;
    uint64_t all = kopi__kv_pages_free(kv, 0);
    struct kopi_kv_seq *a, *b;
    kopi_error e;
    ck_assert_int_eq(kopi__kv_seq_new(kv, &a, NULL), KOPI_OK);
    ck_assert_int_eq(kopi__kv_seq_reserve(a, len + 1, NULL), KOPI_OK);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 2);
    ck_assert_uint_eq(kopi__kv_seq_length(a), 0);
    kopi__kv_seq_commit(a, len + 1);
    ck_assert_int_eq(kopi__kv_seq_fork(a, len + 1, &b, NULL), KOPI_OK);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 2);
    ck_assert_mem_eq(kopi__kv_seq_pages(a)[0], kopi__kv_seq_pages(b)[0], 2 * sizeof(int32_t));
    /* The writer gets a copy of the last page, with its bytes. */
    char *base = l.model->program->groups[0].base;
    uint64_t bytes = l.model->program->groups[0].page_bytes;
    memset(base + (uint64_t)kopi__kv_seq_pages(a)[0][1] * bytes, 0x5a, bytes);
    ck_assert_int_eq(kopi__kv_seq_reserve(b, 1, NULL), KOPI_OK);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 3);
    ck_assert_int_eq(kopi__kv_seq_pages(a)[0][0], kopi__kv_seq_pages(b)[0][0]);
    ck_assert_int_ne(kopi__kv_seq_pages(a)[0][1], kopi__kv_seq_pages(b)[0][1]);
    ck_assert_int_eq(base[(uint64_t)kopi__kv_seq_pages(b)[0][1] * bytes + bytes - 1], 0x5a);
    ck_assert_int_eq(kopi__kv_seq_reserve(a, 1, NULL), KOPI_OK); /* sole owner now: no copy */
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 3);
    /* Past the context and out of pages: nothing changes. */
    ck_assert_int_eq(kopi__kv_seq_reserve(a, 128 - len, &e), KOPI_E_RANGE);
    ck_assert_int_eq(kopi__kv_seq_reserve(a, UINT32_MAX, &e), KOPI_E_RANGE);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 3);
    struct kopi_kv_seq *c;
    ck_assert_int_eq(kopi__kv_seq_new(kv, &c, NULL), KOPI_OK);
    ck_assert_int_eq(kopi__kv_seq_reserve(c, 128, NULL), 128 / len <= all - 3 ? KOPI_OK : KOPI_E_RANGE);
    kopi__kv_seq_free(c);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 3);
    kopi__kv_seq_truncate(b, len);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 2);
    kopi__kv_seq_free(a);
    ck_assert_uint_eq(kopi__kv_pages_free(kv, 0), all - 1);
    kopi__kv_seq_free(b);
    finish();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("run");
    tcase_add_test(t, limits);
    tcase_add_test(t, full_context_can_be_an_error);
    tcase_add_test(t, configured_limit);
    tcase_add_test(t, bad_requests);
    tcase_add_test(t, prefix_is_reused);
    tcase_add_test(t, nan_poisons_nothing);
    tcase_add_test(t, sampling_defaults);
    tcase_add_test(t, seed_decides);
    tcase_add_test(t, stop_strings);
    tcase_add_test(t, end_tokens);
    tcase_add_test(t, characters);
    tcase_add_test(t, cancelling);
    tcase_add_test(t, cancelling_from_a_thread);
    tcase_add_test(t, chat);
    tcase_add_test(t, no_tokenizer);
    tcase_add_test(t, context_sizes);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, pages);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("run");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
