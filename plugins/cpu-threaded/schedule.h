/* plugins/cpu-threaded/schedule.h - from nodes to steps: who does what, where workers have to meet, and where values
 * lie.
 *
 * A program has two sections: the nodes on tokens, then the nodes on wanted rows. Each is scheduled once per policy,
 * and a run picks a policy per section by its number of rows:
 *   FEW   (decoding)      Row operations are done by every worker for itself, in memory of its own: that is
 *                         cheaper than to meet. LINEAR is split by weight rows, attention by sequences, heads
 *                         and chunks.
 *   MID   (short prompts) Row operations and attention are split by rows, LINEAR by weight rows.
 *   MANY  (prompts)       Everything is split by rows, in tiles; workers meet once per layer, for the keys and values.
 * Bits don't depend on it. */
#ifndef KT_SCHEDULE_H
#define KT_SCHEDULE_H

#include "graph.h"

enum kt_policy { KT_FEW, KT_MID, KT_MANY, KT_N_POLICIES };
enum { KT_TOKENS = 0, KT_WANTED = 1, KT_N_SECTIONS };

/* Rows that FEW takes; units of activations (kt_act_unit) in a tile of MANY, and in a block of LINEAR with GLU; weight
 * rows of such a block. */
enum { KT_FEW_ROWS = 8, KT_TILE_UNITS = 12, KT_GLU_COLUMNS = 256 };

/* How a step is split over workers. */
enum kt_split {
    KT_SPLIT_ALL,   /* not: each does all of it in its own memory */
    KT_SPLIT_ROWS,  /* each its tiles */
    KT_SPLIT_COLS,  /* LINEAR: each some weight rows */
    KT_SPLIT_ITEMS  /* ATTN: sequences, heads, chunks */
};
enum kt_step_kind { KT_STEP_ROWS, KT_STEP_LINEAR, KT_STEP_ATTN, KT_STEP_MERGE /* of ATTN's chunks */ };

struct kt_step {
    uint8_t kind, split;
    bool barrier;         /* before it; MERGE: step and barrier only in runs that split by chunks */
    uint32_t first, n;    /* nodes in order[], or LINEAR: in units[] */
};

/* LINEARs on the same columns, with the GLU that reads them. */
struct kt_unit {
    int32_t linear[2], glu; /* nodes, -1: none */
};

/* Place of a value. */
enum { KT_NOWHERE, KT_SHARED, KT_PRIVATE, KT_OUTPUT, KT_OUTSIDE };
struct kt_loc {
    uint32_t where, cap;  /* cap: rows that fit (kt_act) */
    uint64_t off;         /* in the section's part of the memory */
    uint64_t ld;          /* floats from row to row */
};

struct kt_sched {
    struct kt_step *steps;
    struct kt_unit *units;
    uint32_t *order;
    struct kt_loc *loc;   /* [n_values] of this section's values */
    uint32_t n_steps, n_units, n_order;
    uint64_t shared_bytes, private_bytes;
};

/* Rows that memory is made for. */
struct kt_rows { uint32_t shared, private; };

kopi_status kt_schedule(struct kt *kt, const struct kt_graph *g, uint32_t section, enum kt_policy policy,
                        struct kt_rows rows, struct kt_sched *out); /* [load] */
void kt_sched_free(struct kt *kt, struct kt_sched *s);

#endif
