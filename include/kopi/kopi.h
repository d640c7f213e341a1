/* kopi/kopi.h - the application interface of libkopi: configuration, engine, model, cache, sampling, generation.
 *
 * Every fallible function returns KOPI_OK or a negative kopi_status and, on failure, fills the caller's error object with
 * one line of text (it may be NULL). Nothing is printed, nothing aborts. Strings are UTF-8. Thread rules are given per
 * object; "[any]" means that any thread may call at any time. */
#ifndef KOPI_KOPI_H
#define KOPI_KOPI_H

#include <kopi/abi.h>

KOPI_BEGIN_DECLS

/* ---- errors and log ---------------------------------------------------------------------------------------------- */

/* Owned by the caller, no clean-up needed. text is NUL-terminated, one line. */
typedef struct kopi_error {
    kopi_status code;
    char text[1020];
} kopi_error;

KOPI_EXPORT const char *kopi_version(void);                    /* "0.1.0" [any] */
KOPI_EXPORT const char *kopi_status_name(kopi_status status); /* "out of memory", ... [any] */

enum { KOPI_LOG_ERROR = 0, KOPI_LOG_WARN = 1, KOPI_LOG_INFO = 2, KOPI_LOG_DEBUG = 3 };
typedef void (*kopi_log_fn)(void *ctx, int level, const char *line);
/* Lines up to `level` go to fn (NULL: stderr). Default: KOPI_LOG_WARN to stderr. Set before other calls. */
KOPI_EXPORT void kopi_log_set(int level, kopi_log_fn fn, void *ctx);

KOPI_END_DECLS

#endif
