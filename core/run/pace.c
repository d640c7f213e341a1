#include "run/pace.h"

#include <stdbool.h>

enum { FRESH = 512 }; /* steps for which a measurement counts: the context grows, and other work comes and goes */

/* A further token as part of a step, before anything is measured: little, as weights are read once for all tokens. */
static const double ASSUMED = 0.06;

static bool known(const struct kopi_pace *p, uint32_t i) { return p->seen[i] && p->now - p->seen[i] < FRESH; }

void kopi__pace_note(struct kopi_pace *p, uint32_t n_tok, uint64_t ns)
{
    p->now++;
    if (!n_tok || n_tok > KOPI_PACE_MAX) return;
    float v = (float)ns, old = p->ns[n_tok];
    bool had = known(p, n_tok);
    if (had && v > 2 * old) v = 2 * old; /* the machine was elsewhere */
    p->ns[n_tok] = had ? old + (v - old) / 8 : v;
    p->seen[n_tok] = p->now;
}

double kopi__pace_cost(const struct kopi_pace *p, uint32_t n)
{
    if (known(p, n)) return (double)p->ns[n];
    uint32_t lo = n, hi = n;
    while (lo && !known(p, lo)) lo--;
    while (hi <= KOPI_PACE_MAX && !known(p, hi)) hi++;
    bool below = lo > 0, above = hi <= KOPI_PACE_MAX;
    if (below && above) {
        double a = (double)p->ns[lo], b = (double)p->ns[hi];
        return a + (b - a) * (n - lo) / (hi - lo);
    }
    double unit = below   ? (double)p->ns[lo] / (1 + ASSUMED * (lo - 1))
                  : above ? (double)p->ns[hi] / (1 + ASSUMED * (hi - 1))
                          : 1;
    return unit * (1 + ASSUMED * (n - 1));
}
