/* Group abi: structs of other sizes, ids that nobody knows, fields that are reserved. */
#include "draws.h"
#include "drive.h"

#include <string.h>

enum { KNOWN_LEAST = KOPI_END_OF(kopi_device, align) };

/* ---- tables and the device --------------------------------------------------------------------------------------- */

/* Far above what a backend can mean, as the core has it: larger counts are garbage, and would be walked. */
enum { MAX_KERNELS = 4096, MAX_TYPES = 256 };

static bool kernels_are_right(struct cf_env *e, const kopi_backend_ops *o)
{
    if (!o->n_kernels) return true;
    if (!o->kernels || o->kernel_stride < KOPI_END_OF(kopi_kernel, scratch) || o->n_kernels > MAX_KERNELS)
        return cf_wrong(e, "a table of %u kernels with %u bytes each at %p; at most %d of at least %zu are possible",
                        o->n_kernels, o->kernel_stride, (const void *)o->kernels, MAX_KERNELS,
                        KOPI_END_OF(kopi_kernel, scratch));
    for (uint32_t k = 0; k < o->n_kernels; k++) {
        const kopi_kernel *row = (const void *)((const char *)o->kernels + (size_t)k * o->kernel_stride);
        if (!row->run || !row->version || !row->op)
            return cf_wrong(e, "row %u of the kernels lacks operation, version or function", k);
        if (row->n_w > MAX_TYPES || row->n_a > MAX_TYPES)
            return cf_wrong(e, "row %u of the kernels lists %u and %u types, at most %d are possible", k, row->n_w,
                            row->n_a, MAX_TYPES);
    }
    return true;
}

static bool types_are_right(struct cf_env *e, const kopi_plugin *p)
{
    if (!p->n_dtypes) return true;
    if (!p->dtypes || p->dtype_stride < KOPI_END_OF(kopi_dtype_info, to_f32) || p->n_dtypes > MAX_TYPES)
        return cf_wrong(e, "a table of %u types with %u bytes each at %p; at most %d of at least %zu are possible",
                        p->n_dtypes, p->dtype_stride, (const void *)p->dtypes, MAX_TYPES,
                        KOPI_END_OF(kopi_dtype_info, to_f32));
    for (uint32_t k = 0; k < p->n_dtypes; k++) {
        const kopi_dtype_info *d = (const void *)((const char *)p->dtypes + (size_t)k * p->dtype_stride);
        if (!d->name || !d->block_len || !d->block_bytes || !d->to_f32)
            return cf_wrong(e, "type %u of its own lacks name, block_len, block_bytes or to_f32", k);
        if (d->id < KOPI_DTYPE_VENDOR_FIRST || d->id > KOPI_DTYPE_VENDOR_LAST)
            return cf_wrong(e, "type %u of its own has number 0x%08x, which is not a vendor's", k, d->id);
    }
    return true;
}

static enum cf_verdict tables_are_right(struct cf_env *e, const struct cf_test *t)
{
    const kopi_plugin *p = e->subject.plugin;
    const kopi_backend_ops *o = p->ops;
    size_t n = strlen(p->name);
    (void)t;
    if (n < 1 || n > 32 || strspn(p->name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
        return cf_failed(e, "the name is not [a-z0-9_-]{1,32}");
    if (!kernels_are_right(e, o) || !types_are_right(e, p)) return CF_FAIL;
    if (!o->n_kernels && !o->prepare) return cf_failed(e, "neither kernels nor prepare");
    if (o->prepare && (!o->execute || !o->plan_free || !o->supports))
        return cf_failed(e, "prepare without execute, plan_free and supports");
    if (o->weight_import && !o->weight_free) return cf_failed(e, "weight_import without weight_free");
    if (o->buf_alloc && (!o->buf_free || !o->buf_read || !o->buf_write || !o->buf_copy))
        return cf_failed(e, "buf_alloc without the other four functions of buffers");
    return !o->kv_export != !o->kv_import ? cf_failed(e, "one of kv_export and kv_import without the other") : CF_PASS;
}

static enum cf_verdict device_is_described(struct cf_env *e, const struct cf_test *t)
{
    struct cf_host h;
    kopi_device d = {.struct_size = sizeof d};
    (void)t;
    cf_host_init(&h, e->subject.options, 1);
    if (e->subject.plugin->device(&h.h, 0, &d) != KOPI_OK) return cf_failed(e, "device 0 is refused: %s", h.text);
    if (!memchr(d.name, 0, sizeof d.name) || !memchr(d.detail, 0, sizeof d.detail))
        return cf_failed(e, "name or detail of the device has no end");
    if (!d.name[0]) return cf_failed(e, "the device has no name");
    if (d.align & (d.align - 1)) return cf_failed(e, "align is %u, no power of two", d.align);
    return CF_PASS;
}

static enum cf_verdict devices_end(struct cf_env *e, const struct cf_test *t)
{
    struct cf_host h;
    kopi_device d = {.struct_size = sizeof d};
    (void)t;
    cf_host_init(&h, e->subject.options, 1);
    kopi_status s = e->subject.plugin->device(&h.h, 10000, &d);
    return s == KOPI_E_RANGE ? CF_PASS : cf_failed(e, "device 10000 is answered with %d, not KOPI_E_RANGE", (int)s);
}

/* A kopi_device of which only `known` bytes exist: what follows must stay as it is. */
static enum cf_verdict device_of_size(struct cf_env *e, size_t known)
{
    struct cf_host h;
    union {
        kopi_device d;
        unsigned char bytes[sizeof(kopi_device) + 64];
    } u;
    cf_host_init(&h, e->subject.options, 1);
    memset(&u, CF_FILL, sizeof u);
    u.d.struct_size = (uint32_t)known;
    if (e->subject.plugin->device(&h.h, 0, &u.d) != KOPI_OK)
        return cf_failed(e, "a kopi_device of %zu bytes is refused", known);
    if (u.d.struct_size > known)
        return cf_failed(e, "struct_size of a kopi_device of %zu bytes is raised to %u", known, u.d.struct_size);
    for (size_t i = known < sizeof u.d ? known : sizeof u.d; i < sizeof u; i++)
        if (u.bytes[i] != CF_FILL) return cf_failed(e, "writes byte %zu of a kopi_device of %zu bytes", i, known);
    return CF_PASS;
}
static enum cf_verdict short_device(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return device_of_size(e, KNOWN_LEAST);
}
static enum cf_verdict long_device(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return device_of_size(e, sizeof(kopi_device) + 64);
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static bool knows_no_strange_op(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                                const struct cf_draw *d)
{
    static const struct {
        uint32_t op, version;
    } strange[] = {{9999, 1}, {0, 1}, {UINT32_MAX, 1}, {0, 99}};
    kopi_op op = c->ops[c->first_op + c->n_ops - 1];
    (void)ctx, (void)d;
    for (size_t s = 0; s < sizeof strange / sizeof *strange; s++) {
        kopi_op other = op;
        if (strange[s].version == 1) other.op = strange[s].op;
        else other.version = strange[s].version;
        if (i->ops.supports && i->ops.supports(i->be, &c->p, &other))
            return cf_wrong(e, "claims version %u of operation %u", other.version, other.op);
        if (i->ops.describe && i->ops.describe(i->be, &c->p, &other))
            return cf_wrong(e, "names the code of version %u of operation %u", other.version, other.op);
    }
    return true;
}

static enum cf_verdict unknown_ids(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n;
    (void)t;
    if (!cf_open_subject(e, &i, 1)) return CF_FAIL;
    bool ok = cf_each_kind(e, &i, false, knows_no_strange_op, NULL, &n);
    if (ok && i.ops.extension && i.ops.extension(i.be, "kopi.nosuch/1"))
        ok = cf_wrong(e, "offers the extension kopi.nosuch/1");
    cf_close(&i);
    return ok ? CF_PASS : CF_FAIL;
}

/* ---- structs of a later host ------------------------------------------------------------------------------------- */

static void fill_reserved(struct cf_program *c)
{
    const uint32_t nonsense = 0xa5a5a5a5;
    c->p.reserved = nonsense;
    for (uint32_t k = 0; k < c->n_ops; k++) {
        void *params = (void *)(uintptr_t)c->ops[c->first_op + k].params;
        switch (c->ops[c->first_op + k].op) {
        case KOPI_OP_EMBED: ((kopi_embed_params *)params)->reserved = nonsense; break;
        case KOPI_OP_KV_WRITE: ((kopi_kv_write_params *)params)->reserved = nonsense; break;
        case KOPI_OP_ATTN: ((kopi_attn_params *)params)->reserved = nonsense; break;
        case KOPI_OP_GLU: ((kopi_glu_params *)params)->reserved = nonsense; break;
        case KOPI_OP_SCALE:
        case KOPI_OP_SOFTCAP: ((kopi_scale_params *)params)->reserved = nonsense; break;
        }
    }
}

static void grow(struct cf_program *c) { c->grow = 64; }

/* The program as it is, and changed: the same results. */
static bool change_is_not_seen(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                               const struct cf_draw *d)
{
    struct cf_program other;
    char name[256];
    if (!cf_build(d, i, &other, name, sizeof name)) return true;
    (*(void (**)(struct cf_program *))ctx)(&other);
    bool ok = cf_drive_or_fail(e, i, c, 2) && cf_drive_or_fail(e, i, &other, 2) &&
              cf_agree_or_fail(e, i, d, c, &other, "other results");
    cf_program_free(&other);
    return ok;
}

static enum cf_verdict with_change(struct cf_env *e, void (*change)(struct cf_program *c))
{
    struct cf_instance i;
    uint32_t n;
    if (!cf_open_subject(e, &i, 2)) return CF_FAIL;
    bool ok = cf_each_kind(e, &i, true, change_is_not_seen, &change, &n);
    cf_close(&i);
    return !ok ? CF_FAIL : n ? CF_PASS : cf_skipped(e, "no operation is claimed");
}
static enum cf_verdict larger_structs(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return with_change(e, grow);
}
static enum cf_verdict reserved_fields(struct cf_env *e, const struct cf_test *t)
{
    (void)t;
    return with_change(e, fill_reserved);
}

/* ---- a host of the first version --------------------------------------------------------------------------------- */

static bool just_drive(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                       const struct cf_draw *d)
{
    (void)ctx, (void)d;
    return cf_drive_or_fail(e, i, c, 2);
}

static enum cf_verdict short_host(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n;
    (void)t;
    if (cf_open_first_host(&i, e->subject.plugin, e->subject.options, 2) != KOPI_OK)
        return cf_failed(e, "create on a host that ends before extension: %s", i.host.text);
    bool ok = cf_each_kind(e, &i, false, just_drive, NULL, &n);
    cf_close(&i);
    return ok ? CF_PASS : CF_FAIL;
}

void cf_add_abi(struct cf_list *l)
{
    static const struct cf_test tests[] = {
        {.name = "abi/tables", .run = tables_are_right},
        {.name = "abi/device", .run = device_is_described, .needs = "abi/tables"},
        {.name = "abi/devices-end", .run = devices_end, .needs = "abi/device"},
        {.name = "abi/short-device", .run = short_device, .needs = "abi/device"},
        {.name = "abi/long-device", .run = long_device, .needs = "abi/device"},
        {.name = "abi/short-host", .run = short_host, .needs = "life/create", .after = "ops"},
        {.name = "abi/unknown-ids", .run = unknown_ids, .needs = "life/create"},
        {.name = "abi/larger-structs", .run = larger_structs, .needs = "life/create", .after = "ops"},
        {.name = "abi/reserved-fields", .run = reserved_fields, .needs = "life/create", .after = "ops"},
    };
    cf_list_add_all(l, tests, sizeof tests / sizeof *tests);
}
