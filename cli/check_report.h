/* cli/check_report.h - what `kopi backends check` says: TAP 13, or one JSON object. */
#ifndef KOPI_CLI_CHECK_REPORT_H
#define KOPI_CLI_CHECK_REPORT_H

#include "conformance/child.h"
#include <jansson.h>

struct check_report {
    const struct cf_setup *setup;
    const struct cf_about *about;
    char path[1024];     /* of the subject, fit to be printed */
    json_t *cases;       /* NULL: TAP */
    size_t n, counts[3]; /* by verdict */
};
void check_report_begin(struct check_report *r, const struct cf_setup *setup, const struct cf_about *about, bool json,
                        size_t n_tests);
void check_report_case(struct check_report *r, const struct cf_test *t, const struct cf_result *x, const char *output,
                       double ms);
void check_report_end(struct check_report *r); /* frees what it holds */

#endif
