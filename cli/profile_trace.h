/* cli/profile_trace.h - spans as a file for chrome://tracing and ui.perfetto.dev (the Trace Event Format of Chromium).
 * One thread. */
#ifndef KOPI_CLI_PROFILE_TRACE_H
#define KOPI_CLI_PROFILE_TRACE_H

#include "outfile.h"
#include "profile_report.h"

struct profile_trace {
    struct outfile out; /* out.f NULL: no file is wanted */
    bool any;           /* an event is in it */
    uint64_t start;     /* time of the first phase: 0 of the file */
};

/* All return 0 or an exit code after a message; close also after a failed open, with the run's exit code so far. */
int profile_trace_open(struct profile_trace *t, const char *path);
int profile_trace_add(struct profile_trace *t, const struct profile_phase *ph, uint64_t began_ns);
int profile_trace_close(struct profile_trace *t, int code);

#endif
