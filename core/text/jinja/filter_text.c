/* Filters from text to text. */
#include "text/jinja/run.h"

static bool cased(struct kopi_jinja *j, const struct kopi_jargs *a, enum kopi_jcase how, struct kopi_jval *out)
{
    struct kopi_jstr s;
    *out = kopi__jstring((struct kopi_jstr){0});
    return kopi__jto_str(j, &a->self, &s) && kopi__jcase(j, s, how, &out->s);
}
static bool upper(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return cased(j, a, KOPI_J_UPPER, out);
}
static bool lower(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return cased(j, a, KOPI_J_LOWER, out);
}
static bool title(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return cased(j, a, KOPI_J_TITLE, out);
}
static bool capitalize(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    return cased(j, a, KOPI_J_CAPITAL, out);
}

/* string, and safe: nothing is escaped here, so that "safe" has nothing to prevent. */
static bool string(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    *out = kopi__jstring((struct kopi_jstr){0});
    return kopi__jto_str(j, &a->self, &out->s);
}

static bool trim(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jstr s, chars;
    bool given = a->given[0] && a->v[0].type != KOPI_J_NONE;
    if (!kopi__jto_str(j, &a->self, &s) || (given && !kopi__jarg_str(j, a, 0, &chars))) return false;
    if (!kopi__jstr_strip(&j->arena, &s, given ? &chars : NULL, true, true)) return false;
    *out = kopi__jstring(s);
    return true;
}

static bool replace(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jstr s, from, to;
    int64_t count;
    *out = kopi__jstring((struct kopi_jstr){0});
    if (!kopi__jto_str(j, &a->self, &s) || !kopi__jto_str(j, &a->v[0], &from) || !kopi__jto_str(j, &a->v[1], &to))
        return false;
    return kopi__jarg_int(j, a, 2, -1, &count) && kopi__jreplace(j, s, from, to, count, &out->s);
}

static bool indent(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    static const char spaces[] = "    ";
    struct kopi_jstr s;
    struct kopi_jval lines;
    struct kopi_jbuf *pad = kopi__jbuf_new(&j->arena, 0), *b = kopi__jbuf_new(&j->arena, 0);
    bool first = kopi__jarg_bool(a, 1, false), blank = kopi__jarg_bool(a, 2, false);
    int64_t width = sizeof spaces - 1;
    if (!pad || !b || !kopi__jto_str(j, &a->self, &s) || !kopi__jsplit_lines(j, s, &lines)) return false;
    if (a->given[0] && a->v[0].type == KOPI_J_STRING) {
        if (!kopi__jbuf_add_str(&j->arena, pad, a->v[0].s)) return false;
    } else if (!kopi__jarg_int(j, a, 0, width, &width) ||
               !kopi__jbuf_add_repeat(&j->arena, pad, ' ', width, KOPI_J_TEMPLATE))
        return false;
    if (s.len) { /* jinja2 appends a newline before it splits: text that ends with one gets an empty last line */
        uint32_t last, cp;
        last = kopi__jstr_prev(s, s.len);
        kopi__jstr_next(s, last, &cp);
        if (kopi__jchar_line_end(cp) && !kopi__jlist_push(j, lines.list, kopi__jstring((struct kopi_jstr){0})))
            return false;
    }
    if (first && !kopi__jbuf_add_str(&j->arena, b, kopi__jbuf_str(pad))) return false;
    for (uint32_t i = 0; i < lines.list->n; i++) {
        struct kopi_jstr line = lines.list->v[i].s;
        if (i && !kopi__jbuf_add(&j->arena, b, "\n", 1, KOPI_J_TEMPLATE)) return false;
        if (i && (line.len || blank) && !kopi__jbuf_add_str(&j->arena, b, kopi__jbuf_str(pad))) return false;
        if (!kopi__jbuf_add_str(&j->arena, b, line)) return false;
    }
    *out = kopi__jstring(kopi__jbuf_str(b));
    return true;
}

static bool format(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jstr s;
    struct kopi_jval args;
    if (a->call->n_named) return kopi__jfail(j, "the filter format takes no named arguments");
    if (!kopi__jto_str(j, &a->self, &s) || !kopi__jlist_new(j, KOPI_J_TUPLE, 0, &args)) return false;
    for (uint32_t i = 0; i < a->call->n_pos; i++)
        if (!kopi__jlist_push(j, args.list, a->call->pos[i])) return false;
    return kopi__jpercent(j, s, &args, out);
}

const struct kopi_jbuiltin kopi__jtext_filters[] = {
    {"trim", "chars", trim},
    {"string", "", string},
    {"safe", "", string},
    {"lower", "", lower},
    {"upper", "", upper},
    {"title", "", title},
    {"capitalize", "", capitalize},
    {"replace", "!old !new count", replace},
    {"indent", "width first blank", indent},
    {"format", "*", format},
    {NULL, NULL, NULL},
};
