/* core/run/engine.h - the thread team and the plugin search, shared by the models of one configuration. */
#ifndef KOPI_CORE_RUN_ENGINE_H
#define KOPI_CORE_RUN_ENGINE_H

#include "backend/instance.h"
#include "config/config.h"

struct kopi_engine {
    const kopi_config *cfg;
    struct kopi_team_pool *team;
    unsigned threads_set; /* backend.threads as configured; 0: auto */
};

/* Loads the configured backend, or with name not NULL that one from the same directories. */
kopi_status kopi__engine_plugin(const kopi_engine *e, const char *name, const struct kopi_plugin_handle **out,
                                kopi_error *err);
/* Search directories of the configuration, for listings. */
struct kopi_plugin_search kopi__engine_search(const kopi_config *cfg);
/* Options of a backend against the keys its plugin declares: KOPI_E_BACKEND naming place, key and the known ones. */
kopi_status kopi__engine_check_options(const kopi_engine *e, const struct kopi_plugin_handle *p, kopi_error *err);
/* KOPI_E_BACKEND: the instance promises less than `determinism` asks for. */
kopi_status kopi__engine_check_determinism(const kopi_engine *e, const struct kopi_instance *i, kopi_error *err);
/* Creates an instance that polls `cancel`. */
kopi_status kopi__engine_instance(kopi_engine *e, const struct kopi_plugin_handle *p, const _Atomic int *cancel,
                                  struct kopi_instance **out, kopi_error *err);

#endif
