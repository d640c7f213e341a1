/* core/text/jinja/run.h - one rendering of a template. [one thread; the template may be shared]
 *
 *     kopi__jinja_init(&j, t, err); build values in j.arena; kopi__jinja_set(&j, "messages", v); kopi__jinja_run(&j);
 *     use j.out; kopi__jinja_free(&j);
 */
#ifndef KOPI_CORE_TEXT_JINJA_RUN_H
#define KOPI_CORE_TEXT_JINJA_RUN_H

#include "text/jinja/ast.h"
#include "text/jinja/builtin.h"
#include <locale.h>

enum {
    KOPI_J_MAX_BYTES = 256 << 20, /* memory of one rendering, the messages' own text not counted */
    KOPI_J_MAX_OUTPUT = 64 << 20,
    KOPI_J_MAX_WORK = 20 << 20, /* see kopi_jarena.work: half a second or so */
    KOPI_J_LOOKUP = 4,          /* work for finding a builtin by its name */
    KOPI_J_DECIMAL = 512,       /* work for turning a float into text or back, or for its remainder */
    KOPI_J_MAX_DEPTH = 1000,    /* evaluations inside each other, calls of macros included */
    KOPI_J_MAX_RANGE = 100000   /* elements of range(), as in jinja2's sandbox */
};

struct kopi_jvar {
    uint32_t sym;
    struct kopi_jval v;
};
struct kopi_jscope { /* of a loop's iteration, a macro's call, a captured block; the outermost one is j->globals */
    struct kopi_jscope *parent;
    struct kopi_jvar *v;
    uint32_t n, cap;
    bool kept; /* a macro refers to it: not to be reused by the next iteration */
};
struct kopi_jmacro {
    const struct kopi_jnode *node;
    struct kopi_jscope *scope;
};

struct kopi_jinja {
    struct kopi_jarena arena;
    const struct kopi_jtemplate *t;
    kopi_error *err;
    kopi_status status;          /* not KOPI_OK: the rendering failed and *err says why */
    bool refused;                /* ... by the template's own raise_exception */
    const struct kopi_jnode *at; /* being evaluated: the position in messages */
    unsigned depth;
    struct kopi_jbuf *out;
    struct kopi_jscope *scope; /* NULL: outermost */
    struct kopi_jval *globals; /* by symbol */
    struct kopi_jval captured;
    uint32_t sym_loop, sym_caller, sym_varargs, sym_kwargs; /* UINT32_MAX: the template does not use the name */
    int64_t now;                                            /* seconds since 1970, for strftime_now */
    locale_t ctype;                                         /* Unicode's case mapping; (locale_t)0 until needed */
};

/* err may be NULL. now: for strftime_now. False: out of memory (status is set; _free is still due). */
bool kopi__jinja_init(struct kopi_jinja *j, const struct kopi_jtemplate *t, int64_t now, kopi_error *err);
void kopi__jinja_set(struct kopi_jinja *j, const char *name,
                     struct kopi_jval v); /* a variable; unused names are dropped */
/* KOPI_E_INVALID with line and column, KOPI_E_NOMEM. On KOPI_OK j->out is the text with its origins. */
kopi_status kopi__jinja_run(struct kopi_jinja *j);
/* Turns a false without a stored error (the arena's stop) into status and *err. Returns the status. */
kopi_status kopi__jinja_settle(struct kopi_jinja *j);
void kopi__jinja_free(struct kopi_jinja *j);

/* ---- for the evaluator's own files --------------------------------------------------------------------------------
 */

/* Stores the error, with the position of j->at, unless there is one; false. */
bool kopi__jfail(struct kopi_jinja *j, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool kopi__jfail_undefined(struct kopi_jinja *j, const struct kopi_jval *v); /* "'x' is undefined" */

/* Around everything that recurses. */
bool kopi__jenter(struct kopi_jinja *j);
static inline void kopi__jleave(struct kopi_jinja *j) { j->depth--; }

/* expression.c */
bool kopi__jeval(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out);
/* object.name and object[key] with Python's rules as jinja2 applies them; not there: UNDEFINED. */
bool kopi__jget_attr(struct kopi_jinja *j, const struct kopi_jval *object, const struct kopi_jval *name,
                     struct kopi_jval *out);
bool kopi__jget_item(struct kopi_jinja *j, const struct kopi_jval *object, const struct kopi_jval *key,
                     struct kopi_jval *out);

/* operator.c */
bool kopi__jarith(struct kopi_jinja *j, uint16_t op, const struct kopi_jval *x, const struct kopi_jval *y,
                  struct kopi_jval *out);
bool kopi__jcompare(struct kopi_jinja *j, uint16_t op, const struct kopi_jval *x, const struct kopi_jval *y, bool *out);
bool kopi__jslice(struct kopi_jinja *j, const struct kopi_jval *object, const struct kopi_jval part[3],
                  struct kopi_jval *out);

/* statement.c */
enum kopi_jflow { KOPI_JFLOW_FAILED, KOPI_JFLOW_NEXT, KOPI_JFLOW_BREAK, KOPI_JFLOW_CONTINUE };
enum kopi_jflow kopi__jexec(struct kopi_jinja *j, const struct kopi_jnode *n);

/* scope.c */
struct kopi_jscope *kopi__jscope_push(struct kopi_jinja *j, struct kopi_jscope *parent); /* becomes j->scope */
bool kopi__jvar_set(struct kopi_jinja *j, uint32_t sym, struct kopi_jval v);             /* in the innermost scope */
bool kopi__jvar_get(struct kopi_jinja *j, uint32_t sym, struct kopi_jval *out);
bool kopi__jmacro_new(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out);

/* call.c */
bool kopi__jcall_value(struct kopi_jinja *j, const struct kopi_jval *callee, const struct kopi_jcall *c,
                       struct kopi_jval *out);
bool kopi__jeval_args(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jcall *out);

/* loop.c */
bool kopi__jloop_attr(struct kopi_jinja *j, struct kopi_jloop *l, struct kopi_jstr name, struct kopi_jval *out);
enum kopi_jflow kopi__jexec_for(struct kopi_jinja *j, const struct kopi_jnode *n);
/* What a `for` runs over, as a list: a dict's keys, a string's characters; nothing for Undefined. */
bool kopi__jiterate(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jlist **out);
bool kopi__jassign(struct kopi_jinja *j, const struct kopi_jnode *target, const struct kopi_jval *v);

#endif
