#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static int max_level = KOPI_LOG_WARN;
static kopi_log_fn sink;
static void *sink_ctx;

void kopi_log_set(int level, kopi_log_fn fn, void *ctx)
{
    max_level = level;
    sink = fn;
    sink_ctx = ctx;
}

void kopi__log(int level, const char *fmt, ...)
{
    if (level > max_level) return;
    char line[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (unsigned char *p = (unsigned char *)line; *p; p++)
        if (*p < 0x20 || *p == 0x7f) *p = '?';
    if (sink)
        sink(sink_ctx, level, line);
    else
        fprintf(stderr, "kopi: %s\n", line);
}
