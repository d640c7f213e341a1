#include "base/sys.h"

#include <ctype.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t kopi__now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* First line of a small file without its newline; false if it can't be read. */
static bool read_line(const char *path, char *buf, int n)
{
    FILE *f = fopen(path, "re");
    if (!f) return false;
    bool ok = fgets(buf, n, f) != NULL;
    fclose(f);
    if (ok) buf[strcspn(buf, "\n")] = 0;
    return ok;
}

static bool read_u64(const char *path, uint64_t *out)
{
    char line[64];
    if (!read_line(path, line, sizeof line) || !isdigit((unsigned char)line[0])) return false;
    *out = strtoull(line, NULL, 10);
    return true;
}

/* ---- control groups ---------------------------------------------------------------------------------------------- */

/* Calls fn for this process's group of one hierarchy and each of its ancestors up to the mount point. controller: ""
 * for version 2, else a version 1 controller. In a container the path in /proc may be the host's: levels that don't
 * exist are skipped by fn's failing reads. */
static void each_cgroup(const char *controller, const char *mount, void (*fn)(const char *dir, void *ctx), void *ctx)
{
    FILE *f = fopen("/proc/self/cgroup", "re");
    if (!f) return;
    char line[4096], dir[4400];
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *list = strchr(line, ':'), *path = list ? strchr(list + 1, ':') : NULL;
        if (!path) continue;
        *path++ = 0;
        bool mine = false;
        char *save = NULL, *name = strtok_r(list + 1, ",", &save);
        if (!name) mine = !*controller;
        for (; name; name = strtok_r(NULL, ",", &save)) mine |= !strcmp(name, controller);
        if (!mine || strstr(path, "..")) continue;
        for (size_t len = strlen(path);;) {
            while (len && path[len - 1] == '/') len--;
            snprintf(dir, sizeof dir, "%s%.*s", mount, (int)len, path);
            fn(dir, ctx);
            if (!len) break;
            while (len && path[len - 1] != '/') len--;
        }
    }
    fclose(f);
}

static void quota_v2(const char *dir, void *ctx)
{
    char path[4500], line[64];
    double *best = ctx;
    snprintf(path, sizeof path, "%s/cpu.max", dir);
    unsigned long long quota, period;
    if (read_line(path, line, sizeof line) && sscanf(line, "%llu %llu", &quota, &period) == 2 && period)
        if ((double)quota / (double)period < *best) *best = (double)quota / (double)period;
}

static void quota_v1(const char *dir, void *ctx)
{
    char path[4500];
    double *best = ctx;
    uint64_t quota, period;
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
    if (!read_u64(path, &quota)) return; /* -1: none */
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
    if (read_u64(path, &period) && period && (double)quota / (double)period < *best)
        *best = (double)quota / (double)period;
}

static void memory_limit(const char *dir, const char *limit_file, const char *use_file, uint64_t *best)
{
    char path[4500];
    uint64_t limit, use = 0;
    snprintf(path, sizeof path, "%s/%s", dir, limit_file);
    if (!read_u64(path, &limit)) return; /* "max": none */
    snprintf(path, sizeof path, "%s/%s", dir, use_file);
    read_u64(path, &use);
    uint64_t left = limit > use ? limit - use : 0;
    if (left < *best) *best = left;
}
static void memory_v2(const char *dir, void *ctx) { memory_limit(dir, "memory.max", "memory.current", ctx); }
static void memory_v1(const char *dir, void *ctx)
{
    memory_limit(dir, "memory.limit_in_bytes", "memory.usage_in_bytes", ctx);
}

/* ---- processors -------------------------------------------------------------------------------------------------- */

/* Physical cores among the allowed CPUs: those whose first sibling has not been seen. 0 if the topology is not
 * readable. */
static unsigned physical_cores(const cpu_set_t *set)
{
    unsigned n = 0;
    bool seen[CPU_SETSIZE] = {false};
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, set)) continue;
        char path[128];
        uint64_t first;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
        if (!read_u64(path, &first) || first >= CPU_SETSIZE) return 0;
        if (!seen[first]) n++;
        seen[first] = true;
    }
    return n;
}

static unsigned allowed(cpu_set_t *set)
{
    if (sched_getaffinity(0, sizeof *set, set) == 0) return (unsigned)CPU_COUNT(set);
    CPU_ZERO(set);
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (unsigned)n : 1;
}

unsigned kopi__allowed_cpus(void)
{
    cpu_set_t set;
    return allowed(&set);
}

unsigned kopi__default_threads(char *why, unsigned why_size)
{
    cpu_set_t set;
    unsigned n = allowed(&set), cpus = n, cores = physical_cores(&set);
    if (cores && cores < n) n = cores;
    double quota = 1e9;
    each_cgroup("", "/sys/fs/cgroup", quota_v2, &quota);
    each_cgroup("cpu", "/sys/fs/cgroup/cpu", quota_v1, &quota);
    if (quota < n) n = quota < 1 ? 1 : (unsigned)quota;
    if (why) {
        int k = snprintf(why, why_size, "%u allowed CPUs, %u cores", cpus, cores ? cores : cpus);
        if (quota < 1e9 && k > 0 && (unsigned)k < why_size)
            snprintf(why + k, why_size - (unsigned)k, ", cgroup quota %u.%02u CPUs", (unsigned)quota,
                     (unsigned)(quota * 100) % 100);
    }
    return n;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static uint64_t mem_available(void)
{
    FILE *f = fopen("/proc/meminfo", "re");
    if (!f) return UINT64_MAX;
    char line[256];
    unsigned long long kb = 0;
    bool found = false;
    while (!found && fgets(line, sizeof line, f)) found = sscanf(line, "MemAvailable: %llu kB", &kb) == 1;
    fclose(f);
    return found ? (uint64_t)kb * 1024 : UINT64_MAX;
}

/* What RLIMIT_AS leaves of the address space. */
static uint64_t address_space_left(void)
{
    struct rlimit r;
    char line[256];
    unsigned long long pages;
    if (getrlimit(RLIMIT_AS, &r) || r.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    if (!read_line("/proc/self/statm", line, sizeof line) || sscanf(line, "%llu", &pages) != 1) return r.rlim_cur;
    uint64_t used = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return r.rlim_cur > used ? r.rlim_cur - used : 0;
}

uint64_t kopi__available_memory(void)
{
    uint64_t best = mem_available(), as = address_space_left();
    if (as < best) best = as;
    each_cgroup("", "/sys/fs/cgroup", memory_v2, &best);
    each_cgroup("memory", "/sys/fs/cgroup/memory", memory_v1, &best);
    return best;
}
