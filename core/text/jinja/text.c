/* str() and repr() of values; declared in value.h. */
#include "text/jinja/value.h"
#include "base/num.h"
#include "base/utf8.h"
#include "text/jinja/run.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Splits the shortest decimal form into digits d[.ddd] and a power of ten. */
static int split_decimal(const char *s, char digits[24], int *n)
{
    int exponent = 0, before = 0;
    bool point = false, leading = true;
    *n = 0;
    for (; *s; s++) {
        if (*s == '.') point = true;
        if (*s == 'e' || *s == 'E') {
            exponent = atoi(s + 1);
            break;
        }
        if (*s < '0' || *s > '9') continue;
        if (leading && *s == '0') {
            before -= point;
            continue;
        }
        leading = false;
        before += !point;
        if (*n < 23) digits[(*n)++] = *s;
    }
    while (*n > 1 && digits[*n - 1] == '0') (*n)--;
    digits[*n] = 0;
    return exponent + before - 1;
}

void kopi__jfloat_text(double v, char out[48])
{
    char shortest[40], d[24];
    int n;
    if (!isfinite(v)) {
        strcpy(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
        return;
    }
    if (v == 0) {
        strcpy(out, signbit(v) ? "-0.0" : "0.0");
        return;
    }
    int e = split_decimal(kopi__format_f64(v, shortest, sizeof shortest), d, &n);
    const char *sign = v < 0 ? "-" : "";
    if (e < -4 || e >= 16)
        snprintf(out, 48, "%s%c%s%se%c%02d", sign, d[0], n > 1 ? "." : "", d + 1, e < 0 ? '-' : '+', abs(e));
    else if (e < 0) snprintf(out, 48, "%s0.%.*s%s", sign, -e - 1, "000", d);
    else if (n > e + 1) snprintf(out, 48, "%s%.*s.%s", sign, e + 1, d, d + e + 1);
    else snprintf(out, 48, "%s%s%.*s.0", sign, d, e + 1 - n, "0000000000000000");
}

static bool add(struct kopi_jinja *j, struct kopi_jbuf *b, const char *s, uint8_t origin)
{
    return kopi__jbuf_add(&j->arena, b, s, strlen(s), origin);
}

static bool repr_char(struct kopi_jinja *j, struct kopi_jbuf *b, struct kopi_jstr s, uint32_t at, uint32_t next,
                      uint32_t cp, char quote)
{
    char esc[16];
    uint8_t origin = kopi__jstr_origin(s, at);
    const char *short_form = cp == '\n' ? "\\n" : cp == '\r' ? "\\r" : cp == '\t' ? "\\t" : cp == '\\' ? "\\\\" : NULL;
    if (short_form) return add(j, b, short_form, origin);
    if (cp == (unsigned char)quote) snprintf(esc, sizeof esc, "\\%c", quote);
    else if (kopi__jchar_printable(cp)) return kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(s, at, next));
    else if (!kopi__jwork(&j->arena, 4)) return false;
    else snprintf(esc, sizeof esc, cp < 0x100 ? "\\x%02x" : cp < 0x10000 ? "\\u%04x" : "\\U%08x", cp);
    return add(j, b, esc, origin);
}
static bool repr_str(struct kopi_jinja *j, struct kopi_jbuf *b, struct kopi_jstr s)
{
    const char *p = kopi__jstr_data(s);
    char quote = memchr(p, '\'', s.len) && !memchr(p, '"', s.len) ? '"' : '\'';
    if (!kopi__jwork_on(&j->arena, s.len, KOPI_J_REWRITE)) return false;
    if (!kopi__jbuf_add(&j->arena, b, &quote, 1, KOPI_J_TEMPLATE)) return false;
    for (uint32_t i = 0, next, cp; i < s.len; i = next) {
        next = kopi__jstr_next(s, i, &cp);
        if (!repr_char(j, b, s, i, next, cp, quote)) return false;
    }
    return kopi__jbuf_add(&j->arena, b, &quote, 1, KOPI_J_TEMPLATE);
}

static bool repr_list(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jlist *l, bool tuple)
{
    if (!add(j, b, tuple ? "(" : "[", KOPI_J_TEMPLATE)) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (i && !add(j, b, ", ", KOPI_J_TEMPLATE)) return false;
        if (!kopi__jrepr(j, b, &l->v[i])) return false;
    }
    return add(j, b, !tuple ? "]" : l->n == 1 ? ",)" : ")", KOPI_J_TEMPLATE);
}
static bool repr_dict(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jdict *d)
{
    if (!add(j, b, "{", KOPI_J_TEMPLATE)) return false;
    for (uint32_t i = 0; i < d->n; i++) {
        if (i && !add(j, b, ", ", KOPI_J_TEMPLATE)) return false;
        if (!kopi__jrepr(j, b, &d->v[i].key) || !add(j, b, ": ", KOPI_J_TEMPLATE) || !kopi__jrepr(j, b, &d->v[i].value))
            return false;
    }
    return add(j, b, "}", KOPI_J_TEMPLATE);
}

static bool scalar_text(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jval *v)
{
    char t[48];
    if (!kopi__jwork(&j->arena, v->type == KOPI_J_FLOAT ? KOPI_J_DECIMAL : 4)) return false;
    if (v->type == KOPI_J_BOOL) strcpy(t, v->b ? "True" : "False");
    else if (v->type == KOPI_J_INT) snprintf(t, sizeof t, "%lld", (long long)v->i);
    else kopi__jfloat_text(v->f, t);
    return add(j, b, t, v->outside);
}

bool kopi__jrepr(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jval *v)
{
    bool ok;
    switch (v->type) {
    case KOPI_J_UNDEFINED: return add(j, b, "Undefined", KOPI_J_TEMPLATE);
    case KOPI_J_NONE:
        if (v->outside == KOPI_J_NO_CONTENT) return kopi__jfail(j, "the template prints a message's missing content");
        return add(j, b, "None", KOPI_J_TEMPLATE);
    case KOPI_J_BOOL:
    case KOPI_J_INT:
    case KOPI_J_FLOAT: return scalar_text(j, b, v);
    case KOPI_J_STRING: return repr_str(j, b, v->s);
    case KOPI_J_LIST:
    case KOPI_J_TUPLE:
    case KOPI_J_DICT:
        if (v->type == KOPI_J_DICT ? v->dict->parts : v->list->parts)
            return kopi__jfail(
                j, "the template prints the %s of a message as a whole: it does not know this kind of content",
                kopi__jtype_name(v));
        if (!kopi__jenter(j)) return false;
        ok = v->type == KOPI_J_DICT ? repr_dict(j, b, v->dict) : repr_list(j, b, v->list, v->type == KOPI_J_TUPLE);
        kopi__jleave(j);
        return ok;
    default: return kopi__jfail(j, "%s has no text", kopi__jtype_name(v));
    }
}

bool kopi__jtext(struct kopi_jinja *j, struct kopi_jbuf *b, const struct kopi_jval *v)
{
    if (v->type == KOPI_J_STRING) return kopi__jbuf_add_str(&j->arena, b, v->s);
    if (v->type == KOPI_J_UNDEFINED) return true;
    if (!kopi__jis_seq(v) && v->type != KOPI_J_DICT) return kopi__jrepr(j, b, v);
    /* An outside structure's brackets are outside text too. */
    struct kopi_jbuf *whole = kopi__jbuf_new(&j->arena, 0);
    if (!whole || !kopi__jrepr(j, whole, v)) return false;
    kopi__jbuf_one_origin(whole);
    return kopi__jbuf_add_str(&j->arena, b, kopi__jbuf_str(whole));
}

bool kopi__jto_str(struct kopi_jinja *j, const struct kopi_jval *v, struct kopi_jstr *out)
{
    if (v->type == KOPI_J_STRING) {
        *out = v->s;
        return true;
    }
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, 0);
    if (!b || !kopi__jtext(j, b, v)) return false;
    *out = kopi__jbuf_str(b);
    return true;
}
