#include "backend/plugin.h"

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

/* Plugins stay loaded for the life of the process: threads, thread-locals and atexit handlers of a library cannot be undone. */
struct loaded {
    struct kopi_plugin_handle handle;
    dev_t dev;
    ino_t ino;
    struct loaded *next;
};
static struct loaded *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

typedef const kopi_plugin *(*entry_fn)(void);

/* Copies min(size said, own size) bytes; what the giver did not know stays 0. */
static void copy_known(void *own, size_t own_size, const void *theirs, uint32_t their_size)
{
    memset(own, 0, own_size);
    memcpy(own, theirs, their_size < own_size ? their_size : own_size);
}

/* The entry symbol, if it is a function of this library. */
static entry_fn find_entry(void *dl, const char *path, kopi_error *err)
{
    dlerror();
    void *sym = dlsym(dl, "kopi_plugin_v1");
    if (!sym) {
        kopi__fail(err, KOPI_E_BACKEND, "%s: does not export kopi_plugin_v1: it is no kopi backend", path);
        return NULL;
    }
    Dl_info info;
    const ElfW(Sym) *elf = NULL;
    if (dladdr1(sym, &info, (void **)&elf, RTLD_DL_SYMENT) && elf && ELF64_ST_TYPE(elf->st_info) != STT_FUNC) {
        kopi__fail(err, KOPI_E_BACKEND, "%s: kopi_plugin_v1 is not a function", path);
        return NULL;
    }
    entry_fn fn;
    memcpy(&fn, &sym, sizeof fn);
    return fn;
}

static kopi_status check_versions(const kopi_plugin *p, const char *path, kopi_error *err)
{
    static const char *const sanitizer[] = {"without sanitizers", "with AddressSanitizer", "with ThreadSanitizer"};
    if (p->abi_minor != KOPI_ABI_MINOR)
        return kopi__fail(err, KOPI_E_ABI, "%s: built for backend ABI 0.%u, this kopi has 0.%u and needs the same: rebuild the plugin",
                          path, p->abi_minor, KOPI_ABI_MINOR);
    if (p->min_host_minor > KOPI_ABI_MINOR)
        return kopi__fail(err, KOPI_E_ABI, "%s: needs backend ABI 0.%u or later, this kopi has 0.%u", path, p->min_host_minor, KOPI_ABI_MINOR);
    if (p->fingerprint != KOPI_FINGERPRINT)
        return kopi__fail(err, KOPI_E_ABI, "%s: struct layout %016llx differs from kopi's %016llx: packing flags or other headers", path,
                          (unsigned long long)p->fingerprint, (unsigned long long)KOPI_FINGERPRINT);
    if (p->sanitizer != KOPI_SANITIZER)
        return kopi__fail(err, KOPI_E_ABI, "%s: built %s, kopi %s: they cannot share a process", path,
                          p->sanitizer < 3 ? sanitizer[p->sanitizer] : "with an unknown sanitizer", sanitizer[KOPI_SANITIZER]);
    return KOPI_OK;
}

static kopi_status check_ops(const kopi_backend_ops *o, const char *path, kopi_error *err)
{
    const struct { int missing; const char *name; } need[] = {
        {!o->create, "create"},
        {!o->destroy, "destroy"},
        {!o->prepare && !o->n_kernels, "kernels or prepare"},
        {o->n_kernels && (!o->kernels || o->kernel_stride < KOPI_END_OF(kopi_kernel, scratch)), "kernel table"},
        {o->prepare && (!o->execute || !o->plan_free || !o->supports), "execute, plan_free and supports beside prepare"},
        {o->weight_import && !o->weight_free, "weight_free beside weight_import"},
        {!o->kv_export != !o->kv_import, "both kv_export and kv_import"},
        {o->buf_alloc && (!o->buf_free || !o->buf_read || !o->buf_write || !o->buf_copy), "all five buf_ functions"},
    };
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i].missing) return kopi__fail(err, KOPI_E_BACKEND, "%s: its ops table lacks %s", path, need[i].name);
    return KOPI_OK;
}

static kopi_status check_plugin(const kopi_plugin *theirs, const char *path, struct kopi_plugin_handle *h, kopi_error *err)
{
    if (!theirs) return kopi__fail(err, KOPI_E_BACKEND, "%s: kopi_plugin_v1 returned NULL", path);
    if (theirs->struct_size < KOPI_END_OF(kopi_plugin, ops))
        return kopi__fail(err, KOPI_E_ABI, "%s: kopi_plugin has %u bytes, at least %zu are needed", path, theirs->struct_size,
                          KOPI_END_OF(kopi_plugin, ops));
    copy_known(&h->desc, sizeof h->desc, theirs, theirs->struct_size);
    kopi_status s = check_versions(&h->desc, path, err);
    if (s != KOPI_OK) return s;
    if (!h->desc.name || !h->desc.version || !h->desc.device || !h->desc.ops)
        return kopi__fail(err, KOPI_E_BACKEND, "%s: kopi_plugin lacks name, version, device or ops", path);
    if (h->desc.ops->struct_size < KOPI_END_OF(kopi_backend_ops, extension))
        return kopi__fail(err, KOPI_E_ABI, "%s: kopi_backend_ops has %u bytes, at least %zu are needed", path,
                          h->desc.ops->struct_size, KOPI_END_OF(kopi_backend_ops, extension));
    copy_known(&h->ops, sizeof h->ops, h->desc.ops, h->desc.ops->struct_size);
    return check_ops(&h->ops, path, err);
}

static const struct kopi_plugin_handle *already_loaded(const struct kopi_plugin_file *f)
{
    for (struct loaded *l = all; l; l = l->next)
        if (l->dev == f->dev && l->ino == f->ino) return &l->handle;
    return NULL;
}

/* dlopen runs the library's constructors, which may change the floating-point state (-ffast-math does). */
static void *open_guarded(const char *path)
{
    uint64_t fp = kopi__fp_get();
    dlerror();
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (kopi__fp_get() != fp) {
        kopi__fp_set(fp);
        kopi__log(KOPI_LOG_WARN, "%s: loading it changed the floating-point state (linked with -ffast-math?); undone", path);
    }
    return dl;
}

static kopi_status load(const struct kopi_plugin_file *f, const struct kopi_plugin_handle **out, kopi_error *err)
{
    if ((*out = already_loaded(f))) return KOPI_OK;
    struct loaded *l = kopi__calloc(1, sizeof *l);
    if (!l || !(l->handle.path = kopi__strdup(f->path))) {
        kopi__free(l);
        return kopi__nomem(err, "plugin");
    }
    kopi_status s = KOPI_E_BACKEND;
    l->handle.dl = open_guarded(f->path);
    if (!l->handle.dl) {
        const char *why = dlerror();
        kopi__fail(err, s, "%s: cannot be loaded: %s", f->path, why ? why : "unknown reason");
    } else {
        entry_fn entry = find_entry(l->handle.dl, f->path, err);
        if (entry) s = check_plugin(entry(), f->path, &l->handle, err);
    }
    if (s != KOPI_OK) {
        if (l->handle.dl) dlclose(l->handle.dl);
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

kopi_status kopi__plugin_load(const struct kopi_plugin_search *s, const struct kopi_plugin_handle **out, kopi_error *err)
{
    struct kopi_plugin_file f;
    *out = NULL;
    kopi_status status = kopi__plugin_find(s, &f, err);
    if (status != KOPI_OK) return status;
    pthread_mutex_lock(&lock);
    status = load(&f, out, err);
    pthread_mutex_unlock(&lock);
    if (status == KOPI_OK && s->name && !s->path && strcmp((*out)->desc.name, s->name))
        status = kopi__fail(err, KOPI_E_BACKEND, "%s: calls itself \"%s\", not \"%s\"", f.path, (*out)->desc.name, s->name);
    kopi__free(f.path);
    return status;
}
