#include "npy.h"

#include "cli.h"
#include <errno.h>
#include <fcntl.h>
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

/* Version 1.0 of the format: magic, version, length and text of the header, padded to 64 bytes (numpy.lib.format). */
static int write_header(struct npy *n, uint64_t rows, uint64_t columns)
{
    char text[192], header[256];
    int len = snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu, %llu), }",
                       (unsigned long long)rows, (unsigned long long)columns);
    int total = (10 + len + 1 + 63) / 64 * 64, body = total - 10;
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)(body & 255);
    header[9] = (char)(body >> 8);
    memset(header + 10, ' ', (size_t)body);
    memcpy(header + 10, text, (size_t)len);
    header[total - 1] = '\n';
    return fwrite(header, 1, (size_t)total, n->f) == (size_t)total ? 0 : failed(n->path);
}

int npy_open(struct npy *n, const char *path, uint64_t rows, uint64_t columns)
{
    *n = (struct npy){.path = strdup(path)};
    if (!n->path) return cli_error(EXIT_RUN, "out of memory");
    if (!strcmp(path, "-")) {
        n->f = stdout;
        return write_header(n, rows, columns);
    }
    const char *open_as = path;
    if (!direct(path)) {
        if (asprintf(&n->temp, "%s.%ld.tmp", path, (long)getpid()) < 0) {
            n->temp = NULL;
            return cli_error(EXIT_RUN, "out of memory");
        }
        open_as = n->temp;
    }
    n->f = fopen(open_as, "we");
    return n->f ? write_header(n, rows, columns) : failed(open_as);
}

int npy_row(struct npy *n, const float *row, uint64_t columns)
{
    return fwrite(row, sizeof *row, columns, n->f) == columns ? 0 : failed(n->path);
}

int npy_close(struct npy *n, int code)
{
    if (n->f == stdout) {
        if (!code) code = cli_finish_output();
    } else if (n->f) {
        if (!code && fflush(n->f)) code = failed(n->path);
        if (!code && n->temp && fsync(fileno(n->f))) code = failed(n->path);
        if (fclose(n->f) && !code) code = failed(n->path);
        if (!code && n->temp && rename(n->temp, n->path)) code = failed(n->path);
    }
    if (code && n->temp) unlink(n->temp);
    free(n->temp);
    free(n->path);
    return code;
}
