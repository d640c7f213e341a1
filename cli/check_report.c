#include "check_report.h"

#include "cli.h"
#include "conformance/clean.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- TAP --------------------------------------------------------------------------------------------------------- */

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

static void tap_begin(const struct check_report *r, size_t n_tests)
{
    const struct cf_about *a = r->about;
    printf("TAP version 13\n1..%zu\n# backend %s%s%s%s%s\n", n_tests, a->name, *a->name ? " " : "", a->version,
           *a->name ? ": " : "", r->path);
    if (a->known)
        printf("# device %s (%s), %s\n", a->device, a->detail,
               a->flags & KOPI_DEVICE_EXACT        ? "exact"
               : a->flags & KOPI_DEVICE_REPEATABLE ? "repeatable"
                                                   : "not repeatable");
    printf("# reference %s\n# seed %llu\n", r->setup->reference_path, (unsigned long long)r->setup->seed);
    fflush(stdout);
}

static void tap_failure(const struct check_report *r, const struct cf_test *t, const struct cf_result *x,
                        const char *output)
{
    char again[1280];
    puts("  ---");
    print_scalar("message", x->text);
    if (x->doing[0]) print_scalar("program", x->doing);
    snprintf(again, sizeof again, "kopi backends check %s --reproduce %s:%llu", r->path, t->name,
             (unsigned long long)x->seed);
    print_scalar("reproduce", again);
    if (output[0]) {
        puts("  output: |");
        print_lines("    ", output);
    }
    puts("  ...");
}

static void tap_case(struct check_report *r, const struct cf_test *t, const struct cf_result *x, const char *output)
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

/* ---- JSON -------------------------------------------------------------------------------------------------------- */

static void json_case(struct check_report *r, const struct cf_test *t, const struct cf_result *x, const char *output,
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

static void json_end(struct check_report *r)
{
    const struct cf_about *a = r->about;
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:I, s:I, s:I, s:I, s:o}", "backend", a->name, "version",
                          a->version, "path", r->path, "device", a->device, "detail", a->detail, "exact",
                          (a->flags & KOPI_DEVICE_EXACT) != 0, "reference", r->setup->reference_path, "seed",
                          (json_int_t)r->setup->seed, "passed", (json_int_t)r->counts[CF_PASS], "failed",
                          (json_int_t)r->counts[CF_FAIL], "skipped", (json_int_t)r->counts[CF_SKIP], "cases", r->cases);
    if (!o) abort();
    cli_print_json(o, JSON_INDENT(2));
    json_decref(o);
}

/* ---- either ------------------------------------------------------------------------------------------------------ */

void check_report_begin(struct check_report *r, const struct cf_setup *setup, const struct cf_about *about, bool json,
                        size_t n_tests)
{
    *r = (struct check_report){.setup = setup, .about = about, .cases = json ? json_array() : NULL};
    snprintf(r->path, sizeof r->path, "%s", setup->path);
    cf_clean(r->path, sizeof r->path, false);
    if (!json) tap_begin(r, n_tests);
}

void check_report_case(struct check_report *r, const struct cf_test *t, const struct cf_result *x, const char *output,
                       double ms)
{
    r->n++;
    r->counts[x->verdict]++;
    if (r->cases) json_case(r, t, x, output, ms);
    else tap_case(r, t, x, output);
}

void check_report_end(struct check_report *r)
{
    if (r->cases) json_end(r);
    else printf("# %zu passed, %zu failed, %zu skipped\n", r->counts[CF_PASS], r->counts[CF_FAIL], r->counts[CF_SKIP]);
}
