#include "outfile.h"

#include "cli.h"
#include "inputs.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_LINKS = 40, TRIES = 16 };

static char *_Atomic unfinished; /* the temporary file, while it is written */

static int failed(const char *path) { return cli_error(EXIT_RUN, "%s: %s", path, strerror(errno)); }

/* ---- where it goes ----------------------------------------------------------------------------------------------- */

/* Bytes of the folder in a path, with its slash. */
static int folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (int)(slash + 1 - path) : 0;
}

/* /proc/self/fd/1 and its like lead to what is open already, whatever name they show. */
static bool in_proc(const struct stat *link)
{
    struct stat proc;
    return !stat("/proc/self", &proc) && proc.st_dev == link->st_dev;
}

static char *link_target(const char *link)
{
    char to[PATH_MAX], *path;
    ssize_t n = readlink(link, to, sizeof to);
    if (n < 0) return NULL;
    return asprintf(&path, "%.*s%.*s", to[0] == '/' ? 0 : folder_of(link), link, (int)n, to) < 0 ? NULL : path;
}

/* Where the symbolic links of path end, if something is there or not. NULL and errno: no memory, too many links. */
static char *follow(const char *path)
{
    struct stat st;
    char *at = strdup(path);
    for (int n = 0; at && !lstat(at, &st) && S_ISLNK(st.st_mode) && !in_proc(&st); n++) {
        char *next = n < MOST_LINKS ? link_target(at) : NULL;
        if (n == MOST_LINKS) errno = ELOOP;
        free(at);
        at = next;
    }
    return at;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

/* A file of a name that nobody has, in the folder of the target; *name gets it. */
static int create_beside(const char *target, char **name)
{
    for (int i = 0; i < TRIES; i++) {
        unsigned long long random;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random) return -1;
        if (asprintf(name, "%.*s.kopi-%016llx.tmp", folder_of(target), target, random) < 0) {
            *name = NULL;
            return -1;
        }
        int fd = open(*name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0) return fd;
        free(*name);
        *name = NULL;
        if (errno != EEXIST) return -1;
    }
    return -1;
}

/* The file that becomes the target, with the permissions of the one that is there (NULL: none is). */
static FILE *open_temporary(struct outfile *o, const struct stat *old)
{
    if (old && faccessat(AT_FDCWD, o->target, W_OK, AT_EACCESS)) return NULL;
    int fd = create_beside(o->target, &o->temp);
    if (fd < 0) return NULL;
    atomic_store(&unfinished, o->temp);
    if (old) fchmod(fd, old->st_mode & 0777); /* not every file system can */
    FILE *f = fdopen(fd, "w");
    if (!f) close(fd);
    return f;
}

int outfile_open(struct outfile *o, const char *path)
{
    *o = (struct outfile){.path = strdup(path)};
    if (!o->path) return cli_error(EXIT_RUN, "out of memory");
    if (!*path) return cli_error(EXIT_USAGE, "the name of the output file is empty");
    if (!strcmp(path, "-")) {
        o->f = stdout;
        return 0;
    }
    int code = cli_check_output(path);
    if (code) return code;
    o->target = follow(path);
    if (!o->target) return failed(path);
    struct stat st;
    bool there = !lstat(o->target, &st);
    if (!there || S_ISREG(st.st_mode)) o->f = open_temporary(o, there ? &st : NULL);
    else o->f = fopen(o->target, "we");
    return o->f ? 0 : failed(path);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

int outfile_failed(const struct outfile *o) { return failed(o->path); }

void outfile_abandon(void)
{
    const char *temp = atomic_load(&unfinished);
    if (temp) unlink(temp);
}

int outfile_close(struct outfile *o, int code)
{
    if (o->f == stdout) {
        if (!code) code = cli_finish_output();
    } else if (o->f) {
        if (!code && fflush(o->f)) code = failed(o->path);
        if (!code && o->temp && fsync(fileno(o->f))) code = failed(o->path);
        if (fclose(o->f) && !code) code = failed(o->path);
        if (!code && o->temp && rename(o->temp, o->target)) code = failed(o->path);
    }
    if (code && o->temp) unlink(o->temp);
    atomic_store(&unfinished, NULL);
    free(o->temp);
    free(o->target);
    free(o->path);
    *o = (struct outfile){0};
    return code;
}
