/* kopi bench: as llama-bench. Prompt processing (pp) and generation (tg) of random tokens, several runs each after a warm-up. */
#include "commands.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/sys.h"
#include "gguf/gguf.h"
#include "run/model.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t n_prompt = 512, n_gen = 128, repeats = 5;
static const char *pairs, *depths = "0", *format = "md", *parallel = "1";

const struct cli_option cli_bench_options[] = {
    {"-p, --n-prompt", "N", CLI_INT, &n_prompt, "tokens of the prompt test (512); 0: none", 0, 1 << 20},
    {"-n, --n-gen", "N", CLI_INT, &n_gen, "tokens of the generation test (128); 0: none", 0, 1 << 20},
    {"-pg", "P,N", CLI_STRING, &pairs, "one more test: a prompt of P tokens, then N generated", 0, 0},
    {"-d, --depth", "N,...", CLI_STRING, &depths, "tokens that are in the cache before each test (0)", 0, 0},
    {"-r, --repetitions", "N", CLI_INT, &repeats, "runs of each test (5)", 1, 1000},
    {"--parallel", "N,...", CLI_STRING, &parallel, "sequences decoded together in the generation test (1)", 0, 0},
    {"-o, --output", "md|csv|json|jsonl", CLI_STRING, &format, "form of the result (md)", 0, 0},
    {0},
};

struct test { int64_t prompt, gen, depth, sequences; };
struct samples { double *ns; size_t n; };

/* Ids that do not depend on anything: a fixed multiplicative sequence over the vocabulary. */
static void fill_ids(int32_t *ids, size_t n, uint32_t vocab)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((x >> 33) % vocab);
    }
}

/* One run: *ns is the time of the test itself, without the tokens that fill the depth. */
static kopi_status run_single(kopi_model *m, const struct test *t, const int32_t *ids, float *row, uint64_t *ns, kopi_error *e)
{
    kopi_cache *cache;
    kopi_status s = kopi_cache_new(m, &cache, e);
    if (s == KOPI_OK && t->depth) s = kopi_model_forward_last(m, cache, ids, (size_t)t->depth, 0, NULL, e);
    uint64_t start = kopi__now_ns();
    if (s == KOPI_OK && t->prompt) s = kopi_model_forward_last(m, cache, ids, (size_t)t->prompt, 1, row, e);
    for (int64_t i = 0; i < t->gen && s == KOPI_OK; i++) s = kopi_model_forward(m, cache, ids + i, 1, row, e);
    *ns = kopi__now_ns() - start;
    kopi_cache_free(cache);
    return s;
}

/* Generation of several sequences through the scheduler: each gets a prompt of one token. */
static kopi_status run_together(kopi_model *m, const struct test *t, const int32_t *ids, uint64_t *ns, kopi_error *e)
{
    kopi_scheduler *sched;
    kopi_status s = kopi_scheduler_new(m, &sched, e);
    uint64_t id[256];
    size_t active = 1, n = (size_t)t->sequences;
    for (size_t i = 0; i < n && s == KOPI_OK; i++) {
        kopi_request q = {.struct_size = sizeof q, .n_predict = (int32_t)t->gen, .ids = ids + i, .n_ids = 1 + (size_t)t->depth,
                          .ignore_eos = 1};
        kopi_sampling_default(NULL, &q.sampling);
        q.sampling.temperature = 0;
        s = kopi_scheduler_submit(sched, &q, &id[i], e);
    }
    uint64_t start = kopi__now_ns();
    while (s == KOPI_OK && active) s = kopi_scheduler_step(sched, &active, e);
    *ns = kopi__now_ns() - start;
    for (size_t i = 0; i < n && s == KOPI_OK; i++) {
        kopi_result r;
        s = kopi_scheduler_result(sched, id[i], &r, e);
        kopi_result_clear(&r);
    }
    kopi_scheduler_free(sched);
    return s;
}

static kopi_status run_once(kopi_model *m, const struct test *t, const int32_t *ids, float *row, uint64_t *ns, kopi_error *e)
{
    return t->sequences > 1 ? run_together(m, t, ids, ns, e) : run_single(m, t, ids, row, ns, e);
}

static double tokens_of(const struct test *t) { return (double)(t->prompt + t->gen * t->sequences); }

/* ---- output ---------------------------------------------------------------------------------------------------------- */

struct summary { double avg_ns, stddev_ns, avg_ts, stddev_ts; };

static struct summary summarize(const struct test *t, const double *ns, size_t n)
{
    struct summary s = {0};
    for (size_t i = 0; i < n; i++) {
        s.avg_ns += ns[i] / (double)n;
        s.avg_ts += tokens_of(t) * 1e9 / ns[i] / (double)n;
    }
    for (size_t i = 0; i < n && n > 1; i++) {
        double ts = tokens_of(t) * 1e9 / ns[i];
        s.stddev_ns += (ns[i] - s.avg_ns) * (ns[i] - s.avg_ns) / (double)(n - 1);
        s.stddev_ts += (ts - s.avg_ts) * (ts - s.avg_ts) / (double)(n - 1);
    }
    s.stddev_ns = sqrt(s.stddev_ns);
    s.stddev_ts = sqrt(s.stddev_ts);
    return s;
}

static void test_name(const struct test *t, char *buf, size_t n)
{
    int k = t->prompt && t->gen ? snprintf(buf, n, "pp%lld+tg%lld", (long long)t->prompt, (long long)t->gen)
            : t->prompt         ? snprintf(buf, n, "pp%lld", (long long)t->prompt)
                                : snprintf(buf, n, "tg%lld", (long long)t->gen);
    if (t->sequences > 1) k += snprintf(buf + k, n - (size_t)k, " x %lld", (long long)t->sequences);
    if (t->depth) snprintf(buf + k, n - (size_t)k, " @ d%lld", (long long)t->depth);
}

static const char *fixed(double v, int digits)
{
    static char buf[8][40];
    static unsigned at;
    char *b = buf[at++ % 8];
    return kopi__format_fixed(v, digits, b, sizeof buf[0]);
}

struct context { kopi_model *m; kopi_backend_info info; uint64_t size; char size_text[40]; int n_printed; };

static const char *kv_type(uint32_t dtype) { return dtype == KOPI_DTYPE_F32 ? "f32" : "f16"; }

/* One field per llama-bench key. */
static void print_record(struct context *c, const struct test *t, const struct summary *s, const double *ns, size_t n, bool json)
{
    time_t now = time(NULL);
    struct tm tm;
    char date[40];
    gmtime_r(&now, &tm);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &tm);
    const char *q = "\"";
    if (!json && !c->n_printed)
        printf("build_version,backends,cpu_info,model_filename,model_type,model_size,n_batch,n_threads,type_k,type_v,n_prompt,n_gen,"
               "n_depth,n_seq,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts\n");
#define FIELD(name, fmt, ...) (json ? printf("\"" name "\": " fmt ", ", __VA_ARGS__) : printf(fmt ",", __VA_ARGS__))
    if (json) putchar('{');
    FIELD("build_version", "%s%s%s", q, kopi_version(), q);
    FIELD("backends", "%s%s%s", q, c->info.name, q);
    FIELD("cpu_info", "%s%s%s", q, c->info.detail, q);
    FIELD("model_filename", "%s%s%s", q, c->m->id, q);
    FIELD("model_type", "%s%s%s", q, c->m->decoder.arch, q);
    FIELD("model_size", "%llu", (unsigned long long)c->size);
    FIELD("n_batch", "%u", c->m->max_tok);
    FIELD("n_threads", "%u", c->info.threads);
    FIELD("type_k", "%s%s%s", q, kv_type(c->m->program->groups[0].dtype_k), q);
    FIELD("type_v", "%s%s%s", q, kv_type(c->m->program->groups[0].dtype_v), q);
    FIELD("n_prompt", "%lld", (long long)t->prompt);
    FIELD("n_gen", "%lld", (long long)t->gen);
    FIELD("n_depth", "%lld", (long long)t->depth);
    FIELD("n_seq", "%lld", (long long)t->sequences);
    FIELD("test_time", "%s%s%s", q, date, q);
    FIELD("avg_ns", "%s", fixed(s->avg_ns, 0));
    FIELD("stddev_ns", "%s", fixed(s->stddev_ns, 0));
    FIELD("avg_ts", "%s", fixed(s->avg_ts, 6));
#undef FIELD
    printf(json ? "\"stddev_ts\": %s" : "%s", fixed(s->stddev_ts, 6));
    if (json) {
        printf(", \"samples_ns\": [");
        for (size_t i = 0; i < n; i++) printf("%s%s", i ? ", " : "", fixed(ns[i], 0));
        printf("], \"samples_ts\": [");
        for (size_t i = 0; i < n; i++) printf("%s%s", i ? ", " : "", fixed(tokens_of(t) * 1e9 / ns[i], 6));
        printf("]}");
    } else
        putchar('\n');
}

static void print_result(struct context *c, const struct test *t, const double *ns, size_t n)
{
    struct summary s = summarize(t, ns, n);
    char name[64];
    test_name(t, name, sizeof name);
    if (!strcmp(format, "json")) {
        printf(c->n_printed ? ",\n  " : "[\n  ");
        print_record(c, t, &s, ns, n, true);
    } else if (!strcmp(format, "jsonl")) {
        print_record(c, t, &s, ns, n, true);
        putchar('\n');
    } else if (!strcmp(format, "csv")) {
        print_record(c, t, &s, ns, n, false);
    } else {
        if (!c->n_printed)
            printf("| model | size | backend | threads | test | t/s |\n| --- | ---: | --- | ---: | ---: | ---: |\n");
        printf("| %s | %s | %s (%s) | %u | %s | %s ± %s |\n", c->m->id, c->size_text, c->info.name, c->info.detail, c->info.threads, name,
               fixed(s.avg_ts, 2), fixed(s.stddev_ts, 2));
    }
    fflush(stdout);
    c->n_printed++;
}

/* ---- driver ---------------------------------------------------------------------------------------------------------- */

static int run_test(struct context *c, const struct test *t, const int32_t *ids, float *row)
{
    kopi_error e;
    double *ns = kopi__calloc((size_t)repeats, sizeof *ns);
    struct test warm = {t->prompt < 32 ? t->prompt : 32, t->gen ? 1 : 0, 0, 1};
    uint64_t one;
    if (!ns) return cli_error(EXIT_RUN, "out of memory");
    kopi_status s = run_single(c->m, &warm, ids, row, &one, &e);
    for (int64_t r = 0; r < repeats && s == KOPI_OK; r++) {
        s = run_once(c->m, t, ids, row, &one, &e);
        ns[r] = (double)(one ? one : 1);
    }
    if (s == KOPI_OK) print_result(c, t, ns, (size_t)repeats);
    kopi__free(ns);
    return s == KOPI_OK ? 0 : cli_fail(&e);
}

static int run_tests(struct context *c, const int32_t *depth, size_t n_depth, const int32_t *seqs, size_t n_seqs, const int32_t *pg, size_t n_pg)
{
    uint32_t vocab = kopi_model_vocab_size(c->m), ctx = kopi_model_max_context(c->m);
    int32_t *ids = kopi__calloc((size_t)ctx + 256, sizeof *ids);
    float *row = kopi__calloc(vocab, sizeof *row);
    int code = ids && row ? 0 : cli_error(EXIT_RUN, "out of memory");
    if (!code) fill_ids(ids, (size_t)ctx + 256, vocab);
    for (size_t d = 0; d < n_depth && !code; d++) {
        struct test tests[258];
        size_t n = 0;
        if (n_prompt) tests[n++] = (struct test){n_prompt, 0, depth[d], 1};
        for (size_t k = 0; n_gen && k < n_seqs; k++) tests[n++] = (struct test){0, n_gen, depth[d], seqs[k]};
        if (n_pg) tests[n++] = (struct test){pg[0], pg[1], depth[d], 1};
        for (size_t k = 0; k < n && !code; k++) {
            int64_t need = tests[k].depth + tests[k].prompt + tests[k].gen;
            if (need > ctx) code = cli_error(EXIT_USAGE, "a test needs %lld positions, the context has %u; raise --ctx-size", (long long)need, ctx);
            else code = run_test(c, &tests[k], ids, row);
        }
    }
    kopi__free(row);
    kopi__free(ids);
    return code;
}

static int with_model(const int32_t *depth, size_t n_depth, const int32_t *seqs, size_t n_seqs, const int32_t *pg, size_t n_pg)
{
    kopi_engine *engine;
    kopi_model *model;
    char text[16];
    int32_t most = 1;
    for (size_t i = 0; i < n_seqs; i++) most = seqs[i] > most ? seqs[i] : most;
    snprintf(text, sizeof text, "%d", most);
    kopi_error e;
    if (most > 1 && kopi_config_set(cli_config, "models[].context.parallel", text, &e) != KOPI_OK) return cli_fail(&e);
    int code = cli_load(&engine, &model);
    if (code) return code;
    struct context c = {.m = model, .size = kopi__gguf_file_size(model->gguf)};
    kopi_backend_device(model, &c.info);
    kopi__format_bytes(c.size, c.size_text, sizeof c.size_text);
    code = run_tests(&c, depth, n_depth, seqs, n_seqs, pg, n_pg);
    if (!strcmp(format, "json") && c.n_printed) printf("\n]\n");
    cli_unload(engine, model);
    return code;
}

int cli_bench(int n_args, char **args)
{
    (void)n_args, (void)args;
    static const char *const formats[] = {"md", "csv", "json", "jsonl"};
    bool known = false;
    size_t n_depth = 0, n_pg = 0, n_seqs = 0;
    for (int i = 0; i < 4; i++) known |= !strcmp(format, formats[i]);
    if (!known) return cli_error(EXIT_USAGE, "-o is \"%.40s\", allowed are md, csv, json, jsonl", format);
    int32_t *depth = cli_parse_ids(depths, &n_depth), *seqs = cli_parse_ids(parallel, &n_seqs), *pg = pairs ? cli_parse_ids(pairs, &n_pg) : NULL;
    int code = !depth || !seqs || (pairs && !pg) ? EXIT_USAGE : 0;
    if (!code && pairs && n_pg != 2) code = cli_error(EXIT_USAGE, "-pg is \"%.40s\", expected two numbers P,N", pairs);
    for (size_t i = 0; i < n_seqs && !code; i++)
        if (seqs[i] < 1 || seqs[i] > 256) code = cli_error(EXIT_USAGE, "--parallel takes numbers from 1 to 256");
    if (!code && n_seqs > 200) code = cli_error(EXIT_USAGE, "--parallel takes at most 200 numbers");
    if (!code) code = with_model(depth, n_depth, seqs, n_seqs, pg, n_pg);
    free(depth);
    free(seqs);
    free(pg);
    return code;
}
