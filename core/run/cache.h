/* core/run/cache.h - a cache: one KV sequence and the tokens in it. [one thread at a time per model] */
#ifndef KOPI_CORE_RUN_CACHE_H
#define KOPI_CORE_RUN_CACHE_H

#include "run/kv.h"
#include "run/model.h"

struct kopi_step;

struct kopi_cache {
    kopi_model *m;
    struct kopi_kv_seq *seq;
    struct kopi_step *step; /* for kopi_model_forward; made at its first use */
    kopi_cache *draft;      /* the draft model's, owned; made at its first use */
    int32_t *ids;           /* [n_ctx]; those of the positions held are valid */
};

/* Length of the longest prefix that the cache and ids have in common. */
uint32_t kopi__cache_common(const kopi_cache *c, const int32_t *ids, size_t n);
/* Makes to hold the first n tokens of from (n <= its length), sharing the pages. On failure nothing has changed. */
kopi_status kopi__cache_share(kopi_cache *to, const kopi_cache *from, uint32_t n, kopi_error *err);

#endif
