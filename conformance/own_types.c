/* Group ops: the weight types that a backend brings, against F32 weights of the values that its to_f32 gives. */
#include "agree.h"
#include "drive.h"
#include "test.h"
#include "values.h"

#include <kopi/math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TRIES = 100000, MAX_BLOCK = 4096 };
#define LIST(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)

static const kopi_dtype_info *type_at(const kopi_plugin *p, uint32_t k)
{
    return (const void *)((const char *)p->dtypes + (size_t)k * p->dtype_stride);
}

/* A value that a weight may have: not far from one, or zero. */
static bool is_mild(float x)
{
    uint32_t e = kopi_f32_bits(x) >> 23 & 0xff;
    return x == 0 || (e > 127 - 14 && e < 127 + 2);
}

/* Random bits until they stand for mild values: how the block is made is the backend's secret. */
static bool draw_block(struct cf_random *r, const kopi_dtype_info *d, char *block, float *values)
{
    for (int n = 0; n < MAX_TRIES; n++) {
        bool mild = true, all_zero = true;
        for (uint32_t b = 0; b < d->block_bytes; b++) block[b] = (char)cf_next(r);
        d->to_f32(block, values, d->block_len);
        for (uint32_t i = 0; i < d->block_len && mild; i++) mild = is_mild(values[i]), all_zero &= values[i] == 0;
        if (mild && !all_zero) return true;
    }
    return false;
}

struct weights {
    char *blocks;
    float *values;
    int64_t k, n;
};

static bool draw(struct weights *w, struct cf_random *r, const kopi_dtype_info *d)
{
    w->k = d->block_len * (int64_t)(1 + cf_below(r, 4));
    w->n = 1 + cf_below(r, 40);
    int64_t n_blocks = w->k / d->block_len * w->n;
    w->blocks = calloc((size_t)n_blocks, d->block_bytes);
    w->values = calloc((size_t)(w->k * w->n), sizeof *w->values);
    if (!w->blocks || !w->values) abort();
    for (int64_t b = 0; b < n_blocks; b++)
        if (!draw_block(r, d, w->blocks + b * d->block_bytes, w->values + b * d->block_len)) return false;
    return true;
}

static void undraw(struct weights *w)
{
    free(w->blocks);
    free(w->values);
}

/* EMBED or LINEAR with the weights w: of type d, or (d NULL) as F32. */
static void build(struct cf_program *c, uint32_t op, const struct weights *w, const kopi_dtype_info *d, uint64_t seed)
{
    struct cf_random r = {seed};
    cf_program_init(c, (const uint32_t[]){1 + cf_below(&r, 9), 3}, 2);
    int32_t weight = d ? cf_own_weight(c, d, w->k, w->n) : cf_weight(c, KOPI_DTYPE_F32, w->k, w->n);
    if (d) memcpy(c->t[weight].data, w->blocks, (size_t)(w->k / d->block_len * w->n) * d->block_bytes);
    else memcpy(c->t[weight].data, w->values, (size_t)(w->k * w->n) * sizeof(float));
    if (op == KOPI_OP_EMBED) {
        int32_t y = cf_output(c, KOPI_DTYPE_F32, w->k, 1, KOPI_DIM_TOK);
        for (uint32_t t = 0; t < c->n_tok; t++) c->tokens[t] = (int32_t)cf_below(&r, (uint32_t)w->n);
        c->params[0].embed = (kopi_embed_params){cf_below(&r, 2) ? 1.0f : 2.5f, 0};
        cf_op(c, op, LIST(weight), LIST(y), &c->params[0].embed, sizeof c->params[0].embed);
    } else {
        int32_t x = cf_input(c, KOPI_DTYPE_F32, w->k, 1, KOPI_DIM_TOK),
                bias = cf_below(&r, 2) ? cf_vector(c, w->n) : -1;
        cf_floats(&r, CF_MILD, (float *)(void *)c->in[x].rows, (size_t)w->k * c->n_tok);
        if (bias >= 0) cf_floats(&r, CF_MILD, c->t[bias].data, (size_t)w->n);
        int32_t y = cf_output(c, KOPI_DTYPE_F32, w->n, 1, KOPI_DIM_TOK);
        cf_op(c, op, LIST(x, weight, bias), LIST(y), NULL, 0);
    }
    cf_program_finish(c);
}

struct sides {
    struct cf_env *e;
    struct cf_instance ref, sub;
};

/* One program on both. *claimed: the subject takes it. */
static bool compare(struct sides *s, const kopi_dtype_info *d, uint32_t op, uint64_t seed, bool *claimed)
{
    struct cf_random r = {seed};
    struct weights w = {0};
    struct cf_program want, have;
    char text[300], name[120];
    snprintf(name, sizeof name, "%s %s seed=%llu", op == KOPI_OP_EMBED ? "embed" : "linear", d->name,
             (unsigned long long)seed);
    cf_start(s->e, name, seed);
    bool ok = draw(&w, &r, d) || cf_wrong(s->e, "%s: no random block stands for weights of usual size", d->name);
    if (ok) {
        build(&want, op, &w, NULL, seed);
        build(&have, op, &w, d, seed);
        *claimed = cf_takes(&s->sub, &have);
        for (uint32_t nth = 1; nth < 4 && ok && *claimed; nth += 2) {
            ok = cf_drive(&s->ref, &want, 1, CF_WHOLE, text, sizeof text) == KOPI_OK &&
                 cf_drive(&s->sub, &have, nth, nth > 1 ? CF_UNEVEN : CF_WHOLE, text, sizeof text) == KOPI_OK &&
                 cf_agree(&want, &have, false, op == KOPI_OP_EMBED ? 1e-10f : 5e-4f, text, sizeof text);
            if (!ok) cf_wrong(s->e, "%s with %u workers: %s", name, nth, text);
        }
        cf_program_free(&want);
        cf_program_free(&have);
    }
    undraw(&w);
    return ok;
}

static bool check_type(struct sides *s, const kopi_dtype_info *d)
{
    static const uint32_t ops[] = {KOPI_OP_EMBED, KOPI_OP_LINEAR};
    bool any = false;
    if (d->block_len > MAX_BLOCK)
        return cf_wrong(s->e, "%s: blocks of %u values; this test knows up to %d", d->name, d->block_len, MAX_BLOCK);
    for (int o = 0; o < 2; o++)
        for (uint32_t n = 0; n < (s->e->one_seed ? 1 : 4 + s->e->rounds); n++) {
            bool claimed = false;
            if (!compare(s, d, ops[o], s->e->seed + n, &claimed)) return false;
            any |= claimed;
        }
    return any || cf_wrong(s->e, "type %s is declared, but neither EMBED nor LINEAR takes it", d->name);
}

static enum cf_verdict own_types(struct cf_env *e, const struct cf_test *t)
{
    const kopi_plugin *p = e->subject.plugin;
    struct sides s = {.e = e};
    bool ok = true;
    (void)t;
    if (!p->n_dtypes) return cf_skipped(e, "it has no weight type of its own");
    if (cf_open(&s.ref, e->reference.plugin, e->reference.options, 1) != KOPI_OK)
        return cf_failed(e, "create the reference: %s", s.ref.host.text);
    if (cf_open(&s.sub, p, e->subject.options, 3) != KOPI_OK) return cf_failed(e, "create: %s", s.sub.host.text);
    for (uint32_t k = 0; k < p->n_dtypes && ok; k++) ok = check_type(&s, type_at(p, k));
    cf_close(&s.sub);
    cf_close(&s.ref);
    return ok ? CF_PASS : CF_FAIL;
}

void cf_add_own_types(struct cf_list *l)
{
    cf_list_add(l, &(struct cf_test){.name = "ops/own-types", .run = own_types, .needs = "life/create"});
}
