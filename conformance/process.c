#include "process.h"

#include <dirent.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

#if defined(__x86_64__)
static uint64_t floats(void)
{
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    return (__builtin_ia32_stmxcsr() & ~0x3fu) | (uint64_t)x87 << 32; /* without the sticky flags */
}
#elif defined(__aarch64__)
static uint64_t floats(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
}
#else
static uint64_t floats(void) { return (uint64_t)fegetround(); }
#endif

/* Entries of a folder, "." and ".." left out. */
static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = -2;
    if (!d) return -1;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Threads once no more than `most` are left, or after a second: one that was joined is listed until the kernel is done
 * with it, which takes a while on a busy machine. */
static int threads_down_to(int most)
{
    int n = entries("/proc/self/task");
    for (int ms = 0; n > most && ms < 1000; ms++) {
        usleep(1000);
        n = entries("/proc/self/task");
    }
    return n;
}

void cf_process_look(struct cf_process *p)
{
    memset(p, 0, sizeof *p);
    p->threads = entries("/proc/self/task");
    p->files = entries("/proc/self/fd");
    for (int s = 1; s < 65; s++) {
        struct sigaction a;
        if (sigaction(s, NULL, &a) == 0) memcpy(&p->handlers[s], &a.sa_handler, sizeof p->handlers[s]);
    }
    p->floats = floats();
    umask(p->mask = umask(077));
    while (environ && environ[p->env]) p->env++;
    if (!getcwd(p->folder, sizeof p->folder)) p->folder[0] = 0;
}

const char *cf_process_change(const struct cf_process *before, char *text, size_t n)
{
    struct cf_process now;
    cf_process_look(&now);
    for (int s = 1; s < 65; s++)
        if (now.handlers[s] != before->handlers[s]) {
            snprintf(text, n, "the handler of signal %d (%s) was changed", s, strsignal(s));
            return text;
        }
    if (now.threads > before->threads && (now.threads = threads_down_to(before->threads)) > before->threads)
        snprintf(text, n, "%d threads, before it were %d", now.threads, before->threads);
    else if (now.files != before->files)
        snprintf(text, n, "%d open files, before it were %d", now.files, before->files);
    else if (now.mask != before->mask) snprintf(text, n, "the umask was changed");
    else if (now.env != before->env) snprintf(text, n, "the environment was changed");
    else if (strcmp(now.folder, before->folder)) snprintf(text, n, "the working directory was changed");
    else return NULL;
    return text;
}

const char *cf_floats_change(const struct cf_process *before, char *text, size_t n)
{
    uint64_t now = floats();
    if (now == before->floats) return NULL;
    snprintf(text, n, "the floating-point control state was changed from %llx to %llx",
             (unsigned long long)before->floats, (unsigned long long)now);
    return text;
}
