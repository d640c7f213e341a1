/* Methods of lists and dictionaries. */
#include "text/jinja/run.h"
#include <string.h>

#define METHOD(name) static bool name(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)

/* ---- lists --------------------------------------------------------------------------------------------------------
 */

METHOD(append)
{
    *out = kopi__jnone();
    return kopi__jlist_push(j, a->self.list, a->v[0]);
}
METHOD(extend)
{
    struct kopi_jlist *l;
    *out = kopi__jnone();
    if (!kopi__jiterate(j, &a->v[0], &l)) return false;
    for (uint32_t i = 0, n = l->n; i < n; i++)
        if (!kopi__jwork(&j->arena, 1) || !kopi__jlist_push(j, a->self.list, l->v[i])) return false;
    return true;
}
METHOD(list_pop)
{
    struct kopi_jlist *l = a->self.list;
    int64_t i;
    if (!kopi__jarg_int(j, a, 0, -1, &i)) return false;
    i += i < 0 ? l->n : 0;
    if (i < 0 || i >= l->n) return kopi__jfail(j, "pop: the list has no such item");
    *out = l->v[i];
    memmove(&l->v[i], &l->v[i + 1], (l->n - 1 - (size_t)i) * sizeof *l->v);
    l->n--;
    return kopi__jwork(&j->arena, l->n / 4);
}
METHOD(insert)
{
    struct kopi_jlist *l = a->self.list;
    int64_t i;
    *out = kopi__jnone();
    if (!kopi__jarg_int(j, a, 0, 0, &i) || !kopi__jlist_push(j, l, a->v[1])) return false;
    i = i < 0 ? i + l->n - 1 : i;
    i = i < 0 ? 0 : i >= l->n ? l->n - 1 : i;
    memmove(&l->v[i + 1], &l->v[i], (l->n - 1 - (size_t)i) * sizeof *l->v);
    l->v[i] = a->v[1];
    return kopi__jwork(&j->arena, l->n / 4);
}
METHOD(index_of)
{
    bool same = false;
    for (uint32_t i = 0; i < a->self.list->n; i++) {
        if (!kopi__jwork(&j->arena, 1) || !kopi__jequal(j, &a->self.list->v[i], &a->v[0], &same)) return false;
        *out = kopi__jint(i);
        if (same) return true;
    }
    return kopi__jfail(j, "index: the list has no such item");
}
METHOD(count)
{
    int64_t n = 0;
    for (uint32_t i = 0; i < a->self.list->n; i++) {
        bool same;
        if (!kopi__jwork(&j->arena, 1) || !kopi__jequal(j, &a->self.list->v[i], &a->v[0], &same)) return false;
        n += same;
    }
    *out = kopi__jint(n);
    return true;
}

static const struct kopi_jbuiltin list_methods[] = {
    {"append", "!object", append},
    {"pop", "index", list_pop},
    {"extend", "!iterable", extend},
    {"insert", "!index !object", insert},
    {"index", "!value", index_of},
    {"count", "!value", count},
    {"clear", NULL, NULL},
    {"copy", NULL, NULL},
    {"remove", NULL, NULL},
    {"reverse", NULL, NULL},
    {"sort", NULL, NULL},
    {NULL, NULL, NULL},
};
const struct kopi_jbuiltin *const kopi__jlist_methods[] = {list_methods, NULL};

/* ---- dictionaries -------------------------------------------------------------------------------------------------
 */

METHOD(get)
{
    struct kopi_jval *there;
    if (!kopi__jdict_get(j, a->self.dict, &a->v[0], &there)) return false;
    *out = there ? *there : a->given[1] ? a->v[1] : kopi__jnone();
    return true;
}
METHOD(items) { return kopi__jdict_items(j, a->self.dict, out); }
METHOD(keys)
{
    struct kopi_jlist *l;
    if (!kopi__jiterate(j, &a->self, &l)) return false;
    *out = (struct kopi_jval){.type = KOPI_J_LIST, .list = l};
    return true;
}
METHOD(values)
{
    if (!kopi__jlist_new(j, KOPI_J_LIST, a->self.dict->n, out)) return false;
    for (uint32_t i = 0; i < a->self.dict->n; i++)
        if (!kopi__jlist_push(j, out->list, a->self.dict->v[i].value)) return false;
    return true;
}
METHOD(dict_pop)
{
    struct kopi_jdict *d = a->self.dict;
    struct kopi_jval *there;
    if (!kopi__jdict_get(j, d, &a->v[0], &there)) return false;
    if (!there && !a->given[1]) return kopi__jfail(j, "pop: the dictionary has no such key");
    *out = there ? *there : a->v[1];
    if (!there) return true;
    struct kopi_jpair *p = d->v;
    while (&p->value != there) p++;
    memmove(p, p + 1, (size_t)(d->v + d->n - p - 1) * sizeof *p);
    d->n--;
    return kopi__jwork(&j->arena, d->n / 4);
}
METHOD(update)
{
    *out = kopi__jnone();
    if (a->call->n_pos > 1 || (a->call->n_pos && a->call->pos[0].type != KOPI_J_DICT))
        return kopi__jfail(j, "update needs a dictionary");
    for (uint32_t i = 0; a->call->n_pos && i < a->call->pos[0].dict->n; i++) {
        struct kopi_jpair p = a->call->pos[0].dict->v[i];
        if (!kopi__jdict_set(j, a->self.dict, &p.key, p.value)) return false;
    }
    for (uint32_t i = 0; i < a->call->n_named; i++)
        if (!kopi__jdict_set(j, a->self.dict, &a->call->named[i].key, a->call->named[i].value)) return false;
    return true;
}
METHOD(setdefault)
{
    struct kopi_jval *there;
    if (!kopi__jdict_get(j, a->self.dict, &a->v[0], &there)) return false;
    *out = there ? *there : a->given[1] ? a->v[1] : kopi__jnone();
    return there || kopi__jdict_set(j, a->self.dict, &a->v[0], *out);
}

static const struct kopi_jbuiltin dict_methods[] = {
    {"get", "!key default", get},
    {"items", "", items},
    {"keys", "", keys},
    {"values", "", values},
    {"pop", "!key default", dict_pop},
    {"update", "*", update},
    {"setdefault", "!key default", setdefault},
    {"clear", NULL, NULL},
    {"copy", NULL, NULL},
    {"fromkeys", NULL, NULL},
    {"popitem", NULL, NULL},
    {NULL, NULL, NULL},
};
const struct kopi_jbuiltin *const kopi__jdict_methods[] = {dict_methods, NULL};
