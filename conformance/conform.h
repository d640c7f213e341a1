/* conformance/conform.h - drives a backend plugin through kopi_plugin_v1 alone, with a host of its own and programs of
 * one or two operations, and compares what it computes with another instance, in the manner of checkasm. Used by the
 * unit tests and by `kopi backends check`. Includes nothing of kopi but the plugin headers. */
#ifndef KOPI_CONFORM_H
#define KOPI_CONFORM_H

#include <kopi/backend.h>
#include <stdbool.h>

struct cf_side {
    const kopi_plugin *plugin;
    const char *const *options; /* "key=value", NULL-terminated; or NULL */
    const char *expect;         /* every describe() of it must contain this; NULL: not checked */
};

enum cf_verdict { CF_FAIL, CF_PASS, CF_SKIP }; /* in this order: false and true */
struct cf_report {
    /* One line per case: "linear q4_1 k=96 n=17 tok=5 wide seed=7"; detail: what differed, or the code that ran. */
    void (*line)(void *ctx, enum cf_verdict v, const char *name, const char *detail);
    void *ctx;
    void (*start)(void *ctx, const char *name, uint64_t seed); /* before each program of cf_compare; NULL allowed */
};

struct cf_options {
    uint64_t seed;
    uint32_t rounds;    /* random cases per operation and type; 0: 1 */
    bool one_seed;      /* `seed` is that of one program, as a line names it: only that one is run */
    bool leaks_allowed; /* somebody else looks for them */
    const char *only;   /* cases whose name contains this; NULL: all */
    struct cf_report report;
};

struct cf_counts {
    uint32_t passed, failed, skipped;
};

/* Runs every case that `reference` takes on both. Two devices with KOPI_DEVICE_EXACT must give equal bits (NaNs are
 * equal), others stay within a bound per operation. `subject` must also agree with itself for 1, 3 and 16 workers and
 * for any split of the tokens, where it claims EXACT or REPEATABLE. What `subject` doesn't claim is skipped. */
kopi_status cf_compare(const struct cf_side *reference, const struct cf_side *subject, const struct cf_options *o,
                       struct cf_counts *counts);

/* The same for one kind (index of cf_kinds) and one of its types. */
kopi_status cf_compare_type(const struct cf_side *reference, const struct cf_side *subject, const struct cf_options *o,
                            uint32_t kind, uint32_t type, struct cf_counts *counts);

/* What isn't arithmetic: the groups abi, life and cancel of test.h, in this process. Adds to counts. */
void cf_life(const struct cf_side *subject, const struct cf_report *report, struct cf_counts *counts);

/* The plugin of a shared object, checked for size, versions and fingerprint; NULL with a text. Never unloaded. */
const kopi_plugin *cf_load(const char *path, char *err, size_t n);

#endif
