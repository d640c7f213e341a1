/* core/config/yaml.h - a YAML text (libyaml events) to checked settings. [any]
 *
 * YAML 1.2, core schema, one document: no tags, anchors, aliases or merge keys; keys are plain names; a quoted scalar
 * is text. Only what the table of keys knows is read, so depth and number of nodes are bounded by it. */
#ifndef KOPI_CORE_CONFIG_YAML_H
#define KOPI_CORE_CONFIG_YAML_H

#include "config/config.h"

#define KOPI__CONFIG_FILE_MAX (1u << 20) /* bytes */
#define KOPI__MAP_MAX 64                 /* keys of one map */
#define KOPI__LIST_MAX 64                /* items of one list */

/* Fills *doc; on failure it is empty. KOPI_E_CONFIG with "name:line:col: ...", KOPI_E_NOMEM. */
kopi_status kopi__yaml_read(const char *name, const char *dir, const char *text, size_t n, struct kopi__document *doc,
                            kopi_error *err);

#endif
