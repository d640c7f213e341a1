/* Configuration files: kopi_config_load, kopi_config_load_standard. */
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "config/view.h"
#include "config/yaml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Keeps the names in "${KOPI_X}": such a variable is read, though no key has it. */
static void note_references(kopi_config *c, const char *text, size_t n)
{
    static const char name_bytes[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789", begin[] = "${KOPI_";
    for (const char *p = text; (p = memmem(p, n - (size_t)(p - text), begin, sizeof begin - 1));) {
        p += 2;
        size_t len = strspn(p, name_bytes);
        kopi__buf_fmt(&c->references, " %.*s ", (int)(len < 80 ? len : 80), p);
    }
}

static kopi_status load_text(kopi_config *c, const char *name, const char *dir, const char *text, size_t n, bool *empty,
                             kopi_error *err)
{
    struct kopi__document doc;
    kopi_status status = kopi__yaml_read(name, dir, text, n, &doc, err);
    if (status) return status;
    *empty = doc.empty;
    note_references(c, text, n);
    return kopi__config_merge(c, &doc, err);
}

kopi_status kopi__config_load_text(kopi_config *c, const char *name, const char *dir, const char *text, size_t n,
                                   kopi_error *err)
{
    bool empty;
    kopi_status status = load_text(c, name, dir, text, n, &empty, err);
    if (!status && empty) return kopi__fail(err, KOPI_E_CONFIG, "%s: there is no value in it", name);
    return status;
}

/* Reads a whole file, at most one byte more than is allowed. */
static kopi_status read_file(const char *path, int fd, struct kopi_buf *b, kopi_error *err)
{
    struct stat st;
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) return kopi__fail(err, KOPI_E_CONFIG, "%s: is a directory", path);
    while (b->len <= KOPI__CONFIG_FILE_MAX) {
        if (!kopi__buf_reserve(b, 65536)) return kopi__nomem(err, "a configuration file");
        ssize_t n = read(fd, b->data + b->len, 65536);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return kopi__fail(err, KOPI_E_CONFIG, "%s: cannot be read: %s", path, strerror(errno));
        if (!n) break;
        b->len += (size_t)n;
    }
    return KOPI_OK;
}

/* The folder of a file, absolute, so that what is relative to it stays right. NULL: memory is short. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) + (slash == path) : 0;
    if (path[0] == '/') return kopi__strndup(path, n);
    char *cwd = getcwd(NULL, 0);
    if (!cwd && errno == ENOMEM) return NULL;
    char *dir = !cwd ? kopi__strndup(path, n) : n ? kopi__asprintf("%s/%.*s", cwd, (int)n, path) : kopi__strdup(cwd);
    free(cwd);
    return dir;
}

/* optional: a file that is not there, or says nothing, is fine. */
static kopi_status load_file(kopi_config *c, const char *path, bool optional, kopi_error *err)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    bool empty = false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); /* does not wait for the writer of a FIFO */
    if (fd < 0 && optional && (errno == ENOENT || errno == ENOTDIR)) return KOPI_OK;
    if (fd < 0) return kopi__fail(err, KOPI_E_CONFIG, "%s: cannot be opened: %s", path, strerror(errno));
    fcntl(fd, F_SETFL, 0);
    kopi_status status = read_file(path, fd, &b, err);
    close(fd);
    if (!status) {
        char *dir = folder_of(path);
        status = dir ? load_text(c, path, dir, b.data ? b.data : "", b.len, &empty, err) : kopi__nomem(err, "a path");
        kopi__free(dir);
    }
    kopi__buf_free(&b);
    if (!status && empty && !optional) return kopi__fail(err, KOPI_E_CONFIG, "%s: there is no value in it", path);
    return status;
}

kopi_status kopi_config_load(kopi_config *c, const char *path, kopi_error *err)
{
    return load_file(c, path, false, err);
}

kopi_status kopi_config_load_standard(kopi_config *c, kopi_error *err)
{
    kopi_status status = load_file(c, "/etc/kopi/config.yaml", true, err);
    if (status) return status;
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char *path;
    if (xdg && xdg[0] == '/') path = kopi__asprintf("%s/kopi/config.yaml", xdg); /* XDG: only absolute ones count */
    else if (home && home[0] == '/') path = kopi__asprintf("%s/.config/kopi/config.yaml", home);
    else return KOPI_OK;
    if (!path) return kopi__nomem(err, "a path");
    status = load_file(c, path, true, err);
    kopi__free(path);
    return status;
}
