#include "text/jinja/lexer.h"
#include "base/error.h"
#include "base/num.h"
#include "base/utf8.h"
#include <string.h>

static bool fail(struct kopi_jlexer *l, uint32_t pos, const char *what)
{
    unsigned line, column;
    kopi__jposition(l->src, pos, &line, &column);
    kopi__fail(l->err, KOPI_E_MODEL, "chat template line %u, column %u: %s", line, column, what);
    return false;
}

static struct kopi_jtoken *push(struct kopi_jlexer *l, enum kopi_jtoken_type type, uint32_t pos)
{
    if (!kopi__jgrow(l->arena, (void **)&l->tok, l->n_tok, &l->cap, sizeof *l->tok)) return NULL;
    struct kopi_jtoken *t = &l->tok[l->n_tok++];
    *t = (struct kopi_jtoken){.type = (uint8_t)type, .pos = pos};
    return t;
}
static bool push_text(struct kopi_jlexer *l, enum kopi_jtoken_type type, uint32_t pos, const char *s, uint32_t n)
{
    struct kopi_jtoken *t = push(l, type, pos);
    if (!t) return false;
    t->s = s;
    t->n = n;
    return true;
}

static bool at(const struct kopi_jlexer *l, const char *what)
{
    size_t n = strlen(what);
    return n <= l->n - l->pos && memcmp(l->src + l->pos, what, n) == 0;
}
static bool is_name_char(char c, bool first)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80 ||
           (!first && c >= '0' && c <= '9');
}
static uint32_t skip_space(const struct kopi_jlexer *l, uint32_t pos)
{
    while (pos < l->n) {
        uint32_t cp = (unsigned char)l->src[pos];
        size_t n = cp < 0x80 ? 1 : kopi__utf8_decode(l->src + pos, l->n - pos, &cp);
        if (n == 0 || !kopi__jchar_space(cp)) break;
        pos += (uint32_t)n;
    }
    return pos;
}

/* ---- text between tags ------------------------------------------------------------------------------------------- */

/* End of the text [from, to) before a tag: `-` strips all white space, and without a sign a block or comment that
 * stands alone on its line loses its indentation. */
static uint32_t trimmed_end(const struct kopi_jlexer *l, uint32_t from, uint32_t to, char sign, bool is_variable)
{
    if (sign == '-') {
        struct kopi_jbuf whole = {.data = (char *)(uintptr_t)l->src, .used = l->n, .cap = l->n};
        struct kopi_jstr s = {&whole, from, to - from};
        kopi__jstr_strip(l->arena, &s, NULL, false, true); /* the parser looks at the arena's stop */
        return from + s.len;
    }
    if (sign == '+' || is_variable) return to;
    uint32_t line = to;
    while (line > from && l->src[line - 1] != '\n') line--;
    if (line == from && !l->line_starting) return to;
    return skip_space(l, line) >= to ? line : to;
}
static bool text(struct kopi_jlexer *l, uint32_t from, uint32_t to)
{
    return from == to || push_text(l, KOPI_T_TEXT, from, l->src + from, to - from);
}

/* After a tag's end: a minus sign eats white space, a block or comment eats the newline behind it. */
static void after_tag(struct kopi_jlexer *l, char sign, bool trim_newline)
{
    if (sign == '-') l->pos = skip_space(l, l->pos);
    else if (sign != '+' && trim_newline && l->pos < l->n && l->src[l->pos] == '\n') l->pos++;
    l->line_starting = l->src[l->pos - 1] == '\n';
}

static bool comment(struct kopi_jlexer *l)
{
    uint32_t start = l->pos - 2;
    const char *end = memmem(l->src + l->pos, l->n - l->pos, "#}", 2);
    if (!end) return fail(l, start, "the comment is never closed: '#}' is missing");
    uint32_t stop = (uint32_t)(end - l->src);
    char sign = stop > l->pos ? l->src[stop - 1] : 0;
    l->pos = stop + 2;
    after_tag(l, sign, true);
    return true;
}

/* The word of a `{% word %}` tag whose inside starts at pos; true and *end behind the closing brace if it is `word`. */
static bool lone_word(const struct kopi_jlexer *l, uint32_t pos, const char *word, uint32_t *end, char *sign)
{
    size_t n = strlen(word);
    pos = skip_space(l, pos);
    if (n > l->n - pos || memcmp(l->src + pos, word, n) != 0) return false;
    pos = skip_space(l, pos + (uint32_t)n);
    *sign = 0;
    if (pos < l->n && (l->src[pos] == '-' || l->src[pos] == '+')) *sign = l->src[pos++];
    if (l->n - pos < 2 || l->src[pos] != '%' || l->src[pos + 1] != '}') return false;
    *end = pos + 2;
    return true;
}

/* Everything up to {% endraw %} is text. l->pos is behind {% raw %}. */
static bool raw(struct kopi_jlexer *l, uint32_t start)
{
    for (uint32_t from = l->pos, p = from;; p += 2) {
        const char *hit = memmem(l->src + p, l->n - p, "{%", 2);
        if (!hit) return fail(l, start, "the raw block is never closed: '{% endraw %}' is missing");
        p = (uint32_t)(hit - l->src);
        uint32_t inside = p + 2, end;
        char before = inside < l->n && (l->src[inside] == '-' || l->src[inside] == '+') ? l->src[inside++] : 0, after;
        if (!lone_word(l, inside, "endraw", &end, &after)) continue;
        if (!text(l, from, trimmed_end(l, from, p, before, false))) return false;
        l->pos = end;
        after_tag(l, after, true);
        return true;
    }
}

/* ---- inside a tag ------------------------------------------------------------------------------------------------ */

static bool digits_of(const struct kopi_jlexer *l, uint32_t *pos, unsigned base, char *out, unsigned *n)
{
    unsigned first = *n;
    for (uint32_t p = *pos; p < l->n; p++) {
        char c = l->src[p];
        if (c == '_' && *n > first) continue;
        unsigned d = c >= '0' && c <= '9'                 ? (unsigned)(c - '0')
                     : (c | 32) >= 'a' && (c | 32) <= 'f' ? (unsigned)((c | 32) - 'a' + 10)
                                                          : 99;
        if (d >= base) break;
        if (*n >= 60) return false;
        out[(*n)++] = c;
        *pos = p + 1;
    }
    return *n > first;
}

static bool prefixed_integer(struct kopi_jlexer *l, unsigned base)
{
    char t[64];
    unsigned n = 0;
    uint32_t start = l->pos;
    int64_t v = 0;
    l->pos += 2;
    if (!digits_of(l, &l->pos, base, t, &n)) return fail(l, start, "this is not a number");
    for (unsigned i = 0; i < n; i++) {
        int digit = t[i] <= '9' ? t[i] - '0' : (t[i] | 32) - 'a' + 10;
        if (__builtin_mul_overflow(v, (int64_t)base, &v) || __builtin_add_overflow(v, digit, &v))
            return fail(l, start, "the number does not fit 64 bits");
    }
    struct kopi_jtoken *k = push(l, KOPI_T_INT, start);
    if (k) k->i = v;
    return k != NULL;
}

static bool number(struct kopi_jlexer *l)
{
    char t[64];
    unsigned n = 0;
    uint32_t start = l->pos;
    char second = l->pos + 1 < l->n ? l->src[l->pos + 1] | 32 : 0;
    if (l->src[l->pos] == '0' && (second == 'x' || second == 'o' || second == 'b'))
        return prefixed_integer(l, second == 'x' ? 16 : second == 'o' ? 8 : 2);
    bool is_float = false, ok = digits_of(l, &l->pos, 10, t, &n);
    uint32_t p = l->pos + 1;
    if (ok && l->pos < l->n && l->src[l->pos] == '.' && n < 60) {
        t[n] = '.';
        unsigned m = n + 1;
        if (digits_of(l, &p, 10, t, &m)) {
            n = m;
            l->pos = p;
            is_float = true;
        }
    }
    p = l->pos + 1;
    if (ok && l->pos < l->n && (l->src[l->pos] | 32) == 'e' && n < 58) {
        unsigned m = n;
        t[m++] = 'e';
        if (p < l->n && (l->src[p] == '-' || l->src[p] == '+')) {
            if (l->src[p] == '-') t[m++] = '-';
            p++;
        }
        if (digits_of(l, &p, 10, t, &m)) {
            n = m;
            l->pos = p;
            is_float = true;
        }
    }
    t[n] = 0;
    struct kopi_jtoken *k = push(l, is_float ? KOPI_T_FLOAT : KOPI_T_INT, start);
    if (!k) return false;
    if (!ok || !(is_float ? kopi__parse_f64(t, &k->f) : kopi__parse_i64(t, &k->i)))
        return fail(l, start, "the number is too large");
    return true;
}

/* \xhh, \uhhhh, \Uhhhhhhhh, \ooo: returns the characters read behind the backslash, 0 if it is none of these. */
static uint32_t numeric_escape(const char *s, uint32_t n, uint32_t *cp)
{
    uint32_t want = s[0] == 'x' ? 2 : s[0] == 'u' ? 4 : s[0] == 'U' ? 8 : 0, i;
    *cp = 0;
    if (!want) {
        for (i = 0; i < 3 && i < n && s[i] >= '0' && s[i] <= '7'; i++) *cp = *cp * 8 + (uint32_t)(s[i] - '0');
        return i;
    }
    for (i = 1; i <= want; i++) {
        if (i >= n) return 0;
        char c = s[i] | 32;
        uint32_t d = s[i] >= '0' && s[i] <= '9' ? (uint32_t)(s[i] - '0')
                     : c >= 'a' && c <= 'f'     ? (uint32_t)(c - 'a' + 10)
                                                : 99;
        if (d == 99) return 0;
        *cp = *cp * 16 + d;
    }
    return want + 1;
}

static bool string(struct kopi_jlexer *l)
{
    static const char from[] = "ntr\\'\"abfv", to[] = "\n\t\r\\'\"\a\b\f\v";
    uint32_t start = l->pos++, end = l->pos;
    char quote = l->src[start];
    while (end < l->n && l->src[end] != quote) end += l->src[end] == '\\' ? 2 : 1;
    if (end >= l->n) return fail(l, start, "the string is never closed");
    char *out = kopi__jalloc(l->arena, end - l->pos);
    if (!out) return false;
    uint32_t n = 0;
    for (uint32_t p = l->pos, cp, used; p < end; p++) {
        const char *known;
        if (l->src[p] != '\\') {
            out[n++] = l->src[p];
        } else if (l->src[p + 1] == '\n') {
            p++;
        } else if ((known = memchr(from, l->src[p + 1], sizeof from - 1))) {
            out[n++] = to[known - from];
            p++;
        } else if ((used = numeric_escape(l->src + p + 1, end - p - 1, &cp))) {
            if (cp > 0x10ffff || (cp >= 0xd800 && cp < 0xe000)) return fail(l, p, "the escape is not a character");
            n += (uint32_t)kopi__utf8_encode(cp, out + n);
            p += used;
        } else out[n++] = '\\';
    }
    l->pos = end + 1;
    return push_text(l, KOPI_T_STRING, start, out, n);
}

static bool bracket(struct kopi_jlexer *l, char c)
{
    static const char open[] = "([{", close[] = ")]}";
    const char *o = strchr(open, c);
    if (o) {
        if (l->n_closers == sizeof l->closers) return fail(l, l->pos, "too many nested brackets");
        l->closers[l->n_closers++] = close[o - open];
    } else if (strchr(close, c)) {
        if (!l->n_closers || l->closers[l->n_closers - 1] != c)
            return fail(l, l->pos, "this bracket closes none that is open");
        l->n_closers--;
    }
    return true;
}
static bool operator(struct kopi_jlexer *l)
{
    static const char *const two[] = {"//", "**", "==", "!=", ">=", "<="};
    char c = l->src[l->pos];
    uint16_t op = (unsigned char)c;
    uint32_t start = l->pos, n = 1;
    for (size_t i = 0; i < sizeof two / sizeof *two; i++)
        if (at(l, two[i])) op = KOPI_J_OP2(two[i][0], two[i][1]), n = 2;
    if (n == 1 && (!c || !strchr("+-/*%~[](){}><=.:|,", c)))
        return fail(l, start, "this character has no meaning here");
    if (!bracket(l, c)) return false;
    struct kopi_jtoken *t = push(l, KOPI_T_OP, start);
    if (t) t->op = op;
    l->pos += n;
    return t != NULL;
}

/* Tokens up to the tag's end. */
static bool tag(struct kopi_jlexer *l, uint32_t start, bool is_variable)
{
    const char *close = is_variable ? "}}" : "%}";
    l->n_closers = 0;
    for (;;) {
        l->pos = skip_space(l, l->pos);
        if (l->pos >= l->n)
            return fail(l, start, is_variable ? "this '{{' is never closed" : "this '{%' is never closed");
        char c = l->src[l->pos], sign = c == '-' || (c == '+' && !is_variable) ? c : 0;
        if (!l->n_closers) {
            l->pos += sign != 0;
            if (at(l, close)) {
                if (!push(l, is_variable ? KOPI_T_VAR_END : KOPI_T_BLOCK_END, l->pos)) return false;
                l->pos += 2;
                after_tag(l, sign, !is_variable);
                return true;
            }
            l->pos -= sign != 0;
        }
        bool ok;
        if (is_name_char(c, true)) {
            uint32_t from = l->pos;
            while (l->pos < l->n && is_name_char(l->src[l->pos], false)) l->pos++;
            ok = push_text(l, KOPI_T_NAME, from, l->src + from, l->pos - from);
        } else if (c >= '0' && c <= '9') ok = number(l);
        else if (c == '\'' || c == '"') ok = string(l);
        else ok = operator(l);
        if (!ok) return false;
    }
}

/* Offset of the next "{{", "{%" or "{#", or the end. */
static uint32_t next_tag(const struct kopi_jlexer *l)
{
    for (uint32_t p = l->pos; p < l->n; p++) {
        const char *brace = memchr(l->src + p, '{', l->n - p);
        if (!brace || brace + 1 >= l->src + l->n) return l->n;
        p = (uint32_t)(brace - l->src);
        if (brace[1] == '{' || brace[1] == '%' || brace[1] == '#') return p;
    }
    return l->n;
}

bool kopi__jlex(struct kopi_jlexer *l)
{
    l->line_starting = true;
    while (l->pos < l->n) {
        uint32_t from = l->pos, start = next_tag(l), end;
        if (start == l->n) {
            if (!text(l, from, l->n)) return false;
            break;
        }
        char kind = l->src[start + 1], sign = start + 2 < l->n ? l->src[start + 2] : 0, raw_sign;
        if (sign != '-' && sign != '+') sign = 0;
        if (!text(l, from, trimmed_end(l, from, start, sign, kind == '{'))) return false;
        l->pos = start + 2 + (sign != 0);
        bool ok;
        if (kind == '#') ok = comment(l);
        else if (kind == '%' && lone_word(l, l->pos, "raw", &end, &raw_sign) && raw_sign != '+') {
            l->pos = end;
            after_tag(l, raw_sign, false);
            ok = raw(l, start);
        } else ok = push(l, kind == '{' ? KOPI_T_VAR_BEGIN : KOPI_T_BLOCK_BEGIN, start) && tag(l, start, kind == '{');
        if (!ok) return false;
    }
    return push(l, KOPI_T_END, l->n) != NULL;
}
