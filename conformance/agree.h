/* conformance/agree.h - do two runs of one program have the same results? */
#ifndef KOPI_CF_AGREE_H
#define KOPI_CF_AGREE_H

#include "program.h"

/* Outputs and KV rows of b against those of a: equal bits but for the payload of NaNs, or (exact false) a normalized
 * mean squared error of at most bound. The text says what differs first. */
bool cf_agree(const struct cf_program *a, const struct cf_program *b, bool exact, float bound, char *text, size_t n);

#endif
