/* map, select and their kin: filters that apply a filter or a test to every item. */
#include "text/jinja/run.h"
#include <string.h>

static bool get_part(struct kopi_jinja *j, const struct kopi_jval *v, const struct kopi_jval *key,
                     const struct kopi_jval *missing, struct kopi_jval *out)
{
    if (!kopi__jwork(&j->arena, 1) || !kopi__jget_item(j, v, key, out)) return false;
    if (out->type == KOPI_J_UNDEFINED && missing) *out = *missing;
    return true;
}
bool kopi__jget_path(struct kopi_jinja *j, const struct kopi_jval *v, const struct kopi_jval *path,
                     const struct kopi_jval *missing, struct kopi_jval *out)
{
    if (path->type != KOPI_J_STRING) return get_part(j, v, path, missing, out);
    if (!kopi__jwork_on(&j->arena, path->s.len, KOPI_J_COPY)) return false;
    struct kopi_jval at = *v;
    for (uint32_t from = 0, to; from <= path->s.len; from = to + 1) {
        const char *dot = memchr(kopi__jstr_data(path->s) + from, '.', path->s.len - from);
        to = dot ? (uint32_t)(dot - kopi__jstr_data(path->s)) : path->s.len;
        struct kopi_jval key = kopi__jstring(kopi__jstr_sub(path->s, from, to)), next;
        const char *p = kopi__jstr_data(key.s);
        int64_t index = 0;
        uint32_t digits = 0;
        for (; digits < key.s.len && digits < 9 && p[digits] >= '0' && p[digits] <= '9'; digits++)
            index = index * 10 + (p[digits] - '0');
        if (digits && digits == key.s.len) key = kopi__jint(index);
        if (!get_part(j, &at, &key, missing, &next)) return false;
        at = next;
    }
    *out = at;
    return true;
}

/* The input's items. Anything false, none too, has none here. */
static bool input_items(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jlist **out)
{
    const struct kopi_jval nothing = KOPI_J_UNDEF;
    return kopi__jiterate(j, kopi__jtruth(v) ? v : &nothing, out);
}

/* The arguments behind the first `skip` ones. */
static struct kopi_jcall rest_of(const struct kopi_jcall *c, uint32_t skip)
{
    return (struct kopi_jcall){.pos = c->n_pos > skip ? c->pos + skip : NULL,
                               .n_pos = c->n_pos > skip ? c->n_pos - skip : 0,
                               .named = c->named,
                               .n_named = c->n_named};
}

static bool map_attribute(struct kopi_jinja *j, const struct kopi_jargs *a, const struct kopi_jlist *l,
                          struct kopi_jval *out)
{
    const struct kopi_jval *path = NULL, *missing = NULL;
    for (uint32_t i = 0; i < a->call->n_named; i++) {
        struct kopi_jstr name = a->call->named[i].key.s;
        if (kopi__jstr_is(name, "attribute")) path = &a->call->named[i].value;
        else if (kopi__jstr_is(name, "default")) missing = &a->call->named[i].value;
        else
            return kopi__jfail(j, "map has no argument '%.*s'", (int)(name.len < 64 ? name.len : 64),
                               kopi__jstr_data(name));
    }
    if (missing && missing->type == KOPI_J_NONE) missing = NULL;
    if (!path) return kopi__jfail(j, "map needs a filter or an attribute");
    for (uint32_t i = 0; i < l->n; i++) {
        struct kopi_jval v;
        if (!kopi__jget_path(j, &l->v[i], path, missing, &v)) return false;
        if (!kopi__jlist_push(j, out->list, v)) return false;
    }
    return true;
}
static bool map(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    struct kopi_jval result;
    if (!kopi__jwork(&j->arena, KOPI_J_LOOKUP)) return false;
    if (!input_items(j, &a->self, &l) || !kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    if (!a->call->n_pos) return map_attribute(j, a, l, out);
    const struct kopi_jval *name = &a->call->pos[0];
    if (name->type != KOPI_J_STRING) return kopi__jfail(j, "map needs the name of a filter");
    const struct kopi_jbuiltin *f = kopi__jfind_builtin(kopi__jfilters, name->s);
    if (!f)
        return kopi__jfail(j, "there is no filter '%.*s'", (int)(name->s.len < 64 ? name->s.len : 64),
                           kopi__jstr_data(name->s));
    struct kopi_jcall c = rest_of(a->call, 1);
    for (uint32_t i = 0; i < l->n; i++)
        if (!kopi__jinvoke(j, f, &l->v[i], &c, &result) || !kopi__jlist_push(j, out->list, result)) return false;
    return true;
}

/* Keeps the items for which the test (or, without one, the truth) of the item or of its attribute is `wanted`. */
static bool pick(struct kopi_jinja *j, const struct kopi_jargs *a, bool by_attribute, bool wanted,
                 struct kopi_jval *out)
{
    struct kopi_jlist *l;
    uint32_t skip = by_attribute;
    if (!input_items(j, &a->self, &l) || !kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    if (by_attribute && !a->call->n_pos) return kopi__jfail(j, "selectattr and rejectattr need an attribute");
    const struct kopi_jval *name = a->call->n_pos > skip ? &a->call->pos[skip] : NULL;
    if (name && name->type != KOPI_J_STRING)
        return kopi__jfail(j, "the name of the test must be a str, not %s", kopi__jtype_name(name));
    struct kopi_jcall c = rest_of(a->call, skip + 1);
    for (uint32_t i = 0; i < l->n; i++) {
        struct kopi_jval v = l->v[i];
        if (!kopi__jwork(&j->arena, 1)) return false;
        if (by_attribute && !kopi__jget_path(j, &l->v[i], &a->call->pos[0], NULL, &v)) return false;
        bool is = kopi__jtruth(&v);
        if (name && !kopi__jtest(j, name->s, &v, &c, &is)) return false;
        if (is == wanted && !kopi__jlist_push(j, out->list, l->v[i])) return false;
    }
    return true;
}
static bool select_items(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return pick(j, a, false, true, out);
}
static bool reject_items(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return pick(j, a, false, false, out);
}
static bool select_attr(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return pick(j, a, true, true, out);
}
static bool reject_attr(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return pick(j, a, true, false, out);
}

const struct kopi_jbuiltin kopi__jpick_filters[] = {
    {"map", "*", map},
    {"select", "*", select_items},
    {"reject", "*", reject_items},
    {"selectattr", "*", select_attr},
    {"rejectattr", "*", reject_attr},
    {NULL, NULL, NULL},
};

const struct kopi_jbuiltin *const kopi__jfilters[] = {kopi__jjson_filters, kopi__jseq_filters,    kopi__jtext_filters,
                                                      kopi__jpick_filters, kopi__jnumber_filters, NULL};
