/* Group load: the shared object as a file, and what opening it does. */
#include "elf.h"
#include "host.h"
#include "process.h"
#include "quiet.h"
#include "test.h"

#include <dlfcn.h>
#include <fenv.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- the file ---------------------------------------------------------------------------------------------------- */

struct names {
    char text[300];
    int n;
    bool (*wanted)(const char *name);
};

static void collect(void *ctx, const char *name)
{
    struct names *l = ctx;
    size_t used = strlen(l->text);
    if (!l->wanted(name)) return;
    snprintf(l->text + used, sizeof l->text - used, "%s%s", l->n++ ? ", " : "", name);
}

/* Nothing that the linker or a sanitizer adds by itself. */
static bool is_foreign(const char *name)
{
    static const char *const linker[] = {"_init", "_fini", "_edata", "_end", "__bss_start"};
    for (size_t i = 0; i < sizeof linker / sizeof *linker; i++)
        if (!strcmp(name, linker[i])) return false;
    if (KOPI_SANITIZER != KOPI_SANITIZER_NONE && !strncmp(name, "__", 2)) return false;
    return strcmp(name, "kopi_plugin_v1") != 0;
}
static bool is_kopi(const char *name) { return !strncmp(name, "kopi_", 5) && strcmp(name, "kopi_plugin_v1") != 0; }
static bool is_kopi_library(const char *name) { return !strncmp(name, "libkopi", 7); }

static enum cf_verdict exports(struct cf_env *e, const struct cf_test *t)
{
    struct cf_elf f;
    struct names l = {.wanted = is_foreign};
    (void)t;
    if (!cf_elf_open(&f, e->path, e->result->text, sizeof e->result->text)) return CF_FAIL;
    cf_elf_symbols(&f, true, collect, &l);
    cf_elf_close(&f);
    return l.n ? cf_failed(e, "exports more than kopi_plugin_v1: %s", l.text) : CF_PASS;
}

static enum cf_verdict imports(struct cf_env *e, const struct cf_test *t)
{
    struct cf_elf f;
    struct names symbols = {.wanted = is_kopi}, libraries = {.wanted = is_kopi_library};
    (void)t;
    if (!cf_elf_open(&f, e->path, e->result->text, sizeof e->result->text)) return CF_FAIL;
    cf_elf_symbols(&f, false, collect, &symbols);
    cf_elf_needed(&f, collect, &libraries);
    cf_elf_close(&f);
    if (symbols.n) return cf_failed(e, "wants symbols of the core: %s", symbols.text);
    return libraries.n ? cf_failed(e, "is linked with %s", libraries.text) : CF_PASS;
}

static enum cf_verdict stack(struct cf_env *e, const struct cf_test *t)
{
    struct cf_elf f;
    (void)t;
    if (!cf_elf_open(&f, e->path, e->result->text, sizeof e->result->text)) return CF_FAIL;
    bool exec = cf_elf_executable_stack(&f), text = cf_elf_text_relocations(&f);
    cf_elf_close(&f);
    if (exec) return cf_failed(e, "wants an executable stack");
    return text ? cf_failed(e, "has text relocations: compile it with -fPIC") : CF_PASS;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void ask_about(struct cf_about *a, const kopi_plugin *p)
{
    struct cf_host h;
    kopi_device d = {.struct_size = sizeof d};
    snprintf(a->name, sizeof a->name, "%s", p->name);
    snprintf(a->version, sizeof a->version, "%s", p->version);
    cf_host_init(&h, NULL, 1);
    if (p->device(&h.h, 0, &d) != KOPI_OK) return;
    snprintf(a->device, sizeof a->device, "%.*s", (int)sizeof d.name, d.name);
    snprintf(a->detail, sizeof a->detail, "%.*s", (int)sizeof d.detail, d.detail);
    a->flags = d.flags;
    a->known = true;
}

/* Also fills what the plugin says of itself. */
static enum cf_verdict opens(struct cf_env *e, const struct cf_test *t)
{
    char why[512];
    (void)t;
    const kopi_plugin *p = cf_load(e->path, why, sizeof why);
    if (!p) return cf_failed(e, "%s", why);
    fesetenv(FE_DFL_ENV);
    ask_about(&e->result->about, p);
    return CF_PASS;
}

/* dlopen and the query, without looking at the answer. */
static const kopi_plugin *open_plain(struct cf_env *e, void **dl)
{
    const kopi_plugin *(*entry)(void);
    *dl = dlopen(e->path, RTLD_NOW | RTLD_LOCAL);
    if (!*dl) return NULL;
    *(void **)&entry = dlsym(*dl, "kopi_plugin_v1");
    return entry();
}

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* not the clock on the wall: the machine may be busy */
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static enum cf_verdict takes_no_time(struct cf_env *e, const struct cf_test *t)
{
    void *dl;
    struct cf_host h;
    kopi_device d = {.struct_size = sizeof d};
    (void)t;
    cf_host_init(&h, NULL, 1);
    double before = cpu_ms();
    open_plain(e, &dl)->device(&h.h, 0, &d);
    double ms = cpu_ms() - before;
    if (ms >= 100) return cf_failed(e, "loading, the query and the device take %.0f ms, at most 100 are allowed", ms);
    snprintf(e->result->text, sizeof e->result->text, "%.1f ms", ms);
    return CF_PASS;
}

static enum cf_verdict query_is_pure(struct cf_env *e, const struct cf_test *t)
{
    void *dl;
    (void)t;
    const kopi_plugin *first = open_plain(e, &dl);
    const kopi_plugin plugin = *first;
    const kopi_backend_ops ops = *first->ops;
    const kopi_plugin *(*entry)(void);
    *(void **)&entry = dlsym(dl, "kopi_plugin_v1");
    for (int i = 0; i < 3; i++)
        if (entry() != first) return cf_failed(e, "kopi_plugin_v1 gives another address when it is called again");
    if (memcmp(&plugin, first, KOPI_END_OF(kopi_plugin, ops)) ||
        memcmp(&ops, first->ops, KOPI_END_OF(kopi_backend_ops, extension)))
        return cf_failed(e, "what kopi_plugin_v1 points to changes when it is called again");
    return CF_PASS;
}

static enum cf_verdict floats_stay(struct cf_env *e, const struct cf_test *t)
{
    struct cf_process before;
    char what[128];
    void *dl;
    (void)t;
    fesetenv(FE_DFL_ENV);
    cf_process_look(&before);
    open_plain(e, &dl);
    if (!cf_floats_change(&before, what, sizeof what)) return CF_PASS;
    return cf_failed(e, "%s by loading it; was it linked with -ffast-math?", what);
}

static enum cf_verdict process_stays(struct cf_env *e, const struct cf_test *t)
{
    struct cf_process before;
    char what[128];
    void *dl;
    (void)t;
    cf_process_look(&before);
    open_plain(e, &dl);
    return cf_process_change(&before, what, sizeof what) ? cf_failed(e, "%s after loading it", what) : CF_PASS;
}

static enum cf_verdict is_silent(struct cf_env *e, const struct cf_test *t)
{
    struct cf_quiet q;
    char text[200];
    void *dl;
    (void)t;
    cf_quiet_begin(&q);
    open_plain(e, &dl);
    size_t n = cf_quiet_end(&q, text, sizeof text);
    return n ? cf_failed(e, "writes %zu bytes to stdout or stderr while it is loaded: %s", n, text) : CF_PASS;
}

/* Else it could be loaded by its path alone: who looks for NAME opens kopi-NAME.so, and refuses what calls itself
 * otherwise. */
static enum cf_verdict file_has_its_name(struct cf_env *e, const struct cf_test *t)
{
    void *dl;
    char wanted[64];
    const char *slash = strrchr(e->path, '/'), *file = slash ? slash + 1 : e->path;
    (void)t;
    snprintf(wanted, sizeof wanted, "kopi-%.32s.so", open_plain(e, &dl)->name);
    if (!strcmp(file, wanted)) return CF_PASS;
    return cf_failed(e, "its name asks for a file %s, this one is %.100s", wanted, file);
}

/* What the core does with a plugin that it refuses. */
static enum cf_verdict comes_and_goes(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    for (int i = 0; i < 20; i++) {
        void *dl;
        if (!open_plain(e, &dl)) return cf_failed(e, "opened again after dlclose: %s", dlerror());
        dlclose(dl);
    }
    return CF_PASS;
}

void cf_add_load(struct cf_list *l)
{
    static const struct cf_test tests[] = {
        {.name = "load/opens", .run = opens, .bare = true, .needs = "load/imports"},
        {.name = "load/exports", .run = exports, .bare = true},
        {.name = "load/imports", .run = imports, .bare = true},
        {.name = "load/stack", .run = stack, .bare = true},
        {.name = "load/name", .run = file_has_its_name, .bare = true, .needs = "load/opens abi/tables"},
        {.name = "load/time", .run = takes_no_time, .bare = true, .needs = "load/opens"},
        {.name = "load/query", .run = query_is_pure, .bare = true, .needs = "load/opens"},
        {.name = "load/floats", .run = floats_stay, .bare = true, .needs = "load/opens"},
        {.name = "load/process", .run = process_stays, .bare = true, .needs = "load/opens"},
        {.name = "load/silent", .run = is_silent, .bare = true, .needs = "load/opens"},
        {.name = "load/reload", .run = comes_and_goes, .bare = true, .needs = "load/opens load/process"},
    };
    cf_list_add_all(l, tests, sizeof tests / sizeof *tests);
}
