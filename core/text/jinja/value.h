/* core/text/jinja/value.h - the values a template works on, with Python's meaning of equality, order, truth and text.
 * Values live in the rendering's arena; lists, dicts and namespaces are shared by reference, as in Python. [one thread]
 */
#ifndef KOPI_CORE_TEXT_JINJA_VALUE_H
#define KOPI_CORE_TEXT_JINJA_VALUE_H

#include "text/jinja/str.h"

struct kopi_jinja; /* one rendering: run.h */
struct kopi_jbuiltin;
struct kopi_jmacro;
struct kopi_jloop;
struct kopi_jmethod;

enum kopi_jtype {
    KOPI_J_UNDEFINED, /* s: the name that has no value */
    KOPI_J_NONE,
    KOPI_J_BOOL,
    KOPI_J_INT,
    KOPI_J_FLOAT,
    KOPI_J_STRING,
    KOPI_J_LIST,
    KOPI_J_TUPLE,
    KOPI_J_DICT,
    KOPI_J_NAMESPACE,
    KOPI_J_MACRO,
    KOPI_J_FUNCTION, /* a global function */
    KOPI_J_METHOD,   /* a builtin bound to its object */
    KOPI_J_LOOP,     /* the variable `loop` */
    KOPI_J_N_TYPES
};

enum { KOPI_J_NO_CONTENT = 2 };

struct kopi_jval {
    uint8_t type;
    uint8_t outside; /* BOOL, INT, FLOAT: enum kopi_jorigin of the text they turn into. NONE: KOPI_J_NO_CONTENT for a
                        message's content that is null: a template that prints it does not know this case */
    union {
        bool b;
        int64_t i;
        double f;
        struct kopi_jstr s;
        struct kopi_jlist *list; /* LIST, TUPLE */
        struct kopi_jdict *dict; /* DICT, NAMESPACE */
        const struct kopi_jmacro *macro;
        const struct kopi_jbuiltin *function;
        const struct kopi_jmethod *method;
        struct kopi_jloop *loop;
    };
};
struct kopi_jlist {
    struct kopi_jval *v;
    uint32_t n, cap;
    bool parts; /* the parts of a message's content: a template that prints it as a whole does not know parts */
};
struct kopi_jpair {
    struct kopi_jval key, value;
};
struct kopi_jdict { /* in order of insertion; keys are strings, numbers, booleans, none */
    struct kopi_jpair *v;
    uint32_t n, cap;
    bool parts; /* arguments of a tool call, as above */
};

#define KOPI_J_UNDEF ((struct kopi_jval){.type = KOPI_J_UNDEFINED})
static inline struct kopi_jval kopi__jnone(void) { return (struct kopi_jval){.type = KOPI_J_NONE}; }
static inline struct kopi_jval kopi__jbool(bool b) { return (struct kopi_jval){.type = KOPI_J_BOOL, .b = b}; }
static inline struct kopi_jval kopi__jint(int64_t i) { return (struct kopi_jval){.type = KOPI_J_INT, .i = i}; }
static inline struct kopi_jval kopi__jfloat(double f) { return (struct kopi_jval){.type = KOPI_J_FLOAT, .f = f}; }
static inline struct kopi_jval kopi__jstring(struct kopi_jstr s)
{
    return (struct kopi_jval){.type = KOPI_J_STRING, .s = s};
}

/* "str", "int", "Undefined" ...: Python's name of the type, for messages. */
const char *kopi__jtype_name(const struct kopi_jval *v);
static inline bool kopi__jis_seq(const struct kopi_jval *v)
{
    return v->type == KOPI_J_LIST || v->type == KOPI_J_TUPLE;
}
static inline bool kopi__jis_number(const struct kopi_jval *v)
{
    return v->type == KOPI_J_INT || v->type == KOPI_J_FLOAT || v->type == KOPI_J_BOOL;
}
static inline int64_t kopi__jas_int(const struct kopi_jval *v) { return v->type == KOPI_J_BOOL ? v->b : v->i; }
static inline double kopi__jas_float(const struct kopi_jval *v)
{
    return v->type == KOPI_J_FLOAT ? v->f : (double)kopi__jas_int(v);
}
bool kopi__jtruth(const struct kopi_jval *v);

/* Below, false means that the rendering failed; its error is already stored or follows from the arena's stop. */

bool kopi__jlist_new(struct kopi_jinja *j, enum kopi_jtype type, uint32_t cap, struct kopi_jval *out);
bool kopi__jlist_push(struct kopi_jinja *j, struct kopi_jlist *l, struct kopi_jval v);
bool kopi__jpair_new(struct kopi_jinja *j, struct kopi_jval a, struct kopi_jval b, struct kopi_jval *out); /* a tuple */

bool kopi__jdict_new(struct kopi_jinja *j, struct kopi_jval *out);
/* *out is the value, or NULL if the key is not there. A key that Python could not hash is never there. */
bool kopi__jdict_get(struct kopi_jinja *j, const struct kopi_jdict *d, const struct kopi_jval *key,
                     struct kopi_jval **out);
bool kopi__jdict_set(struct kopi_jinja *j, struct kopi_jdict *d, const struct kopi_jval *key, struct kopi_jval v);
/* For keys known to be new. */
bool kopi__jdict_add(struct kopi_jinja *j, struct kopi_jdict *d, struct kopi_jval key, struct kopi_jval v);

bool kopi__jequal(struct kopi_jinja *j, const struct kopi_jval *x, const struct kopi_jval *y, bool *out);
/* *out < 0, 0, > 0. Values without an order are an error that names the operator. */
bool kopi__jorder(struct kopi_jinja *j, const struct kopi_jval *x, const struct kopi_jval *y, const char *op, int *out);
bool kopi__jcontains(struct kopi_jinja *j, const struct kopi_jval *in, const struct kopi_jval *what, bool *out);

/* Appends str(v) or repr(v). */
bool kopi__jtext(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jval *v);
bool kopi__jrepr(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jval *v);
bool kopi__jto_str(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jstr *out); /* str(v) */
/* Python's repr of a float: "1.0", "1e-05", "1e+16"; out holds 48 bytes. */
void kopi__jfloat_text(double v, char out[48]);

#endif
