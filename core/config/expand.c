#include "config/expand.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char name_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";

/* Reads the reference behind "${" at s, appends its value and returns what follows the '}', or NULL with err filled. */
static const char *reference(const char *s, struct kopi_buf *out, kopi_error *err)
{
    char name[80];
    size_t n = strspn(s, name_bytes);
    const char *end = strchr(s, '}'), *fallback = !strncmp(s + n, ":-", 2) ? s + n + 2 : NULL;
    if (!n || n >= sizeof name || (*s >= '0' && *s <= '9') || !end || (!fallback && s + n != end)) {
        kopi__fail(err, KOPI_E_CONFIG, "\"${%.40s\" is not ${VAR} or ${VAR:-default}; write $${ for the characters ${",
                   s);
        return NULL;
    }
    if (fallback && memchr(fallback, '$', (size_t)(end - fallback))) {
        kopi__fail(err, KOPI_E_CONFIG, "\"${%.40s\": a default takes no other variable; it is text up to the next }",
                   s);
        return NULL;
    }
    memcpy(name, s, n);
    name[n] = 0;
    const char *value = getenv(name);
    if (fallback && (!value || !*value)) kopi__buf_add(out, fallback, (size_t)(end - fallback));
    else if (value) kopi__buf_add(out, value, strnlen(value, KOPI__VALUE_MAX + 1));
    else {
        kopi__fail(err, KOPI_E_CONFIG, "the environment variable %s is not set; ${%s:-default} would give it a default",
                   name, name);
        return NULL;
    }
    return end + 1;
}

kopi_status kopi__expand(const char *text, char **out, bool *used, kopi_error *err)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    *used = false;
    kopi__buf_reserve(&b, strlen(text));
    for (const char *s = text; *s;) {
        size_t n = strcspn(s, "$");
        kopi__buf_add(&b, s, n);
        s += n;
        if (s[0] == '$' && s[1] == '{') {
            *used = true;
            s = reference(s + 2, &b, err);
            if (!s) goto bad;
        } else if (*s) {
            kopi__buf_char(&b, '$');
            s += s[1] == '$' ? 2 : 1;
        }
        if (b.len > KOPI__VALUE_MAX) {
            kopi__fail(err, KOPI_E_CONFIG, "the value is longer than %d bytes", KOPI__VALUE_MAX);
            goto bad;
        }
    }
    *out = b.failed ? NULL : b.data ? kopi__buf_take(&b) : kopi__strdup("");
    if (*out) return KOPI_OK;
    kopi__buf_free(&b);
    return kopi__nomem(err, "a configuration value");
bad:
    kopi__buf_free(&b);
    return KOPI_E_CONFIG;
}

kopi_status kopi__resolve_path(const char *path, const char *dir, char **out, kopi_error *err)
{
    if (path[0] == '~') {
        const char *home = getenv("HOME");
        if (path[1] && path[1] != '/')
            return kopi__fail(err, KOPI_E_CONFIG, "\"%.80s\": only ~/ is understood; a file of this name is ./%.80s",
                              path, path);
        if (!home || !*home) return kopi__fail(err, KOPI_E_CONFIG, "\"%.80s\": HOME is not set", path);
        *out = kopi__asprintf("%s%s", home, path + 1);
    } else if (path[0] != '/' && dir && *dir) {
        *out = kopi__asprintf("%s%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/", path);
    } else {
        *out = kopi__strdup(path);
    }
    return *out ? KOPI_OK : kopi__nomem(err, "a path");
}
