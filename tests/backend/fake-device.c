/* The fake device's tables: life, buffers, weights. What it runs is in fake-plan.c, its memory in fake-memory.c. */
#include "fake-device.h"

#include <stdio.h>
#include <string.h>

/* ---- capability: what the chip can, without the operation that the option names ---------------------------------- */

#define COUNT(NAME, id, version) #NAME,
static const char *const op_names[] = {KOPI_OPS(COUNT)};
#define ID(NAME, id, version) id,
static const uint32_t op_ids[] = {KOPI_OPS(ID)};
static const char *const option_keys[] = {"without", NULL};

static int32_t lacks(const struct fake *f, uint32_t op)
{
    const char *without = f->host->option(f->host->ctx, "without");
    for (size_t i = 0; without && i < sizeof op_ids / sizeof *op_ids; i++)
        if (op_ids[i] == op) return !strcmp(op_names[i], without);
    return 0;
}

static int32_t supports(void *be, const kopi_program *p, const kopi_op *op)
{
    const struct fake *f = be;
    return f->chip->supports(f->chip_be, p, op) && !lacks(f, op->op);
}

static const char *describe(void *be, const kopi_program *p, const kopi_op *op)
{
    const struct fake *f = be;
    return supports(be, p, op) ? f->chip->describe(f->chip_be, p, op) : NULL;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static kopi_status buf_alloc(void *be, uint64_t size, uint32_t usage, void **handle, void **host_ptr)
{
    (void)usage;
    if (host_ptr) *host_ptr = NULL;
    return fake_alloc(&((struct fake *)be)->memory, size, handle);
}

static void buf_free(void *be, void *handle) { fake_free(&((struct fake *)be)->memory, handle); }

/* One of to and from is on the device. */
static kopi_status transfer(struct fake *f, void *handle, uint64_t off, void *to, const void *from, uint64_t n)
{
    fake_enter(&f->memory);
    char *at = fake_at(&f->memory, handle, off, n);
    if (at && n) memcpy(to ? to : at, to ? at : from, n);
    fake_leave(&f->memory);
    return at ? KOPI_OK : KOPI_E_INVALID;
}
static kopi_status buf_read(void *be, void *handle, uint64_t off, void *host, uint64_t n)
{
    return transfer(be, handle, off, host, NULL, n);
}
static kopi_status buf_write(void *be, void *handle, uint64_t off, const void *host, uint64_t n)
{
    return transfer(be, handle, off, NULL, host, n);
}

static kopi_status buf_copy(void *be, void *dst, uint64_t dst_off, void *src, uint64_t src_off, uint64_t n)
{
    struct fake *f = be;
    fake_enter(&f->memory);
    char *to = fake_at(&f->memory, dst, dst_off, n), *from = fake_at(&f->memory, src, src_off, n);
    if (to && from) memmove(to, from, n);
    fake_leave(&f->memory);
    return to && from ? KOPI_OK : KOPI_E_INVALID;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

static kopi_status weight_import(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    void *handle;
    kopi_status s = buf_alloc(be, w->size, 0, &handle, NULL);
    if (s == KOPI_OK) s = buf_write(be, handle, 0, w->data, w->size);
    if (s != KOPI_OK) return s;
    out->mode = KOPI_WEIGHT_COPIED;
    out->roles = w->roles;
    out->handle = handle;
    out->bytes = w->size;
    out->layout = "as in the file";
    return KOPI_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

static kopi_status create(const kopi_host *host, uint32_t device, void **be)
{
    struct fake *f = host->alloc(host->ctx, sizeof *f, 64);
    (void)device;
    if (!f) return host->fail(host->ctx, KOPI_E_NOMEM, "state of the device");
    *f = (struct fake){.host = host, .chip = fake_chip_v1()->ops, .memory = {.host = host}};
    kopi_status s = f->chip->create(host, 0, &f->chip_be);
    if (s == KOPI_OK) *be = f;
    else host->free(host->ctx, f);
    return s;
}

static void destroy(void *be)
{
    struct fake *f = be;
    f->chip->destroy(f->chip_be);
    fake_end(&f->memory);
    f->host->free(f->host->ctx, f);
}

static kopi_status device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    (void)host;
    if (index > 0) return KOPI_E_RANGE;
    kopi_device d = {.struct_size = sizeof d,
                     .kind = KOPI_DEVICE_ACCEL,
                     .flags = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE,
                     .align = 64,
                     .name = "fake",
                     .detail = "memory of its own"};
    uint32_t given = out->struct_size < sizeof d ? out->struct_size : (uint32_t)sizeof d;
    memcpy(out, &d, given);
    out->struct_size = given;
    return KOPI_OK;
}

static const kopi_backend_ops ops = {
    .struct_size = sizeof ops,
    .flags = KOPI_BF_ONE_THREAD,
    .create = create,
    .destroy = destroy,
    .supports = supports,
    .buf_alloc = buf_alloc,
    .buf_free = buf_free,
    .buf_read = buf_read,
    .buf_write = buf_write,
    .buf_copy = buf_copy,
    .weight_import = weight_import,
    .weight_free = buf_free,
    .prepare = fake_prepare,
    .execute = fake_execute,
    .plan_free = fake_plan_free,
#ifndef FAKE_CANONICAL
    .kv_export = fake_kv_export,
    .kv_import = fake_kv_import,
#endif
    .describe = describe,
};

static const kopi_plugin plugin = {
    .struct_size = sizeof plugin,
    .abi_minor = KOPI_ABI_MINOR,
    .min_host_minor = KOPI_ABI_MINOR,
    .sanitizer = KOPI_SANITIZER,
    .fingerprint = KOPI_FINGERPRINT,
#ifdef FAKE_CANONICAL
    .name = "fake-canonical",
#else
    .name = "fake-device",
#endif
    .version = "1",
    .license = "MIT",
    .device = device,
    .option_keys = option_keys,
    .ops = &ops,
};

const kopi_plugin *kopi_plugin_v1(void) { return &plugin; }
