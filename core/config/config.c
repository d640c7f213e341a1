#include "config/config.h"

#include "base/error.h"
#include "base/mem.h"
#include "config/view.h"
#include "config/yaml.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- the list of settings ---------------------------------------------------------------------------------------- */

static kopi_status reserve(struct kopi__settings *list, size_t extra, kopi_error *err)
{
    if (list->cap - list->n >= extra) return KOPI_OK;
    size_t cap = list->n + extra + list->n / 2 + 16;
    struct kopi__setting *at = kopi__realloc_array(list->at, cap, sizeof *at);
    if (!at) return kopi__nomem(err, "configuration values");
    list->at = at;
    list->cap = cap;
    return KOPI_OK;
}

kopi_status kopi__settings_add(struct kopi__settings *list, struct kopi__setting *s, kopi_error *err)
{
    kopi_status status = reserve(list, 1, err);
    if (status) kopi__setting_clear(s);
    else list->at[list->n++] = *s;
    return status;
}

void kopi__settings_clear(struct kopi__settings *list)
{
    for (size_t i = 0; i < list->n; i++) kopi__setting_clear(&list->at[i]);
    kopi__free(list->at);
    *list = (struct kopi__settings){NULL, 0, 0};
}

static bool same_place(const struct kopi__setting *a, const struct kopi__setting *b)
{
    return a->key == b->key && a->model == b->model && a->from == b->from && (!a->name || !strcmp(a->name, b->name));
}

/* Puts *s, taking it over, in the place of an older value of the same origin; room for one is reserved. */
static void put(struct kopi_config *c, const struct kopi__setting *s)
{
    struct kopi__settings *list = &c->settings;
    for (size_t i = 0; i < list->n; i++)
        if (same_place(&list->at[i], s)) {
            kopi__setting_clear(&list->at[i]);
            list->at[i] = *s;
            return;
        }
    list->at[list->n++] = *s;
}

/* Forgets the models of the files read before. */
static void drop_file_models(struct kopi_config *c)
{
    struct kopi__settings *list = &c->settings;
    size_t kept = 0;
    for (size_t i = 0; i < list->n; i++) {
        struct kopi__setting *s = &list->at[i];
        if (s->from == KOPI_FROM_FILE && s->model != KOPI__MODEL_ALL) kopi__setting_clear(s);
        else list->at[kept++] = *s;
    }
    list->n = kept;
    c->n_file_models = 0;
}

/* ---- making and filling ------------------------------------------------------------------------------------------ */

kopi_status kopi_config_new(kopi_config **out, kopi_error *err)
{
    kopi_status status = KOPI_OK;
    const kopi_config_key *key;
    kopi_config *c = kopi__calloc(1, sizeof *c);
    if (!c) return kopi__nomem(err, "a configuration");
    for (size_t i = 0; (key = kopi_config_key_at(i)) && !status; i++) {
        if (!key->default_value) continue;
        struct kopi__setting s = {.key = key, .model = KOPI__MODEL_ALL, .from = KOPI_FROM_DEFAULT};
        status = kopi__value_parse(&s, &(struct kopi__raw){.texts = &key->default_value, .n = 1}, err);
        if (!status) status = kopi__settings_add(&c->settings, &s, err);
    }
    if (status) kopi_config_free(c);
    else *out = c;
    return status;
}

void kopi_config_free(kopi_config *c)
{
    if (!c) return;
    kopi__settings_clear(&c->settings);
    kopi__buf_free(&c->references);
    kopi__free(c);
}

kopi_status kopi__config_merge(kopi_config *c, struct kopi__document *doc, kopi_error *err)
{
    kopi_status status = reserve(&c->settings, doc->settings.n, err);
    if (!status) {
        if (doc->has_models) {
            drop_file_models(c);
            c->n_file_models = doc->n_models;
        }
        for (size_t i = 0; i < doc->settings.n; i++) put(c, &doc->settings.at[i]);
        doc->settings.n = 0;
    }
    kopi__settings_clear(&doc->settings);
    return status;
}

kopi_status kopi__config_put(kopi_config *c, struct kopi__setting *s, kopi_error *err)
{
    kopi_status status = reserve(&c->settings, 1, err);
    if (status) kopi__setting_clear(s);
    else put(c, s);
    return status;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

static bool applies(const struct kopi__setting *s, const struct kopi__view *v, int model)
{
    if (s->model == KOPI__MODEL_ALL) return !(v->by_id && s->key == v->chosen->key);
    if (model == KOPI__MODEL_ALL) return false;
    if (v->first < 0) return s->from != KOPI_FROM_FILE && s->model == model;
    return s->model == v->first + model;
}

static const struct kopi__setting *find(const kopi_config *c, const kopi_config_key *key, int model, int max_from)
{
    struct kopi__view v = kopi__config_view(c);
    const struct kopi__setting *best = NULL;
    for (size_t i = 0; i < c->settings.n; i++) {
        const struct kopi__setting *s = &c->settings.at[i];
        if (s->key != key || s->from > max_from || !applies(s, &v, model)) continue;
        if (!best || s->from > best->from || (s->from == best->from && s->model > best->model)) best = s;
    }
    return best;
}

const struct kopi__setting *kopi__config_find_upto(const kopi_config *c, const char *path, int model, int max_from)
{
    const kopi_config_key *key = NULL;
    enum kopi__node node = kopi__schema_node(path, &key);
    assert(node == KOPI__NODE_KEY);
    return node == KOPI__NODE_KEY ? find(c, key, model, max_from) : NULL;
}

const struct kopi__setting *kopi__config_find(const kopi_config *c, const char *path, int model)
{
    return kopi__config_find_upto(c, path, model, KOPI_FROM_CHAT);
}

bool kopi__config_bool(const kopi_config *c, const char *path, int model)
{
    const struct kopi__setting *s = kopi__config_find(c, path, model);
    assert(s && s->key->type == KOPI_CONFIG_BOOL);
    return s->b;
}

int64_t kopi__config_int(const kopi_config *c, const char *path, int model)
{
    const struct kopi__setting *s = kopi__config_find(c, path, model);
    assert(s && s->key->type >= KOPI_CONFIG_INT && s->key->type <= KOPI_CONFIG_DURATION &&
           s->key->type != KOPI_CONFIG_FLOAT);
    return s->i;
}

double kopi__config_float(const kopi_config *c, const char *path, int model)
{
    const struct kopi__setting *s = kopi__config_find(c, path, model);
    assert(s && s->key->type == KOPI_CONFIG_FLOAT);
    return s->f;
}

const char *kopi__config_str(const kopi_config *c, const char *path, int model)
{
    const struct kopi__setting *s = kopi__config_find(c, path, model);
    return s ? s->text : NULL;
}

const char *const *kopi__config_list(const kopi_config *c, const char *path, int model)
{
    const struct kopi__setting *s = kopi__config_find(c, path, model);
    assert(!s || kopi__key_is_list(s->key));
    return s ? s->items : NULL;
}

/* ---- backend ----------------------------------------------------------------------------------------------------- */

const struct kopi__setting *kopi__config_next_option(const kopi_config *c, const char *backend, size_t *at,
                                                     const char **key)
{
    char prefix[KOPI__PATH_MAX];
    size_t n = (size_t)snprintf(prefix, sizeof prefix, "backend.options.%s.", backend);
    if (n >= sizeof prefix) return NULL;
    for (; *at < c->settings.n; (*at)++) {
        const struct kopi__setting *s = &c->settings.at[*at];
        if (!s->name || strncmp(s->name, prefix, n)) continue;
        *key = s->name + n;
        (*at)++;
        return s;
    }
    return NULL;
}

const struct kopi__setting *kopi__config_option(const kopi_config *c, const char *backend, const char *key)
{
    const struct kopi__setting *s, *best = NULL;
    const char *found;
    for (size_t at = 0; (s = kopi__config_next_option(c, backend, &at, &found));)
        if (!strcmp(found, key) && (!best || s->from > best->from)) best = s;
    return best;
}

kopi_status kopi__config_backend(const kopi_config *c, const char **name, const char **path, kopi_error *err)
{
    const struct kopi__setting *n = kopi__config_find(c, "backend.name", KOPI__MODEL_ALL);
    const struct kopi__setting *p = kopi__config_find(c, "backend.path", KOPI__MODEL_ALL);
    *name = *path = NULL;
    if (p && n->from == p->from)
        return kopi__config_fail(err, p, "backend.name (%s) is given too; keep one of the two", n->where);
    if (p && p->from > n->from) *path = p->text;
    else *name = n->text;
    return KOPI_OK;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

const char *kopi__setting_path(const struct kopi__setting *s, int model, char buf[KOPI__PATH_MAX])
{
    const char *rest = !strncmp(s->key->path, "models[]", 8) ? s->key->path + 8 : NULL;
    if (s->name) snprintf(buf, KOPI__PATH_MAX, "%s", s->name);
    else if (rest && model != KOPI__MODEL_ALL) snprintf(buf, KOPI__PATH_MAX, "models[%d]%s", model, rest);
    else snprintf(buf, KOPI__PATH_MAX, "%s", s->key->path);
    return buf;
}

kopi_status kopi__config_status(const struct kopi__setting *s)
{
    return s && s->from >= KOPI_FROM_SET ? KOPI_E_INVALID : KOPI_E_CONFIG;
}

kopi_status kopi__config_fail(kopi_error *err, const struct kopi__setting *s, const char *fmt, ...)
{
    char text[900], path[KOPI__PATH_MAX];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (!s) return kopi__fail(err, KOPI_E_CONFIG, "%s", text);
    return kopi__fail(err, kopi__config_status(s), "%s: %s: %s", s->where ? s->where : "default",
                      kopi__setting_path(s, s->model, path), text);
}
