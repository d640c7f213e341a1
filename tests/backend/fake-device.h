/* tests/backend/fake-device.h - a backend with a memory of its own, for tests: what a GPU is to kopi, without one. Its
 * chip is the reference backend, compiled in, which computes in the device's memory and sees no other. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include "fake-memory.h"

struct fake {
    const kopi_host *host;
    const kopi_backend_ops *chip;
    void *chip_be;
    struct fake_memory memory;
};

/* plugins/cpu/plugin.c, whose entry has this name here. */
const kopi_plugin *fake_chip_v1(void);

/* Functions of kopi_backend_ops. */
kopi_status fake_prepare(void *be, const kopi_program *p, uint32_t first_op, uint32_t n_ops, void **plan);
kopi_status fake_execute(void *be, void *plan, const kopi_run *run);
void fake_plan_free(void *be, void *plan);
#ifndef FAKE_CANONICAL
kopi_status fake_kv_export(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical);
kopi_status fake_kv_import(void *be, const kopi_program *p, uint32_t group, int32_t page, const void *canonical);
#endif

/* Where the part of a KV tensor lies in a page of this device. FAKE_CANONICAL: where kopi/op.h says; else the parts
 * come in the opposite order, so that whoever reads a page without kv_export reads nonsense. */
uint64_t fake_kv_offset(const kopi_program *p, const kopi_tensor *t);

#endif
