/* The program on the device: every operand has a place in the device's memory, which is resolved once. */
#include "fake-device.h"

#include <string.h>

struct plan {
    const kopi_program *p;
    uint32_t first, n;
    kopi_program own;     /* p with the tensors and groups below */
    kopi_tensor *tensors;
    kopi_kv_group *groups;
    void **data;          /* [n_tensors] addresses on the device */
    void **tables;        /* [n_tensors] buffers of the constants */
    unsigned char *done;  /* [n_tensors] resolved */
    void *arena, *scratch;
    uint64_t scratch_size;
};

static const kopi_kernel *kernel_at(const kopi_backend_ops *o, uint32_t i)
{
    return (const kopi_kernel *)(const void *)((const char *)o->kernels + (size_t)i * o->kernel_stride);
}

/* The chip has one function per operation, whatever the types. */
static const kopi_kernel *kernel_of(const struct fake *f, uint32_t op)
{
    for (uint32_t i = 0; i < f->chip->n_kernels; i++)
        if (kernel_at(f->chip, i)->op == op) return kernel_at(f->chip, i);
    return NULL;
}

uint64_t fake_kv_offset(const kopi_program *p, const kopi_tensor *t)
{
#ifdef FAKE_CANONICAL
    (void)p;
    return t->off;
#else
    return kopi_group_at(p, t->group)->page_bytes - t->off - (uint64_t)(t->nb[1] * t->dim[1].n);
#endif
}

/* ---- prepare ----------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const kopi_tensor *t) { return (uint64_t)(t->nb[t->n_dims - 1] * t->dim[t->n_dims - 1].n); }

/* A constant is the only operand that comes by its host address; it is read here and never again. */
static kopi_status upload(struct fake *f, const kopi_tensor *t, void **buffer, void **data)
{
    kopi_status s = fake_alloc(&f->memory, bytes_of(t), buffer);
    if (s == KOPI_OK) memcpy(*data = fake_at(&f->memory, *buffer, 0, bytes_of(t)), t->data, bytes_of(t));
    return s;
}

static kopi_status resolve(struct fake *f, struct plan *l, uint32_t i)
{
    kopi_tensor *t = &l->tensors[i];
    switch (t->kind) {
    case KOPI_KIND_WEIGHT: l->data[i] = fake_at(&f->memory, t->handle, 0, bytes_of(t)); break;
    case KOPI_KIND_CONST: return upload(f, t, &l->tables[i], &l->data[i]);
    case KOPI_KIND_ACT: l->data[i] = fake_at(&f->memory, t->handle ? t->handle : l->arena, t->off, bytes_of(t)); break;
    case KOPI_KIND_KV: t->off = fake_kv_offset(l->p, t); return KOPI_OK;
    default: return KOPI_OK; /* outputs: known when it runs */
    }
    t->data = l->data[i];
    return t->data ? KOPI_OK : KOPI_E_INVALID;
}

/* The operands of this plan alone: the others may be somebody else's, and elsewhere. */
static kopi_status resolve_list(struct fake *f, struct plan *l, const int32_t *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i] < 0 || l->done[list[i]]) continue;
        kopi_status s = resolve(f, l, (uint32_t)list[i]);
        if (s != KOPI_OK) return s;
        l->done[list[i]] = 1;
    }
    return KOPI_OK;
}

static kopi_status resolve_groups(struct fake *f, struct plan *l)
{
    for (uint32_t i = 0; i < l->p->n_groups; i++) {
        kopi_kv_group *g = &l->groups[i];
        g->base = fake_at(&f->memory, g->handle, 0, g->page_bytes * g->n_pages);
        if (!g->base) return KOPI_E_INVALID;
    }
    return KOPI_OK;
}

static kopi_status fill(struct fake *f, struct plan *l)
{
    kopi_status s = fake_alloc(&f->memory, l->p->act_bytes, &l->arena);
    if (s == KOPI_OK) s = resolve_groups(f, l);
    for (uint32_t i = 0; i < l->n && s == KOPI_OK; i++) {
        const kopi_op *op = kopi_op_at(l->p, l->first + i);
        const kopi_kernel *k = kernel_of(f, op->op);
        uint64_t need = k->scratch ? k->scratch(f->chip_be, &l->own, op, 1) : 0;
        if (need > l->scratch_size) l->scratch_size = need;
        s = resolve_list(f, l, op->in, op->n_in);
        if (s == KOPI_OK) s = resolve_list(f, l, op->out, op->n_out);
    }
    return s == KOPI_OK ? fake_alloc(&f->memory, l->scratch_size, &l->scratch) : s;
}

/* One block for the plan and its arrays. */
static struct plan *plan_new(struct fake *f, const kopi_program *p)
{
    size_t tensors = p->n_tensors * sizeof(kopi_tensor), groups = p->n_groups * sizeof(kopi_kv_group),
           list = p->n_tensors * sizeof(void *);
    size_t all = sizeof(struct plan) + tensors + groups + 2 * list + p->n_tensors;
    char *at = f->host->alloc(f->host->ctx, all, 64);
    if (!at) {
        f->host->fail(f->host->ctx, KOPI_E_NOMEM, "plan");
        return NULL;
    }
    memset(at, 0, all);
    struct plan *l = (void *)at;
    l->p = p;
    l->tensors = (void *)(at + sizeof *l);
    l->groups = (void *)((char *)l->tensors + tensors);
    l->data = (void *)((char *)l->groups + groups);
    l->tables = (void *)((char *)l->data + list);
    l->done = (void *)((char *)l->tables + list);
    for (uint32_t i = 0; i < p->n_tensors; i++) l->tensors[i] = *kopi_tensor_at(p, (int32_t)i);
    for (uint32_t i = 0; i < p->n_groups; i++) l->groups[i] = *kopi_group_at(p, i);
    l->own = *p;
    l->own.struct_size = sizeof l->own;
    l->own.tensors = l->tensors;
    l->own.tensor_stride = sizeof *l->tensors;
    l->own.groups = l->groups;
    l->own.group_stride = sizeof *l->groups;
    return l;
}

kopi_status fake_prepare(void *be, const kopi_program *p, uint32_t first_op, uint32_t n_ops, void **plan)
{
    struct fake *f = be;
    struct plan *l = plan_new(f, p);
    *plan = NULL;
    if (!l) return KOPI_E_NOMEM;
    l->first = first_op;
    l->n = n_ops;
    fake_enter(&f->memory);
    kopi_status s = fill(f, l);
    fake_leave(&f->memory);
    if (s == KOPI_OK) *plan = l;
    else fake_plan_free(f, l);
    return s;
}

void fake_plan_free(void *be, void *plan)
{
    struct fake *f = be;
    struct plan *l = plan;
    for (uint32_t i = 0; i < l->p->n_tensors; i++) fake_free(&f->memory, l->tables[i]);
    fake_free(&f->memory, l->arena);
    fake_free(&f->memory, l->scratch);
    f->host->free(f->host->ctx, l);
}

/* ---- execute ----------------------------------------------------------------------------------------------------- */

static kopi_status find_outputs(struct fake *f, struct plan *l, const kopi_run *run)
{
    for (uint32_t i = 0; i < l->p->n_tensors; i++) {
        if (l->tensors[i].kind != KOPI_KIND_OUTPUT || l->tensors[i].group >= run->n_out) continue;
        const kopi_output *o = kopi_output_at(run, l->tensors[i].group);
        l->data[i] = fake_at(&f->memory, o->handle, 0, (uint64_t)o->row_bytes * o->n_rows);
        if (!l->data[i]) return KOPI_E_INVALID;
    }
    return KOPI_OK;
}

kopi_status fake_execute(void *be, void *plan, const kopi_run *run)
{
    struct fake *f = be;
    struct plan *l = plan;
    fake_enter(&f->memory);
    kopi_status s = find_outputs(f, l, run);
    const kopi_kctx k = {.struct_size = sizeof k,
                         .nth = 1,
                         .prog = &l->own,
                         .run = run,
                         .data = l->data,
                         .scratch = fake_at(&f->memory, l->scratch, 0, l->scratch_size),
                         .scratch_size = l->scratch_size};
    for (uint32_t i = 0; i < l->n && s == KOPI_OK; i++) {
        const kopi_op *op = kopi_op_at(l->p, l->first + i);
        s = f->host->cancelled(f->host->ctx) ? KOPI_E_CANCELLED : kernel_of(f, op->op)->run(f->chip_be, &k, op);
    }
    fake_leave(&f->memory);
    return s;
}

/* ---- pages for the host ------------------------------------------------------------------------------------------ */

#ifndef FAKE_CANONICAL
static kopi_status translate(struct fake *f, const kopi_program *p, uint32_t group, int32_t page, char *out,
                             const char *in)
{
    const kopi_kv_group *g = kopi_group_at(p, group);
    fake_enter(&f->memory);
    char *at = page < 0 ? NULL : fake_at(&f->memory, g->handle, (uint64_t)page * g->page_bytes, g->page_bytes);
    for (uint32_t i = 0; at && i < p->n_tensors; i++) {
        const kopi_tensor *t = kopi_tensor_at(p, (int32_t)i);
        if (t->kind != KOPI_KIND_KV || t->group != group) continue;
        uint64_t mine = fake_kv_offset(p, t), n = (uint64_t)(t->nb[1] * t->dim[1].n);
        if (out) memcpy(out + t->off, at + mine, n);
        else memcpy(at + mine, in + t->off, n);
    }
    fake_leave(&f->memory);
    return at ? KOPI_OK : KOPI_E_INVALID;
}

kopi_status fake_kv_export(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical)
{
    return translate(be, p, group, page, canonical, NULL);
}
kopi_status fake_kv_import(void *be, const kopi_program *p, uint32_t group, int32_t page, const void *canonical)
{
    return translate(be, p, group, page, NULL, canonical);
}
#endif
