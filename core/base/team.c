#include "base/team.h"

#include "base/error.h"
#include "base/fpstate.h"
#include "base/mem.h"
#include "base/sys.h"
#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* How long a waiter spins before it sleeps: longer than a wake-up takes (some 25 us), so that a team that has slept
 * once doesn't sleep at every barrier from then on; short enough to be invisible to others. With more workers than
 * allowed CPUs waiters sleep at once. */
enum { SPIN_NS = 100000 };

/* One running call. Lives on the stack of kopi__team_run. */
struct kopi_team {
    struct kopi_team_pool *pool;
    kopi_team_fn fn;
    void *arg;
    uint32_t nth;
};

/* Status by rank, each on a line of its own. */
struct rank {
    _Alignas(64) kopi_status status; /* result of the call */
    kopi_status at_barrier[2];       /* by parity of the barrier's phase */
};

struct kopi_team_pool {
    unsigned n, spins;
    pthread_mutex_t one_caller;
    struct rank *ranks;
    pthread_t *threads;                 /* of ranks 1 .. n - 1 */
    _Alignas(64) _Atomic uint32_t call; /* generation of the call; workers wait for a change */
    struct kopi_team team;
    bool stop;
    _Alignas(64) _Atomic uint32_t left; /* workers that have not finished the call */
    _Alignas(64) _Atomic uint32_t arrived;
    _Alignas(64) _Atomic uint32_t phase;    /* of the barrier */
    _Alignas(64) _Atomic uint32_t sleepers; /* threads in or about to enter FUTEX_WAIT, on any of the words */
};
static_assert(sizeof(struct rank) == 64, "one line per rank");

static _Thread_local const struct kopi_team_pool *inside; /* the pool whose call this thread is in */
static _Thread_local uint32_t my_rank;

static void pause_cpu(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Rounds of pause_cpu that take SPIN_NS: a pause is 10 cycles on some processors and 140 on others. */
static unsigned spin_rounds(void)
{
    enum { ROUNDS = 500, TRIES = 3 };
    uint64_t best = UINT64_MAX;
    for (int t = 0; t < TRIES; t++) {
        uint64_t begin = kopi__now_ns();
        for (int i = 0; i < ROUNDS; i++) pause_cpu();
        uint64_t ns = kopi__now_ns() - begin;
        if (ns < best) best = ns;
    }
    return (unsigned)((uint64_t)ROUNDS * SPIN_NS / (best ? best : 1));
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Returns once *word differs from `old`. */
static void wait_change(struct kopi_team_pool *p, _Atomic uint32_t *word, uint32_t old)
{
    for (unsigned i = 0; i < p->spins; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != old) return;
        pause_cpu();
    }
    /* Either the waker sees this sleeper or the kernel sees the new word: both sides are sequentially consistent. */
    atomic_fetch_add(&p->sleepers, 1);
    while (atomic_load(word) == old) futex(word, FUTEX_WAIT, old);
    atomic_fetch_sub(&p->sleepers, 1);
}

/* To be called after a sequentially consistent change of *word. */
static void wake_all(struct kopi_team_pool *p, _Atomic uint32_t *word)
{
    if (atomic_load(&p->sleepers)) futex(word, FUTEX_WAKE, INT32_MAX);
}

static void run_rank(struct kopi_team_pool *p, uint32_t rank)
{
    struct kopi_team *t = &p->team;
    inside = p;
    my_rank = rank;
    p->ranks[rank].status = t->fn(t->arg, rank, t->nth, t);
    inside = NULL;
}

struct start { struct kopi_team_pool *pool; uint32_t rank; };

static void *worker(void *arg)
{
    struct start s = *(struct start *)arg;
    kopi__free(arg);
    struct kopi_team_pool *p = s.pool;
    for (uint32_t seen = 0;;) {
        wait_change(p, &p->call, seen);
        seen = atomic_load_explicit(&p->call, memory_order_acquire);
        if (p->stop) return NULL;
        if (s.rank < p->team.nth) {
            kopi__fp_set(kopi__fp_default());
            run_rank(p, s.rank);
        }
        if (atomic_fetch_sub(&p->left, 1) == 1) wake_all(p, &p->left);
    }
}

kopi_status kopi__team_new(unsigned n, struct kopi_team_pool **out, kopi_error *err)
{
    *out = NULL;
    if (n < 1 || n > 1024) return kopi__fail(err, KOPI_E_INVALID, "threads is %u, allowed are 1 to 1024", n);
    struct kopi_team_pool *p = kopi__alloc_aligned(sizeof *p, 64);
    if (!p) return kopi__nomem(err, "thread team");
    memset(p, 0, sizeof *p);
    pthread_mutex_init(&p->one_caller, NULL);
    p->n = 1;
    p->spins = n > 1 && n <= kopi__allowed_cpus() ? spin_rounds() : 0;
    p->ranks = kopi__alloc_aligned(n * sizeof *p->ranks, 64);
    p->threads = kopi__calloc(n, sizeof *p->threads);
    if (!p->ranks || !p->threads) {
        kopi__team_free(p);
        return kopi__nomem(err, "thread team");
    }
    /* Workers take no signals: Ctrl-C and the like belong to the application's threads. */
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGSEGV);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int e = 0;
    for (unsigned r = 1; r < n && !e; r++) {
        struct start *s = kopi__alloc(sizeof *s);
        if (!s) {
            e = ENOMEM;
            break;
        }
        *s = (struct start){p, r};
        e = pthread_create(&p->threads[r], NULL, worker, s);
        if (e)
            kopi__free(s);
        else
            p->n = r + 1;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (e) {
        kopi__team_free(p);
        return kopi__fail(err, KOPI_E_NOMEM, "cannot start %u threads: %s; lower --threads", n, strerror(e));
    }
    *out = p;
    return KOPI_OK;
}

void kopi__team_free(struct kopi_team_pool *p)
{
    if (!p) return;
    p->stop = true;
    atomic_fetch_add(&p->call, 1);
    wake_all(p, &p->call);
    for (unsigned r = 1; r < p->n; r++) pthread_join(p->threads[r], NULL);
    pthread_mutex_destroy(&p->one_caller);
    kopi__free(p->threads);
    kopi__free(p->ranks);
    kopi__free(p);
}

unsigned kopi__team_size(const struct kopi_team_pool *p) { return p->n; }

kopi_status kopi__team_run(struct kopi_team_pool *p, kopi_team_fn fn, void *arg, unsigned limit)
{
    if (inside == p) return KOPI_E_INVALID;
    pthread_mutex_lock(&p->one_caller);
    uint64_t fp = kopi__fp_get();
    kopi__fp_set(kopi__fp_default());
    uint32_t nth = limit && limit < p->n ? limit : p->n;
    p->team = (struct kopi_team){p, fn, arg, nth};
    if (nth > 1) {
        atomic_store_explicit(&p->left, p->n - 1, memory_order_relaxed);
        atomic_fetch_add(&p->call, 1);
        wake_all(p, &p->call);
    }
    run_rank(p, 0);
    if (nth > 1)
        for (uint32_t left; (left = atomic_load_explicit(&p->left, memory_order_acquire));)
            wait_change(p, &p->left, left);
    kopi_status status = KOPI_OK;
    for (uint32_t r = 0; r < nth && status == KOPI_OK; r++) status = p->ranks[r].status;
    kopi__fp_set(fp);
    pthread_mutex_unlock(&p->one_caller);
    return status;
}

kopi_status kopi__team_barrier(kopi_team *t, kopi_status mine)
{
    struct kopi_team_pool *p = t->pool;
    if (t->nth == 1) return mine;
    uint32_t phase = atomic_load_explicit(&p->phase, memory_order_acquire), slot = phase & 1;
    p->ranks[my_rank].at_barrier[slot] = mine;
    if (atomic_fetch_add_explicit(&p->arrived, 1, memory_order_acq_rel) + 1 == t->nth) {
        atomic_store_explicit(&p->arrived, 0, memory_order_relaxed);
        atomic_fetch_add(&p->phase, 1);
        wake_all(p, &p->phase);
    } else
        wait_change(p, &p->phase, phase);
    /* The slot is written again two barriers later, when every worker has left this one. */
    for (uint32_t r = 0; r < t->nth; r++)
        if (p->ranks[r].at_barrier[slot] != KOPI_OK) return p->ranks[r].at_barrier[slot];
    return KOPI_OK;
}
