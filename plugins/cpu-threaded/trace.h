/* plugins/cpu-threaded/trace.h - a step as a span of the host's trace. */
#ifndef KT_TRACE_H
#define KT_TRACE_H

#include "plan.h"

void kt_trace_step(const struct kt_worker *w, const struct kt_step *s,
                   uint64_t begin); /* [worker] w->trace is not NULL */

#endif
