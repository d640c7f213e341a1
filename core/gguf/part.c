#include "gguf/part.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sys.h"
#include "gguf/guard.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    PRIVATE_ALIGN = 64,
    READ_AHEAD =
        128
        << 10 /* bytes; of a longer MADV_WILLNEED Linux reads only the read-ahead size of the disk, by default this */
};

static kopi_status set_path(struct kopi_gguf_part *part, const char *path, kopi_error *err)
{
    *part = (struct kopi_gguf_part){.fd = -1};
    part->path = kopi__strdup(path);
    return part->path ? KOPI_OK : kopi__nomem(err, "the path of a model file");
}

static kopi_status open_regular(struct kopi_gguf_part *part, kopi_error *err)
{
    part->fd = open(part->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (part->fd < 0) {
        bool cached = errno == ENOENT && strstr(part->path, "/kopi/models/"); /* where scripts/fetch-model puts them */
        return kopi__fail(err, KOPI_E_IO, "%s: cannot be opened: %m%s", part->path,
                          cached ? "; scripts/fetch-model of kopi's source fetches models" : "");
    }
    if (fstat(part->fd, &part->stat)) return kopi__fail(err, KOPI_E_IO, "%s: cannot be examined: %m", part->path);
    if (S_ISDIR(part->stat.st_mode))
        return kopi__fail(err, KOPI_E_IO, "%s: is a directory, not a GGUF file", part->path);
    if (!S_ISREG(part->stat.st_mode))
        return kopi__fail(err, KOPI_E_IO, "%s: is not a regular file (a FIFO, socket or device)", part->path);
    part->size = (uint64_t)part->stat.st_size;
    if (!part->size) return kopi__fail(err, KOPI_E_MODEL, "%s: is empty", part->path);
    return KOPI_OK;
}

static kopi_status map(struct kopi_gguf_part *part, kopi_error *err)
{
    void *p = mmap(NULL, part->size, PROT_READ, MAP_SHARED, part->fd, 0);
    if (p == MAP_FAILED) return kopi__fail(err, KOPI_E_IO, "%s: cannot be mapped: %m (try --no-mmap)", part->path);
    part->data = p;
    part->source = KOPI__GGUF_MAPPED;
    part->guard = kopi__gguf_guard_add(p, part->size, part->path);
    return part->guard ? KOPI_OK : kopi__nomem(err, "the mapping of a model file");
}

static kopi_status read_all(struct kopi_gguf_part *part, uint8_t *to, kopi_error *err)
{
    for (uint64_t done = 0; done < part->size;) {
        ssize_t n = pread(part->fd, to + done, part->size - done, (off_t)done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return kopi__fail(err, KOPI_E_IO, "%s: cannot be read: %m", part->path);
        if (!n) return kopi__fail(err, KOPI_E_IO, "%s: was truncated while it was read", part->path);
        done += (uint64_t)n;
    }
    return KOPI_OK;
}

static kopi_status copy(struct kopi_gguf_part *part, kopi_error *err)
{
    uint64_t available = kopi__available_memory();
    uint8_t *p = part->size <= available ? kopi__alloc_aligned(part->size, PRIVATE_ALIGN) : NULL;
    if (!p) {
        char need[40], have[40];
        return kopi__fail(err, KOPI_E_NOMEM, "%s: a private copy takes %s and %s are available (leave out --no-mmap)",
                          part->path, kopi__format_bytes(part->size, need, sizeof need),
                          kopi__format_bytes(available, have, sizeof have));
    }
    part->data = p;
    part->source = KOPI__GGUF_PRIVATE;
    return read_all(part, p, err);
}

kopi_status kopi__gguf_part_open(struct kopi_gguf_part *part, const char *path, unsigned flags, kopi_error *err)
{
    kopi_status st = set_path(part, path, err);
    if (st == KOPI_OK) st = open_regular(part, err);
    if (st == KOPI_OK) st = flags & KOPI__GGUF_NO_MMAP ? copy(part, err) : map(part, err);
    return st;
}

kopi_status kopi__gguf_part_lend(struct kopi_gguf_part *part, const void *data, uint64_t size, const char *name,
                                 kopi_error *err)
{
    kopi_status st = set_path(part, name, err);
    if (st != KOPI_OK) return st;
    part->data = data;
    part->size = size;
    part->source = KOPI__GGUF_LENT;
    return size ? KOPI_OK : kopi__fail(err, KOPI_E_MODEL, "%s: is empty", name);
}

kopi_status kopi__gguf_part_check(const struct kopi_gguf_part *part, kopi_error *err)
{
    if (part->fd < 0) return KOPI_OK;
    struct stat now;
    const struct stat *then = &part->stat;
    if (fstat(part->fd, &now)) return kopi__fail(err, KOPI_E_IO, "%s: cannot be examined: %m", part->path);
    if (now.st_size != then->st_size || now.st_mtim.tv_sec != then->st_mtim.tv_sec ||
        now.st_mtim.tv_nsec != then->st_mtim.tv_nsec)
        return kopi__fail(err, KOPI_E_IO, "%s: was changed while it was in use; start again", part->path);
    return KOPI_OK;
}

kopi_status kopi__gguf_part_settle(struct kopi_gguf_part *part, kopi_error *err)
{
    kopi_status st = kopi__gguf_part_check(part, err);
    if (st != KOPI_OK || part->source == KOPI__GGUF_MAPPED) return st;
    if (part->fd >= 0) close(part->fd);
    part->fd = -1;
    return KOPI_OK;
}

void kopi__gguf_part_close(struct kopi_gguf_part *part)
{
    kopi__gguf_guard_remove(part->guard);
    if (part->source == KOPI__GGUF_MAPPED) munmap((void *)part->data, part->size);
    if (part->source == KOPI__GGUF_PRIVATE) kopi__free((void *)part->data);
    if (part->fd >= 0) close(part->fd);
    kopi__free(part->path);
}

void kopi__gguf_part_drop(const struct kopi_gguf_part *part, const uint8_t *data, uint64_t size)
{
    if (part->source == KOPI__GGUF_LENT) return;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)data + page - 1) & ~(page - 1), end = ((uintptr_t)data + size) & ~(page - 1);
    if (begin < end) madvise((void *)begin, end - begin, MADV_DONTNEED);
}

void kopi__gguf_part_willneed(const struct kopi_gguf_part *part)
{
    if (part->source != KOPI__GGUF_MAPPED) return;
    for (uint64_t at = 0, n; at < part->size; at += n) {
        n = part->size - at < READ_AHEAD ? part->size - at : READ_AHEAD;
        madvise((void *)(part->data + at), n, MADV_WILLNEED);
    }
}
