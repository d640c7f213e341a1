/* conformance/elf.h - what a shared object says of itself in its file, without loading it. 64-bit, native byte order.
 */
#ifndef KOPI_CF_ELF_H
#define KOPI_CF_ELF_H

#include <stdbool.h>
#include <stddef.h>

struct cf_elf {
    const char *data;
    size_t size;
};
/* False with a text: it cannot be read or is no such file. */
bool cf_elf_open(struct cf_elf *f, const char *path, char *text, size_t n);
void cf_elf_close(struct cf_elf *f);

/* Calls fn for each dynamic symbol that the file defines and exports (defined true), or that it wants from others. */
void cf_elf_symbols(const struct cf_elf *f, bool defined, void (*fn)(void *ctx, const char *name), void *ctx);
/* Calls fn for each library that it is linked with. */
void cf_elf_needed(const struct cf_elf *f, void (*fn)(void *ctx, const char *name), void *ctx);
/* It asks for a stack that can be executed (also by not saying that it doesn't). */
bool cf_elf_executable_stack(const struct cf_elf *f);
/* Its code must be changed while it is loaded: it was not compiled with -fPIC. */
bool cf_elf_text_relocations(const struct cf_elf *f);

#endif
