/* core/config/nearest.h - the known name nearest to a misspelt one. [any] */
#ifndef KOPI_CORE_CONFIG_NEAREST_H
#define KOPI_CORE_CONFIG_NEAREST_H

/* Edits (insert, delete, replace, swap of neighbours) between two names, letter case and '-' or '_' apart; a name of
 * more than 64 bytes is far from everything (1000). Damerau 1964, restricted to one edit per place. */
unsigned kopi__nearest_distance(const char *a, const char *b);

struct kopi__nearest {
    const char *wanted;
    unsigned distance;
    char best[80]; /* "" while nothing is near: at most a third of the letters, at least one, may differ */
};
void kopi__nearest_init(struct kopi__nearest *n, const char *wanted);
void kopi__nearest_try(struct kopi__nearest *n, const char *known);

#endif
