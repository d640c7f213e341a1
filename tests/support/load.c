#include "load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tiny_backends[16];

/* TINY_BACKENDS: "kopi-cpu.la kopi-cpu-threaded.la ...". */
__attribute__((constructor)) static void list_backends(void)
{
    static char names[] = TINY_BACKENDS;
    size_t n = 1;
    for (char *s = strtok(names, " "); s; s = strtok(NULL, " ")) {
        *strrchr(s, '.') = 0;
        s += strlen("kopi-");
        if (!strcmp(s, "cpu")) tiny_backends[0] = s;
        else if (n < sizeof tiny_backends / sizeof *tiny_backends - 1) tiny_backends[n++] = s;
    }
}

static kopi_status set(kopi_config *cfg, const char *setting, kopi_error *err)
{
    char path[256];
    const char *value = strchr(setting, '=');
    snprintf(path, sizeof path, "%.*s", (int)(value - setting), setting);
    return kopi_config_set(cfg, path, value + 1, err);
}

kopi_status tiny_try(struct tiny_loaded *l, const char *path, const char *backend, const char *const *settings,
                     kopi_error *err)
{
    static const char plugins[] = "plugin_dirs=" TINY_PLUGIN_DIR;
    static const char *const standard[] = {plugins, "backend.fallback=none", "models[].kv.type_k=f32",
                                           "models[].kv.type_v=f32"};
    *l = (struct tiny_loaded){0};
    kopi_status s = kopi_config_new(&l->cfg, err);
    for (size_t i = 0; i < sizeof standard / sizeof *standard && s == KOPI_OK; i++) s = set(l->cfg, standard[i], err);
    if (s == KOPI_OK) s = kopi_config_set(l->cfg, "backend", backend, err);
    if (s == KOPI_OK) s = kopi_config_set(l->cfg, "model", path, err);
    for (; settings && *settings && s == KOPI_OK; settings++) s = set(l->cfg, *settings, err);
    if (s == KOPI_OK) s = kopi_engine_new(l->cfg, &l->engine, err);
    if (s == KOPI_OK) s = kopi_model_load(l->engine, NULL, NULL, NULL, &l->model, err);
    return s;
}

void tiny_load(struct tiny_loaded *l, const char *path, const char *backend, const char *const *settings)
{
    kopi_error e;
    if (tiny_try(l, path, backend, settings, &e) == KOPI_OK) return;
    fprintf(stderr, "%s with backend %s: %s\n", path, backend, e.text);
    abort();
}

void tiny_unload(struct tiny_loaded *l)
{
    kopi_model_free(l->model);
    kopi_engine_free(l->engine);
    kopi_config_free(l->cfg);
    *l = (struct tiny_loaded){0};
}
