/* kopi backends check: runs the tests of conformance/ and check_model.c on one backend, and reports. */
#include "check.h"

#include "backend/search.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli.h"
#include "conformance/child.h"
#include "config/config.h"
#include "run/engine.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char *groups, *reproduce;
static bool json, in_process;
static int64_t seed = -1, rounds = 3, limit_s = 60;

const struct cli_option cli_backends_options[] = {
    {"--group", "NAME,...", CLI_STRING, &groups, "check: only load, abi, life, ops, model, cancel, support", 0, 0},
    {"--seed", "N", CLI_INT, &seed, "check: of everything random; default: a new one, which is printed", 0, INT64_MAX},
    {"--rounds", "N", CLI_INT, &rounds, "check: how often every kind of operation is drawn", 1, 1000},
    {"--reproduce", "CASE:SEED", CLI_STRING, &reproduce, "check: one case with the seed that a failure names", 0, 0},
    {"--in-process", NULL, CLI_FLAG, &in_process, "check: no process for each case, for debuggers", 0, 0},
    {"--time-limit", "S", CLI_INT, &limit_s, "check: seconds that a case may take", 1, 86400},
    {"--json", NULL, CLI_FLAG, &json, "check: one JSON object instead of TAP", 0, 0},
    {0},
};

/* ---- which tests ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*add[2])(struct cf_list *l);
} all_groups[] = {{"load", {cf_add_load}},      {"abi", {cf_add_abi}},
                  {"life", {cf_add_life}},      {"ops", {cf_add_ops}},
                  {"model", {check_add_model}}, {"cancel", {cf_add_cancel, check_add_cancel}},
                  {"support", {cf_add_support}}};
enum { N_GROUPS = sizeof all_groups / sizeof *all_groups };

static bool listed(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (; list; list = strchr(list, ',') ? strchr(list, ',') + 1 : NULL)
        if (!strncmp(list, name, n) && (!list[n] || list[n] == ',')) return true;
    return false;
}

static int check_groups(void)
{
    for (const char *p = groups; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        bool known = false;
        for (int g = 0; g < N_GROUPS; g++)
            known |= strlen(all_groups[g].name) == strcspn(p, ",") && !strncmp(p, all_groups[g].name, strcspn(p, ","));
        if (!known)
            return cli_error(EXIT_USAGE,
                             "there is no group \"%.*s\"; groups are load, abi, life, ops, model, cancel, support",
                             (int)strcspn(p, ","), p);
    }
    return 0;
}

static void add_tests(struct cf_list *l)
{
    for (int g = 0; g < N_GROUPS; g++)
        for (int k = 0; k < 2; k++)
            if (all_groups[g].add[k] && (!groups || listed(groups, all_groups[g].name))) all_groups[g].add[k](l);
}

/* CASE:SEED leaves one test. */
static int reproduce_one(struct cf_list *l, struct cf_setup *s)
{
    const char *colon = strrchr(reproduce, ':');
    int64_t v;
    if (!colon || !kopi__parse_i64(colon + 1, &v) || v < 0)
        return cli_error(EXIT_USAGE, "--reproduce is \"%.60s\", it must be CASE:SEED as a failure prints it",
                         reproduce);
    for (size_t i = 0; i < l->n; i++)
        if (strlen(l->at[i].name) == (size_t)(colon - reproduce) &&
            !strncmp(l->at[i].name, reproduce, (size_t)(colon - reproduce))) {
            l->at[0] = l->at[i];
            l->at[0].needs = NULL;
            l->n = 1;
            s->seed = (uint64_t)v;
            s->one_seed = !strncmp(reproduce, "ops/", 4);
            return 0;
        }
    return cli_error(EXIT_USAGE, "there is no case \"%.*s\"", (int)(colon - reproduce), reproduce);
}

/* ---- reporting --------------------------------------------------------------------------------------------------- */

struct report {
    const struct cf_setup *setup;
    const struct cf_about *about;
    json_t *cases;
    size_t n, counts[3]; /* by verdict */
};

/* Text of a YAML scalar in single quotes: on one line. */
static void print_scalar(const char *key, const char *text)
{
    printf("  %s: '", key);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\'') putchar('\'');
        putchar(c < 0x20 || c == 0x7f ? ' ' : c);
    }
    puts("'");
}

static void print_lines(const char *before, const char *text)
{
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        printf("%s%.*s\n", before, (int)n, text);
    }
}

static void tap_begin(const struct report *r, size_t n_tests)
{
    const struct cf_about *a = r->about;
    printf("TAP version 13\n1..%zu\n# backend %s %s: %s\n", n_tests, a->name, a->version, r->setup->path);
    if (a->known)
        printf("# device %s (%s), %s\n", a->device, a->detail,
               a->flags & KOPI_DEVICE_EXACT        ? "exact"
               : a->flags & KOPI_DEVICE_REPEATABLE ? "repeatable"
                                                   : "not repeatable");
    printf("# reference %s\n# seed %llu\n", r->setup->reference_path, (unsigned long long)r->setup->seed);
    fflush(stdout);
}

static void tap_failure(const struct report *r, const struct cf_test *t, const struct cf_result *x, const char *output)
{
    char again[256];
    puts("  ---");
    print_scalar("message", x->text);
    if (x->doing[0]) print_scalar("program", x->doing);
    snprintf(again, sizeof again, "kopi backends check %s --reproduce %s:%llu", r->setup->path, t->name,
             (unsigned long long)x->seed);
    print_scalar("reproduce", again);
    if (output[0]) {
        puts("  output: |");
        print_lines("    ", output);
    }
    puts("  ...");
}

static void tap_case(struct report *r, const struct cf_test *t, const struct cf_result *x, const char *output)
{
    printf("%sok %zu - %s", x->verdict == CF_FAIL ? "not " : "", r->n, t->name);
    if (x->verdict == CF_SKIP) printf(" # SKIP %s", x->text);
    else if (x->verdict == CF_PASS && x->programs && x->text[0]) printf(" (%u programs; %s)", x->programs, x->text);
    else if (x->verdict == CF_PASS && x->text[0]) printf(" (%s)", x->text);
    putchar('\n');
    if (x->verdict == CF_FAIL) tap_failure(r, t, x, output);
    print_lines("# ", x->matrix);
    fflush(stdout);
}

static void json_case(struct report *r, const struct cf_test *t, const struct cf_result *x, const char *output,
                      double ms)
{
    static const char *const verdicts[] = {[CF_PASS] = "pass", [CF_FAIL] = "fail", [CF_SKIP] = "skip"};
    json_t *o = json_pack("{s:s, s:s, s:s, s:I, s:i, s:f}", "case", t->name, "result", verdicts[x->verdict], "text",
                          x->text, "seed", (json_int_t)x->seed, "programs", (int)x->programs, "ms", ms);
    if (!o) abort();
    if (x->doing[0]) json_object_set_new(o, "program", json_string(x->doing));
    if (output[0]) json_object_set_new(o, "output", json_string(output));
    if (x->matrix[0]) json_object_set_new(o, "matrix", json_string(x->matrix));
    json_array_append_new(r->cases, o);
}

static void json_end(struct report *r)
{
    const struct cf_about *a = r->about;
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:o}", "backend", a->name, "version",
                          a->version, "path", r->setup->path, "device", a->device, "detail", a->detail, "exact",
                          (a->flags & KOPI_DEVICE_EXACT) != 0, "reference", r->setup->reference_path, "seed",
                          (json_int_t)r->setup->seed, "passed", (json_int_t)r->counts[CF_PASS], "failed",
                          (json_int_t)r->counts[CF_FAIL], "skipped", (json_int_t)r->counts[CF_SKIP], "cases", r->cases);
    if (!o) abort();
    json_dumpf(o, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(o);
}

static void end(struct report *r)
{
    if (json) json_end(r);
    else printf("# %zu passed, %zu failed, %zu skipped\n", r->counts[CF_PASS], r->counts[CF_FAIL], r->counts[CF_SKIP]);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* A failed test on which t builds, or NULL. */
static const char *failed_need(const struct cf_list *l, const bool *failed, const struct cf_test *t)
{
    for (size_t i = 0; i < l->n; i++) {
        if (!failed[i]) continue;
        if (!strcmp(l->at[i].name, "load/opens")) return l->at[i].name;
        for (const char *p = t->needs; p && *p; p += strspn(p, " ")) {
            size_t n = strcspn(p, " ");
            if (!strncmp(l->at[i].name, p, n) && (!l->at[i].name[n] || l->at[i].name[n] == '/')) return l->at[i].name;
            p += n;
        }
    }
    return NULL;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void run_all(struct report *r, const struct cf_list *l)
{
    static char output[4096];
    bool failed[sizeof l->at / sizeof *l->at] = {0};
    for (size_t i = 0; i < l->n && !cli_interrupted(); i++) {
        static struct cf_result x;
        const struct cf_test *t = &l->at[i];
        const char *need = failed_need(l, failed, t);
        double begin = now_ms();
        if (need) {
            x = (struct cf_result){.verdict = CF_SKIP, .seed = r->setup->seed};
            snprintf(x.text, sizeof x.text, "builds on %s, which failed", need);
            output[0] = 0;
        } else cf_run(r->setup, t, &x, output, sizeof output);
        if (cli_interrupted()) break;
        failed[i] = x.verdict == CF_FAIL;
        r->n++;
        r->counts[x.verdict]++;
        if (json) json_case(r, t, &x, output, now_ms() - begin);
        else tap_case(r, t, &x, output);
    }
}

/* What the backend says of itself, asked in a process of its own. */
static void ask_about(struct cf_setup *s, struct cf_about *about)
{
    static char output[64];
    static struct cf_result x;
    struct cf_list load = {.n = 0};
    cf_add_load(&load);
    cf_run(s, &load.at[0], &x, output, sizeof output);
    *about = x.about;
    s->about = about;
}

/* Options of the configuration for a plugin; the reference runs its plainest code where it is compared with itself. */
static const char *const *options_for(void *ctx, const kopi_plugin *p, bool reference)
{
    static const char *const baseline[] = {"isa=baseline", NULL};
    const struct cf_about *about = ctx;
    size_t n = 0;
    if (reference) return !strcmp(about->name, p->name) ? baseline : NULL;
    while (p->option_keys && p->option_keys[n]) n++;
    char **list = calloc(n + 1, sizeof *list);
    if (!list) abort();
    for (size_t i = n = 0; p->option_keys && p->option_keys[i]; i++) {
        const struct kopi__setting *o = kopi__config_option(cli_config, p->name, p->option_keys[i]);
        if (o && asprintf(&list[n++], "%s=%s", p->option_keys[i], o->text) < 0) abort();
    }
    return (const char *const *)list; /* as long as the process of the test */
}

static int find(const char *backend, struct kopi_plugin_file *out)
{
    kopi_error e;
    struct kopi_plugin_search search = kopi__engine_search(cli_config);
    if (strchr(backend, '/')) search.path = backend;
    else search.name = backend;
    return kopi__plugin_find(&search, out, &e) == KOPI_OK ? 0 : cli_fail(&e);
}

static int check(struct cf_setup *s)
{
    struct cf_about about = {0};
    struct cf_list tests = {.n = 0};
    struct report r = {.setup = s, .about = &about, .cases = json_array()};
    s->ctx = &about;
    add_tests(&tests);
    int code = reproduce ? reproduce_one(&tests, s) : 0;
    if (code) return code;
    ask_about(s, &about);
    if (!json) tap_begin(&r, tests.n);
    run_all(&r, &tests);
    if (cli_interrupted()) return cli_error(EXIT_INTERRUPTED, "interrupted");
    end(&r);
    return r.counts[CF_FAIL] ? EXIT_CONFORMANCE : 0;
}

int cli_backends_check(const char *backend)
{
    struct kopi_plugin_file subject = {0}, reference = {0};
    int code = check_groups();
    if (!code) code = find(backend, &subject);
    if (!code) code = find("cpu", &reference);
    if (!code) {
        struct cf_setup s = {.path = subject.path,
                             .reference_path = reference.path,
                             .options = options_for,
                             .seed = (uint64_t)(seed >= 0 ? seed : time(NULL) % 1000000),
                             .in_process = in_process,
                             .rounds = (uint32_t)rounds,
                             .limit_s = (uint32_t)limit_s,
                             .stop = cli_interrupted};
        code = check(&s);
    }
    kopi__free(subject.path);
    kopi__free(reference.path);
    return code;
}
