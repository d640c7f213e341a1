/* core/base/sha256.h - SHA-256 of a file (nettle). [any] */
#ifndef KOPI_CORE_BASE_SHA256_H
#define KOPI_CORE_BASE_SHA256_H

#include <kopi/kopi.h>

/* Lower-case hex, NUL-terminated. cancelled (may be NULL) is polled. Errors: KOPI_E_IO, KOPI_E_CANCELLED. */
kopi_status kopi__sha256_file(const char *path, char hex[65], int (*cancelled)(void *ctx), void *ctx, kopi_error *err);

#endif
