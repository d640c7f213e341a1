/* core/text/jinja/parser.h - shared by the two halves of the parser: statements (parser.c) and expressions (expr.c).
 * Every parse function returns NULL on failure, with p->err filled or the arena stopped. [one thread] */
#ifndef KOPI_CORE_TEXT_JINJA_PARSER_H
#define KOPI_CORE_TEXT_JINJA_PARSER_H

#include "text/jinja/lexer.h"

enum {
    KOPI_J_MAX_NESTING = 100,   /* brackets and blocks inside each other */
    KOPI_J_MAX_NODE_DEPTH = 400 /* of the tree: `a + b + c ...` and `x.a.b.c ...` grow by one per link */
};

struct kopi_jparser {
    struct kopi_jtemplate *t;
    const struct kopi_jtoken *tok; /* current token */
    unsigned nesting, loops, captures;
    struct kopi_jstr *symbols;
    uint32_t n_symbols, cap_symbols;
    uint32_t *table, table_size; /* hash table: symbol + 1, or 0 */
    kopi_error *err;
};

const struct kopi_jnode *kopi__jparse_fail(struct kopi_jparser *p, uint32_t pos, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* "'endif'", "end of the tag", ...: the current token, for messages. */
const char *kopi__jtoken_text(const struct kopi_jtoken *t, char buf[48]);

static inline bool kopi__jis_op(const struct kopi_jparser *p, uint16_t op)
{
    return p->tok->type == KOPI_T_OP && p->tok->op == op;
}
bool kopi__jis_name(const struct kopi_jtoken *t, const char *name);
bool kopi__jskip_op(struct kopi_jparser *p, uint16_t op);
bool kopi__jskip_name(struct kopi_jparser *p, const char *name);
bool kopi__jexpect_op(struct kopi_jparser *p, uint16_t op);
bool kopi__jexpect_name(struct kopi_jparser *p, struct kopi_jval *name, uint32_t *sym); /* any name; sym may be NULL */

bool kopi__jnest(struct kopi_jparser *p); /* one level deeper; the caller undoes it by p->nesting-- */
struct kopi_jnode *kopi__jnode(struct kopi_jparser *p, enum kopi_jkind kind, uint32_t pos);
/* Takes over the list and computes the depth. Returns NULL if the tree gets too deep. */
const struct kopi_jnode *kopi__jfinish(struct kopi_jparser *p, struct kopi_jnode *n);
bool kopi__jadd_child(struct kopi_jparser *p, struct kopi_jnode *n, uint32_t *cap, const struct kopi_jnode *child);

/* expr.c */
const struct kopi_jnode *kopi__jparse_expr(struct kopi_jparser *p);    /* with `a if b else c` */
const struct kopi_jnode *kopi__jparse_no_cond(struct kopi_jparser *p); /* without */
/* One or more expressions separated by commas: more make a tuple. */
const struct kopi_jnode *kopi__jparse_tuple(struct kopi_jparser *p, bool with_cond);
/* What `set` and `for` assign to: NAME, TUPLE of targets, or ATTR of a name (a namespace's). */
const struct kopi_jnode *kopi__jparse_target(struct kopi_jparser *p, bool attributes);
/* `name(args)|name ...` applied to input; the first | is already read. */
const struct kopi_jnode *kopi__jparse_filters(struct kopi_jparser *p, const struct kopi_jnode *input);

#endif
