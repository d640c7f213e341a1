/* tests/backend/broken/broken.h - one backend with one thing wrong, chosen by -DFAULT=name, and with -DREPAIRED its
 * twin that goes the same way and does it right. Underneath are the kernels of plugins/cpu. faults.py says which case
 * of `kopi backends check` must catch which fault. */
#ifndef KOPI_TESTS_BROKEN_H
#define KOPI_TESTS_BROKEN_H

#include "plugins/cpu/kernels.h"

enum fault {
    none,
    /* loading */
    second_symbol,
    core_symbol,
    executable_stack,
    short_plugin,
    short_ops,
    other_minor,
    other_name,
    slow,
    impure,
    load_floats,
    load_handler,
    load_thread,
    load_prints,
    crashes_at_unload,
    /* structs and ids */
    half_tables,
    no_name,
    no_end,
    writes_short,
    writes_long,
    reads_late_host,
    claims_any_op,
    fixed_stride,
    reads_reserved,
    /* life */
    fails_mutely,
    create_floats,
    exits_in_create,
    leaks_create,
    leaks_malloc,
    leaks_run,
    leaks_plan,
    leaks_thread,
    leaks_file,
    create_handler,
    prints,
    ignores_no_memory,
    no_memory_leaks,
    global_state,
    race,
    /* operations */
    wrong_sign,
    reads_past,
    writes_past,
    counts_workers,
    sees_batch,
    aborts,
    exits,
    hangs,
    wrong_pairing,
    window_off_by_one,
    cannot,
    not_exact,
    not_repeatable,
    rounding,
    changes_input,
    keeps_pointer,
    aligned_weights,
    packed_rows,
    swallows_nan,
    wrong_heads,
    no_softcap,
    odd_status,
    /* models */
    tied,
    stale_kv,
    stale_pages,
    /* cancelling */
    ignores_cancel,
    spoilt_by_cancel,
    /* claims */
    claims_nothing,
    claims_any_type,
    unsteady
};
#ifndef FAULT
#define FAULT none
#endif
#ifdef REPAIRED
#define BROKEN 0
#else
#define BROKEN 1
#endif
#define HAS(name) (BROKEN && FAULT == (name)) /* does it wrong */
#define IS(name) (FAULT == (name))            /* goes that way, right or wrong */
#define BY_PLAN (IS(ignores_cancel) || IS(spoilt_by_cancel) || IS(leaks_plan))

/* State of an instance; begins as the kernels know it. */
struct broken {
    struct cpu cpu;
    _Atomic uint32_t calls;   /* not_repeatable */
    void *more;               /* a second allocation */
    _Atomic uint32_t ith;     /* race */
    const int32_t *pos;       /* keeps_pointer */
    uint32_t written[64][64]; /* stale_kv: positions by KV tensor and first page */
    int32_t pages[4][64];     /* stale_pages: of each group, n_pages of them */
    uint32_t n_pages[4];
    bool spoilt; /* spoilt_by_cancel */
};
extern _Atomic int broken__instances; /* global_state: 0 after any destroy */

/* What the fault makes of an operation. */
kopi_status broken__run(void *be, const kopi_kctx *k, const kopi_op *op);
kopi_status broken__real(void *be, const kopi_kctx *k, const kopi_op *op);
kopi_status broken__attention(void *be, const kopi_kctx *k, const kopi_op *op);
kopi_status broken__cache(void *be, const kopi_kctx *k, const kopi_op *op);

kopi_status broken__prepare(void *be, const kopi_program *p, uint32_t first_op, uint32_t n_ops, void **plan);
kopi_status broken__execute(void *be, void *plan, const kopi_run *run);
void broken__plan_free(void *be, void *plan);

#endif
