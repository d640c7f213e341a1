/* core/gguf/part.h - the bytes of one file: mapped read-only, copied into private memory, or lent by the caller. */
#ifndef KOPI_CORE_GGUF_PART_H
#define KOPI_CORE_GGUF_PART_H

#include "gguf/gguf.h"
#include <sys/stat.h>

enum kopi_gguf_source { KOPI__GGUF_LENT, KOPI__GGUF_MAPPED, KOPI__GGUF_PRIVATE };

struct kopi_gguf_guard;

struct kopi_gguf_part {
    char *path;
    const uint8_t *data;
    uint64_t size;
    enum kopi_gguf_source source;
    int fd;                        /* of a mapping; else open until kopi__gguf_part_settle, then -1 */
    struct stat stat;              /* when it was opened */
    struct kopi_gguf_guard *guard; /* of a mapping */
};

/* Fills *part, which needs kopi__gguf_part_close in any case. Only regular files are read, and nothing waits (a FIFO
 * without a writer). flags: of kopi__gguf_open. KOPI_E_IO, KOPI_E_NOMEM; KOPI_E_MODEL for an empty file. */
kopi_status kopi__gguf_part_open(struct kopi_gguf_part *part, const char *path, unsigned flags, kopi_error *err);
/* Bytes of the caller that outlive the part; name stands for the path in messages. */
kopi_status kopi__gguf_part_lend(struct kopi_gguf_part *part, const void *data, uint64_t size, const char *name,
                                 kopi_error *err);
/* KOPI_E_IO if the file changed in place since it was opened, while its bytes are needed. */
kopi_status kopi__gguf_part_check(const struct kopi_gguf_part *part, kopi_error *err);
/* To be called once the directory is read: checks, and closes a file that is not needed any more. */
kopi_status kopi__gguf_part_settle(struct kopi_gguf_part *part, kopi_error *err);
void kopi__gguf_part_close(struct kopi_gguf_part *part);

/* Gives back the memory of the whole pages inside [data, data + size). */
void kopi__gguf_part_drop(const struct kopi_gguf_part *part, const uint8_t *data, uint64_t size);
void kopi__gguf_part_willneed(const struct kopi_gguf_part *part);

#endif
