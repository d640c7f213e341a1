/* What the string filters and the string methods have in common; declared in builtin.h. */
#include "base/utf8.h"
#include "text/jinja/run.h"
#include <wctype.h>

uint32_t kopi__jchar_case(struct kopi_jinja *j, uint32_t cp, bool upper)
{
    if (cp < 0x80) {
        if (upper) return cp >= 'a' && cp <= 'z' ? cp - 32 : cp;
        return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    }
    /* The locale of the process must not matter: a prompt is the same everywhere. */
    if (!j->ctype) j->ctype = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!j->ctype) return cp;
    return (uint32_t)(upper ? towupper_l((wint_t)cp, j->ctype) : towlower_l((wint_t)cp, j->ctype));
}

static bool starts_word(uint32_t before)
{
    return kopi__jchar_space(before) || before == '-' || before == '(' || before == '{' || before == '[' ||
           before == '<';
}

/* TITLE is jinja2's filter: a word starts behind white space, a hyphen or an opening bracket. STR_TITLE is Python's
 * method: behind everything that is not a letter. */
bool kopi__jcase(struct kopi_jinja *j, struct kopi_jstr s, enum kopi_jcase how, struct kopi_jstr *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, s.len);
    bool first = true;
    if (!b || !kopi__jwork_on(&j->arena, s.len, KOPI_J_REWRITE)) return false;
    for (uint32_t i = 0, next, cp; i < s.len; i = next) {
        char text[4];
        next = kopi__jstr_next(s, i, &cp);
        bool upper = how == KOPI_J_UPPER || (how != KOPI_J_LOWER && first);
        uint32_t mapped = kopi__jchar_case(j, cp, upper);
        bool ok = mapped == cp
                      ? kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(s, i, next))
                      : kopi__jbuf_add(&j->arena, b, text, kopi__utf8_encode(mapped, text), kopi__jstr_origin(s, i));
        if (!ok) return false;
        first = (how == KOPI_J_TITLE && starts_word(cp)) ||
                (how == KOPI_J_STR_TITLE && kopi__jchar_case(j, cp, true) == kopi__jchar_case(j, cp, false));
    }
    *out = kopi__jbuf_str(b);
    return true;
}

bool kopi__jreplace(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jstr from, struct kopi_jstr to, int64_t count,
                    struct kopi_jstr *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, s.len);
    uint32_t at = 0, cp;
    if (!b || !kopi__jwork_on(&j->arena, s.len, KOPI_J_SEARCH)) return false;
    for (; count != 0; count--) {
        int64_t hit = kopi__jstr_find(s, from, at);
        if (hit < 0) break;
        if (!kopi__jwork(&j->arena, 4) || !kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(s, at, (uint32_t)hit)))
            return false;
        if (!kopi__jbuf_add_str(&j->arena, b, to)) return false;
        at = (uint32_t)hit + from.len;
        if (from.len) continue;
        if (at == s.len) break; /* an empty string matches between all characters */
        uint32_t next = kopi__jstr_next(s, at, &cp);
        if (!kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(s, at, next))) return false;
        at = next;
    }
    if (!kopi__jbuf_add_str(&j->arena, b, kopi__jstr_sub(s, at, s.len))) return false;
    *out = kopi__jbuf_str(b);
    return true;
}

bool kopi__jsplit_lines(struct kopi_jinja *j, struct kopi_jstr s, struct kopi_jval *out)
{
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, out) || !kopi__jwork_on(&j->arena, s.len, KOPI_J_DECODE)) return false;
    uint32_t start = 0, next, cp;
    for (uint32_t i = 0; i < s.len; i = next) {
        next = kopi__jstr_next(s, i, &cp);
        if (!kopi__jchar_line_end(cp)) continue;
        if (cp == '\r' && next < s.len && s.buf->data[s.off + next] == '\n') next++;
        if (!kopi__jlist_push(j, out->list, kopi__jstring(kopi__jstr_sub(s, start, i)))) return false;
        start = next;
    }
    return start == s.len || kopi__jlist_push(j, out->list, kopi__jstring(kopi__jstr_sub(s, start, s.len)));
}

bool kopi__jjoin(struct kopi_jinja *j, struct kopi_jstr sep, const struct kopi_jlist *l,
                 const struct kopi_jval *attribute, struct kopi_jstr *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, 0);
    if (!b) return false;
    for (uint32_t i = 0; i < l->n; i++) {
        struct kopi_jval v = l->v[i];
        if (!kopi__jwork(&j->arena, 1)) return false;
        if (attribute && !kopi__jget_path(j, &l->v[i], attribute, NULL, &v)) return false;
        if ((i && !kopi__jbuf_add_str(&j->arena, b, sep)) || !kopi__jtext(j, b, &v)) return false;
    }
    *out = kopi__jbuf_str(b);
    return true;
}
