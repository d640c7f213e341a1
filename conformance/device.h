/* conformance/device.h - a device whose memory the host can't see: the operands of a program in buffers of the backend.
 */
#ifndef KOPI_CF_DEVICE_H
#define KOPI_CF_DEVICE_H

#include "program.h"

struct cf_device {
    bool apart; /* false: host memory, and nothing below does anything */
    void *arena, *pages, *rows; /* activations at their offsets; KV pages; the output */
};

/* After the weights were imported: buffers for the rest, all bytes CF_FILL, and handles instead of addresses. */
kopi_status cf_device_begin(struct cf_device *d, struct cf_instance *i, struct cf_program *c);
void cf_device_end(struct cf_device *d, struct cf_instance *i, struct cf_program *c);

/* Activations and output to the device before a step, and back after it. *what: memory was written that belongs to
 * none. */
kopi_status cf_device_push(struct cf_device *d, struct cf_instance *i, struct cf_program *c);
kopi_status cf_device_pull(struct cf_device *d, struct cf_instance *i, struct cf_program *c, const char **what);
/* All pages to c->pages, as the device has them. */
kopi_status cf_device_pull_pages(struct cf_device *d, struct cf_instance *i, struct cf_program *c);

/* Nonsense over bytes [at, at + n) of the pages, wherever they are. */
kopi_status cf_device_scribble(struct cf_device *d, struct cf_instance *i, struct cf_program *c, uint64_t at,
                               uint64_t n);

#endif
