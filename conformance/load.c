#include "conform.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const kopi_plugin *refuse(char *err, size_t n, const char *path, const char *why)
{
    snprintf(err, n, "%s: %s", path, why);
    return NULL;
}

const kopi_plugin *cf_load(const char *path, char *err, size_t n)
{
    void *dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!dl) return refuse(err, n, path, dlerror());
    const kopi_plugin *(*entry)(void);
    *(void **)&entry = dlsym(dl, "kopi_plugin_v1");
    if (!entry) return refuse(err, n, path, "exports no kopi_plugin_v1");
    const kopi_plugin *p = entry();
    if (!p) return refuse(err, n, path, "kopi_plugin_v1 returned NULL");
    if (p->struct_size < KOPI_END_OF(kopi_plugin, ops)) return refuse(err, n, path, "its kopi_plugin is too short");
    if (p->abi_minor != KOPI_ABI_MINOR || p->min_host_minor > KOPI_ABI_MINOR) {
        char why[120];
        snprintf(why, sizeof why, "it is built for backend ABI 0.%u and needs 0.%u or later; this kopi has %s",
                 p->abi_minor, p->min_host_minor, KOPI_ABI_VERSION_STRING);
        return refuse(err, n, path, why);
    }
    if (p->fingerprint != KOPI_FINGERPRINT)
        return refuse(err, n, path, "its structs have another layout (fingerprint)");
    if (p->sanitizer != KOPI_SANITIZER)
        return refuse(err, n, path, "it was built with another sanitizer than kopi, or without");
    if (!p->name || !p->version || !p->device || !p->ops) return refuse(err, n, path, "a required field is NULL");
    if (p->ops->struct_size < KOPI_END_OF(kopi_backend_ops, extension) || !p->ops->create || !p->ops->destroy)
        return refuse(err, n, path, "its kopi_backend_ops lacks required functions");
    return p;
}
