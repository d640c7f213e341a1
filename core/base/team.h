/* core/base/team.h - the process's thread team: one set of workers that every backend borrows. */
#ifndef KOPI_CORE_BASE_TEAM_H
#define KOPI_CORE_BASE_TEAM_H

#include <kopi/backend.h>
#include <kopi/kopi.h>

struct kopi_team_pool;

/* n >= 1 workers, the calling thread of kopi__team_run included. Workers spin a few microseconds for the next call,
 * then sleep on a futex. */
kopi_status kopi__team_new(unsigned n, struct kopi_team_pool **out, kopi_error *err);
void kopi__team_free(struct kopi_team_pool *t); /* NULL allowed; no call may be running */
unsigned kopi__team_size(const struct kopi_team_pool *t);

/* Runs fn(arg, ith, nth, team) once on each worker and returns the first non-OK status by rank. A second caller waits
 * until the first is done; a call from inside fn is KOPI_E_INVALID. Each worker starts with the default floating-point
 * state (round to nearest, denormals kept). nth may be limited: limit 0 means all. */
kopi_status kopi__team_run(struct kopi_team_pool *t, kopi_team_fn fn, void *arg, unsigned limit);

/* All workers of the running call meet here; every one gets the first non-OK status given by rank. */
kopi_status kopi__team_barrier(kopi_team *t, kopi_status mine);

#endif
