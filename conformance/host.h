/* conformance/host.h - the host that a plugin under test sees, and one created instance. */
#ifndef KOPI_CF_HOST_H
#define KOPI_CF_HOST_H

#include <kopi/backend.h>
#include <stdatomic.h>
#include <stdbool.h>

struct cf_host {
    kopi_host h;                /* what the plugin gets; ctx is this struct. Larger than the plugin knows it: */
    uint64_t beyond[4];         /* nonsense, counted in struct_size */
    const char *const *options; /* "key=value", NULL-terminated; or NULL */
    uint32_t threads;           /* size of the team: real threads, started anew for each region */
    char text[256];             /* of the last fail() */
    _Atomic long live;          /* allocations that are not freed */
    _Atomic long fail_at;       /* the n-th allocation from now fails; 0: none */
    _Atomic long polls;         /* calls of cancelled() */
    _Atomic long cancel_at;     /* cancelled() answers yes from the n-th poll on; 0: never */
};
void cf_host_init(struct cf_host *h, const char *const *options, uint32_t threads);

/* An instance of device 0. Not to be moved: the plugin holds pointers into it. */
struct cf_instance {
    struct cf_host host;
    const kopi_plugin *plugin;
    kopi_backend_ops ops; /* own copy: fields that the plugin doesn't know are NULL */
    kopi_device device;
    void *be;
};
/* On failure host.text says why, and nothing is to be closed. */
kopi_status cf_open(struct cf_instance *i, const kopi_plugin *p, const char *const *options, uint32_t threads);
/* The same with the fail_at-th allocation from create on failing; 0: none. */
kopi_status cf_open_starved(struct cf_instance *i, const kopi_plugin *p, const char *const *options, uint32_t threads,
                            long fail_at);
/* The same on a host that ends before the fields that came after the first hosts: nothing behind is to be read. */
kopi_status cf_open_first_host(struct cf_instance *i, const kopi_plugin *p, const char *const *options,
                               uint32_t threads);
void cf_close(struct cf_instance *i);

#endif
