#include "backend/import.h"

#include "backend/device.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include <stdio.h>

struct uses { uint32_t mine, others; }; /* roles */

static uint32_t role_of(const kopi_op *op, uint32_t operand)
{
    if (op->op == KOPI_OP_EMBED) return KOPI_ROLE_EMBED;
    return op->op == KOPI_OP_LINEAR && operand == 1 ? KOPI_ROLE_LINEAR : KOPI_ROLE_VECTOR;
}

static void collect_uses(const struct kopi__program *b, const bool *mine, struct uses *uses)
{
    for (uint32_t o = 0; o < b->p.n_ops; o++) {
        const kopi_op *op = &b->ops[o];
        for (uint32_t k = 0; k < op->n_in; k++)
            if (op->in[k] >= 0 && b->sources[op->in[k]])
                *(mine[o] ? &uses[op->in[k]].mine : &uses[op->in[k]].others) |= role_of(op, k);
    }
}

/* One weight for the roles that the backend's operations have for it. */
struct import {
    const struct kopi_gguf *file;
    const struct kopi_gguf_tensor *source;
    kopi_tensor *tensor;
    struct uses uses;
};

static kopi_status call_import(struct kopi_instance *i, const struct import *m, kopi_weight_out *out, kopi_error *err)
{
    const kopi_tensor *t = m->tensor;
    kopi_weight w = {.struct_size = sizeof w,
                     .dtype = t->dtype,
                     .roles = m->uses.mine,
                     .n_dims = t->n_dims,
                     .name = t->name,
                     .data = t->data,
                     .size = m->source->size};
    for (int k = 0; k < 4; k++) {
        w.ne[k] = t->dim[k].n;
        w.nb[k] = t->nb[k];
    }
    struct kopi_guard guard;
    kopi__guard_enter(&guard);
    kopi_status s = i->ops.weight_import(i->be, &w, out);
    char what[96];
    snprintf(what, sizeof what, "weight %s", t->name);
    return kopi__guard_leave(&guard, i, what, s, err);
}

static kopi_status import_one(struct kopi_instance *i, const struct import *m, kopi_weight_out *out, kopi_error *err)
{
    const char *backend = i->plugin->desc.name, *name = m->tensor->name;
    struct kopi_source source = {m->file, m->source, false};
    i->source = m->uses.others ? NULL : &source;
    kopi_status s = call_import(i, m, out, err);
    i->source = NULL;
    if (s != KOPI_OK) return s;
    if (out->mode > KOPI_WEIGHT_REPACKED || (out->mode != KOPI_WEIGHT_REF && !out->handle))
        return kopi__fail(err, KOPI_E_BACKEND, "backend %s: weight %s: answered mode %u without a handle", backend,
                          name, out->mode);
    m->tensor->handle = out->handle;
    bool whole = out->mode != KOPI_WEIGHT_REF && !(m->uses.mine & ~out->roles);
    if (source.released && !whole)
        return kopi__fail(err, KOPI_E_BACKEND,
                          "backend %s: weight %s: gave back its source, but has no copy for all its uses", backend,
                          name);
    if (kopi__device_is_apart(i) && !whole)
        return kopi__fail(err, KOPI_E_BACKEND,
                          "backend %s: weight %s: not taken for all its uses, and its device can't see the file",
                          backend, name);
    if (whole && !m->uses.others) {
        m->tensor->data = NULL;
        kopi__gguf_drop(m->file, m->source, m->source->data, m->source->size);
    }
    return KOPI_OK;
}

static uint64_t total_bytes(const struct kopi__program *b)
{
    uint64_t n = 0;
    for (uint32_t t = 0; t < b->p.n_tensors; t++)
        if (b->sources[t]) n += b->sources[t]->size;
    return n ? n : 1;
}

static kopi_status import_all(struct kopi_instance *i, struct kopi__program *b, const struct uses *uses,
                              const struct kopi_gguf *g, int (*progress)(void *, float), void *ctx, uint64_t *bytes,
                              kopi_error *err)
{
    uint64_t total = total_bytes(b), done = 0;
    for (uint32_t t = 0; t < b->p.n_tensors; t++) {
        const struct kopi_gguf_tensor *source = b->sources[t];
        if (!source) continue;
        if (uses[t].mine && i->ops.weight_import) {
            kopi_weight_out out = {.struct_size = sizeof out, .mode = KOPI_WEIGHT_REF};
            const struct import m = {g, source, &b->tensors[t], uses[t]};
            kopi_status s = import_one(i, &m, &out, err);
            if (s != KOPI_OK) return s;
            if (out.mode != KOPI_WEIGHT_REF) *bytes += out.bytes;
        }
        done += source->size;
        if (progress && progress(ctx, (float)done / (float)total))
            return kopi__fail(err, KOPI_E_CANCELLED, "loading was cancelled");
    }
    return KOPI_OK;
}

kopi_status kopi__import_weights(struct kopi_instance *i, struct kopi__program *b, const bool *mine,
                                 const struct kopi_gguf *g, int (*progress)(void *ctx, float share), void *ctx,
                                 uint64_t *bytes, kopi_error *err)
{
    struct uses *uses = kopi__calloc(b->p.n_tensors, sizeof *uses);
    *bytes = 0;
    if (!uses) return kopi__nomem(err, "weights");
    collect_uses(b, mine, uses);
    kopi_status s = import_all(i, b, uses, g, progress, ctx, bytes, err);
    kopi__free(uses);
    if (s == KOPI_OK && i->ops.weights_done) {
        struct kopi_guard guard;
        kopi__guard_enter(&guard);
        s = kopi__guard_leave(&guard, i, "weights_done", i->ops.weights_done(i->be), err);
    }
    return s;
}

void kopi__import_free(struct kopi_instance *i, struct kopi__program *b)
{
    struct kopi_guard guard;
    kopi__guard_enter(&guard);
    for (uint32_t t = 0; t < b->p.n_tensors; t++)
        if (b->tensors[t].handle && b->tensors[t].kind == KOPI_KIND_WEIGHT) {
            i->ops.weight_free(i->be, b->tensors[t].handle);
            b->tensors[t].handle = NULL;
        }
    kopi__guard_leave(&guard, i, "weight_free", KOPI_OK, NULL);
}
