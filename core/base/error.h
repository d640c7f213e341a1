/* core/base/error.h - filling the caller's error object. [any thread; the object belongs to the caller] */
#ifndef KOPI_CORE_BASE_ERROR_H
#define KOPI_CORE_BASE_ERROR_H

#include <kopi/kopi.h>

#define KOPI__PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/* Stores code and one formatted line in *err (which may be NULL) and returns code, so that a check is one line:
 *     if (n > max) return kopi__fail(err, KOPI_E_MODEL, "%s: %s is %u, at most %u is supported", ...);
 * Control bytes in the text are replaced by '?', so text from a file cannot forge a second line. */
kopi_status kopi__fail(kopi_error *err, kopi_status code, const char *fmt, ...) KOPI__PRINTF(3, 4);

/* Out of memory while making `what`. */
kopi_status kopi__nomem(kopi_error *err, const char *what);

/* Puts "prefix: " before the text already in *err; returns its code. */
kopi_status kopi__fail_prefix(kopi_error *err, const char *prefix);

#endif
