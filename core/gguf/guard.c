#include "gguf/guard.h"

#include "base/mem.h"
#include "gguf/gguf.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_MODEL = 4 }; /* the command's exit code for a bad model file */

/* Guards are reused, never freed: the signal handler walks `all` without a lock. begin is 0 while a guard is unused. */
struct kopi_gguf_guard {
    _Atomic uintptr_t begin;
    uintptr_t end;
    const char *path;
    struct kopi_gguf_guard *next, *next_unused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kopi_gguf_guard *_Atomic all;
static struct kopi_gguf_guard *unused;
static struct sigaction previous;
static void (*clean_up)(void);

static struct kopi_gguf_guard *take(void)
{
    struct kopi_gguf_guard *g = unused;
    if (g) {
        unused = g->next_unused;
        return g;
    }
    g = kopi__calloc(1, sizeof *g);
    if (!g) return NULL;
    g->next = atomic_load(&all);
    atomic_store(&all, g);
    return g;
}

struct kopi_gguf_guard *kopi__gguf_guard_add(const void *data, size_t size, const char *path)
{
    pthread_mutex_lock(&lock);
    struct kopi_gguf_guard *g = take();
    if (g) {
        g->end = (uintptr_t)data + size;
        g->path = path;
        atomic_store(&g->begin, (uintptr_t)data);
    }
    pthread_mutex_unlock(&lock);
    return g;
}

void kopi__gguf_guard_remove(struct kopi_gguf_guard *g)
{
    if (!g) return;
    pthread_mutex_lock(&lock);
    atomic_store(&g->begin, 0);
    g->next_unused = unused;
    unused = g;
    pthread_mutex_unlock(&lock);
}

/* Only what a signal handler may call. Control bytes of the path are replaced as in kopi__fail. */
static void report(const char *path)
{
    static const char head[] = "kopi: ", tail[] = ": the file was truncated or lost while it was in use\n";
    char line[1024];
    size_t n = sizeof head - 1;
    memcpy(line, head, n);
    for (; *path && n < sizeof line - sizeof tail; path++)
        line[n++] = (unsigned char)*path < 0x20 || *path == 0x7f ? '?' : *path;
    memcpy(line + n, tail, sizeof tail - 1);
    n += sizeof tail - 1;
    if (write(STDERR_FILENO, line, n) < 0) _exit(EXIT_MODEL);
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    (void)context;
    uintptr_t at = (uintptr_t)info->si_addr;
    if (info->si_code > 0) /* a fault, not kill() */
        for (struct kopi_gguf_guard *g = atomic_load(&all); g; g = g->next) {
            uintptr_t begin = atomic_load(&g->begin);
            if (!begin || at < begin || at >= g->end) continue;
            report(g->path);
            if (clean_up) clean_up();
            _exit(EXIT_MODEL);
        }
    sigaction(SIGBUS, &previous, NULL); /* a fault happens again on return, with the action it had before */
    if (info->si_code <= 0) raise(sig);
}

void kopi__gguf_guard_sigbus(void (*before_exit)(void))
{
    static atomic_flag installed = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&installed)) return;
    clean_up = before_exit;
    struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &previous);
}
