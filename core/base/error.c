#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void clean(char *s)
{
    for (unsigned char *p = (unsigned char *)s; *p; p++)
        if (*p < 0x20 || *p == 0x7f) *p = '?';
}

kopi_status kopi__fail(kopi_error *err, kopi_status code, const char *fmt, ...)
{
    if (!err) return code;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    clean(err->text);
    err->code = code;
    return code;
}

kopi_status kopi__nomem(kopi_error *err, const char *what)
{
    return kopi__fail(err, KOPI_E_NOMEM, "out of memory (%s)", what);
}

kopi_status kopi__fail_prefix(kopi_error *err, const char *prefix)
{
    if (!err) return KOPI_E_INTERNAL;
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    return kopi__fail(err, err->code, "%s: %s", prefix, text);
}

const char *kopi_status_name(kopi_status status)
{
    static const char *const names[] = {"ok",          "not supported", "out of memory",       "invalid argument",
                                        "cancelled",   "device lost",   "input/output error",  "ABI mismatch",
                                        "internal error", "out of range", "non-finite result", "configuration error",
                                        "model error", "backend error"};
    size_t i = (size_t)-(int64_t)status;
    return status <= 0 && i < sizeof names / sizeof *names ? names[i] : "unknown status";
}
