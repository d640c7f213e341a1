/* cli/profile_report.h - what `kopi profile` prints: a table or JSON, one part per phase of the run. One thread. */
#ifndef KOPI_CLI_PROFILE_REPORT_H
#define KOPI_CLI_PROFILE_REPORT_H

#include "backend/trace.h"

struct profile_phase {
    const char *name;  /* "prompt" */
    const kopi_program *program;
    struct kopi_trace_result r;
    uint64_t wall_ns;  /* of the phase; what is more than r.step_ns is the core's, between steps */
};

/* false: no memory. */
bool profile_print_table(const struct profile_phase *ph);
bool profile_print_json(const struct profile_phase *ph, int n_before); /* n_before: phases printed so far */

#endif
