/* Read bandwidth: THREADS threads read a buffer of BYTES again and again, each its own part, all at once; prints the
 * median of the rounds in GB/s as JSON. The buffer is as large as the weights of the model that is measured beside it,
 * so that a cache which helps the one helps the other.
 *   bench/bandwidth BYTES THREADS [ROUNDS] */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { MAX_THREADS = 1024, MAX_ROUNDS = 1000, HUGE = 2 << 20 };

typedef uint64_t v16 __attribute__((vector_size(16)));
static uint64_t pure_read(const char *p, uint64_t size)
{
    const v16 *v = (const void *)p;
    v16 a = {0}, b = {0}, c = {0}, d = {0};
    for (uint64_t i = 0; i + 4 <= size / sizeof *v; i += 4) {
        __builtin_prefetch(v + i + 128);
        a ^= v[i];
        b ^= v[i + 1];
        c ^= v[i + 2];
        d ^= v[i + 3];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1];
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *buffer;
static uint64_t bytes, sums[MAX_THREADS];
static unsigned n_threads, n_rounds;
static double seconds[MAX_ROUNDS];
static pthread_barrier_t barrier;

static void *work(void *arg)
{
    uint64_t i = (uintptr_t)arg, begin = bytes / 64 * i / n_threads * 64, end = bytes / 64 * (i + 1) / n_threads * 64;
    memset(buffer + begin, 1, end - begin);
    for (unsigned r = 0; r < n_rounds; r++) {
        pthread_barrier_wait(&barrier);
        double t = now();
        sums[i] += pure_read(buffer + begin, end - begin);
        pthread_barrier_wait(&barrier);
        if (i == 0) seconds[r] = now() - t;
    }
    return NULL;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    pthread_t threads[MAX_THREADS];
    bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    n_threads = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
    n_rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 15;
    if (bytes < 1 << 20 || !n_threads || n_threads > MAX_THREADS || !n_rounds || n_rounds > MAX_ROUNDS)
        exit((fputs("bandwidth BYTES (1 MiB and more) THREADS [ROUNDS]\n", stderr), 2));
    if (posix_memalign((void **)&buffer, HUGE, bytes)) exit((perror("memory"), 1));
    madvise(buffer, bytes, MADV_HUGEPAGE);
    pthread_barrier_init(&barrier, NULL, n_threads);
    for (uintptr_t i = 1; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i)) exit((perror("pthread_create"), 1));
    work(NULL);
    for (unsigned i = 1; i < n_threads; i++) pthread_join(threads[i], NULL);
    qsort(seconds, n_rounds, sizeof *seconds, ascending);
    uint64_t sum = 0; /* used, so that the reads are not optimized away */
    for (unsigned i = 0; i < n_threads; i++) sum ^= sums[i];
    printf("{\"bytes\": %llu, \"threads\": %u, \"gbs\": %.3f, \"best_gbs\": %.3f, \"sum\": %llu}\n",
           (unsigned long long)bytes, n_threads, (double)bytes / seconds[n_rounds / 2] / 1e9,
           (double)bytes / seconds[0] / 1e9, (unsigned long long)sum);
    return 0;
}
