#include "test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void say(struct cf_env *e, const char *fmt, va_list ap)
{
    vsnprintf(e->result->text, sizeof e->result->text, fmt, ap);
}

enum cf_verdict cf_failed(struct cf_env *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(e, fmt, ap);
    va_end(ap);
    return CF_FAIL;
}

enum cf_verdict cf_skipped(struct cf_env *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(e, fmt, ap);
    va_end(ap);
    return CF_SKIP;
}

bool cf_wrong(struct cf_env *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say(e, fmt, ap);
    va_end(ap);
    return false;
}

void cf_start(struct cf_env *e, const char *program, uint64_t seed)
{
    snprintf(e->result->doing, sizeof e->result->doing, "%s", program);
    e->result->seed = seed;
    e->result->programs++;
}

void cf_list_add(struct cf_list *l, const struct cf_test *t)
{
    if (l->n == sizeof l->at / sizeof *l->at) abort(); /* the list is made by this library alone */
    l->at[l->n++] = *t;
}

void cf_list_add_all(struct cf_list *l, const struct cf_test *t, size_t n)
{
    for (size_t i = 0; i < n; i++) cf_list_add(l, &t[i]);
}

/* Those that need no file. */
void cf_life(const struct cf_side *subject, const struct cf_report *report, struct cf_counts *counts)
{
    static struct cf_result r;
    struct cf_list l = {.n = 0};
    cf_add_abi(&l);
    cf_add_life(&l);
    cf_add_cancel(&l);
    for (size_t i = 0; i < l.n; i++) {
        memset(&r, 0, sizeof r);
        struct cf_env e = {.subject = *subject, .reference = *subject, .seed = 1, .rounds = 1, .result = &r};
        enum cf_verdict v = l.at[i].run(&e, &l.at[i]);
        uint32_t *count[] = {[CF_PASS] = &counts->passed, [CF_FAIL] = &counts->failed, [CF_SKIP] = &counts->skipped};
        (*count[v])++;
        if (report->line) report->line(report->ctx, v, l.at[i].name, r.text);
    }
}
