#include "config/nearest.h"

#include <stdio.h>
#include <string.h>

enum { MAX = 64 };

static char fold(char c) { return c == '-' ? '_' : c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }
static unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }

unsigned kopi__nearest_distance(const char *a, const char *b)
{
    size_t na = strnlen(a, MAX + 1), nb = strnlen(b, MAX + 1);
    if (na > MAX || nb > MAX) return 1000;
    unsigned rows[3][MAX + 1]; /* of a[0..i-1), a[0..i) and a[0..i+1) against every start of b */
    for (size_t i = 0; i <= na; i++) {
        unsigned *d = rows[i % 3], *d1 = rows[(i + 2) % 3], *d2 = rows[(i + 1) % 3];
        for (size_t j = 0; j <= nb; j++) {
            if (!i || !j) {
                d[j] = (unsigned)(i + j);
                continue;
            }
            char x = fold(a[i - 1]), y = fold(b[j - 1]);
            d[j] = min(d1[j - 1] + (x != y), min(d1[j], d[j - 1]) + 1);
            if (i > 1 && j > 1 && x == fold(b[j - 2]) && y == fold(a[i - 2])) d[j] = min(d[j], d2[j - 2] + 1);
        }
    }
    return rows[na % 3][nb];
}

void kopi__nearest_init(struct kopi__nearest *n, const char *wanted)
{
    n->wanted = wanted;
    n->distance = (unsigned)(strnlen(wanted, MAX) / 3);
    if (n->distance < 1) n->distance = 1;
    n->distance++;
    n->best[0] = 0;
}

void kopi__nearest_try(struct kopi__nearest *n, const char *known)
{
    unsigned d = kopi__nearest_distance(n->wanted, known);
    if (d >= n->distance) return;
    n->distance = d;
    snprintf(n->best, sizeof n->best, "%s", known);
}
