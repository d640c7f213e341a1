#include "host.h"

#include "memory.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- services ---------------------------------------------------------------------------------------------------- */

static void host_log(void *ctx, int32_t level, const char *utf8) { (void)ctx, (void)level, (void)utf8; }

static kopi_status host_fail(void *ctx, kopi_status code, const char *utf8)
{
    struct cf_host *h = ctx;
    snprintf(h->text, sizeof h->text, "%s", utf8 ? utf8 : "");
    return code;
}

static void *host_alloc(void *ctx, uint64_t size, uint64_t align)
{
    struct cf_host *h = ctx;
    if (atomic_load(&h->fail_at) > 0 && atomic_fetch_sub(&h->fail_at, 1) == 1) return NULL;
    align = align < sizeof(void *) ? sizeof(void *) : align;
    void *p = aligned_alloc((size_t)align, (size_t)((size + align - 1) / align * align));
    if (p) atomic_fetch_add(&h->live, 1);
    return p;
}

static void host_free(void *ctx, void *p)
{
    struct cf_host *h = ctx;
    if (p) atomic_fetch_sub(&h->live, 1);
    free(p);
}

static void host_account(void *ctx, uint32_t space, int64_t delta) { (void)ctx, (void)space, (void)delta; }

static uint32_t host_team_size(void *ctx) { return ((struct cf_host *)ctx)->threads; }

static int32_t host_cancelled(void *ctx)
{
    struct cf_host *h = ctx;
    long n = atomic_fetch_add(&h->polls, 1) + 1, at = atomic_load(&h->cancel_at);
    return at && n >= at;
}

static const char *host_option(void *ctx, const char *key)
{
    const struct cf_host *h = ctx;
    size_t n = strlen(key);
    for (const char *const *o = h->options; o && *o; o++)
        if (strncmp(*o, key, n) == 0 && (*o)[n] == '=') return *o + n + 1;
    return NULL;
}

static const void *host_extension(void *ctx, const char *id)
{
    (void)ctx, (void)id;
    return NULL;
}

/* ---- the team: threads of one region ----------------------------------------------------------------------------- */

struct region {
    kopi_team_fn fn;
    void *arg;
    uint32_t n;
    pthread_barrier_t meet;
    struct kopi_team *workers;
};
struct kopi_team {
    struct region *region;
    uint32_t rank;
    kopi_status status;
    pthread_t thread;
};

static kopi_status first_failure(const struct region *r)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (r->workers[i].status != KOPI_OK) return r->workers[i].status;
    return KOPI_OK;
}

static kopi_status host_barrier(kopi_team *team, kopi_status mine)
{
    team->status = mine;
    pthread_barrier_wait(&team->region->meet);
    kopi_status s = first_failure(team->region);
    pthread_barrier_wait(&team->region->meet); /* nobody changes his status before all have read it */
    return s;
}

static void *work(void *arg)
{
    struct kopi_team *me = arg;
    me->status = me->region->fn(me->region->arg, me->rank, me->region->n, me);
    return NULL;
}

static kopi_status host_team(void *ctx, kopi_team_fn fn, void *arg)
{
    struct cf_host *h = ctx;
    struct region r = {.fn = fn, .arg = arg, .n = h->threads};
    uint32_t started = 1;
    r.workers = calloc(r.n, sizeof *r.workers);
    if (!r.workers || pthread_barrier_init(&r.meet, NULL, r.n)) abort();
    for (uint32_t i = 0; i < r.n; i++) r.workers[i] = (struct kopi_team){.region = &r, .rank = i};
    for (; started < r.n; started++)
        if (pthread_create(&r.workers[started].thread, NULL, work, &r.workers[started]))
            abort(); /* others already wait */
    work(&r.workers[0]);
    for (uint32_t i = 1; i < started; i++) pthread_join(r.workers[i].thread, NULL);
    kopi_status s = first_failure(&r);
    pthread_barrier_destroy(&r.meet);
    free(r.workers);
    return s;
}

void cf_host_init(struct cf_host *h, const char *const *options, uint32_t threads)
{
    memset(h, 0, sizeof *h);
    h->options = options;
    h->threads = threads;
    memset(h->beyond, CF_FILL, sizeof h->beyond);
    h->h = (kopi_host){.struct_size = sizeof h->h + sizeof h->beyond,
                       .abi_minor = KOPI_ABI_MINOR,
                       .ctx = h,
                       .log = host_log,
                       .fail = host_fail,
                       .alloc = host_alloc,
                       .free = host_free,
                       .account = host_account,
                       .team = host_team,
                       .team_size = host_team_size,
                       .barrier = host_barrier,
                       .cancelled = host_cancelled,
                       .option = host_option,
                       .extension = host_extension};
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

static kopi_status create(struct cf_instance *i, const kopi_plugin *p, long fail_at)
{
    i->plugin = p;
    memcpy(&i->ops, p->ops, p->ops->struct_size < sizeof i->ops ? p->ops->struct_size : sizeof i->ops);
    i->device.struct_size = sizeof i->device;
    kopi_status s = p->device(&i->host.h, 0, &i->device);
    i->host.fail_at = fail_at;
    return s == KOPI_OK ? i->ops.create(&i->host.h, 0, &i->be) : s;
}

kopi_status cf_open_starved(struct cf_instance *i, const kopi_plugin *p, const char *const *options, uint32_t threads,
                            long fail_at)
{
    memset(i, 0, sizeof *i);
    cf_host_init(&i->host, options, threads);
    return create(i, p, fail_at);
}

kopi_status cf_open_first_host(struct cf_instance *i, const kopi_plugin *p, const char *const *options,
                               uint32_t threads)
{
    memset(i, 0, sizeof *i);
    cf_host_init(&i->host, options, threads);
    i->host.h.struct_size = KOPI_END_OF(kopi_host, option);
    memset(&i->host.h.extension, CF_FILL, sizeof i->host.h.extension);
    return create(i, p, 0);
}

kopi_status cf_open(struct cf_instance *i, const kopi_plugin *p, const char *const *options, uint32_t threads)
{
    return cf_open_starved(i, p, options, threads, 0);
}

void cf_close(struct cf_instance *i)
{
    i->ops.destroy(i->be);
    i->be = NULL;
}
