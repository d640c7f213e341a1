#include "quiet.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void cf_quiet_begin(struct cf_quiet *q)
{
    fflush(NULL);
    q->out = dup(STDOUT_FILENO);
    q->err = dup(STDERR_FILENO);
    q->file = memfd_create("quiet", MFD_CLOEXEC);
    if (q->out < 0 || q->err < 0 || q->file < 0) abort(); /* a test tool */
    dup2(q->file, STDOUT_FILENO);
    dup2(q->file, STDERR_FILENO);
}

size_t cf_quiet_end(struct cf_quiet *q, char *text, size_t n)
{
    fflush(NULL);
    dup2(q->out, STDOUT_FILENO);
    dup2(q->err, STDERR_FILENO);
    off_t size = lseek(q->file, 0, SEEK_END);
    ssize_t got = pread(q->file, text, n - 1, 0);
    text[got > 0 ? got : 0] = 0;
    close(q->out);
    close(q->err);
    close(q->file);
    return size > 0 ? (size_t)size : 0;
}
