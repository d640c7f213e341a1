#include "outfile.h"

#include "cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const char *path) { return cli_error(EXIT_RUN, "%s: %s", path, strerror(errno)); }

/* A temporary name in the directory of the file, not longer than any other; NULL: no memory. */
static char *temporary(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name;
    int folder = slash ? (int)(slash + 1 - path) : 0;
    return asprintf(&name, "%.*s.kopi-%ld.tmp", folder, path, (long)getpid()) < 0 ? NULL : name;
}

/* The file that becomes `path`, with the permissions of the one that is there. */
static FILE *open_temporary(const char *temp, const struct stat *old)
{
    unlink(temp); /* of a process that was killed */
    FILE *f = fopen(temp, "wxe");
    if (f && old) fchmod(fileno(f), old->st_mode & 0777); /* not every file system can */
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
    struct stat st;
    bool there = lstat(path, &st) == 0;
    if (!there || S_ISREG(st.st_mode)) {
        o->temp = temporary(path);
        if (!o->temp) return cli_error(EXIT_RUN, "out of memory");
        o->f = open_temporary(o->temp, there ? &st : NULL);
    } else {
        o->f = fopen(path, "we");
    }
    return o->f ? 0 : failed(path);
}

int outfile_failed(const struct outfile *o) { return failed(o->path); }

int outfile_close(struct outfile *o, int code)
{
    if (o->f == stdout) {
        if (!code) code = cli_finish_output();
    } else if (o->f) {
        if (!code && fflush(o->f)) code = failed(o->path);
        if (!code && o->temp && fsync(fileno(o->f))) code = failed(o->path);
        if (fclose(o->f) && !code) code = failed(o->path);
        if (!code && o->temp && rename(o->temp, o->path)) code = failed(o->path);
    }
    if (code && o->temp) unlink(o->temp);
    free(o->temp);
    free(o->path);
    *o = (struct outfile){0};
    return code;
}
