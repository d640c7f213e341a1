#include "outfile.h"

#include "cli.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int failed(const char *path) { return cli_error(EXIT_RUN, "%s: %s", path, strerror(errno)); }

/* A device or pipe is written directly; everything else goes through a temporary name in the same directory. */
static bool direct(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
}

int outfile_open(struct outfile *o, const char *path)
{
    *o = (struct outfile){.path = strdup(path)};
    if (!o->path) return cli_error(EXIT_RUN, "out of memory");
    if (!strcmp(path, "-")) {
        o->f = stdout;
        return 0;
    }
    const char *open_as = path;
    if (!direct(path)) {
        if (asprintf(&o->temp, "%s.%ld.tmp", path, (long)getpid()) < 0) {
            o->temp = NULL;
            return cli_error(EXIT_RUN, "out of memory");
        }
        open_as = o->temp;
    }
    o->f = fopen(open_as, "we");
    return o->f ? 0 : failed(open_as);
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
