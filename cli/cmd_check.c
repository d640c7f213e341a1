/* kopi backends check: runs the tests of conformance/ and check_model.c on one backend, and reports. */
#include "check.h"
#include "commands.h"

#include "backend/search.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli.h"
#include "check_report.h"
#include "config/config.h"
#include "conformance/order.h"
#include "run/engine.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- options ----------------------------------------------------------------------------------------------------- */

static const char *groups, *cases, *reproduce;
static bool json, in_process;
static int64_t seed = -1, rounds, limit_s; /* 0: not given */

const struct cli_option cli_backends_check_options[] = {
    {"--group", "NAME,...", CLI_STRING, &groups, "only load, abi, life, ops, model, cancel, support; or bench: times",
     0, 0},
    {"--case", "NAME,...", CLI_STRING, &cases, "only these, by name or its beginning: ops/linear", 0, 0},
    {"--seed", "N", CLI_INT, &seed, "of everything random; default: a new one, which is printed", 0, INT64_MAX},
    {"--rounds", "N", CLI_INT, &rounds, "how often every kind of operation is drawn (3)", 1, 1000},
    {"--reproduce", "CASE:SEED", CLI_STRING, &reproduce, "one case with the seed that a failure names", 0, 0},
    {"--in-process", NULL, CLI_FLAG, &in_process, "no process for each case, for debuggers", 0, 0},
    {"--time-limit", "S", CLI_INT, &limit_s, "seconds that a case may take (60)", 1, 86400},
    {"--json", NULL, CLI_FLAG, &json, "one JSON object instead of TAP", 0, 0},
    {0},
};

/* ---- which tests ------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool asked; /* run only where --group names it */
    void (*add[2])(struct cf_list *l);
} all_groups[] = {{"load", false, {cf_add_load}},
                  {"abi", false, {cf_add_abi}},
                  {"life", false, {cf_add_life}},
                  {"ops", false, {cf_add_ops, cf_add_own_types}},
                  {"model", false, {check_add_model}},
                  {"cancel", false, {cf_add_cancel, check_add_cancel}},
                  {"support", false, {cf_add_support}},
                  {"bench", true, {cf_add_bench}}};
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
            return cli_error(
                EXIT_USAGE,
                "there is no group \"%.*s\"; groups are load, abi, life, ops, model, cancel, support, bench",
                (int)strcspn(p, ","), p);
    }
    return 0;
}

static void add_tests(struct cf_list *l)
{
    for (int g = 0; g < N_GROUPS; g++)
        for (int k = 0; k < 2; k++)
            if (all_groups[g].add[k] && (groups ? listed(groups, all_groups[g].name) : !all_groups[g].asked))
                all_groups[g].add[k](l);
}

/* --case leaves those that it names; each of its names must be that of some test. */
static int leave_cases(struct cf_list *l)
{
    bool wanted[sizeof l->at / sizeof *l->at] = {0};
    size_t n = 0;
    for (const char *p = cases; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
        bool known = false;
        for (size_t i = 0; i < l->n; i++)
            if (cf_name_begins(l->at[i].name, p, strcspn(p, ","))) known = wanted[i] = true;
        if (!known) return cli_error(EXIT_USAGE, "there is no case \"%.*s\"", (int)strcspn(p, ","), p);
    }
    for (size_t i = 0; i < l->n; i++)
        if (wanted[i]) l->at[n++] = l->at[i];
    l->n = n;
    return 0;
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

/* ---- running ----------------------------------------------------------------------------------------------------- */

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static void run_all(struct check_report *r, struct cf_setup *s, const struct cf_list *l)
{
    static char output[4096];
    const char *failed[sizeof l->at / sizeof *l->at + 1] = {0}; /* or skipped because another one did */
    size_t n_failed = 0;
    s->failed = failed;
    for (size_t i = 0; i < l->n; i++) {
        static struct cf_result x;
        const struct cf_test *t = &l->at[i];
        const char *need = cf_failed_need(t, failed);
        double begin = now_ms();
        if (need) {
            x = (struct cf_result){.verdict = CF_SKIP, .seed = r->setup->seed};
            snprintf(x.text, sizeof x.text, "builds on %s, which did not pass", need);
            output[0] = 0;
        } else cf_run(s, t, &x, output, sizeof output);
        if (cli_interrupted()) break;
        if (need || x.verdict == CF_FAIL) failed[n_failed++] = t->name;
        check_report_case(r, t, &x, output, now_ms() - begin);
    }
    s->failed = NULL;
}

/* What the backend says of itself, asked in a process of its own. */
static void ask_about(struct cf_setup *s, struct cf_about *about)
{
    static char output[64];
    static struct cf_result x;
    struct cf_list load = {.n = 0};
    cf_add_load(&load); /* load/opens is the first of them */
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
    static char **list; /* of one test after the other, where they share a process */
    for (char **l = list; l && *l; l++) free(*l);
    free(list);
    list = calloc(n + 1, sizeof *list);
    if (!list) abort();
    for (size_t i = n = 0; p->option_keys && p->option_keys[i]; i++) {
        const struct kopi__setting *o = kopi__config_option(cli_config, p->name, p->option_keys[i]);
        if (o && asprintf(&list[n++], "%s=%s", p->option_keys[i], o->text) < 0) abort();
    }
    return (const char *const *)list; /* as long as the test */
}

static int find(const char *backend, struct kopi_plugin_file *out)
{
    kopi_error e;
    struct kopi_plugin_search search = kopi__engine_search(cli_config);
    size_t n = strlen(backend);
    if (n > 3 && !strchr(backend, '/') && !strcmp(backend + n - 3, ".so"))
        return cli_error(EXIT_USAGE,
                         "\"%.60s\" is neither a name nor a path: for the file of this folder write ./%.60s", backend,
                         backend);
    if (strchr(backend, '/')) search.path = backend;
    else search.name = backend;
    return kopi__plugin_find(&search, out, &e) == KOPI_OK ? 0 : cli_fail(&e);
}

static int check(struct cf_setup *s)
{
    struct cf_about about = {0};
    static struct cf_list tests;
    struct check_report r;
    s->ctx = &about;
    add_tests(&tests);
    int code = reproduce ? reproduce_one(&tests, s) : cases ? leave_cases(&tests) : 0;
    if (code) return code;
    cf_list_order(&tests);
    ask_about(s, &about);
    check_report_begin(&r, s, &about, json, tests.n);
    run_all(&r, s, &tests);
    if (cli_interrupted()) return cli_error(EXIT_INTERRUPTED, "interrupted");
    check_report_end(&r);
    return r.counts[CF_FAIL] ? EXIT_CONFORMANCE : 0;
}

int cli_backends_check(int n_args, char **args)
{
    if (n_args != 1) return cli_error(EXIT_USAGE, "kopi backends check needs a file or a name");
    struct kopi_plugin_file subject = {0}, reference = {0};
    int code = check_groups();
    if (!code) code = find(args[0], &subject);
    if (!code) code = find("cpu", &reference);
    if (!code) {
        struct cf_setup s = {.path = subject.path,
                             .reference_path = reference.path,
                             .options = options_for,
                             .seed = (uint64_t)(seed >= 0 ? seed : time(NULL) % 1000000),
                             .in_process = in_process,
                             .rounds = (uint32_t)(rounds ? rounds : 3),
                             .limit_s = (uint32_t)(limit_s ? limit_s : 60),
                             .stop = cli_interrupted};
        code = check(&s);
    }
    kopi__free(subject.path);
    kopi__free(reference.path);
    return code;
}
