/* Faults of loading, of the tables, of the device, and of an instance's life. The rest of the tables is that of the
 * `cpu` backend, whose file is taken in. */
#include "broken.h"

#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const kopi_plugin *cpu__plugin_v1(void);
#define kopi_plugin_v1 cpu__plugin_v1
#include "plugins/cpu/plugin.c"
#undef kopi_plugin_v1

_Atomic int broken__instances;

/* ---- loading ----------------------------------------------------------------------------------------------------- */

#ifdef EXPORT_SECOND
KOPI_EXPORT int broken_second(void);
int broken_second(void) { return 2; }
#endif
#ifdef WANT_CORE
int kopi_model_load(void);
int (*broken__wants)(void) = kopi_model_load;
#endif

static void *sleep_on(void *arg)
{
    for (;;) pause();
    return arg;
}
static void start_thread(void)
{
    pthread_t t;
    pthread_create(&t, NULL, sleep_on, NULL);
}
static void catch_signal(int sig) { (void)sig; }

static void think(void)
{
    static _Atomic bool done; /* once is enough to be caught, and the other cases stay short */
    clock_t begin = clock();
    while (!done && clock() - begin < CLOCKS_PER_SEC / 5) {}
    done = true;
}

static kopi_kernel mine[N(kernels)];

__attribute__((constructor)) static void on_load(void)
{
    for (size_t i = 0; i < N(kernels); i++) {
        mine[i] = kernels[i];
        mine[i].run = broken__run;
        if (HAS(claims_any_type) && mine[i].op == KOPI_OP_EMBED) mine[i].w_types = NULL;
    }
#ifdef __x86_64__
    if (HAS(load_floats)) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); /* as -ffast-math links it in */
#else
    if (HAS(load_floats)) fesetround(FE_TOWARDZERO);
#endif
    if (HAS(load_handler)) signal(SIGUSR2, catch_signal);
    if (HAS(load_thread)) start_thread();
    if (HAS(load_prints)) puts("broken: hello");
}
__attribute__((destructor)) static void on_unload(void)
{
    if (HAS(crashes_at_unload)) abort();
}

/* ---- the device -------------------------------------------------------------------------------------------------- */

static kopi_status my_device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    if (HAS(slow)) think();
    if (HAS(no_end)) index = 0;
    uint32_t given = out->struct_size;
    kopi_status s = device(host, index, out);
    if (s != KOPI_OK) return s;
    if ((IS(not_exact) && !HAS(not_exact)) || IS(not_repeatable)) out->flags &= ~(uint32_t)KOPI_DEVICE_EXACT;
    if (HAS(writes_short)) memset(out->detail, 0, sizeof out->detail);
    if (HAS(writes_long) && given > sizeof *out) memset((char *)out + sizeof *out, 0, given - sizeof *out);
    return KOPI_OK;
}

/* ---- life -------------------------------------------------------------------------------------------------------- */

/* Everything that has nothing to do with memory. */
static void make_trouble(const kopi_host *host)
{
    if (HAS(create_floats)) fesetround(FE_DOWNWARD);
    if (HAS(exits_in_create)) exit(0);
    if (HAS(leaks_thread)) start_thread();
    if (HAS(leaks_file) && open("/dev/null", O_RDONLY) < 0) abort();
    if (HAS(create_handler)) signal(SIGPIPE, catch_signal);
    if (HAS(prints)) puts("broken: an instance");
    if (HAS(leaks_create)) host->alloc(host->ctx, 32, 16);
    if (HAS(leaks_malloc)) *(volatile char *)malloc(32) = 1;
    if (HAS(reads_late_host) || KOPI_HAS(host, extension)) host->extension(host->ctx, "kopi.nosuch/1");
}

static kopi_status my_create(const kopi_host *host, uint32_t index, void **be)
{
    struct options o;
    kopi_status s = read_options(host, &o);
    (void)index;
    if (s != KOPI_OK) return s;
    if (HAS(fails_mutely)) return KOPI_E_DEVICE_LOST;
    struct broken *b = host->alloc(host->ctx, sizeof *b, 64);
    if (!b && !HAS(ignores_no_memory)) return host->fail(host->ctx, KOPI_E_NOMEM, "state");
    memset(b, 0, sizeof *b);
    b->cpu = (struct cpu){host, o.kernels, o.linear_f32};
    b->more = host->alloc(host->ctx, 16, 16);
    if (!b->more) {
        if (!HAS(no_memory_leaks)) host->free(host->ctx, b);
        return host->fail(host->ctx, KOPI_E_NOMEM, "more state");
    }
    make_trouble(host);
    broken__instances++;
    *be = b;
    return KOPI_OK;
}

static void my_destroy(void *be)
{
    struct broken *b = be;
    const kopi_host *host = b->cpu.host;
    broken__instances = 0;
    host->free(host->ctx, b->more);
    host->free(host->ctx, b);
}

/* ---- claims ------------------------------------------------------------------------------------------------------ */

static int32_t my_supports(void *be, const kopi_program *p, const kopi_op *op)
{
    const kopi_host *host = ((struct broken *)be)->cpu.host;
    if (HAS(claims_nothing)) return 0;
    if (HAS(claims_any_op) && (op->op >= KOPI_OP_END_ || op->version != 1)) return 1;
    if (HAS(claims_any_type) && op->op == KOPI_OP_EMBED && op->version == 1) return 1;
    if (HAS(unsteady) && op->op == KOPI_OP_SOFTCAP && host->team_size(host->ctx) == 3) return 0;
    return supports(be, p, op);
}

static const char *my_describe(void *be, const kopi_program *p, const kopi_op *op)
{
    return supports(be, p, op) ? "broken" : NULL;
}

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Its own copy for LINEAR. EMBED goes on reading the file's bytes, so the copy must not be said to serve it as well. */
static kopi_status my_import(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    const kopi_host *host = ((struct broken *)be)->cpu.host;
    if (w->dtype != KOPI_DTYPE_F16 || !(w->roles & KOPI_ROLE_LINEAR)) return KOPI_OK;
    out->handle = host->alloc(host->ctx, w->size, 64);
    if (!out->handle) return host->fail(host->ctx, KOPI_E_NOMEM, "weights");
    memcpy(out->handle, w->data, w->size);
    out->mode = KOPI_WEIGHT_COPIED;
    out->roles = HAS(tied) ? w->roles : (uint32_t)KOPI_ROLE_LINEAR;
    out->bytes = w->size;
    return KOPI_OK;
}

static void my_weight_free(void *be, void *handle)
{
    const kopi_host *host = ((struct broken *)be)->cpu.host;
    host->free(host->ctx, handle);
}

/* ---- the tables -------------------------------------------------------------------------------------------------- */

static kopi_status half(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical)
{
    return (void)be, (void)p, (void)group, (void)page, (void)canonical, KOPI_E_INTERNAL;
}

static const kopi_backend_ops my_ops = {
    .struct_size = HAS(short_ops) ? 64 : sizeof my_ops,
    .create = my_create,
    .destroy = my_destroy,
    .kernels = BY_PLAN ? NULL : mine,
    .n_kernels = BY_PLAN ? 0 : N(kernels),
    .kernel_stride = sizeof *mine,
    .supports = my_supports,
    .describe = my_describe,
    .prepare = BY_PLAN ? broken__prepare : NULL,
    .execute = BY_PLAN ? broken__execute : NULL,
    .plan_free = BY_PLAN ? broken__plan_free : NULL,
    .weight_import = IS(tied) ? my_import : NULL,
    .weight_free = IS(tied) ? my_weight_free : NULL,
    .kv_export = HAS(half_tables) ? half : NULL,
};

#define PLUGIN                                                                                                         \
    {                                                                                                                  \
        .struct_size = HAS(short_plugin) ? 64 : sizeof(kopi_plugin), .abi_minor = KOPI_ABI_MINOR + HAS(other_minor),   \
        .min_host_minor = KOPI_ABI_MINOR, .sanitizer = KOPI_SANITIZER, .fingerprint = KOPI_FINGERPRINT,                \
        .name = HAS(no_name)      ? "No Name"                                                                          \
                : HAS(other_name) ? "other"                                                                            \
                                  : "broken",                                                                          \
        .version = "1", .device = my_device, .option_keys = option_keys, .ops = &my_ops                                \
    }
static const kopi_plugin plugins[2] = {PLUGIN, PLUGIN};

const kopi_plugin *kopi_plugin_v1(void)
{
    static _Atomic int asked;
    return &plugins[HAS(impure) ? asked++ % 2 : 0];
}
