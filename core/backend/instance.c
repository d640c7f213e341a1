#include "backend/instance.h"

#include "backend/device.h"
#include "base/error.h"
#include "base/fpstate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sys.h"
#include <kopi/ext/draft/release.h>
#include <kopi/ext/draft/trace.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ALIGN = 1 << 21 }; /* a huge page */

/* An instance with what its host needs; the host's ctx points here. */
struct state {
    struct kopi_instance pub;
    pthread_mutex_t lock;
    char text[512];         /* of the first host->fail since the call into the plugin began */
    _Atomic bool fp_warned;
    _Atomic int64_t accounted[3];
};

static const char *name_of(const struct state *s) { return s->pub.plugin->desc.name; }

/* ---- the host's services ----------------------------------------------------------------------------------------- */

static void host_log(void *ctx, int32_t level, const char *utf8)
{
    struct state *s = ctx;
    kopi__log(level < 0 ? 0 : level > 3 ? 3 : level, "backend %s: %s", name_of(s), utf8 ? utf8 : "");
}

static kopi_status host_fail(void *ctx, kopi_status code, const char *utf8)
{
    struct state *s = ctx;
    pthread_mutex_lock(&s->lock);
    if (!s->text[0]) snprintf(s->text, sizeof s->text, "%s", utf8 ? utf8 : "");
    pthread_mutex_unlock(&s->lock);
    return code < 0 ? code : KOPI_E_INTERNAL;
}

static void *host_alloc(void *ctx, uint64_t size, uint64_t align)
{
    (void)ctx;
    return align && (align & (align - 1)) == 0 ? kopi__alloc_aligned(size, align < 16 ? 16 : align) : NULL;
}
static void host_free(void *ctx, void *p)
{
    (void)ctx;
    kopi__free(p);
}
static void host_account(void *ctx, uint32_t space, int64_t delta)
{
    struct state *s = ctx;
    if (space < 3) atomic_fetch_add(&s->accounted[space], delta);
}

struct team_call { struct state *s; kopi_team_fn fn; void *arg; };

static kopi_status run_worker(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    const struct team_call *c = arg;
    kopi_status r = c->fn(c->arg, ith, nth, team);
    kopi__guard_check(&c->s->pub, "a worker of its team");
    return r;
}

static kopi_status host_team(void *ctx, kopi_team_fn fn, void *arg)
{
    struct team_call c = {ctx, fn, arg};
    return kopi__team_run(c.s->pub.env.team, run_worker, &c, c.s->pub.threads);
}
static uint32_t host_team_size(void *ctx) { return ((struct state *)ctx)->pub.threads; }

static int32_t host_cancelled(void *ctx)
{
    const struct state *s = ctx;
    return s->pub.env.cancel && atomic_load_explicit(s->pub.env.cancel, memory_order_relaxed);
}

static const char *host_option(void *ctx, const char *key)
{
    const struct state *s = ctx;
    return s->pub.env.option && key ? s->pub.env.option(s->pub.env.option_ctx, name_of(s), key) : NULL;
}

static int32_t trace_on(void *ctx) { return ((const struct state *)ctx)->pub.trace != NULL; }
static uint64_t trace_now(void *ctx)
{
    (void)ctx;
    return kopi__now_ns();
}
static void trace_span(void *ctx, uint32_t ith, uint64_t begin, uint64_t end, const uint32_t *ops, uint32_t n_ops)
{
    const struct state *s = ctx;
    if (s->pub.trace && ops) kopi__trace_span(s->pub.trace, ith, begin, end, ops, n_ops);
}

/* Bytes outside the weight are none of the backend's. */
static void release_bytes(void *ctx, const void *begin, uint64_t size)
{
    struct kopi_source *source = ((const struct state *)ctx)->pub.source;
    if (!source) return;
    uintptr_t at = (uintptr_t)begin, first = (uintptr_t)source->tensor->data, n = source->tensor->size;
    if (at < first || at - first > n || size > n - (at - first)) return;
    atomic_store(&source->released, true);
    kopi__gguf_drop(source->file, source->tensor, begin, size);
}

static const void *host_extension(void *ctx, const char *id)
{
    static const kopi_ext_trace trace = {sizeof trace, 0, trace_on, trace_now, trace_span};
    static const kopi_ext_release release = {sizeof release, 0, release_bytes};
    static const struct {
        const char *id;
        const void *table;
    } offered[] = {{KOPI_EXT_TRACE, &trace}, {KOPI_EXT_RELEASE, &release}};
    (void)ctx;
    for (size_t n = 0; id && n < sizeof offered / sizeof *offered; n++)
        if (!strcmp(id, offered[n].id)) return offered[n].table;
    return NULL;
}

/* ---- guard ------------------------------------------------------------------------------------------------------- */

void kopi__guard_enter(struct kopi_guard *g)
{
    g->fp = kopi__fp_get();
    kopi__fp_set(kopi__fp_default());
}

void kopi__guard_check(struct kopi_instance *i, const char *what)
{
    struct state *s = (struct state *)i;
    if (kopi__fp_get() == kopi__fp_default()) return;
    kopi__fp_set(kopi__fp_default());
    if (!atomic_exchange(&s->fp_warned, true))
        kopi__log(KOPI_LOG_WARN, "backend %s changed the floating-point state in %s; undone", name_of(s), what);
}

kopi_status kopi__guard_leave(struct kopi_guard *g, struct kopi_instance *i, const char *what, kopi_status status,
                              kopi_error *err)
{
    struct state *s = (struct state *)i;
    kopi__guard_check(i, what);
    kopi__fp_set(g->fp);
    if (status != KOPI_OK) {
        if (status > 0) status = KOPI_E_INTERNAL;
        kopi__fail(err, status, "backend %s: %s: %s", name_of(s), what,
                   s->text[0] ? s->text : kopi_status_name(status));
    }
    s->text[0] = 0;
    return status;
}

/* ---- create ------------------------------------------------------------------------------------------------------ */

static kopi_status probe(struct state *s, uint32_t index, kopi_error *err)
{
    struct kopi_guard g;
    kopi_device *d = &s->pub.device;
    d->struct_size = sizeof *d;
    kopi__guard_enter(&g);
    kopi_status r = s->pub.plugin->desc.device(&s->pub.host, index, d);
    bool none = r == KOPI_E_RANGE;
    r = kopi__guard_leave(&g, &s->pub, "device", r, err);
    d->name[sizeof d->name - 1] = d->detail[sizeof d->detail - 1] = 0;
    if (none && !index)
        return kopi__fail(err, KOPI_E_BACKEND, "backend %s: finds no device on this machine", name_of(s));
    if (r != KOPI_OK) return r;
    if (d->struct_size > sizeof *d)
        return kopi__fail(err, KOPI_E_BACKEND, "backend %s: its device has %u bytes, kopi gave %zu", name_of(s),
                          d->struct_size, sizeof *d);
    if (d->align & (d->align - 1) || d->align > MAX_ALIGN)
        return kopi__fail(err, KOPI_E_BACKEND, "backend %s: device alignment %u is not a power of two up to %d",
                          name_of(s), d->align, MAX_ALIGN);
    return KOPI_OK;
}

kopi_status kopi__instance_new(const struct kopi_plugin_handle *p, uint32_t index, const struct kopi_instance_env *env,
                               struct kopi_instance **out, kopi_error *err)
{
    struct state *s = kopi__calloc(1, sizeof *s);
    *out = NULL;
    if (!s) return kopi__nomem(err, "backend");
    struct kopi_instance *i = &s->pub;
    pthread_mutex_init(&s->lock, NULL);
    i->plugin = p;
    i->ops = p->ops;
    i->env = *env;
    unsigned team = kopi__team_size(env->team);
    i->threads = env->threads ? env->threads : p->ops.flags & KOPI_BF_ONE_THREAD ? 1 : team;
    if (i->threads > team) i->threads = team;
    i->host = (kopi_host){sizeof i->host, KOPI_ABI_MINOR, s,         host_log,       host_fail,          host_alloc,
                          host_free,      host_account,   host_team, host_team_size, kopi__team_barrier, host_cancelled,
                          host_option,    host_extension};
    kopi_status r = probe(s, index, err);
    if (r == KOPI_OK) r = kopi__device_check(i, err);
    if (r == KOPI_OK) {
        struct kopi_guard g;
        kopi__guard_enter(&g);
        r = i->ops.create(&i->host, index, &i->be);
        r = kopi__guard_leave(&g, i, "create", r, err);
        if (r != KOPI_OK) i->be = NULL;
    }
    if (r == KOPI_OK) {
        *out = i;
        return r;
    }
    pthread_mutex_destroy(&s->lock);
    kopi__free(s);
    return r == KOPI_E_NOMEM ? r : (err ? (err->code = KOPI_E_BACKEND) : KOPI_E_BACKEND);
}

void kopi__instance_free(struct kopi_instance *i)
{
    struct state *s = (struct state *)i;
    if (!i) return;
    struct kopi_guard g;
    kopi__guard_enter(&g);
    i->ops.destroy(i->be);
    kopi__guard_leave(&g, i, "destroy", KOPI_OK, NULL);
    pthread_mutex_destroy(&s->lock);
    kopi__free(s);
}

static bool listed(const uint32_t *types, uint32_t n, uint32_t type)
{
    for (uint32_t i = 0; types && i < n; i++)
        if (types[i] == type) return true;
    return !types;
}

const kopi_kernel *kopi__instance_kernel(const struct kopi_instance *i, uint32_t op, uint32_t version, uint32_t w_type,
                                         uint32_t a_type)
{
    for (uint32_t k = 0; k < i->ops.n_kernels; k++) {
        const kopi_kernel *row = kopi__kernel_at(&i->ops, k);
        if (row->op == op && row->version == version && listed(row->w_types, row->n_w, w_type) &&
            listed(row->a_types, row->n_a, a_type))
            return row;
    }
    return NULL;
}
