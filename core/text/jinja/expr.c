/* Expressions: precedence climbing over tables. */
#include "text/jinja/parser.h"
#include "text/jinja/builtin.h"
#include <string.h>

static const struct kopi_jnode *parse_args(struct kopi_jparser *p, struct kopi_jnode *n);
static const struct kopi_jnode *parse_unary(struct kopi_jparser *p, bool with_filter);

static const struct kopi_jnode *constant(struct kopi_jparser *p, uint32_t pos, struct kopi_jval v)
{
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_CONST, pos);
    if (n) n->val = v;
    return n;
}

static const struct kopi_jnode *name_or_literal(struct kopi_jparser *p)
{
    static const struct {
        const char *word;
        uint8_t type;
        bool b;
    } literal[] = {{"true", KOPI_J_BOOL, true},   {"True", KOPI_J_BOOL, true},  {"false", KOPI_J_BOOL, false},
                   {"False", KOPI_J_BOOL, false}, {"none", KOPI_J_NONE, false}, {"None", KOPI_J_NONE, false}};
    const struct kopi_jtoken *t = p->tok;
    for (size_t i = 0; i < sizeof literal / sizeof *literal; i++)
        if (kopi__jskip_name(p, literal[i].word))
            return constant(p, t->pos, (struct kopi_jval){.type = literal[i].type, .b = literal[i].b});
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_NAME, t->pos);
    return n && kopi__jexpect_name(p, &n->val, &n->sym) ? n : NULL;
}

/* 'a' "b" is one string. */
static const struct kopi_jnode *string_literal(struct kopi_jparser *p)
{
    struct kopi_jarena *a = &p->t->arena;
    uint32_t pos = p->tok->pos;
    struct kopi_jbuf *b = kopi__jbuf_new(a, 0);
    for (; b && p->tok->type == KOPI_T_STRING; p->tok++)
        if (!kopi__jbuf_add(a, b, p->tok->s, p->tok->n, KOPI_J_TEMPLATE)) return NULL;
    if (!b) return NULL;
    b->cap = b->used; /* shared between renderings: nobody may append in place */
    return constant(p, pos, kopi__jstring(kopi__jbuf_str(b)));
}

/* Items up to the closing bracket; a trailing comma is allowed. */
static const struct kopi_jnode *items(struct kopi_jparser *p, enum kopi_jkind kind, char close)
{
    struct kopi_jnode *n = kopi__jnode(p, kind, p->tok->pos);
    uint32_t cap = 0;
    if (!n || !kopi__jnest(p)) return NULL;
    for (p->tok++; !kopi__jskip_op(p, (uint16_t)close);) {
        if (n->n && !kopi__jexpect_op(p, ',')) return NULL;
        if (kopi__jskip_op(p, (uint16_t)close)) break;
        if (!kopi__jadd_child(p, n, &cap, kopi__jparse_expr(p))) return NULL;
        if (kind != KOPI_N_DICT) continue;
        if (!kopi__jexpect_op(p, ':') || !kopi__jadd_child(p, n, &cap, kopi__jparse_expr(p))) return NULL;
    }
    p->nesting--;
    return kopi__jfinish(p, n);
}

static const struct kopi_jnode *parenthesis(struct kopi_jparser *p)
{
    uint32_t pos = p->tok->pos;
    if (!kopi__jnest(p)) return NULL;
    p->tok++;
    const struct kopi_jnode *n;
    if (kopi__jis_op(p, ')')) n = kopi__jnode(p, KOPI_N_TUPLE, pos);
    else n = kopi__jparse_tuple(p, true);
    p->nesting--;
    return n && kopi__jexpect_op(p, ')') ? n : NULL;
}

static const struct kopi_jnode *primary(struct kopi_jparser *p)
{
    const struct kopi_jtoken *t = p->tok;
    char buf[48];
    switch (t->type) {
    case KOPI_T_NAME: return name_or_literal(p);
    case KOPI_T_STRING: return string_literal(p);
    case KOPI_T_INT: p->tok++; return constant(p, t->pos, kopi__jint(t->i));
    case KOPI_T_FLOAT: p->tok++; return constant(p, t->pos, kopi__jfloat(t->f));
    case KOPI_T_OP:
        if (t->op == '(') return parenthesis(p);
        if (t->op == '[') return items(p, KOPI_N_LIST, ']');
        if (t->op == '{') return items(p, KOPI_N_DICT, '}');
        break;
    default: break;
    }
    return kopi__jparse_fail(p, t->pos, "expected an expression, found %s", kopi__jtoken_text(t, buf));
}

/* ---- what follows a value -----------------------------------------------------------------------------------------
 */

static const struct kopi_jnode *attribute(struct kopi_jparser *p, const struct kopi_jnode *object)
{
    uint32_t pos = p->tok->pos;
    p->tok++;
    if (p->tok->type == KOPI_T_INT) {
        struct kopi_jnode *n = kopi__jnode(p, KOPI_N_ITEM, pos);
        if (!n || !(n->b = constant(p, p->tok->pos, kopi__jint(p->tok->i)))) return NULL;
        n->a = object;
        p->tok++;
        return kopi__jfinish(p, n);
    }
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_ATTR, pos);
    if (!n || !kopi__jexpect_name(p, &n->val, NULL)) return NULL;
    n->a = object;
    return kopi__jfinish(p, n);
}

/* The part of a slice before the next ':' or ']'. */
static bool slice_part(struct kopi_jparser *p, const struct kopi_jnode **out)
{
    *out = NULL;
    if (kopi__jis_op(p, ':') || kopi__jis_op(p, ']')) return true;
    return (*out = kopi__jparse_expr(p)) != NULL;
}
static const struct kopi_jnode *subscript(struct kopi_jparser *p, const struct kopi_jnode *object)
{
    uint32_t pos = p->tok->pos, cap = 0;
    const struct kopi_jnode *first, *step = NULL;
    if (!kopi__jnest(p)) return NULL;
    p->tok++;
    if (kopi__jis_op(p, ']')) return kopi__jparse_fail(p, pos, "the index is missing");
    if (!slice_part(p, &first)) return NULL;
    bool slice = kopi__jskip_op(p, ':');
    struct kopi_jnode *n = kopi__jnode(p, slice ? KOPI_N_SLICE : KOPI_N_ITEM, pos);
    if (!n) return NULL;
    n->a = object;
    n->b = first;
    if (slice) {
        if (!slice_part(p, &n->c)) return NULL;
        if (kopi__jskip_op(p, ':') && !slice_part(p, &step)) return NULL;
        if (!kopi__jgrow(&p->t->arena, (void **)&n->list, 0, &cap, sizeof *n->list)) return NULL;
        n->list[n->n++] = step;
    }
    p->nesting--;
    return kopi__jexpect_op(p, ']') ? kopi__jfinish(p, n) : NULL;
}

/* p->tok is at '('. */
static const struct kopi_jnode *parse_args(struct kopi_jparser *p, struct kopi_jnode *n)
{
    uint32_t cap = 0;
    bool named = false;
    if (!n || !kopi__jnest(p)) return NULL;
    for (p->tok++; !kopi__jskip_op(p, ')');) {
        if (n->n && !kopi__jexpect_op(p, ',')) return NULL;
        if (kopi__jskip_op(p, ')')) break;
        if (kopi__jis_op(p, '*') || kopi__jis_op(p, KOPI_J_OP2('*', '*')))
            return kopi__jparse_fail(p, p->tok->pos, "arguments given by * or ** are not supported");
        const struct kopi_jnode *arg;
        if (p->tok->type == KOPI_T_NAME && p->tok[1].type == KOPI_T_OP && p->tok[1].op == '=') {
            struct kopi_jnode *k = kopi__jnode(p, KOPI_N_NAMED, p->tok->pos);
            if (!k || !kopi__jexpect_name(p, &k->val, &k->sym)) return NULL;
            p->tok++;
            if (!(k->a = kopi__jparse_expr(p))) return NULL;
            arg = kopi__jfinish(p, k);
            named = true;
        } else {
            if (named) return kopi__jparse_fail(p, p->tok->pos, "an argument without a name follows one with a name");
            arg = kopi__jparse_expr(p);
        }
        if (!kopi__jadd_child(p, n, &cap, arg)) return NULL;
    }
    p->nesting--;
    return n;
}
static const struct kopi_jnode *call(struct kopi_jparser *p, const struct kopi_jnode *callee)
{
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_CALL, p->tok->pos);
    if (n) n->a = callee;
    return parse_args(p, n) ? kopi__jfinish(p, n) : NULL;
}

static const struct kopi_jnode *postfix(struct kopi_jparser *p, const struct kopi_jnode *n)
{
    while (n) {
        if (kopi__jis_op(p, '.')) n = attribute(p, n);
        else if (kopi__jis_op(p, '[')) n = subscript(p, n);
        else if (kopi__jis_op(p, '(')) n = call(p, n);
        else break;
    }
    return n;
}

const struct kopi_jnode *kopi__jparse_filters(struct kopi_jparser *p, const struct kopi_jnode *input)
{
    do {
        struct kopi_jnode *n = kopi__jnode(p, KOPI_N_FILTER, p->tok->pos);
        if (!n || !kopi__jexpect_name(p, &n->val, NULL)) return NULL;
        n->a = input;
        n->builtin = kopi__jfind_builtin(kopi__jfilters, n->val.s);
        if (kopi__jis_op(p, '(') && !parse_args(p, n)) return NULL;
        if (!(input = kopi__jfinish(p, n))) return NULL;
    } while (kopi__jskip_op(p, '|'));
    return input;
}

/* `is not divisibleby 3`: the argument may come without brackets. */
static const struct kopi_jnode *test(struct kopi_jparser *p, const struct kopi_jnode *input)
{
    uint32_t pos = p->tok->pos, cap = 0;
    p->tok++;
    bool negated = kopi__jskip_name(p, "not");
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_TEST, pos);
    if (!n || !kopi__jexpect_name(p, &n->val, NULL)) return NULL;
    n->a = input;
    n->builtin = kopi__jfind_builtin(kopi__jtests, n->val.s);
    const struct kopi_jtoken *t = p->tok;
    bool literal = t->type == KOPI_T_STRING || t->type == KOPI_T_INT || t->type == KOPI_T_FLOAT ||
                   kopi__jis_op(p, '[') || kopi__jis_op(p, '{');
    bool name =
        t->type == KOPI_T_NAME && !kopi__jis_name(t, "else") && !kopi__jis_name(t, "or") && !kopi__jis_name(t, "and");
    if (kopi__jis_name(t, "is")) return kopi__jparse_fail(p, t->pos, "tests can't be chained with 'is'");
    if (kopi__jis_op(p, '(')) {
        if (!parse_args(p, n)) return NULL;
    } else if (literal || name) {
        if (!kopi__jadd_child(p, n, &cap, postfix(p, primary(p)))) return NULL;
    }
    const struct kopi_jnode *done = kopi__jfinish(p, n);
    if (!done || !negated) return done;
    struct kopi_jnode *not = kopi__jnode(p, KOPI_N_NOT, pos);
    if (!not ) return NULL;
    not ->a = done;
    return kopi__jfinish(p, not );
}

static const struct kopi_jnode *filters_and_tests(struct kopi_jparser *p, const struct kopi_jnode *n)
{
    while (n) {
        if (kopi__jskip_op(p, '|')) n = kopi__jparse_filters(p, n);
        else if (kopi__jis_name(p->tok, "is")) n = test(p, n);
        else if (kopi__jis_op(p, '(')) n = call(p, n);
        else break;
    }
    return n;
}

/* ---- operators ----------------------------------------------------------------------------------------------------
 */

static const struct kopi_jnode *parse_unary(struct kopi_jparser *p, bool with_filter)
{
    const struct kopi_jnode *n;
    if (kopi__jis_op(p, '-') || kopi__jis_op(p, '+')) {
        struct kopi_jnode *u = kopi__jnode(p, KOPI_N_UNARY, p->tok->pos);
        if (!u || !kopi__jnest(p)) return NULL;
        u->op = p->tok->op;
        p->tok++;
        if (!(u->a = parse_unary(p, false))) return NULL;
        p->nesting--;
        n = kopi__jfinish(p, u);
    } else n = primary(p);
    n = postfix(p, n);
    return with_filter ? filters_and_tests(p, n) : n;
}

/* Left-associative levels, weakest first. `~` sits between + and *, and takes any number of operands. */
static const uint16_t level_ops[][4] = {
    {'+', '-'}, {'~'}, {'*', '/', KOPI_J_OP2('/', '/'), '%'}, {KOPI_J_OP2('*', '*')}};
enum { N_LEVELS = sizeof level_ops / sizeof *level_ops };

static bool op_of_level(const struct kopi_jparser *p, unsigned level)
{
    for (int i = 0; i < 4 && level_ops[level][i]; i++)
        if (kopi__jis_op(p, level_ops[level][i])) return true;
    return false;
}

static const struct kopi_jnode *arithmetic(struct kopi_jparser *p, unsigned level);

static const struct kopi_jnode *concatenation(struct kopi_jparser *p, const struct kopi_jnode *first, unsigned level)
{
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_CONCAT, p->tok->pos);
    uint32_t cap = 0;
    if (!n || !kopi__jadd_child(p, n, &cap, first)) return NULL;
    while (kopi__jskip_op(p, '~'))
        if (!kopi__jadd_child(p, n, &cap, arithmetic(p, level + 1))) return NULL;
    return kopi__jfinish(p, n);
}

static const struct kopi_jnode *arithmetic(struct kopi_jparser *p, unsigned level)
{
    if (level == N_LEVELS) return parse_unary(p, true);
    const struct kopi_jnode *left = arithmetic(p, level + 1);
    while (left && op_of_level(p, level)) {
        if (p->tok->op == '~') {
            left = concatenation(p, left, level);
            continue;
        }
        struct kopi_jnode *n = kopi__jnode(p, KOPI_N_BINARY, p->tok->pos);
        if (!n) return NULL;
        n->op = p->tok->op;
        p->tok++;
        n->a = left;
        if (!(n->b = arithmetic(p, level + 1))) return NULL;
        left = kopi__jfinish(p, n);
    }
    return left;
}

/* 0: the current token compares nothing. Otherwise it is consumed. */
static uint16_t comparison_op(struct kopi_jparser *p)
{
    static const uint16_t ops[] = {
        KOPI_J_OP2('=', '='), KOPI_J_OP2('!', '='), KOPI_J_OP2('<', '='), KOPI_J_OP2('>', '='), '<', '>'};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (kopi__jskip_op(p, ops[i])) return ops[i];
    if (kopi__jskip_name(p, "in")) return KOPI_J_OP_IN;
    if (kopi__jis_name(p->tok, "not") && kopi__jis_name(p->tok + 1, "in")) {
        p->tok += 2;
        return KOPI_J_OP_NOT_IN;
    }
    return 0;
}
static const struct kopi_jnode *comparison(struct kopi_jparser *p)
{
    uint32_t pos = p->tok->pos, cap = 0;
    const struct kopi_jnode *first = arithmetic(p, 0);
    struct kopi_jnode *n = NULL;
    while (first) {
        uint32_t at = p->tok->pos;
        uint16_t op = comparison_op(p);
        if (!op) break;
        struct kopi_jnode *to = kopi__jnode(p, KOPI_N_COMPARE_TO, at);
        if (!n && (n = kopi__jnode(p, KOPI_N_COMPARE, pos))) n->a = first;
        if (!n || !to) return NULL;
        to->op = op;
        if (!(to->a = arithmetic(p, 0)) || !kopi__jadd_child(p, n, &cap, kopi__jfinish(p, to))) return NULL;
    }
    return n ? kopi__jfinish(p, n) : first;
}

static const struct kopi_jnode *negation(struct kopi_jparser *p)
{
    if (!kopi__jis_name(p->tok, "not")) return comparison(p);
    struct kopi_jnode *n = kopi__jnode(p, KOPI_N_NOT, p->tok->pos);
    if (!n || !kopi__jnest(p)) return NULL;
    p->tok++;
    if (!(n->a = negation(p))) return NULL;
    p->nesting--;
    return kopi__jfinish(p, n);
}
/* Level 0: or, level 1: and. */
static const struct kopi_jnode *logic(struct kopi_jparser *p, int level)
{
    if (level == 2) return negation(p);
    const struct kopi_jnode *left = logic(p, level + 1);
    uint32_t pos = p->tok->pos;
    while (left && kopi__jskip_name(p, level ? "and" : "or")) {
        struct kopi_jnode *n = kopi__jnode(p, level ? KOPI_N_AND : KOPI_N_OR, pos);
        if (!n) return NULL;
        n->a = left;
        if (!(n->b = logic(p, level + 1))) return NULL;
        left = kopi__jfinish(p, n);
        pos = p->tok->pos;
    }
    return left;
}

const struct kopi_jnode *kopi__jparse_no_cond(struct kopi_jparser *p) { return logic(p, 0); }

const struct kopi_jnode *kopi__jparse_expr(struct kopi_jparser *p)
{
    const struct kopi_jnode *value = logic(p, 0);
    uint32_t pos = p->tok->pos;
    while (value && kopi__jskip_name(p, "if")) {
        struct kopi_jnode *n = kopi__jnode(p, KOPI_N_COND, pos);
        if (!n || !kopi__jnest(p)) return NULL;
        n->b = value;
        if (!(n->a = logic(p, 0))) return NULL;
        if (kopi__jskip_name(p, "else") && !(n->c = kopi__jparse_expr(p))) return NULL;
        p->nesting--;
        value = kopi__jfinish(p, n);
    }
    return value;
}

/* ---- tuples and targets -------------------------------------------------------------------------------------------
 */

static bool tuple_ends(const struct kopi_jparser *p)
{
    return p->tok->type == KOPI_T_VAR_END || p->tok->type == KOPI_T_BLOCK_END || kopi__jis_op(p, ')') ||
           kopi__jis_op(p, '=') || kopi__jis_name(p->tok, "in");
}
static const struct kopi_jnode *comma_list(struct kopi_jparser *p,
                                           const struct kopi_jnode *(*item)(struct kopi_jparser *))
{
    struct kopi_jnode *tuple = kopi__jnode(p, KOPI_N_TUPLE, p->tok->pos);
    uint32_t cap = 0;
    const struct kopi_jnode *first = item(p);
    if (!kopi__jis_op(p, ',')) return first;
    if (!tuple || !kopi__jadd_child(p, tuple, &cap, first)) return NULL;
    while (kopi__jskip_op(p, ',') && !tuple_ends(p))
        if (!kopi__jadd_child(p, tuple, &cap, item(p))) return NULL;
    return kopi__jfinish(p, tuple);
}
const struct kopi_jnode *kopi__jparse_tuple(struct kopi_jparser *p, bool with_cond)
{
    return comma_list(p, with_cond ? kopi__jparse_expr : kopi__jparse_no_cond);
}

static const struct kopi_jnode *name_target(struct kopi_jparser *p)
{
    uint32_t pos = p->tok->pos;
    if (kopi__jskip_op(p, '(')) {
        if (!kopi__jnest(p)) return NULL;
        const struct kopi_jnode *n = comma_list(p, name_target);
        p->nesting--;
        return n && kopi__jexpect_op(p, ')') ? n : NULL;
    }
    const struct kopi_jnode *n = p->tok->type == KOPI_T_NAME ? name_or_literal(p) : NULL;
    if (n && n->kind == KOPI_N_NAME) return n;
    return kopi__jparse_fail(p, pos, "expected the name of a variable to assign to");
}
static const struct kopi_jnode *set_target(struct kopi_jparser *p)
{
    const struct kopi_jnode *n = name_target(p);
    return n && n->kind == KOPI_N_NAME && kopi__jis_op(p, '.') ? attribute(p, n) : n;
}
const struct kopi_jnode *kopi__jparse_target(struct kopi_jparser *p, bool attributes)
{
    const struct kopi_jnode *n = comma_list(p, attributes ? set_target : name_target);
    if (n && n->kind == KOPI_N_ITEM) return kopi__jparse_fail(p, n->pos, "can't assign to a numbered item");
    return n;
}
