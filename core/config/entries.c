/* Reading back: kopi_config_get, kopi_config_each. */
#include "base/error.h"
#include "config/config.h"
#include "config/view.h"

#include <string.h>

static const char *origin_of(const struct kopi__setting *s) { return s->where ? s->where : "default"; }

static bool is_model_key(const kopi_config_key *key) { return !strncmp(key->path, "models[]", 8); }

/* "backend.options.cpu.isa": the setting of that name that counts. */
static const struct kopi__setting *find_named(const kopi_config *c, const char *name)
{
    const struct kopi__setting *best = NULL;
    for (size_t i = 0; i < c->settings.n; i++) {
        const struct kopi__setting *s = &c->settings.at[i];
        if (s->name && !strcmp(s->name, name) && (!best || s->from > best->from)) best = s;
    }
    return best;
}

kopi_status kopi_config_get(const kopi_config *c, const char *path, const char **value, const char **origin,
                            kopi_error *err)
{
    const kopi_config_key *key;
    int model, n = kopi__config_view(c).n;
    kopi_status status = kopi__schema_find(path, &key, &model, err);
    if (status == KOPI_E_CONFIG) {
        kopi__fail_prefix(err, path);
        if (err) err->code = KOPI_E_INVALID;
        return KOPI_E_INVALID;
    }
    if (status) return status;
    if (model >= n && model > 0) return kopi__fail(err, KOPI_E_INVALID, "%s: there are %d models", path, n);
    if (is_model_key(key) && model == KOPI__MODEL_ALL) model = 0;
    const struct kopi__setting *s =
        strchr(key->path, '*') ? find_named(c, path) : kopi__config_find(c, key->path, model);
    if (value) *value = s ? s->text : NULL;
    if (origin) *origin = s ? origin_of(s) : "unset";
    return KOPI_OK;
}

struct walk {
    const kopi_config *c;
    int (*fn)(void *ctx, const kopi_config_entry *entry);
    void *ctx;
};

static int visit(const struct walk *w, const struct kopi__setting *s, int model)
{
    char path[KOPI__PATH_MAX];
    kopi_config_entry e = {s->key, kopi__setting_path(s, model, path), s->text, origin_of(s), s->from, 0};
    return w->fn(w->ctx, &e);
}

/* The values with free names, by name, so that those of one section come together. */
static int visit_named(const struct walk *w, const kopi_config_key *key)
{
    const struct kopi__settings *list = &w->c->settings;
    const char *last = "";
    for (;;) {
        const struct kopi__setting *next = NULL;
        for (size_t i = 0; i < list->n; i++) {
            const struct kopi__setting *s = &list->at[i];
            if (s->key != key || strcmp(s->name, last) <= 0) continue;
            int order = next ? strcmp(s->name, next->name) : -1;
            if (order < 0 || (!order && s->from > next->from)) next = s;
        }
        if (!next) return 0;
        int stop = visit(w, next, KOPI__MODEL_ALL);
        if (stop) return stop;
        last = next->name;
    }
}

static int visit_key(const struct walk *w, const kopi_config_key *key, int model)
{
    if (strchr(key->path, '*')) return visit_named(w, key);
    const struct kopi__setting *s = kopi__config_find(w->c, key->path, model);
    return s ? visit(w, s, model) : 0;
}

/* The keys of models[], which stand together from `first` on, for one model after the other. */
static int visit_models(const struct walk *w, size_t first, int n)
{
    for (int m = 0; m < n; m++) {
        const kopi_config_key *key;
        for (size_t i = first; (key = kopi_config_key_at(i)) && is_model_key(key); i++) {
            int stop = visit_key(w, key, m);
            if (stop) return stop;
        }
    }
    return 0;
}

int kopi_config_each(const kopi_config *c, int (*fn)(void *ctx, const kopi_config_entry *entry), void *ctx)
{
    struct walk w = {c, fn, ctx};
    int n = kopi__config_view(c).n, stop = 0;
    bool models_done = false;
    const kopi_config_key *key;
    for (size_t i = 0; (key = kopi_config_key_at(i)) && !stop; i++) {
        if (!is_model_key(key)) stop = visit_key(&w, key, KOPI__MODEL_ALL);
        else if (!models_done) stop = visit_models(&w, i, n ? n : 1); /* without a model: what one would get */
        models_done = models_done || is_model_key(key);
    }
    return stop;
}
