#include "run/engine.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/sys.h"
#include <string.h>

kopi_status kopi_engine_new(const kopi_config *cfg, kopi_engine **out, kopi_error *err)
{
    kopi_engine *e = kopi__calloc(1, sizeof *e);
    *out = NULL;
    if (!e) return kopi__nomem(err, "engine");
    e->cfg = cfg;
    e->threads_set = (unsigned)kopi__config_int(cfg, "backend.threads", KOPI__MODEL_ALL);
    kopi_status s = kopi__team_new(e->threads_set ? e->threads_set : kopi__default_threads(NULL, 0), &e->team, err);
    if (s == KOPI_OK)
        *out = e;
    else
        kopi__free(e);
    return s;
}

void kopi_engine_free(kopi_engine *e)
{
    if (!e) return;
    kopi__team_free(e->team);
    kopi__free(e);
}

unsigned kopi_engine_threads(const kopi_engine *e) { return kopi__team_size(e->team); }

struct kopi_plugin_search kopi__engine_search(const kopi_config *cfg)
{
    const struct kopi__setting *dirs = kopi__config_find(cfg, "plugin_dirs", KOPI__MODEL_ALL);
    const char *const *list = kopi__config_list(cfg, "plugin_dirs", KOPI__MODEL_ALL);
    bool by_hand = dirs && (dirs->from == KOPI_FROM_FLAG || dirs->from == KOPI_FROM_SET);
    return (struct kopi_plugin_search){.cli_dirs = by_hand ? list : NULL, .dirs = by_hand ? NULL : list};
}

kopi_status kopi__engine_plugin(const kopi_engine *e, const char *name, const struct kopi_plugin_handle **out,
                                kopi_error *err)
{
    struct kopi_plugin_search search = kopi__engine_search(e->cfg);
    search.name = name;
    if (!name) {
        kopi_status s = kopi__config_backend(e->cfg, &search.name, &search.path, err);
        if (s != KOPI_OK) return s;
        search.sha256 = kopi__config_str(e->cfg, "backend.sha256", KOPI__MODEL_ALL);
    }
    return kopi__plugin_load(&search, out, err);
}

static bool has_key(const char *const *keys, const char *key)
{
    for (; keys && *keys; keys++)
        if (!strcmp(*keys, key)) return true;
    return false;
}

/* What a backend doesn't give is the backend's failure, whoever asks for it. */
static kopi_status refused(kopi_error *err)
{
    if (err) err->code = KOPI_E_BACKEND;
    return KOPI_E_BACKEND;
}

kopi_status kopi__engine_check_options(const kopi_engine *e, const struct kopi_plugin_handle *p, kopi_error *err)
{
    const struct kopi__setting *s;
    const char *key;
    size_t at = 0;
    while ((s = kopi__config_next_option(e->cfg, p->desc.name, &at, &key))) {
        if (has_key(p->desc.option_keys, key)) continue;
        struct kopi_buf known = KOPI_BUF_INIT;
        for (const char *const *k = p->desc.option_keys; k && *k; k++)
            kopi__buf_fmt(&known, "%s%s", known.len ? ", " : "", *k);
        kopi__config_fail(err, s, "backend %s has no option \"%s\"; it has %s", p->desc.name, key,
                          known.data ? known.data : "none");
        kopi__buf_free(&known);
        return refused(err);
    }
    return KOPI_OK;
}

kopi_status kopi__engine_check_determinism(const kopi_engine *e, const struct kopi_instance *i, kopi_error *err)
{
    const struct kopi__setting *set = kopi__config_find(e->cfg, "determinism", KOPI__MODEL_ALL);
    uint32_t exact = KOPI_DEVICE_EXACT, run = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE, flags = i->device.flags;
    uint32_t wanted = !strcmp(set->text, "exact") ? exact : !strcmp(set->text, "run") ? run : 0;
    if (!wanted || flags & wanted) return KOPI_OK;
    kopi__config_fail(err, set, "%s is wanted, but backend %s promises only \"%s\"", set->text, i->plugin->desc.name,
                      flags & run ? "run" : "any");
    return refused(err);
}

static const char *option(void *ctx, const char *backend, const char *key)
{
    const struct kopi__setting *s = kopi__config_option(ctx, backend, key);
    return s ? s->text : NULL;
}

kopi_status kopi__engine_instance(kopi_engine *e, const struct kopi_plugin_handle *p, const _Atomic int *cancel,
                                  struct kopi_instance **out, kopi_error *err)
{
    const struct kopi_instance_env env = {e->team, e->threads_set, cancel, option, (void *)(uintptr_t)e->cfg};
    kopi_status s = kopi__engine_check_options(e, p, err);
    return s == KOPI_OK ? kopi__instance_new(p, 0, &env, out, err) : s;
}
