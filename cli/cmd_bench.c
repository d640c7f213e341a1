/* kopi bench: as llama-bench. Prompt processing (pp) and generation (tg) of random tokens, several runs each after a
 * warm-up. */
#include "bench_report.h"
#include "commands.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/sys.h"
#include "config/config.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_LIST = 64, MAX_TOKENS = 1 << 24, MAX_SEQUENCES = 256 };

static int64_t repeats = 5;
static const char *prompts = "512", *gens = "128", *depths = "0", *format = "md", *parallel;
static struct cli_list pairs;

const struct cli_option cli_bench_options[] = {
    {"-p, --n-prompt", "N,...", CLI_STRING, &prompts, "tokens of the prompt tests (512); 0: none", 0, 0},
    {"-n, --n-gen", "N,...", CLI_STRING, &gens, "tokens of the generation tests (128); 0: none", 0, 0},
    {"-pg", "P,N", CLI_LIST, &pairs, "one more test: a prompt of P tokens, then N generated (several allowed)", 0, 0},
    {"-d, --depth, --n-depth", "N,...", CLI_STRING, &depths, "tokens that are in the cache before each test (0)", 0, 0},
    {"-r, --repetitions", "N", CLI_INT, &repeats, "runs of each test (5)", 1, 1000},
    {"-np, --parallel", "N,...", CLI_STRING, &parallel, "generation of N sequences together, through the scheduler", 0,
     0},
    {"-o, --output", "md|csv|json|jsonl", CLI_STRING, &format, "form of the result (md)", 0, 0},
    {0},
};

/* ---- what is asked ----------------------------------------------------------------------------------------------- */

struct list {
    int64_t at[MAX_LIST];
    size_t n;
};

/* "512,1024": numbers from lo to hi. */
static int parse_list(const char *flag, const char *value, int64_t lo, int64_t hi, struct list *out)
{
    char one[24];
    out->n = 0;
    for (const char *p = value;; p++) {
        size_t n = strcspn(p, ",");
        snprintf(one, sizeof one, "%.*s", (int)(n < sizeof one ? n : 0), p);
        if (out->n == MAX_LIST) return cli_error(EXIT_USAGE, "%s takes at most %d numbers", flag, MAX_LIST);
        if (!kopi__parse_i64(one, &out->at[out->n]) || out->at[out->n] < lo || out->at[out->n] > hi)
            return cli_error(EXIT_USAGE, "%s is \"%.40s\", wanted: whole numbers from %lld to %lld with commas between",
                             flag, value, (long long)lo, (long long)hi);
        out->n++;
        p += n;
        if (!*p) return 0;
    }
}

struct plan {
    struct bench_test *tests;
    size_t n;
    int64_t positions, sequences; /* the most that a test needs */
};

static void add(struct plan *p, struct bench_test t)
{
    int64_t need = t.depth + t.prompt + t.gen + (t.sequences > 0);
    if (!t.prompt && !t.gen) return;
    p->tests[p->n++] = t;
    if (need > p->positions) p->positions = need;
    if (t.sequences > p->sequences) p->sequences = t.sequences;
}

static void add_at(struct plan *p, int64_t depth, const struct list *pp, const struct list *tg, const struct list *np)
{
    for (size_t i = 0; i < pp->n; i++) add(p, (struct bench_test){pp->at[i], 0, depth, 0});
    for (size_t i = 0; i < tg->n; i++) {
        if (!np->n) add(p, (struct bench_test){0, tg->at[i], depth, 0});
        for (size_t k = 0; k < np->n && tg->at[i]; k++) add(p, (struct bench_test){0, tg->at[i], depth, np->at[k]});
    }
}

static int make_plan(struct plan *p)
{
    struct list pp, tg, d, np = {.n = 0}, pg;
    int code = parse_list("-p", prompts, 0, MAX_TOKENS, &pp);
    if (!code) code = parse_list("-n", gens, 0, MAX_TOKENS, &tg);
    if (!code) code = parse_list("-d", depths, 0, MAX_TOKENS, &d);
    if (!code && parallel) code = parse_list("--parallel", parallel, 1, MAX_SEQUENCES, &np);
    if (code) return code;
    size_t most = d.n * (pp.n + tg.n * (np.n ? np.n : 1) + pairs.n);
    p->tests = kopi__calloc(most, sizeof *p->tests);
    if (!p->tests) return cli_error(EXIT_RUN, "out of memory");
    for (size_t k = 0; k < d.n && !code; k++) {
        add_at(p, d.at[k], &pp, &tg, &np);
        for (size_t i = 0; i < pairs.n && !code; i++) {
            code = parse_list("-pg", pairs.at[i], 0, MAX_TOKENS, &pg);
            if (!code && pg.n != 2)
                code = cli_error(EXIT_USAGE, "-pg is \"%.40s\", wanted: two numbers P,N", pairs.at[i]);
            if (!code) add(p, (struct bench_test){pg.at[0], pg.at[1], d.at[k], 0});
        }
    }
    if (!code && !p->n) code = cli_error(EXIT_USAGE, "there is nothing to measure: all of -p, -n and -pg are 0");
    return code;
}

/* Sequences as the tests need them, and positions unless they are given; no other limit counts. */
static int set_context(const struct plan *p)
{
    char n_seq[24];
    kopi_error e;
    snprintf(n_seq, sizeof n_seq, "%lld", (long long)(p->sequences ? p->sequences : 1));
    kopi_status s = kopi_config_set(cli_config, "models[].context.parallel", n_seq, &e);
    if (s == KOPI_OK) s = kopi_config_set(cli_config, "models[].limits.max_tokens", "-1", &e);
    return s == KOPI_OK ? cli_need_context(p->positions) : cli_fail(&e);
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

struct bench {
    kopi_model *m;
    kopi_scheduler *sched; /* NULL: the test is of one sequence. Its caches hold pages, so it goes with its test */
    int32_t *ids;          /* [positions of a test + MAX_SEQUENCES] */
    float *row;            /* [n_vocab] */
};

/* Ids that do not depend on anything: a fixed multiplicative sequence over the vocabulary. */
static void fill_ids(int32_t *ids, size_t n, uint32_t vocab)
{
    uint64_t x = 88172645463325252u;
    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((x >> 33) % vocab);
    }
}

/* *ns is the time of the test itself, without the tokens that fill the depth. */
static kopi_status run_single(const struct bench *b, const struct bench_test *t, uint64_t *ns, kopi_error *e)
{
    kopi_cache *cache;
    kopi_status s = kopi_cache_new(b->m, &cache, e);
    if (s == KOPI_OK && t->depth) s = kopi_model_forward_last(b->m, cache, b->ids, (size_t)t->depth, 0, NULL, e);
    uint64_t start = kopi__now_ns();
    if (s == KOPI_OK && t->prompt) s = kopi_model_forward_last(b->m, cache, b->ids, (size_t)t->prompt, 1, b->row, e);
    for (int64_t i = 0; i < t->gen && s == KOPI_OK; i++) s = kopi_model_forward(b->m, cache, b->ids + i, 1, b->row, e);
    *ns = kopi__now_ns() - start;
    kopi_cache_free(cache);
    return s;
}

/* Answers of n_predict tokens for all sequences, behind depth + 1 tokens each. */
static kopi_status answer_all(const struct bench *b, const struct bench_test *t, int64_t n_predict, uint64_t *ns,
                              kopi_error *e)
{
    uint64_t id[MAX_SEQUENCES];
    size_t active = 1, n = (size_t)t->sequences;
    kopi_status s = KOPI_OK;
    for (size_t i = 0; i < n && s == KOPI_OK; i++) {
        kopi_request q = {.struct_size = sizeof q, .n_predict = (int32_t)n_predict, .ids = b->ids + i, .ignore_eos = 1};
        q.n_ids = 1 + (size_t)t->depth;
        kopi_sampling_default(NULL, &q.sampling);
        q.sampling.temperature = 0;
        s = kopi_scheduler_submit(b->sched, &q, &id[i], e);
    }
    uint64_t start = kopi__now_ns();
    while (s == KOPI_OK && active) s = kopi_scheduler_step(b->sched, &active, e);
    *ns = kopi__now_ns() - start;
    for (size_t i = 0; i < n && s == KOPI_OK; i++) {
        kopi_result r;
        s = kopi_scheduler_result(b->sched, id[i], &r, e);
        if (s == KOPI_OK && r.finish == KOPI_FINISH_CANCELLED) {
            *e = (kopi_error){.code = s = KOPI_E_CANCELLED, .text = "cancelled"};
        }
        kopi_result_clear(&r);
    }
    return s;
}

/* First the prompts alone, so that the test begins with all of them in the caches: it is all generation then, step by
 * step together. */
static kopi_status run_together(const struct bench *b, const struct bench_test *t, uint64_t *ns, kopi_error *e)
{
    kopi_status s = answer_all(b, t, 0, ns, e);
    return s == KOPI_OK ? answer_all(b, t, t->gen, ns, e) : s;
}

static kopi_status run_once(const struct bench *b, const struct bench_test *t, uint64_t *ns, kopi_error *e)
{
    return t->sequences ? run_together(b, t, ns, e) : run_single(b, t, ns, e);
}

static int run_test(struct bench *b, const struct bench_test *t, struct bench_report *report)
{
    kopi_error e;
    double *ns = kopi__calloc((size_t)repeats, sizeof *ns);
    struct bench_test warm = {t->prompt < 32 ? t->prompt : 32, t->gen ? 1 : 0, 0, t->sequences};
    uint64_t one;
    if (!ns) return cli_error(EXIT_RUN, "out of memory");
    kopi_status s = t->sequences ? kopi_scheduler_new(b->m, &b->sched, &e) : KOPI_OK;
    if (s == KOPI_OK) s = run_once(b, &warm, &one, &e);
    for (int64_t r = 0; r < repeats && s == KOPI_OK; r++) {
        s = run_once(b, t, &one, &e);
        ns[r] = (double)(one ? one : 1);
    }
    if (s == KOPI_OK) bench_print(report, t, ns, (size_t)repeats);
    kopi_scheduler_free(b->sched);
    b->sched = NULL;
    kopi__free(ns);
    return s == KOPI_OK ? 0 : cli_fail(&e);
}

/* ---- driver ------------------------------------------------------------------------------------------------------ */

static int run_tests(kopi_model *m, const struct plan *p, struct bench_report *report)
{
    struct bench b = {.m = m};
    uint32_t vocab = kopi_model_vocab_size(m);
    size_t n_ids = (size_t)p->positions + MAX_SEQUENCES;
    if (cli_check_context(m, p->positions)) return EXIT_USAGE;
    b.ids = kopi__calloc(n_ids, sizeof *b.ids);
    b.row = kopi__calloc(vocab, sizeof *b.row);
    int code = b.ids && b.row ? 0 : cli_error(EXIT_RUN, "out of memory");
    if (!code) fill_ids(b.ids, n_ids, vocab);
    for (size_t i = 0; i < p->n && !code; i++) code = run_test(&b, &p->tests[i], report);
    kopi__free(b.row);
    kopi__free(b.ids);
    return code;
}

int cli_bench(int n_args, char **args)
{
    (void)n_args, (void)args;
    struct plan p = {0};
    struct bench_report report = {0};
    kopi_engine *engine;
    kopi_model *model;
    if (!bench_format_of(format, &report.format))
        return cli_error(EXIT_USAGE, "-o is \"%.40s\", allowed are md, csv, json, jsonl", format);
    int code = make_plan(&p);
    if (!code) code = set_context(&p);
    if (!code) code = cli_load(&engine, &model);
    if (!code) {
        report.model = model;
        report.together = p.sequences > 0;
        code = run_tests(model, &p, &report);
        bench_print_end(&report);
        cli_unload(engine, model);
    }
    kopi__free(p.tests);
    return code;
}
