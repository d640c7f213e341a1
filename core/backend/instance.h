/* core/backend/instance.h - one created backend: the plugin's tables normalised into our own structs, its host, its
 * state. */
#ifndef KOPI_CORE_BACKEND_INSTANCE_H
#define KOPI_CORE_BACKEND_INSTANCE_H

#include "backend/plugin.h"
#include "backend/trace.h"
#include "base/team.h"
#include "gguf/gguf.h"
#include <stdatomic.h>

/* What an instance gets of the world. All pointers are borrowed and outlive it. */
struct kopi_instance_env {
    struct kopi_team_pool *team;
    unsigned threads;                    /* 0: the plugin's default (all of the team, or 1 with KOPI_BF_ONE_THREAD) */
    const _Atomic int *cancel;
    const char *(*option)(void *ctx, const char *backend, const char *key); /* NULL where unset */
    void *option_ctx;
};

/* A weight that is being imported and that nobody else reads: its source may be given back piece by piece. */
struct kopi_source {
    const struct kopi_gguf *file;
    const struct kopi_gguf_tensor *tensor;
    atomic_bool released; /* some of it was */
};

struct kopi_instance {
    const struct kopi_plugin_handle *plugin;
    kopi_backend_ops ops;                /* own copy: absent tail fields are NULL */
    kopi_device device;
    kopi_host host;
    struct kopi_instance_env env;
    unsigned threads;                    /* team size that the plugin sees */
    struct kopi_source *source;          /* inside weight_import, or NULL */
    struct kopi_trace *trace;            /* that is taken at present, or NULL; changes between steps only */
    void *be;
};

/* Probes device `index` and creates. Errors: KOPI_E_BACKEND with the plugin's own text. */
kopi_status kopi__instance_new(const struct kopi_plugin_handle *p, uint32_t index, const struct kopi_instance_env *env,
                               struct kopi_instance **out, kopi_error *err);
void kopi__instance_free(struct kopi_instance *i);

/* Around every call into a plugin: floating-point state set, checked and restored (a change is logged once, naming the
 * plugin), and the text given to host->fail collected. */
struct kopi_guard { uint64_t fp; };
void kopi__guard_enter(struct kopi_guard *g);
void kopi__guard_check(struct kopi_instance *i, const char *what); /* state only; for the workers of a team, too */
/* Returns status; on failure fills err: "backend NAME: WHAT: text". */
kopi_status kopi__guard_leave(struct kopi_guard *g, struct kopi_instance *i, const char *what, kopi_status status,
                              kopi_error *err);

/* Kernel row of i for an operation of p, or NULL; a_type 0 or the program's own. Only rows; `supports` is asked by the
 * caller. */
const kopi_kernel *kopi__instance_kernel(const struct kopi_instance *i, uint32_t op, uint32_t version, uint32_t w_type,
                                         uint32_t a_type);

#endif
