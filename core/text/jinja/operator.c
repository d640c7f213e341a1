/* Arithmetic, comparison and slicing with Python's meaning; declared in run.h. */
#include "text/jinja/run.h"
#include <math.h>

static bool int_power(int64_t base, int64_t exponent, int64_t *out)
{
    int64_t result = 1;
    bool ok = true;
    while (exponent > 0 && ok) {
        if (exponent & 1) ok = !__builtin_mul_overflow(result, base, &result);
        exponent >>= 1;
        if (exponent && ok) ok = !__builtin_mul_overflow(base, base, &base);
    }
    *out = result;
    return ok;
}

/* Rounds towards minus infinity, as Python does. y is not 0. */
static bool floor_divide(int64_t x, int64_t y, int64_t *quotient, int64_t *rest)
{
    if (y == -1) {
        *rest = 0;
        return !__builtin_sub_overflow((int64_t)0, x, quotient);
    }
    *quotient = x / y;
    *rest = x % y;
    if (*rest && (*rest < 0) != (y < 0)) {
        --*quotient;
        *rest += y;
    }
    return true;
}

static bool int_arith(struct kopi_jinja *j, uint16_t op, int64_t x, int64_t y, int64_t *out)
{
    bool ok = true;
    int64_t quotient = 0, rest = 0;
    switch (op) {
    case '+': ok = !__builtin_add_overflow(x, y, out); break;
    case '-': ok = !__builtin_sub_overflow(x, y, out); break;
    case '*': ok = !__builtin_mul_overflow(x, y, out); break;
    case KOPI_J_OP2('*', '*'): ok = int_power(x, y, out); break;
    default:
        if (y == 0) return kopi__jfail(j, "division by zero");
        ok = floor_divide(x, y, &quotient, &rest);
        *out = op == '%' ? rest : quotient;
    }
    return ok || kopi__jfail(j, "the result does not fit 64 bits");
}
static bool float_arith(struct kopi_jinja *j, uint16_t op, double x, double y, double *out)
{
    if (op == '+') *out = x + y;
    else if (op == '-') *out = x - y;
    else if (op == '*') *out = x * y;
    else if (op == KOPI_J_OP2('*', '*')) *out = pow(x, y);
    else if (y == 0) return kopi__jfail(j, "division by zero");
    else if (op == '/') *out = x / y;
    else if (!kopi__jwork(&j->arena, KOPI_J_DECIMAL)) return false;
    else {
        double rest = fmod(x, y);
        if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
        *out = op == '%' ? rest : floor((x - rest) / y + 0.5);
    }
    return true;
}
static bool number_arith(struct kopi_jinja *j, uint16_t op, const struct kopi_jval *x, const struct kopi_jval *y,
                         struct kopi_jval *out)
{
    bool floats = x->type == KOPI_J_FLOAT || y->type == KOPI_J_FLOAT || op == '/';
    struct kopi_jval r = {.type = KOPI_J_INT, .outside = x->outside | y->outside};
    if (op == KOPI_J_OP2('*', '*') && !floats && kopi__jas_int(y) < 0) floats = true;
    if (floats) r.type = KOPI_J_FLOAT;
    bool ok = floats ? float_arith(j, op, kopi__jas_float(x), kopi__jas_float(y), &r.f)
                     : int_arith(j, op, kopi__jas_int(x), kopi__jas_int(y), &r.i);
    if (ok) *out = r; /* out may be x or y */
    return ok;
}

static bool add_lists(struct kopi_jinja *j, const struct kopi_jval *x, const struct kopi_jval *y, struct kopi_jval *out)
{
    const struct kopi_jlist *part[2] = {x->list, y->list};
    if (!kopi__jlist_new(j, x->type, 0, out)) return false;
    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < part[k]->n; i++)
            if (!kopi__jlist_push(j, out->list, part[k]->v[i])) return false;
    return true;
}

/* A string or list n times. */
static bool repeat(struct kopi_jinja *j, const struct kopi_jval *x, int64_t n, struct kopi_jval *out)
{
    if (x->type == KOPI_J_STRING) {
        struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, 0);
        if (!b) return false;
        for (int64_t i = 0; i < n && x->s.len; i++)
            if (!kopi__jwork(&j->arena, 1) || !kopi__jbuf_add_str(&j->arena, b, x->s)) return false;
        *out = kopi__jstring(kopi__jbuf_str(b));
        return true;
    }
    if (!kopi__jlist_new(j, x->type, 0, out)) return false;
    for (int64_t i = 0; i < n && x->list->n; i++)
        for (uint32_t k = 0; k < x->list->n; k++)
            if (!kopi__jwork(&j->arena, 1) || !kopi__jlist_push(j, out->list, x->list->v[k])) return false;
    return true;
}

static bool whole(const struct kopi_jval *v) { return v->type == KOPI_J_INT || v->type == KOPI_J_BOOL; }

bool kopi__jarith(struct kopi_jinja *j, uint16_t op, const struct kopi_jval *x, const struct kopi_jval *y,
                  struct kopi_jval *out)
{
    if (kopi__jis_number(x) && kopi__jis_number(y)) return number_arith(j, op, x, y, out);
    if (op == '+' && x->type == KOPI_J_STRING && y->type == KOPI_J_STRING) {
        *out = kopi__jstring((struct kopi_jstr){0});
        return kopi__jstr_concat(&j->arena, x->s, y->s, &out->s);
    }
    if (op == '+' && kopi__jis_seq(x) && x->type == y->type) return add_lists(j, x, y, out);
    if (op == '*' && whole(y) && (x->type == KOPI_J_STRING || kopi__jis_seq(x)))
        return repeat(j, x, kopi__jas_int(y), out);
    if (op == '*' && whole(x) && (y->type == KOPI_J_STRING || kopi__jis_seq(y)))
        return repeat(j, y, kopi__jas_int(x), out);
    if (op == '%' && x->type == KOPI_J_STRING) return kopi__jpercent(j, x->s, y, out);
    if (x->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, x);
    if (y->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, y);
    return kopi__jfail(j, "%s %c%.*s %s has no meaning", kopi__jtype_name(x), op & 255, op >> 8 != 0,
                       (char[]){(char)(op >> 8), 0}, kopi__jtype_name(y));
}

bool kopi__jcompare(struct kopi_jinja *j, uint16_t op, const struct kopi_jval *x, const struct kopi_jval *y, bool *out)
{
    int order;
    switch (op) {
    case KOPI_J_OP2('=', '='): return kopi__jequal(j, x, y, out);
    case KOPI_J_OP2('!', '='):
        if (!kopi__jequal(j, x, y, out)) return false;
        *out = !*out;
        return true;
    case KOPI_J_OP_IN: return kopi__jcontains(j, y, x, out);
    case KOPI_J_OP_NOT_IN:
        if (!kopi__jcontains(j, y, x, out)) return false;
        *out = !*out;
        return true;
    default: break;
    }
    bool equal_too = op >> 8 == '=';
    if (!kopi__jorder(j, x, y, (op & 255) == '<' ? "<" : ">", &order)) return false;
    if (order == 2) *out = false; /* NaN */
    else *out = (op & 255) == '<' ? order < 0 || (equal_too && order == 0) : order > 0 || (equal_too && order == 0);
    return true;
}

/* ---- slices -------------------------------------------------------------------------------------------------------
 */

/* Python's rules: negative counts from the end, then clipped to the range that the direction allows. */
static int64_t clip(const struct kopi_jval *v, int64_t n, int64_t missing, bool backwards)
{
    if (v->type == KOPI_J_NONE) return missing;
    int64_t i = kopi__jas_int(v);
    if (i < 0) i = i < -n ? -1 : i + n;
    else if (i >= n) i = n;
    if (i < 0) return backwards ? -1 : 0;
    return backwards && i >= n ? n - 1 : i;
}

static bool slice_string(struct kopi_jinja *j, struct kopi_jstr s, int64_t from, int64_t to, int64_t step,
                         struct kopi_jval *out)
{
    *out = kopi__jstring((struct kopi_jstr){0});
    if (!kopi__jwork_on(&j->arena, s.len, KOPI_J_DECODE)) return false;
    if (step == 1) {
        if (from >= to) return true;
        uint32_t start = kopi__jstr_offset(s, (uint32_t)from);
        struct kopi_jstr rest = kopi__jstr_sub(s, start, s.len);
        out->s = kopi__jstr_sub(rest, 0, kopi__jstr_offset(rest, (uint32_t)(to - from)));
        return true;
    }
    /* offsets of all characters, then picked in any order */
    uint32_t n = kopi__jstr_chars(s), *offset = kopi__jalloc(&j->arena, ((size_t)n + 1) * sizeof *offset), cp;
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, 0);
    if (!offset || !b || !kopi__jwork_on(&j->arena, s.len, KOPI_J_REWRITE)) return false;
    offset[0] = 0;
    for (uint32_t i = 0; i < n; i++) offset[i + 1] = kopi__jstr_next(s, offset[i], &cp);
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        if (!kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(s, offset[i], offset[i + 1]))) return false;
    out->s = kopi__jbuf_str(b);
    return true;
}

bool kopi__jslice(struct kopi_jinja *j, const struct kopi_jval *object, const struct kopi_jval part[3],
                  struct kopi_jval *out)
{
    if (object->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, object);
    if (object->type != KOPI_J_STRING && !kopi__jis_seq(object)) {
        *out = KOPI_J_UNDEF; /* as with every item that is not there */
        return true;
    }
    for (int i = 0; i < 3; i++) {
        if (part[i].type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, &part[i]);
        if (!whole(&part[i]) && part[i].type != KOPI_J_NONE)
            return kopi__jfail(j, "a slice takes whole numbers, not %s", kopi__jtype_name(&part[i]));
    }
    if (object->type == KOPI_J_STRING && !kopi__jwork_on(&j->arena, object->s.len, KOPI_J_DECODE)) return false;
    int64_t n = object->type == KOPI_J_STRING ? kopi__jstr_chars(object->s) : object->list->n;
    int64_t step = part[2].type == KOPI_J_NONE ? 1 : kopi__jas_int(&part[2]);
    if (step == 0) return kopi__jfail(j, "the step of a slice can't be 0");
    if (step > n) step = n + 1; /* the same elements, and no overflow */
    if (step < -n) step = -n - 1;
    int64_t from = clip(&part[0], n, step < 0 ? n - 1 : 0, step < 0),
            to = clip(&part[1], n, step < 0 ? -1 : n, step < 0);
    if (object->type == KOPI_J_STRING) return slice_string(j, object->s, from, to, step, out);
    if (!kopi__jlist_new(j, object->type, 0, out)) return false;
    for (int64_t i = from; step > 0 ? i < to : i > to; i += step)
        if (!kopi__jlist_push(j, out->list, object->list->v[i])) return false;
    return true;
}
