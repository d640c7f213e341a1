/* kopi/ext/draft/trace.h - host extension "kopi.trace/1" (draft): what the workers of a backend do, as `kopi profile`
 * shows it.
 *
 * Kernels are traced by the core, which calls them. A backend that takes whole programs may report what it does inside
 * execute:
 *
 *     const kopi_ext_trace *trace = host->extension(host->ctx, KOPI_EXT_TRACE);   [load] NULL: the host has none
 *     bool on = trace && trace->on(host->ctx);                                    once per execute
 *     uint64_t begin = trace->now(host->ctx);
 *     ...
 *     trace->span(host->ctx, ith, begin, trace->now(host->ctx), ops, n_ops);
 *
 * Without it the whole of execute is shown as one. The table is the host's and lives as long as it. */
#ifndef KOPI_EXT_DRAFT_TRACE_H
#define KOPI_EXT_DRAFT_TRACE_H

#include <kopi/abi.h>

KOPI_BEGIN_DECLS

#define KOPI_EXT_TRACE "kopi.trace/1"

typedef struct kopi_ext_trace {
    uint32_t struct_size, reserved;
    /* [any] Not 0 if a trace is taken. Constant during execute; ctx is host->ctx, here and below. */
    int32_t (*on)(void *ctx);
    /* [any] Nanoseconds of a clock that never goes back. */
    uint64_t (*now)(void *ctx);
    /* [worker] Worker ith was busy from begin to end with its share of these operations, which it did as one: n_ops >= 1 indices
     * into the program's ops, valid for the call. Only while on; spans of one worker don't overlap. */
    void (*span)(void *ctx, uint32_t ith, uint64_t begin, uint64_t end, const uint32_t *ops, uint32_t n_ops);
} kopi_ext_trace;

KOPI_END_DECLS

#endif
