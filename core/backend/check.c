#include "backend/check.h"

#include "backend/search.h"
#include "base/error.h"
#include "base/mem.h"
#include <string.h>

/* Far above what a backend can mean: larger counts are garbage, and would be walked. */
enum { MAX_KERNELS = 4096, MAX_TYPES = 256 };

/* Copies min(size said, own size) bytes; what the giver did not know stays 0. */
static void copy_known(void *own, size_t own_size, const void *theirs, uint32_t their_size)
{
    memset(own, 0, own_size);
    memcpy(own, theirs, their_size < own_size ? their_size : own_size);
}

static kopi_status check_versions(const kopi_plugin *p, const char *path, kopi_error *err)
{
    static const char *const sanitizer[] = {"without sanitizers", "with AddressSanitizer", "with ThreadSanitizer"};
    if (p->abi_minor != KOPI_ABI_MINOR)
        return kopi__fail(err, KOPI_E_ABI,
                          "%s: built for backend ABI 0.%u, this kopi has 0.%u and needs the same: rebuild the plugin",
                          path, p->abi_minor, KOPI_ABI_MINOR);
    if (p->min_host_minor > KOPI_ABI_MINOR)
        return kopi__fail(err, KOPI_E_ABI, "%s: needs backend ABI 0.%u or later, this kopi has 0.%u", path,
                          p->min_host_minor, KOPI_ABI_MINOR);
    if (p->fingerprint != KOPI_FINGERPRINT)
        return kopi__fail(err, KOPI_E_ABI,
                          "%s: struct layout %016llx differs from kopi's %016llx: packing flags or other headers", path,
                          (unsigned long long)p->fingerprint, (unsigned long long)KOPI_FINGERPRINT);
    if (p->sanitizer != KOPI_SANITIZER)
        return kopi__fail(err, KOPI_E_ABI, "%s: built %s, kopi %s: they cannot share a process", path,
                          p->sanitizer < 3 ? sanitizer[p->sanitizer] : "with an unknown sanitizer",
                          sanitizer[KOPI_SANITIZER]);
    return KOPI_OK;
}

static kopi_status check_identity(const kopi_plugin *p, const char *path, kopi_error *err)
{
    const struct { int missing; const char *name; } need[] = {
        {!p->name, "name"}, {!p->version, "version"}, {!p->device, "device"}, {!p->ops, "ops"}};
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i].missing) return kopi__fail(err, KOPI_E_BACKEND, "%s: kopi_plugin lacks %s", path, need[i].name);
    if (!kopi__plugin_name_ok(p->name))
        return kopi__fail(err, KOPI_E_BACKEND, "%s: its name is not made of 1 to 32 of a-z 0-9 _ -", path);
    return KOPI_OK;
}

static kopi_status check_ops(const kopi_backend_ops *o, const char *path, kopi_error *err)
{
    const struct { int missing; const char *name;
    } need[] = {
        {!o->create, "create"},
        {!o->destroy, "destroy"},
        {!o->prepare && !o->n_kernels, "kernels or prepare"},
        {o->n_kernels && (!o->kernels || o->kernel_stride < KOPI_END_OF(kopi_kernel, scratch)), "kernel table"},
        {o->prepare && (!o->execute || !o->plan_free || !o->supports),
         "execute, plan_free and supports beside prepare"},
        {o->weight_import && !o->weight_free, "weight_free beside weight_import"},
        {!o->kv_export != !o->kv_import, "both kv_export and kv_import"},
        {o->buf_alloc && (!o->buf_free || !o->buf_read || !o->buf_write || !o->buf_copy), "all five buf_ functions"},
    };
    for (size_t i = 0; i < sizeof need / sizeof *need; i++)
        if (need[i].missing) return kopi__fail(err, KOPI_E_BACKEND, "%s: its ops table lacks %s", path, need[i].name);
    return KOPI_OK;
}

static kopi_status check_kernels(const kopi_backend_ops *o, const char *path, kopi_error *err)
{
    if (o->n_kernels > MAX_KERNELS)
        return kopi__fail(err, KOPI_E_BACKEND, "%s: its ops table has %u kernels, at most %d are possible", path,
                          o->n_kernels, MAX_KERNELS);
    for (uint32_t i = 0; i < o->n_kernels; i++) {
        const kopi_kernel *k = kopi__kernel_at(o, i);
        if (!k->run) return kopi__fail(err, KOPI_E_BACKEND, "%s: kernel row %u has no function", path, i);
        if (k->n_w > MAX_TYPES || k->n_a > MAX_TYPES)
            return kopi__fail(err, KOPI_E_BACKEND, "%s: kernel row %u lists %u and %u types, at most %d are possible",
                              path, i, k->n_w, k->n_a, MAX_TYPES);
    }
    return KOPI_OK;
}

static kopi_status check_type(const kopi_dtype_info *d, uint32_t seen, const char *path, kopi_error *err)
{
    if (d->id < KOPI_DTYPE_VENDOR_FIRST || d->id > KOPI_DTYPE_VENDOR_LAST)
        return kopi__fail(err, KOPI_E_BACKEND, "%s: its type 0x%08x is outside of 0x%08x to 0x%08x", path, d->id,
                          KOPI_DTYPE_VENDOR_FIRST, KOPI_DTYPE_VENDOR_LAST);
    if (!d->name || !d->block_len || !d->block_bytes || !d->to_f32)
        return kopi__fail(err, KOPI_E_BACKEND, "%s: its type 0x%08x lacks name, block_len, block_bytes or to_f32", path,
                          d->id);
    for (uint32_t i = 1; i <= seen; i++)
        if (d[-(int64_t)i].id == d->id)
            return kopi__fail(err, KOPI_E_BACKEND, "%s: its type 0x%08x is listed twice", path, d->id);
    return KOPI_OK;
}

/* Types of the plugin as an array of our own. */
static kopi_status copy_types(struct kopi_plugin_handle *h, const char *path, kopi_error *err)
{
    kopi_plugin *p = &h->desc;
    if (!p->n_dtypes) return KOPI_OK;
    if (!p->dtypes || p->n_dtypes > MAX_TYPES || p->dtype_stride < KOPI_END_OF(kopi_dtype_info, to_f32))
        return kopi__fail(err, KOPI_E_BACKEND,
                          "%s: its dtype table has %u rows of %u bytes; at most %d of at least %zu are possible", path,
                          p->n_dtypes, p->dtype_stride, MAX_TYPES, KOPI_END_OF(kopi_dtype_info, to_f32));
    h->dtypes = kopi__calloc(p->n_dtypes, sizeof *h->dtypes);
    if (!h->dtypes) return kopi__nomem(err, "types of a plugin");
    for (uint32_t i = 0; i < p->n_dtypes; i++) {
        const kopi_dtype_info *row = (const void *)((const char *)p->dtypes + (size_t)i * p->dtype_stride);
        copy_known(&h->dtypes[i], sizeof *h->dtypes, row,
                   row->struct_size < p->dtype_stride ? row->struct_size : p->dtype_stride);
        kopi_status s = check_type(&h->dtypes[i], i, path, err);
        if (s != KOPI_OK) return s;
    }
    p->dtypes = h->dtypes;
    p->dtype_stride = sizeof *h->dtypes;
    return KOPI_OK;
}

kopi_status kopi__plugin_check(const kopi_plugin *theirs, const char *path, struct kopi_plugin_handle *h,
                               kopi_error *err)
{
    if (!theirs) return kopi__fail(err, KOPI_E_BACKEND, "%s: kopi_plugin_v1 returned NULL", path);
    if (theirs->struct_size < KOPI_END_OF(kopi_plugin, ops))
        return kopi__fail(err, KOPI_E_ABI, "%s: kopi_plugin has %u bytes, at least %zu are needed", path,
                          theirs->struct_size, KOPI_END_OF(kopi_plugin, ops));
    copy_known(&h->desc, sizeof h->desc, theirs, theirs->struct_size);
    kopi_status s = check_versions(&h->desc, path, err);
    if (s == KOPI_OK) s = check_identity(&h->desc, path, err);
    if (s != KOPI_OK) return s;
    const kopi_backend_ops *ops = h->desc.ops;
    if (ops->struct_size < KOPI_END_OF(kopi_backend_ops, extension))
        return kopi__fail(err, KOPI_E_ABI, "%s: kopi_backend_ops has %u bytes, at least %zu are needed", path,
                          ops->struct_size, KOPI_END_OF(kopi_backend_ops, extension));
    copy_known(&h->ops, sizeof h->ops, ops, ops->struct_size);
    s = check_ops(&h->ops, path, err);
    if (s == KOPI_OK) s = check_kernels(&h->ops, path, err);
    return s == KOPI_OK ? copy_types(h, path, err) : s;
}
