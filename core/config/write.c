#include "config/write.h"

#include "base/utf8.h"

#include <string.h>

enum { COMMENT_COLUMN = 40 };

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static bool is_plain_safe(const char *t)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-";
    static const char *const nulls[] = {"null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        if (!strcmp(t, nulls[i])) return false;
    bool number = t[0] == '-' && t[1] >= '0' && t[1] <= '9';
    return *t && strspn(t, safe) == strlen(t) && (number || (*t != '-' && *t != '.')) && t[strlen(t) - 1] != '-';
}

/* Code points that YAML takes for line ends, or does not allow as they are. */
static bool needs_escape(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029 || cp == 0xfeff || cp >= 0xfffe;
}

/* One character at s into the text of a double-quoted scalar, or of a comment; returns its length. */
static size_t put_char(struct kopi_buf *out, const char *s, bool quoted)
{
    uint32_t cp;
    size_t len = kopi__utf8_decode(s, strnlen(s, 4), &cp);
    if (!len) {
        kopi__buf_str(out, "\xef\xbf\xbd"); /* not UTF-8: U+FFFD */
        return 1;
    }
    if (needs_escape(cp)) kopi__buf_fmt(out, "\\U%08X", (unsigned)cp);
    else if (quoted && strchr("\"\\", *s)) kopi__buf_fmt(out, "\\%c", *s);
    else if (quoted && *s == '$') kopi__buf_str(out, "$$");
    else kopi__buf_add(out, s, len);
    return len;
}

void kopi__yaml_scalar(struct kopi_buf *out, const char *text)
{
    if (is_plain_safe(text)) {
        kopi__buf_str(out, text);
        return;
    }
    kopi__buf_char(out, '"');
    while (*text) text += put_char(out, text, true);
    kopi__buf_char(out, '"');
}

/* ---- lines ------------------------------------------------------------------------------------------------------- */

/* Length of the first part of a path: "backend", or "[0]". */
static size_t part(const char *path) { return *path == '[' ? strcspn(path, "]") + 1 : strcspn(path, ".["); }

static const char *next(const char *path)
{
    path += part(path);
    return path + (*path == '.');
}

/* How many parts a and b have in common, not counting the last of b. */
static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    for (; *a && *b && *next(b); a = next(a), b = next(b), n++)
        if (part(a) != part(b) || strncmp(a, b, part(a))) break;
    return n;
}

static void indent(struct kopi__yaml_writer *w, size_t depth, bool item)
{
    kopi__buf_str(&w->buf, w->prefix);
    for (size_t i = 0; i < depth - item; i++) kopi__buf_str(&w->buf, "  ");
    if (item) kopi__buf_str(&w->buf, "- ");
}

void kopi__yaml_line(struct kopi__yaml_writer *w, const char *path, const char *value, const char *comment, bool off)
{
    size_t known = common(w->last, path), depth = 0, start;
    bool item = false; /* the next line is the first of a list's item */
    const char *p = path;
    for (; *next(p); p = next(p), depth++) {
        if (depth < known) continue;
        if (*p == '[') {
            item = true;
            continue;
        }
        if (!depth) kopi__buf_str(&w->buf, w->buf.len ? "\n" : "");
        indent(w, depth, item);
        kopi__buf_fmt(&w->buf, "%.*s:\n", (int)part(p), p);
        item = false;
    }
    if (!depth && strchr(w->last, '.')) kopi__buf_char(&w->buf, '\n');
    start = w->buf.len;
    indent(w, depth, item);
    kopi__buf_fmt(&w->buf, "%s%s: %s", off ? "# " : "", p, value);
    size_t used = w->buf.len - start;
    kopi__buf_fmt(&w->buf, "%*s# ", used < COMMENT_COLUMN ? (int)(COMMENT_COLUMN - used) : 1, "");
    while (*comment) comment += put_char(&w->buf, comment, false);
    kopi__buf_char(&w->buf, '\n');
    strcpy(w->last, path);
}
