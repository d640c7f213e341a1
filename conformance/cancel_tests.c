/* Group cancel: a backend that takes the program asks whether to go on, and obeys. */
#include "draws.h"
#include "drive.h"

/* Cancels at the n-th question, if it comes; then the program runs as if nothing had been. */
static bool cancel_at(struct cf_env *e, struct cf_instance *i, struct cf_program *c, long n)
{
    char text[300];
    i->host.polls = 0;
    i->host.cancel_at = n;
    kopi_status s = cf_drive(i, c, 1, CF_WHOLE, text, sizeof text);
    long asked = i->host.polls;
    i->host.cancel_at = 0;
    if (!asked) return cf_wrong(e, "execute never asks the host whether it is cancelled");
    if (asked >= n && s != KOPI_E_CANCELLED)
        return cf_wrong(e, "cancelled at question %ld of %ld, execute returned %d", n, asked, (int)s);
    if (s != KOPI_OK && s != KOPI_E_CANCELLED) return cf_wrong(e, "%s", text);
    return true;
}

static bool visit(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c, const struct cf_draw *d)
{
    struct cf_program want;
    char name[256];
    (void)ctx;
    if (!cf_build(d, i, &want, name, sizeof name)) return true;
    bool ok = cf_drive_or_fail(e, i, &want, 1);
    for (long n = 1; n < 4 && ok; n++) ok = cancel_at(e, i, c, n);
    ok = ok && cf_drive_or_fail(e, i, c, 1) && cf_agree_or_fail(e, i, d, &want, c, "after cancelling");
    cf_program_free(&want);
    return ok;
}

static enum cf_verdict plans_obey(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n = 0;
    (void)t;
    if (!cf_open_subject(e, &i, 2)) return CF_FAIL;
    bool plans = i.ops.execute, ok = !plans || cf_each_kind(e, &i, false, visit, NULL, &n);
    cf_close(&i);
    if (!plans) return cf_skipped(e, "kernels only: the core asks between operations");
    return !ok ? CF_FAIL : n ? CF_PASS : cf_skipped(e, "no operation is claimed");
}

void cf_add_cancel(struct cf_list *l)
{
    cf_list_add(l, &(struct cf_test){.name = "cancel/plan", .run = plans_obey, .needs = "life/create", .after = "ops"});
}
