/* Group life: instances come and go, several at once, with little memory, on many threads, and leave nothing behind. */
#include "draws.h"
#include "drive.h"
#include "process.h"
#include "quiet.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LEAK = 16 }; /* bytes of malloc per life that are too many: the least that it gives */

/* ---- one instance ------------------------------------------------------------------------------------------------ */

static enum cf_verdict is_created(struct cf_env *e, const struct cf_test *t)
{
    struct cf_process before;
    struct cf_instance i;
    char what[128];
    (void)t;
    cf_process_look(&before);
    kopi_status s = cf_open(&i, e->subject.plugin, e->subject.options, 2);
    if (s != KOPI_OK && !i.host.text[0]) return cf_failed(e, "create returns %d and gives no text to fail()", (int)s);
    if (s != KOPI_OK) return cf_failed(e, "create returns %d: %s", (int)s, i.host.text);
    if (cf_floats_change(&before, what, sizeof what)) return cf_failed(e, "%s by create", what);
    cf_close(&i);
    return cf_floats_change(&before, what, sizeof what) ? cf_failed(e, "%s by destroy", what) : CF_PASS;
}

/* ---- one instance after the other -------------------------------------------------------------------------------- */

static bool just_drive(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                       const struct cf_draw *d)
{
    (void)ctx, (void)d;
    return cf_drive_or_fail(e, i, c, 2);
}

/* create, one program of every kind, destroy. */
static bool whole_life(struct cf_env *e, long *left)
{
    struct cf_instance i;
    uint32_t n;
    if (!cf_open_subject(e, &i, 2)) return false;
    bool ok = cf_each_kind(e, &i, false, just_drive, NULL, &n);
    cf_close(&i);
    *left = i.host.live;
    return ok;
}

static bool short_lives(struct cf_env *e, int n, long *left)
{
    struct cf_instance i;
    *left = 0;
    for (int k = 0; k < n && !*left; k++) {
        if (!cf_open_subject(e, &i, 2)) return false;
        cf_close(&i);
        *left = i.host.live;
    }
    return true;
}

/* Memory of malloc that is in use, by whomever; 0 where that isn't told. */
static size_t in_use(void)
{
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
    if (KOPI_SANITIZER == KOPI_SANITIZER_NONE) {
        struct mallinfo2 m = mallinfo2();
        return m.uordblks + m.hblkhd;
    }
#endif
#endif
    return 0;
}

/* What a plugin takes from malloc itself: grows with every life. The caches of malloc grow too, with the order in which
 * threads happen to run, but they end: a few chunks per size and thread. So one round without growth in many is enough.
 */
static enum cf_verdict malloc_stays(struct cf_env *e, bool (*live)(struct cf_env *e, long *left), int times,
                                    const char *what)
{
    size_t least = SIZE_MAX;
    for (int round = 0; round < 16 && least >= (size_t)times * LEAK; round++) {
        long left;
        size_t before = in_use();
        for (int k = 0; k < times; k++)
            if (!live(e, &left)) return CF_FAIL;
        size_t now = in_use(), grown = now > before ? now - before : 0;
        if (grown < least) least = grown;
    }
    if (least < (size_t)times * LEAK) return CF_PASS;
    return cf_failed(e, "%d times %s leave %zu bytes of malloc", times, what, least);
}

static bool short_life(struct cf_env *e, long *left) { return short_lives(e, 1, left); }

static enum cf_verdict no_leaks(struct cf_env *e, const struct cf_test *t)
{
    long left;
    (void)t;
    if (!short_lives(e, 100, &left)) return CF_FAIL;
    if (left) return cf_failed(e, "destroy after create leaves %ld allocations", left);
    if (!whole_life(e, &left)) return CF_FAIL;
    if (left)
        return cf_failed(e, "destroy leaves %ld allocations of a run (a plan, a weight's handle, a cache)", left);
    enum cf_verdict v = malloc_stays(e, short_life, 25, "create and destroy");
    return v == CF_PASS ? malloc_stays(e, whole_life, 6, "a run") : v;
}

static enum cf_verdict process_stays(struct cf_env *e, const struct cf_test *t)
{
    struct cf_process first, before;
    char what[128];
    long left;
    (void)t;
    cf_process_look(&first);
    if (!short_lives(e, 1, &left) || !whole_life(e, &left)) return CF_FAIL;
    cf_process_look(&before);
    first.files = before.files; /* the first time may open and start what stays */
    first.threads = before.threads;
    if (!short_lives(e, 20, &left) || !whole_life(e, &left)) return CF_FAIL;
    return cf_process_change(&first, what, sizeof what) ? cf_failed(e, "%s after destroy", what) : CF_PASS;
}

static enum cf_verdict is_silent(struct cf_env *e, const struct cf_test *t)
{
    struct cf_quiet q;
    char text[200];
    long left;
    (void)t;
    cf_quiet_begin(&q);
    bool ok = whole_life(e, &left);
    size_t n = cf_quiet_end(&q, text, sizeof text);
    if (!ok) return CF_FAIL;
    return n ? cf_failed(e, "writes %zu bytes to stdout or stderr: %s", n, text) : CF_PASS;
}

/* ---- little memory ----------------------------------------------------------------------------------------------- */

/* create, a run of one program, destroy, with the n-th allocation failing. *reached: there was one. */
static bool starve(struct cf_env *e, const struct cf_draw *d, long n, long usual, bool *reached)
{
    struct cf_instance i;
    struct cf_program c;
    char name[256], text[300] = "";
    memset(&i, 0, sizeof i);
    kopi_status s = cf_open_starved(&i, e->subject.plugin, e->subject.options, 2, n);
    if (s != KOPI_OK) {
        *reached = true;
        if (s != KOPI_E_NOMEM)
            return cf_wrong(e, "create with allocation %ld failing returns %d, not KOPI_E_NOMEM", n, (int)s);
        if (!i.host.text[0]) return cf_wrong(e, "create with allocation %ld failing gives no text to fail()", n);
        return i.host.live ? cf_wrong(e, "create with allocation %ld failing leaves %ld allocations", n, i.host.live)
                           : true;
    }
    bool built = cf_build(d, &i, &c, name, sizeof name);
    if (built) s = cf_drive(&i, &c, 2, CF_WHOLE, text, sizeof text);
    if (built) cf_program_free(&c);
    *reached = i.host.fail_at <= 0;
    i.host.fail_at = 0;
    cf_close(&i);
    if (s != KOPI_OK && s != KOPI_E_NOMEM) return cf_wrong(e, "a run with allocation %ld failing: %s", n, text);
    if (i.host.live <= usual) return true;
    return cf_wrong(e, "a run with allocation %ld failing leaves %ld allocations", n, i.host.live - usual);
}

static bool starve_all(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                       const struct cf_draw *d)
{
    const long *usual = ctx;
    bool reached = true;
    (void)i, (void)c;
    for (long n = 1; n < 200 && reached; n++)
        if (!starve(e, d, n, *usual, &reached)) return false;
    return true;
}

static enum cf_verdict memory_runs_out(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n;
    long usual = 0; /* what stays after every life is another test's affair */
    (void)t;
    if (!whole_life(e, &usual) || !cf_open_subject(e, &i, 2)) return CF_FAIL;
    bool ok = cf_each_kind(e, &i, false, starve_all, &usual, &n);
    cf_close(&i);
    return ok ? CF_PASS : CF_FAIL;
}

/* ---- two instances ----------------------------------------------------------------------------------------------- */

/* A second instance comes and goes around this one's run; then both run at the same time. */
struct pair {
    struct cf_env *e;
    struct cf_instance *i;
    struct cf_program *c;
    bool ok;
};

static void *drive_often(void *arg)
{
    struct pair *p = arg;
    for (int n = 0; n < 10 && p->ok; n++) {
        char text[300];
        p->ok =
            cf_drive(p->i, p->c, 1, CF_WHOLE, text, sizeof text) == KOPI_OK || cf_wrong(p->e, "two at once: %s", text);
    }
    return NULL;
}

static bool both_at_once(struct pair *a, struct pair *b)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, drive_often, a)) return cf_wrong(a->e, "no thread");
    drive_often(b);
    pthread_join(thread, NULL);
    return a->ok && b->ok;
}

static bool beside_another(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                           const struct cf_draw *d)
{
    struct cf_instance other;
    struct cf_draw d2 = *d;
    struct cf_program want, c2;
    char name[256];
    (void)ctx;
    d2.seed++; /* another shape */
    if (!cf_drive_or_fail(e, i, c, 1) || !cf_open_subject(e, &other, 2)) return false;
    if (!cf_build(d, i, &want, name, sizeof name) || !cf_build(&d2, &other, &c2, name, sizeof name))
        return cf_wrong(e, "claims %s at one time and not at another", d->kind->name);
    struct pair a = {e, i, &want, true}, b = {e, &other, &c2, true};
    bool ok = both_at_once(&a, &b) && cf_agree_or_fail(e, i, d, c, &want, "while another instance ran");
    cf_close(&other);
    ok = ok && cf_drive_or_fail(e, i, &want, 1) && cf_agree_or_fail(e, i, d, c, &want, "after another instance went");
    cf_program_free(&want);
    cf_program_free(&c2);
    return ok;
}

static enum cf_verdict two_instances(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n;
    (void)t;
    if (!cf_open_subject(e, &i, 2)) return CF_FAIL;
    bool ok = cf_each_kind(e, &i, false, beside_another, NULL, &n);
    cf_close(&i);
    return ok ? CF_PASS : CF_FAIL;
}

/* ---- many threads ------------------------------------------------------------------------------------------------ */

enum { THREADS = 4, TIMES = 4 };

/* Workers as threads that begin together give what they give one after the other. */
static bool race(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c, const struct cf_draw *d)
{
    struct cf_program want;
    char name[256];
    (void)ctx;
    if (!cf_build(d, i, &want, name, sizeof name)) return true;
    bool ok = cf_drive_or_fail(e, i, &want, THREADS);
    c->threads = true;
    for (int n = 0; n < TIMES && ok; n++)
        ok = cf_drive_or_fail(e, i, c, THREADS) && cf_agree_or_fail(e, i, d, &want, c, "workers at the same time");
    cf_program_free(&want);
    return ok;
}

static enum cf_verdict workers_at_once(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n;
    (void)t;
    if (!cf_open_subject(e, &i, THREADS)) return CF_FAIL;
    bool ok = cf_each_large(e, &i, race, NULL, &n);
    cf_close(&i);
    return ok ? CF_PASS : CF_FAIL;
}

void cf_add_life(struct cf_list *l)
{
    static const struct cf_test tests[] = {
        {.name = "life/create", .run = is_created, .needs = "abi/device"},
        {.name = "life/process", .run = process_stays, .needs = "life/create", .after = "ops"},
        {.name = "life/leaks", .run = no_leaks, .needs = "life/create life/process", .after = "ops"},
        {.name = "life/silent", .run = is_silent, .needs = "life/create", .after = "ops"},
        {.name = "life/memory", .run = memory_runs_out, .needs = "life/create life/leaks", .after = "ops"},
        {.name = "life/two-instances", .run = two_instances, .needs = "life/create", .after = "ops"},
        {.name = "life/workers", .run = workers_at_once, .needs = "life/create", .after = "ops"},
    };
    cf_list_add_all(l, tests, sizeof tests / sizeof *tests);
}
