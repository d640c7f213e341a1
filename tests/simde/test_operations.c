/* The plugin cpu-threaded with its level avx512vnni compiled through SIMDe, against the reference: every operation,
 * type and shape of the conformance cases, bit by bit. */
#include "tests/support/plugin.h"

#include <stdlib.h>

START_TEST(operations_agree)
{
    int shown = 0;
    const char *const options[] = {"isa=avx512vnni", NULL};
    const struct cf_side reference = {plugin_of(PLUGIN_CPU), NULL, NULL},
                         subject = {plugin_of(PLUGIN_SIMDE), options, "_avx512vnni"};
    const struct cf_options o = {.seed = 5, .report = {.line = show_failures, .ctx = &shown}};
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
