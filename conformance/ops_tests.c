/* Group ops: every kind of program and type against the reference, with random shapes and values. */
#include "cases.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

struct tally {
    struct cf_env *e;
    char code[128], first[600];
};

static void on_start(void *ctx, const char *name, uint64_t seed)
{
    struct tally *y = ctx;
    if (!y->first[0]) cf_start(y->e, name, seed);
    else y->e->result->programs++;
}

/* Keeps the first failure, and the names of the code that ran. */
static void on_line(void *ctx, enum cf_verdict v, const char *name, const char *detail)
{
    struct tally *y = ctx;
    (void)name;
    if (v == CF_FAIL && !y->first[0]) snprintf(y->first, sizeof y->first, "%s", detail[0] ? detail : "failed");
    size_t used = strlen(y->code);
    if (v == CF_PASS && !strstr(y->code, detail))
        snprintf(y->code + used, sizeof y->code - used, "%s%s", used ? ", " : "", detail);
}

static enum cf_verdict compare(struct cf_env *e, const struct cf_test *t)
{
    struct tally y = {.e = e};
    struct cf_counts n;
    const struct cf_options o = {.seed = e->seed,
                                 .rounds = e->rounds,
                                 .one_seed = e->one_seed,
                                 .leaks_allowed = true,
                                 .report = {.line = on_line, .start = on_start, .ctx = &y}};
    cf_compare_type(&e->reference, &e->subject, &o, t->kind, t->type, &n);
    if (n.failed) return cf_failed(e, "%s", y.first);
    if (!n.passed) return cf_skipped(e, "not claimed");
    snprintf(e->result->text, sizeof e->result->text, "%s", y.code);
    return CF_PASS;
}

void cf_add_ops(struct cf_list *l)
{
    static char needs[sizeof l->at / sizeof *l->at][160]; /* as long as the list */
    uint32_t n, at = 0;
    const struct cf_kind *kinds = cf_kinds(&n);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < (kinds[k].types ? kinds[k].n_types : 1); i++) {
            struct cf_test t = {.run = compare, .kind = k, .type = i, .needs = needs[at]};
            char name[96], others[96];
            uint32_t dtype = kinds[k].types ? kinds[k].types[i] : 0;
            snprintf(t.name, sizeof t.name, "%s", cf_kind_test(&kinds[k], dtype, name));
            snprintf(needs[at++], sizeof *needs, "life/create support/steady %s",
                     cf_kind_needs(&kinds[k], dtype, others));
            cf_list_add(l, &t);
        }
}
