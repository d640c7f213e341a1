/* core/run/stop.h - stop strings over a stream of text: what can be delivered, what is held back, when it ends.
 * Held back is exactly the longest tail that is a proper prefix of some stop string. The first match to complete wins,
 * the longest where two complete at once; so the result does not depend on how the text was cut.
 * [one thread at a time] */
#ifndef KOPI_CORE_RUN_STOP_H
#define KOPI_CORE_RUN_STOP_H

#include "base/buf.h"
#include <kopi/kopi.h>
#include <stdint.h>

struct kopi_stop {
    struct kopi_buf held;
    struct kopi_stop_one {
        char *s;
        size_t len, matched;
        uint32_t *fallback;
    } * one;
    size_t n;
};

/* Copies the strings. KOPI_E_INVALID for a stop string that is empty or not UTF-8 (a match would cut a character).
 * Freed by kopi__stop_free, also after a failure. */
kopi_status kopi__stop_init(struct kopi_stop *m, const char *const *stops, size_t n, kopi_error *err);
void kopi__stop_free(struct kopi_stop *m);

/* Takes n more bytes (whole characters) and appends what can be delivered to out. *matched: a stop string is complete,
 * nothing from its start on was or will be delivered. False: out of memory. */
bool kopi__stop_push(struct kopi_stop *m, const char *text, size_t n, struct kopi_buf *out, bool *matched);
/* The end without a match: releases what was held. */
bool kopi__stop_flush(struct kopi_stop *m, struct kopi_buf *out);

#endif
