/* conformance/draws.h - one program of every kind that an instance claims, for tests that need something to run. */
#ifndef KOPI_CF_DRAWS_H
#define KOPI_CF_DRAWS_H

#include "cases.h"
#include "test.h"

/* False ends the walk: the test has failed, with its text. */
typedef bool cf_visit(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                      const struct cf_draw *d);
/* Visits a program of mild values per kind (all_types: per type), but for those whose own test has failed. Answers
 * whether all were visited; *n: how many. */
bool cf_each_kind(struct cf_env *e, struct cf_instance *i, bool all_types, cf_visit *visit, void *ctx, uint32_t *n);
/* The same for every type, with so much work that threads meet in it. */
bool cf_each_large(struct cf_env *e, struct cf_instance *i, cf_visit *visit, void *ctx, uint32_t *n);

/* cf_open for the subject, with the text of a failure. */
bool cf_open_subject(struct cf_env *e, struct cf_instance *i, uint32_t threads);
/* Runs it; a status other than KOPI_OK is the test's failure. */
bool cf_drive_or_fail(struct cf_env *e, struct cf_instance *i, struct cf_program *c, uint32_t nth);
/* Same results, to the bit where the device claims as much. */
bool cf_agree_or_fail(struct cf_env *e, const struct cf_instance *i, const struct cf_draw *d,
                      const struct cf_program *a, const struct cf_program *b, const char *what);

#endif
