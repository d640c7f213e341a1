/* Global functions. */
#include "base/error.h"
#include "text/jinja/run.h"
#include <time.h>
#include <string.h>

static bool raise_exception(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct kopi_jstr s;
    (void)out;
    if (!kopi__jto_str(j, &a->v[0], &s)) return false;
    kopi__jfail(j, "the template refuses these messages: %.*s", (int)(s.len < 700 ? s.len : 700), kopi__jstr_data(s));
    j->refused = true;
    return false;
}

static bool namespace(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    if (a->call->n_pos > 1 || (a->call->n_pos == 1 && a->call->pos[0].type != KOPI_J_DICT))
        return kopi__jfail(j, "namespace takes one dictionary or named arguments");
    if (!kopi__jdict_new(j, out)) return false;
    for (uint32_t i = 0; a->call->n_pos && i < a->call->pos[0].dict->n; i++)
        if (!kopi__jdict_add(j, out->dict, a->call->pos[0].dict->v[i].key, a->call->pos[0].dict->v[i].value))
            return false;
    for (uint32_t i = 0; i < a->call->n_named; i++)
        if (!kopi__jdict_set(j, out->dict, &a->call->named[i].key, a->call->named[i].value)) return false;
    return true;
}
static bool new_namespace(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    if (!namespace(j, a, out)) return false;
    out->type = KOPI_J_NAMESPACE;
    return true;
}

static bool range(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    int64_t v[3] = {0, 0, 1};
    for (int i = 0; i < 3; i++)
        if (!kopi__jarg_int(j, a, i, v[i], &v[i])) return false;
    if (!a->given[1]) v[1] = v[0], v[0] = 0;
    if (v[2] == 0) return kopi__jfail(j, "range: the step can't be 0");
    uint64_t span = v[2] > 0 ? (v[1] > v[0] ? (uint64_t)v[1] - (uint64_t)v[0] : 0)
                             : (v[0] > v[1] ? (uint64_t)v[0] - (uint64_t)v[1] : 0);
    uint64_t step = v[2] > 0 ? (uint64_t)v[2] : 0 - (uint64_t)v[2], n = span / step + (span % step != 0);
    if (n > KOPI_J_MAX_RANGE)
        return kopi__jfail(j, "range has %llu elements, at most %d are supported", (unsigned long long)n,
                           KOPI_J_MAX_RANGE);
    if (!kopi__jlist_new(j, KOPI_J_LIST, (uint32_t)n, out)) return false;
    for (uint64_t i = 0; i < n; i++) out->list->v[i] = kopi__jint((int64_t)((uint64_t)v[0] + i * (uint64_t)v[2]));
    out->list->n = (uint32_t)n;
    return true;
}

static bool strftime_now(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    char fmt[128], text[512];
    struct kopi_jstr s;
    struct tm tm;
    time_t now = (time_t)j->now;
    *out = kopi__jstring((struct kopi_jstr){0});
    if (!kopi__jarg_str(j, a, 0, &s) || !kopi__jwork(&j->arena, KOPI_J_DECIMAL)) return false;
    if (s.len == 0) return true;
    if (s.len >= sizeof fmt - 1 || memchr(kopi__jstr_data(s), 0, s.len))
        return kopi__jfail(j, "strftime_now: this format is not supported");
    memcpy(fmt, kopi__jstr_data(s), s.len);
    fmt[s.len] = '.'; /* so that an empty result can be told from one that does not fit */
    fmt[s.len + 1] = 0;
    /* Names of days and months in English whatever the process's locale. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    size_t n = c && localtime_r(&now, &tm) ? strftime_l(text, sizeof text, fmt, &tm, c) : 0;
    if (c) freelocale(c);
    if (n == 0) return kopi__jfail(j, "strftime_now: the text does not fit %zu bytes", sizeof text);
    return kopi__jstr_copy(&j->arena, text, n - 1, kopi__jstr_any_origin(s), &out->s);
}

static const struct kopi_jbuiltin globals[] = {
    {"raise_exception", "!message", raise_exception},
    {"namespace", "*", new_namespace},
    {"dict", "*", namespace},
    {"range", "!start stop step", range},
    {"strftime_now", "!format", strftime_now},
    {NULL, NULL, NULL},
};
const struct kopi_jbuiltin *const kopi__jglobals[] = {globals, NULL};
