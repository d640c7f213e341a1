/* conformance/child.h - runs a test in a process of its own, with a time limit, and says how it ended. One thread. */
#ifndef KOPI_CF_CHILD_H
#define KOPI_CF_CHILD_H

#include "test.h"

struct cf_setup {
    const char *path, *reference_path;
    /* Options for an instance of p: "key=value", NULL-terminated; lives on. */
    const char *const *(*options)(void *ctx, const kopi_plugin *p, bool reference);
    void *ctx;
    const struct cf_about *about; /* copied into each result; NULL: not known yet */
    uint64_t seed;
    bool one_seed, in_process;
    const char *const *failed; /* as in struct cf_env */
    uint32_t rounds, limit_s;
    bool (*stop)(void); /* asked while waiting: true ends the test; may be NULL */
};

/* Fills *r. What the process wrote to stdout and stderr is in output (NUL-terminated, cut to n); empty in_process. */
void cf_run(const struct cf_setup *s, const struct cf_test *t, struct cf_result *r, char *output, size_t n);

#endif
