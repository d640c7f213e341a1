/* The reference backend's two levels give the same bits, and the comparer that says so notices what is wrong. */
#include "conformance/program.h"
#include "tests/support/plugin.h"

#include <check.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const baseline[] = {"isa=baseline", NULL};
static const char *const v3[] = {"isa=v3", NULL};
static const char *const f32[] = {"linear=f32", NULL};

static const kopi_plugin *cpu(void) { return plugin_of(PLUGIN_CPU); }

/* only NULL: everything, and the first failures are shown. */
static struct cf_counts compare(const struct cf_side *a, const struct cf_side *b, const char *only)
{
    int shown = 0;
    const struct cf_report report = {.line = only ? NULL : show_failures, .ctx = &shown};
    const struct cf_options o = {.seed = 1, .only = only, .report = report};
    struct cf_counts n;
    ck_assert_int_eq(cf_compare(a, b, &o, &n), KOPI_OK);
    return n;
}

static bool has_v3(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* Under ThreadSanitizer, where all is slow and this backend has no threads to watch, one type stands for all. */
static const bool under_tsan = KOPI_SANITIZER == KOPI_SANITIZER_THREAD;

START_TEST(levels_agree)
{
    if (!has_v3()) return;
    const struct cf_side a = {cpu(), baseline, "_c_baseline"}, b = {cpu(), v3, "_c_v3"};
    struct cf_counts n = compare(&a, &b, under_tsan ? "q4_k" : NULL);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_eq(n.skipped, 0);
    ck_assert_uint_gt(n.passed, under_tsan ? 10 : 300);
}
END_TEST

/* Dequantized weights and F32 activations: the same numbers but for the rounding of the activations. */
START_TEST(float_linear_is_near)
{
    const struct cf_side a = {cpu(), f32, NULL}, b = {cpu(), NULL, NULL};
    struct cf_counts n = compare(&a, &b, under_tsan ? "q4_k" : NULL);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_gt(n.passed, under_tsan ? 5 : 100);
}
END_TEST

/* ---- plugins with a fault: the cpu plugin, but for one thing ----------------------------------------------------- */

enum fault { ONE_BIT, PAST_THE_END, INPUT_CHANGED, SHARE_MISSING, BATCH_SEEN, ROUNDS_DOWN, ADDS_NOISE };
static enum fault fault;
static kopi_kernel rows[32];
static kopi_backend_ops ops;
static kopi_plugin plugin;

static kopi_status faulty_run(void *be, const kopi_kctx *k, const kopi_op *op)
{
    const kopi_tensor *y = kopi_tensor_at(k->prog, op->out[0]);
    kopi_status (*good)(void *, const kopi_kctx *, const kopi_op *) = cpu()->ops->kernels[0].run;
    if (fault == SHARE_MISSING && k->ith == 2) return KOPI_OK;
    kopi_status s = good(be, k, op);
    if (s != KOPI_OK || op->op != KOPI_OP_NORM || k->ith != k->nth - 1) return s;
    float *out = k->data[op->out[0]], *in = k->data[op->in[0]];
    int64_t n = kopi_extent(k->run, y, y->n_dims - 1), row = y->nb[y->n_dims - 1] / (int64_t)sizeof *out;
    if (fault == ONE_BIT && k->nth == 16) memcpy(out, &(uint32_t){((uint32_t *)(void *)out)[0] ^ 1}, 4);
    if (fault == BATCH_SEEN && k->run->n_tok == 1) out[row - 1] = -out[row - 1];
    if (fault == PAST_THE_END && n < k->prog->max_tok) out[n * row] = 1;
    if (fault == ROUNDS_DOWN) fesetround(FE_DOWNWARD);
    if (fault == INPUT_CHANGED) in[0] = in[0] + 1;
    for (int64_t i = 0; fault == ADDS_NOISE && i < row; i++) out[i] = out[i] * (i % 2 ? 1.01f : 0.99f);
    return s;
}

static kopi_status not_exact(const kopi_host *host, uint32_t index, kopi_device *out)
{
    kopi_status s = cpu()->device(host, index, out);
    out->flags &= ~(uint32_t)KOPI_DEVICE_EXACT;
    return s;
}

static void *leaked[4];
static int n_leaked;
static kopi_status leaky_create(const kopi_host *host, uint32_t device, void **be)
{
    leaked[n_leaked++] = host->alloc(host->ctx, 64, 64);
    return cpu()->ops->create(host, device, be);
}

static const kopi_plugin *with_fault(enum fault f)
{
    fault = f;
    ops = *cpu()->ops;
    plugin = *cpu();
    ck_assert_uint_le(ops.n_kernels, 32);
    memcpy(rows, ops.kernels, ops.n_kernels * sizeof *rows);
    for (uint32_t i = 0; i < ops.n_kernels; i++) rows[i].run = faulty_run;
    ops.kernels = rows;
    plugin.ops = &ops;
    return &plugin;
}

START_TEST(faults_are_seen)
{
    const struct cf_side good = {cpu(), NULL, NULL}, bad = {with_fault((enum fault)_i), NULL, NULL};
    if (fault == ADDS_NOISE) plugin.device = not_exact;
    struct cf_counts n = compare(&good, &bad, "norm");
    ck_assert_uint_gt(n.failed, 0);
}
END_TEST

START_TEST(leaks_are_seen)
{
    const struct cf_side good = {cpu(), NULL, NULL}, bad = {with_fault(ONE_BIT), NULL, NULL};
    ops.create = leaky_create;
    ck_assert_uint_gt(compare(&good, &bad, "add").failed, 0);
    while (n_leaked) free(leaked[--n_leaked]);
}
END_TEST

/* ---- a plugin that takes the whole program: the cpu's kernels behind prepare and execute ------------------------- */

static struct cf_counts life(const kopi_plugin *p);

struct planned {
    const kopi_host *host;
    void *be;
};
struct plan {
    struct planned *p;
    const kopi_program *prog;
    uint32_t first, n;
    const kopi_run *run;
    void *data[CF_MAX_TENSORS];
};
static bool forgets_cancel;

static kopi_status planned_create(const kopi_host *host, uint32_t device, void **be)
{
    struct planned *p = host->alloc(host->ctx, sizeof *p, 64);
    if (!p) return (host->fail)(host->ctx, KOPI_E_NOMEM, "planned"); /* Check has a macro fail() */
    p->host = host;
    *be = p;
    kopi_status s = cpu()->ops->create(host, device, &p->be);
    if (s != KOPI_OK) host->free(host->ctx, p);
    return s;
}

static void planned_destroy(void *be)
{
    struct planned *p = be;
    cpu()->ops->destroy(p->be);
    p->host->free(p->host->ctx, p);
}

static int32_t planned_supports(void *be, const kopi_program *p, const kopi_op *op)
{
    return cpu()->ops->supports(((struct planned *)be)->be, p, op);
}

static const char *planned_describe(void *be, const kopi_program *p, const kopi_op *op)
{
    return cpu()->ops->describe(((struct planned *)be)->be, p, op);
}

/* A copy of its own, with the bytes inverted: whoever reads the file's instead would be seen, and so would the reverse.
 */
static kopi_status planned_import(void *be, const kopi_weight *w, kopi_weight_out *out)
{
    struct planned *p = be;
    unsigned char *copy = p->host->alloc(p->host->ctx, w->size, 64);
    if (!copy) return KOPI_E_NOMEM;
    for (uint64_t i = 0; i < w->size; i++) copy[i] = (unsigned char)~((const unsigned char *)w->data)[i];
    *out = (kopi_weight_out){sizeof *out, KOPI_WEIGHT_REPACKED, w->roles, 0, copy, w->size, "inverted"};
    return KOPI_OK;
}

static void planned_weight_free(void *be, void *handle)
{
    struct planned *p = be;
    p->host->free(p->host->ctx, handle);
}

static kopi_status planned_prepare(void *be, const kopi_program *prog, uint32_t first, uint32_t n, void **out)
{
    struct planned *p = be;
    struct plan *plan = p->host->alloc(p->host->ctx, sizeof *plan, 64);
    if (!plan) return KOPI_E_NOMEM;
    *plan = (struct plan){.p = p, .prog = prog, .first = first, .n = n};
    *out = plan;
    return KOPI_OK;
}

static void planned_free(void *be, void *plan)
{
    struct planned *p = be;
    p->host->free(p->host->ctx, plan);
}

static kopi_status walk(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    struct plan *plan = arg;
    kopi_status s = KOPI_OK;
    for (uint32_t i = plan->first; i < plan->first + plan->n && s == KOPI_OK; i++) {
        const kopi_op *op = kopi_op_at(plan->prog, i);
        uint64_t size = cpu()->ops->kernels[2].scratch(plan->p->be, plan->prog, op, nth);
        kopi_kctx k = {.struct_size = sizeof k,
                       .ith = ith,
                       .nth = nth,
                       .prog = plan->prog,
                       .run = plan->run,
                       .data = plan->data,
                       .scratch = malloc(size + 1),
                       .scratch_size = size};
        s = cpu()->ops->kernels[0].run(plan->p->be, &k, op);
        free(k.scratch);
        s = plan->p->host->barrier(team, s);
    }
    return s;
}

static kopi_status planned_execute(void *be, void *opaque, const kopi_run *run)
{
    struct planned *p = be;
    struct plan *plan = opaque;
    void *own[CF_MAX_TENSORS] = {0};
    kopi_status s = KOPI_OK;
    if (!forgets_cancel && p->host->cancelled(p->host->ctx)) return KOPI_E_CANCELLED;
    for (uint32_t i = 0; i < plan->prog->n_tensors && s == KOPI_OK; i++) {
        const kopi_tensor *t = kopi_tensor_at(plan->prog, (int32_t)i);
        plan->data[i] = t->kind == KOPI_KIND_OUTPUT ? kopi_output_at(run, t->group)->host : t->data;
        if (!t->handle) continue;
        uint64_t size = (uint64_t)(t->nb[t->n_dims - 1] * t->dim[t->n_dims - 1].n);
        unsigned char *bytes = plan->data[i] = own[i] = malloc(size);
        for (uint64_t b = 0; b < size; b++) bytes[b] = (unsigned char)~((const unsigned char *)t->handle)[b];
    }
    plan->run = run;
    s = p->host->team(p->host->ctx, walk, plan);
    for (int i = 0; i < CF_MAX_TENSORS; i++) free(own[i]);
    return s;
}

static const kopi_plugin *planned(void)
{
    ops = (kopi_backend_ops){.struct_size = sizeof ops,
                             .create = planned_create,
                             .destroy = planned_destroy,
                             .supports = planned_supports,
                             .describe = planned_describe,
                             .weight_import = planned_import,
                             .weight_free = planned_weight_free,
                             .prepare = planned_prepare,
                             .execute = planned_execute,
                             .plan_free = planned_free};
    plugin = *cpu();
    plugin.name = "planned";
    plugin.ops = &ops;
    return &plugin;
}

START_TEST(plans_are_driven)
{
    const struct cf_side good = {cpu(), NULL, NULL}, bad = {planned(), NULL, "_c_"};
    struct cf_counts n = compare(&good, &bad, under_tsan ? "q4_k" : NULL);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_eq(n.skipped, 0);
    ck_assert_uint_gt(n.passed, under_tsan ? 10 : 300);
    n = life(&plugin);
    ck_assert_uint_eq(n.failed + n.skipped, 0);
    forgets_cancel = true;
    ck_assert_uint_eq(life(&plugin).failed, 1);
}
END_TEST

/* ---- what isn't arithmetic --------------------------------------------------------------------------------------- */

static struct cf_counts life(const kopi_plugin *p)
{
    int shown = 0;
    const struct cf_side side = {p, NULL, NULL};
    const struct cf_report report = {.line = p == cpu() ? show_failures : NULL, .ctx = &shown};
    struct cf_counts n = {0};
    cf_life(&side, &report, &n);
    return n;
}

START_TEST(cpu_lives_well)
{
    struct cf_counts n = life(cpu());
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_eq(n.skipped, 1); /* cancelling is the executor's affair */
    ck_assert_uint_eq(n.passed, 16);
}
END_TEST

static kopi_status too_long(const kopi_host *host, uint32_t index, kopi_device *out)
{
    uint32_t given = out->struct_size;
    out->struct_size = sizeof *out;
    kopi_status s = cpu()->device(host, index, out);
    out->struct_size = given;
    return s;
}

static kopi_status any_index(const kopi_host *host, uint32_t index, kopi_device *out)
{
    (void)index;
    return cpu()->device(host, 0, out);
}

static kopi_status wrong_code(const kopi_host *host, uint32_t device, void **be)
{
    kopi_status s = cpu()->ops->create(host, device, be);
    return s == KOPI_E_NOMEM ? KOPI_E_INTERNAL : s;
}

static int32_t claims_all(void *be, const kopi_program *p, const kopi_op *op)
{
    (void)be, (void)p, (void)op;
    return 1;
}

static kopi_status no_export(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical)
{
    (void)be, (void)p, (void)group, (void)page, (void)canonical;
    return KOPI_E_UNSUPPORTED;
}

START_TEST(bad_manners_are_seen)
{
    with_fault(ONE_BIT);
    switch (_i) {
    case 0: plugin.device = too_long; break;
    case 1: plugin.device = any_index; break;
    case 2: ops.create = wrong_code; break;
    case 3: ops.supports = claims_all; break;
    case 4: plugin.name = "CPU"; break;
    case 5: rows[3].run = NULL; break;
    default: ops.kv_export = no_export; break;
    }
    ck_assert_uint_eq(life(&plugin).failed, 1);
}
END_TEST

START_TEST(another_level_is_seen)
{
    const struct cf_side good = {cpu(), NULL, NULL}, coarse = {cpu(), baseline, "_c_v3"};
    struct cf_counts n = compare(&good, &coarse, "rope");
    ck_assert_uint_gt(n.failed, 0);
    ck_assert_uint_eq(n.passed, 0);
}
END_TEST

START_TEST(options_are_checked)
{
    static const char *const wrong[][2] = {{"isa=avx2", NULL}, {"linear=int4", NULL}};
    static const char *const text[] = {"option isa: 'avx2' is not possible; allowed are auto, baseline and v3",
                                       "option linear: 'int4' is not possible; allowed are int8 and f32"};
    struct cf_instance i;
    ck_assert_int_eq(cf_open(&i, cpu(), wrong[_i], 1), KOPI_E_CONFIG);
    ck_assert_str_eq(i.host.text, text[_i]);
    ck_assert_int_eq(i.host.live, 0);
}
END_TEST

START_TEST(memory_may_be_short)
{
    struct cf_host h;
    void *be = NULL;
    cf_host_init(&h, NULL, 1);
    h.fail_at = 1;
    ck_assert_int_eq(cpu()->ops->create(&h.h, 0, &be), KOPI_E_NOMEM);
    ck_assert_int_eq(h.live, 0);
    ck_assert_int_eq(cpu()->ops->create(&h.h, 0, &be), KOPI_OK);
    cpu()->ops->destroy(be);
    ck_assert_int_eq(h.live, 0);
}
END_TEST

START_TEST(device_says_what_it_is)
{
    struct cf_instance a, b;
    ck_assert_int_eq(cf_open(&a, cpu(), baseline, 1), KOPI_OK);
    ck_assert_int_eq(cf_open(&b, cpu(), f32, 1), KOPI_OK);
    ck_assert_uint_eq(a.device.flags, KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE);
    ck_assert_uint_eq(b.device.flags, KOPI_DEVICE_REPEATABLE | KOPI_DEVICE_HOST_VISIBLE);
    ck_assert_str_eq(a.device.detail, "reference, baseline");
    ck_assert_ptr_nonnull(strstr(b.device.detail, "linear f32"));
    kopi_device d = {.struct_size = sizeof d};
    ck_assert_int_eq(cpu()->device(&a.host.h, 1, &d), KOPI_E_RANGE);
    cf_close(&a);
    cf_close(&b);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("compare");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, levels_agree);
    tcase_add_test(t, float_linear_is_near);
    tcase_add_loop_test(t, faults_are_seen, ONE_BIT, ADDS_NOISE + 1);
    tcase_add_test(t, leaks_are_seen);
    tcase_add_test(t, plans_are_driven);
    tcase_add_test(t, cpu_lives_well);
    tcase_add_loop_test(t, bad_manners_are_seen, 0, 7);
    tcase_add_test(t, another_level_is_seen);
    tcase_add_loop_test(t, options_are_checked, 0, 2);
    tcase_add_test(t, memory_may_be_short);
    tcase_add_test(t, device_says_what_it_is);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
