#include "conform.h"

#include "drive.h"
#include "values.h"
#include <dirent.h>
#include <stdio.h>
#include <string.h>

struct life {
    const struct cf_side *side;
    char text[400];
};

/* A check: NULL if it passed, else what is wrong; SKIPPED where it doesn't apply. */
typedef const char *check_fn(struct life *l);
static const char *const SKIPPED = "does not apply";

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static const char *open_one(struct life *l, struct cf_instance *i)
{
    if (cf_open(i, l->side->plugin, l->side->options, 2) == KOPI_OK) return NULL;
    snprintf(l->text, sizeof l->text, "create: %s", i->host.text);
    return l->text;
}

/* Entries of a folder, "." and ".." left out; -1 if it can't be read. */
static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = -2;
    if (!d) return -1;
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* y = a + b over a few tokens: what every backend has, or its neighbour does. */
static void small_program(struct cf_program *c)
{
    const uint32_t len = 5;
    cf_program_init(c, &len, 1);
    int32_t in[2], y;
    struct cf_random r = {3};
    for (int i = 0; i < 2; i++) {
        in[i] = cf_input(c, KOPI_DTYPE_F32, 64, 1, KOPI_DIM_TOK);
        cf_floats(&r, CF_MILD, (float *)(void *)c->in[in[i]].rows, 64 * len);
    }
    y = cf_output(c, KOPI_DTYPE_F32, 64, 1, KOPI_DIM_TOK);
    cf_op(c, KOPI_OP_ADD, in, 2, &y, 1, NULL, 0);
    cf_program_finish(c);
}

static const char *drive_small(struct life *l, struct cf_instance *i)
{
    struct cf_program c;
    const char *wrong = NULL;
    small_program(&c);
    if (!cf_takes(i, &c)) wrong = SKIPPED;
    else if (cf_drive(i, &c, 1, CF_WHOLE, l->text, sizeof l->text) != KOPI_OK) wrong = l->text;
    cf_program_free(&c);
    return wrong;
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static const char *device_is_described(struct life *l)
{
    struct cf_host h;
    cf_host_init(&h, l->side->options, 1);
    kopi_device d = {.struct_size = sizeof d};
    if (l->side->plugin->device(&h.h, 0, &d) != KOPI_OK) return "device 0 is refused";
    if (!memchr(d.name, 0, sizeof d.name) || !memchr(d.detail, 0, sizeof d.detail)) return "name or detail has no end";
    if (!d.name[0]) return "the device has no name";
    if (d.align & (d.align - 1)) return "align is no power of two";
    if (l->side->plugin->device(&h.h, 10000, &d) != KOPI_E_RANGE) return "device 10000 is not KOPI_E_RANGE";
    return NULL;
}

static const char *short_device_struct(struct life *l)
{
    struct cf_host h;
    union {
        kopi_device d;
        unsigned char bytes[sizeof(kopi_device)];
    } u;
    size_t known = KOPI_END_OF(kopi_device, align);
    cf_host_init(&h, l->side->options, 1);
    memset(&u, CF_FILL, sizeof u);
    u.d.struct_size = (uint32_t)known;
    if (l->side->plugin->device(&h.h, 0, &u.d) != KOPI_OK) return "a shorter kopi_device is refused";
    for (size_t i = known; i < sizeof u; i++)
        if (u.bytes[i] != CF_FILL) return "writes past the end that a shorter kopi_device has";
    return NULL;
}

static const char *names_are_right(struct life *l)
{
    const kopi_plugin *p = l->side->plugin;
    size_t n = strlen(p->name);
    if (n < 1 || n > 32 || strspn(p->name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != n)
        return "name is not [a-z0-9_-]{1,32}";
    for (uint32_t k = 0; k < p->ops->n_kernels; k++) {
        const kopi_kernel *row = (const void *)((const char *)p->ops->kernels + (size_t)k * p->ops->kernel_stride);
        if (!row->run || !row->version || !row->op) return "a kernel row lacks operation, version or function";
    }
    if (!p->ops->n_kernels && !p->ops->prepare) return "neither kernels nor prepare";
    if (p->ops->prepare && (!p->ops->execute || !p->ops->plan_free || !p->ops->supports))
        return "prepare without execute, plan_free and supports";
    if (p->ops->weight_import && !p->ops->weight_free) return "weight_import without weight_free";
    if (!p->ops->kv_export != !p->ops->kv_import) return "one of kv_export and kv_import";
    return NULL;
}

static const char *comes_and_goes(struct life *l)
{
    struct cf_instance i;
    const char *wrong = open_one(l, &i);
    if (wrong) return wrong;
    cf_close(&i); /* the first time may open what stays open */
    int threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
    for (int n = 0; n < 100; n++) {
        if ((wrong = open_one(l, &i))) return wrong;
        wrong = n % 10 ? NULL : drive_small(l, &i);
        cf_close(&i);
        if (wrong && wrong != SKIPPED) return wrong;
        if (i.host.live) return "destroy leaves allocations";
    }
    if (entries("/proc/self/task") != threads) return "threads are left";
    return entries("/proc/self/fd") != files ? "open files are left" : NULL;
}

static const char *memory_runs_out(struct life *l)
{
    for (long n = 1; n < 1000; n++) {
        struct cf_host h;
        void *be = NULL;
        cf_host_init(&h, l->side->options, 2);
        h.fail_at = n;
        kopi_status s = l->side->plugin->ops->create(&h.h, 0, &be);
        if (s == KOPI_OK) {
            l->side->plugin->ops->destroy(be);
            if (h.fail_at > 0) return NULL; /* all its allocations have failed once */
        } else if (s != KOPI_E_NOMEM || !h.text[0]) return "a failed allocation is not KOPI_E_NOMEM with a text";
        if (h.live) return "a failed create leaves allocations";
    }
    return "create makes a thousand allocations";
}

static const char *two_at_once(struct life *l)
{
    struct cf_instance a, b;
    const char *wrong = open_one(l, &a);
    if (wrong) return wrong;
    if ((wrong = open_one(l, &b))) {
        cf_close(&a);
        return wrong;
    }
    wrong = drive_small(l, &b);
    cf_close(&a);
    if (!wrong) wrong = drive_small(l, &b);
    cf_close(&b);
    return wrong;
}

static const char *unknown_ids(struct life *l)
{
    struct cf_instance i;
    struct cf_program c;
    const char *wrong = open_one(l, &i);
    if (wrong) return wrong;
    small_program(&c);
    kopi_op op = c.ops[c.first_op];
    op.op = 9999;
    if (i.ops.supports && i.ops.supports(i.be, &c.p, &op)) wrong = "claims operation 9999";
    if (i.ops.describe && i.ops.describe(i.be, &c.p, &op)) wrong = "names the code of operation 9999";
    op.op = KOPI_OP_ADD;
    op.version = 99;
    if (i.ops.supports && i.ops.supports(i.be, &c.p, &op)) wrong = "claims version 99 of ADD";
    if (i.ops.extension && i.ops.extension(i.be, "kopi.nosuch/1")) wrong = "offers the extension kopi.nosuch/1";
    cf_program_free(&c);
    cf_close(&i);
    return wrong;
}

static const char *can_be_cancelled(struct life *l)
{
    struct cf_instance i;
    struct cf_program c;
    const char *wrong = open_one(l, &i);
    if (wrong) return wrong;
    small_program(&c);
    i.host.cancel = true;
    if (!i.ops.execute || !cf_takes(&i, &c)) wrong = SKIPPED; /* kernels are short: their caller asks */
    else if (cf_drive(&i, &c, 1, CF_WHOLE, l->text, sizeof l->text) != KOPI_E_CANCELLED)
        wrong = "execute doesn't return KOPI_E_CANCELLED";
    cf_program_free(&c);
    cf_close(&i);
    return wrong;
}

void cf_life(const struct cf_side *subject, const struct cf_report *report, struct cf_counts *counts)
{
    static const struct {
        const char *name;
        check_fn *check;
    } checks[] = {
        {"names", names_are_right},
        {"device", device_is_described},
        {"short kopi_device", short_device_struct},
        {"create and destroy", comes_and_goes},
        {"memory runs out", memory_runs_out},
        {"two instances", two_at_once},
        {"unknown ids", unknown_ids},
        {"cancel", can_be_cancelled},
    };
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct life l = {.side = subject};
        const char *wrong = checks[i].check(&l);
        enum cf_verdict v = !wrong ? CF_PASS : wrong == SKIPPED ? CF_SKIP : CF_FAIL;
        uint32_t *count[] = {&counts->passed, &counts->failed, &counts->skipped};
        (*count[v])++;
        if (report->line) report->line(report->ctx, v, checks[i].name, wrong ? wrong : "");
    }
}
