/* conformance/test.h - what `kopi backends check` asks of a backend: named tests in groups, each to be run in a process
 * of its own. */
#ifndef KOPI_CF_TEST_H
#define KOPI_CF_TEST_H

#include "conform.h"

/* What a plugin says of itself. */
struct cf_about {
    bool known;
    uint32_t flags; /* of device 0 */
    char name[40], version[64], device[64], detail[128];
};

/* Written by the test's process, read by the one that waits for it: no pointers. */
struct cf_result {
    enum cf_verdict verdict;
    bool finished;     /* the test came to its end, whatever the verdict */
    char text[800];    /* failed or skipped: why; passed: what ran, or "" */
    char doing[320];   /* the random program that was run last; "" */
    uint64_t seed;     /* of that program, or of the test */
    uint32_t programs; /* random programs that were compared */
    struct cf_about about;
    char matrix[4096]; /* lines of text: what the backend claims */
};

struct cf_env {
    const char *path, *reference_path; /* shared objects */
    struct cf_side subject, reference; /* plugin NULL in tests that load for themselves */
    uint64_t seed;
    bool one_seed;             /* seed is that of one random program */
    uint32_t rounds;           /* how much is drawn */
    const char *const *failed; /* names of the tests that have not passed, NULL-terminated; or NULL */
    struct cf_result *result;
};

struct cf_test {
    char name[48]; /* "group/what" */
    enum cf_verdict (*run)(struct cf_env *e, const struct cf_test *t);
    /* The process starts without a plugin: the test loads it. */
    bool bare;
    /* Beginnings of names, separated by blanks: runs behind those tests, says nothing new where one of them failed, and
     * is skipped then. */
    const char *needs;
    const char *after; /* the same, but for the order alone: of tests that leave out what those found wrong */
    uint32_t kind, type; /* of tests of operations: index of cf_kinds, of its types */
};

/* Verdicts with their text. */
enum cf_verdict cf_failed(struct cf_env *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
enum cf_verdict cf_skipped(struct cf_env *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* As cf_failed, for functions that answer whether all is well: false. */
bool cf_wrong(struct cf_env *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* In tests that draw programs: before each. */
void cf_start(struct cf_env *e, const char *program, uint64_t seed);

struct cf_list {
    struct cf_test at[256];
    size_t n;
};
void cf_list_add(struct cf_list *l, const struct cf_test *t);
void cf_list_add_all(struct cf_list *l, const struct cf_test *t, size_t n);

/* The groups. */
void cf_add_load(struct cf_list *l); /* opening the shared object */
void cf_add_abi(struct cf_list *l);  /* structs, ids, versions */
void cf_add_life(struct cf_list *l); /* create to destroy, memory, threads, several at once */
void cf_add_ops(struct cf_list *l);  /* every operation and type against the reference */
void cf_add_own_types(struct cf_list *l); /* weight types that the backend brings; part of ops */
void cf_add_cancel(struct cf_list *l);
void cf_add_support(struct cf_list *l); /* what is claimed */
void cf_add_bench(struct cf_list *l);   /* how long it takes; no test */

#endif
