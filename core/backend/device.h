/* core/backend/device.h - a backend whose memory the host can't see: buffers by handle, results read back. */
#ifndef KOPI_CORE_BACKEND_DEVICE_H
#define KOPI_CORE_BACKEND_DEVICE_H

#include "backend/instance.h"

/* Its device is not KOPI_DEVICE_HOST_VISIBLE. */
static inline bool kopi__device_is_apart(const struct kopi_instance *i)
{
    return !(i->device.flags & KOPI_DEVICE_HOST_VISIBLE);
}
/* Such a backend takes the whole program, imports the weights and has buffers. KOPI_E_BACKEND names what it lacks.
 * [load] */
kopi_status kopi__device_check(const struct kopi_instance *i, kopi_error *err);

/* what: for the message. [load] */
kopi_status kopi__device_alloc(struct kopi_instance *i, uint64_t bytes, const char *what, void **handle,
                               kopi_error *err);
void kopi__device_free(struct kopi_instance *i, void *handle); /* NULL allowed */
/* Within one buffer. Between two runs. */
kopi_status kopi__device_copy(struct kopi_instance *i, void *handle, uint64_t dst, uint64_t src, uint64_t n,
                              const char *what, kopi_error *err);

/* Buffers for the rows of a run's outputs; they grow as larger steps come. [one thread at a time] */
struct kopi_outputs;
kopi_status kopi__outputs_new(struct kopi_instance *i, struct kopi_outputs **out, kopi_error *err);
void kopi__outputs_free(struct kopi_outputs *o); /* NULL allowed */
/* The run with its outputs in buffers instead of the host's memory; *theirs is valid until the next call. */
kopi_status kopi__outputs_place(struct kopi_outputs *o, const kopi_run *run, const kopi_run **theirs, kopi_error *err);
/* After that run: its rows to where `run` wants them. */
kopi_status kopi__outputs_read(struct kopi_outputs *o, const kopi_run *run, kopi_error *err);

#endif
