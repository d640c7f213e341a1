/* Group bench: what every kind of operation and type that the backend claims takes on one worker, beside the reference.
 * It runs only where it is asked for, and fails only where a run does. */
#include "cases.h"
#include "drive.h"
#include "test.h"

#include <stdio.h>

enum { RUNS = 7, N_SPLITS = 2 };

struct times {
    double us[N_SPLITS];
    uint32_t n_tok;
    char code[64];
};

/* The fastest of some runs: of all tokens at once, and of one alone. CF_SKIP: not claimed. */
static enum cf_verdict measure(struct cf_env *e, struct cf_instance *i, const struct cf_draw *d, struct times *out)
{
    static const enum cf_split splits[N_SPLITS] = {CF_WHOLE, CF_ONE_BY_ONE};
    struct cf_program c;
    char name[256], text[300];
    if (!cf_build(d, i, &c, name, sizeof name)) return cf_skipped(e, "not claimed");
    cf_start(e, name, d->seed);
    snprintf(out->code, sizeof out->code, "%s", cf_code(i, &c));
    out->n_tok = c.n_tok;
    enum cf_verdict v = CF_PASS;
    for (int s = 0; s < N_SPLITS; s++) {
        uint64_t best = UINT64_MAX;
        for (int r = 0; r < RUNS && v == CF_PASS; r++) {
            if (cf_drive(i, &c, 1, splits[s], text, sizeof text) != KOPI_OK) v = cf_failed(e, "%s", text);
            if (c.run_ns < best) best = c.run_ns;
        }
        out->us[s] = 1e-3 * (double)best / (splits[s] == CF_ONE_BY_ONE ? c.n_tok : 1);
    }
    cf_program_free(&c);
    return v;
}

static enum cf_verdict measure_side(struct cf_env *e, const struct cf_side *side, const struct cf_draw *d,
                                    struct times *out)
{
    struct cf_instance i;
    if (cf_open(&i, side->plugin, side->options, 1) != KOPI_OK) return cf_failed(e, "create: %s", i.host.text);
    enum cf_verdict v = measure(e, &i, d, out);
    cf_close(&i);
    return v;
}

static enum cf_verdict bench(struct cf_env *e, const struct cf_test *t)
{
    uint32_t n;
    const struct cf_kind *kind = &cf_kinds(&n)[t->kind];
    const struct cf_draw d = {kind, kind->types ? kind->types[t->type] : 0, CF_MILD, e->seed, true};
    struct times mine, reference;
    enum cf_verdict v = measure_side(e, &e->subject, &d, &mine);
    if (v == CF_PASS) v = measure_side(e, &e->reference, &d, &reference);
    if (v != CF_PASS) return v;
    snprintf(e->result->text, sizeof e->result->text,
             "%s%s%u tokens %.1f us, one %.2f us; reference %.1f us, %.2f us; %.1f and %.1f times as fast", mine.code,
             mine.code[0] ? ": " : "", mine.n_tok, mine.us[0], mine.us[1], reference.us[0], reference.us[1],
             reference.us[0] / mine.us[0], reference.us[1] / mine.us[1]);
    e->result->programs = 0; /* nothing was compared */
    return CF_PASS;
}

void cf_add_bench(struct cf_list *l)
{
    uint32_t n;
    const struct cf_kind *kinds = cf_kinds(&n);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < (kinds[k].types ? kinds[k].n_types : 1); i++) {
            struct cf_test t = {.run = bench, .kind = k, .type = i};
            char name[96];
            const char *test = cf_kind_test(&kinds[k], kinds[k].types ? kinds[k].types[i] : 0, name);
            snprintf(t.name, sizeof t.name, "bench/%s", test + sizeof "ops/" - 1);
            cf_list_add(l, &t);
        }
}
