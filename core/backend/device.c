#include "backend/device.h"

#include "base/error.h"
#include "base/mem.h"
#include <stdio.h>

kopi_status kopi__device_check(const struct kopi_instance *i, kopi_error *err)
{
    const struct { bool missing; const char *name;
    } need[] = {{!i->ops.buf_alloc, "the buf_ functions"},
                {!i->ops.weight_import, "weight_import"},
                {!i->ops.prepare, "prepare and execute"}};
    for (size_t k = 0; kopi__device_is_apart(i) && k < sizeof need / sizeof *need; k++)
        if (need[k].missing)
            return kopi__fail(err, KOPI_E_BACKEND,
                              "backend %s: the memory of its device is not visible to the host, and it lacks %s",
                              i->plugin->desc.name, need[k].name);
    return KOPI_OK;
}

kopi_status kopi__device_alloc(struct kopi_instance *i, uint64_t bytes, const char *what, void **handle,
                               kopi_error *err)
{
    struct kopi_guard g;
    kopi__guard_enter(&g);
    kopi_status s = i->ops.buf_alloc(i->be, bytes, 0, handle, NULL);
    s = kopi__guard_leave(&g, i, what, s, err);
    if (s != KOPI_OK) *handle = NULL; /* whatever it left there */
    if (s == KOPI_OK && !*handle)
        s = kopi__fail(err, KOPI_E_BACKEND, "backend %s: %s: buf_alloc gave no handle", i->plugin->desc.name, what);
    return s;
}

void kopi__device_free(struct kopi_instance *i, void *handle)
{
    struct kopi_guard g;
    if (!handle) return;
    kopi__guard_enter(&g);
    i->ops.buf_free(i->be, handle);
    kopi__guard_leave(&g, i, "buf_free", KOPI_OK, NULL);
}

kopi_status kopi__device_copy(struct kopi_instance *i, void *handle, uint64_t dst, uint64_t src, uint64_t n,
                              const char *what, kopi_error *err)
{
    struct kopi_guard g;
    kopi__guard_enter(&g);
    return kopi__guard_leave(&g, i, what, i->ops.buf_copy(i->be, handle, dst, handle, src, n), err);
}

/* ---- outputs ----------------------------------------------------------------------------------------------------- */

enum { MAX_OUTPUTS = 4 };

struct kopi_outputs {
    struct kopi_instance *i;
    struct { void *handle; uint64_t bytes; } buffers[MAX_OUTPUTS];
    kopi_run run;
    kopi_output outputs[MAX_OUTPUTS];
};

kopi_status kopi__outputs_new(struct kopi_instance *i, struct kopi_outputs **out, kopi_error *err)
{
    *out = kopi__calloc(1, sizeof **out);
    if (!*out) return kopi__nomem(err, "outputs");
    (*out)->i = i;
    return KOPI_OK;
}

void kopi__outputs_free(struct kopi_outputs *o)
{
    if (!o) return;
    for (int k = 0; k < MAX_OUTPUTS; k++) kopi__device_free(o->i, o->buffers[k].handle);
    kopi__free(o);
}

static uint64_t bytes_of(const kopi_output *o) { return (uint64_t)o->row_bytes * o->n_rows; }

static kopi_status grow(struct kopi_outputs *o, uint32_t k, uint64_t bytes, kopi_error *err)
{
    if (bytes <= o->buffers[k].bytes && o->buffers[k].handle) return KOPI_OK;
    kopi__device_free(o->i, o->buffers[k].handle);
    o->buffers[k].handle = NULL;
    o->buffers[k].bytes = bytes;
    return kopi__device_alloc(o->i, bytes ? bytes : 1, "rows of the outputs; lower context.batch",
                              &o->buffers[k].handle, err);
}

kopi_status kopi__outputs_place(struct kopi_outputs *o, const kopi_run *run, const kopi_run **theirs, kopi_error *err)
{
    if (run->n_out > MAX_OUTPUTS)
        return kopi__fail(err, KOPI_E_INTERNAL, "%u outputs, at most %d are possible", run->n_out, MAX_OUTPUTS);
    o->run = *run;
    o->run.outputs = o->outputs;
    o->run.output_stride = sizeof *o->outputs;
    for (uint32_t k = 0; k < run->n_out; k++) {
        o->outputs[k] = *kopi_output_at(run, k);
        kopi_status s = grow(o, k, bytes_of(&o->outputs[k]), err);
        if (s != KOPI_OK) return s;
        o->outputs[k].host = NULL;
        o->outputs[k].handle = o->buffers[k].handle;
    }
    *theirs = &o->run;
    return KOPI_OK;
}

kopi_status kopi__outputs_read(struct kopi_outputs *o, const kopi_run *run, kopi_error *err)
{
    kopi_status s = KOPI_OK;
    for (uint32_t k = 0; k < run->n_out && s == KOPI_OK; k++) {
        const kopi_output *to = kopi_output_at(run, k);
        struct kopi_guard g;
        if (!to->host || !to->n_rows) continue;
        kopi__guard_enter(&g);
        s = o->i->ops.buf_read(o->i->be, o->buffers[k].handle, 0, to->host, bytes_of(to));
        s = kopi__guard_leave(&g, o->i, "results", s, err);
    }
    return s;
}
