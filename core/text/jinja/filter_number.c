/* Filters about numbers and missing values. */
#include "base/num.h"
#include "text/jinja/run.h"
#include <math.h>
#include <string.h>

static bool default_value(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    (void)j;
    bool missing = a->self.type == KOPI_J_UNDEFINED || (kopi__jarg_bool(a, 1, false) && !kopi__jtruth(&a->self));
    if (!missing) *out = a->self;
    else *out = a->given[0] ? a->v[0] : kopi__jstring((struct kopi_jstr){0});
    return true;
}

/* int(text, base): a sign, a prefix that fits the base, single underscores between digits. */
static bool text_to_int(struct kopi_jstr s, int64_t base, int64_t *out)
{
    const char *p = kopi__jstr_data(s), *end = p + s.len;
    bool negative = p < end && *p == '-', digit_before = false;
    p += negative || (p < end && *p == '+');
    if (end - p > 2 && p[0] == '0') {
        int64_t named = (p[1] | 32) == 'x' ? 16 : (p[1] | 32) == 'o' ? 8 : (p[1] | 32) == 'b' ? 2 : 0;
        if (named && (base == named || base == 0)) p += 2, base = named;
    }
    if (base == 0) base = 10;
    *out = 0;
    for (; p < end; p++) {
        int64_t d = *p >= '0' && *p <= '9'                 ? *p - '0'
                    : (*p | 32) >= 'a' && (*p | 32) <= 'z' ? (*p | 32) - 'a' + 10
                                                           : 99;
        if (*p == '_' && digit_before) {
            digit_before = false;
            continue;
        }
        if (d >= base || __builtin_mul_overflow(*out, base, out) ||
            __builtin_add_overflow(*out, negative ? -d : d, out))
            return false;
        digit_before = true;
    }
    return digit_before;
}
static bool text_to_float(struct kopi_jstr s, double *out)
{
    char t[64];
    if (s.len == 0 || s.len >= sizeof t) return false;
    memcpy(t, kopi__jstr_data(s), s.len);
    t[s.len] = 0;
    return kopi__parse_f64(t + (t[0] == '+' && t[1] != '-'), out);
}
/* White space around a number means nothing. */
static bool number_text(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jstr *out)
{
    *out = v->s;
    return kopi__jstr_strip(&j->arena, out, NULL, true, true) &&
           kopi__jwork(&j->arena, KOPI_J_DECIMAL + out->len / KOPI_J_DECODE);
}
static bool float_to_int(double f, int64_t *out)
{
    if (!(f > -9.2e18 && f < 9.2e18)) return false;
    *out = (int64_t)f;
    return true;
}
static uint8_t origin_of(const struct kopi_jval *v)
{
    return v->type == KOPI_J_STRING ? kopi__jstr_any_origin(v->s) : kopi__jis_number(v) ? v->outside : KOPI_J_TEMPLATE;
}

static bool to_int(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    int64_t base, i = 0;
    double f;
    struct kopi_jstr s;
    bool ok = false;
    if (a->self.type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, &a->self);
    if (!kopi__jarg_int(j, a, 1, 10, &base)) return false;
    if (base != 0 && (base < 2 || base > 36)) return kopi__jfail(j, "int: the base must be 0 or 2 to 36");
    if (a->self.type == KOPI_J_STRING) {
        if (!number_text(j, &a->self, &s)) return false;
        ok = text_to_int(s, base, &i) || (text_to_float(s, &f) && float_to_int(f, &i));
    } else if (a->self.type == KOPI_J_FLOAT) ok = float_to_int(a->self.f, &i);
    else if (kopi__jis_number(&a->self)) ok = true, i = kopi__jas_int(&a->self);
    *out = ok ? kopi__jint(i) : a->given[0] ? a->v[0] : kopi__jint(0);
    if (ok) out->outside = origin_of(&a->self);
    return true;
}
static bool to_float(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    double f = 0;
    struct kopi_jstr s;
    bool ok = false;
    if (a->self.type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, &a->self);
    if (a->self.type == KOPI_J_STRING) {
        if (!number_text(j, &a->self, &s)) return false;
        ok = text_to_float(s, &f);
    } else if (kopi__jis_number(&a->self)) ok = true, f = kopi__jas_float(&a->self);
    *out = ok ? kopi__jfloat(f) : a->given[0] ? a->v[0] : kopi__jfloat(0);
    if (ok) out->outside = origin_of(&a->self);
    return true;
}

static bool need_number(struct kopi_jinja *j, const struct kopi_jval *v, const char *who)
{
    if (kopi__jis_number(v)) return true;
    if (v->type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, v);
    return kopi__jfail(j, "%s needs a number, not %s", who, kopi__jtype_name(v));
}
static bool absolute(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    if (!need_number(j, &a->self, "abs")) return false;
    *out = a->self;
    if (out->type == KOPI_J_FLOAT) {
        out->f = fabs(out->f);
        return true;
    }
    int64_t i = kopi__jas_int(out);
    if (i == INT64_MIN) return kopi__jfail(j, "the result does not fit 64 bits");
    out->type = KOPI_J_INT;
    out->i = i < 0 ? -i : i;
    return true;
}

/* Rounds the decimal form, half to even, as Python's round does: the shortest digits decide, not the binary fraction.
 */
static double round_common(double v, int64_t precision)
{
    char t[64];
    double r;
    if (precision > 17) return v;
    if (precision < 0) {
        double unit = pow(10, (double)-precision);
        return isfinite(unit) ? nearbyint(v / unit) * unit : 0;
    }
    if (fabs(v) > 1e22) return v;
    return kopi__parse_f64(kopi__format_fixed(v, (int)precision, t, sizeof t), &r) ? r : v;
}
static bool round_to(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    int64_t precision;
    if (!kopi__jwork(&j->arena, KOPI_J_DECIMAL) || !need_number(j, &a->self, "round") ||
        !kopi__jarg_int(j, a, 0, 0, &precision))
        return false;
    if (precision < -300 || precision > 300)
        return kopi__jfail(j, "round: a precision of %lld is not supported", (long long)precision);
    bool common = !a->given[1];
    struct kopi_jstr how = {0};
    if (!common && !kopi__jarg_str(j, a, 1, &how)) return false;
    common = common || kopi__jstr_is(how, "common");
    if (!common && !kopi__jstr_is(how, "ceil") && !kopi__jstr_is(how, "floor"))
        return kopi__jfail(j, "round: the method must be common, ceil or floor");
    *out = a->self;
    if (common && a->self.type != KOPI_J_FLOAT && precision >= 0) { /* whole already */
        *out = kopi__jint(kopi__jas_int(&a->self));
        out->outside = a->self.outside;
        return true;
    }
    double v = kopi__jas_float(&a->self), scale = pow(10, (double)precision);
    out->type = KOPI_J_FLOAT;
    if (common) out->f = round_common(v, precision);
    else out->f = (kopi__jstr_is(how, "ceil") ? ceil(v * scale) : floor(v * scale)) / scale;
    return true;
}

const struct kopi_jbuiltin kopi__jnumber_filters[] = {
    {"default", "default_value boolean", default_value},
    {"d", "default_value boolean", default_value},
    {"int", "default base", to_int},
    {"float", "default", to_float},
    {"abs", "", absolute},
    {"round", "precision method", round_to},
    {NULL, NULL, NULL},
};
