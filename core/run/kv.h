/* core/run/kv.h - the paged KV cache: fixed-size pages of positions, a page table per sequence, reference counts, copy
 * on write. One structure for one-user chat, parallel requests, shared prefixes and rollback. [one thread at a time] */
#ifndef KOPI_CORE_RUN_KV_H
#define KOPI_CORE_RUN_KV_H

#include <kopi/backend.h>
#include <kopi/kopi.h>

struct kopi_exec;
struct kopi_kv;

/* Pages live in the memory of the program's groups (kopi_kv_group.base, or inside the backend's buffer); exec copies
 * pages on write. n_groups page tables per sequence. */
kopi_status kopi__kv_new(const kopi_program *p, struct kopi_exec *exec, struct kopi_kv **out, kopi_error *err);
void kopi__kv_free(struct kopi_kv *kv);
uint64_t kopi__kv_pages_free(const struct kopi_kv *kv, uint32_t group);

/* One sequence: n positions held. */
struct kopi_kv_seq;
kopi_status kopi__kv_seq_new(struct kopi_kv *kv, struct kopi_kv_seq **out, kopi_error *err);
void kopi__kv_seq_free(struct kopi_kv_seq *s); /* gives its pages back */
uint32_t kopi__kv_seq_length(const struct kopi_kv_seq *s);
/* As kopi_seq_run.id: the same for its whole life, and of no other sequence of this kv before or after (a fork is
 * another one). */
uint32_t kopi__kv_seq_id(const struct kopi_kv_seq *s);
/* Room for n more positions: pages are taken, shared ones that would be written are copied. KOPI_E_RANGE past the
 * context or out of pages, then nothing has changed. The length grows only by kopi__kv_seq_commit, after the step
 * succeeded. */
kopi_status kopi__kv_seq_reserve(struct kopi_kv_seq *s, uint32_t n, kopi_error *err);
void kopi__kv_seq_commit(struct kopi_kv_seq *s, uint32_t n);
void kopi__kv_seq_truncate(struct kopi_kv_seq *s, uint32_t n); /* keeps the first n positions (n <= length) */
/* A second sequence that shares the first n positions (n <= length). */
kopi_status kopi__kv_seq_fork(struct kopi_kv_seq *s, uint32_t n, struct kopi_kv_seq **out, kopi_error *err);
const int32_t *const *
kopi__kv_seq_pages(const struct kopi_kv_seq *s); /* as kopi_seq_run.pages; valid until the next change */

#endif
