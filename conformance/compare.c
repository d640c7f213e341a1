#include "conform.h"

#include "cases.h"
#include "drive.h"
#include <kopi/math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N_TEAMS = 3 };
static const uint32_t teams[N_TEAMS] = {1, 3, 16};

struct bench {
    const struct cf_options *o;
    struct cf_counts *counts;
    const struct cf_side *reference, *subject;
    struct cf_instance ref, sub[N_TEAMS];
};

static void tell(struct bench *b, enum cf_verdict v, const char *name, const char *detail)
{
    uint32_t *count[] = {&b->counts->passed, &b->counts->failed, &b->counts->skipped};
    (*count[v])++;
    if (b->o->report.line) b->o->report.line(b->o->report.ctx, v, name, detail);
}

/* ---- comparing --------------------------------------------------------------------------------------------------- */

static uint32_t bits_at(const char *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u; /* NaNs are equal whatever their payload */
}

/* Same bits, but for the payload of NaNs in F32 rows. */
static bool same(const struct cf_image *a, const struct cf_image *b, bool f32, char *text, size_t n)
{
    uint64_t size = f32 ? 4 : 1;
    for (uint64_t i = 0; i < a->n * a->row_bytes; i += size) {
        if (f32 ? bits_at(a->rows + i) == bits_at(b->rows + i) : a->rows[i] == b->rows[i]) continue;
        uint64_t row = i / a->row_bytes, at = i % a->row_bytes / size;
        if (f32)
            snprintf(text, n, "row %llu element %llu: %08x (%g), expected %08x (%g)", (unsigned long long)row,
                     (unsigned long long)at, bits_at(b->rows + i), (double)kopi_bits_f32(bits_at(b->rows + i)),
                     bits_at(a->rows + i), (double)kopi_bits_f32(bits_at(a->rows + i)));
        else
            snprintf(text, n, "row %llu byte %llu: %02x, expected %02x", (unsigned long long)row,
                     (unsigned long long)at, (unsigned char)b->rows[i], (unsigned char)a->rows[i]);
        return false;
    }
    return true;
}

/* Sum of squared differences over sum of squares, at most bound. */
static bool near(const struct cf_image *a, const struct cf_image *b, float bound, char *text, size_t n)
{
    double diff = 0, all = 1e-30;
    for (uint64_t i = 0; i < a->n * a->row_bytes; i += 4) {
        double x = kopi_bits_f32(bits_at(a->rows + i)), y = kopi_bits_f32(bits_at(b->rows + i));
        diff += (x - y) * (x - y);
        all += x * x;
    }
    if (diff <= (double)bound * all) return true;
    snprintf(text, n, "normalized error %.3g, at most %.3g", diff / all, (double)bound);
    return false;
}

static bool outputs_agree(const struct cf_program *a, const struct cf_program *b, bool exact, float bound, char *text,
                          size_t n)
{
    for (uint32_t i = 0, k = 0; i < a->p.n_tensors;
         i++) { /* the k-th output of a is that of b: they may differ by a QUANTIZE */
        if (!a->out[i].rows) continue;
        while (!b->out[k].rows) k++;
        bool f32 = a->t[i].dtype == KOPI_DTYPE_F32;
        if (exact || !f32 ? !same(&a->out[i], &b->out[k], f32, text, n) : !near(&a->out[i], &b->out[k], bound, text, n))
            return false;
        k++;
    }
    for (int w = 0; w < 2; w++) /* a KV cache rounds by rule, whatever the device */
        if (a->kv[w] >= 0 && !same(&a->kv_rows[w], &b->kv_rows[w], a->t[a->kv[w]].dtype == KOPI_DTYPE_F32, text, n))
            return false;
    return true;
}

/* ---- one case ---------------------------------------------------------------------------------------------------- */

struct subject_case {
    const struct cf_kind *kind;
    uint32_t dtype;
    enum cf_values values;
    uint64_t seed;
};

/* Builds the program in the form that the instance claims; false: in none. */
static bool build(const struct subject_case *k, struct cf_instance *i, struct cf_program *c, char *name, size_t n)
{
    for (int quantize = 1; quantize >= 0; quantize--) {
        const struct cf_weight_type *w = cf_weight_type(k->dtype);
        struct cf_case one = {.dtype = k->dtype,
                              .values = k->values,
                              .random = {k->seed},
                              .quantize = quantize,
                              .name = name,
                              .name_size = n};
        snprintf(name, n, "%s%s%s %s", k->kind->name, k->kind->types ? " " : "",
                 !k->kind->types                ? ""
                 : w                            ? w->name
                 : k->dtype == KOPI_DTYPE_A8_32 ? "a8_32"
                                                : "a8_256",
                 cf_values_name(k->values));
        k->kind->build(&one, c);
        cf_program_finish(c);
        if (cf_takes(i, c)) return true;
        cf_program_free(c);
    }
    return false;
}

struct variant {
    int team;
    enum cf_split split;
    const char *name;
};
static const struct variant variants[] = {{0, CF_WHOLE, "whole"},
                                          {1, CF_WHOLE, "3 workers"},
                                          {2, CF_WHOLE, "16 workers"},
                                          {0, CF_ONE_BY_ONE, "token by token"},
                                          {1, CF_UNEVEN, "uneven pieces, 3 workers"}};

/* All variants of the subject against `want`; after the first one a device that isn't exact is held to its own result.
 */
static bool check_variants(struct bench *b, const struct subject_case *k, struct cf_program *want, char *text, size_t n)
{
    bool exact = b->ref.device.flags & b->sub[0].device.flags & KOPI_DEVICE_EXACT, ok = true;
    bool repeatable = b->sub[0].device.flags & (KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE);
    struct cf_program first = {0}, now;
    for (size_t v = 0; ok && v < sizeof variants / sizeof *variants; v++) {
        char name[256], what[300] = "";
        struct cf_instance *i = &b->sub[variants[v].team];
        build(k, i, &now, name, sizeof name);
        ok = cf_drive(i, &now, teams[variants[v].team], variants[v].split, what, sizeof what) == KOPI_OK;
        if (ok) ok = outputs_agree(want, &now, exact, k->kind->bound, what, sizeof what);
        if (ok && v && repeatable && !exact) ok = outputs_agree(&first, &now, true, 0, what, sizeof what);
        if (!ok) snprintf(text, n, "%s, %s: %s", cf_code(i, &now), variants[v].name, what);
        if (v) cf_program_free(&now);
        else first = now; /* only its rows are read */
    }
    cf_program_free(&first);
    return ok;
}

static void run_case(struct bench *b, const struct subject_case *k)
{
    char name[256], other[256], text[512];
    struct cf_program want, probe;
    if (!build(k, &b->ref, &want, name, sizeof name)) return; /* the reference defines what exists */
    size_t end = strlen(name);
    snprintf(name + end, sizeof name - end, " seed=%llu", (unsigned long long)k->seed);
    if (b->o->only && !strstr(name, b->o->only)) {
        cf_program_free(&want);
        return;
    }
    if (!build(k, &b->sub[0], &probe, other, sizeof other)) tell(b, CF_SKIP, name, "not claimed");
    else {
        snprintf(text, sizeof text, "%s", cf_code(&b->sub[0], &probe));
        cf_program_free(&probe);
        if (b->subject->expect && !strstr(text, b->subject->expect)) {
            char wrong[600];
            snprintf(wrong, sizeof wrong, "run by '%s', expected '%s'", text, b->subject->expect);
            tell(b, CF_FAIL, name, wrong);
        } else if (cf_drive(&b->ref, &want, 1, CF_WHOLE, other, sizeof other) != KOPI_OK) tell(b, CF_FAIL, name, other);
        else tell(b, check_variants(b, k, &want, text, sizeof text) ? CF_PASS : CF_FAIL, name, text);
    }
    cf_program_free(&want);
}

/* ---- all cases --------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    struct cf_random r = {a ^ (b << 32)};
    return cf_next(&r) >> 40; /* short enough to type */
}

static void run_kind(struct bench *b, const struct cf_kind *kind)
{
    bool exact = b->ref.device.flags & b->sub[0].device.flags & KOPI_DEVICE_EXACT;
    uint32_t n_types = kind->types ? kind->n_types : 1, rounds = (b->o->rounds ? b->o->rounds : 1) * kind->weight;
    for (uint32_t t = 0; t < n_types; t++)
        for (uint32_t r = 0; r < rounds; r++)
            for (enum cf_values v = CF_MILD; v < (exact ? CF_N_VALUES : CF_WIDE); v++) {
                const struct subject_case k = {kind, kind->types ? kind->types[t] : 0, v,
                                               mix(b->o->seed, r * 64 + t * 4 + v)};
                run_case(b, &k);
            }
}

kopi_status cf_compare(const struct cf_side *reference, const struct cf_side *subject, const struct cf_options *o,
                       struct cf_counts *counts)
{
    struct bench b = {.o = o, .counts = counts, .reference = reference, .subject = subject};
    uint32_t n, open = 0;
    const struct cf_kind *kinds = cf_kinds(&n);
    *counts = (struct cf_counts){0};
    kopi_status s = cf_open(&b.ref, reference->plugin, reference->options, 1);
    if (s != KOPI_OK) {
        tell(&b, CF_FAIL, "create the reference", b.ref.host.text);
        return s;
    }
    for (; open < N_TEAMS && s == KOPI_OK; open += s == KOPI_OK) {
        s = cf_open(&b.sub[open], subject->plugin, subject->options, teams[open]);
        if (s != KOPI_OK) tell(&b, CF_FAIL, "create the subject", b.sub[open].host.text);
    }
    for (uint32_t i = 0; i < n && s == KOPI_OK; i++) run_kind(&b, &kinds[i]);
    while (open > 0) {
        cf_close(&b.sub[--open]);
        if (b.sub[open].host.live) tell(&b, CF_FAIL, "memory", "the subject's allocations are not all freed");
    }
    cf_close(&b.ref);
    return s;
}
