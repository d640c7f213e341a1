#include "backend/elf.h"

#include "base/error.h"
#include "base/mem.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#endif

/* What is wrong with the header, or NULL. */
static const char *bad_header(const Elf64_Ehdr *h)
{
    if (memcmp(h->e_ident, ELFMAG, SELFMAG)) return "is not a shared library";
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return "is for another kind of machine";
#ifdef MACHINE
    if (h->e_machine != MACHINE) return "is for another kind of machine";
#endif
    if (h->e_type != ET_DYN) return "is not a shared library";
    return h->e_phentsize == sizeof(Elf64_Phdr) ? NULL : "has odd program headers";
}

/* Every part that will be mapped lies inside the file. */
static const char *bad_segments(int fd, const Elf64_Ehdr *h, uint64_t size)
{
    for (uint64_t i = 0; i < h->e_phnum; i++) {
        Elf64_Phdr p;
        uint64_t at, end;
        if (!kopi__add(h->e_phoff, i * sizeof p, &at) || at > size || pread(fd, &p, sizeof p, (off_t)at) != sizeof p)
            return "is cut off";
        if (p.p_type == PT_LOAD && (!kopi__add(p.p_offset, p.p_filesz, &end) || end > size)) return "is cut off";
    }
    return NULL;
}

kopi_status kopi__elf_check(const char *path, kopi_error *err)
{
    struct stat st;
    Elf64_Ehdr h;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        int e = errno;
        if (fd >= 0) close(fd);
        return kopi__fail(err, KOPI_E_BACKEND, "%s: cannot be loaded: %s", path, strerror(e));
    }
    const char *why = pread(fd, &h, sizeof h, 0) == sizeof h ? bad_header(&h) : "is not a shared library";
    if (!why) why = bad_segments(fd, &h, (uint64_t)st.st_size);
    close(fd);
    return why ? kopi__fail(err, KOPI_E_BACKEND, "%s: cannot be loaded: it %s", path, why) : KOPI_OK;
}
