/* conformance/process.h - the state of this process that a plugin must leave alone. */
#ifndef KOPI_CF_PROCESS_H
#define KOPI_CF_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cf_process {
    int threads, files;
    void *handlers[65]; /* of signals */
    uint64_t floats;    /* rounding, denormals, exception masks */
    unsigned mask;      /* umask */
    size_t env;
    char folder[512];
};
void cf_process_look(struct cf_process *p);
/* What is different now: "3 threads, before it were 2"; NULL: nothing. Fewer threads are none: one that has just ended
 * may have been counted before. The floating-point state is left out. */
const char *cf_process_change(const struct cf_process *before, char *text, size_t n);
/* What is different in the floating-point state; NULL: nothing. */
const char *cf_floats_change(const struct cf_process *before, char *text, size_t n);

#endif
