/* cli/check.h - `kopi backends check`: the tests that need the core, beside those of conformance/. */
#ifndef KOPI_CLI_CHECK_H
#define KOPI_CLI_CHECK_H

#include "conformance/test.h"

/* Group model: tiny models through the real core. */
void check_add_model(struct cf_list *l);
/* The part of group cancel that needs a model. */
void check_add_cancel(struct cf_list *l);

#endif
