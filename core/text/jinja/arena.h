/* core/text/jinja/arena.h - memory of one template or one rendering: taken piece by piece, given back all at once.
 * It also holds the two budgets that bound a hostile template, bytes and work, so that every helper that takes memory
 * or walks over data is bounded without knowing more than the arena. [one thread] */
#ifndef KOPI_CORE_TEXT_JINJA_ARENA_H
#define KOPI_CORE_TEXT_JINJA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kopi_jstop { KOPI_JSTOP_NONE, KOPI_JSTOP_NOMEM, KOPI_JSTOP_BYTES, KOPI_JSTOP_WORK };

struct kopi_jblock;

struct kopi_jarena {
    struct kopi_jblock *blocks;
    char *at, *end;       /* free part of the newest block */
    size_t used, limit;   /* bytes */
    uint64_t work;        /* units left: one per evaluated node; a unit is some 25 ns at most, whatever is done */
    enum kopi_jstop stop; /* why the first refused call was refused */
};

void kopi__jarena_init(struct kopi_jarena *a, size_t limit, uint64_t work);
void kopi__jarena_free(struct kopi_jarena *a); /* the budgets stay as they are */

/* Aligned for every type. NULL (and a->stop set) when memory or a budget is short. kopi__jzalloc gives zeroes. */
void *kopi__jalloc(struct kopi_jarena *a, size_t size);
void *kopi__jzalloc(struct kopi_jarena *a, size_t n, size_t size);

/* Takes units from the work budget; false (and a->stop set) when it is used up. */
static inline bool kopi__jwork(struct kopi_jarena *a, uint64_t units)
{
    if (a->work >= units) {
        a->work -= units;
        return true;
    }
    a->work = 0;
    if (!a->stop) a->stop = KOPI_JSTOP_WORK;
    return false;
}

/* Takes units for n bytes, of which one unit pays for `rate`. To be asked before the bytes are touched. */
enum kopi_jrate {
    KOPI_J_COPY = 64,   /* copied, compared, filled */
    KOPI_J_SEARCH = 4,  /* searched for a string that may match nearly everywhere */
    KOPI_J_DECODE = 4,  /* read as UTF-8 */
    KOPI_J_REWRITE = 1, /* read as UTF-8 and written again, character by character */
};
static inline bool kopi__jwork_on(struct kopi_jarena *a, uint64_t n, enum kopi_jrate rate)
{
    return kopi__jwork(a, n / (uint64_t)rate);
}

/* Makes room for one more element in the array *v of n elements; *cap grows by doubling. */
bool kopi__jgrow(struct kopi_jarena *a, void **v, uint32_t n, uint32_t *cap, size_t size);

#endif
