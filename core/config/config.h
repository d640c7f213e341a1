/* core/config/config.h - the configuration as the core reads it: typed values by schema path. [any while it is not
 * changed]
 *
 * `path` is always a path of the table ("backend.threads", "models[].context.size"); `model` is the index of a model,
 * from 0, and KOPI__MODEL_ALL for keys outside models[]. With models[] and an index past the configured ones the values
 * for every model, or the defaults, are given. Asking for a path that is not in the table, or for another type, is a
 * bug (assert). */
#ifndef KOPI_CORE_CONFIG_CONFIG_H
#define KOPI_CORE_CONFIG_CONFIG_H

#include "base/buf.h"
#include "config/schema.h"
#include "config/value.h"

struct kopi__settings {
    struct kopi__setting *at;
    size_t n, cap;
};
/* Takes over *s (cleared on failure). */
kopi_status kopi__settings_add(struct kopi__settings *list, struct kopi__setting *s, kopi_error *err);
void kopi__settings_clear(struct kopi__settings *list);

/* What one YAML document says. */
struct kopi__document {
    struct kopi__settings settings;
    int n_models;    /* entries of its models list */
    bool has_models; /* models or model is written */
    bool empty;      /* nothing but comments */
};

struct kopi_config {
    struct kopi__settings settings; /* at most one per (key, model, name, file or not) */
    int n_file_models;
    struct kopi_buf references; /* " KOPI_A KOPI_B ": variables that the files read */
};

/* As kopi_config_load for a text in memory; `name` stands in messages, `dir` is where relative paths begin (NULL: as
 * they are). */
kopi_status kopi__config_load_text(kopi_config *c, const char *name, const char *dir, const char *text, size_t n,
                                   kopi_error *err);

/* As kopi_config_set for every model, but above all other origins; `where` and `name` are what messages call the place
 * and the key: "/set", "min_p". */
kopi_status kopi__config_set_key(kopi_config *c, const kopi_config_key *key, const char *where, const char *name,
                                 const char *value, kopi_error *err);

/* The value that counts, or NULL if the key is unset (a key with a default never is). Origins up to max_from. */
const struct kopi__setting *kopi__config_find(const kopi_config *c, const char *path, int model);
const struct kopi__setting *kopi__config_find_upto(const kopi_config *c, const char *path, int model, int max_from);

bool kopi__config_bool(const kopi_config *c, const char *path, int model);
/* INT, SIZE in bytes, DURATION in ms; "auto" is 0. */
int64_t kopi__config_int(const kopi_config *c, const char *path, int model);
double kopi__config_float(const kopi_config *c, const char *path, int model);
/* NULL if unset; a list ends with NULL. */
const char *kopi__config_str(const kopi_config *c, const char *path, int model);
const char *const *kopi__config_list(const kopi_config *c, const char *path, int model);

/* backend.options.BACKEND.KEY, or NULL. */
const struct kopi__setting *kopi__config_option(const kopi_config *c, const char *backend, const char *key);
/* The options of one backend, one after the other: *at begins as 0; NULL past the last. *key points into the setting's
 * name. A key may come twice, from two origins: kopi__config_option tells which counts. */
const struct kopi__setting *kopi__config_next_option(const kopi_config *c, const char *backend, size_t *at,
                                                     const char **key);

/* Which plugin: exactly one of the two is not NULL afterwards (the one of the higher origin). Both at once fail as
 * kopi__config_fail does. */
kopi_status kopi__config_backend(const kopi_config *c, const char **name, const char **path, kopi_error *err);

/* Index of the model with this id, alias or (without an id of its own) file name less ".gguf"; -1: none. id NULL: 0. */
int kopi__config_model(const kopi_config *c, const char *id);
/* Path and SHA-256 (or NULL) of the model with this name, one of the files that --model hides included; without one
 * nothing is set. */
void kopi__config_named(const kopi_config *c, const char *name, const char **path, const char **sha256);
/* A file's name less ".gguf": its first *len bytes. */
const char *kopi__config_stem(const char *path, size_t *len);
/* models[].id, or the file's name less ".gguf": the first *len bytes of the result. NULL if there is no path either. */
const char *kopi__config_model_id(const kopi_config *c, int model, size_t *len);

/* The status of a wrong value: KOPI_E_INVALID from a flag or --set, else KOPI_E_CONFIG (also for NULL). */
kopi_status kopi__config_status(const struct kopi__setting *s);

/* That status with "where: key: message", for a value that turns out wrong later (s NULL: the message alone). */
kopi_status kopi__config_fail(kopi_error *err, const struct kopi__setting *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Concrete path of s for a model index: "models[0].path". */
const char *kopi__setting_path(const struct kopi__setting *s, int model, char buf[KOPI__PATH_MAX]);

#endif
