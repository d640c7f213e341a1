/* What the test programs of core/config share. */
#ifndef KOPI_TESTS_CONFIG_FIXTURE_H
#define KOPI_TESTS_CONFIG_FIXTURE_H

#include "config/config.h"
#include <check.h>

extern kopi_error err;
extern const char long_form[]; /* a valid file that uses most keys */

kopi_config *fresh(void);                           /* all defaults */
kopi_status load(kopi_config *c, const char *text); /* as the file "f.yaml" in /A; the message is in err */
kopi_config *loaded(const char *text);              /* must be valid */
/* The value at `path`, and its origin unless NULL. */
void expect(const kopi_config *c, const char *path, const char *value, const char *origin);

#endif
