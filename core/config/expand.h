/* core/config/expand.h - ${VAR} references and paths in values. [any; reads the environment] */
#ifndef KOPI_CORE_CONFIG_EXPAND_H
#define KOPI_CORE_CONFIG_EXPAND_H

#include <kopi/kopi.h>
#include <stdbool.h>

#define KOPI__VALUE_MAX 65536 /* bytes of one value, references replaced */

/* ${VAR} becomes the variable's value, which must be set; ${VAR:-text} becomes text (up to the next '}') if VAR is
 * unset or empty; $$ becomes $; any other $ stays. What is put in is not looked at again. *used: whether there was a
 * reference. *out is freed with kopi__free. KOPI_E_CONFIG, KOPI_E_NOMEM. */
kopi_status kopi__expand(const char *text, char **out, bool *used, kopi_error *err);

/* "~" and "~/x" begin at $HOME; a relative path begins at `dir` (NULL or "": it stays as it is). *out is freed with
 * kopi__free. */
kopi_status kopi__resolve_path(const char *path, const char *dir, char **out, kopi_error *err);

#endif
