/* core/config/schema.h - the table of keys and the tree that their paths span. [any]
 *
 * A schema path is "backend.threads", "models[].context.size" or "backend.options.*.*"; a concrete path carries an
 * index and names instead: "models[0].context.size", "backend.options.cpu-threaded.isa". */
#ifndef KOPI_CORE_CONFIG_SCHEMA_H
#define KOPI_CORE_CONFIG_SCHEMA_H

#include <kopi/kopi.h>
#include <stdbool.h>

#define KOPI__PATH_MAX 256 /* bytes of a path, schema or concrete, with its NUL */
#define KOPI__MODELS_MAX 64
#define KOPI__MODEL_ALL (-1) /* index of `models[].x` and of keys outside models[] */

enum kopi__node {
    KOPI__NODE_NONE, /* no such path */
    KOPI__NODE_KEY,  /* a value: a row of the table */
    KOPI__NODE_MAP,
    KOPI__NODE_LIST /* of maps: "models" */
};
/* What stands at a schema path ("" is the top); *row is set for NODE_KEY (row may be NULL). */
enum kopi__node kopi__schema_node(const char *path, const kopi_config_key **row);

/* Schema path of the child `name` of a map: false if there is none (or if a free name is not [A-Za-z0-9_-]{1,64}). */
bool kopi__schema_child(const char *parent, const char *name, char out[KOPI__PATH_MAX]);

/* The key that a short form stands for: "backend" -> "backend.name", "model" -> "models[].path"; else NULL. */
const char *kopi__schema_short(const char *path);

/* The row of a concrete path, and its model index (KOPI__MODEL_ALL for "models[]"). KOPI_E_CONFIG: the nearest key. */
kopi_status kopi__schema_find(const char *concrete, const kopi_config_key **row, int *model, kopi_error *err);

/* KOPI_E_CONFIG: `name` is no key of the map at `parent`, with the nearest one, or with those that are known there. */
kopi_status kopi__schema_unknown(const char *parent, const char *name, kopi_error *err);

/* "a whole number from 1 to 1024, or auto". */
const char *kopi__key_wanted(const kopi_config_key *key, char *buf, size_t n);

bool kopi__key_is_list(const kopi_config_key *key);
/* True if `word` is one of the words of the key ("a|b|c"). */
bool kopi__key_has_word(const kopi_config_key *key, const char *word);

#endif
