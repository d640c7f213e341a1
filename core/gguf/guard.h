/* core/gguf/guard.h - the mappings that kopi__gguf_guard_sigbus (gguf.h) answers for. [any thread] */
#ifndef KOPI_CORE_GGUF_GUARD_H
#define KOPI_CORE_GGUF_GUARD_H

#include <stddef.h>

struct kopi_gguf_guard;

/* From now on a fault in [data, data + size) counts as a loss of the file `path`, which must live until the removal.
 * NULL when memory is short. */
struct kopi_gguf_guard *kopi__gguf_guard_add(const void *data, size_t size, const char *path);
void kopi__gguf_guard_remove(struct kopi_gguf_guard *guard); /* before the unmapping; NULL allowed */

#endif
