/* core/backend/elf.h - is a file a whole shared library for this machine. [load] */
#ifndef KOPI_CORE_BACKEND_ELF_H
#define KOPI_CORE_BACKEND_ELF_H

#include <kopi/kopi.h>

/* dlopen maps what the program headers say without looking at the file's length: a cut file would end the process by
 * SIGBUS. KOPI_E_BACKEND: "path: what is wrong". */
kopi_status kopi__elf_check(const char *path, kopi_error *err);

#endif
