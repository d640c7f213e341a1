/* core/text/jinja/builtin.h - filters, tests, methods and global functions: tables of C functions. [any] */
#ifndef KOPI_CORE_TEXT_JINJA_BUILTIN_H
#define KOPI_CORE_TEXT_JINJA_BUILTIN_H

#include "text/jinja/value.h"

enum { KOPI_J_MAX_PARAMS = 5 };

struct kopi_jcall { /* arguments as written */
    const struct kopi_jval *pos;
    const struct kopi_jpair *named; /* keys are strings */
    uint32_t n_pos, n_named;
};
struct kopi_jargs {        /* arguments by parameter */
    struct kopi_jval self; /* a filter's or test's input, a method's object */
    struct kopi_jval v[KOPI_J_MAX_PARAMS];
    bool given[KOPI_J_MAX_PARAMS];
    const struct kopi_jcall *call; /* for those with params "*" */
};
struct kopi_jbuiltin {
    const char *name;
    const char *params; /* names in order, separated by spaces, `!` before a required one; "*": takes what comes.
                           NULL: Python has it, this interpreter has not */
    bool (*fn)(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out);
};
struct kopi_jmethod {
    const struct kopi_jbuiltin *builtin;
    struct kopi_jval self;
};

/* Each ends with a NULL name. Filters and tests live in several files: arrays of tables, ended by NULL. */
extern const struct kopi_jbuiltin *const kopi__jfilters[], *const kopi__jtests[], *const kopi__jglobals[];
extern const struct kopi_jbuiltin *const kopi__jstr_methods[], *const kopi__jlist_methods[],
                                                                   *const kopi__jdict_methods[];
extern const struct kopi_jbuiltin kopi__jtext_filters[], kopi__jseq_filters[], kopi__jpick_filters[],
    kopi__jnumber_filters[], kopi__jjson_filters[];

const struct kopi_jbuiltin *kopi__jfind_builtin(const struct kopi_jbuiltin *const *tables, struct kopi_jstr name);
/* Binds the arguments to the parameters and calls. */
bool kopi__jinvoke(struct kopi_jinja *j, const struct kopi_jbuiltin *f, const struct kopi_jval *self,
                   const struct kopi_jcall *c, struct kopi_jval *out);

/* Argument i as a given type; the default where it was not given or is none (str: also undefined is an error). */
bool kopi__jarg_int(struct kopi_jinja *j, const struct kopi_jargs *a, int i, int64_t missing, int64_t *out);
bool kopi__jarg_bool(const struct kopi_jargs *a, int i, bool missing);
bool kopi__jarg_str(struct kopi_jinja *j, const struct kopi_jargs *a, int i,
                    struct kopi_jstr *out); /* must be a string */

/* Used across the files of builtins. */
bool kopi__jtest(struct kopi_jinja *j, struct kopi_jstr name, const struct kopi_jval *v, const struct kopi_jcall *c,
                 bool *out);
/* `a.b.0`: attributes and items one after the other; what is not there on the way becomes *missing, unless NULL. */
bool kopi__jget_path(struct kopi_jinja *j, const struct kopi_jval *v, const struct kopi_jval *path,
                     const struct kopi_jval *missing, struct kopi_jval *out);
enum kopi_jcase { KOPI_J_UPPER, KOPI_J_LOWER, KOPI_J_TITLE, KOPI_J_STR_TITLE, KOPI_J_CAPITAL };
bool kopi__jcase(struct kopi_jinja *j, struct kopi_jstr s, enum kopi_jcase how, struct kopi_jstr *out);
uint32_t kopi__jchar_case(struct kopi_jinja *j, uint32_t cp, bool upper);
/* `count` < 0: all. */
bool kopi__jreplace(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jstr from, struct kopi_jstr to, int64_t count,
                    struct kopi_jstr *out);
bool kopi__jsplit_lines(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jval *out);
bool kopi__jjoin(struct kopi_jinja *j, struct kopi_jstr sep, const struct kopi_jlist *l,
                 const struct kopi_jval *attribute, struct kopi_jstr *out);
bool kopi__jdict_items(struct kopi_jinja *j, const struct kopi_jdict *d,
                       struct kopi_jval *out); /* list of (key, value) */

/* A sorted copy, stable; by `path` of the items if not NULL. */
bool kopi__jsorted(struct kopi_jinja *j, const struct kopi_jlist *l, const struct kopi_jval *path, bool with_case,
                   bool down, struct kopi_jval *out);

/* format.c */
bool kopi__jpercent(struct kopi_jinja *j, struct kopi_jstr fmt, const struct kopi_jval *arg,
                    struct kopi_jval *out); /* "%s" % x */
bool kopi__jbraces(struct kopi_jinja *j, struct kopi_jstr fmt, const struct kopi_jcall *c,
                   struct kopi_jval *out); /* "{}".format(x) */

#endif
