/* "%s" % x and "{}".format(x): what templates use of Python's two ways to format; declared in builtin.h. */
#include "base/num.h"
#include "text/jinja/run.h"
#include <stdio.h>
#include <string.h>

struct spec {
    char fill, align, sign, type; /* align: < > ^ or 0; type: s r d f x or 0 */
    bool commas, has_precision;
    int width, precision;
};

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* A decimal number of at most three digits. */
static bool small_number(const char **p, const char *end, int *out)
{
    *out = 0;
    for (int n = 0; *p < end && is_digit(**p); ++*p, n++) {
        if (n == 3) return false;
        *out = *out * 10 + (**p - '0');
    }
    return true;
}

/* Digits of v without a sign into out, thousands separated if asked for. */
static void digits(const struct spec *s, const struct kopi_jval *v, char out[400])
{
    char t[400];
    if (s->type == 'f') {
        double f = kopi__jas_float(v);
        kopi__format_fixed(f < 0 ? -f : f, s->has_precision ? s->precision : 6, t, sizeof t);
    } else {
        int64_t i = kopi__jas_int(v);
        uint64_t u = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
        snprintf(t, sizeof t, s->type == 'x' ? "%llx" : "%llu", (unsigned long long)u);
    }
    size_t whole = strcspn(t, "."), n = 0;
    for (size_t i = 0; t[i]; i++) {
        if (s->commas && i && i < whole && (whole - i) % 3 == 0) out[n++] = ',';
        out[n++] = t[i];
    }
    out[n] = 0;
}

static bool pad(struct kopi_jinja *j, struct kopi_jbuf *b, char c, int64_t n)
{
    return kopi__jbuf_add_repeat(&j->arena, b, c, n, KOPI_J_TEMPLATE);
}

/* text with `width` characters, put at the side that align says. */
static bool put(struct kopi_jinja *j, struct kopi_jbuf *b, const struct spec *s, struct kopi_jstr text,
                char default_align)
{
    if (!kopi__jwork_on(&j->arena, text.len, KOPI_J_DECODE)) return false;
    int64_t room = s->width - (int64_t)kopi__jstr_chars(text);
    char align = s->align ? s->align : default_align, fill = s->fill ? s->fill : ' ';
    int64_t before = room <= 0 || align == '<' ? 0 : align == '^' ? room / 2 : room;
    return pad(j, b, fill, before) && kopi__jbuf_add_str(&j->arena, b, text) && pad(j, b, fill, room - before);
}

static bool put_number(struct kopi_jinja *j, struct kopi_jbuf *b, const struct spec *s, const struct kopi_jval *v)
{
    char t[400], sign[2] = {0, 0};
    struct kopi_jstr text;
    struct kopi_jbuf *n = kopi__jbuf_new(&j->arena, 0);
    if (!kopi__jis_number(v)) return kopi__jfail(j, "the format wants a number, not %s", kopi__jtype_name(v));
    if (s->type != 'f' && v->type == KOPI_J_FLOAT)
        return kopi__jfail(j, "the format wants a whole number, not a float");
    if (s->type == 'f' && !(kopi__jas_float(v) > -1e300 && kopi__jas_float(v) < 1e300))
        return kopi__jfail(j, "the number is too large to format");
    if (!kopi__jwork(&j->arena, s->type == 'f' ? 2 * KOPI_J_DECIMAL : 8)) return false;
    sign[0] = kopi__jas_float(v) < 0 ? '-' : s->sign == '+' || s->sign == ' ' ? s->sign : 0;
    digits(s, v, t);
    if (!n || !kopi__jbuf_add(&j->arena, n, sign, strlen(sign), v->outside)) return false;
    if (s->align == '=' && !pad(j, n, '0', s->width - (int64_t)strlen(sign) - (int64_t)strlen(t))) return false;
    if (!kopi__jbuf_add(&j->arena, n, t, strlen(t), v->outside)) return false;
    text = kopi__jbuf_str(n);
    return put(j, b, s, text, '>');
}

static bool put_text(struct kopi_jinja *j, struct kopi_jbuf *b, const struct spec *s, const struct kopi_jval *v,
                     char default_align)
{
    struct kopi_jstr text;
    struct kopi_jbuf *r = s->type == 'r' ? kopi__jbuf_new(&j->arena, 0) : NULL;
    if (s->type == 'r') {
        if (!r || !kopi__jrepr(j, r, v)) return false;
        text = kopi__jbuf_str(r);
    } else if (!kopi__jto_str(j, v, &text)) return false;
    if (!kopi__jwork_on(&j->arena, text.len, KOPI_J_DECODE)) return false;
    if (s->has_precision) text = kopi__jstr_sub(text, 0, kopi__jstr_offset(text, (uint32_t)s->precision));
    return put(j, b, s, text, default_align);
}

/* ---- % ------------------------------------------------------------------------------------------------------------
 */

static bool percent_spec(const char **p, const char *end, struct spec *s)
{
    for (; *p < end && strchr("-+ 0", **p); ++*p) {
        if (**p == '-') s->align = '<';
        else if (**p == '0') s->align = s->align ? s->align : '=';
        else if (s->sign != '+') s->sign = **p;
    }
    if (!small_number(p, end, &s->width)) return false;
    if (*p < end && **p == '.') {
        ++*p;
        s->has_precision = true;
        if (!small_number(p, end, &s->precision) || s->precision > 99) return false;
    }
    if (*p == end) return false;
    s->type = **p == 'i' ? 'd' : **p;
    ++*p;
    return strchr("srdfx%", s->type) != NULL;
}

bool kopi__jpercent(struct kopi_jinja *j, struct kopi_jstr fmt, const struct kopi_jval *arg, struct kopi_jval *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, fmt.len);
    struct kopi_jval whole = kopi__jint(0);
    const char *base = kopi__jstr_data(fmt), *end = base + fmt.len;
    uint32_t n = arg->type == KOPI_J_TUPLE ? arg->list->n : 1, used = 0;
    if (!b) return false;
    for (const char *p = base; p < end;) {
        const char *next = memchr(p, '%', (size_t)(end - p));
        if (!next) next = end;
        if (!kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(fmt, (uint32_t)(p - base), (uint32_t)(next - base))))
            return false;
        if ((p = next) == end) break;
        struct spec s = {0};
        p++;
        if (!kopi__jwork(&j->arena, 4)) return false;
        if (!percent_spec(&p, end, &s)) return kopi__jfail(j, "this %% format is not supported");
        if (s.type == '%') {
            if (!kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(fmt, (uint32_t)(p - base) - 1, (uint32_t)(p - base))))
                return false;
            continue;
        }
        if (used == n) return kopi__jfail(j, "there are fewer values than %% formats");
        const struct kopi_jval *v = arg->type == KOPI_J_TUPLE ? &arg->list->v[used] : arg;
        used++;
        if (s.type == 'd' && v->type == KOPI_J_FLOAT && v->f > -9e18 && v->f < 9e18) { /* %d cuts a float */
            whole.i = (int64_t)v->f;
            whole.outside = v->outside;
            v = &whole;
        }
        if (s.type == 's' || s.type == 'r') s.align = s.align == '=' ? 0 : s.align;
        if (!(strchr("dfx", s.type) ? put_number(j, b, &s, v) : put_text(j, b, &s, v, '>'))) return false;
    }
    if (used < n && arg->type != KOPI_J_DICT) return kopi__jfail(j, "there are more values than %% formats");
    *out = kopi__jstring(kopi__jbuf_str(b));
    return true;
}

/* ---- {} -----------------------------------------------------------------------------------------------------------
 */

/* [[fill]align][sign][0][width][,][.precision][type] */
static bool brace_spec(const char *p, const char *end, struct spec *s)
{
    if (end - p > 1 && strchr("<>^", p[1]) && (unsigned char)p[0] < 0x80) s->fill = *p++;
    if (p < end && strchr("<>^", *p)) s->align = *p++;
    if (p < end && strchr("+- ", *p)) s->sign = *p++;
    if (p < end && *p == '0') {
        if (!s->align) s->align = '=';
        p++;
    }
    if (!small_number(&p, end, &s->width)) return false;
    if (p < end && *p == ',') s->commas = true, p++;
    if (p < end && *p == '.') {
        p++;
        s->has_precision = true;
        if (!small_number(&p, end, &s->precision) || s->precision > 99) return false;
    }
    if (p < end) s->type = *p++;
    return p == end && (!s->type || strchr("sdfx", s->type)) && !(s->commas && s->align == '=');
}

/* The argument that a field names: nothing counts up, a number, or a named argument. */
static bool field_value(struct kopi_jinja *j, const char *p, size_t n, const struct kopi_jcall *c, uint32_t *counter,
                        const struct kopi_jval **out)
{
    *out = NULL;
    if (n == 0 || is_digit(*p)) {
        const char *end = p + n;
        int index = 0;
        if (n == 0) index = (int)(*counter)++;
        else if (!small_number(&p, end, &index) || p != end) return kopi__jfail(j, "this {} field is not supported");
        if ((uint32_t)index < c->n_pos) *out = &c->pos[index];
    }
    for (uint32_t i = 0; !*out && i < c->n_named; i++)
        if (n == c->named[i].key.s.len && memcmp(p, kopi__jstr_data(c->named[i].key.s), n) == 0)
            *out = &c->named[i].value;
    return *out || kopi__jfail(j, "format: there is no value for the field '%.*s'", (int)(n < 64 ? n : 64), p);
}

static bool put_field(struct kopi_jinja *j, struct kopi_jbuf *b, const char *p, const char *end,
                      const struct kopi_jcall *c, uint32_t *counter)
{
    struct spec s = {0};
    const struct kopi_jval *v;
    const char *colon = memchr(p, ':', (size_t)(end - p)), *name_end = colon ? colon : end;
    bool repr = name_end - p > 1 && name_end[-2] == '!' && name_end[-1] == 'r';
    if (repr) name_end -= 2;
    if (!field_value(j, p, (size_t)(name_end - p), c, counter, &v)) return false;
    if (colon && !brace_spec(colon + 1, end, &s)) return kopi__jfail(j, "this {} format is not supported");
    if (repr && (!s.type || s.type == 's')) s.type = 'r';
    bool number = kopi__jis_number(v) && v->type != KOPI_J_BOOL;
    if (!s.type && v->type == KOPI_J_INT) s.type = 'd';
    if (!s.type && v->type == KOPI_J_FLOAT && (s.has_precision || s.commas))
        return kopi__jfail(j, "this {} format is not supported");
    if (s.type && strchr("dfx", s.type)) return put_number(j, b, &s, v);
    return put_text(j, b, &s, v, number ? '>' : '<');
}

bool kopi__jbraces(struct kopi_jinja *j, struct kopi_jstr fmt, const struct kopi_jcall *c, struct kopi_jval *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, fmt.len);
    const char *base = kopi__jstr_data(fmt), *end = base + fmt.len;
    uint32_t counter = 0;
    if (!b || !kopi__jwork_on(&j->arena, fmt.len, KOPI_J_REWRITE)) return false;
    for (const char *p = base; p < end;) {
        const char *next = p;
        while (next < end && *next != '{' && *next != '}') next++;
        bool doubled = end - next > 1 && next[1] == *next;
        if (!kopi__jbuf_add_str(&j->arena, b,
                                kopi__jstr_sub(fmt, (uint32_t)(p - base), (uint32_t)(next - base) + doubled)))
            return false;
        p = next;
        if (p == end) break;
        if (doubled) {
            p += 2;
            continue;
        }
        const char *close = *p == '{' ? memchr(p, '}', (size_t)(end - p)) : NULL;
        if (!close) return kopi__jfail(j, "format: a single '%c'", *p);
        if (!kopi__jwork(&j->arena, 1 + c->n_named) || !put_field(j, b, p + 1, close, c, &counter)) return false;
        p = close + 1;
    }
    *out = kopi__jstring(kopi__jbuf_str(b));
    return true;
}
