/* Methods of strings. */
#include "text/jinja/run.h"

#define METHOD(name) static bool name(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)

static bool strip_sides(struct kopi_jinja *j, const struct kopi_jargs *a, bool left, bool right, struct kopi_jval *out)
{
    struct kopi_jstr s = a->self.s, chars;
    bool given = a->given[0] && a->v[0].type != KOPI_J_NONE;
    if (given && !kopi__jarg_str(j, a, 0, &chars)) return false;
    if (!kopi__jstr_strip(&j->arena, &s, given ? &chars : NULL, left, right)) return false;
    *out = kopi__jstring(s);
    return true;
}
METHOD(strip) { return strip_sides(j, a, true, true, out); }
METHOD(lstrip) { return strip_sides(j, a, true, false, out); }
METHOD(rstrip) { return strip_sides(j, a, false, true, out); }

static bool cased(struct kopi_jinja *j, const struct kopi_jargs *a, enum kopi_jcase how, struct kopi_jval *out)
{
    *out = kopi__jstring((struct kopi_jstr){0});
    return kopi__jcase(j, a->self.s, how, &out->s);
}
METHOD(upper) { return cased(j, a, KOPI_J_UPPER, out); }
METHOD(lower) { return cased(j, a, KOPI_J_LOWER, out); }
METHOD(title) { return cased(j, a, KOPI_J_STR_TITLE, out); }
METHOD(capitalize) { return cased(j, a, KOPI_J_CAPITAL, out); }

static bool has_affix(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jstr affix, bool at_end, bool *out)
{
    *out = false;
    if (affix.len > s.len) return true;
    if (!kopi__jwork_on(&j->arena, affix.len, KOPI_J_COPY)) return false;
    *out = kopi__jstr_eq(at_end ? kopi__jstr_sub(s, s.len - affix.len, s.len) : kopi__jstr_sub(s, 0, affix.len), affix);
    return true;
}
/* The argument may be a tuple of alternatives. */
static bool affix(struct kopi_jinja *j, const struct kopi_jargs *a, bool at_end, struct kopi_jval *out)
{
    struct kopi_jval one = a->v[0];
    struct kopi_jlist single = {.v = &one, .n = 1}, *l = one.type == KOPI_J_TUPLE ? one.list : &single;
    bool found = false;
    for (uint32_t i = 0; i < l->n && !found; i++) {
        if (l->v[i].type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, &l->v[i]);
        if (l->v[i].type != KOPI_J_STRING)
            return kopi__jfail(j, "%s needs a str, not %s", at_end ? "endswith" : "startswith",
                               kopi__jtype_name(&l->v[i]));
        if (!kopi__jwork(&j->arena, 1) || !has_affix(j, a->self.s, l->v[i].s, at_end, &found)) return false;
    }
    *out = kopi__jbool(found);
    return true;
}
METHOD(startswith) { return affix(j, a, false, out); }
METHOD(endswith) { return affix(j, a, true, out); }
METHOD(removeprefix)
{
    struct kopi_jstr s = a->self.s, what;
    bool has;
    if (!kopi__jarg_str(j, a, 0, &what) || !has_affix(j, s, what, false, &has)) return false;
    *out = kopi__jstring(has ? kopi__jstr_sub(s, what.len, s.len) : s);
    return true;
}
METHOD(removesuffix)
{
    struct kopi_jstr s = a->self.s, what;
    bool has;
    if (!kopi__jarg_str(j, a, 0, &what) || !has_affix(j, s, what, true, &has)) return false;
    *out = kopi__jstring(has ? kopi__jstr_sub(s, 0, s.len - what.len) : s);
    return true;
}

METHOD(replace)
{
    struct kopi_jstr from, to;
    int64_t count;
    *out = kopi__jstring((struct kopi_jstr){0});
    return kopi__jarg_str(j, a, 0, &from) && kopi__jarg_str(j, a, 1, &to) && kopi__jarg_int(j, a, 2, -1, &count) &&
           kopi__jreplace(j, a->self.s, from, to, count, &out->s);
}

METHOD(join)
{
    struct kopi_jlist *l;
    *out = kopi__jstring((struct kopi_jstr){0});
    if (!kopi__jiterate(j, &a->v[0], &l)) return false;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->v[i].type != KOPI_J_STRING)
            return kopi__jfail(j, "join: item %u is %s, not str", i, kopi__jtype_name(&l->v[i]));
    return kopi__jjoin(j, a->self.s, l, NULL, &out->s);
}

METHOD(find)
{
    struct kopi_jstr s = a->self.s, what;
    if (!kopi__jarg_str(j, a, 0, &what) || !kopi__jwork_on(&j->arena, s.len, KOPI_J_DECODE)) return false;
    if (!kopi__jwork_on(&j->arena, s.len, KOPI_J_SEARCH)) return false;
    int64_t hit = kopi__jstr_find(s, what, 0);
    *out = kopi__jint(hit < 0 ? -1 : (int64_t)kopi__jstr_chars(kopi__jstr_sub(s, 0, (uint32_t)hit)));
    return true;
}
METHOD(count)
{
    struct kopi_jstr s = a->self.s, what;
    int64_t n = 0;
    if (!kopi__jarg_str(j, a, 0, &what) || !kopi__jwork_on(&j->arena, s.len, KOPI_J_DECODE)) return false;
    if (what.len == 0) n = (int64_t)kopi__jstr_chars(s) + 1;
    else
        for (int64_t hit = 0; (hit = kopi__jstr_find(s, what, (uint32_t)hit)) >= 0; hit += what.len, n++)
            if (!kopi__jwork(&j->arena, 4)) return false;
    *out = kopi__jint(n);
    return true;
}

/* ---- split --------------------------------------------------------------------------------------------------------
 */

static bool push(struct kopi_jinja *j, struct kopi_jval *l, struct kopi_jstr s, uint32_t from, uint32_t to)
{
    return kopi__jlist_push(j, l->list, kopi__jstring(kopi__jstr_sub(s, from, to)));
}
static bool split_space(struct kopi_jinja *j, struct kopi_jstr s, int64_t limit, struct kopi_jval *out)
{
    if (!kopi__jstr_strip(&j->arena, &s, NULL, true, false)) return false;
    while (s.len && limit != 0) {
        uint32_t end = 0, next = 0, cp = 0;
        while (end < s.len && (next = kopi__jstr_next(s, end, &cp), !kopi__jchar_space(cp))) end = next;
        if (!push(j, out, s, 0, end)) return false;
        s = kopi__jstr_sub(s, end, s.len);
        if (!kopi__jstr_strip(&j->arena, &s, NULL, true, false)) return false;
        limit--;
    }
    if (!kopi__jstr_strip(&j->arena, &s, NULL, false, limit != 0 || s.len == 0)) return false;
    return s.len == 0 || push(j, out, s, 0, s.len);
}
static bool split_at(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jstr sep, int64_t limit,
                     struct kopi_jval *out)
{
    uint32_t from = 0;
    for (int64_t hit; limit != 0 && (hit = kopi__jstr_find(s, sep, from)) >= 0; limit--) {
        if (!kopi__jwork(&j->arena, 4) || !push(j, out, s, from, (uint32_t)hit)) return false;
        from = (uint32_t)hit + sep.len;
    }
    return push(j, out, s, from, s.len);
}
/* From the right: the parts are found last first and then turned round. */
static bool rsplit_at(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jstr sep, int64_t limit,
                      struct kopi_jval *out)
{
    uint32_t end = s.len;
    for (uint32_t at = s.len; limit != 0 && at >= sep.len; at--) {
        if (!kopi__jstr_eq(kopi__jstr_sub(s, at - sep.len, at), sep)) continue;
        if (!push(j, out, s, at, end)) return false;
        end = at - sep.len;
        at = end + 1;
        limit--;
    }
    if (!push(j, out, s, 0, end)) return false;
    for (uint32_t i = 0, n = out->list->n; i < n / 2; i++) {
        struct kopi_jval v = out->list->v[i];
        out->list->v[i] = out->list->v[n - 1 - i];
        out->list->v[n - 1 - i] = v;
    }
    return true;
}
static bool split_by(struct kopi_jinja *j, const struct kopi_jargs *a, bool right, struct kopi_jval *out)
{
    struct kopi_jstr sep = {0};
    int64_t limit;
    bool given = a->given[0] && a->v[0].type != KOPI_J_NONE;
    if ((given && !kopi__jarg_str(j, a, 0, &sep)) || !kopi__jarg_int(j, a, 1, -1, &limit)) return false;
    if (given && sep.len == 0) return kopi__jfail(j, "split: the separator is empty");
    if (right && !given && limit >= 0)
        return kopi__jfail(j, "rsplit without a separator but with a limit is not supported");
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    if (!kopi__jwork_on(&j->arena, a->self.s.len, KOPI_J_DECODE)) return false;
    if (right && !kopi__jwork_on(&j->arena, (uint64_t)a->self.s.len * sep.len, KOPI_J_COPY)) return false;
    if (!given) return split_space(j, a->self.s, limit, out);
    return right ? rsplit_at(j, a->self.s, sep, limit, out) : split_at(j, a->self.s, sep, limit, out);
}
METHOD(split) { return split_by(j, a, false, out); }
METHOD(rsplit) { return split_by(j, a, true, out); }
METHOD(splitlines)
{
    if (kopi__jarg_bool(a, 0, false)) return kopi__jfail(j, "splitlines with the line ends kept is not supported");
    return kopi__jsplit_lines(j, a->self.s, out);
}

METHOD(format) { return kopi__jbraces(j, a->self.s, a->call, out); }

/* ---- questions ----------------------------------------------------------------------------------------------------
 */

static bool all_chars(struct kopi_jinja *j, const struct kopi_jargs *a, bool (*ok)(uint32_t), struct kopi_jval *out)
{
    struct kopi_jstr s = a->self.s;
    bool all = s.len > 0;
    if (!kopi__jwork_on(&j->arena, s.len, KOPI_J_DECODE)) return false;
    for (uint32_t i = 0, cp; all && i < s.len;) {
        i = kopi__jstr_next(s, i, &cp);
        all = ok(cp);
    }
    *out = kopi__jbool(all);
    return true;
}
static bool is_digit(uint32_t cp) { return cp >= '0' && cp <= '9'; }
METHOD(only_digits) { return all_chars(j, a, is_digit, out); }
METHOD(only_space) { return all_chars(j, a, kopi__jchar_space, out); }

/* Those without a function are Python's too: as attributes they exist, which a template may ask. */
static const struct kopi_jbuiltin methods[] = {
    {"split", "sep maxsplit", split},
    {"strip", "chars", strip},
    {"lstrip", "chars", lstrip},
    {"rstrip", "chars", rstrip},
    {"startswith", "!prefix", startswith},
    {"endswith", "!suffix", endswith},
    {"replace", "!old !new count", replace},
    {"upper", "", upper},
    {"lower", "", lower},
    {"title", "", title},
    {"capitalize", "", capitalize},
    {"join", "!iterable", join},
    {"find", "!sub", find},
    {"count", "!sub", count},
    {"rsplit", "sep maxsplit", rsplit},
    {"splitlines", "keepends", splitlines},
    {"removeprefix", "!prefix", removeprefix},
    {"removesuffix", "!suffix", removesuffix},
    {"format", "*", format},
    {"isdigit", "", only_digits},
    {"isspace", "", only_space},
    {"casefold", NULL, NULL},
    {"center", NULL, NULL},
    {"encode", NULL, NULL},
    {"expandtabs", NULL, NULL},
    {"index", NULL, NULL},
    {"isalnum", NULL, NULL},
    {"isalpha", NULL, NULL},
    {"isascii", NULL, NULL},
    {"isdecimal", NULL, NULL},
    {"isidentifier", NULL, NULL},
    {"islower", NULL, NULL},
    {"isnumeric", NULL, NULL},
    {"isprintable", NULL, NULL},
    {"istitle", NULL, NULL},
    {"isupper", NULL, NULL},
    {"ljust", NULL, NULL},
    {"maketrans", NULL, NULL},
    {"partition", NULL, NULL},
    {"rfind", NULL, NULL},
    {"rindex", NULL, NULL},
    {"rjust", NULL, NULL},
    {"rpartition", NULL, NULL},
    {"swapcase", NULL, NULL},
    {"translate", NULL, NULL},
    {"zfill", NULL, NULL},
    {NULL, NULL, NULL},
};
const struct kopi_jbuiltin *const kopi__jstr_methods[] = {methods, NULL};
