/* core/base/sys.h - what this process may use of the machine. [any] */
#ifndef KOPI_CORE_BASE_SYS_H
#define KOPI_CORE_BASE_SYS_H

#include <stdint.h>

/* Default number of threads: min(allowed CPUs, floor of the cgroup quota, physical cores), at least 1. `why` (may be
 * NULL) gets one phrase, e.g. "2 allowed CPUs, cgroup quota 1.5". */
unsigned kopi__default_threads(char *why, unsigned why_size);
unsigned kopi__allowed_cpus(void); /* sched_getaffinity, at least 1 */

/* Memory that this process could still take: the smallest of MemAvailable, the limits of the cgroup and its ancestors
 * less their use, and RLIMIT_AS; UINT64_MAX if nothing is known. */
uint64_t kopi__available_memory(void);

uint64_t kopi__now_ns(void); /* monotonic */

#endif
