/* core/config/view.h - which models count: those of the files, or the one that --model (or KOPI_MODEL) names. [any] */
#ifndef KOPI_CORE_CONFIG_VIEW_H
#define KOPI_CORE_CONFIG_VIEW_H

#include "config/config.h"

struct kopi__view {
    int n;                              /* models */
    int first;                          /* index in the file of model 0; -1: the models of the files do not count */
    int indices;                        /* how many models --set may name by index: as in the file, where that counts */
    const struct kopi__setting *chosen; /* the value of `model` for all, or NULL */
    bool by_id;                         /* chosen is the id of a configured model, not a path */
};
struct kopi__view kopi__config_view(const kopi_config *c);

/* Takes over what a document said; *doc is empty afterwards, also on failure. */
kopi_status kopi__config_merge(kopi_config *c, struct kopi__document *doc, kopi_error *err);
/* Takes over one value. */
kopi_status kopi__config_put(kopi_config *c, struct kopi__setting *s, kopi_error *err);

#endif
