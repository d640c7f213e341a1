#include "draws.h"

#include "agree.h"
#include "drive.h"
#include <string.h>

/* The test of this kind and type has not passed: whatever it does wrong has been said. */
static bool known_wrong(const struct cf_env *e, const struct cf_kind *kind, uint32_t dtype)
{
    char name[96];
    cf_kind_test(kind, dtype, name);
    for (const char *const *f = e->failed; f && *f; f++)
        if (!strcmp(*f, name)) return true;
    return false;
}

static bool walk(struct cf_env *e, struct cf_instance *i, bool all_types, bool large, cf_visit *visit, void *ctx,
                 uint32_t *n)
{
    uint32_t n_kinds;
    const struct cf_kind *kinds = cf_kinds(&n_kinds);
    *n = 0;
    for (uint32_t k = 0; k < n_kinds; k++)
        for (uint32_t t = 0; t < (kinds[k].types ? kinds[k].n_types : 1); t++) {
            const struct cf_draw d = {&kinds[k], kinds[k].types ? kinds[k].types[t] : 0, CF_MILD, e->seed, large};
            struct cf_program c;
            char name[256];
            if (known_wrong(e, d.kind, d.dtype) || !cf_build(&d, i, &c, name, sizeof name)) continue;
            cf_start(e, name, e->seed);
            bool ok = visit(ctx, e, i, &c, &d);
            cf_program_free(&c);
            if (!ok) return false;
            ++*n;
            if (!all_types) break;
        }
    return true;
}

bool cf_each_kind(struct cf_env *e, struct cf_instance *i, bool all_types, cf_visit *visit, void *ctx, uint32_t *n)
{
    return walk(e, i, all_types, false, visit, ctx, n);
}

bool cf_each_large(struct cf_env *e, struct cf_instance *i, cf_visit *visit, void *ctx, uint32_t *n)
{
    return walk(e, i, true, true, visit, ctx, n);
}

bool cf_open_subject(struct cf_env *e, struct cf_instance *i, uint32_t threads)
{
    if (cf_open(i, e->subject.plugin, e->subject.options, threads) == KOPI_OK) return true;
    cf_failed(e, "create: %s", i->host.text);
    return false;
}

bool cf_drive_or_fail(struct cf_env *e, struct cf_instance *i, struct cf_program *c, uint32_t nth)
{
    char text[300];
    if (cf_drive(i, c, nth, CF_WHOLE, text, sizeof text) == KOPI_OK) return true;
    cf_failed(e, "%s", text);
    return false;
}

bool cf_agree_or_fail(struct cf_env *e, const struct cf_instance *i, const struct cf_draw *d,
                      const struct cf_program *a, const struct cf_program *b, const char *what)
{
    char text[300];
    bool repeatable = i->device.flags & (KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE);
    if (cf_agree(a, b, repeatable, d->kind->bound, text, sizeof text)) return true;
    cf_failed(e, "%s: %s", what, text);
    return false;
}
