/* core/backend/search.h - which file is kopi-NAME.so, and may it be loaded. Nothing is loaded here. [load] */
#ifndef KOPI_CORE_BACKEND_SEARCH_H
#define KOPI_CORE_BACKEND_SEARCH_H

#include "backend/plugin.h"
#include <sys/types.h>

struct kopi_plugin_file {
    char *path; /* kopi__free */
    dev_t dev;
    ino_t ino;
};

/* The first candidate that exists; if it is refused (not a regular file, wrong owner or mode, wrong SHA-256) the search
 * ends there: a planted file must not be skipped over in silence. KOPI_E_BACKEND names every path tried and why. */
kopi_status kopi__plugin_find(const struct kopi_plugin_search *s, struct kopi_plugin_file *out, kopi_error *err);

bool kopi__plugin_name_ok(const char *name); /* [a-z0-9_-]{1,32} */

#endif
