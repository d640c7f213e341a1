#include "config/view.h"

#include "base/error.h"
#include "base/mem.h"
#include "config/yaml.h"

#include <stdlib.h>
#include <string.h>

static bool is_key(const struct kopi__setting *s, const char *path) { return !strcmp(s->key->path, path); }

/* The value of a key in the files' model `i`, or NULL. */
static const struct kopi__setting *in_file(const kopi_config *c, const char *path, int i)
{
    for (size_t k = 0; k < c->settings.n; k++) {
        const struct kopi__setting *s = &c->settings.at[k];
        if (s->from == KOPI_FROM_FILE && s->model == i && is_key(s, path)) return s;
    }
    return NULL;
}

const char *kopi__config_stem(const char *path, size_t *len)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    *len = strlen(name);
    if (*len > 5 && !strcmp(name + *len - 5, ".gguf")) *len -= 5;
    return name;
}

static const char *id_of(const struct kopi__setting *id, const struct kopi__setting *path, size_t *len)
{
    if (!id) return path ? kopi__config_stem(path->text, len) : NULL;
    *len = strlen(id->text);
    return id->text;
}

static bool is_named(const struct kopi__setting *id, const struct kopi__setting *path,
                     const struct kopi__setting *aliases, const char *wanted)
{
    size_t len;
    const char *own = id_of(id, path, &len);
    if (own && strlen(wanted) == len && !memcmp(own, wanted, len)) return true;
    for (const char **a = aliases ? aliases->items : NULL; a && *a; a++)
        if (!strcmp(*a, wanted)) return true;
    return false;
}

/* Index of the files' model that is called `wanted`, or -1. */
static int file_model(const kopi_config *c, const char *wanted)
{
    for (int i = 0; i < c->n_file_models; i++)
        if (is_named(in_file(c, "models[].id", i), in_file(c, "models[].path", i), in_file(c, "models[].aliases", i),
                     wanted))
            return i;
    return -1;
}

struct kopi__view kopi__config_view(const kopi_config *c)
{
    struct kopi__view v = {.n = c->n_file_models};
    for (size_t k = 0; k < c->settings.n; k++) {
        const struct kopi__setting *s = &c->settings.at[k];
        if (s->from == KOPI_FROM_FILE || s->from == KOPI_FROM_DEFAULT) continue;
        if (s->model >= v.n) v.n = s->model + 1; /* --set models[0].path=... makes a model */
        if (s->model == KOPI__MODEL_ALL && is_key(s, "models[].path") && (!v.chosen || s->from > v.chosen->from))
            v.chosen = s;
    }
    v.indices = v.n;
    if (v.chosen) {
        v.first = file_model(c, v.chosen->text);
        v.by_id = v.first >= 0;
        v.indices = v.by_id ? c->n_file_models : 1;
        v.n = 1;
    }
    return v;
}

size_t kopi_config_models(const kopi_config *c) { return (size_t)kopi__config_view(c).n; }

const char *kopi__config_model_id(const kopi_config *c, int model, size_t *len)
{
    return id_of(kopi__config_find(c, "models[].id", model), kopi__config_find(c, "models[].path", model), len);
}

int kopi__config_model(const kopi_config *c, const char *id)
{
    int n = kopi__config_view(c).n;
    if (!id) return n ? 0 : -1;
    for (int i = 0; i < n; i++)
        if (is_named(kopi__config_find(c, "models[].id", i), kopi__config_find(c, "models[].path", i),
                     kopi__config_find(c, "models[].aliases", i), id))
            return i;
    return -1;
}

void kopi__config_named(const kopi_config *c, const char *name, const char **path, const char **sha256)
{
    int i = kopi__config_model(c, name);
    if (i >= 0) {
        *path = kopi__config_str(c, "models[].path", i);
        *sha256 = kopi__config_str(c, "models[].sha256", i);
    } else if ((i = file_model(c, name)) >= 0) { /* hidden by --model */
        const struct kopi__setting *p = in_file(c, "models[].path", i), *sha = in_file(c, "models[].sha256", i);
        if (p) *path = p->text;
        *sha256 = sha ? sha->text : NULL;
    }
}

/* ---- checks over several keys ------------------------------------------------------------------------------------ */

struct name {
    const char *text;
    size_t len;
    int model;
};

static int by_text(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : x->len != y->len ? (x->len > y->len) - (x->len < y->len) : x->model - y->model;
}

/* Collects the names of all n models: one id and the aliases each. */
static size_t collect_names(const kopi_config *c, int n, struct name *out)
{
    size_t count = 0;
    for (int i = 0; i < n; i++) {
        struct name id = {.model = i};
        id.text = kopi__config_model_id(c, i, &id.len);
        out[count++] = id;
        const char *const *alias = kopi__config_list(c, "models[].aliases", i);
        for (; alias && *alias; alias++) out[count++] = (struct name){*alias, strlen(*alias), i};
    }
    return count;
}

static kopi_status check_names(const kopi_config *c, int n, kopi_error *err)
{
    kopi_status status = KOPI_OK;
    struct name *names = kopi__calloc((size_t)n * (KOPI__LIST_MAX + 1), sizeof *names);
    if (!names) return kopi__nomem(err, "the models' names");
    size_t count = collect_names(c, n, names);
    qsort(names, count, sizeof *names, by_text);
    for (size_t i = 1; i < count && !status; i++) {
        struct name *a = &names[i - 1], *b = &names[i];
        if (a->len != b->len || memcmp(a->text, b->text, a->len) || a->model == b->model) continue;
        const struct kopi__setting *id = kopi__config_find(c, "models[].id", b->model);
        status = kopi__config_fail(err, id ? id : kopi__config_find(c, "models[].path", b->model),
                                   "models %d and %d are both called \"%.*s\"; give them different ids", a->model,
                                   b->model, (int)(b->len < 80 ? b->len : 80), b->text);
    }
    kopi__free(names);
    return status;
}

/* What makes model i be there, or NULL. */
static const struct kopi__setting *first_of(const kopi_config *c, int i)
{
    for (size_t k = 0; k < c->settings.n; k++)
        if (c->settings.at[k].model >= i) return &c->settings.at[k];
    return NULL;
}

kopi_status kopi_config_check(const kopi_config *c, kopi_error *err)
{
    const char *name, *path;
    struct kopi__view v = kopi__config_view(c);
    kopi_status status = kopi__config_backend(c, &name, &path, err);
    if (status) return status;
    for (size_t k = 0; k < c->settings.n; k++) {
        const struct kopi__setting *s = &c->settings.at[k];
        if (s->from != KOPI_FROM_FILE && s->model >= v.indices)
            return kopi__config_fail(err, s, "the index is too large: there %s %d model%s%s",
                                     v.indices == 1 ? "is" : "are", v.indices, v.indices == 1 ? "" : "s",
                                     v.first < 0 ? ", the file that --model names" : "");
    }
    for (int i = 0; i < v.n; i++)
        if (!kopi__config_find(c, "models[].path", i))
            return kopi__config_fail(err, first_of(c, i), "models[%d].path: a model needs a path to its GGUF file", i);
    return check_names(c, v.n, err);
}
