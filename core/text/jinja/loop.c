/* `for` and the variable `loop`; declared in run.h. */
#include "text/jinja/run.h"
#include <string.h>

struct kopi_jloop {
    const struct kopi_jnode *node;
    struct kopi_jscope *outer;
    struct kopi_jlist *items; /* of a list itself: what is appended during the loop is seen, as in Python */
    uint32_t next;            /* index of the first item not yet looked at */
    struct kopi_jval previous, current, following;
    bool has_previous, has_following;
    int64_t index0;
    struct kopi_jval changed;
    bool has_changed;
};

static bool to_chars(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jlist *l)
{
    for (uint32_t i = 0, next, cp; i < s.len; i = next) {
        next = kopi__jstr_next(s, i, &cp);
        if (!kopi__jlist_push(j, l, kopi__jstring(kopi__jstr_sub(s, i, next)))) return false;
    }
    return true;
}

bool kopi__jiterate(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jlist **out)
{
    struct kopi_jval l;
    if (kopi__jis_seq(v)) {
        *out = v->list;
        return true;
    }
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, &l)) return false;
    *out = l.list;
    switch (v->type) {
    case KOPI_J_UNDEFINED: return true;
    case KOPI_J_STRING: return kopi__jwork_on(&j->arena, v->s.len, KOPI_J_REWRITE) && to_chars(j, v->s, l.list);
    case KOPI_J_DICT:
        for (uint32_t i = 0; i < v->dict->n; i++)
            if (!kopi__jlist_push(j, l.list, v->dict->v[i].key)) return false;
        return true;
    default: return kopi__jfail(j, "%s has no items to run over", kopi__jtype_name(v));
    }
}

bool kopi__jassign(struct kopi_jinja *j, const struct kopi_jnode *target, const struct kopi_jval *v)
{
    if (target->kind == KOPI_N_NAME) return kopi__jvar_set(j, target->sym, *v);
    if (target->kind == KOPI_N_ATTR) {
        struct kopi_jval ns;
        if (!kopi__jvar_get(j, target->a->sym, &ns)) return false;
        if (ns.type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, &ns);
        if (ns.type != KOPI_J_NAMESPACE)
            return kopi__jfail(j, "can't set an attribute of %s, only of a namespace", kopi__jtype_name(&ns));
        return kopi__jdict_set(j, ns.dict, &target->val, *v);
    }
    struct kopi_jlist *items;
    if (!kopi__jiterate(j, v, &items)) return false;
    if (items->n != target->n) return kopi__jfail(j, "%u values can't be unpacked into %u names", items->n, target->n);
    for (uint32_t i = 0; i < target->n; i++)
        if (!kopi__jassign(j, target->list[i], &items->v[i])) return false;
    return true;
}

/* ---- moving through the items -------------------------------------------------------------------------------------
 */

/* Whether the loop's condition holds for v, judged in a scope of its own. */
static bool passes(struct kopi_jinja *j, const struct kopi_jloop *l, const struct kopi_jval *v, bool *out)
{
    struct kopi_jscope *scope = j->scope;
    struct kopi_jval c;
    if (!kopi__jscope_push(j, l->outer) || !kopi__jassign(j, l->node->a, v) || !kopi__jeval(j, l->node->c, &c))
        return false;
    j->scope = scope;
    *out = kopi__jtruth(&c);
    return true;
}

/* Finds l->following, if there is one; only as far as needed, so that a condition sees what the body has changed. */
static bool look_ahead(struct kopi_jinja *j, struct kopi_jloop *l)
{
    while (!l->has_following && l->next < l->items->n) {
        bool ok = true;
        l->following = l->items->v[l->next++];
        if (l->node->c && !passes(j, l, &l->following, &ok)) return false;
        l->has_following = ok;
    }
    return true;
}
static bool advance(struct kopi_jinja *j, struct kopi_jloop *l, bool *more)
{
    if (!look_ahead(j, l)) return false;
    *more = l->has_following;
    if (!*more) return true;
    l->index0++;
    l->has_previous = l->index0 > 0;
    l->previous = l->current;
    l->current = l->following;
    l->has_following = false;
    return true;
}

/* Number of passing items from here on, the current one included; they are remembered. */
static bool remaining(struct kopi_jinja *j, struct kopi_jloop *l, int64_t *out)
{
    if (!l->node->c) {
        *out = 1 + (int64_t)l->items->n - l->next + l->has_following;
        return true;
    }
    struct kopi_jval rest;
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, &rest)) return false;
    for (;;) {
        if (!look_ahead(j, l)) return false;
        if (!l->has_following) break;
        if (!kopi__jlist_push(j, rest.list, l->following)) return false;
        l->has_following = false;
    }
    l->items = rest.list;
    l->next = 0;
    *out = 1 + (int64_t)rest.list->n;
    return true;
}

/* ---- the variable `loop` ------------------------------------------------------------------------------------------
 */

static bool cycle(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    if (!a->call->n_pos) return kopi__jfail(j, "loop.cycle needs values");
    *out = a->call->pos[a->self.loop->index0 % a->call->n_pos];
    return true;
}
static bool changed(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jloop *l = a->self.loop;
    struct kopi_jval now;
    bool same = false;
    if (!kopi__jlist_new(j, KOPI_J_TUPLE, 0, &now)) return false;
    for (uint32_t i = 0; i < a->call->n_pos; i++)
        if (!kopi__jlist_push(j, now.list, a->call->pos[i])) return false;
    if (l->has_changed && !kopi__jequal(j, &l->changed, &now, &same)) return false;
    l->changed = now;
    l->has_changed = true;
    *out = kopi__jbool(!same);
    return true;
}
static const struct kopi_jbuiltin loop_methods[] = {
    {"cycle", "*", cycle},
    {"changed", "*", changed},
    {NULL, NULL, NULL},
};

bool kopi__jloop_attr(struct kopi_jinja *j, struct kopi_jloop *l, struct kopi_jstr name, struct kopi_jval *out)
{
    static const struct kopi_jbuiltin *const tables[] = {loop_methods, NULL};
    static const char *const names[] = {"index",    "index0",    "first", "depth",    "depth0",  "length",
                                        "revindex", "revindex0", "last",  "previtem", "nextitem"};
    enum { INDEX, INDEX0, FIRST, DEPTH, DEPTH0, LENGTH, REVINDEX, REVINDEX0, LAST, PREVITEM, NEXTITEM, N_NAMES };
    int64_t left = 0;
    int which = 0;
    while (which < N_NAMES && !kopi__jstr_is(name, names[which])) which++;
    if (which >= LENGTH && which <= REVINDEX0 && !remaining(j, l, &left)) return false;
    if ((which == LAST || which == NEXTITEM) && !look_ahead(j, l)) return false;
    const struct kopi_jval none = {.type = KOPI_J_UNDEFINED, .s = name};
    switch (which) {
    case INDEX: *out = kopi__jint(l->index0 + 1); return true;
    case INDEX0: *out = kopi__jint(l->index0); return true;
    case FIRST: *out = kopi__jbool(l->index0 == 0); return true;
    case DEPTH: *out = kopi__jint(1); return true;
    case DEPTH0: *out = kopi__jint(0); return true;
    case LENGTH: *out = kopi__jint(l->index0 + left); return true;
    case REVINDEX: *out = kopi__jint(left); return true;
    case REVINDEX0: *out = kopi__jint(left - 1); return true;
    case LAST: *out = kopi__jbool(!l->has_following); return true;
    case PREVITEM: *out = l->has_previous ? l->previous : none; return true;
    case NEXTITEM: *out = l->has_following ? l->following : none; return true;
    default: break;
    }
    const struct kopi_jbuiltin *f = kopi__jfind_builtin(tables, name);
    *out = none;
    if (!f) return true;
    struct kopi_jmethod *m = kopi__jalloc(&j->arena, sizeof *m);
    if (!m) return false;
    *m = (struct kopi_jmethod){f, {.type = KOPI_J_LOOP, .loop = l}};
    *out = (struct kopi_jval){.type = KOPI_J_METHOD, .method = m};
    return true;
}

/* ---- the statement ------------------------------------------------------------------------------------------------
 */

/* A fresh scope per iteration; its memory is used again unless a macro refers to it. */
static bool begin_iteration(struct kopi_jinja *j, struct kopi_jloop *l, struct kopi_jscope **scope)
{
    if (!*scope || (*scope)->kept) {
        if (!(*scope = kopi__jscope_push(j, l->outer))) return false;
    }
    (*scope)->n = 0;
    j->scope = *scope;
    if (!kopi__jassign(j, l->node->a, &l->current)) return false;
    return j->sym_loop == UINT32_MAX ||
           kopi__jvar_set(j, j->sym_loop, (struct kopi_jval){.type = KOPI_J_LOOP, .loop = l});
}

static enum kopi_jflow iterate(struct kopi_jinja *j, struct kopi_jloop *l)
{
    struct kopi_jscope *scope = NULL;
    for (bool more;;) {
        if (!advance(j, l, &more)) return KOPI_JFLOW_FAILED;
        if (!more) return KOPI_JFLOW_NEXT;
        if (!begin_iteration(j, l, &scope)) return KOPI_JFLOW_FAILED;
        enum kopi_jflow f = kopi__jexec(j, l->node->list[0]);
        j->scope = l->outer;
        if (f == KOPI_JFLOW_FAILED) return f;
        if (f == KOPI_JFLOW_BREAK) return KOPI_JFLOW_NEXT;
    }
}

enum kopi_jflow kopi__jexec_for(struct kopi_jinja *j, const struct kopi_jnode *n)
{
    struct kopi_jval items;
    struct kopi_jloop *l = kopi__jzalloc(&j->arena, 1, sizeof *l);
    if (!l || !kopi__jeval(j, n->b, &items) || !kopi__jiterate(j, &items, &l->items)) return KOPI_JFLOW_FAILED;
    l->node = n;
    l->outer = j->scope;
    l->index0 = -1;
    enum kopi_jflow f = iterate(j, l);
    if (f == KOPI_JFLOW_FAILED) return f;
    return l->index0 < 0 && n->n > 1 ? kopi__jexec(j, n->list[1]) : KOPI_JFLOW_NEXT;
}
