/* conformance/clean.h - texts that came from a plugin, made fit to be printed. */
#ifndef KOPI_CF_CLEAN_H
#define KOPI_CF_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

/* Ends text within its n bytes, and puts '?' for what isn't UTF-8 and for control characters; lines: newlines and tabs
 * stay. */
void cf_clean(char *text, size_t n, bool lines);

#endif
