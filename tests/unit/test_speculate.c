/* Speculation changes the time of an answer and nothing else: compared with plain decoding, token by token, with
 * guesses that come true and guesses that don't. */
#include "base/mem.h"
#include "run/cache.h"
#include "run/model.h"
#include "run/speculate.h"
#include "tests/support/load.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { V = 64, N_PROMPTS = 1000 };

/* One model plainly and with each kind of speculation. */
enum { PLAIN, NGRAM, DRAFT, N_KINDS };
static char file[512], draft_file[512];
static struct tiny_loaded l[N_KINDS];
static kopi_cache *cache[N_KINDS];

/* extra: settings of all three. adaptive off: guesses are made at every step, whatever they cost here. */
static void load_all(const char *backend, const char *const *extra)
{
    static char draft[600];
    static const char *const kinds[N_KINDS] = {"models[].speculation.type=none", "models[].speculation.type=ngram",
                                               "models[].speculation.type=draft"};
    snprintf(draft, sizeof draft, "models[].speculation.draft_model=%s", draft_file);
    for (int k = 0; k < N_KINDS; k++) {
        const char *settings[12] = {kinds[k], draft, "models[].speculation.adaptive=false"};
        for (int i = 0; extra && extra[i]; i++) settings[3 + i] = extra[i];
        tiny_load(&l[k], file, backend, settings);
        ck_assert_int_eq(kopi_cache_new(l[k].model, &cache[k], NULL), KOPI_OK);
    }
    ck_assert(!l[PLAIN].model->spec && l[NGRAM].model->spec && !l[NGRAM].model->spec->draft);
    ck_assert(l[DRAFT].model->spec && l[DRAFT].model->spec->draft);
}

static void unload_all(void)
{
    for (int k = 0; k < N_KINDS; k++) {
        kopi_cache_free(cache[k]);
        ck_assert_uint_eq(kopi__kv_pages_free(l[k].model->kv, 0), l[k].model->program->groups[0].n_pages);
        tiny_unload(&l[k]);
    }
}

static void remove_files(void)
{
    tiny_remove(file);
    tiny_remove(draft_file);
}

static kopi_request greedy(const int32_t *ids, size_t n, int32_t n_predict)
{
    kopi_request q = {.struct_size = sizeof q, .n_predict = n_predict, .ids = ids, .n_ids = n};
    kopi_sampling_default(NULL, &q.sampling);
    q.sampling.temperature = 0;
    q.sampling.seed = 1;
    return q;
}

/* ---- the comparison ---------------------------------------------------------------------------------------------- */

/* The caches hold the same tokens, and what the model makes of them has the same bits: nothing of a rejected guess is
 * left. */
static void same_caches(int k)
{
    uint32_t n = kopi_cache_length(cache[PLAIN]);
    float a[V], b[V];
    ck_assert_uint_eq(kopi_cache_length(cache[k]), n);
    ck_assert_mem_eq(cache[k]->ids, cache[PLAIN]->ids, n * sizeof(int32_t));
    if (n == kopi_model_max_context(l[k].model)) return;
    ck_assert_int_eq(kopi_model_forward(l[PLAIN].model, cache[PLAIN], (int32_t[]){1}, 1, a, NULL), KOPI_OK);
    ck_assert_int_eq(kopi_model_forward(l[k].model, cache[k], (int32_t[]){1}, 1, b, NULL), KOPI_OK);
    ck_assert_mem_eq(a, b, sizeof a);
    kopi_cache_truncate(cache[PLAIN], n, NULL);
    kopi_cache_truncate(cache[k], n, NULL);
}

static void same_results(const kopi_result *a, const kopi_result *b)
{
    ck_assert_uint_eq(a->n_generated, b->n_generated);
    ck_assert_mem_eq(a->ids, b->ids, a->n_generated * sizeof(int32_t));
    ck_assert_str_eq(a->text, b->text);
    ck_assert_uint_eq(a->finish, b->finish);
    ck_assert_int_eq(a->seed, b->seed);
    ck_assert_uint_eq(a->n_cached, b->n_cached);
}

/* A request with each kind of speculation against plain decoding. n: adds accepted and rejected tokens, [N_KINDS][2].
 */
static void compare(const kopi_request *q, bool bits, size_t (*n)[2])
{
    kopi_result want, r;
    kopi_error e;
    kopi_status s = kopi_generate(l[PLAIN].model, cache[PLAIN], q, &want, &e);
    ck_assert_uint_eq(want.n_drafted, 0);
    for (int k = NGRAM; k < N_KINDS; k++) {
        ck_assert_int_eq(kopi_generate(l[k].model, cache[k], q, &r, &e), s);
        same_results(&want, &r);
        ck_assert_uint_le(r.n_accepted, r.n_drafted);
        if (bits) same_caches(k);
        if (n) {
            n[k][0] += r.n_accepted;
            n[k][1] += r.n_drafted - r.n_accepted;
        }
        kopi_result_clear(&r);
    }
    kopi_result_clear(&want);
}

static uint32_t next(uint32_t *state) { return (*state = *state * 1664525u + 1013904223u) >> 16; }

/* A prompt that repeats itself now and then, as text does. */
static size_t prompt(uint32_t *state, int32_t *ids)
{
    size_t n = 1 + next(state) % 40, period = 1 + next(state) % 12;
    for (size_t i = 0; i < n; i++)
        ids[i] = i >= period && next(state) % 8 ? ids[i - period] : (int32_t)(next(state) % V);
    return n;
}

static void vary(kopi_sampling *p, uint32_t i)
{
    *p = (kopi_sampling){.struct_size = sizeof *p,
                         .temperature = i % 2 ? 0.02f : 0.1f,
                         .top_k = 40,
                         .top_p = 0.95f,
                         .repeat_penalty = 1,
                         .seed = i};
    p->repeat_last_n = 64;
    if (i % 3 == 1) p->repeat_penalty = 1.1f;
    if (i % 4 == 1) p->presence_penalty = 0.2f, p->frequency_penalty = 0.1f;
    if (i % 5 == 1) p->min_p = 0.1f, p->top_k = 0;
}

/* n_prompts, each greedy and sampled. */
static void thousand(const char *backend, uint32_t n_prompts, size_t at_least)
{
    size_t n[2][N_KINDS][2] = {{{0}}};
    uint32_t state = 7;
    load_all(backend, (const char *[]){"backend.threads=1", NULL}); /* small steps: more threads would only wait */
    for (uint32_t i = 0; i < n_prompts; i++) {
        int32_t ids[40];
        size_t len = prompt(&state, ids);
        for (int sampled = 0; sampled < 2; sampled++) {
            kopi_request q = greedy(ids, len, 1 + (int32_t)(i % 23));
            if (sampled) vary(&q.sampling, i);
            compare(&q, i % 16 == 0, n[sampled]);
        }
    }
    for (int sampled = 0; sampled < 2; sampled++)
        for (int k = NGRAM; k < N_KINDS; k++) {
            size_t *c = n[sampled][k];
            printf("%s, %s, %s: %zu accepted, %zu rejected\n", backend, k == NGRAM ? "ngram" : "draft",
                   sampled ? "sampled" : "greedy", c[0], c[1]);
            ck_assert_uint_gt(c[0], at_least);
            ck_assert_uint_gt(c[1], at_least);
        }
    unload_all();
}

/* The draft model is the model itself with coarser weights. */
static void make_llamas(void)
{
    struct tiny_llama c = {.n_vocab = V, .n_embd = 64, .n_ff = 96, .context = 128, .dtype = KOPI_DTYPE_F32, .seed = 11};
    tiny_llama_model(tiny_path(file, "model.gguf"), &c);
    c.dtype = KOPI_DTYPE_Q8_0;
    tiny_llama_model(tiny_path(draft_file, "draft.gguf"), &c);
}

START_TEST(thousand_prompts)
{
    make_llamas();
    for (const char **b = tiny_backends; *b; b++)
        thousand(*b, b == tiny_backends ? N_PROMPTS / 10 : N_PROMPTS, b == tiny_backends ? 50 : 1000);
    remove_files();
}
END_TEST

/* ---- ends inside a guess -------------------------------------------------------------------------------------------
 */

/* The chain model, and itself as its draft model: every guess comes true, until something ends the answer. */
static void start_chain(const struct tiny_piece *pieces, int32_t eos, int32_t poison, const char *const *settings)
{
    struct tiny_piece all[V] = {{NULL, 0, 0}};
    for (int i = 0; pieces && i < V && pieces[i].text; i++) all[i] = pieces[i];
    tiny_chain_model(tiny_path(file, "chain.gguf"), V, pieces ? all : NULL, eos, poison, 256);
    tiny_chain_model(tiny_path(draft_file, "draft.gguf"), V, pieces ? all : NULL, eos, -1, 256);
    load_all("cpu", settings);
}

static void finish_chain(void)
{
    unload_all();
    remove_files();
}

/* The whole vocabulary twice and its first token: prompt lookup is always right from here on. */
enum { TWICE = 2 * V + 1 };
static const int32_t *twice(void)
{
    static int32_t ids[TWICE];
    for (int i = 0; i < TWICE; i++) ids[i] = i % V;
    return ids;
}

/* n_predict and the end of the context at every place of a guess. */
START_TEST(limits)
{
    start_chain(NULL, -1, -1, (const char *[]){"models[].context.size=150", NULL});
    size_t n[N_KINDS][2] = {{0}};
    for (int32_t k = 0; k < 30; k++) {
        kopi_request q = greedy(twice(), TWICE, k);
        compare(&q, true, n);
        ck_assert_uint_eq(kopi_cache_length(cache[DRAFT]), k <= 1 ? TWICE : k < 22 ? (uint32_t)(TWICE + k - 1) : 150);
    }
    kopi_request q = greedy(twice(), TWICE, -1);
    for (size_t len = TWICE - 20; len <= TWICE; len++) {
        q.n_ids = len;
        compare(&q, true, n);
    }
    for (int k = NGRAM; k < N_KINDS; k++) ck_assert_uint_gt(n[k][0], 200);
    finish_chain();
    start_chain(NULL, -1, -1, (const char *[]){"models[].context.size=150", "models[].context.overflow=error", NULL});
    compare(&q, true, NULL);
    finish_chain();
}
END_TEST

static const struct tiny_piece fox[] = {{"Go: ", 0, 1},       {"The quick br", 0, 1}, {"own", 0, 1},    {" fox", 0, 1},
                                        {"\xf0\x9f", 0, 1},   {"\x98\x80", 0, 1},     {" jumps", 0, 1}, {" over", 0, 1},
                                        {"<|im_end|>", 0, 3}, {" the", 0, 1},         {" dog", 0, 1},   {".", 0, 1},
                                        {NULL, 0, 0}};
enum { END = 8 };

struct heard {
    char text[1024];
    size_t n;
    int calls, stop_at;
    kopi_model *model; /* not NULL: this is how it stops */
};

static int hear(void *ctx, const char *utf8, size_t len)
{
    struct heard *h = ctx;
    ck_assert_uint_lt(h->n + len, sizeof h->text);
    memcpy(h->text + h->n, utf8, len);
    h->text[h->n += len] = 0;
    if (++h->calls != h->stop_at) return 0;
    if (!h->model) return 1;
    kopi_model_cancel(h->model);
    return 0;
}

/* Behind the fox twice, with a stop string or none; the callback stops at its call number stop_at, by its result or by
 * cancelling the model. */
static void fox_compare(const char *stop, int ignore_eos, int stop_at, bool cancel)
{
    struct heard h[N_KINDS] = {{.n = 0}};
    kopi_result r[N_KINDS];
    size_t accepted = 0;
    for (int k = 0; k < N_KINDS; k++) {
        kopi_request q = greedy(twice(), TWICE, 20);
        q.stop = &stop;
        q.n_stop = stop != NULL;
        q.ignore_eos = ignore_eos;
        q.on_text = hear;
        q.ctx = &h[k];
        h[k].stop_at = stop_at;
        h[k].model = cancel ? l[k].model : NULL;
        ck_assert_int_eq(kopi_generate(l[k].model, cache[k], &q, &r[k], NULL), KOPI_OK);
        accepted += r[k].n_accepted;
        if (!k) continue;
        same_results(&r[PLAIN], &r[k]);
        ck_assert_str_eq(h[k].text, h[PLAIN].text);
        ck_assert_int_eq(h[k].calls, h[PLAIN].calls); /* cancelling by a call is the same then, too */
        same_caches(k);
    }
    ck_assert_uint_gt(accepted, 0);
    for (int k = 0; k < N_KINDS; k++) kopi_result_clear(&r[k]);
}

START_TEST(text_ends)
{
    start_chain(fox, END, -1, NULL);
    fox_compare(NULL, 0, 0, false); /* the end token inside a guess */
    fox_compare(NULL, 1, 0, false);
    static const char *const stops[] = {"own fox", "fox", "\xf0\x9f\x98\x80", "jumps over", "er the", "dog", "never"};
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        for (int ignore = 0; ignore < 2; ignore++) fox_compare(stops[i], ignore, 0, false);
    for (int call = 2; call < 8; call++)
        for (int cancel = 0; cancel < 2; cancel++) fox_compare(NULL, 1, call, cancel);
    finish_chain();
}
END_TEST

/* A guess goes on behind the stop string, into a token that makes NaN: nobody sees it. Reached in earnest it is the
 * error that it is plainly, and the next answer is good. */
START_TEST(nan_in_a_guess)
{
    start_chain(fox, 63, 7, NULL);
    kopi_request q = greedy((int32_t[]){0}, 1, 20);
    q.stop = (const char *[]){"jumps"};
    q.n_stop = 1;
    compare(&q, true, NULL);
    q.n_stop = 0;
    compare(&q, true, NULL);
    ck_assert_uint_eq(kopi_cache_length(cache[DRAFT]), 0);
    q.n_predict = 3;
    compare(&q, true, NULL);
    finish_chain();
}
END_TEST

START_TEST(cancelled)
{
    start_chain(NULL, -1, -1, NULL);
    for (int k = 0; k < N_KINDS; k++) kopi_model_cancel(l[k].model);
    kopi_request q = greedy(twice(), TWICE, 20);
    compare(&q, true, NULL);
    compare(&q, true, NULL); /* works once */
    finish_chain();
}
END_TEST

/* ---- several sequences ---------------------------------------------------------------------------------------------
 */

/* More requests than slots, little room in a step: each gets what it gets alone. */
START_TEST(together)
{
    make_llamas();
    enum { N = 24 };
    static const char *const batches[] = {"models[].context.batch=4", "models[].context.batch=7",
                                          "models[].context.batch=64"};
    size_t n[N_KINDS][2] = {{0}};
    for (size_t b = 0; b < 3; b++) {
        uint32_t state = 3;
        int32_t ids[N][40];
        kopi_request q[N];
        load_all("cpu", (const char *[]){"models[].context.parallel=3", batches[b], NULL});
        for (uint32_t i = 0; i < N; i++) {
            q[i] = greedy(ids[i], prompt(&state, ids[i]), (int32_t)(i * 7 % 30));
            if (i % 2) vary(&q[i].sampling, i);
        }
        for (int k = NGRAM; k < N_KINDS; k++) {
            kopi_scheduler *s;
            uint64_t id[N];
            size_t active = 1;
            ck_assert_int_eq(kopi_scheduler_new(l[k].model, &s, NULL), KOPI_OK);
            for (int i = 0; i < N; i++) ck_assert_int_eq(kopi_scheduler_submit(s, &q[i], &id[i], NULL), KOPI_OK);
            kopi_scheduler_cancel(s, id[5]);
            while (active) ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
            for (int i = 0; i < N; i++) {
                kopi_result want, r;
                kopi_cache_truncate(cache[PLAIN], 0, NULL);
                ck_assert_int_eq(kopi_generate(l[PLAIN].model, cache[PLAIN], &q[i], &want, NULL), KOPI_OK);
                ck_assert_int_eq(kopi_scheduler_result(s, id[i], &r, NULL), KOPI_OK);
                r.n_cached = 0;
                if (i != 5) same_results(&want, &r);
                n[k][0] += r.n_accepted;
                n[k][1] += r.n_drafted - r.n_accepted;
                kopi_result_clear(&want);
                kopi_result_clear(&r);
            }
            kopi_scheduler_free(s);
        }
        unload_all();
    }
    for (int k = NGRAM; k < N_KINDS; k++) ck_assert_msg(n[k][0] > 100 && n[k][1] > 20, "%zu %zu", n[k][0], n[k][1]);
    remove_files();
}
END_TEST

/* The next turn of a talk finds its beginning in both caches. */
START_TEST(turns)
{
    make_llamas();
    load_all("cpu", NULL);
    int32_t ids[100];
    uint32_t state = 5;
    size_t len = prompt(&state, ids), n[N_KINDS][2] = {{0}};
    while (len < 90) {
        kopi_request q = greedy(ids, len, 9);
        kopi_result r;
        compare(&q, true, n);
        ck_assert_int_eq(kopi_generate(l[PLAIN].model, cache[PLAIN], &q, &r, NULL), KOPI_OK);
        memcpy(ids + len, r.ids, 9 * sizeof *ids);
        len += 9;
        ids[len++] = (int32_t)(next(&state) % V);
        if (len == 60) ids[20] ^= 1; /* an edited history */
        kopi_result_clear(&r);
    }
    ck_assert_uint_gt(n[DRAFT][0], 20);
    unload_all();
    remove_files();
}
END_TEST

/* Once it runs, no token takes memory. */
START_TEST(hot_steps_allocate_nothing)
{
    make_llamas();
    load_all("cpu", (const char *[]){"models[].context.parallel=2", NULL});
    for (int k = 0; k < N_KINDS; k++) {
        kopi_scheduler *s;
        uint64_t id, before = 0;
        size_t active = 1;
        ck_assert_int_eq(kopi_scheduler_new(l[k].model, &s, NULL), KOPI_OK);
        for (int i = 0; i < 2; i++) {
            kopi_request q = greedy((int32_t[]){1, 2, 3, 1, 2}, 5, 60);
            if (i) vary(&q.sampling, 13);
            ck_assert_int_eq(kopi_scheduler_submit(s, &q, &id, NULL), KOPI_OK);
        }
        for (int step = 0; active; step++) {
            ck_assert_int_eq(kopi_scheduler_step(s, &active, NULL), KOPI_OK);
            if (step == 3) before = kopi__mem_count();
        }
        ck_assert_uint_gt(before, 0);
        ck_assert_uint_eq(kopi__mem_count(), before);
        kopi_scheduler_free(s);
    }
    unload_all();
    remove_files();
}
END_TEST

/* ---- settings and failures -----------------------------------------------------------------------------------------
 */

static void expect_refusal(const char *const *settings, kopi_status want, const char *says)
{
    struct tiny_loaded t;
    kopi_error e = {0};
    kopi_status s = tiny_try(&t, file, "cpu", settings, &e);
    ck_assert_msg(s == want && (s == KOPI_OK || strstr(e.text, says)), "%s: %d %s", settings[0], s, e.text);
    tiny_unload(&t);
}

START_TEST(refusals)
{
    char named[600], other[512];
    make_llamas();
    struct tiny_llama small = {
        .n_vocab = 32, .n_embd = 32, .n_ff = 32, .context = 128, .dtype = KOPI_DTYPE_F32, .seed = 1};
    tiny_llama_model(tiny_path(other, "small.gguf"), &small);
    snprintf(named, sizeof named, "models[].speculation.draft_model=%s", other);
    expect_refusal((const char *[]){named, NULL}, KOPI_E_INVALID,
                   "has 32 tokens, model has 64: the vocabularies must be the same");
    expect_refusal((const char *[]){named, "models[].speculation.type=none", NULL}, KOPI_OK, "");
    expect_refusal((const char *[]){"models[].speculation.type=draft", NULL}, KOPI_E_INVALID, "--model-draft");
    expect_refusal((const char *[]){"models[].speculation.draft_model=/nowhere/x.gguf", NULL}, KOPI_E_IO,
                   "/nowhere/x.gguf");
    expect_refusal((const char *[]){"models[].speculation.ngram_min=9", "models[].speculation.type=ngram", NULL},
                   KOPI_E_INVALID, "ngram_max");
    expect_refusal((const char *[]){"models[].speculation.max_tokens=0", NULL}, KOPI_E_INVALID, "1 to 64");
    tiny_remove(other);
    remove_files();
    /* As many tokens, but not the same. */
    static const struct tiny_piece ab[V] = {{"a", 0, 1}, {"b", 0, 1}}, ac[V] = {{"a", 0, 1}, {"c", 0, 1}};
    tiny_chain_model(tiny_path(file, "ab.gguf"), V, ab, -1, -1, 64);
    tiny_chain_model(tiny_path(other, "ac.gguf"), V, ac, -1, -1, 64);
    snprintf(named, sizeof named, "models[].speculation.draft_model=%s", other);
    expect_refusal((const char *[]){named, NULL}, KOPI_E_INVALID, "token 1 is \"c\", in ab it is \"b\"");
    tiny_chain_model(other, V, NULL, -1, -1, 64);
    expect_refusal((const char *[]){named, NULL}, KOPI_E_INVALID, "has no tokenizer");
    tiny_remove(other);
    tiny_remove(file);
}
END_TEST

/* A draft model that breaks down takes nothing along: here its logits become NaN. */
START_TEST(broken_draft)
{
    tiny_chain_model(tiny_path(file, "chain.gguf"), V, NULL, -1, -1, 256);
    tiny_chain_model(tiny_path(draft_file, "draft.gguf"), V, NULL, -1, 5, 256);
    load_all("cpu", NULL);
    kopi_request q = greedy((int32_t[]){0}, 1, 20);
    compare(&q, true, NULL);
    finish_chain();
}
END_TEST

START_TEST(out_of_memory)
{
    start_chain(fox, END, -1, NULL);
    kopi_request q = greedy((int32_t[]){0}, 1, 20);
    for (int k = NGRAM; k < N_KINDS; k++) {
        uint64_t n = 1;
        for (kopi_status s = KOPI_E_NOMEM; s != KOPI_OK || n < 20; n++) {
            kopi_result r;
            kopi_cache_free(cache[k]); /* with the draft model's, so that this is made again, too */
            ck_assert_int_eq(kopi_cache_new(l[k].model, &cache[k], NULL), KOPI_OK);
            kopi__mem_fail_at(n);
            s = kopi_generate(l[k].model, cache[k], &q, &r, NULL);
            kopi__mem_fail_at(0);
            ck_assert_msg(s == KOPI_OK || s == KOPI_E_NOMEM, "allocation %lu: %d", (unsigned long)n, s);
            if (s == KOPI_OK) ck_assert_str_eq(r.text, "The quick brown fox\xf0\x9f\x98\x80 jumps over");
            kopi_result_clear(&r);
        }
    }
    compare(&q, true, NULL);
    finish_chain();
}
END_TEST

/* ---- parts ---------------------------------------------------------------------------------------------------------
 */

START_TEST(lookup)
{
    static const int32_t t[] = {1, 2, 3, 9, 1, 2, 4, 5, 2, 3, 7, 1, 2, 3};
    struct kopi_ngram x;
    uint32_t match;
    ck_assert(kopi__ngram_init(&x, 2, 4, 14));
    ck_assert_uint_eq(kopi__ngram_find(&x, t, 1, &match), 0);
    ck_assert_uint_eq(kopi__ngram_find(&x, t, 5, &match), 0);
    ck_assert_uint_eq(kopi__ngram_find(&x, t, 6, &match), 2); /* behind 1 2 */
    ck_assert_uint_eq(match, 2);
    ck_assert_uint_eq(kopi__ngram_find(&x, t, 10, &match), 3);
    ck_assert_uint_eq(kopi__ngram_find(&x, t, 14, &match), 3); /* 1 2 3 is longer than the later 2 3 */
    ck_assert_uint_eq(match, 3);
    kopi__ngram_free(&x);
    int32_t same[40] = {0};
    ck_assert(kopi__ngram_init(&x, 1, 3, 40));
    for (uint32_t n = 1; n <= 40; n++) {
        uint32_t p = kopi__ngram_find(&x, same, n, &match);
        ck_assert_uint_eq(match, n - 1 < 3 ? n - 1 : 3);
        ck_assert_uint_eq(p, n - 1); /* the last place */
    }
    kopi__ngram_free(&x);
}
END_TEST

START_TEST(costs)
{
    struct kopi_pace p = {{0}, {0}, 0};
    ck_assert(kopi__pace_cost(&p, 4) > kopi__pace_cost(&p, 1) && kopi__pace_cost(&p, 4) < 2 * kopi__pace_cost(&p, 1));
    kopi__pace_note(&p, 1, 1000);
    ck_assert(kopi__pace_cost(&p, 1) == 1000 && kopi__pace_cost(&p, 9) > 1000 && kopi__pace_cost(&p, 9) < 2000);
    kopi__pace_note(&p, 9, 5000);
    ck_assert(kopi__pace_cost(&p, 5) == 3000 && kopi__pace_cost(&p, 9) == 5000);
    kopi__pace_note(&p, 9, 1000000); /* the machine was elsewhere */
    ck_assert(kopi__pace_cost(&p, 9) < 6000);
    for (int i = 0; i < 600; i++) kopi__pace_note(&p, 1, 1000);
    ck_assert(kopi__pace_cost(&p, 9) < 2000); /* long ago: to be tried again */
    kopi__pace_note(&p, KOPI_PACE_MAX + 1, 1);
    kopi__pace_note(&p, KOPI_PACE_MAX, 9000);
    ck_assert(kopi__pace_cost(&p, KOPI_PACE_MAX) == 9000);
}
END_TEST

/* Guesses that never come true are soon given up, and tried again only now and then. */
START_TEST(bad_luck)
{
    struct kopi_guess g;
    ck_assert(kopi__guess_init(&g, NULL, 8));
    int tried = 0;
    for (int step = 0; step < 1000; step++) {
        if (g.rate[0] < 0.1f) {
            kopi__guess_skip(&g);
            continue;
        }
        kopi__guess_learn(&g, 0, true);
        tried++;
    }
    ck_assert_int_lt(tried, 100);
    ck_assert_int_gt(tried, 10);
    for (int i = 0; i < 3; i++) kopi__guess_learn(&g, 4, false);
    ck_assert(g.rate[0] > 0.9f);
    kopi__guess_free(&g);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("speculation");
    tcase_add_test(t, thousand_prompts);
    tcase_add_test(t, limits);
    tcase_add_test(t, text_ends);
    tcase_add_test(t, nan_in_a_guess);
    tcase_add_test(t, cancelled);
    tcase_add_test(t, together);
    tcase_add_test(t, turns);
    tcase_add_test(t, hot_steps_allocate_nothing);
    tcase_add_test(t, refusals);
    tcase_add_test(t, broken_draft);
    tcase_add_test(t, out_of_memory);
    tcase_add_test(t, lookup);
    tcase_add_test(t, costs);
    tcase_add_test(t, bad_luck);
    tcase_set_timeout(t, 120);
    Suite *s = suite_create("speculation");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
