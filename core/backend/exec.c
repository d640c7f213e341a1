#include "backend/exec_state.h"

#include "backend/assign.h"
#include "backend/device.h"
#include "backend/import.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* ---- assignment -------------------------------------------------------------------------------------------------- */

static bool is_kv_op(const kopi_op *op) { return op->op == KOPI_OP_KV_WRITE || op->op == KOPI_OP_ATTN; }

/* KV_WRITE and ATTN share the layout of the pages, so they all go to one backend. */
static bool main_takes_all_kv(struct kopi_exec *x)
{
    const kopi_kernel *k;
    for (uint32_t i = 0; i < x->p->p.n_ops; i++)
        if (is_kv_op(&x->p->ops[i]) && kopi__instance_how(x->main, &x->p->p, &x->p->ops[i], &k) == KOPI_HOW_NOT)
            return false;
    return true;
}

/* Remembers text once in a list of at most a few lines' length. */
static void list_once(struct kopi_buf *list, const char *text)
{
    if (list->len > 700 || (list->data && strstr(list->data, text))) return;
    kopi__buf_fmt(list, "%s%s", list->len ? ", " : "", text);
}

static kopi_status assign(struct kopi_exec *x, kopi_error *err)
{
    const kopi_program *p = &x->p->p;
    struct kopi_buf missing = KOPI_BUF_INIT, filled = KOPI_BUF_INIT;
    bool kv = main_takes_all_kv(x), visible = !kopi__device_is_apart(x->main);
    for (uint32_t i = 0; i < p->n_ops; i++) {
        struct kopi_exec_call *c = &x->calls[i];
        char text[96];
        const kopi_op *op = &x->p->ops[i];
        c->who = x->main;
        if ((kv || !is_kv_op(op)) && kopi__instance_how(x->main, p, op, &c->kernel) != KOPI_HOW_NOT) continue;
        kopi__op_text(p, op, text, sizeof text);
        c->who = x->fallback;
        if (x->fallback && visible && kopi__instance_how(x->fallback, p, op, &c->kernel) == KOPI_HOW_KERNEL)
            list_once(&filled, text);
        else
            list_once(&missing, text);
    }
    kopi_status s = KOPI_OK;
    if (missing.len)
        s = kopi__fail(err, KOPI_E_BACKEND, "backend %s cannot run %s%s", x->main->plugin->desc.name, missing.data,
                       !strcmp(x->main->plugin->desc.name, "cpu") ? ", and no other backend is asked"
                       : !x->fallback ? "; backend.fallback: cpu may fill that in"
                       : !visible   ? ", and its memory is not visible to a fallback"
                                    : ", nor can the fallback");
    else if (filled.len)
        kopi__log(KOPI_LOG_WARN, "backend %s lacks %s: computed by backend %s", x->main->plugin->desc.name, filled.data,
                  x->fallback->plugin->desc.name);
    kopi__buf_free(&missing);
    kopi__buf_free(&filled);
    return s;
}

/* ---- segments and memory ----------------------------------------------------------------------------------------- */

static kopi_status split(struct kopi_exec *x, kopi_error *err)
{
    uint32_t n = x->p->p.n_ops;
    x->segments = kopi__calloc(n, sizeof *x->segments);
    if (!x->segments) return kopi__nomem(err, "plan");
    for (uint32_t i = 0; i < n; i++) {
        bool by_plan = !x->calls[i].kernel;
        if (!i || by_plan != !x->calls[i - 1].kernel) x->segments[x->n_segments++].first = i;
        x->segments[x->n_segments - 1].n++;
    }
    return KOPI_OK;
}

static bool has_kernels(const struct kopi_exec *x)
{
    for (uint32_t i = 0; i < x->n_segments; i++)
        if (!kopi__exec_is_plan(x, &x->segments[i])) return true;
    return false;
}

static kopi_status alloc_kernel_memory(struct kopi_exec *x, kopi_error *err)
{
    const kopi_program *p = &x->p->p;
    if (!has_kernels(x)) return KOPI_OK;
    x->threads = x->main->threads;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const struct kopi_exec_call *c = &x->calls[i];
        uint64_t need =
            c->kernel && c->kernel->scratch ? c->kernel->scratch(c->who->be, p, &x->p->ops[i], x->threads) : 0;
        if (need > x->scratch_size) x->scratch_size = need;
    }
    uint64_t all;
    if (!kopi__pad(x->scratch_size, 64, &x->scratch_size) || !kopi__mul(x->scratch_size, x->threads, &all))
        return kopi__nomem(err, "kernel scratch");
    x->arena = kopi__alloc_aligned(p->act_bytes, 64);
    x->scratch = kopi__alloc_aligned(all, 64);
    x->data = kopi__calloc(p->n_tensors, sizeof *x->data);
    if (!x->arena || !x->scratch || !x->data) return kopi__nomem(err, "activations; lower --batch-size");
    for (uint32_t i = 0; i < p->n_tensors; i++)
        if (x->p->tensors[i].kind == KOPI_KIND_ACT) x->p->tensors[i].data = (char *)x->arena + x->p->tensors[i].off;
    return KOPI_OK;
}

/* Pages of a group, reserved at once and taken from the system as they are written. */
static kopi_status alloc_pages(struct kopi_exec *x, kopi_kv_group *g, kopi_error *err)
{
    uint64_t bytes;
    if (!kopi__mul(g->page_bytes, g->n_pages, &bytes)) return kopi__nomem(err, "KV cache; lower --ctx-size");
    if (kopi__device_is_apart(x->main)) return kopi__device_alloc(x->main, bytes, "KV cache", &g->handle, err);
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return kopi__nomem(err, "KV cache; lower --ctx-size");
    madvise(base, bytes, MADV_HUGEPAGE); /* a wish: a long context is read through fewer address translations */
    g->base = base;
    return KOPI_OK;
}

static kopi_status alloc_kv(struct kopi_exec *x, kopi_error *err)
{
    kopi_status s = KOPI_OK;
    for (uint32_t i = 0; i < x->p->p.n_groups && s == KOPI_OK; i++) s = alloc_pages(x, &x->p->groups[i], err);
    return s;
}

static void free_kv(struct kopi_exec *x)
{
    for (uint32_t i = 0; i < x->p->p.n_groups; i++) {
        kopi_kv_group *g = &x->p->groups[i];
        if (g->base) munmap(g->base, g->page_bytes * g->n_pages);
        kopi__device_free(x->main, g->handle);
        g->base = g->handle = NULL;
    }
}

static kopi_status prepare(struct kopi_exec *x, kopi_error *err)
{
    for (uint32_t i = 0; i < x->n_segments; i++) {
        struct kopi_exec_segment *s = &x->segments[i];
        if (!kopi__exec_is_plan(x, s)) continue;
        struct kopi_guard guard;
        kopi__guard_enter(&guard);
        kopi_status r = x->main->ops.prepare(x->main->be, &x->p->p, s->first, s->n, &s->plan);
        r = kopi__guard_leave(&guard, x->main, "prepare", r, err);
        if (r != KOPI_OK) {
            s->plan = NULL; /* nothing is ours to free, whatever it left there */
            return r;
        }
    }
    return KOPI_OK;
}

static kopi_status import(struct kopi_exec *x, const struct kopi_gguf *g, int (*progress)(void *, float), void *ctx,
                          kopi_error *err)
{
    bool *mine = kopi__calloc(x->p->p.n_ops, sizeof *mine);
    if (!mine) return kopi__nomem(err, "weights");
    for (uint32_t i = 0; i < x->p->p.n_ops; i++) mine[i] = x->calls[i].who == x->main;
    x->imported = x->main->ops.weight_import != NULL;
    kopi_status s = kopi__import_weights(x->main, x->p, mine, g, progress, ctx, &x->weight_bytes, err);
    kopi__free(mine);
    return s;
}

kopi_status kopi__exec_new(struct kopi_instance *main, struct kopi_instance *fallback, struct kopi__program *p,
                           const struct kopi_gguf *g, int (*progress)(void *ctx, float share), void *ctx,
                           struct kopi_exec **out, kopi_error *err)
{
    struct kopi_exec *x = kopi__calloc(1, sizeof *x);
    *out = NULL;
    if (!x) return kopi__nomem(err, "executor");
    x->main = main;
    x->fallback = fallback;
    x->p = p;
    x->calls = kopi__calloc(p->p.n_ops, sizeof *x->calls);
    kopi_status s = x->calls ? assign(x, err) : kopi__nomem(err, "executor");
    if (s == KOPI_OK) s = split(x, err);
    if (s == KOPI_OK) s = alloc_kv(x, err);
    if (s == KOPI_OK) s = import(x, g, progress, ctx, err);
    if (s == KOPI_OK) s = alloc_kernel_memory(x, err);
    if (s == KOPI_OK && kopi__device_is_apart(main)) s = kopi__outputs_new(main, &x->outputs, err);
    if (s == KOPI_OK) s = prepare(x, err);
    if (s == KOPI_OK)
        *out = x;
    else
        kopi__exec_free(x);
    return s;
}

void kopi__exec_free(struct kopi_exec *x)
{
    if (!x) return;
    for (uint32_t i = 0; i < x->n_segments; i++)
        if (x->segments[i].plan) x->main->ops.plan_free(x->main->be, x->segments[i].plan);
    kopi__outputs_free(x->outputs);
    if (x->imported) kopi__import_free(x->main, x->p);
    free_kv(x);
    kopi__free(x->scratch);
    kopi__free(x->arena);
    kopi__free(x->data);
    kopi__free(x->segments);
    kopi__free(x->calls);
    kopi__free(x);
}

/* ---- what it says of itself, and pages --------------------------------------------------------------------------- */

kopi_status kopi__exec_copy_page(struct kopi_exec *x, uint32_t group, int32_t dst, int32_t src, kopi_error *err)
{
    const kopi_kv_group *g = &x->p->groups[group];
    uint64_t n = g->page_bytes;
    if (g->base) {
        memcpy((char *)g->base + (uint64_t)dst * n, (char *)g->base + (uint64_t)src * n, n);
        return KOPI_OK;
    }
    return kopi__device_copy(x->main, g->handle, (uint64_t)dst * n, (uint64_t)src * n, n, "page copy", err);
}

uint64_t kopi__exec_weight_bytes(const struct kopi_exec *x) { return x->weight_bytes; }
uint64_t kopi__exec_work_bytes(const struct kopi_exec *x)
{
    return x->data ? x->p->p.act_bytes + x->scratch_size * x->threads : 0;
}

const char *kopi__exec_describe(const struct kopi_exec *x, uint32_t i, char *buf, size_t n)
{
    const struct kopi_exec_call *c = &x->calls[i];
    const char *code = c->who->ops.describe ? c->who->ops.describe(c->who->be, &x->p->p, &x->p->ops[i]) : NULL;
    snprintf(buf, n, "%s %s", c->who->plugin->desc.name, code ? code : c->kernel ? "kernel" : "plan");
    return buf;
}
