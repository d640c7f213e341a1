/* core/base/hash.h - uthash set up for hostile keys: include this instead of <uthash.h>. Keys are hashed with SipHash
 * under a key drawn once per process, so a file can't be made whose keys all fall into one bucket. Memory comes from
 * kopi__alloc; when it is short HASH_ADD leaves the element out and sets the `bool oom` that must be in scope. [any] */
#ifndef KOPI_CORE_BASE_HASH_H
#define KOPI_CORE_BASE_HASH_H

#include "base/mem.h"

/* SipHash-2-4 (Aumasson and Bernstein 2012) of n bytes under a 128-bit key. */
uint64_t kopi__siphash(const void *bytes, size_t n, const uint64_t key[2]);
/* The same under the process's random key. */
uint64_t kopi__hash(const void *bytes, size_t n);

#define HASH_FUNCTION(keyptr, keylen, hashv) ((hashv) = (unsigned)kopi__hash(keyptr, keylen))
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(obj) (oom = true)
#define uthash_malloc(size) kopi__alloc(size)
#define uthash_free(p, size) kopi__free(p)
#include <uthash.h>

#endif
