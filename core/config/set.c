/* Single values: kopi_config_set, kopi_config_flag, kopi_config_load_env. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/nearest.h"
#include "config/view.h"
#include "config/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The code that a wrong value of this origin has, with "where: path: " before the text in err. */
static kopi_status place_error(kopi_error *err, kopi_status status, int from, const char *where, const char *path)
{
    if (status == KOPI_E_NOMEM) return status;
    kopi_status code = from == KOPI_FROM_ENV ? KOPI_E_CONFIG : KOPI_E_INVALID;
    if (!err) return code;
    kopi_error inner = *err;
    return kopi__fail(err, code, "%s: %.200s: %s", where, path, inner.text);
}

/* Parses texts as the value of key and stores it; path is what the message calls the key. */
static kopi_status store(kopi_config *c, const kopi_config_key *key, int model, int from, const char *where,
                         const char *path, const char *const *texts, size_t n, kopi_error *err)
{
    struct kopi__setting s = {.key = key, .model = model, .from = from};
    bool named = strchr(key->path, '*') != NULL;
    kopi_status status = kopi__value_parse(&s, &(struct kopi__raw){.texts = texts, .n = n, .loose_bool = true}, err);
    if (status) return place_error(err, status, from, where, path);
    s.where = kopi__strdup(where);
    if (named) s.name = kopi__strdup(path);
    if (!s.where || (named && !s.name)) {
        kopi__setting_clear(&s);
        return kopi__nomem(err, "a configuration value");
    }
    return kopi__config_put(c, &s, err);
}

/* Cuts "a,b" (or "a:b" for paths) in place. */
static size_t cut(const kopi_config_key *key, char *text, const char *items[KOPI__LIST_MAX + 1])
{
    size_t n = 0;
    char *rest = text;
    while (rest && *text && n <= KOPI__LIST_MAX) items[n++] = strsep(&rest, key->type == KOPI_CONFIG_PATHS ? ":" : ",");
    return n;
}

static kopi_status store_text(kopi_config *c, const kopi_config_key *key, int model, int from, const char *where,
                              const char *path, const char *text, kopi_error *err)
{
    const char *items[KOPI__LIST_MAX + 1];
    if (!kopi__key_is_list(key)) return store(c, key, model, from, where, path, &text, 1, err);
    char *copy = kopi__strdup(text);
    if (!copy) return kopi__nomem(err, "a configuration value");
    size_t n = cut(key, copy, items);
    kopi_status status = KOPI_OK;
    if (n > KOPI__LIST_MAX) {
        kopi__fail(err, KOPI_E_CONFIG, "more than %d items", KOPI__LIST_MAX);
        status = place_error(err, KOPI_E_CONFIG, from, where, path);
    } else {
        status = store(c, key, model, from, where, path, items, n, err);
    }
    kopi__free(copy);
    return status;
}

kopi_status kopi__config_set_key(kopi_config *c, const kopi_config_key *key, const char *where, const char *name,
                                 const char *value, kopi_error *err)
{
    return store_text(c, key, KOPI__MODEL_ALL, KOPI_FROM_CHAT, where, name, value, err);
}

kopi_status kopi_config_set(kopi_config *c, const char *path, const char *value, kopi_error *err)
{
    const kopi_config_key *key;
    int model;
    kopi_status status = kopi__schema_find(path, &key, &model, err);
    if (status) return place_error(err, status, KOPI_FROM_SET, "--set", path);
    return store_text(c, key, model, KOPI_FROM_SET, "--set", path, value, err);
}

/* The value of this key that earlier flags gave, or NULL. */
static const struct kopi__setting *earlier_flag(const kopi_config *c, const kopi_config_key *key)
{
    for (size_t i = 0; i < c->settings.n; i++)
        if (c->settings.at[i].key == key && c->settings.at[i].from == KOPI_FROM_FLAG) return &c->settings.at[i];
    return NULL;
}

static kopi_status add_item(kopi_config *c, const kopi_config_key *key, const char *flag, const char *value,
                            kopi_error *err)
{
    const struct kopi__setting *old = earlier_flag(c, key);
    const char *items[KOPI__LIST_MAX];
    size_t n = 0;
    for (; old && old->items[n]; n++) {
        if (n + 1 == KOPI__LIST_MAX)
            return kopi__fail(err, KOPI_E_INVALID, "%s: given more than %d times", flag, KOPI__LIST_MAX);
        items[n] = old->items[n];
    }
    items[n] = value;
    return store(c, key, KOPI__MODEL_ALL, KOPI_FROM_FLAG, flag, key->path, items, n + 1, err);
}

kopi_status kopi_config_flag(kopi_config *c, const char *flag, const char *value, kopi_error *err)
{
    const kopi_config_key *key = kopi_config_key_of_flag(flag);
    if (!key) return kopi__fail(err, KOPI_E_INVALID, "%.80s: no such flag", flag);
    if (key->type == KOPI_CONFIG_BOOL) {
        bool no = !strncmp(flag, "--no-", 5) && strncmp(key->flags, "--no-", 5);
        if (no && value) return kopi__fail(err, KOPI_E_INVALID, "%s: takes no value", flag);
        if (!value) value = no ? "false" : "true";
    }
    if (!value) return kopi__fail(err, KOPI_E_INVALID, "%s: a value is missing", flag);
    if (kopi__key_is_list(key)) return add_item(c, key, flag, value, err);
    return store(c, key, KOPI__MODEL_ALL, KOPI_FROM_FLAG, flag, key->path, &value, 1, err);
}

/* ---- environment ------------------------------------------------------------------------------------------------- */

/* Takes `known` as the nearest name if it is nearer than those before. */
static bool nearer(struct kopi__nearest *near, const char *known)
{
    unsigned before = near->distance;
    kopi__nearest_try(near, known);
    return near->distance < before;
}

/* A key is known by its variable, by its long flags and by the last part of its path. */
static bool key_is_nearer(struct kopi__nearest *near, const kopi_config_key *key)
{
    char flag[64];
    const char *last = strrchr(key->path, '.');
    bool yes = nearer(near, key->env + 5);
    for (const char *p = key->flags; p && (p = strstr(p, "--")); p += strlen(flag)) {
        p += 2;
        snprintf(flag, sizeof flag, "%.*s", (int)strcspn(p, ","), p);
        yes |= nearer(near, flag);
    }
    return nearer(near, last ? last + 1 : key->path) || yes;
}

static bool is_reference(const kopi_config *c, const char *name)
{
    char wanted[80];
    snprintf(wanted, sizeof wanted, " %s ", name);
    return c->references.data && strstr(c->references.data, wanted);
}

/* Logs a variable KOPI_X that nobody reads, with the one that is meant if one is near. */
static void warn_unread(const kopi_config *c, const char *variable)
{
    static const char path[] = "KOPI_PLUGIN_PATH"; /* read where plugins are searched */
    char name[64];
    struct kopi__nearest near;
    const kopi_config_key *key;
    const char *meant = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(variable, "="), variable);
    if (!strcmp(name, path) || is_reference(c, name)) return;
    kopi__nearest_init(&near, name + 5);
    if (nearer(&near, path + 5)) meant = path;
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++) {
        if (!key->env) continue;
        if (!strcmp(key->env, name)) return;
        if (key_is_nearer(&near, key)) meant = key->env;
    }
    if (meant) kopi__log(KOPI_LOG_WARN, "the environment variable %s is not read; did you mean %s?", name, meant);
    else
        kopi__log(KOPI_LOG_WARN, "the environment variable %s is not read; kopi config init names those that are",
                  name);
}

kopi_status kopi_config_load_env(kopi_config *c, kopi_error *err)
{
    const kopi_config_key *key;
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++) {
        const char *value = key->env ? getenv(key->env) : NULL;
        if (!value) continue;
        if (!*value)
            return kopi__fail(err, KOPI_E_CONFIG, "%s: %s: the variable is set but empty; unset it or give it a value",
                              key->env, key->path);
        kopi_status status = store_text(c, key, KOPI__MODEL_ALL, KOPI_FROM_ENV, key->env, key->path, value, err);
        if (status) return status;
    }
    for (char **v = environ; v && *v; v++)
        if (!strncmp(*v, "KOPI_", 5)) warn_unread(c, *v);
    return KOPI_OK;
}
