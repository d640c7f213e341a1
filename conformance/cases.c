#include "cases.h"

#include "drive.h"
#include <kopi/math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

#define N(list) (sizeof(list) / sizeof *(list))
#define PICK(k, ...) cf_pick(&(k)->random, (const uint32_t[]){__VA_ARGS__}, N(((const uint32_t[]){__VA_ARGS__})))
/* By turns, `of` other things being had by turns faster. */
#define TURN(k, of, ...) ((const uint32_t[]){__VA_ARGS__})[(k)->variant / (of) % N(((const uint32_t[]){__VA_ARGS__}))]
#define LIST(...) (const int32_t[]){__VA_ARGS__}, N(((const int32_t[]){__VA_ARGS__}))
#define OP(c, op, in, out, params) cf_op(c, op, in, out, params, sizeof *(params))

__attribute__((format(printf, 2, 3))) static void say(struct cf_case *k, const char *fmt, ...)
{
    va_list ap;
    size_t n = strlen(k->name);
    va_start(ap, fmt);
    vsnprintf(k->name + n, k->name_size - n, fmt, ap);
    va_end(ap);
}

static bool coin(struct cf_case *k) { return cf_below(&k->random, 2); }

/* One to three sequences, in all at most about `most` tokens. */
static void tokens(struct cf_case *k, struct cf_program *c, uint32_t most)
{
    uint32_t len[CF_MAX_SEQ], n = PICK(k, 1, 1, 1, 2, 3);
    if (k->large) n = 1, len[0] = 32;
    for (uint32_t s = 0; s < n && !k->large; s++) len[s] = 1 + cf_below(&k->random, coin(k) ? most / n : 4);
    cf_program_init(c, len, n);
    say(k, " tok=%u", c->n_tok);
    if (n > 1) say(k, "/%u", n);
}

/* Some tokens want no output row. */
static void want_some(struct cf_case *k, struct cf_program *c)
{
    c->n_out = 0;
    for (uint32_t t = 0; t < c->n_tok; t++) c->n_out += c->wanted[t] = cf_below(&k->random, 3) > 0;
    say(k, " out=%u", c->n_out);
}

static int32_t input(struct cf_case *k, struct cf_program *c, int64_t n, int64_t heads, uint32_t sym)
{
    int32_t i = cf_input(c, KOPI_DTYPE_F32, n, heads, sym);
    cf_floats(&k->random, k->values, (float *)(void *)c->in[i].rows, c->in[i].n * c->in[i].row_bytes / sizeof(float));
    return i;
}

/* The same values, quantized by the rule of kopi/op.h. */
static int32_t quantized_input(struct cf_case *k, struct cf_program *c, uint32_t dtype, int64_t n, uint32_t sym)
{
    if (dtype == KOPI_DTYPE_F32) return input(k, c, n, 1, sym);
    int32_t i = cf_input(c, dtype, n, 1, sym);
    size_t all = (size_t)n * c->in[i].n;
    float *x = calloc(all ? all : 1, sizeof *x);
    if (!x) abort();
    cf_floats(&k->random, k->values, x, all);
    cf_quantize(dtype, x, c->in[i].rows, all);
    free(x);
    return i;
}

/* An output like an input of these dimensions: the input itself or another tensor. */
static int32_t output_for(struct cf_case *k, struct cf_program *c, int32_t x, int64_t n, int64_t heads)
{
    if (!coin(k)) return cf_output(c, KOPI_DTYPE_F32, n, heads, KOPI_DIM_TOK);
    say(k, " inplace");
    cf_make_output(c, x);
    return x;
}

static int32_t vector(struct cf_case *k, struct cf_program *c, int64_t n)
{
    int32_t i = cf_vector(c, n);
    cf_floats(&k->random, k->values, c->t[i].data, (size_t)n);
    return i;
}

static int32_t weight(struct cf_case *k, struct cf_program *c, int64_t len, int64_t n)
{
    const struct cf_weight_type *t = cf_weight_type(k->dtype);
    int32_t i = cf_weight(c, k->dtype, len, n);
    cf_blocks(&k->random, k->values, t, c->t[i].data, (size_t)(len / t->len * n));
    return i;
}

static int64_t width(struct cf_case *k) { return k->large ? 2048 : 1 + cf_below(&k->random, 300); }

/* A row length that the type allows. */
static int64_t length(struct cf_case *k)
{
    if (k->large) return 1024;
    uint32_t len = cf_weight_type(k->dtype)->len;
    return len == 1 ? 1 + cf_below(&k->random, 300) : len * (1 + cf_below(&k->random, len == 32 ? 24 : 4));
}

/* ---- one function per kind --------------------------------------------------------------------------------------- */

static void embed(struct cf_case *k, struct cf_program *c)
{
    int64_t n = length(k), n_vocab = 1 + cf_below(&k->random, 40);
    tokens(k, c, 20);
    say(k, " n=%d", (int)n);
    for (uint32_t t = 0; t < c->n_tok; t++) c->tokens[t] = (int32_t)cf_below(&k->random, (uint32_t)n_vocab);
    int32_t w = weight(k, c, n, n_vocab), y = cf_output(c, KOPI_DTYPE_F32, n, 1, KOPI_DIM_TOK);
    if (PICK(k, 0, 0, 1)) {
        say(k, " embd");
        c->n_embd = (uint64_t)n;
        c->embd = calloc(c->n_tok * c->n_embd, sizeof *c->embd);
        if (!c->embd) abort();
        cf_floats(&k->random, k->values, c->embd, c->n_tok * c->n_embd);
    }
    c->params[0].embed = (kopi_embed_params){coin(k) ? 1.0f : cf_normal(&k->random), 0};
    OP(c, KOPI_OP_EMBED, LIST(w), LIST(y), &c->params[0].embed);
}

static void norm(struct cf_case *k, struct cf_program *c)
{
    int64_t n = width(k), heads = PICK(k, 1, 1, 2, 7);
    c->params[0].norm = (kopi_norm_params){0};
    uint32_t kind = TURN(k, 1, KOPI_NORM_RMS, KOPI_NORM_LAYER);
    tokens(k, c, 20);
    say(k, " n=%d heads=%d %s", (int)n, (int)heads, kind == KOPI_NORM_RMS ? "rms" : "layer");
    c->params[0].norm = (kopi_norm_params){kind, coin(k) ? 1e-5f : 1e-6f};
    int32_t x = input(k, c, n, heads, KOPI_DIM_TOK), w = PICK(k, 1, 1, 0) ? vector(k, c, n) : -1,
            b = coin(k) ? vector(k, c, n) : -1;
    int32_t y = output_for(k, c, x, n, heads);
    OP(c, KOPI_OP_NORM, LIST(x, w, b), LIST(y), &c->params[0].norm);
}

static void quantize(struct cf_case *k, struct cf_program *c)
{
    int64_t n =
        k->dtype == KOPI_DTYPE_A8_32 ? 32 * (1 + cf_below(&k->random, 24)) : 256 * (1 + cf_below(&k->random, 4));
    tokens(k, c, 20);
    say(k, " n=%d", (int)n);
    int32_t x = input(k, c, n, 1, KOPI_DIM_TOK), y = cf_output(c, k->dtype, n, 1, KOPI_DIM_TOK);
    cf_op(c, KOPI_OP_QUANTIZE, LIST(x), LIST(y), NULL, 0);
}

/* LINEAR, with x as k->x says; head: of the wanted rows, straight to the caller's. Returns y. */
static int32_t linear_op(struct cf_case *k, struct cf_program *c, bool head)
{
    int64_t len = length(k), n = k->large ? 256 : 1 + cf_below(&k->random, 75);
    uint32_t a = k->x == CF_X_F32 ? KOPI_DTYPE_F32 : kopi_activation_dtype(k->dtype),
             sym = head ? KOPI_DIM_OUT : KOPI_DIM_TOK;
    tokens(k, c, 40);
    if (head) want_some(k, c);
    say(k, " k=%d n=%d", (int)len, (int)n);
    int32_t x = k->x == CF_X_QUANTIZED ? quantized_input(k, c, a, len, sym) : input(k, c, len, 1, sym);
    int32_t w = weight(k, c, len, n), bias = coin(k) ? vector(k, c, n) : -1;
    if (k->x == CF_X_QUANTIZE && a != KOPI_DTYPE_F32) {
        int32_t q = cf_act(c, a, len, 1, sym);
        cf_op(c, KOPI_OP_QUANTIZE, LIST(x), LIST(q), NULL, 0);
        x = q;
    }
    int32_t y = head ? cf_host_rows(c, n, TURN(k, 2, 3, 0)) : cf_output(c, KOPI_DTYPE_F32, n, 1, sym);
    cf_op(c, KOPI_OP_LINEAR, LIST(x, w, bias), LIST(y), NULL, 0);
    return y;
}
static void linear(struct cf_case *k, struct cf_program *c) { linear_op(k, c, TURN(k, 1, 0, 1)); }
static void head(struct cf_case *k, struct cf_program *c)
{
    int32_t y = linear_op(k, c, true);
    c->params[0].scale = (kopi_scale_params){300.0f, 0};
    OP(c, KOPI_OP_SOFTCAP, LIST(y), LIST(y), &c->params[0].scale);
}

static void rope(struct cf_case *k, struct cf_program *c)
{
    int64_t n = 2 * (1 + cf_below(&k->random, 64)), heads = PICK(k, 1, 2, 5),
            n_rot = coin(k) ? n : 2 * (1 + cf_below(&k->random, (uint32_t)n / 2));
    uint32_t pairing = TURN(k, 1, KOPI_ROPE_INTERLEAVED, KOPI_ROPE_HALF);
    tokens(k, c, 20);
    say(k, " n=%d rot=%d heads=%d %s", (int)n, (int)n_rot, (int)heads,
        pairing == KOPI_ROPE_HALF ? "half" : "interleaved");
    c->params[0].rope = (kopi_rope_params){pairing, (uint32_t)n_rot};
    int32_t table = cf_table(c, 2, n_rot / 2, c->n_tok), x = input(k, c, n, heads, KOPI_DIM_TOK),
            y = output_for(k, c, x, n, heads);
    cf_floats(&k->random, CF_MILD, c->t[table].data, (size_t)n_rot * c->n_tok);
    OP(c, KOPI_OP_ROPE, LIST(x, table), LIST(y), &c->params[0].rope);
}

static void attention(struct cf_case *k, struct cf_program *c, uint32_t window)
{
    uint32_t kv_heads = TURN(k, 1, 2, 1, 3), per = TURN(k, 1, 2, 7, 1, 2), nk = PICK(k, 8, 64, 80, 96, 20),
             nv = coin(k) ? nk : PICK(k, 16, 64, 40), page = PICK(k, 64, 64, 32, 256);
    tokens(k, c, per < 7 && kv_heads < 3 ? PICK(k, 20, 70, 300, 640) : 40);
    say(k, " kv_heads=%u x%u dim=%u/%u", kv_heads, per, nk, nv);
    if (window) say(k, " window=%u", window);
    float scale = PICK(k, 0, 0, 1) ? 4.0f : kopi_exp(-0.5f * 4.0f);
    c->params[0].kv_write = (kopi_kv_write_params){kv_heads, nk, nv, 0};
    c->params[1].attn =
        (kopi_attn_params){kv_heads * per, kv_heads, nk, nv, scale, TURN(k, 1, 0, 0, 1) ? 30.0f : 0.0f, window, 0};
    int32_t q = input(k, c, nk, kv_heads * per, KOPI_DIM_TOK), key = input(k, c, nk, kv_heads, KOPI_DIM_TOK);
    int32_t value = input(k, c, nv, kv_heads, KOPI_DIM_TOK),
            y = cf_output(c, KOPI_DTYPE_F32, nv, kv_heads * per, KOPI_DIM_TOK);
    cf_kv_cache(c, k->dtype, (int64_t)nk * kv_heads, (int64_t)nv * kv_heads, page, cf_next(&k->random));
    OP(c, KOPI_OP_KV_WRITE, LIST(key, value), LIST(c->kv[0], c->kv[1]), &c->params[0].kv_write);
    OP(c, KOPI_OP_ATTN, LIST(q, c->kv[0], c->kv[1]), LIST(y), &c->params[1].attn);
}
static void attn(struct cf_case *k, struct cf_program *c) { attention(k, c, 0); }
static void window(struct cf_case *k, struct cf_program *c)
{
    k->dtype = TURN(k, 6, KOPI_DTYPE_F32, KOPI_DTYPE_F16);
    say(k, " %s", cf_type_name(k->dtype));
    attention(k, c, TURN(k, 1, 1, 2, 3, 40, 256, 300));
}

static void glu(struct cf_case *k, struct cf_program *c)
{
    int64_t n = width(k);
    uint32_t act = TURN(k, 1, KOPI_ACT_SILU, KOPI_ACT_GELU_TANH, KOPI_ACT_RELU);
    tokens(k, c, 20);
    say(k, " n=%d %s", (int)n, act == KOPI_ACT_SILU ? "silu" : act == KOPI_ACT_GELU_TANH ? "gelu" : "relu");
    c->params[0].glu = (kopi_glu_params){act, 0};
    int32_t gate = input(k, c, n, 1, KOPI_DIM_TOK), up = PICK(k, 1, 1, 0) ? input(k, c, n, 1, KOPI_DIM_TOK) : -1;
    int32_t y = output_for(k, c, gate, n, 1);
    OP(c, KOPI_OP_GLU, LIST(gate, up), LIST(y), &c->params[0].glu);
}

static void add(struct cf_case *k, struct cf_program *c)
{
    int64_t n = width(k);
    tokens(k, c, 20);
    say(k, " n=%d", (int)n);
    int32_t a = input(k, c, n, 1, KOPI_DIM_TOK), b = input(k, c, n, 1, KOPI_DIM_TOK), y = output_for(k, c, a, n, 1);
    cf_op(c, KOPI_OP_ADD, LIST(a, b), LIST(y), NULL, 0);
}

static void by_value(struct cf_case *k, struct cf_program *c, uint32_t op)
{
    int64_t n = width(k);
    tokens(k, c, 20);
    say(k, " n=%d", (int)n);
    c->params[0].scale =
        (kopi_scale_params){op == KOPI_OP_SOFTCAP ? 1.0f + (float)cf_below(&k->random, 50) : cf_normal(&k->random), 0};
    int32_t x = input(k, c, n, 1, KOPI_DIM_TOK), y = output_for(k, c, x, n, 1);
    OP(c, op, LIST(x), LIST(y), &c->params[0].scale);
}
static void scale(struct cf_case *k, struct cf_program *c) { by_value(k, c, KOPI_OP_SCALE); }
static void softcap(struct cf_case *k, struct cf_program *c) { by_value(k, c, KOPI_OP_SOFTCAP); }

static void gather(struct cf_case *k, struct cf_program *c)
{
    int64_t n = width(k);
    tokens(k, c, 20);
    want_some(k, c);
    say(k, " n=%d", (int)n);
    int32_t x = input(k, c, n, 1, KOPI_DIM_TOK), y = cf_output(c, KOPI_DTYPE_F32, n, 1, KOPI_DIM_OUT);
    cf_op(c, KOPI_OP_GATHER, LIST(x), LIST(y), NULL, 0);
}

static const uint32_t weights[] = {KOPI_DTYPE_F32,    KOPI_DTYPE_F16,  KOPI_DTYPE_BF16, KOPI_DTYPE_Q4_0,
                                   KOPI_DTYPE_Q4_1,   KOPI_DTYPE_Q5_0, KOPI_DTYPE_Q5_1, KOPI_DTYPE_Q8_0,
                                   KOPI_DTYPE_IQ4_NL, KOPI_DTYPE_Q2_K, KOPI_DTYPE_Q3_K, KOPI_DTYPE_Q4_K,
                                   KOPI_DTYPE_Q5_K,   KOPI_DTYPE_Q6_K};
static const uint32_t kv[] = {KOPI_DTYPE_F32, KOPI_DTYPE_F16}, a8[] = {KOPI_DTYPE_A8_32, KOPI_DTYPE_A8_256};

static const struct cf_kind kinds[] = {
    {"embed", embed, weights, N(weights), 1e-6f, 2, NULL},
    {"norm", norm, NULL, 0, 1e-8f, 12, NULL},
    {"quantize", quantize, a8, N(a8), 1e-4f, 4, NULL},
    {"linear", linear, weights, N(weights), 5e-4f, 4, "ops/quantize/%A"},
    {"head", head, weights, N(weights), 5e-4f, 1, "ops/quantize/%A ops/linear/%W ops/softcap"},
    {"rope", rope, NULL, 0, 1e-8f, 12, NULL},
    {"attn", attn, kv, N(kv), 1e-5f, 5, NULL},
    {"window", window, NULL, 0, 1e-5f, 8, "ops/attn"},
    {"glu", glu, NULL, 0, 1e-6f, 12, NULL},
    {"add", add, NULL, 0, 1e-10f, 4, NULL},
    {"scale", scale, NULL, 0, 1e-10f, 4, NULL},
    {"softcap", softcap, NULL, 0, 1e-6f, 4, NULL},
    {"gather", gather, NULL, 0, 0, 4, NULL},
};
const struct cf_kind *cf_kinds(uint32_t *n)
{
    *n = N(kinds);
    return kinds;
}

const char *cf_kind_test(const struct cf_kind *kind, uint32_t dtype, char *buf)
{
    snprintf(buf, 96, "ops/%s%s%s", kind->name, kind->types ? "/" : "", kind->types ? cf_type_name(dtype) : "");
    return buf;
}

const char *cf_kind_needs(const struct cf_kind *kind, uint32_t dtype, char *buf)
{
    size_t n = 0;
    buf[0] = 0;
    for (const char *p = kind->needs; p && *p; p++) {
        const char *type = p[0] != '%' ? NULL : cf_type_name(p[1] == 'A' ? kopi_activation_dtype(dtype) : dtype);
        n += (size_t)(type ? snprintf(buf + n, 96 - n, "%s", type) : snprintf(buf + n, 96 - n, "%c", *p));
        p += type != NULL;
    }
    return buf;
}

uint64_t cf_seed(uint64_t random, enum cf_values v, uint32_t variant) { return random << 8 | variant % 64 << 2 | v; }
enum cf_values cf_seed_values(uint64_t seed) { return (enum cf_values)(seed % 4 % CF_N_VALUES); }

bool cf_build(const struct cf_draw *k, struct cf_instance *i, struct cf_program *c, char *name, size_t n)
{
    for (int x = 0; x < CF_N_X; x++) {
        struct cf_case one = {.dtype = k->dtype,
                              .values = k->values,
                              .random = {k->seed},
                              .variant = (uint32_t)(k->seed / 4 % 64),
                              .large = k->large,
                              .x = (enum cf_x)x,
                              .name = name,
                              .name_size = n};
        snprintf(name, n, "%s%s%s %s", k->kind->name, k->kind->types ? " " : "",
                 k->kind->types ? cf_type_name(k->dtype) : "", cf_values_name(k->values));
        k->kind->build(&one, c);
        cf_program_finish(c);
        if (cf_takes(i, c)) return true;
        cf_program_free(c);
    }
    return false;
}
