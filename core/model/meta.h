/* core/model/meta.h - typed, range-checked reading of a family's metadata keys ("ARCH.name"). [load] */
#ifndef KOPI_CORE_MODEL_META_H
#define KOPI_CORE_MODEL_META_H

#include "gguf/gguf.h"

/* Reads keys with the architecture as prefix and remembers the first failure: a family file reads as a list of keys. */
struct kopi_meta {
    const struct kopi_gguf *g;
    const char *arch;
    kopi_error *err;
    kopi_status status;
};

/* Integer in [min, max]; NULL default: required. An array of equal numbers counts as that number; different ones are
 * refused. */
uint32_t kopi__meta_u32(struct kopi_meta *m, const char *name, uint32_t min, uint32_t max, const uint32_t *fallback);
/* Finite number in [min, max]. */
double kopi__meta_f64(struct kopi_meta *m, const char *name, double min, double max, const double *fallback);
/* String, copied into buf; false if the key is absent. */
bool kopi__meta_str(struct kopi_meta *m, const char *name, char *buf, size_t n);
bool kopi__meta_has(const struct kopi_meta *m, const char *name);
/* Records a failure about key `name`; the first one wins. */
void kopi__meta_fail(struct kopi_meta *m, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
