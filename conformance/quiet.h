/* conformance/quiet.h - what a piece of code writes to stdout and stderr. One at a time. */
#ifndef KOPI_CF_QUIET_H
#define KOPI_CF_QUIET_H

#include <stddef.h>

struct cf_quiet {
    int out, err, file;
};
void cf_quiet_begin(struct cf_quiet *q);
/* Bytes written since; the first of them, up to n - 1, in text. */
size_t cf_quiet_end(struct cf_quiet *q, char *text, size_t n);

#endif
