/* core/backend/import.h - offers the file's weights to a backend, and gives the file's pages back. [load] */
#ifndef KOPI_CORE_BACKEND_IMPORT_H
#define KOPI_CORE_BACKEND_IMPORT_H

#include "backend/instance.h"
#include "model/program.h"

/* Offers every weight that the operations of `i` read (mine[op] true), with the roles in which they read it. A weight
 * whose every use is served by a handle loses its host address and its pages. *bytes: memory that the handles take. */
kopi_status kopi__import_weights(struct kopi_instance *i, struct kopi__program *p, const bool *mine,
                                 const struct kopi_gguf *g, int (*progress)(void *ctx, float share), void *ctx,
                                 uint64_t *bytes, kopi_error *err);
void kopi__import_free(struct kopi_instance *i, struct kopi__program *p);

#endif
