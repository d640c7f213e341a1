/* core/backend/plugin.h - finding, checking and loading kopi-NAME.so. [load] */
#ifndef KOPI_CORE_BACKEND_PLUGIN_H
#define KOPI_CORE_BACKEND_PLUGIN_H

#include <kopi/backend.h>
#include <kopi/kopi.h>
#include <stdbool.h>

struct kopi_plugin_search {
    const char *path;            /* one file, absolute or with a slash; then name is not searched */
    const char *name;            /* [a-z0-9_-]{1,32} */
    const char *sha256;          /* hex, or NULL */
    const char *const *cli_dirs; /* --plugin-dir: only warnings about owner and mode; NULL-terminated, or NULL */
    const char *const *dirs;     /* plugin_dirs of the configuration; NULL-terminated, or NULL */
};

/* A loaded plugin. Never unloaded after a successful create; the same file (device, inode) gives the same handle. */
struct kopi_plugin_handle {
    kopi_plugin desc;    /* own copy; absent tail fields are NULL */
    kopi_backend_ops ops;
    kopi_dtype_info *dtypes; /* what desc.dtypes points to: own copy, or NULL */
    char *path;
    void *dl;
};

static inline const kopi_kernel *kopi__kernel_at(const kopi_backend_ops *o, uint32_t i)
{
    return (const kopi_kernel *)(const void *)((const char *)o->kernels + (size_t)i * o->kernel_stride);
}

/* Order: cli_dirs, dirs, KOPI_PLUGIN_PATH (secure_getenv, colon-separated), the installed directory. Never the working
 * directory. KOPI_E_BACKEND lists every path tried and why it was refused. */
kopi_status kopi__plugin_load(const struct kopi_plugin_search *s, const struct kopi_plugin_handle **out,
                              kopi_error *err);

/* Candidate files of a directory list, for `kopi backends`: calls fn for each kopi-*.so without loading it. */
void kopi__plugin_each(const struct kopi_plugin_search *s, void (*fn)(void *ctx, const char *name, const char *path),
                       void *ctx);

#endif
