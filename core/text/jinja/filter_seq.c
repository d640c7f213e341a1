/* Filters over lists and dictionaries. */
#include "text/jinja/run.h"
#include <string.h>

static bool length(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    const struct kopi_jval *v = &a->self;
    switch (v->type) {
    case KOPI_J_UNDEFINED: *out = kopi__jint(0); return true;
    case KOPI_J_STRING:
        if (!kopi__jwork_on(&j->arena, v->s.len, KOPI_J_DECODE)) return false;
        *out = kopi__jint(kopi__jstr_chars(v->s));
        return true;
    case KOPI_J_LIST:
    case KOPI_J_TUPLE: *out = kopi__jint(v->list->n); return true;
    case KOPI_J_DICT: *out = kopi__jint(v->dict->n); return true;
    default: return kopi__jfail(j, "%s has no length", kopi__jtype_name(v));
    }
}

static bool first(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    if (!kopi__jiterate(j, &a->self, &l)) return false;
    *out = l->n ? l->v[0] : KOPI_J_UNDEF;
    return true;
}
static bool last(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    if (!kopi__jiterate(j, &a->self, &l)) return false;
    *out = l->n ? l->v[l->n - 1] : KOPI_J_UNDEF;
    return true;
}

/* A new list of the same items, so that nothing done to it changes the input. */
static bool copied(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    if (!kopi__jiterate(j, v, &l) || !kopi__jlist_new(j, KOPI_J_LIST, l->n, out)) return false;
    if (l->n) memcpy(out->list->v, l->v, l->n * sizeof *l->v);
    out->list->n = l->n;
    return true;
}
static bool list(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return copied(j, &a->self, out);
}

static bool reverse(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jval l;
    if (!copied(j, &a->self, &l)) return false;
    for (uint32_t i = 0; i < l.list->n / 2; i++) {
        struct kopi_jval v = l.list->v[i];
        l.list->v[i] = l.list->v[l.list->n - 1 - i];
        l.list->v[l.list->n - 1 - i] = v;
    }
    *out = l;
    if (a->self.type != KOPI_J_STRING) return true;
    *out = kopi__jstring((struct kopi_jstr){0});
    return kopi__jjoin(j, (struct kopi_jstr){0}, l.list, NULL, &out->s);
}

static bool join(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    struct kopi_jstr sep;
    *out = kopi__jstring((struct kopi_jstr){0});
    bool by = a->given[1] && a->v[1].type != KOPI_J_NONE;
    return kopi__jiterate(j, &a->self, &l) && kopi__jto_str(j, &a->v[0], &sep) &&
           kopi__jjoin(j, sep, l, by ? &a->v[1] : NULL, &out->s);
}

static bool items(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    if (a->self.type == KOPI_J_UNDEFINED) return kopi__jlist_new(j, KOPI_J_LIST, 0, out);
    if (a->self.type != KOPI_J_DICT)
        return kopi__jfail(j, "items needs a dictionary, not %s", kopi__jtype_name(&a->self));
    return kopi__jdict_items(j, a->self.dict, out);
}
bool kopi__jdict_items(struct kopi_jinja *j, const struct kopi_jdict *d, struct kopi_jval *out)
{
    struct kopi_jval pair;
    if (!kopi__jlist_new(j, KOPI_J_LIST, d->n, out)) return false;
    for (uint32_t i = 0; i < d->n; i++)
        if (!kopi__jpair_new(j, d->v[i].key, d->v[i].value, &pair) || !kopi__jlist_push(j, out->list, pair))
            return false;
    return true;
}

static bool sum(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    struct kopi_jval total = a->given[1] ? a->v[1] : kopi__jint(0);
    if (!kopi__jiterate(j, &a->self, &l)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        struct kopi_jval v = l->v[i];
        if (a->given[0] && a->v[0].type != KOPI_J_NONE && !kopi__jget_path(j, &l->v[i], &a->v[0], NULL, &v))
            return false;
        if (!kopi__jwork(&j->arena, 1) || !kopi__jarith(j, '+', &total, &v, &total)) return false;
    }
    *out = total;
    return true;
}

/* ---- order --------------------------------------------------------------------------------------------------------
 */

struct keyed {
    struct kopi_jval key, value;
};

/* The value that decides: an attribute of the item if asked for, strings without case unless asked otherwise. */
static bool sort_key(struct kopi_jinja *j, const struct kopi_jval *v, const struct kopi_jval *path, bool with_case,
                     struct kopi_jval *out)
{
    *out = *v;
    if (path && !kopi__jget_path(j, v, path, NULL, out)) return false;
    return with_case || out->type != KOPI_J_STRING || kopi__jcase(j, out->s, KOPI_J_LOWER, &out->s);
}
static bool keyed_items(struct kopi_jinja *j, const struct kopi_jlist *l, const struct kopi_jval *path, bool with_case,
                        struct keyed **out)
{
    struct keyed *k = kopi__jalloc(&j->arena, l->n * sizeof *k);
    if (!k) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        k[i].value = l->v[i];
        if (!kopi__jwork(&j->arena, 1) || !sort_key(j, &l->v[i], path, with_case, &k[i].key)) return false;
    }
    *out = k;
    return true;
}

/* Stable merge of the sorted runs from[a..b) and from[b..c). */
static bool merge(struct kopi_jinja *j, const struct keyed *from, struct keyed *to, uint32_t a, uint32_t b, uint32_t c,
                  bool down)
{
    for (uint32_t i = a, k = b, n = a; n < c; n++) {
        int order = 0;
        if (i < b && k < c && !kopi__jorder(j, &from[i].key, &from[k].key, "<", &order)) return false;
        bool take_left = k >= c || (i < b && (order == 2 || (down ? order >= 0 : order <= 0)));
        to[n] = take_left ? from[i++] : from[k++];
    }
    return true;
}
static bool sort_keyed(struct kopi_jinja *j, struct keyed **v, uint32_t n, bool down)
{
    struct keyed *from = *v, *to = kopi__jalloc(&j->arena, n * sizeof *to);
    if (!to) return false;
    for (uint32_t width = 1; width < n; width *= 2) {
        for (uint32_t a = 0; a < n; a += 2 * width) {
            uint32_t b = a + width < n ? a + width : n, c = a + 2 * width < n ? a + 2 * width : n;
            if (!merge(j, from, to, a, b, c, down)) return false;
        }
        struct keyed *swap = from;
        from = to;
        to = swap;
    }
    *v = from;
    return true;
}
bool kopi__jsorted(struct kopi_jinja *j, const struct kopi_jlist *l, const struct kopi_jval *path, bool with_case,
                   bool down, struct kopi_jval *out)
{
    struct keyed *k;
    if (!keyed_items(j, l, path, with_case, &k) || !sort_keyed(j, &k, l->n, down)) return false;
    if (!kopi__jlist_new(j, KOPI_J_LIST, l->n, out)) return false;
    for (uint32_t i = 0; i < l->n; i++) out->list->v[i] = k[i].value;
    out->list->n = l->n;
    return true;
}

static const struct kopi_jval *path_arg(const struct kopi_jargs *a, int i)
{
    return a->given[i] && a->v[i].type != KOPI_J_NONE ? &a->v[i] : NULL;
}
static bool sort(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    return kopi__jiterate(j, &a->self, &l) &&
           kopi__jsorted(j, l, path_arg(a, 2), kopi__jarg_bool(a, 1, false), kopi__jarg_bool(a, 0, false), out);
}
static bool dictsort(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jval pairs, path = kopi__jint(0);
    if (a->self.type != KOPI_J_DICT)
        return kopi__jfail(j, "dictsort needs a dictionary, not %s", kopi__jtype_name(&a->self));
    if (a->given[1]) {
        struct kopi_jstr by;
        if (!kopi__jarg_str(j, a, 1, &by)) return false;
        if (!kopi__jstr_is(by, "key") && !kopi__jstr_is(by, "value"))
            return kopi__jfail(j, "dictsort sorts by 'key' or by 'value'");
        path.i = kopi__jstr_is(by, "value");
    }
    return kopi__jdict_items(j, a->self.dict, &pairs) &&
           kopi__jsorted(j, pairs.list, &path, kopi__jarg_bool(a, 0, false), kopi__jarg_bool(a, 2, false), out);
}

static bool extreme(struct kopi_jinja *j, const struct kopi_jargs *a, int sign, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    struct keyed *k;
    if (!kopi__jiterate(j, &a->self, &l) || !keyed_items(j, l, path_arg(a, 1), kopi__jarg_bool(a, 0, false), &k))
        return false;
    uint32_t best = 0;
    for (uint32_t i = 1; i < l->n; i++) {
        int order;
        if (!kopi__jorder(j, &k[i].key, &k[best].key, sign < 0 ? "<" : ">", &order)) return false;
        if (order != 2 && order * sign > 0) best = i;
    }
    *out = l->n ? k[best].value : KOPI_J_UNDEF;
    return true;
}
static bool smallest(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return extreme(j, a, -1, out);
}
static bool largest(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return extreme(j, a, 1, out);
}

static bool unique(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jlist *l;
    struct kopi_jval seen;
    struct keyed *k;
    if (!kopi__jiterate(j, &a->self, &l) || !keyed_items(j, l, path_arg(a, 1), kopi__jarg_bool(a, 0, false), &k))
        return false;
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, &seen) || !kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        bool there;
        if (!kopi__jcontains(j, &seen, &k[i].key, &there)) return false;
        if (!there && (!kopi__jlist_push(j, seen.list, k[i].key) || !kopi__jlist_push(j, out->list, k[i].value)))
            return false;
    }
    return true;
}

const struct kopi_jbuiltin kopi__jseq_filters[] = {
    {"length", "", length},
    {"count", "", length},
    {"join", "d attribute", join},
    {"items", "", items},
    {"list", "", list},
    {"dictsort", "case_sensitive by reverse", dictsort},
    {"first", "", first},
    {"last", "", last},
    {"reverse", "", reverse},
    {"sort", "reverse case_sensitive attribute", sort},
    {"unique", "case_sensitive attribute", unique},
    {"min", "case_sensitive attribute", smallest},
    {"max", "case_sensitive attribute", largest},
    {"sum", "attribute start", sum},
    {NULL, NULL, NULL},
};
