/* The plugin cpu-threaded with its level avx512vnni compiled through SIMDe, against the reference: every operation,
 * type and shape of the conformance cases, bit by bit. */
#include "conformance/conform.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

static const kopi_plugin *plugin(const char *path)
{
    char err[256];
    const kopi_plugin *p = cf_load(path, err, sizeof err);
    if (!p) ck_abort_msg("%s", err);
    return p;
}

static void line(void *ctx, enum cf_verdict v, const char *name, const char *detail)
{
    int *shown = ctx;
    if (v == CF_FAIL && (*shown)++ < 10) fprintf(stderr, "%s: %s\n", name, detail);
}

START_TEST(operations_agree)
{
    int shown = 0;
    const char *const options[] = {"isa=avx512vnni", NULL};
    const struct cf_side reference = {plugin(PLUGIN_CPU), NULL, NULL},
                         subject = {plugin(PLUGIN_SIMDE), options, "_avx512vnni"};
    const struct cf_options o = {.seed = 5, .report = {.line = line, .ctx = &shown}};
    struct cf_counts n;
    ck_assert_int_eq(cf_compare(&reference, &subject, &o, &n), KOPI_OK);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_gt(n.passed, 250);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simde");
    TCase *t = tcase_create("operations");
    tcase_set_timeout(t, 240);
    tcase_add_test(t, operations_agree);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
