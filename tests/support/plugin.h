/* tests/support/plugin.h - for tests that compare plugins through conformance/: the plugin of a file, and failures
 * shown. */
#ifndef KOPI_TESTS_PLUGIN_H
#define KOPI_TESTS_PLUGIN_H

#include "conformance/conform.h"

#include <check.h>
#include <stdio.h>

/* Aborts the test where it can't be loaded. */
static inline const kopi_plugin *plugin_of(const char *path)
{
    char err[256];
    const kopi_plugin *p = cf_load(path, err, sizeof err);
    if (!p) ck_abort_msg("%s", err);
    return p;
}

/* A cf_report.line that prints the first failures; ctx: an int, how many there were. */
static inline void show_failures(void *ctx, enum cf_verdict v, const char *name, const char *detail)
{
    int *shown = ctx;
    if (v == CF_FAIL && (*shown)++ < 10) fprintf(stderr, "%s: %s\n", name, detail);
}

#endif
