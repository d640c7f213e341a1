/* core/backend/check.h - is what a plugin hands out fit to be used. [load] */
#ifndef KOPI_CORE_BACKEND_CHECK_H
#define KOPI_CORE_BACKEND_CHECK_H

#include "backend/plugin.h"

/* Copies the tables into h (desc, ops, dtypes): fields that the plugin does not know are 0, later ones are dropped.
 * KOPI_E_ABI, KOPI_E_BACKEND: "path: what is wrong". What h got is freed with the plugin by its owner, also after a
 * failure. */
kopi_status kopi__plugin_check(const kopi_plugin *theirs, const char *path, struct kopi_plugin_handle *h,
                               kopi_error *err);

#endif
