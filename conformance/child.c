#include "child.h"

#include "clean.h"
#include "memory.h"
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_OUTPUT = 64 << 20 };

/* ---- in the process of the test ---------------------------------------------------------------------------------- */

static struct cf_result *running; /* of the test of this process, for the handler */

/* A fault: the guard page that was hit says more than the signal. Then the signal takes its course. */
static void on_fault(int sig, siginfo_t *info, void *context)
{
    (void)context;
    cf_buf_name_fault(info->si_addr, running->text, sizeof running->text);
    signal(sig, SIG_DFL);
    raise(sig);
}

static void catch_faults(struct cf_result *r)
{
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    running = r;
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
}

static bool load(const struct cf_setup *s, struct cf_env *e, struct cf_side *side, bool reference)
{
    char why[512];
    side->plugin = cf_load(reference ? s->reference_path : s->path, why, sizeof why);
    if (!side->plugin) return cf_wrong(e, "%s", why);
    side->options = s->options ? s->options(s->ctx, side->plugin, reference) : NULL;
    return true;
}

static void run_here(const struct cf_setup *s, const struct cf_test *t, struct cf_result *r)
{
    struct cf_env e = {.path = s->path,
                       .reference_path = s->reference_path,
                       .seed = s->seed,
                       .one_seed = s->one_seed,
                       .rounds = s->rounds,
                       .failed = s->failed,
                       .result = r};
    r->verdict = CF_FAIL;
    r->seed = s->seed;
    if (s->about) r->about = *s->about;
    if (t->bare || (load(s, &e, &e.subject, false) && load(s, &e, &e.reference, true))) {
        fesetenv(FE_DFL_ENV); /* what loading does to it is a test of its own */
        r->verdict = t->run(&e, t);
    }
    r->finished = true;
}

static void be_the_child(const struct cf_setup *s, const struct cf_test *t, struct cf_result *r, int output)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){MOST_OUTPUT, MOST_OUTPUT}); /* else endless output takes all memory */
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close(output);
    catch_faults(r);
    run_here(s, t, r);
    fflush(NULL);
    _exit(0);
}

/* ---- in the process that waits ----------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The wait status; -1 after killing it for lack of time, -2 because of stop. */
static int wait_for(const struct cf_setup *s, pid_t pid)
{
    double end = now() + s->limit_s;
    for (long ms = 1;; ms = ms < 10 ? ms + 1 : ms) {
        int status, why = s->stop && s->stop() ? -2 : now() > end ? -1 : 0;
        if (why) kill(-pid, SIGKILL), kill(pid, SIGKILL); /* it may not lead its group yet */
        pid_t done = waitpid(pid, &status, why ? 0 : WNOHANG);
        if (done == pid) return why ? why : status;
        if (done < 0 && errno != EINTR) return 0;
        nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
    }
}

static void read_output(int fd, char *output, size_t n)
{
    ssize_t got = pread(fd, output, n - 1, 0);
    output[got > 0 ? got : 0] = 0;
}

/* What became of it, where the test itself could not say. */
static void say_end(const struct cf_setup *s, struct cf_result *r, int status)
{
    char why[600], how[128];
    if (r->finished && status == 0) return;
    snprintf(why, sizeof why, "%.599s", r->finished ? "" : r->text);
    if (status == -1) snprintf(how, sizeof how, "did not end within %u s", s->limit_s);
    else if (status == -2) snprintf(how, sizeof how, "interrupted");
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else snprintf(how, sizeof how, "ended the process with status %d", WEXITSTATUS(status));
    r->verdict = CF_FAIL;
    snprintf(r->text, sizeof r->text, "%s%s%s", how, why[0] ? ": " : "", why);
}

/* The plugin had the memory of r within its reach. */
static void make_fit(struct cf_result *r)
{
    if (r->verdict != CF_PASS && r->verdict != CF_SKIP) r->verdict = CF_FAIL;
    cf_clean(r->text, sizeof r->text, false);
    cf_clean(r->doing, sizeof r->doing, false);
    cf_clean(r->matrix, sizeof r->matrix, true);
    cf_clean(r->about.name, sizeof r->about.name, false);
    cf_clean(r->about.version, sizeof r->about.version, false);
    cf_clean(r->about.device, sizeof r->about.device, false);
    cf_clean(r->about.detail, sizeof r->about.detail, false);
}

static void run_child(const struct cf_setup *s, const struct cf_test *t, struct cf_result *r, char *output, size_t n)
{
    struct cf_result *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int out = memfd_create("output", MFD_CLOEXEC);
    if (shared == MAP_FAILED || out < 0) {
        fprintf(stderr, "no memory for a test\n");
        exit(99);
    }
    fflush(NULL); /* else the child has the text a second time */
    pid_t pid = fork();
    if (pid == 0) be_the_child(s, t, shared, out);
    int status = pid > 0 ? wait_for(s, pid) : -1;
    if (pid > 0) kill(-pid, SIGKILL); /* what it started */
    *r = *shared;
    make_fit(r);
    say_end(s, r, status);
    read_output(out, output, n);
    cf_clean(output, n, true);
    munmap(shared, sizeof *shared);
    close(out);
}

void cf_run(const struct cf_setup *s, const struct cf_test *t, struct cf_result *r, char *output, size_t n)
{
    memset(r, 0, sizeof *r);
    output[0] = 0;
    if (s->in_process) {
        run_here(s, t, r);
        make_fit(r);
    } else run_child(s, t, r, output, n);
}
