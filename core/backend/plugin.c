#include "backend/plugin.h"

#include "backend/check.h"
#include "backend/elf.h"
#include "backend/search.h"
#include "base/error.h"
#include "base/fpstate.h"
#include "base/log.h"
#include "base/mem.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

/* Plugins stay loaded for the life of the process: threads, thread-locals and atexit handlers of a library cannot be
 * undone. */
struct loaded {
    struct kopi_plugin_handle handle;
    dev_t dev;
    ino_t ino;
    struct loaded *next;
};
static struct loaded *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef const kopi_plugin *(*entry_fn)(void);

/* The entry symbol, if it is a function of this library. */
static entry_fn find_entry(void *dl, const char *path, kopi_error *err)
{
    dlerror();
    void *sym = dlsym(dl, "kopi_plugin_v1");
    const struct link_map *map = NULL;
    Dl_info info;
    const ElfW(Sym) *elf = NULL;
    bool known = sym && dladdr1(sym, &info, (void **)&elf, RTLD_DL_SYMENT) && !dlinfo(dl, RTLD_DI_LINKMAP, &map);
    if (!sym ||
        (known && (ElfW(Addr))info.dli_fbase != map->l_addr)) { /* dlsym looks into what it is linked with, too */
        kopi__fail(err, KOPI_E_BACKEND, "%s: does not export kopi_plugin_v1: it is no kopi backend", path);
        return NULL;
    }
    if (known && elf && ELF64_ST_TYPE(elf->st_info) != STT_FUNC) {
        kopi__fail(err, KOPI_E_BACKEND, "%s: kopi_plugin_v1 is not a function", path);
        return NULL;
    }
    entry_fn fn;
    memcpy(&fn, &sym, sizeof fn);
    return fn;
}

static const struct kopi_plugin_handle *already_loaded(const struct kopi_plugin_file *f)
{
    for (struct loaded *l = all; l; l = l->next)
        if (l->dev == f->dev && l->ino == f->ino) return &l->handle;
    return NULL;
}

/* Constructors may change the floating-point state (those of -ffast-math do). */
static void restore_fp(uint64_t fp, const char *path)
{
    if (kopi__fp_get() == fp) return;
    kopi__fp_set(fp);
    kopi__log(KOPI_LOG_WARN, "%s: loading it changed the floating-point state (linked with -ffast-math?); undone",
              path);
}

/* Opens the library and fills the handle; what it has got is left to the caller, also after a failure. */
static kopi_status open_plugin(struct kopi_plugin_handle *h, kopi_error *err)
{
    uint64_t fp = kopi__fp_get();
    kopi_status s = kopi__elf_check(h->path, err);
    if (s != KOPI_OK) return s;
    dlerror();
    h->dl = dlopen(h->path, RTLD_NOW | RTLD_LOCAL);
    restore_fp(fp, h->path);
    if (!h->dl) {
        const char *why = dlerror();
        return kopi__fail(err, KOPI_E_BACKEND, "%s: cannot be loaded: %s", h->path, why ? why : "unknown reason");
    }
    entry_fn entry = find_entry(h->dl, h->path, err);
    if (!entry) return KOPI_E_BACKEND;
    const kopi_plugin *p = entry();
    restore_fp(fp, h->path);
    return kopi__plugin_check(p, h->path, h, err);
}

static kopi_status load(const struct kopi_plugin_file *f, const struct kopi_plugin_handle **out, kopi_error *err)
{
    if ((*out = already_loaded(f))) return KOPI_OK;
    struct loaded *l = kopi__calloc(1, sizeof *l);
    if (!l || !(l->handle.path = kopi__strdup(f->path))) {
        kopi__free(l);
        return kopi__nomem(err, "plugin");
    }
    kopi_status s = open_plugin(&l->handle, err);
    if (s != KOPI_OK) {
        if (l->handle.dl) dlclose(l->handle.dl);
        kopi__free(l->handle.dtypes);
        kopi__free(l->handle.path);
        kopi__free(l);
        return s;
    }
    l->dev = f->dev;
    l->ino = f->ino;
    l->next = all;
    all = l;
    *out = &l->handle;
    return KOPI_OK;
}

kopi_status kopi__plugin_load(const struct kopi_plugin_search *s, const struct kopi_plugin_handle **out,
                              kopi_error *err)
{
    struct kopi_plugin_file f;
    *out = NULL;
    kopi_status status = kopi__plugin_find(s, &f, err);
    if (status != KOPI_OK) return status;
    pthread_mutex_lock(&lock);
    status = load(&f, out, err);
    pthread_mutex_unlock(&lock);
    if (status == KOPI_OK && s->name && !s->path && strcmp((*out)->desc.name, s->name))
        status =
            kopi__fail(err, KOPI_E_BACKEND, "%s: calls itself \"%s\", not \"%s\"", f.path, (*out)->desc.name, s->name);
    kopi__free(f.path);
    return status;
}
