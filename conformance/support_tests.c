/* Group support: what is claimed, as a matrix, and that nothing else is. */
#include "draws.h"
#include "drive.h"

#include <stdio.h>
#include <string.h>

/* Which operand of a kind's program carries its type. */
static int32_t typed_operand(const struct cf_program *c)
{
    const kopi_op *op = &c->ops[c->first_op + c->n_ops - 1];
    switch (op->op) {
    case KOPI_OP_EMBED: return op->in[0];
    case KOPI_OP_LINEAR:
    case KOPI_OP_ATTN: return op->in[1];
    case KOPI_OP_QUANTIZE: return op->out[0];
    default: return -1;
    }
}

/* ---- the matrix -------------------------------------------------------------------------------------------------- */

static void add(struct cf_env *e, const char *text)
{
    size_t used = strlen(e->result->matrix);
    snprintf(e->result->matrix + used, sizeof e->result->matrix - used, "%s", text);
}

static bool claims(struct cf_env *e, struct cf_instance *i, const struct cf_kind *kind, uint32_t dtype)
{
    const struct cf_draw d = {kind, dtype, CF_MILD, e->seed, false};
    struct cf_program c;
    char name[256];
    if (!cf_build(&d, i, &c, name, sizeof name)) return false;
    cf_program_free(&c);
    return true;
}

static enum cf_verdict matrix(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n_kinds, all = 0;
    const struct cf_kind *kinds = cf_kinds(&n_kinds);
    (void)t;
    if (!cf_open_subject(e, &i, 1)) return CF_FAIL;
    for (uint32_t k = 0; k < n_kinds; k++) {
        uint32_t n = 0, n_types = kinds[k].types ? kinds[k].n_types : 1;
        add(e, kinds[k].name);
        add(e, ":");
        for (uint32_t x = 0; x < n_types; x++) {
            uint32_t dtype = kinds[k].types ? kinds[k].types[x] : 0;
            if (!claims(e, &i, &kinds[k], dtype)) continue;
            n++;
            add(e, " ");
            add(e, kinds[k].types ? cf_type_name(dtype) : "yes");
        }
        add(e, n ? "\n" : " -\n");
        all += n;
    }
    cf_close(&i);
    const kopi_plugin *p = e->subject.plugin;
    for (uint32_t k = 0; k < p->n_dtypes; k++, all++) { /* ops/own-types says whether they are of use */
        add(e, k ? " " : "own types: ");
        add(e, ((const kopi_dtype_info *)(const void *)((const char *)p->dtypes + (size_t)k * p->dtype_stride))->name);
    }
    if (p->n_dtypes) add(e, "\n");
    return all ? CF_PASS : cf_failed(e, "no operation is claimed");
}

/* ---- what nobody can do ------------------------------------------------------------------------------------------ */

static bool own_type(const kopi_plugin *p, uint32_t dtype)
{
    for (uint32_t k = 0; k < p->n_dtypes; k++) {
        const kopi_dtype_info *d = (const void *)((const char *)p->dtypes + (size_t)k * p->dtype_stride);
        if (d->id == dtype) return true;
    }
    return false;
}

/* Types that no file has: a claim for them is a claim for everything. */
static bool claims_no_strange_type(void *ctx, struct cf_env *e, struct cf_instance *i, struct cf_program *c,
                                   const struct cf_draw *d)
{
    static const uint32_t strange[] = {0x00ffff00, 0x3fffffff, KOPI_DTYPE_VENDOR_FIRST + 77, KOPI_DTYPE_VENDOR_LAST,
                                       0x80000099, UINT32_MAX};
    int32_t at = typed_operand(c);
    (void)ctx, (void)d;
    for (size_t s = 0; at >= 0 && s < sizeof strange / sizeof *strange; s++) {
        uint32_t real = c->t[at].dtype;
        if (own_type(e->subject.plugin, strange[s])) continue;
        c->t[at].dtype = strange[s];
        bool taken = cf_takes(i, c);
        c->t[at].dtype = real;
        if (taken) return cf_wrong(e, "claims %s for type %u, which doesn't exist", d->kind->name, strange[s]);
    }
    return true;
}

static enum cf_verdict strange_types(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance i;
    uint32_t n;
    (void)t;
    if (!cf_open_subject(e, &i, 1)) return CF_FAIL;
    bool ok = cf_each_kind(e, &i, false, claims_no_strange_type, NULL, &n);
    cf_close(&i);
    return ok ? CF_PASS : CF_FAIL;
}

/* ---- one answer -------------------------------------------------------------------------------------------------- */

/* Programs of every kind in the form that the reference knows: asked twice, and asked in another instance. */
static enum cf_verdict answers_are_steady(struct cf_env *e, const struct cf_test *t)
{
    struct cf_instance ref, a, b;
    uint32_t n_kinds;
    const struct cf_kind *kinds = cf_kinds(&n_kinds);
    enum cf_verdict v = CF_PASS;
    (void)t;
    if (cf_open(&ref, e->reference.plugin, e->reference.options, 1) != KOPI_OK)
        return cf_failed(e, "create the reference: %s", ref.host.text);
    if (!cf_open_subject(e, &a, 1)) return CF_FAIL;
    if (!cf_open_subject(e, &b, 3)) return CF_FAIL;
    for (uint32_t k = 0; k < n_kinds && v == CF_PASS; k++)
        for (uint32_t x = 0; x < (kinds[k].types ? kinds[k].n_types : 1) && v == CF_PASS; x++) {
            const struct cf_draw d = {&kinds[k], kinds[k].types ? kinds[k].types[x] : 0, CF_MILD, e->seed, false};
            struct cf_program c;
            char name[256];
            if (!cf_build(&d, &ref, &c, name, sizeof name)) continue;
            bool first = cf_takes(&a, &c);
            if (cf_takes(&a, &c) != first || cf_takes(&b, &c) != first)
                v = cf_failed(e, "says yes and no to the same %s", name);
            cf_program_free(&c);
        }
    cf_close(&b);
    cf_close(&a);
    cf_close(&ref);
    return v;
}

void cf_add_support(struct cf_list *l)
{
    static const struct cf_test tests[] = {
        {.name = "support/matrix", .run = matrix, .needs = "life/create"},
        {.name = "support/strange-types", .run = strange_types, .needs = "life/create"},
        {.name = "support/steady", .run = answers_are_steady, .needs = "life/create"},
    };
    cf_list_add_all(l, tests, sizeof tests / sizeof *tests);
}
