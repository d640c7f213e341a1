/* kopi backends: which plugins are found, and with a model which code runs what; the test and the start of one. */
#include "check.h"
#include "commands.h"

#include "backend/assign.h"
#include "base/sys.h"
#include "base/team.h"
#include "config/config.h"
#include "run/engine.h"
#include "run/model.h"
#include <stdlib.h>
#include <string.h>

static void print_flags(const kopi_device *d)
{
    printf("%s%s", d->flags & KOPI_DEVICE_EXACT ? "exact" : d->flags & KOPI_DEVICE_REPEATABLE ? "repeatable" : "not repeatable",
           d->flags & KOPI_DEVICE_HOST_VISIBLE ? ", works on host memory" : ", memory of its own");
}

static void print_one(kopi_engine *engine, const struct kopi_plugin_handle *p)
{
    static const _Atomic int never;
    struct kopi_instance *i;
    kopi_error e;
    printf("%s %s (backend ABI 0.%u)\n  file     %s\n", p->desc.name, p->desc.version, p->desc.abi_minor, p->path);
    if (kopi__engine_instance(engine, p, &never, &i, &e) != KOPI_OK) {
        printf("  present, unusable: %s\n", e.text);
        return;
    }
    printf("  device   %s: %s; ", i->device.name, i->device.detail);
    print_flags(&i->device);
    printf("\n  threads  %u\n  options ", i->threads);
    for (const char *const *k = p->desc.option_keys; k && *k; k++) printf(" %s", *k);
    if (!p->desc.option_keys || !*p->desc.option_keys) printf(" none");
    putchar('\n');
    kopi__instance_free(i);
}

struct listing { kopi_engine *engine; const char *only, *file; int n; };

static void visit(void *ctx, const char *name, const char *path)
{
    struct listing *l = ctx;
    if (l->only ? strcmp(l->only, name) : l->file && !strcmp(l->file, path)) return;
    const struct kopi_plugin_handle *p;
    kopi_error e;
    l->n++;
    if (kopi__engine_plugin(l->engine, name, &p, &e) != KOPI_OK)
        printf("%s\n  file     %s\n  present, unusable: %s\n", name, path, e.text);
    else if (strcmp(p->path, path))
        printf("%s\n  file     %s\n  not used: %s comes first\n", name, path, p->path);
    else
        print_one(l->engine, p);
}

/* The file of backend.path, which no folder needs to have. */
static void list_file(struct listing *l)
{
    const struct kopi_plugin_handle *p;
    kopi_error e;
    l->n++;
    if (kopi__engine_plugin(l->engine, NULL, &p, &e) == KOPI_OK) print_one(l->engine, p);
    else printf("%s\n  unusable: %s\n", l->file, e.text);
}

/* Each distinct (backend, code) with the number of operations that it runs. */
static void print_code(const kopi_model *m)
{
    const kopi_program *p = &m->program->p;
    printf("code that runs %s:\n", m->id);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        char mine[192], other[192];
        uint32_t count = 1;
        bool first = true;
        kopi__exec_describe(m->exec, i, mine, sizeof mine);
        for (uint32_t k = 0; k < p->n_ops; k++) {
            if (k == i || p->ops[k].op != p->ops[i].op) continue;
            if (strcmp(kopi__exec_describe(m->exec, k, other, sizeof other), mine)) continue;
            first &= k > i;
            count++;
        }
        char text[96];
        if (first) printf("  %-24s x %-4u %s\n", kopi__op_text(p, &p->ops[i], text, sizeof text), count, mine);
    }
}

static int with_model(void)
{
    kopi_engine *engine;
    kopi_model *model;
    int code = cli_load(&engine, &model);
    if (code) return code;
    print_code(model);
    cli_unload(engine, model);
    return 0;
}

int cli_backends(int n_args, char **args)
{
    kopi_error e;
    char why[128];
    if (n_args == 2 && !strcmp(args[0], "check")) return cli_backends_check(args[1]);
    if (n_args == 1 && !strcmp(args[0], "check")) return cli_error(EXIT_USAGE, "kopi backends check needs a file or a name");
    int code = cli_backends_no_check_option();
    if (code) return code;
    if (n_args == 3 && !strcmp(args[0], "new")) return cli_backends_new(args[1], args[2]);
    if (n_args && !strcmp(args[0], "new")) return cli_error(EXIT_USAGE, "kopi backends new needs a NAME and a DIR");
    if (n_args && (n_args > 2 || strcmp(args[0], "info")))
        return cli_error(EXIT_USAGE, "kopi backends takes nothing, or: info NAME, or: check FILE-or-NAME, or: new NAME DIR");
    struct listing l = {.only = n_args == 2 ? args[1] : NULL};
    if (n_args == 1) return cli_error(EXIT_USAGE, "kopi backends info needs a NAME");
    const char *chosen;
    if (kopi__config_backend(cli_config, &chosen, &l.file, &e) != KOPI_OK) return cli_fail(&e);
    if (kopi_engine_new(cli_config, &l.engine, &e) != KOPI_OK) return cli_fail(&e);
    unsigned n = kopi__default_threads(why, sizeof why);
    printf("threads: %u by default (%s), team of %u\n", n, why, kopi_engine_threads(l.engine));
    struct kopi_plugin_search search = kopi__engine_search(cli_config);
    if (l.file && !l.only) list_file(&l);
    kopi__plugin_each(&search, visit, &l);
    kopi_engine_free(l.engine);
    if (!l.n && l.only) return cli_error(EXIT_BACKEND, "backend \"%.40s\" was not found", l.only);
    if (!l.n) return cli_error(EXIT_BACKEND, "no backend was found; see --plugin-dir and KOPI_PLUGIN_PATH");
    return kopi__config_str(cli_config, "models[].path", 0) ? with_model() : 0;
}
