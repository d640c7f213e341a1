#include "conform.h"

#include "agree.h"
#include "cases.h"
#include "drive.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TEAMS = 3 };
static const uint32_t teams[N_TEAMS] = {1, 3, 16};

struct bench {
    const struct cf_options *o;
    struct cf_counts *counts;
    const struct cf_side *reference, *subject;
    struct cf_instance ref, sub[N_TEAMS];
    uint32_t open; /* of sub */
};

static void tell(struct bench *b, enum cf_verdict v, const char *name, const char *detail)
{
    uint32_t *count[] = {
        [CF_PASS] = &b->counts->passed, [CF_FAIL] = &b->counts->failed, [CF_SKIP] = &b->counts->skipped};
    (*count[v])++;
    if (b->o->report.line) b->o->report.line(b->o->report.ctx, v, name, detail);
}

/* ---- one case ---------------------------------------------------------------------------------------------------- */

struct variant {
    int team;
    enum cf_split split;
    const char *name;
};
static const struct variant variants[] = {{0, CF_WHOLE, "whole"},
                                          {1, CF_WHOLE, "3 workers"},
                                          {2, CF_WHOLE, "16 workers"},
                                          {0, CF_ONE_BY_ONE, "token by token"},
                                          {1, CF_UNEVEN, "uneven pieces, 3 workers"}};

/* All variants of the subject against `want`; after the first one a device that isn't exact is held to its own result.
 */
static bool check_variants(struct bench *b, const struct cf_draw *k, struct cf_program *want, char *text, size_t n)
{
    bool exact = b->ref.device.flags & b->sub[0].device.flags & KOPI_DEVICE_EXACT, ok = true;
    bool repeatable = b->sub[0].device.flags & (KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE);
    struct cf_program first = {0}, now;
    for (size_t v = 0; ok && v < sizeof variants / sizeof *variants; v++) {
        char name[256], what[300] = "";
        struct cf_instance *i = &b->sub[variants[v].team];
        if (!cf_build(k, i, &now, name, sizeof name)) {
            snprintf(text, n, "%s: claimed with one worker, not with %u", variants[v].name, teams[variants[v].team]);
            cf_program_free(&first);
            return false;
        }
        ok = cf_drive(i, &now, teams[variants[v].team], variants[v].split, what, sizeof what) == KOPI_OK;
        if (ok) ok = cf_agree(want, &now, exact, k->kind->bound, what, sizeof what);
        if (ok && v && repeatable && !exact) ok = cf_agree(&first, &now, true, 0, what, sizeof what);
        const char *code = cf_code(i, &now); /* "" without describe */
        if (!ok) snprintf(text, n, "%s%s%s: %s", code, code[0] ? ", " : "", variants[v].name, what);
        if (v) cf_program_free(&now);
        else first = now; /* only its rows are read */
    }
    cf_program_free(&first);
    return ok;
}

static void run_case(struct bench *b, const struct cf_draw *k)
{
    char name[256], other[256], text[512];
    struct cf_program want, probe;
    if (!cf_build(k, &b->ref, &want, name, sizeof name)) return; /* the reference defines what exists */
    size_t end = strlen(name);
    snprintf(name + end, sizeof name - end, " seed=%llu", (unsigned long long)k->seed);
    if (b->o->only && !strstr(name, b->o->only)) {
        cf_program_free(&want);
        return;
    }
    if (b->o->report.start) b->o->report.start(b->o->report.ctx, name, k->seed);
    if (!cf_build(k, &b->sub[0], &probe, other, sizeof other)) tell(b, CF_SKIP, name, "not claimed");
    else {
        snprintf(text, sizeof text, "%s", cf_code(&b->sub[0], &probe));
        cf_program_free(&probe);
        if (b->subject->expect && !strstr(text, b->subject->expect)) {
            char wrong[600];
            snprintf(wrong, sizeof wrong, "run by '%s', expected '%s'", text, b->subject->expect);
            tell(b, CF_FAIL, name, wrong);
        } else if (cf_drive(&b->ref, &want, 1, CF_WHOLE, other, sizeof other) != KOPI_OK) tell(b, CF_FAIL, name, other);
        else tell(b, check_variants(b, k, &want, text, sizeof text) ? CF_PASS : CF_FAIL, name, text);
    }
    cf_program_free(&want);
}

/* ---- all cases --------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    struct cf_random r = {a ^ (b << 32)};
    return cf_next(&r) >> 40; /* short enough to type */
}

/* The values that are drawn: a device that isn't exact has no bound for wide ones, nor for infinities. */
static enum cf_values end_of_values(const struct bench *b)
{
    return b->ref.device.flags & b->sub[0].device.flags & KOPI_DEVICE_EXACT ? CF_N_VALUES : CF_WIDE;
}

static void run_type(struct bench *b, const struct cf_kind *kind, uint32_t t)
{
    uint32_t rounds = b->o->one_seed ? 1 : (b->o->rounds ? b->o->rounds : 1) * kind->weight;
    for (uint32_t r = 0; r < rounds; r++)
        for (enum cf_values v = CF_MILD; v < end_of_values(b); v++) {
            uint64_t seed = b->o->one_seed ? b->o->seed : cf_seed(mix(b->o->seed, r * 64 + t * 4 + v), v, r);
            if (cf_seed_values(seed) != v) continue;
            run_case(b, &(struct cf_draw){kind, kind->types ? kind->types[t] : 0, v, seed, false});
        }
}

static kopi_status open_sides(struct bench *b)
{
    kopi_status s = cf_open(&b->ref, b->reference->plugin, b->reference->options, 1);
    if (s != KOPI_OK) {
        tell(b, CF_FAIL, "create the reference", b->ref.host.text);
        return s;
    }
    for (; b->open < N_TEAMS; b->open++) {
        s = cf_open(&b->sub[b->open], b->subject->plugin, b->subject->options, teams[b->open]);
        if (s == KOPI_OK) continue;
        tell(b, CF_FAIL, "create the subject", b->sub[b->open].host.text);
        return s;
    }
    return KOPI_OK;
}

static void close_sides(struct bench *b)
{
    while (b->open > 0) {
        cf_close(&b->sub[--b->open]);
        if (b->sub[b->open].host.live && !b->o->leaks_allowed)
            tell(b, CF_FAIL, "memory", "the subject's allocations are not all freed");
    }
    if (b->ref.be) cf_close(&b->ref);
}

kopi_status cf_compare(const struct cf_side *reference, const struct cf_side *subject, const struct cf_options *o,
                       struct cf_counts *counts)
{
    struct bench b = {.o = o, .counts = counts, .reference = reference, .subject = subject};
    uint32_t n;
    const struct cf_kind *kinds = cf_kinds(&n);
    *counts = (struct cf_counts){0};
    kopi_status s = open_sides(&b);
    for (uint32_t i = 0; i < n && s == KOPI_OK; i++)
        for (uint32_t t = 0; t < (kinds[i].types ? kinds[i].n_types : 1); t++) run_type(&b, &kinds[i], t);
    close_sides(&b);
    return s;
}

kopi_status cf_compare_type(const struct cf_side *reference, const struct cf_side *subject, const struct cf_options *o,
                            uint32_t kind, uint32_t type, struct cf_counts *counts)
{
    struct bench b = {.o = o, .counts = counts, .reference = reference, .subject = subject};
    uint32_t n;
    const struct cf_kind *kinds = cf_kinds(&n);
    *counts = (struct cf_counts){0};
    kopi_status s = open_sides(&b);
    if (s == KOPI_OK) run_type(&b, &kinds[kind], type);
    close_sides(&b);
    return s;
}
