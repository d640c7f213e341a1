/* Evaluation of expressions: one function per kind of node; declared in run.h. */
#include "text/jinja/run.h"
#include <string.h>

typedef bool eval_fn(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out);

static bool eval_const(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    (void)j;
    *out = n->val;
    return true;
}
static bool eval_name(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    return kopi__jvar_get(j, n->sym, out);
}
static bool eval_captured(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    (void)n;
    *out = j->captured;
    return true;
}

static bool eval_list(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    if (!kopi__jlist_new(j, n->kind == KOPI_N_LIST ? KOPI_J_LIST : KOPI_J_TUPLE, n->n, out)) return false;
    for (uint32_t i = 0; i < n->n; i++)
        if (!kopi__jeval(j, n->list[i], &out->list->v[i])) return false;
    out->list->n = n->n;
    return true;
}
static bool eval_dict(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    if (!kopi__jdict_new(j, out)) return false;
    for (uint32_t i = 0; i < n->n; i += 2) {
        struct kopi_jval key, value;
        if (!kopi__jeval(j, n->list[i], &key) || !kopi__jeval(j, n->list[i + 1], &value)) return false;
        if (!kopi__jdict_set(j, out->dict, &key, value)) return false;
    }
    return true;
}

/* ---- attributes and items -----------------------------------------------------------------------------------------
 */

static bool method(struct kopi_jinja *j, const struct kopi_jval *object, struct kopi_jstr name, bool *found,
                   struct kopi_jval *out)
{
    const struct kopi_jbuiltin *const *tables = object->type == KOPI_J_STRING ? kopi__jstr_methods
                                                : object->type == KOPI_J_LIST ? kopi__jlist_methods
                                                : object->type == KOPI_J_DICT ? kopi__jdict_methods
                                                                              : NULL;
    const struct kopi_jbuiltin *f = tables ? kopi__jfind_builtin(tables, name) : NULL;
    *found = f != NULL;
    if (!kopi__jwork(&j->arena, KOPI_J_LOOKUP)) return false;
    if (!f) return true;
    struct kopi_jmethod *m = kopi__jalloc(&j->arena, sizeof *m);
    if (!m) return false;
    *m = (struct kopi_jmethod){f, *object};
    *out = (struct kopi_jval){.type = KOPI_J_METHOD, .method = m};
    return true;
}

static bool lookup(struct kopi_jinja *j, const struct kopi_jdict *d, const struct kopi_jval *key, bool *found,
                   struct kopi_jval *out)
{
    struct kopi_jval *there;
    if (!kopi__jdict_get(j, d, key, &there)) return false;
    *found = there != NULL;
    if (there) *out = *there;
    return true;
}

static void not_there(const struct kopi_jval *name, struct kopi_jval *out)
{
    *out = (struct kopi_jval){.type = KOPI_J_UNDEFINED};
    if (name->type == KOPI_J_STRING) out->s = name->s;
}

bool kopi__jget_attr(struct kopi_jinja *j, const struct kopi_jval *object, const struct kopi_jval *name,
                     struct kopi_jval *out)
{
    bool found = false;
    if (object->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, object);
    if (object->type == KOPI_J_LOOP) return kopi__jloop_attr(j, object->loop, name->s, out);
    if (!method(j, object, name->s, &found, out)) return false;
    if (found) return true;
    if (object->type == KOPI_J_DICT || object->type == KOPI_J_NAMESPACE)
        if (!lookup(j, object->dict, name, &found, out)) return false;
    if (!found) not_there(name, out);
    return true;
}

static bool item_at(struct kopi_jinja *j, const struct kopi_jval *object, int64_t i, bool *found, struct kopi_jval *out)
{
    if (object->type == KOPI_J_STRING) {
        struct kopi_jstr s = object->s;
        if (!kopi__jwork_on(&j->arena, 2 * (uint64_t)s.len, KOPI_J_DECODE)) return false;
        int64_t n = kopi__jstr_chars(s);
        i += i < 0 ? n : 0;
        if (!(*found = i >= 0 && i < n)) return true;
        uint32_t cp, from = kopi__jstr_offset(s, (uint32_t)i);
        *out = kopi__jstring(kopi__jstr_sub(s, from, kopi__jstr_next(s, from, &cp)));
    } else {
        i += i < 0 ? object->list->n : 0;
        if (!(*found = i >= 0 && i < object->list->n)) return true;
        *out = object->list->v[i];
    }
    return true;
}

bool kopi__jget_item(struct kopi_jinja *j, const struct kopi_jval *object, const struct kopi_jval *key,
                     struct kopi_jval *out)
{
    bool found = false, indexable = object->type == KOPI_J_STRING || kopi__jis_seq(object);
    if (object->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, object);
    if (indexable && (key->type == KOPI_J_INT || key->type == KOPI_J_BOOL)) {
        if (!item_at(j, object, kopi__jas_int(key), &found, out)) return false;
    } else if (object->type == KOPI_J_DICT) {
        if (!lookup(j, object->dict, key, &found, out)) return false;
    }
    if (found) return true;
    /* An item that is not there may still be an attribute. */
    if (key->type == KOPI_J_STRING) return kopi__jget_attr(j, object, key, out);
    not_there(key, out);
    return true;
}

static bool eval_attr(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval object;
    return kopi__jeval(j, n->a, &object) && kopi__jget_attr(j, &object, &n->val, out);
}
static bool eval_item(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval object, key;
    return kopi__jeval(j, n->a, &object) && kopi__jeval(j, n->b, &key) && kopi__jget_item(j, &object, &key, out);
}
static bool eval_slice(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    const struct kopi_jnode *node[3] = {n->b, n->c, n->list[0]};
    struct kopi_jval object, part[3] = {{.type = KOPI_J_NONE}, {.type = KOPI_J_NONE}, {.type = KOPI_J_NONE}};
    if (!kopi__jeval(j, n->a, &object)) return false;
    for (int i = 0; i < 3; i++)
        if (node[i] && !kopi__jeval(j, node[i], &part[i])) return false;
    return kopi__jslice(j, &object, part, out);
}

/* ---- calls --------------------------------------------------------------------------------------------------------
 */

static bool eval_call(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval callee;
    struct kopi_jcall c;
    return kopi__jeval(j, n->a, &callee) && kopi__jeval_args(j, n, &c) && kopi__jcall_value(j, &callee, &c, out);
}
static bool eval_filter(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval input;
    struct kopi_jcall c;
    if (!n->builtin)
        return kopi__jfail(j, "there is no filter '%.*s'", (int)(n->val.s.len < 64 ? n->val.s.len : 64),
                           kopi__jstr_data(n->val.s));
    return kopi__jeval(j, n->a, &input) && kopi__jeval_args(j, n, &c) && kopi__jinvoke(j, n->builtin, &input, &c, out);
}
static bool eval_test(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval input;
    struct kopi_jcall c;
    if (!n->builtin)
        return kopi__jfail(j, "there is no test '%.*s'", (int)(n->val.s.len < 64 ? n->val.s.len : 64),
                           kopi__jstr_data(n->val.s));
    return kopi__jeval(j, n->a, &input) && kopi__jeval_args(j, n, &c) && kopi__jinvoke(j, n->builtin, &input, &c, out);
}

/* ---- operators ----------------------------------------------------------------------------------------------------
 */

static bool eval_unary(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval v, zero = kopi__jint(0);
    if (!kopi__jeval(j, n->a, &v)) return false;
    if (v.type == KOPI_J_FLOAT) {
        *out = v;
        if (n->op == '-') out->f = -v.f;
        return true;
    }
    return kopi__jarith(j, n->op, &zero, &v, out);
}
static bool eval_binary(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval x, y;
    return kopi__jeval(j, n->a, &x) && kopi__jeval(j, n->b, &y) && kopi__jarith(j, n->op, &x, &y, out);
}
static bool eval_concat(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jstr sum = {0};
    for (uint32_t i = 0; i < n->n; i++) {
        struct kopi_jval v;
        struct kopi_jstr s;
        if (!kopi__jeval(j, n->list[i], &v) || !kopi__jto_str(j, &v, &s) || !kopi__jstr_concat(&j->arena, sum, s, &sum))
            return false;
    }
    *out = kopi__jstring(sum);
    return true;
}
static bool eval_compare(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval left, right;
    bool holds = true;
    if (!kopi__jeval(j, n->a, &left)) return false;
    for (uint32_t i = 0; holds && i < n->n; i++, left = right) {
        if (!kopi__jeval(j, n->list[i]->a, &right)) return false;
        if (!kopi__jcompare(j, n->list[i]->op, &left, &right, &holds)) return false;
    }
    *out = kopi__jbool(holds);
    return true;
}
static bool eval_and_or(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    if (!kopi__jeval(j, n->a, out)) return false;
    return kopi__jtruth(out) == (n->kind == KOPI_N_OR) || kopi__jeval(j, n->b, out);
}
static bool eval_not(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval v;
    if (!kopi__jeval(j, n->a, &v)) return false;
    *out = kopi__jbool(!kopi__jtruth(&v));
    return true;
}
static bool eval_cond(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    struct kopi_jval c;
    if (!kopi__jeval(j, n->a, &c)) return false;
    if (kopi__jtruth(&c)) return kopi__jeval(j, n->b, out);
    if (n->c) return kopi__jeval(j, n->c, out);
    *out = KOPI_J_UNDEF;
    return true;
}

bool kopi__jeval(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jval *out)
{
    static eval_fn *const by_kind[KOPI_N_BODY] = {
        [KOPI_N_CONST] = eval_const,   [KOPI_N_NAME] = eval_name,         [KOPI_N_LIST] = eval_list,
        [KOPI_N_TUPLE] = eval_list,    [KOPI_N_DICT] = eval_dict,         [KOPI_N_ATTR] = eval_attr,
        [KOPI_N_ITEM] = eval_item,     [KOPI_N_SLICE] = eval_slice,       [KOPI_N_CALL] = eval_call,
        [KOPI_N_FILTER] = eval_filter, [KOPI_N_TEST] = eval_test,         [KOPI_N_UNARY] = eval_unary,
        [KOPI_N_BINARY] = eval_binary, [KOPI_N_CONCAT] = eval_concat,     [KOPI_N_COMPARE] = eval_compare,
        [KOPI_N_AND] = eval_and_or,    [KOPI_N_OR] = eval_and_or,         [KOPI_N_NOT] = eval_not,
        [KOPI_N_COND] = eval_cond,     [KOPI_N_CAPTURED] = eval_captured,
    };
    const struct kopi_jnode *before = j->at;
    j->at = n;
    if (!kopi__jenter(j)) return false;
    if (!by_kind[n->kind](j, n, out)) {
        kopi__jinja_settle(j); /* here the position is known */
        return false;
    }
    kopi__jleave(j);
    j->at = before;
    return true;
}
