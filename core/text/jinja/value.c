#include "text/jinja/value.h"
#include "text/jinja/run.h"
#include <math.h>
#include <string.h>

const char *kopi__jtype_name(const struct kopi_jval *v)
{
    static const char *const name[KOPI_J_N_TYPES] = {"Undefined", "NoneType", "bool",   "int",        "float",
                                                     "str",       "list",     "tuple",  "dict",       "Namespace",
                                                     "Macro",     "function", "method", "LoopContext"};
    return name[v->type];
}

bool kopi__jtruth(const struct kopi_jval *v)
{
    switch (v->type) {
    case KOPI_J_UNDEFINED:
    case KOPI_J_NONE: return false;
    case KOPI_J_BOOL: return v->b;
    case KOPI_J_INT: return v->i != 0;
    case KOPI_J_FLOAT: return v->f != 0;
    case KOPI_J_STRING: return v->s.len > 0;
    case KOPI_J_LIST:
    case KOPI_J_TUPLE: return v->list->n > 0;
    case KOPI_J_DICT: return v->dict->n > 0;
    default: return true;
    }
}

bool kopi__jlist_new(struct kopi_jinja *j, enum kopi_jtype type, uint32_t cap, struct kopi_jval *out)
{
    struct kopi_jlist *l = kopi__jzalloc(&j->arena, 1, sizeof *l);
    if (!l || (cap && !(l->v = kopi__jzalloc(&j->arena, cap, sizeof *l->v)))) return false;
    l->cap = cap;
    *out = (struct kopi_jval){.type = (uint8_t)type, .list = l};
    return true;
}
bool kopi__jlist_push(struct kopi_jinja *j, struct kopi_jlist *l, struct kopi_jval v)
{
    if (!kopi__jgrow(&j->arena, (void **)&l->v, l->n, &l->cap, sizeof *l->v)) return false;
    l->v[l->n++] = v;
    return true;
}
bool kopi__jpair_new(struct kopi_jinja *j, struct kopi_jval a, struct kopi_jval b, struct kopi_jval *out)
{
    if (!kopi__jlist_new(j, KOPI_J_TUPLE, 2, out)) return false;
    out->list->v[0] = a;
    out->list->v[1] = b;
    out->list->n = 2;
    return true;
}

bool kopi__jdict_new(struct kopi_jinja *j, struct kopi_jval *out)
{
    struct kopi_jdict *d = kopi__jzalloc(&j->arena, 1, sizeof *d);
    *out = (struct kopi_jval){.type = KOPI_J_DICT, .dict = d};
    return d != NULL;
}

static bool hashable(const struct kopi_jval *v)
{
    return v->type == KOPI_J_STRING || v->type == KOPI_J_NONE || kopi__jis_number(v);
}

bool kopi__jdict_get(struct kopi_jinja *j, const struct kopi_jdict *d, const struct kopi_jval *key,
                     struct kopi_jval **out)
{
    *out = NULL;
    if (!hashable(key)) return true;
    for (uint32_t i = 0; i < d->n; i++) {
        bool same;
        if (i % 4 == 0 && !kopi__jwork(&j->arena, 1)) return false;
        if (d->v[i].key.type != key->type && !kopi__jis_number(key)) continue;
        if (!kopi__jequal(j, &d->v[i].key, key, &same)) return false;
        if (!same) continue;
        *out = &d->v[i].value;
        return true;
    }
    return true;
}
bool kopi__jdict_add(struct kopi_jinja *j, struct kopi_jdict *d, struct kopi_jval key, struct kopi_jval v)
{
    if (!kopi__jgrow(&j->arena, (void **)&d->v, d->n, &d->cap, sizeof *d->v)) return false;
    d->v[d->n++] = (struct kopi_jpair){key, v};
    return true;
}
bool kopi__jdict_set(struct kopi_jinja *j, struct kopi_jdict *d, const struct kopi_jval *key, struct kopi_jval v)
{
    struct kopi_jval *there;
    if (!hashable(key)) return kopi__jfail(j, "%s can't be a dictionary key", kopi__jtype_name(key));
    if (!kopi__jdict_get(j, d, key, &there)) return false;
    if (!there) return kopi__jdict_add(j, d, *key, v);
    *there = v;
    return true;
}

static bool equal_lists(struct kopi_jinja *j, const struct kopi_jlist *x, const struct kopi_jlist *y, bool *out)
{
    *out = x->n == y->n;
    for (uint32_t i = 0; *out && i < x->n && i < y->n; i++)
        if (!kopi__jwork(&j->arena, 1) || !kopi__jequal(j, &x->v[i], &y->v[i], out)) return false;
    return true;
}
static bool equal_dicts(struct kopi_jinja *j, const struct kopi_jdict *x, const struct kopi_jdict *y, bool *out)
{
    *out = x->n == y->n;
    for (uint32_t i = 0; *out && i < x->n; i++) {
        struct kopi_jval *other;
        if (!kopi__jdict_get(j, y, &x->v[i].key, &other)) return false;
        *out = other != NULL;
        if (other && !kopi__jequal(j, &x->v[i].value, other, out)) return false;
    }
    return true;
}
static bool equal_numbers(const struct kopi_jval *x, const struct kopi_jval *y)
{
    if (x->type == KOPI_J_FLOAT || y->type == KOPI_J_FLOAT) return kopi__jas_float(x) == kopi__jas_float(y);
    return kopi__jas_int(x) == kopi__jas_int(y);
}

bool kopi__jequal(struct kopi_jinja *j, const struct kopi_jval *x, const struct kopi_jval *y, bool *out)
{
    if (kopi__jis_number(x) && kopi__jis_number(y)) {
        *out = equal_numbers(x, y);
        return true;
    }
    *out = false;
    if (x->type != y->type) return true;
    bool ok = true;
    switch (x->type) {
    case KOPI_J_UNDEFINED:
    case KOPI_J_NONE: *out = true; break;
    case KOPI_J_STRING:
        if (x->s.len == y->s.len && !kopi__jwork_on(&j->arena, x->s.len, KOPI_J_COPY)) return false;
        *out = kopi__jstr_eq(x->s, y->s);
        break;
    case KOPI_J_LIST:
    case KOPI_J_TUPLE:
    case KOPI_J_DICT:
        if (!kopi__jenter(j)) return false;
        ok = x->type == KOPI_J_DICT ? equal_dicts(j, x->dict, y->dict, out) : equal_lists(j, x->list, y->list, out);
        kopi__jleave(j);
        break;
    case KOPI_J_METHOD: break;
    default: *out = x->dict == y->dict; /* the same object; all of these are one pointer */
    }
    return ok;
}

static bool order_lists(struct kopi_jinja *j, const struct kopi_jlist *x, const struct kopi_jlist *y, const char *op,
                        int *out)
{
    *out = (x->n > y->n) - (x->n < y->n);
    for (uint32_t i = 0; i < x->n && i < y->n; i++) {
        bool same;
        if (!kopi__jwork(&j->arena, 1) || !kopi__jequal(j, &x->v[i], &y->v[i], &same)) return false;
        if (!same) return kopi__jorder(j, &x->v[i], &y->v[i], op, out);
    }
    return true;
}

bool kopi__jorder(struct kopi_jinja *j, const struct kopi_jval *x, const struct kopi_jval *y, const char *op, int *out)
{
    if (!kopi__jwork(&j->arena, 1)) return false;
    if (kopi__jis_number(x) && kopi__jis_number(y)) {
        if (x->type == KOPI_J_FLOAT || y->type == KOPI_J_FLOAT) {
            double a = kopi__jas_float(x), b = kopi__jas_float(y);
            *out = isnan(a) || isnan(b) ? 2 : (a > b) - (a < b); /* 2: every comparison with NaN is false */
        } else {
            int64_t a = kopi__jas_int(x), b = kopi__jas_int(y);
            *out = (a > b) - (a < b);
        }
        return true;
    }
    if (x->type == KOPI_J_STRING && y->type == KOPI_J_STRING) {
        if (!kopi__jwork_on(&j->arena, x->s.len < y->s.len ? x->s.len : y->s.len, KOPI_J_COPY)) return false;
        *out = kopi__jstr_cmp(x->s, y->s);
        return true;
    }
    if (kopi__jis_seq(x) && x->type == y->type) {
        if (!kopi__jenter(j)) return false;
        bool ok = order_lists(j, x->list, y->list, op, out);
        kopi__jleave(j);
        return ok;
    }
    if (x->type == KOPI_J_UNDEFINED || y->type == KOPI_J_UNDEFINED)
        return kopi__jfail_undefined(j, x->type == KOPI_J_UNDEFINED ? x : y);
    return kopi__jfail(j, "'%s' between %s and %s has no meaning", op, kopi__jtype_name(x), kopi__jtype_name(y));
}

bool kopi__jcontains(struct kopi_jinja *j, const struct kopi_jval *in, const struct kopi_jval *what, bool *out)
{
    struct kopi_jval *there;
    *out = false;
    switch (in->type) {
    case KOPI_J_UNDEFINED: return true;
    case KOPI_J_STRING:
        if (what->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, what);
        if (what->type != KOPI_J_STRING)
            return kopi__jfail(j, "'in' a string needs a string on the left, not %s", kopi__jtype_name(what));
        if (!kopi__jwork_on(&j->arena, in->s.len, KOPI_J_SEARCH)) return false;
        *out = kopi__jstr_find(in->s, what->s, 0) >= 0;
        return true;
    case KOPI_J_LIST:
    case KOPI_J_TUPLE:
        for (uint32_t i = 0; !*out && i < in->list->n; i++)
            if (!kopi__jwork(&j->arena, 1) || !kopi__jequal(j, &in->list->v[i], what, out)) return false;
        return true;
    case KOPI_J_DICT:
        if (!kopi__jdict_get(j, in->dict, what, &there)) return false;
        *out = there != NULL;
        return true;
    default:
        return kopi__jfail(j, "'in' needs a string, a list or a dictionary on the right, not %s", kopi__jtype_name(in));
    }
}
