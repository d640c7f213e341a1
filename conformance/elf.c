#include "elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* n things of `size` bytes at `off`, or NULL where the file does not hold them. */
static const void *at(const struct cf_elf *f, uint64_t off, uint64_t n, uint64_t size)
{
    if (off > f->size || off % 8 || n > (f->size - off) / size) return NULL;
    return f->data + off;
}

static const Elf64_Ehdr *header(const struct cf_elf *f) { return (const void *)f->data; }

bool cf_elf_open(struct cf_elf *f, const char *path, char *text, size_t n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    *f = (struct cf_elf){0};
    if (fd < 0 || fstat(fd, &st)) snprintf(text, n, "%s: %s", path, strerror(errno));
    else if ((size_t)st.st_size < sizeof(Elf64_Ehdr)) snprintf(text, n, "%s is too short for a shared object", path);
    else {
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (map == MAP_FAILED) snprintf(text, n, "%s: %s", path, strerror(errno));
        else *f = (struct cf_elf){map, (size_t)st.st_size};
    }
    if (fd >= 0) close(fd);
    if (!f->data) return false;
    if (!memcmp(f->data, ELFMAG, SELFMAG) && f->data[EI_CLASS] == ELFCLASS64 && header(f)->e_type == ET_DYN)
        return true;
    snprintf(text, n, "%s is not a 64-bit shared object", path);
    cf_elf_close(f);
    return false;
}

void cf_elf_close(struct cf_elf *f)
{
    if (f->data) munmap((void *)(uintptr_t)f->data, f->size);
    *f = (struct cf_elf){0};
}

/* The first section of a type; NULL: none. */
static const Elf64_Shdr *section(const struct cf_elf *f, uint32_t type)
{
    const Elf64_Ehdr *h = header(f);
    const Elf64_Shdr *s = at(f, h->e_shoff, h->e_shnum, sizeof *s);
    for (unsigned i = 0; s && i < h->e_shnum; i++)
        if (s[i].sh_type == type) return &s[i];
    return NULL;
}

/* The string at an offset of the string table that s is linked to. */
static const char *string(const struct cf_elf *f, const Elf64_Shdr *s, uint64_t off)
{
    const Elf64_Shdr *all = at(f, header(f)->e_shoff, header(f)->e_shnum, sizeof *all);
    if (!all || s->sh_link >= header(f)->e_shnum) return "";
    const Elf64_Shdr *t = &all[s->sh_link];
    if (t->sh_offset > f->size || t->sh_size > f->size - t->sh_offset || off >= t->sh_size) return "";
    const char *text = f->data + t->sh_offset + off;
    return memchr(text, 0, t->sh_size - off) ? text : "";
}

void cf_elf_symbols(const struct cf_elf *f, bool defined, void (*fn)(void *ctx, const char *name), void *ctx)
{
    const Elf64_Shdr *s = section(f, SHT_DYNSYM);
    const Elf64_Sym *sym = s ? at(f, s->sh_offset, s->sh_size / sizeof *sym, sizeof *sym) : NULL;
    for (uint64_t i = 1; sym && i < s->sh_size / sizeof *sym; i++) {
        bool local = ELF64_ST_BIND(sym[i].st_info) == STB_LOCAL || sym[i].st_other == STV_HIDDEN;
        if (!local && (sym[i].st_shndx != SHN_UNDEF) == defined) fn(ctx, string(f, s, sym[i].st_name));
    }
}

/* Entries of the dynamic section with this tag. */
static uint32_t dynamic(const struct cf_elf *f, int64_t tag, void (*fn)(void *ctx, const char *name), void *ctx)
{
    const Elf64_Shdr *s = section(f, SHT_DYNAMIC);
    const Elf64_Dyn *d = s ? at(f, s->sh_offset, s->sh_size / sizeof *d, sizeof *d) : NULL;
    uint32_t n = 0;
    for (uint64_t i = 0; d && i < s->sh_size / sizeof *d && d[i].d_tag != DT_NULL; i++) {
        if (d[i].d_tag != tag) continue;
        n++;
        if (fn) fn(ctx, string(f, s, d[i].d_un.d_val));
    }
    return n;
}

void cf_elf_needed(const struct cf_elf *f, void (*fn)(void *ctx, const char *name), void *ctx)
{
    dynamic(f, DT_NEEDED, fn, ctx);
}

bool cf_elf_text_relocations(const struct cf_elf *f) { return dynamic(f, DT_TEXTREL, NULL, NULL) > 0; }

bool cf_elf_executable_stack(const struct cf_elf *f)
{
    const Elf64_Ehdr *h = header(f);
    const Elf64_Phdr *p = at(f, h->e_phoff, h->e_phnum, sizeof *p);
    for (unsigned i = 0; p && i < h->e_phnum; i++)
        if (p[i].p_type == PT_GNU_STACK) return p[i].p_flags & PF_X;
    return true;
}
