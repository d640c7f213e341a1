#include "talk.h"

#include "base/utf8.h"
#include "outfile.h"
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static char *copy_text(const char *s, size_t n)
{
    char *copy = n < SIZE_MAX / 3 ? malloc(3 * n + 1) : NULL, *to = copy;
    for (size_t i = 0, len; copy && i < n; i += len) {
        uint32_t cp;
        len = kopi__utf8_decode(s + i, n - i, &cp);
        bool good = len && cp;
        if (!good) len = 1;
        if (good) memcpy(to, s + i, len), to += len;
        else to += kopi__utf8_encode(0xfffd, to);
    }
    if (copy) *to = 0;
    return copy;
}

bool talk_add(struct talk *t, const char *role, const char *content, size_t n)
{
    kopi_message *more = realloc(t->messages, (t->n + 1) * sizeof *more);
    char *copy = copy_text(content, n);
    if (more) t->messages = more;
    if (!more || !copy) {
        free(copy);
        cli_error(EXIT_RUN, "out of memory");
        return false;
    }
    t->messages[t->n++] = (kopi_message){role, copy};
    return true;
}

void talk_cut(struct talk *t, size_t n)
{
    while (t->n > n) free((char *)(uintptr_t)t->messages[--t->n].content);
    if (n) return;
    free(t->messages);
    t->messages = NULL;
}

bool talk_ends_with(const struct talk *t, const char *role)
{
    return t->n && !strcmp(t->messages[t->n - 1].role, role);
}

kopi_message talk_take(struct talk *t, const char *role)
{
    return talk_ends_with(t, role) ? t->messages[--t->n] : (kopi_message){0};
}

void talk_give(struct talk *t, kopi_message m) { t->messages[t->n++] = m; }
void talk_drop(kopi_message m) { free((char *)(uintptr_t)m.content); }

int talk_save(const struct talk *t, const char *path)
{
    struct outfile out;
    json_t *all = json_array();
    int code = all ? 0 : cli_error(EXIT_RUN, "out of memory");
    for (size_t i = 0; i < t->n && !code; i++)
        if (json_array_append_new(
                all, json_pack("{s:s, s:s}", "role", t->messages[i].role, "content", t->messages[i].content)))
            code = cli_error(EXIT_RUN, "out of memory");
    if (!code) {
        code = outfile_open(&out, path);
        if (!code && (json_dumpf(all, out.f, JSON_INDENT(2)) || fputc('\n', out.f) == EOF)) code = outfile_failed(&out);
        code = outfile_close(&out, code);
    }
    json_decref(all);
    return code;
}

/* Our own text of a role, which outlives the file that named it; NULL: there is no such role. */
static const char *role_of(const char *name)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    for (size_t i = 0; name && i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(name, roles[i])) return roles[i];
    return NULL;
}

static int read_messages(struct talk *t, const json_t *all, const char *path)
{
    size_t i;
    const json_t *one;
    if (!json_is_array(all)) return cli_error(EXIT_RUN, "%s: wanted an array of messages", path);
    json_array_foreach(all, i, one) {
        const char *role = role_of(json_string_value(json_object_get(one, "role"))),
                   *text = json_string_value(json_object_get(one, "content"));
        if (!role || !text)
            return cli_error(
                EXIT_RUN,
                "%s: message %zu: wanted \"role\": \"system\", \"user\" or \"assistant\" and a text as \"content\"",
                path, i + 1);
        if (!strcmp(role, "system") && i)
            return cli_error(EXIT_RUN, "%s: message %zu: only the first may be of the system", path, i + 1);
        if (!talk_add(t, role, text, strlen(text))) return EXIT_RUN;
    }
    return 0;
}

int talk_load(struct talk *t, const char *path)
{
    struct talk fresh = {0};
    size_t n;
    json_error_t e;
    char *text = cli_read_file(path, &n);
    if (!text) return EXIT_RUN;
    json_t *all = json_loadb(text, n, JSON_REJECT_DUPLICATES, &e);
    free(text);
    int code =
        all ? read_messages(&fresh, all, path) : cli_error(EXIT_RUN, "%s:%d:%d: %s", path, e.line, e.column, e.text);
    json_decref(all);
    if (code) {
        talk_cut(&fresh, 0);
        return code;
    }
    talk_cut(t, 0);
    *t = fresh;
    return 0;
}
