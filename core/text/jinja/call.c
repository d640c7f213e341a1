/* Calls of macros and builtins; declared in run.h and builtin.h. */
#include "text/jinja/run.h"
#include <string.h>

const struct kopi_jbuiltin *kopi__jfind_builtin(const struct kopi_jbuiltin *const *tables, struct kopi_jstr name)
{
    for (; *tables; tables++)
        for (const struct kopi_jbuiltin *f = *tables; f->name; f++)
            if (name.len && *f->name == *kopi__jstr_data(name) && kopi__jstr_is(name, f->name)) return f;
    return NULL;
}

bool kopi__jeval_args(struct kopi_jinja *j, const struct kopi_jnode *n, struct kopi_jcall *out)
{
    *out = (struct kopi_jcall){0};
    if (n->n == 0) return true;
    struct kopi_jval *pos = kopi__jalloc(&j->arena, n->n * sizeof *pos);
    struct kopi_jpair *named = NULL;
    if (!pos) return false;
    for (uint32_t i = 0; i < n->n; i++) {
        const struct kopi_jnode *arg = n->list[i];
        if (arg->kind != KOPI_N_NAMED) {
            if (!kopi__jeval(j, arg, &pos[out->n_pos++])) return false;
            continue;
        }
        if (!named && !(named = kopi__jalloc(&j->arena, (n->n - i) * sizeof *named))) return false;
        named[out->n_named].key = arg->val;
        if (!kopi__jeval(j, arg->a, &named[out->n_named++].value)) return false;
    }
    out->pos = pos;
    out->named = named;
    return true;
}

/* ---- builtins -----------------------------------------------------------------------------------------------------
 */

/* Index of the parameter called name, or -1; *n is the number of parameters, required[] marks the `!` ones. */
static int find_param(const char *params, struct kopi_jstr name, int *n, bool required[KOPI_J_MAX_PARAMS])
{
    int found = -1;
    *n = 0;
    for (const char *p = params; *p;) {
        bool must = *p == '!';
        p += must;
        size_t len = strcspn(p, " ");
        if (len == name.len && memcmp(p, kopi__jstr_data(name), len) == 0) found = *n;
        required[(*n)++] = must;
        p += len;
        p += *p == ' ';
    }
    return found;
}

static bool bind(struct kopi_jinja *j, const struct kopi_jbuiltin *f, const struct kopi_jcall *c, struct kopi_jargs *a)
{
    bool required[KOPI_J_MAX_PARAMS];
    int n;
    find_param(f->params, (struct kopi_jstr){0}, &n, required);
    if (c->n_pos > (uint32_t)n) return kopi__jfail(j, "%s takes at most %d arguments, %u given", f->name, n, c->n_pos);
    for (uint32_t i = 0; i < c->n_pos; i++) {
        a->v[i] = c->pos[i];
        a->given[i] = true;
    }
    for (uint32_t i = 0; i < c->n_named; i++) {
        struct kopi_jstr name = c->named[i].key.s;
        int at = find_param(f->params, name, &n, required);
        if (at < 0)
            return kopi__jfail(j, "%s has no argument '%.*s'", f->name, (int)(name.len < 64 ? name.len : 64),
                               kopi__jstr_data(name));
        if (a->given[at])
            return kopi__jfail(j, "%s: the argument '%.*s' is given twice", f->name,
                               (int)(name.len < 64 ? name.len : 64), kopi__jstr_data(name));
        a->v[at] = c->named[i].value;
        a->given[at] = true;
    }
    for (int i = 0; i < n; i++)
        if (required[i] && !a->given[i]) return kopi__jfail(j, "%s: argument %d is missing", f->name, i + 1);
    return true;
}

bool kopi__jinvoke(struct kopi_jinja *j, const struct kopi_jbuiltin *f, const struct kopi_jval *self,
                   const struct kopi_jcall *c, struct kopi_jval *out)
{
    struct kopi_jargs a = {.self = *self, .call = c};
    if (!f->params) return kopi__jfail(j, "%s is not supported", f->name);
    if (f->params[0] != '*' && !bind(j, f, c, &a)) return false;
    if (!kopi__jwork(&j->arena, 1 + c->n_named) || !kopi__jenter(j)) return false;
    bool ok = f->fn(j, &a, out);
    kopi__jleave(j);
    return ok;
}

bool kopi__jarg_int(struct kopi_jinja *j, const struct kopi_jargs *a, int i, int64_t missing, int64_t *out)
{
    const struct kopi_jval *v = &a->v[i];
    *out = missing;
    if (!a->given[i] || v->type == KOPI_J_NONE) return true;
    if (v->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, v);
    if (v->type != KOPI_J_INT && v->type != KOPI_J_BOOL)
        return kopi__jfail(j, "argument %d must be an int, not %s", i + 1, kopi__jtype_name(v));
    *out = kopi__jas_int(v);
    return true;
}
bool kopi__jarg_bool(const struct kopi_jargs *a, int i, bool missing)
{
    return a->given[i] ? kopi__jtruth(&a->v[i]) : missing;
}
bool kopi__jarg_str(struct kopi_jinja *j, const struct kopi_jargs *a, int i, struct kopi_jstr *out)
{
    const struct kopi_jval *v = &a->v[i];
    if (v->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, v);
    if (v->type != KOPI_J_STRING)
        return kopi__jfail(j, "argument %d must be a str, not %s", i + 1, kopi__jtype_name(v));
    *out = v->s;
    return true;
}

/* ---- macros -------------------------------------------------------------------------------------------------------
 */

static const struct kopi_jval *named_arg(const struct kopi_jcall *c, struct kopi_jstr name)
{
    for (uint32_t i = 0; i < c->n_named; i++)
        if (kopi__jstr_eq(c->named[i].key.s, name)) return &c->named[i].value;
    return NULL;
}

/* Parameter i of the macro, in the macro's own scope, where defaults may use the parameters before. */
static bool set_param(struct kopi_jinja *j, const struct kopi_jnode *n, uint32_t i, const struct kopi_jcall *c,
                      uint32_t *n_used)
{
    const struct kopi_jnode *p = n->list[i];
    struct kopi_jval v = {.type = KOPI_J_UNDEFINED, .s = p->val.s};
    if (!kopi__jwork(&j->arena, 1 + c->n_named * (1 + (uint64_t)p->val.s.len / KOPI_J_COPY))) return false;
    const struct kopi_jval *named = named_arg(c, p->val.s);
    if (named && i < c->n_pos)
        return kopi__jfail(j, "the argument '%.*s' is given twice", (int)(p->val.s.len < 64 ? p->val.s.len : 64),
                           kopi__jstr_data(p->val.s));
    if (named) v = *named;
    else if (i < c->n_pos) v = c->pos[i];
    else if (p->a && !kopi__jeval(j, p->a, &v)) return false;
    *n_used += named != NULL;
    return kopi__jvar_set(j, p->sym, v);
}

/* Arguments beyond the parameters: only for a template that speaks of them. */
static bool set_rest(struct kopi_jinja *j, const struct kopi_jnode *n, const struct kopi_jcall *c, uint32_t n_used)
{
    struct kopi_jval rest;
    struct kopi_jstr name = n->val.s;
    if (j->sym_varargs == UINT32_MAX && c->n_pos > n->n)
        return kopi__jfail(j, "macro '%.*s' takes at most %u arguments, %u given", (int)(name.len < 64 ? name.len : 64),
                           kopi__jstr_data(name), n->n, c->n_pos);
    if (j->sym_varargs != UINT32_MAX) {
        if (!kopi__jlist_new(j, KOPI_J_TUPLE, 0, &rest)) return false;
        for (uint32_t i = n->n; i < c->n_pos; i++)
            if (!kopi__jlist_push(j, rest.list, c->pos[i])) return false;
        if (!kopi__jvar_set(j, j->sym_varargs, rest)) return false;
    }
    const struct kopi_jval *caller = NULL;
    if (j->sym_caller != UINT32_MAX) {
        caller = named_arg(c, j->t->symbols[j->sym_caller]);
        if (!kopi__jvar_set(j, j->sym_caller, caller ? *caller : (struct kopi_jval){.s = j->t->symbols[j->sym_caller]}))
            return false;
    }
    if (j->sym_kwargs == UINT32_MAX) {
        if (n_used + (caller != NULL) == c->n_named) return true;
        return kopi__jfail(j, "macro '%.*s' does not take all of these named arguments",
                           (int)(name.len < 64 ? name.len : 64), kopi__jstr_data(name));
    }
    if (!kopi__jdict_new(j, &rest)) return false;
    for (uint32_t i = 0; i < c->n_named; i++) {
        bool known = &c->named[i].value == caller;
        if (!kopi__jwork(&j->arena, n->n * (1 + (uint64_t)c->named[i].key.s.len / KOPI_J_COPY))) return false;
        for (uint32_t k = 0; k < n->n; k++) known |= kopi__jstr_eq(n->list[k]->val.s, c->named[i].key.s);
        if (!known && !kopi__jdict_set(j, rest.dict, &c->named[i].key, c->named[i].value)) return false;
    }
    return kopi__jvar_set(j, j->sym_kwargs, rest);
}

static bool run_macro(struct kopi_jinja *j, const struct kopi_jmacro *m, const struct kopi_jcall *c)
{
    uint32_t used = 0;
    if (!kopi__jscope_push(j, m->scope)) return false;
    for (uint32_t i = 0; i < m->node->n; i++)
        if (!set_param(j, m->node, i, c, &used)) return false;
    return set_rest(j, m->node, c, used) && kopi__jexec(j, m->node->c) != KOPI_JFLOW_FAILED;
}

static bool call_macro(struct kopi_jinja *j, const struct kopi_jmacro *m, const struct kopi_jcall *c,
                       struct kopi_jval *out)
{
    struct kopi_jscope *scope = j->scope;
    struct kopi_jbuf *before = j->out;
    if (!(j->out = kopi__jbuf_new(&j->arena, 0)) || !run_macro(j, m, c)) return false; /* the rendering is over */
    *out = kopi__jstring(kopi__jbuf_str(j->out));
    j->out = before;
    j->scope = scope;
    return true;
}

bool kopi__jcall_value(struct kopi_jinja *j, const struct kopi_jval *callee, const struct kopi_jcall *c,
                       struct kopi_jval *out)
{
    switch (callee->type) {
    case KOPI_J_FUNCTION: return kopi__jinvoke(j, callee->function, &(struct kopi_jval){0}, c, out);
    case KOPI_J_METHOD: return kopi__jinvoke(j, callee->method->builtin, &callee->method->self, c, out);
    case KOPI_J_MACRO: return call_macro(j, callee->macro, c, out);
    case KOPI_J_UNDEFINED: return kopi__jfail_undefined(j, callee);
    default: return kopi__jfail(j, "%s can't be called", kopi__jtype_name(callee));
    }
}
