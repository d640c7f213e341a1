#include "run/row.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Lanes of an inner loop: a constant, so that it becomes a few vectors at any optimisation level. */
enum { LANES = 16, BLOCK = 64 * LANES };

struct lanes {
    float max[LANES];
    uint32_t bad[LANES]; /* all ones once the exponent was all ones: infinity or NaN */
};

static void add(struct lanes *l, const float *x)
{
    uint32_t u[LANES];
    memcpy(u, x, sizeof u);
    for (int i = 0; i < LANES; i++) {
        l->max[i] = x[i] > l->max[i] ? x[i] : l->max[i];
        l->bad[i] |= (u[i] & 0x7f800000u) == 0x7f800000u ? UINT32_MAX : 0;
    }
}

/* The greatest of n <= BLOCK values, at least `least`. */
static float block_max(const float *x, uint32_t n, float least, uint32_t *bad)
{
    struct lanes l;
    uint32_t i = 0;
    for (int k = 0; k < LANES; k++) {
        l.max[k] = least;
        l.bad[k] = 0;
    }
    for (; i + LANES <= n; i += LANES) add(&l, x + i);
    for (; i < n; i++) {
        if (x[i] > l.max[0]) l.max[0] = x[i];
        if (!isfinite(x[i])) l.bad[0] = 1;
    }
    for (int k = 0; k < LANES; k++) {
        if (l.max[k] > least) least = l.max[k];
        *bad |= l.bad[k];
    }
    return least;
}

uint32_t kopi__row_best(const float *x, uint32_t n, bool *finite)
{
    float max = -FLT_MAX;
    uint32_t bad = 0, from = 0; /* from: begin of the first block with max in it */
    for (uint32_t i = 0; i < n; i += BLOCK) {
        float m = block_max(x + i, n - i < BLOCK ? n - i : BLOCK, max, &bad);
        if (m > max) {
            max = m;
            from = i;
        }
    }
    *finite = !bad;
    while (from + 1 < n && x[from] != max) from++;
    return from;
}

uint32_t kopi__row_nonfinite(const float *x, uint32_t n)
{
    uint32_t bad = 0, i = 0;
    for (uint32_t k = 0; k < n; k += BLOCK) block_max(x + k, n - k < BLOCK ? n - k : BLOCK, -FLT_MAX, &bad);
    if (!bad) return n;
    while (isfinite(x[i])) i++;
    return i;
}

uint32_t kopi__row_above(const float *x, uint32_t from, uint32_t n, float limit)
{
    for (; from + LANES <= n; from += LANES) {
        uint32_t above[LANES], any = 0;
        for (int i = 0; i < LANES; i++) above[i] = x[from + (uint32_t)i] > limit ? UINT32_MAX : 0;
        for (int i = 0; i < LANES; i++) any |= above[i];
        if (any) break;
    }
    while (from < n && !(x[from] > limit)) from++;
    return from;
}
