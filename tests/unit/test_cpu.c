/* The reference backend against numbers from elsewhere: by hand, from the gguf Python package, from sums in double.
 * Every test runs at both levels. */
#include "conformance/drive.h"
#include "conformance/values.h"
#include "tests/support/plugin.h"

#include <check.h>
#include <kopi/math.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LIST(...) (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)
#define SET(p, ...) memcpy(p, ((const float[]){__VA_ARGS__}), sizeof((const float[]){__VA_ARGS__}))

static const char *const isa[][2] = {{"isa=baseline", NULL}, {"isa=auto", NULL}};

/* Runs the program that c holds, whole, at level `level`. */
static void drive(struct cf_program *c, int level)
{
    char err[256] = "";
    struct cf_instance i;
    ck_assert_int_eq(cf_open(&i, plugin_of(PLUGIN_CPU), isa[level], 1), KOPI_OK);
    cf_program_finish(c);
    ck_assert(cf_takes(&i, c));
    if (cf_drive(&i, c, 1, CF_WHOLE, err, sizeof err) != KOPI_OK) ck_abort_msg("%s", err);
    cf_close(&i);
}

static float *in(struct cf_program *c, int32_t i) { return (float *)(void *)c->in[i].rows; }
static float *out(struct cf_program *c, int32_t i) { return (float *)(void *)c->out[i].rows; }

static void tokens(struct cf_program *c, uint32_t n) { cf_program_init(c, &n, 1); }

static void near(const float *have, const double *want, int n, double eps)
{
    for (int i = 0; i < n; i++)
        if ((double)have[i] != want[i]) ck_assert_double_eq_tol(have[i], want[i], eps * (1 + fabs(want[i])));
}
#define NEAR(have, eps, ...)                                                                                           \
    near(have, (const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double), eps)

/* ---- weights ----------------------------------------------------------------------------------------------------- */

/* Blocks of bytes (37 i + i^2 / 3 + 11) mod 256 with scales 0.0625 and -0.40625, as gguf.quants.dequantize reads them.
 */
static const int at[18] = {0, 1, 5, 16, 17, 31, 32, 47, 63, 64, 100, 127, 128, 144, 191, 200, 224, 255};
static const struct {
    uint32_t dtype;
    float sum, value[18];
} blocks[] = {
    {KOPI_DTYPE_Q4_0, -1.0f, {-0.125f, 0.3125f, 0.375f, -0.1875f, -0.0625f, 0.375f}},
    {KOPI_DTYPE_Q4_1, 0.5625f, {-0.15625f, 0.34375f, -0.21875f, 0.21875f, 0.34375f, -0.15625f}},
    {KOPI_DTYPE_Q5_0, -2.0625f, {-0.6875f, 0.875f, -0.375f, -0.0625f, -0.9375f, 0.625f}},
    {KOPI_DTYPE_Q5_1, 17.0625f, {0.09375f, -0.21875f, 0.84375f, 0.84375f, 0.03125f, -0.40625f}},
    {KOPI_DTYPE_Q8_0, 9.5625f, {5.375f, 7.8125f, 1.875f, 1.0625f, 4.125f, 3.6875f}},
    {KOPI_DTYPE_IQ4_NL, -10.8125f, {-1.375f, 4.3125f, 5.5625f, -2.1875f, -0.625f, 5.5625f}},
    {KOPI_DTYPE_Q2_K,
     916.0f,
     {0.0f, 0.0f, 2.0625f, 1.21875f, 1.21875f, 1.21875f, 2.03125f, 2.40625f, 3.65625f, 4.8125f, 6.40625f, 2.15625f,
      3.125f, 2.84375f, 5.5f, 7.40625f, 2.40625f, 3.375f}},
    {KOPI_DTYPE_Q3_K,
     -61.25f,
     {0.0f, 1.3125f, 5.25f, -1.0f, -4.0f, -3.0f, 0.0f, -1.125f, 0.0f, -1.0f, -1.3125f, -2.625f, -3.5f, 0.0f, -0.1875f,
      -4.5f, -2.625f, -0.625f}},
    {KOPI_DTYPE_Q4_K,
     7219.0f,
     {3.25f, 3.25f, 19.0f, 3.25f, 28.0f, 16.75f, 28.96875f, 29.71875f, 28.96875f, 48.625f, 5.9375f, 20.9375f, 12.59375f,
      39.40625f, 13.8125f, 24.40625f, 23.3125f, 23.0625f}},
    {KOPI_DTYPE_Q5_K,
     11492.8125f,
     {28.0f, 3.25f, 66.25f, 3.25f, 39.25f, 16.75f, 31.96875f, 36.46875f, 39.46875f, 12.1875f, 13.4375f, 7.8125f,
      51.59375f, 12.59375f, 75.5625f, 90.03125f, 24.5625f, 23.9375f}},
    {KOPI_DTYPE_Q6_K,
     -2470.5f,
     {69.5625f, -53.0f, 66.25f, 112.0f, -224.0f, -70.0f, -44.0f, -13.75f, 129.8125f, 0.0f, -140.625f, 123.375f, -16.0f,
      154.0f, -6.25f, 59.3125f, 15.75f, 102.375f}},
};
enum { N_BLOCKS = sizeof blocks / sizeof *blocks };

static void known_block(uint32_t dtype, void *block)
{
    const struct cf_weight_type *t = cf_weight_type(dtype);
    const uint16_t scale[2] = {0x2c00, 0xb680}; /* 0.0625, -0.40625 */
    uint8_t *p = block;
    for (uint32_t i = 0; i < t->bytes; i++) p[i] = (uint8_t)(i * 37 + i * i / 3 + 11);
    for (int i = 0; i < 2 && t->f16_at[i] >= 0; i++) memcpy(p + t->f16_at[i], &scale[i], 2);
}

START_TEST(blocks_dequantize)
{
    struct cf_program c;
    const uint32_t dtype = blocks[_i % N_BLOCKS].dtype, len = cf_weight_type(dtype)->len;
    const kopi_embed_params params = {1.0f, 0};
    tokens(&c, 1);
    int32_t w = cf_weight(&c, dtype, len, 1), y = cf_output(&c, KOPI_DTYPE_F32, len, 1, KOPI_DIM_TOK);
    known_block(dtype, c.t[w].data);
    cf_op(&c, KOPI_OP_EMBED, LIST(w), LIST(y), &params, sizeof params);
    drive(&c, _i / N_BLOCKS);
    float sum = 0; /* exact: all values are multiples of 1/32 */
    for (uint32_t i = 0; i < len; i++) sum += out(&c, y)[i];
    for (int i = 0; i < 18 && (uint32_t)at[i] < len; i++)
        ck_assert_float_eq(out(&c, y)[at[i]], blocks[_i % N_BLOCKS].value[i]);
    ck_assert_float_eq(sum, blocks[_i % N_BLOCKS].sum);
    cf_program_free(&c);
}
END_TEST

/* x of ones quantizes to 127 and scale 1/127: the dot product is the sum of the block, up to rounding. With one element
 * at a time it picks that element. */
START_TEST(blocks_multiply)
{
    struct cf_program c;
    const uint32_t dtype = blocks[_i % N_BLOCKS].dtype, len = cf_weight_type(dtype)->len;
    tokens(&c, 19);
    int32_t x = cf_input(&c, KOPI_DTYPE_F32, len, 1, KOPI_DIM_TOK),
            q = cf_act(&c, kopi_activation_dtype(dtype), len, 1, KOPI_DIM_TOK);
    int32_t w = cf_weight(&c, dtype, len, 1), y = cf_output(&c, KOPI_DTYPE_F32, 1, 1, KOPI_DIM_TOK);
    known_block(dtype, c.t[w].data);
    for (uint32_t i = 0; i < len; i++) in(&c, x)[i] = 1.0f;
    for (int t = 0; t < 18; t++)
        if ((uint32_t)at[t] < len) in(&c, x)[(uint32_t)(t + 1) * len + (uint32_t)at[t]] = 1.0f;
    cf_op(&c, KOPI_OP_QUANTIZE, LIST(x), LIST(q), NULL, 0);
    cf_op(&c, KOPI_OP_LINEAR, LIST(q, w, -1), LIST(y), NULL, 0);
    drive(&c, _i / N_BLOCKS);
    NEAR(out(&c, y), 1e-5, blocks[_i % N_BLOCKS].sum);
    for (int t = 0; t < 18 && (uint32_t)at[t] < len; t++)
        NEAR(out(&c, y) + t + 1, 1e-4, blocks[_i % N_BLOCKS].value[t]);
    cf_program_free(&c);
}
END_TEST

START_TEST(float_linear)
{
    struct cf_program c;
    tokens(&c, 2);
    int32_t x = cf_input(&c, KOPI_DTYPE_F32, 2, 1, KOPI_DIM_TOK), w = cf_weight(&c, KOPI_DTYPE_F16, 2, 3);
    int32_t bias = cf_vector(&c, 3), y = cf_output(&c, KOPI_DTYPE_F32, 3, 1, KOPI_DIM_TOK);
    memcpy(c.t[w].data, (const uint16_t[]){0x3c00, 0x4000, 0x4200, 0x4400, 0xc500, 0x0001},
           12); /* 1 2, 3 4, -5 2^-24 */
    SET(c.t[bias].data, 0.5f, -0.5f, 0.0f);
    SET(in(&c, x), 5, 6, 1, 0);
    cf_op(&c, KOPI_OP_LINEAR, LIST(x, w, bias), LIST(y), NULL, 0);
    drive(&c, _i);
    NEAR(out(&c, y), 0, 17.5, 38.5, -25, 1.5, 2.5, -5);
    cf_program_free(&c);
}
END_TEST

/* ---- quantized activations --------------------------------------------------------------------------------------- */

START_TEST(quantize_rounds_to_even)
{
    struct cf_program c;
    tokens(&c, 4);
    int32_t x = cf_input(&c, KOPI_DTYPE_F32, 32, 1, KOPI_DIM_TOK),
            y = cf_output(&c, KOPI_DTYPE_A8_32, 32, 1, KOPI_DIM_TOK);
    SET(in(&c, x), 127, -63.5f, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49f);
    SET(in(&c, x) + 32, 0x1p-101f, -0x1p-101f);
    SET(in(&c, x) + 64, 1, INFINITY);
    SET(in(&c, x) + 96, 1, NAN);
    cf_op(&c, KOPI_OP_QUANTIZE, LIST(x), LIST(y), NULL, 0);
    drive(&c, _i);
    const kopi_a8_32 *q = (const void *)c.out[y].rows;
    static const int8_t want[8] = {127, -64, 0, 2, 2, 0, -2, 0};
    ck_assert_float_eq(q[0].d, 1.0f);
    ck_assert_mem_eq(q[0].q, want, 8);
    ck_assert_int_eq(q[0].sum, 127 - 64 + 2 + 2 - 2);
    for (int t = 1; t < 4; t++) {
        ck_assert_int_eq(q[t].sum, 0);
        ck_assert_int_eq(q[t].q[0], 0);
    }
    ck_assert_uint_eq(kopi_f32_bits(q[1].d), 0);
    ck_assert_uint_eq(kopi_f32_bits(q[2].d), 0x7fc00000u);
    ck_assert_uint_eq(kopi_f32_bits(q[3].d), 0x7fc00000u);
    cf_program_free(&c);
}
END_TEST

START_TEST(quantize_sums_sixteens)
{
    struct cf_program c;
    tokens(&c, 1);
    int32_t x = cf_input(&c, KOPI_DTYPE_F32, 256, 1, KOPI_DIM_TOK),
            y = cf_output(&c, KOPI_DTYPE_A8_256, 256, 1, KOPI_DIM_TOK);
    for (int i = 0; i < 256; i++) in(&c, x)[i] = i == 0 ? -254.0f : (float)(2 * (i / 16));
    cf_op(&c, KOPI_OP_QUANTIZE, LIST(x), LIST(y), NULL, 0);
    drive(&c, _i);
    const kopi_a8_256 *q = (const void *)c.out[y].rows;
    ck_assert_float_eq(q->d, 2.0f);
    ck_assert_int_eq(q->sum[0], -127);
    for (int j = 1; j < 16; j++) ck_assert_int_eq(q->sum[j], 16 * j);
    ck_assert_int_eq(q->q[255], 15);
    cf_program_free(&c);
}
END_TEST

/* ---- norms ------------------------------------------------------------------------------------------------------- */

START_TEST(norms)
{
    for (uint32_t kind = KOPI_NORM_RMS; kind <= KOPI_NORM_LAYER; kind++) {
        struct cf_program c;
        const kopi_norm_params params = {kind, 0.0f};
        tokens(&c, 1);
        int32_t x = cf_input(&c, KOPI_DTYPE_F32, 4, 2, KOPI_DIM_TOK), w = cf_vector(&c, 4), b = cf_vector(&c, 4);
        int32_t y = cf_output(&c, KOPI_DTYPE_F32, 4, 2, KOPI_DIM_TOK);
        SET(in(&c, x), 1, 2, 3, 4, 0, 0, 6, 8);
        SET(c.t[w].data, 1, 2, 1, 1);
        SET(c.t[b].data, 0, 0, 0, 10);
        cf_op(&c, KOPI_OP_NORM, LIST(x, w, b), LIST(y), &params, sizeof params);
        drive(&c, _i);
        if (kind == KOPI_NORM_RMS) /* sqrt(30 / 4), sqrt(100 / 4) */
            NEAR(out(&c, y), 1e-6, 0.365148372, 1.460593487, 1.095445115, 11.460593487, 0, 0, 1.2, 11.6);
        else /* mean 2.5, variance 1.25; mean 3.5, variance 12.75 */
            NEAR(out(&c, y), 1e-6, -1.341640786, -0.894427191, 0.447213595, 11.341640786, -0.980196059, -1.960392118,
                 0.700140042, 11.260252076);
        cf_program_free(&c);
    }
}
END_TEST

/* ---- rotation ---------------------------------------------------------------------------------------------------- */

/* One head of 4 at the positions 0, 1, .. n - 1, base 10000: y holds the rotated copies. */
static void rotate(const float *x, uint32_t n, uint32_t pairing, float *y, int level)
{
    struct cf_program c;
    const kopi_rope_params params = {pairing, 4};
    tokens(&c, n);
    int32_t table = cf_table(&c, 2, 2, n), a = cf_input(&c, KOPI_DTYPE_F32, 4, 1, KOPI_DIM_TOK);
    float *t = c.t[table].data;
    for (uint32_t p = 0; p < n; p++) {
        for (int i = 0; i < 2; i++) {
            t[p * 4 + (uint32_t)i * 2] = (float)cos(p * pow(1e4, -i / 2.0));
            t[p * 4 + (uint32_t)i * 2 + 1] = (float)sin(p * pow(1e4, -i / 2.0));
        }
        memcpy(in(&c, a) + p * 4, x, 4 * sizeof *x);
    }
    cf_make_output(&c, a);
    cf_op(&c, KOPI_OP_ROPE, LIST(a, table), LIST(a), &params, sizeof params);
    drive(&c, level);
    memcpy(y, out(&c, a), n * 4 * sizeof *y);
    cf_program_free(&c);
}

START_TEST(rope_pairings)
{
    static const float x[4] = {1, 2, 3, 4};
    float y[8];
    rotate(x, 2, KOPI_ROPE_INTERLEAVED, y, _i);
    NEAR(y, 0, 1, 2, 3, 4);
    NEAR(y + 4, 5e-6, -1.14264, 1.92208, 2.95985, 4.0298);
    rotate(x, 2, KOPI_ROPE_HALF, y, _i);
    NEAR(y + 4, 5e-6, -1.98411, 1.9599, 2.46238, 4.0198);
}
END_TEST

/* Scores of rotated vectors depend on the distance alone. */
START_TEST(rope_is_relative)
{
    static const float q[4] = {0.3f, -1.2f, 0.7f, 2.0f}, k[4] = {1.1f, 0.4f, -0.9f, 0.5f};
    float a[4 * 40], b[4 * 40];
    for (uint32_t pairing = KOPI_ROPE_INTERLEAVED; pairing <= KOPI_ROPE_HALF; pairing++) {
        rotate(q, 40, pairing, a, _i);
        rotate(k, 40, pairing, b, _i);
        for (int d = 0; d < 20; d++) {
            double first = 0, later = 0;
            for (int i = 0; i < 4; i++)
                first += (double)a[4 * d + i] * b[i], later += (double)a[4 * (d + 17) + i] * b[4 * 17 + i];
            ck_assert_double_eq_tol(first, later, 1e-5);
        }
    }
}
END_TEST

/* ---- attention --------------------------------------------------------------------------------------------------- */

struct attention {
    struct cf_program c;
    kopi_kv_write_params write;
    kopi_attn_params params;
    int32_t q, k, v, y;
};

static void attention(struct attention *a, uint32_t n_tok, uint32_t kv_heads, uint32_t per, uint32_t dim,
                      uint32_t dtype)
{
    tokens(&a->c, n_tok);
    a->write = (kopi_kv_write_params){kv_heads, dim, dim, 0};
    a->params = (kopi_attn_params){kv_heads * per, kv_heads, dim, dim, 1.0f, 0, 0, 0};
    a->q = cf_input(&a->c, KOPI_DTYPE_F32, dim, kv_heads * per, KOPI_DIM_TOK);
    a->k = cf_input(&a->c, KOPI_DTYPE_F32, dim, kv_heads, KOPI_DIM_TOK);
    a->v = cf_input(&a->c, KOPI_DTYPE_F32, dim, kv_heads, KOPI_DIM_TOK);
    a->y = cf_output(&a->c, KOPI_DTYPE_F32, dim, kv_heads * per, KOPI_DIM_TOK);
    cf_kv_cache(&a->c, dtype, (int64_t)dim * kv_heads, (int64_t)dim * kv_heads, 64, 7);
}

static void attend(struct attention *a, int level)
{
    cf_op(&a->c, KOPI_OP_KV_WRITE, LIST(a->k, a->v), LIST(a->c.kv[0], a->c.kv[1]), &a->write, sizeof a->write);
    cf_op(&a->c, KOPI_OP_ATTN, LIST(a->q, a->c.kv[0], a->c.kv[1]), LIST(a->y), &a->params, sizeof a->params);
    drive(&a->c, level);
}

/* Scores 0 and ln 3, so weights 1/4 and 3/4; with a window of 1 only the token itself; with a soft cap a little less
 * than ln 3. */
START_TEST(attention_by_hand)
{
    for (int kind = 0; kind < 3; kind++) {
        struct attention a;
        attention(&a, 2, 1, 1, 2, KOPI_DTYPE_F32);
        SET(in(&a.c, a.q), 9, 9, 1, 0);
        SET(in(&a.c, a.k), 0, 5, 1.0986123f, 7);
        SET(in(&a.c, a.v), 0, 4, 4, 0);
        a.params.window = kind == 1;
        a.params.softcap = kind == 2 ? 2.0f : 0.0f;
        attend(&a, _i);
        double w = kind == 0 ? 0.75 : kind == 1 ? 1.0 : 1 / (1 + exp(-2 * tanh(log(3) / 2)));
        NEAR(out(&a.c, a.y), 1e-6, 0, 4, 4 * w, 4 - 4 * w);
        cf_program_free(&a.c);
    }
}
END_TEST

/* Heads 0 and 1 read KV head 0, heads 2 and 3 KV head 1. */
START_TEST(heads_share_kv_heads)
{
    struct attention a;
    attention(&a, 1, 2, 2, 2, KOPI_DTYPE_F16);
    SET(in(&a.c, a.v), 1, 1.00048828125f, 3, 65520); /* binary16: 1 + 2^-11 is a tie, to even; 65520 overflows */
    attend(&a, _i);
    NEAR(out(&a.c, a.y), 0, 1, 1, 1, 1, 3, INFINITY, 3, INFINITY);
    cf_program_free(&a.c);
}
END_TEST

/* Three chunks, random values, against a softmax in double. */
START_TEST(attention_over_chunks)
{
    enum { N = 600, DIM = 16 };
    static const uint32_t windows[] = {0, 300};
    struct cf_random r = {1};
    for (int w = 0; w < 2; w++) {
        struct attention a;
        attention(&a, N, 1, 2, DIM, KOPI_DTYPE_F32);
        a.params.window = windows[w];
        cf_floats(&r, CF_MILD, in(&a.c, a.q), N * DIM * 2);
        cf_floats(&r, CF_MILD, in(&a.c, a.k), N * DIM);
        cf_floats(&r, CF_MILD, in(&a.c, a.v), N * DIM);
        attend(&a, _i);
        for (int p = 0; p < N; p += 37)
            for (int h = 0; h < 2; h++) {
                double o[DIM] = {0}, l = 0;
                for (int j = windows[w] && p >= (int)windows[w] ? p - (int)windows[w] + 1 : 0; j <= p; j++) {
                    double s = 0;
                    for (int d = 0; d < DIM; d++)
                        s += (double)in(&a.c, a.q)[(p * 2 + h) * DIM + d] * in(&a.c, a.k)[j * DIM + d];
                    l += exp(s);
                    for (int d = 0; d < DIM; d++) o[d] += exp(s) * in(&a.c, a.v)[j * DIM + d];
                }
                for (int d = 0; d < DIM; d++) o[d] /= l;
                near(out(&a.c, a.y) + (p * 2 + h) * DIM, o, DIM, 2e-5);
            }
        cf_program_free(&a.c);
    }
}
END_TEST

/* Scores of 1e5 are no trouble, and a NaN in a key spoils exactly the tokens that see it. */
START_TEST(large_scores_and_nan)
{
    struct attention a;
    attention(&a, 3, 1, 1, 2, KOPI_DTYPE_F32);
    SET(in(&a.c, a.q), 1000, 0, 1000, 0, 1000, 0);
    SET(in(&a.c, a.k), 100, 0, 100, 0, NAN, 0);
    SET(in(&a.c, a.v), 1, 2, 3, 4, 5, 6);
    attend(&a, _i);
    NEAR(out(&a.c, a.y), 1e-6, 1, 2, 2, 3);
    ck_assert(isnan(out(&a.c, a.y)[4]) && isnan(out(&a.c, a.y)[5]));
    cf_program_free(&a.c);
}
END_TEST

/* ---- element by element ------------------------------------------------------------------------------------------ */

START_TEST(activations)
{
    static const double silu[] = {1.46211715726, -0.53788284274, 0, 88},
                        gelu[] = {1.68238398122, -0.31761601878, 0, 88}, relu[] = {2, 0, 0, 88};
    for (uint32_t act = KOPI_ACT_SILU; act <= KOPI_ACT_RELU; act++) {
        struct cf_program c;
        const kopi_glu_params params = {act, 0};
        tokens(&c, 1);
        int32_t g = cf_input(&c, KOPI_DTYPE_F32, 5, 1, KOPI_DIM_TOK),
                u = cf_input(&c, KOPI_DTYPE_F32, 5, 1, KOPI_DIM_TOK);
        cf_make_output(&c, g);
        SET(in(&c, g), 1, -1, 0, 88, NAN);
        SET(in(&c, u), 2, 2, 2, 1, 1);
        cf_op(&c, KOPI_OP_GLU, LIST(g, u), LIST(g), &params, sizeof params);
        drive(&c, _i);
        near(out(&c, g), act == KOPI_ACT_SILU ? silu : act == KOPI_ACT_RELU ? relu : gelu, 4, 1e-6);
        ck_assert(isnan(out(&c, g)[4]));
        cf_program_free(&c);
    }
}
END_TEST

START_TEST(sums_scales_caps)
{
    static const kopi_scale_params half = {0.5f, 0}, cap = {30.0f, 0};
    struct cf_program c;
    tokens(&c, 1);
    int32_t a = cf_input(&c, KOPI_DTYPE_F32, 3, 1, KOPI_DIM_TOK), b = cf_input(&c, KOPI_DTYPE_F32, 3, 1, KOPI_DIM_TOK);
    int32_t sum = cf_output(&c, KOPI_DTYPE_F32, 3, 1, KOPI_DIM_TOK),
            scaled = cf_output(&c, KOPI_DTYPE_F32, 3, 1, KOPI_DIM_TOK);
    int32_t capped = cf_output(&c, KOPI_DTYPE_F32, 3, 1, KOPI_DIM_TOK);
    SET(in(&c, a), 1, -2, 60);
    SET(in(&c, b), 0.25f, 2, 0);
    cf_op(&c, KOPI_OP_ADD, LIST(a, b), LIST(sum), NULL, 0);
    cf_op(&c, KOPI_OP_SCALE, LIST(sum), LIST(scaled), &half, sizeof half);
    cf_op(&c, KOPI_OP_SOFTCAP, LIST(scaled), LIST(capped), &cap, sizeof cap);
    drive(&c, _i);
    NEAR(out(&c, sum), 0, 1.25, 0, 60);
    NEAR(out(&c, scaled), 0, 0.625, 0, 30);
    NEAR(out(&c, capped), 1e-6, 0.624909639, 0, 22.847824679);
    cf_program_free(&c);
}
END_TEST

START_TEST(wanted_rows)
{
    struct cf_program c;
    tokens(&c, 4);
    c.wanted[0] = c.wanted[2] = false;
    c.n_out = 2;
    int32_t x = cf_input(&c, KOPI_DTYPE_F32, 2, 1, KOPI_DIM_TOK), y = cf_output(&c, KOPI_DTYPE_F32, 2, 1, KOPI_DIM_OUT);
    SET(in(&c, x), 1, 2, 3, 4, 5, 6, 7, 8);
    cf_op(&c, KOPI_OP_GATHER, LIST(x), LIST(y), NULL, 0);
    drive(&c, _i);
    NEAR(out(&c, y), 0, 3, 4, 7, 8);
    cf_program_free(&c);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu");
    TCase *t = tcase_create("values");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, blocks_dequantize, 0, 2 * N_BLOCKS);
    tcase_add_loop_test(t, blocks_multiply, 0, 2 * N_BLOCKS);
    tcase_add_loop_test(t, float_linear, 0, 2);
    tcase_add_loop_test(t, quantize_rounds_to_even, 0, 2);
    tcase_add_loop_test(t, quantize_sums_sixteens, 0, 2);
    tcase_add_loop_test(t, norms, 0, 2);
    tcase_add_loop_test(t, rope_pairings, 0, 2);
    tcase_add_loop_test(t, rope_is_relative, 0, 2);
    tcase_add_loop_test(t, attention_by_hand, 0, 2);
    tcase_add_loop_test(t, heads_share_kv_heads, 0, 2);
    tcase_add_loop_test(t, attention_over_chunks, 0, 2);
    tcase_add_loop_test(t, large_scores_and_nan, 0, 2);
    tcase_add_loop_test(t, activations, 0, 2);
    tcase_add_loop_test(t, sums_scales_caps, 0, 2);
    tcase_add_loop_test(t, wanted_rows, 0, 2);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
