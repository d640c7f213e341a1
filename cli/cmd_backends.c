/* kopi backends: which plugins are found, and with a model which code runs what. The facts are gathered as JSON and
 * then printed as they are or as a table, so that both say the same. */
#include "commands.h"

#include "backend/assign.h"
#include "base/sys.h"
#include "base/team.h"
#include "config/config.h"
#include "run/engine.h"
#include "run/model.h"
#include <jansson.h>
#include <string.h>

static bool as_json;

const struct cli_option cli_backends_options[] = {
    {"--json", NULL, CLI_FLAG, &as_json, "everything as one JSON object", 0, 0},
    {0},
};

/* ---- the facts --------------------------------------------------------------------------------------------------- */

static json_t *device_facts(const kopi_device *d)
{
    const char *same = d->flags & KOPI_DEVICE_EXACT        ? "exact"
                       : d->flags & KOPI_DEVICE_REPEATABLE ? "repeatable"
                                                           : "not repeatable";
    return json_pack("{s:s, s:s, s:s, s:b}", "name", d->name, "detail", d->detail, "determinism", same, "host_memory",
                     (d->flags & KOPI_DEVICE_HOST_VISIBLE) != 0);
}

static json_t *plugin_facts(kopi_engine *engine, const struct kopi_plugin_handle *p)
{
    static const _Atomic int never;
    struct kopi_instance *i;
    kopi_error e;
    json_t *f =
        json_pack("{s:s, s:s, s:s, s:s}", "name", p->desc.name, "file", p->path, "version", p->desc.version, "abi", "");
    json_object_set_new(f, "abi", json_sprintf("0.%u", p->desc.abi_minor));
    if (kopi__engine_instance(engine, p, &never, &i, &e) != KOPI_OK) {
        json_object_set_new(f, "unusable", json_string(e.text));
        return f;
    }
    json_t *options = json_array();
    for (const char *const *k = p->desc.option_keys; k && *k; k++) json_array_append_new(options, json_string(*k));
    json_object_set_new(f, "device", device_facts(&i->device));
    json_object_set_new(f, "threads", json_integer(i->threads));
    json_object_set_new(f, "options", options);
    kopi__instance_free(i);
    return f;
}

struct listing { kopi_engine *engine; const char *only, *file; json_t *found; };

static void visit(void *ctx, const char *name, const char *path)
{
    struct listing *l = ctx;
    if (l->only ? strcmp(l->only, name) : l->file && !strcmp(l->file, path)) return;
    const struct kopi_plugin_handle *p;
    kopi_error e;
    json_t *f;
    if (kopi__engine_plugin(l->engine, name, &p, &e) != KOPI_OK)
        f = json_pack("{s:s, s:s, s:s}", "name", name, "file", path, "unusable", e.text);
    else if (strcmp(p->path, path)) f = json_pack("{s:s, s:s, s:s}", "name", name, "file", path, "hidden_by", p->path);
    else f = plugin_facts(l->engine, p);
    json_array_append_new(l->found, f);
}

/* The file of backend.path, which no folder needs to have. */
static void visit_file(struct listing *l)
{
    const struct kopi_plugin_handle *p;
    kopi_error e;
    bool good = kopi__engine_plugin(l->engine, NULL, &p, &e) == KOPI_OK;
    json_array_append_new(l->found, good ? plugin_facts(l->engine, p)
                                         : json_pack("{s:s, s:s}", "file", l->file, "unusable", e.text));
}

static json_t *thread_facts(const kopi_engine *engine)
{
    char why[128];
    int n = (int)kopi__default_threads(why, sizeof why);
    return json_pack("{s:i, s:s, s:i}", "default", n, "why", why, "team", (int)kopi_engine_threads(engine));
}

/* Each distinct (backend, code) with the number of operations that it runs. */
static json_t *model_facts(const kopi_model *m)
{
    const kopi_program *p = &m->program->p;
    json_t *code = json_array();
    for (uint32_t i = 0; i < p->n_ops; i++) {
        char mine[192], other[192], text[96];
        int count = 1;
        bool first = true;
        kopi__exec_describe(m->exec, i, mine, sizeof mine);
        for (uint32_t k = 0; k < p->n_ops; k++) {
            if (k == i || p->ops[k].op != p->ops[i].op) continue;
            if (strcmp(kopi__exec_describe(m->exec, k, other, sizeof other), mine)) continue;
            first &= k > i;
            count++;
        }
        if (!first) continue;
        json_array_append_new(code, json_pack("{s:s, s:i, s:s}", "op", kopi__op_text(p, &p->ops[i], text, sizeof text),
                                              "count", count, "code", mine));
    }
    return json_pack("{s:s, s:o}", "id", m->id, "code", code);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *f, const char *key) { return json_string_value(json_object_get(f, key)); }
static int int_of(const json_t *f, const char *key) { return (int)json_integer_value(json_object_get(f, key)); }

static void print_backend(const json_t *f)
{
    const char *name = text_of(f, "name"), *version = text_of(f, "version"), *unusable = text_of(f, "unusable");
    const json_t *device = json_object_get(f, "device"), *option;
    size_t i;
    printf("%s", name ? name : text_of(f, "file"));
    if (version) printf(" %s (backend ABI %s)", version, text_of(f, "abi"));
    if (name) printf("\n  file     %s", text_of(f, "file"));
    if (unusable) printf("\n  %sunusable: %s", name ? "present, " : "", unusable);
    if (text_of(f, "hidden_by")) printf("\n  not used: %s comes first", text_of(f, "hidden_by"));
    putchar('\n');
    if (!device) return;
    printf("  device   %s: %s; %s, %s\n", text_of(device, "name"), text_of(device, "detail"),
           text_of(device, "determinism"),
           json_is_true(json_object_get(device, "host_memory")) ? "works on host memory" : "memory of its own");
    printf("  threads  %d\n  options ", int_of(f, "threads"));
    json_array_foreach(json_object_get(f, "options"), i, option) printf(" %s", json_string_value(option));
    puts(i ? "" : " none");
}

static void print_table(const json_t *all)
{
    const json_t *threads = json_object_get(all, "threads"), *model = json_object_get(all, "model"), *row;
    size_t i;
    printf("threads: %d by default (%s), team of %d\n", int_of(threads, "default"), text_of(threads, "why"),
           int_of(threads, "team"));
    json_array_foreach(json_object_get(all, "backends"), i, row) print_backend(row);
    if (!model) return;
    printf("code that runs %s:\n", text_of(model, "id"));
    json_array_foreach(json_object_get(model, "code"), i, row)
        printf("  %-24s x %-4d %s\n", text_of(row, "op"), int_of(row, "count"), text_of(row, "code"));
}

/* ---- the commands ------------------------------------------------------------------------------------------------ */

static json_t *find_backends(const char *only, kopi_error *e)
{
    struct listing l = {.only = only};
    const char *chosen;
    if (kopi__config_backend(cli_config, &chosen, &l.file, e) != KOPI_OK) return NULL;
    if (kopi_engine_new(cli_config, &l.engine, e) != KOPI_OK) return NULL;
    struct kopi_plugin_search search = kopi__engine_search(cli_config);
    l.found = json_array();
    if (l.file && !only) visit_file(&l);
    kopi__plugin_each(&search, visit, &l);
    json_t *all = json_pack("{s:o, s:o}", "threads", thread_facts(l.engine), "backends", l.found);
    kopi_engine_free(l.engine);
    return all;
}

static int add_model(json_t *all)
{
    kopi_engine *engine;
    kopi_model *model;
    if (!kopi__config_str(cli_config, "models[].path", 0)) return 0;
    int code = cli_load(&engine, &model);
    if (code) return code;
    json_object_set_new(all, "model", model_facts(model));
    cli_unload(engine, model);
    return 0;
}

/* That none was found: for one that is asked for, with the places that were tried. */
static int none_found(const char *only)
{
    kopi_engine *engine;
    const struct kopi_plugin_handle *p;
    kopi_error e;
    if (!only) return cli_error(EXIT_BACKEND, "no backend was found; see --plugin-dir and KOPI_PLUGIN_PATH");
    kopi_status s = kopi_engine_new(cli_config, &engine, &e);
    if (s == KOPI_OK) {
        kopi__engine_plugin(engine, only, &p, &e);
        kopi_engine_free(engine);
    }
    return cli_fail(&e);
}

/* Why the one backend that is asked for can't be used, or NULL. */
static const char *unusable(const json_t *found)
{
    const json_t *f;
    size_t i;
    json_array_foreach(found, i, f)
        if (text_of(f, "unusable")) return text_of(f, "unusable");
    return NULL;
}

/* What was found is shown even where it, or the model, can't be loaded. */
static int show(json_t *all, const char *only)
{
    const json_t *found = json_object_get(all, "backends");
    if (!json_array_size(found)) return none_found(only);
    int code = only && unusable(found) ? cli_error(EXIT_BACKEND, "%s", unusable(found)) : add_model(all), bad = 0;
    if (as_json) bad = cli_print_json(all, JSON_INDENT(2));
    else print_table(all);
    return code ? code : bad;
}

static int list(const char *only)
{
    kopi_error e;
    json_t *all = find_backends(only, &e);
    if (!all) return cli_fail(&e);
    int code = show(all, only);
    json_decref(all);
    return code;
}

int cli_backends(int n_args, char **args)
{
    (void)args;
    if (n_args)
        return cli_error(EXIT_USAGE,
                         "kopi backends takes nothing, or: info NAME, or: check FILE-or-NAME, or: new NAME DIR");
    return list(NULL);
}

int cli_backends_info(int n_args, char **args)
{
    return n_args == 1 ? list(args[0]) : cli_error(EXIT_USAGE, "kopi backends info needs a NAME");
}
