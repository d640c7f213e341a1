/* tests/support/load.h - a model file loaded through the public interface with the backends of the build tree.
 * Aborts on failure, but for tiny_try. */
#ifndef KOPI_TESTS_LOAD_H
#define KOPI_TESTS_LOAD_H

#include <kopi/kopi.h>

/* Backends to run a test with: all that the build installs, the reference ("cpu") first. NULL-terminated. */
extern const char *tiny_backends[];

struct tiny_loaded {
    kopi_config *cfg;
    kopi_engine *engine;
    kopi_model *model;
};

/* settings: "models[].context.size=64" and so on, NULL-terminated; NULL: none. KV is F32 and there is no fallback
 * unless they say otherwise. */
void tiny_load(struct tiny_loaded *l, const char *path, const char *backend, const char *const *settings);
kopi_status tiny_try(struct tiny_loaded *l, const char *path, const char *backend, const char *const *settings,
                     kopi_error *err);
void tiny_unload(struct tiny_loaded *l); /* also after a failed tiny_try */

#endif
