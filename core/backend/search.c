#include "backend/search.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sha256.h"
#include <dirent.h>
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Trusted: given on the command line or as an explicit path, so that a build tree can run; then owner and mode only
 * warn. */
typedef kopi_status (*visit_fn)(void *ctx, const char *dir, bool trusted);

static kopi_status each_in_list(const char *const *dirs, bool trusted, visit_fn visit, void *ctx)
{
    kopi_status s = KOPI_E_RANGE;
    for (; dirs && *dirs && s == KOPI_E_RANGE; dirs++) s = visit(ctx, *dirs, trusted);
    return s;
}

static kopi_status each_in_path(const char *list, visit_fn visit, void *ctx)
{
    kopi_status s = KOPI_E_RANGE;
    char *copy = kopi__strdup(list), *save = NULL;
    for (char *dir = copy ? strtok_r(copy, ":", &save) : NULL; dir && s == KOPI_E_RANGE;
         dir = strtok_r(NULL, ":", &save))
        s = visit(ctx, dir, false);
    kopi__free(copy);
    return s;
}

/* Visits the directories in order until one does not answer KOPI_E_RANGE ("not here"). */
static kopi_status each_dir(const struct kopi_plugin_search *s, visit_fn visit, void *ctx)
{
    const char *env = secure_getenv("KOPI_PLUGIN_PATH");
    kopi_status r = each_in_list(s->cli_dirs, true, visit, ctx);
    if (r == KOPI_E_RANGE) r = each_in_list(s->dirs, false, visit, ctx);
    if (r == KOPI_E_RANGE && env) r = each_in_path(env, visit, ctx);
    if (r == KOPI_E_RANGE) r = visit(ctx, KOPI_BACKENDDIR, false);
    return r;
}

static bool trusted_owner(const struct stat *st) { return st->st_uid == 0 || st->st_uid == geteuid(); }

/* What is wrong with owner and mode of a file or directory, or NULL. */
static const char *untrusted(const struct stat *st)
{
    if (!trusted_owner(st)) return "belongs to another user";
    if (st->st_mode & S_IWOTH && !(S_ISDIR(st->st_mode) && st->st_mode & S_ISVTX)) return "is writable for everybody";
    if (st->st_mode & S_IWGRP && st->st_gid != getegid() && st->st_gid != 0) return "is writable for another group";
    return NULL;
}

static kopi_status check_rights(const char *path, const struct stat *file, bool trusted, kopi_error *err)
{
    char *copy = kopi__strdup(path);
    if (!copy) return kopi__nomem(err, "plugin path");
    struct stat dir;
    const char *why = untrusted(file), *what = "it";
    if (!why && stat(dirname(copy), &dir) == 0 && (why = untrusted(&dir))) what = "its directory";
    kopi__free(copy);
    if (!why) return KOPI_OK;
    if (!trusted)
        return kopi__fail(err, KOPI_E_BACKEND,
                          "%s: refused: %s %s; fix its owner and mode, or name it with --plugin-dir", path, what, why);
    kopi__log(KOPI_LOG_WARN, "%s: %s %s", path, what, why);
    return KOPI_OK;
}

static kopi_status check_file(const struct kopi_plugin_search *s, const char *path, bool trusted,
                              struct kopi_plugin_file *out, kopi_error *err)
{
    struct stat st;
    char hex[65];
    if (stat(path, &st))
        return kopi__fail(err, errno == ENOENT || errno == ENOTDIR ? KOPI_E_RANGE : KOPI_E_BACKEND, "%s: %s", path,
                          strerror(errno));
    if (!S_ISREG(st.st_mode)) return kopi__fail(err, KOPI_E_BACKEND, "%s: is not a regular file", path);
    if (access(path, R_OK)) return kopi__fail(err, KOPI_E_BACKEND, "%s: %s", path, strerror(errno));
    kopi_status r = check_rights(path, &st, trusted, err);
    if (r == KOPI_OK && s->sha256) {
        r = kopi__sha256_file(path, hex, NULL, NULL, err);
        if (r == KOPI_OK && strcasecmp(hex, s->sha256))
            r = kopi__fail(err, KOPI_E_BACKEND, "%s: SHA-256 is %s, the configuration says %s", path, hex, s->sha256);
    }
    if (r != KOPI_OK) return r;
    if (!(out->path = kopi__strdup(path))) return kopi__nomem(err, "plugin path");
    out->dev = st.st_dev;
    out->ino = st.st_ino;
    return KOPI_OK;
}

struct find {
    const struct kopi_plugin_search *s;
    struct kopi_plugin_file *out;
    kopi_error *err;
    struct kopi_buf tried;
};

static kopi_status try_dir(void *ctx, const char *dir, bool trusted)
{
    struct find *f = ctx;
    if (dir[0] != '/' && !trusted) {
        kopi__buf_fmt(&f->tried, "%s%s (not absolute)", f->tried.len ? ", " : "", dir);
        return KOPI_E_RANGE;
    }
    char *path = kopi__asprintf("%s/kopi-%s.so", dir, f->s->name);
    if (!path) return kopi__nomem(f->err, "plugin path");
    kopi_error e;
    kopi_status r = check_file(f->s, path, trusted, f->out, &e);
    if (r == KOPI_E_RANGE)
        kopi__buf_fmt(&f->tried, "%s%s", f->tried.len ? ", " : "", path);
    else if (r != KOPI_OK)
        kopi__fail(f->err, r, "%s", e.text);
    kopi__free(path);
    return r;
}

bool kopi__plugin_name_ok(const char *name)
{
    size_t n = strlen(name);
    return n >= 1 && n <= 32 && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") == n;
}

kopi_status kopi__plugin_find(const struct kopi_plugin_search *s, struct kopi_plugin_file *out, kopi_error *err)
{
    *out = (struct kopi_plugin_file){0};
    if (s->path) {
        if (!strchr(s->path, '/'))
            return kopi__fail(err, KOPI_E_BACKEND, "backend.path \"%s\" must be a path with a slash", s->path);
        kopi_status r = check_file(s, s->path, true, out, err);
        return r == KOPI_E_RANGE ? kopi__fail(err, KOPI_E_BACKEND, "%s: no such file", s->path) : r;
    }
    if (!s->name || !kopi__plugin_name_ok(s->name))
        return kopi__fail(err, KOPI_E_BACKEND, "backend name \"%s\" is not made of 1 to 32 of a-z 0-9 _ -",
                          s->name ? s->name : "");
    struct find f = {s, out, err, KOPI_BUF_INIT};
    kopi_status r = each_dir(s, try_dir, &f);
    if (r == KOPI_E_RANGE)
        r = kopi__fail(err, KOPI_E_BACKEND, "backend \"%s\" was not found; tried %s; see kopi backends, --plugin-dir",
                       s->name, f.tried.data ? f.tried.data : "nothing");
    kopi__buf_free(&f.tried);
    return r;
}

/* ---- listing ----------------------------------------------------------------------------------------------------- */

struct each { void (*fn)(void *ctx, const char *name, const char *path); void *ctx; };

static kopi_status list_dir(void *ctx, const char *dir, bool trusted)
{
    struct each *e = ctx;
    struct dirent **names;
    int n = dir[0] == '/' || trusted ? scandir(dir, &names, NULL, alphasort) : -1;
    for (int i = 0; i < n; i++) {
        const char *file = names[i]->d_name;
        size_t len = strlen(file);
        char name[64];
        if (len > 8 && len - 8 < sizeof name && !strncmp(file, "kopi-", 5) && !strcmp(file + len - 3, ".so")) {
            memcpy(name, file + 5, len - 8);
            name[len - 8] = 0;
            char *path = kopi__asprintf("%s/%s", dir, file);
            if (path && kopi__plugin_name_ok(name)) e->fn(e->ctx, name, path);
            kopi__free(path);
        }
        free(names[i]);
    }
    if (n >= 0) free(names);
    return KOPI_E_RANGE; /* go on */
}

void kopi__plugin_each(const struct kopi_plugin_search *s, void (*fn)(void *ctx, const char *name, const char *path),
                       void *ctx)
{
    struct each e = {fn, ctx};
    each_dir(s, list_dir, &e);
}
