/* Tests of `kopi backends check` that need the core: tiny models, computed by the backend and by the reference. */
#include "check.h"

#include "check_file.h"
#include "base/buf.h"
#include "cli.h"
#include "config/config.h"
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N = 48 };                  /* tokens of most prompts */
static const float bound = 1e-2f; /* of the normalized error of logits, where a device isn't exact */

static const struct check_model llama = {"llama", KOPI_DTYPE_F32, 2, 0}, qwen2 = {"qwen2", KOPI_DTYPE_Q8_0, 2, 0},
                                gemma3 = {"gemma3", KOPI_DTYPE_F16, 4, 8}, mixed = {"llama", UINT32_MAX, 3, 0};

/* ---- a model on a backend ---------------------------------------------------------------------------------------- */

struct loaded {
    kopi_config *cfg;
    kopi_engine *engine;
    kopi_model *model;
    bool exact; /* its device promises the bits of kopi/op.h */
};

static void unload(struct loaded *l)
{
    kopi_model_free(l->model);
    kopi_engine_free(l->engine);
    kopi_config_free(l->cfg);
    *l = (struct loaded){0};
}

/* What the command line says about directories and options. */
static kopi_status copy_settings(kopi_config *cfg, const char *backend, kopi_error *err)
{
    const char *const *dirs = kopi__config_list(cli_config, "plugin_dirs", KOPI__MODEL_ALL), *key;
    const struct kopi__setting *s;
    kopi_status status = KOPI_OK;
    struct kopi_buf list = KOPI_BUF_INIT;
    for (; dirs && *dirs; dirs++) kopi__buf_fmt(&list, "%s%s", list.len ? ":" : "", *dirs);
    if (list.len) status = kopi_config_set(cfg, "plugin_dirs", list.data, err);
    kopi__buf_free(&list);
    for (size_t at = 0; status == KOPI_OK && (s = kopi__config_next_option(cli_config, backend, &at, &key));) {
        char path[128];
        snprintf(path, sizeof path, "backend.options.%s.%s", backend, key);
        status = kopi_config_set(cfg, path, kopi__config_option(cli_config, backend, key)->text, err);
    }
    return status;
}

static bool load(struct cf_env *e, struct loaded *l, bool reference, const char *file, const char *kv,
                 const char *threads)
{
    const struct {
        const char *key, *value;
    } settings[] = {{"backend.path", reference ? e->reference_path : e->path},
                    {"backend.threads", threads},
                    {"models[].path", file},
                    {"models[].kv.type_k", kv},
                    {"models[].kv.type_v", kv},
                    {"models[].context.batch", "64"},
                    {"models[].context.parallel", "3"}};
    kopi_error err = {0};
    *l = (struct loaded){0};
    kopi_status s = kopi_config_new(&l->cfg, &err);
    if (s == KOPI_OK) s = copy_settings(l->cfg, e->result->about.name, &err);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && s == KOPI_OK; i++)
        s = kopi_config_set(l->cfg, settings[i].key, settings[i].value, &err);
    if (s == KOPI_OK) s = kopi_engine_new(l->cfg, &l->engine, &err);
    if (s == KOPI_OK) s = kopi_model_load(l->engine, NULL, NULL, NULL, &l->model, &err);
    if (s != KOPI_OK) {
        unload(l);
        return cf_wrong(e, "%sa %s model on the backend: %s", reference ? "reference: " : "", "tiny", err.text);
    }
    kopi_backend_info info;
    kopi_backend_device(l->model, &info);
    l->exact = info.exact;
    return true;
}

/* ---- logits ------------------------------------------------------------------------------------------------------ */

static void make_prompt(uint64_t seed, int32_t *ids, size_t n)
{
    uint64_t state = seed * 31 + 7;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((state >> 33) % CHECK_VOCAB);
    }
}

static float *rows(size_t n)
{
    float *p = calloc(n * CHECK_VOCAB, sizeof *p);
    if (!p) abort(); /* a test tool */
    return p;
}

/* Appends ids in pieces; logits of all of them. */
static bool forward(struct cf_env *e, struct loaded *l, kopi_cache *c, const int32_t *ids, size_t n, size_t piece,
                    float *logits)
{
    kopi_error err;
    for (size_t at = 0; at < n; at += piece) {
        size_t some = n - at < piece ? n - at : piece;
        if (kopi_model_forward(l->model, c, ids + at, some, logits + at * CHECK_VOCAB, &err) != KOPI_OK)
            return cf_wrong(e, "forward: %s", err.text);
    }
    return true;
}

static bool fresh(struct cf_env *e, struct loaded *l, const int32_t *ids, size_t n, size_t piece, float *logits)
{
    kopi_cache *c;
    kopi_error err;
    if (kopi_cache_new(l->model, &c, &err) != KOPI_OK) return cf_wrong(e, "cache: %s", err.text);
    bool ok = forward(e, l, c, ids, n, piece, logits);
    kopi_cache_free(c);
    return ok;
}

static bool agree(struct cf_env *e, bool exact, const float *want, const float *have, size_t n, const char *what)
{
    double diff = 0, all = 1e-30;
    for (size_t i = 0; i < n * CHECK_VOCAB; i++) {
        double d = (double)want[i] - (double)have[i];
        if (exact && memcmp(&want[i], &have[i], sizeof *want))
            return cf_wrong(e, "%s: token %zu, logit %zu is %.9g, expected %.9g", what, i / CHECK_VOCAB,
                            i % CHECK_VOCAB, (double)have[i], (double)want[i]);
        diff += d * d;
        all += (double)want[i] * (double)want[i];
    }
    if (diff <= (double)bound * all) return true;
    return cf_wrong(e, "%s: normalized error of the logits %.3g, at most %.3g", what, diff / all, (double)bound);
}

/* ---- against the reference --------------------------------------------------------------------------------------- */

static bool same_as_reference(struct cf_env *e, const struct check_model *m, const char *kv, size_t n)
{
    struct loaded ref, sub;
    char file[64];
    int32_t ids[CHECK_CONTEXT];
    float *want = rows(n), *have = rows(n);
    bool ok = false;
    check_model_file(m, e->seed, file);
    make_prompt(e->seed, ids, n);
    if (load(e, &ref, true, file, kv, "1")) {
        if (load(e, &sub, false, file, kv, "2")) {
            ok = fresh(e, &ref, ids, n, n, want) && fresh(e, &sub, ids, n, n, have) &&
                 agree(e, ref.exact && sub.exact, want, have, n, "logits");
            unload(&sub);
        }
        unload(&ref);
    }
    free(want);
    free(have);
    return ok;
}

#define VERDICT(condition) ((condition) ? CF_PASS : CF_FAIL)
static enum cf_verdict is_llama(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return VERDICT(same_as_reference(e, &llama, "f32", N));
}
static enum cf_verdict is_qwen2(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return VERDICT(same_as_reference(e, &qwen2, "f32", N));
}
static enum cf_verdict is_gemma3(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return VERDICT(same_as_reference(e, &gemma3, "f32", N));
}
static enum cf_verdict is_mixed(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return VERDICT(same_as_reference(e, &mixed, "f32", N));
}
static enum cf_verdict is_f16_cache(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return VERDICT(same_as_reference(e, &llama, "f16", N) && same_as_reference(e, &gemma3, "f16", N));
}
/* Past several windows and pages. */
static enum cf_verdict is_long(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return VERDICT(same_as_reference(e, &gemma3, "f32", CHECK_CONTEXT) &&
                   same_as_reference(e, &llama, "f32", CHECK_CONTEXT));
}

/* ---- against itself ---------------------------------------------------------------------------------------------- */

struct alone {
    struct cf_env *e;
    struct loaded l;
    int32_t ids[CHECK_CONTEXT];
    float *want, *have; /* of CHECK_CONTEXT tokens; want: the prompt in one piece */
};

/* fn for each model with a loaded backend and the logits of a prompt of N tokens. */
static enum cf_verdict on_each(struct cf_env *e, bool (*fn)(struct alone *a))
{
    const struct check_model *const models[] = {&llama, &gemma3};
    bool ok = true;
    for (size_t i = 0; i < 2 && ok; i++) {
        struct alone a = {.e = e, .want = rows(CHECK_CONTEXT), .have = rows(CHECK_CONTEXT)};
        char file[64];
        make_prompt(e->seed, a.ids, CHECK_CONTEXT);
        ok = load(e, &a.l, false, check_model_file(models[i], e->seed, file), "f32", "2");
        if (ok) ok = fresh(e, &a.l, a.ids, N, N, a.want) && fn(&a);
        unload(&a.l);
        free(a.want);
        free(a.have);
    }
    return VERDICT(ok);
}

static bool in_pieces(struct alone *a)
{
    static const size_t pieces[] = {1, 7, 33};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        char what[64];
        snprintf(what, sizeof what, "the prompt in pieces of %zu", pieces[i]);
        if (!fresh(a->e, &a->l, a->ids, N, pieces[i], a->have) || !agree(a->e, a->l.exact, a->want, a->have, N, what))
            return false;
    }
    return true;
}

/* Other tokens, back to `keep`, and on with the prompt's own: nothing of the others may be left. */
static bool back_to(struct alone *a, uint32_t keep)
{
    kopi_cache *c;
    kopi_error err;
    int32_t other[N];
    char what[64];
    make_prompt(a->e->seed + 1, other, N);
    memcpy(other, a->ids, keep * sizeof *other);
    snprintf(what, sizeof what, "after going back from %d tokens to %u", N, keep);
    if (kopi_cache_new(a->l.model, &c, &err) != KOPI_OK) return cf_wrong(a->e, "cache: %s", err.text);
    bool ok = forward(a->e, &a->l, c, other, N, 5, a->have);
    if (ok && kopi_cache_truncate(c, keep, &err) != KOPI_OK) ok = cf_wrong(a->e, "truncate: %s", err.text);
    size_t at = (size_t)keep * CHECK_VOCAB;
    ok = ok && forward(a->e, &a->l, c, a->ids + keep, N - keep, 3, a->have + at) &&
         agree(a->e, a->l.exact, a->want + at, a->have + at, N - keep, what);
    kopi_cache_free(c);
    return ok;
}
static bool goes_back(struct alone *a) { return back_to(a, 1) && back_to(a, 17) && back_to(a, N - 1); }

/* Two sequences in turn. */
static bool in_turn(struct alone *a)
{
    kopi_cache *c[2] = {0};
    kopi_error err;
    int32_t other[N];
    float *others = rows(N), *lonely = rows(N);
    bool ok = true;
    make_prompt(a->e->seed + 2, other, N);
    for (int i = 0; i < 2 && ok; i++)
        if (kopi_cache_new(a->l.model, &c[i], &err) != KOPI_OK) ok = cf_wrong(a->e, "cache: %s", err.text);
    for (size_t at = 0; at < N && ok; at += 6) {
        ok = forward(a->e, &a->l, c[0], a->ids + at, 6, 4, a->have + at * CHECK_VOCAB) &&
             forward(a->e, &a->l, c[1], other + at, 6, 6, others + at * CHECK_VOCAB);
    }
    for (int i = 0; i < 2; i++) kopi_cache_free(c[i]);
    ok = ok && agree(a->e, a->l.exact, a->want, a->have, N, "two sequences in turn") &&
         fresh(a->e, &a->l, other, N, N, lonely) && agree(a->e, a->l.exact, lonely, others, N, "two sequences in turn");
    free(others);
    free(lonely);
    return ok;
}

static enum cf_verdict prefill(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return on_each(e, in_pieces);
}
static enum cf_verdict rollback(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return on_each(e, goes_back);
}
static enum cf_verdict sequences(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return on_each(e, in_turn);
}

/* Any number of threads: the same bits, or within the bound. */
static enum cf_verdict threads(struct cf_env *e, const struct cf_test *t)
{
    static const char *const counts[] = {"1", "3", "4"};
    float *want = rows(N), *have = rows(N);
    char file[64];
    int32_t ids[N];
    bool ok = true;
    (void)t;
    check_model_file(&qwen2, e->seed, file);
    make_prompt(e->seed, ids, N);
    for (int i = 0; i < 3 && ok; i++) {
        struct loaded l;
        char what[32];
        snprintf(what, sizeof what, "%s threads", counts[i]);
        ok = load(e, &l, false, file, "f32", counts[i]) && fresh(e, &l, ids, N, 11, i ? have : want) &&
             (!i || agree(e, l.exact, want, have, N, what));
        unload(&l);
    }
    free(want);
    free(have);
    return VERDICT(ok);
}

/* Two models in one process, each on a thread of its own at the same time. */
struct runner {
    struct cf_env *e;
    struct loaded l;
    const int32_t *ids;
    float *have;
    bool ok;
};
static void *run_often(void *arg)
{
    struct runner *r = arg;
    for (int i = 0; i < 5 && r->ok; i++) r->ok = fresh(r->e, &r->l, r->ids, N, 9, r->have);
    return NULL;
}

static enum cf_verdict two_models(struct cf_env *e, const struct cf_test *t)
{
    const struct check_model *const models[2] = {&llama, &gemma3};
    struct runner r[2] = {0};
    float *want[2];
    int32_t ids[N];
    char file[64];
    bool ok = true;
    pthread_t thread;
    (void)t;
    make_prompt(e->seed, ids, N);
    for (int i = 0; i < 2; i++) {
        r[i] = (struct runner){.e = e, .ids = ids, .have = rows(N), .ok = true};
        want[i] = rows(N);
        ok = ok && load(e, &r[i].l, false, check_model_file(models[i], e->seed, file), "f32", "2") &&
             fresh(e, &r[i].l, ids, N, N, want[i]);
    }
    if (ok && pthread_create(&thread, NULL, run_often, &r[0])) ok = cf_wrong(e, "no thread");
    if (ok) {
        run_often(&r[1]);
        pthread_join(thread, NULL);
        ok = r[0].ok && r[1].ok && agree(e, r[0].l.exact, want[0], r[0].have, N, "two models at once") &&
             agree(e, r[1].l.exact, want[1], r[1].have, N, "two models at once");
    }
    for (int i = 0; i < 2; i++) {
        unload(&r[i].l);
        free(want[i]);
        free(r[i].have);
    }
    return VERDICT(ok);
}

/* ---- cancelling -------------------------------------------------------------------------------------------------- */

/* A cancelled call changes nothing, and the next one is as if it had not been. */
static bool cancelled(struct alone *a)
{
    kopi_cache *c;
    kopi_error err;
    if (kopi_cache_new(a->l.model, &c, &err) != KOPI_OK) return cf_wrong(a->e, "cache: %s", err.text);
    bool ok = forward(a->e, &a->l, c, a->ids, 20, 20, a->have);
    kopi_model_cancel(a->l.model);
    kopi_status s =
        ok ? kopi_model_forward(a->l.model, c, a->ids + 20, N - 20, a->have + 20 * CHECK_VOCAB, &err) : KOPI_OK;
    if (ok && s != KOPI_E_CANCELLED) ok = cf_wrong(a->e, "a cancelled call returns %s", kopi_status_name(s));
    if (ok && kopi_cache_length(c) != 20)
        ok = cf_wrong(a->e, "a cancelled call leaves %u tokens in the cache, not 20", kopi_cache_length(c));
    ok = ok && forward(a->e, &a->l, c, a->ids + 20, N - 20, N, a->have + 20 * CHECK_VOCAB) &&
         agree(a->e, a->l.exact, a->want, a->have, N, "after cancelling");
    kopi_cache_free(c);
    return ok;
}

static enum cf_verdict cancel_model(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return on_each(e, cancelled);
}

/* ---- the lists --------------------------------------------------------------------------------------------------- */

#define BASE "ops/norm ops/rope ops/glu ops/add ops/gather ops/attn/f32 ops/window life/workers life/two-instances "
#define LLAMA BASE "ops/embed/f32 ops/linear/f32 "
#define GEMMA BASE "ops/embed/f16 ops/linear/f16 ops/scale ops/softcap "
#define QWEN BASE "ops/embed/q8_0 ops/linear/q8_0 ops/quantize/a8_32 "

void check_add_model(struct cf_list *l)
{
    static const struct cf_test tests[] = {
        {.name = "model/llama", .run = is_llama, .bare = true, .needs = LLAMA},
        {.name = "model/qwen2", .run = is_qwen2, .bare = true, .needs = QWEN},
        {.name = "model/gemma3", .run = is_gemma3, .bare = true, .needs = GEMMA},
        {.name = "model/mixed", .run = is_mixed, .bare = true, .needs = QWEN "ops/linear ops/quantize"},
        {.name = "model/long", .run = is_long, .bare = true, .needs = LLAMA GEMMA "model/llama model/gemma3"},
        {.name = "model/f16-cache",
         .run = is_f16_cache,
         .bare = true,
         .needs = LLAMA GEMMA "ops/attn model/llama model/gemma3"},
        {.name = "model/prefill", .run = prefill, .bare = true, .needs = LLAMA GEMMA "model/llama model/gemma3"},
        {.name = "model/rollback", .run = rollback, .bare = true, .needs = LLAMA GEMMA "model/prefill"},
        {.name = "model/sequences", .run = sequences, .bare = true, .needs = LLAMA GEMMA "model/prefill"},
        {.name = "model/threads", .run = threads, .bare = true, .needs = QWEN "model/qwen2"},
        {.name = "model/two-models", .run = two_models, .bare = true, .needs = LLAMA GEMMA "model/llama model/gemma3"},
    };
    cf_list_add_all(l, tests, sizeof tests / sizeof *tests);
}

void check_add_cancel(struct cf_list *l)
{
    cf_list_add(l, &(struct cf_test){.name = "cancel/model",
                                     .run = cancel_model,
                                     .bare = true,
                                     .needs = LLAMA GEMMA "model/prefill cancel/plan"});
}
