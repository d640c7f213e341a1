/* Unit tests of core/model: hyper-parameters, RoPE tables, the program and its memory plan. */
#include "base/dmath.h"
#include "base/error.h"
#include "base/mem.h"
#include "model/build.h"
#include "model/rope.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char path_buf[512];

/* ---- own arithmetic ---------------------------------------------------------------------------------------------- */

START_TEST(double_functions)
{
    for (double x = 1e-9; x < 1e9; x *= 1.37) ck_assert_double_le(fabs(kopi__ln(x) - log(x)), 4e-15);
    for (double x = -40; x < 40; x += 0.137) ck_assert_double_le(fabs(kopi__exp(x) / exp(x) - 1), 4e-15);
    for (double x = 0; x < 2e5; x += 17.31) {
        double s, c;
        kopi__sincos(x, &s, &c);
        ck_assert_double_le(fabs(s - sin(x)), 1e-15);
        ck_assert_double_le(fabs(c - cos(x)), 1e-15);
    }
}
END_TEST

/* ---- RoPE frequencies (failures.md, row 26) ---------------------------------------------------------------------- */

static void llama3(double factor, uint32_t head_dim, uint32_t first, const double *between, uint32_t n)
{
    const struct kopi_rope scaled = {.base = 5e5,
                                     .llama3 = true,
                                     .factor = factor,
                                     .orig_context = 8192,
                                     .low_freq_factor = 1,
                                     .high_freq_factor = 4},
                           plain = {.base = 5e5};
    double f[64], p[64], magnitude;
    kopi__rope_frequencies(&scaled, head_dim, f, &magnitude);
    kopi__rope_frequencies(&plain, head_dim, p, &magnitude);
    for (uint32_t i = 0; i < head_dim / 2; i++) {
        double want = i < first ? 1 : i < first + n ? between[i - first] : factor;
        ck_assert_msg(fabs(p[i] / f[i] - want) < 1e-4, "pair %u: divisor %g, expected %g", i, p[i] / f[i], want);
    }
}

START_TEST(llama3_divisors)
{
    llama3(8, 128, 29, (const double[]){1.2075, 1.5534, 2.0263, 2.6945, 3.6843, 5.2573}, 6);
    llama3(32, 64, 15, (const double[]){1.6513, 3.2923, 9.6667}, 3);
}
END_TEST

START_TEST(linear_and_yarn)
{
    double p[32], l[32], y[32], m;
    const struct kopi_rope plain = {.base = 1e4}, linear = {.base = 1e4, .scaling = KOPI_SCALING_LINEAR, .factor = 4};
    const struct kopi_rope yarn = {.base = 1e4,
                                   .scaling = KOPI_SCALING_YARN,
                                   .factor = 4,
                                   .orig_context = 2048,
                                   .beta_fast = 32,
                                   .beta_slow = 1,
                                   .ext_factor = 1,
                                   .attn_factor = 1};
    kopi__rope_frequencies(&plain, 64, p, &m);
    ck_assert_double_eq(m, 1);
    for (int i = 0; i < 32; i++) ck_assert_double_le(fabs(p[i] / pow(1e4, -2.0 * i / 64) - 1), 1e-14);
    kopi__rope_frequencies(&linear, 64, l, &m);
    for (int i = 0; i < 32; i++) ck_assert_double_eq(l[i], p[i] / 4);
    kopi__rope_frequencies(&yarn, 64, y, &m);
    ck_assert_double_le(fabs(m - (1 + 0.1 * log(4))), 1e-14);
    /* correction range: floor(8.06) = 8 to ceil(20.10) = 21 */
    ck_assert_double_eq(y[8], p[8]);
    ck_assert_double_le(fabs(y[21] / (p[21] / 4) - 1), 1e-14);
    double keep = 1 - (14.0 - 8) / (21 - 8);
    ck_assert_double_le(fabs(y[14] - (p[14] / 4 * (1 - keep) + p[14] * keep)), 1e-15);
}
END_TEST

START_TEST(rope_table)
{
    const struct kopi_rope r = {.base = 1e4};
    float *t = kopi__rope_table(&r, 4, 3);
    ck_assert_ptr_nonnull(t);
    for (int p = 0; p < 3; p++)
        for (int i = 0; i < 2; i++) {
            double angle = p * pow(1e4, -i / 2.0);
            ck_assert_float_eq(t[(p * 2 + i) * 2], (float)cos(angle));
            ck_assert_float_eq(t[(p * 2 + i) * 2 + 1], (float)sin(angle));
        }
    kopi__free(t);
    ck_assert_ptr_null(kopi__rope_table(&r, 1u << 16, UINT32_MAX));
}
END_TEST

/* ---- hyper-parameters (row 13): each bad value is refused naming the key ----------------------------------------- */

struct hp { const char *key; uint32_t type; uint64_t bits; const char *says; };
enum { DROP = 99 };

static void base_model(struct tiny *t, const struct hp *change)
{
    static const struct { const char *key; uint32_t v;
    } ints[] = {{"llama.block_count", 1},          {"llama.context_length", 64},
                {"llama.embedding_length", 32},    {"llama.feed_forward_length", 32},
                {"llama.attention.head_count", 4}, {"llama.attention.head_count_kv", 2},
                {"llama.rope.dimension_count", 8}};
    tiny_str(t, "general.architecture", "llama");
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        if (!change || strcmp(change->key, ints[i].key)) tiny_u32(t, ints[i].key, ints[i].v);
    if (!change || strcmp(change->key, "llama.attention.layer_norm_rms_epsilon"))
        tiny_f32(t, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    if (change && change->type != DROP) {
        static const uint32_t size[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
        if (change->type == KOPI_GGUF_STRING) tiny_str(t, change->key, (const char *)(uintptr_t)change->bits);
        else tiny_raw(t, change->key, change->type, &change->bits, size[change->type]);
    }
}

static void add_tensors(struct tiny *t, const char *rename, const char *to)
{
    static const struct { const char *name; int64_t n, rows;
    } all[] = {
        {"token_embd.weight", 32, 16},    {"output_norm.weight", 32, 0},        {"blk.0.attn_norm.weight", 32, 0},
        {"blk.0.ffn_norm.weight", 32, 0}, {"blk.0.attn_q.weight", 32, 32},      {"blk.0.attn_k.weight", 32, 16},
        {"blk.0.attn_v.weight", 32, 16},  {"blk.0.attn_output.weight", 32, 32}, {"blk.0.ffn_gate.weight", 32, 32},
        {"blk.0.ffn_up.weight", 32, 32},  {"blk.0.ffn_down.weight", 32, 32}};
    static float zeros[32 * 32];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        tiny_matrix(t, rename && !strcmp(rename, all[i].name) ? to : all[i].name, KOPI_DTYPE_F32, all[i].n, all[i].rows,
                    zeros);
}

static kopi_status read_model(struct tiny *t, struct kopi_decoder *d, struct kopi__program **p, kopi_error *e)
{
    struct kopi_gguf *g;
    const char *path = tiny_path(path_buf, "m.gguf");
    tiny_write(t, path);
    tiny_free(t);
    kopi_status s = kopi__gguf_open(path, 0, NULL, 0, &g, e);
    const struct kopi_build b = {
        .n_ctx = 64, .max_tok = 8, .max_out = 8, .max_seq = 1, .kv_k = KOPI_DTYPE_F16, .kv_v = KOPI_DTYPE_F16};
    if (s == KOPI_OK) s = kopi__decoder_read(g, d, e);
    if (s == KOPI_OK && p) s = kopi__build(g, d, &b, p, e);
    kopi__gguf_close(g);
    tiny_remove(path);
    return s;
}

START_TEST(good_hyperparameters)
{
    struct tiny *t = tiny_new();
    struct kopi_decoder d;
    struct kopi__program *p;
    kopi_error e = {0};
    base_model(t, NULL);
    add_tensors(t, NULL, NULL);
    ck_assert_msg(read_model(t, &d, &p, &e) == KOPI_OK, "%s", e.text);
    ck_assert_uint_eq(d.head_dim_k, 8);
    ck_assert_uint_eq(d.n_vocab, 16);
    ck_assert_float_eq(d.attn_scale, 1 / sqrtf(8));
    ck_assert_uint_eq(d.rope_pairing, KOPI_ROPE_INTERLEAVED);
    kopi__program_free(p);
}
END_TEST

START_TEST(bad_hyperparameters)
{
    static const struct hp bad[] = {
        {"llama.block_count", KOPI_GGUF_U32, 0, "llama.block_count is 0"},
        {"llama.block_count", KOPI_GGUF_U32, 1u << 31, "llama.block_count is 2147483648"},
        {"llama.block_count", KOPI_GGUF_STRING, (uintptr_t) "2", "llama.block_count is a "},
        {"llama.block_count", DROP, 0, "llama.block_count is missing"},
        {"llama.attention.head_count", KOPI_GGUF_U32, 0, "llama.attention.head_count is 0"},
        {"llama.attention.head_count", KOPI_GGUF_U32, 5, "attention.head_count 5"},
        {"llama.attention.head_count", KOPI_GGUF_I32, 0xffffffffu, "llama.attention.head_count is a "},
        {"llama.attention.head_count_kv", KOPI_GGUF_U32, 0, "llama.attention.head_count_kv is 0"},
        {"llama.attention.head_count_kv", KOPI_GGUF_U32, 3, "llama.attention.head_count_kv is 3"},
        {"llama.rope.dimension_count", KOPI_GGUF_U32, 7, "llama.rope.dimension_count is 7"},
        {"llama.rope.dimension_count", KOPI_GGUF_U32, 10, "llama.rope.dimension_count is 10"},
        {"llama.context_length", KOPI_GGUF_U32, 0, "llama.context_length is 0"},
        {"llama.context_length", KOPI_GGUF_U64, 1ull << 40, "llama.context_length is 1099511627776"},
        {"llama.embedding_length", KOPI_GGUF_U32, 0, "llama.embedding_length is 0"},
        {"llama.attention.layer_norm_rms_epsilon", KOPI_GGUF_F32, 0x7fc00000u,
         "llama.attention.layer_norm_rms_epsilon is nan"},
        {"llama.attention.layer_norm_rms_epsilon", DROP, 0, "llama.attention.layer_norm_rms_epsilon is missing"},
        {"llama.rope.scaling.type", KOPI_GGUF_STRING, (uintptr_t) "dynamic", "llama.rope.scaling.type is \"dynamic\""},
        {"llama.rope.scaling.type", KOPI_GGUF_STRING, (uintptr_t) "linear", "llama.rope.scaling.factor"},
        {"llama.rope.freq_base", KOPI_GGUF_F32, 0, "llama.rope.freq_base is 0"},
        {"llama.rope.scale_linear", KOPI_GGUF_F32, 0x2edbe6ffu, "pair 0 by 9999999866.485682 radians"},
        {"llama.expert_count", KOPI_GGUF_U32, 8, "llama.expert_count"},
        {"llama.vocab_size", KOPI_GGUF_U32, 17, "llama.vocab_size is 17"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tiny *t = tiny_new();
        struct kopi_decoder d;
        kopi_error e = {0};
        base_model(t, &bad[i]);
        add_tensors(t, NULL, NULL);
        ck_assert_int_eq(read_model(t, &d, NULL, &e), KOPI_E_MODEL);
        ck_assert_msg(strstr(e.text, bad[i].says), "case %zu: \"%s\" lacks \"%s\"", i, e.text, bad[i].says);
    }
}
END_TEST

START_TEST(unknown_architecture)
{
    struct tiny *t = tiny_new();
    struct kopi_decoder d;
    kopi_error e = {0};
    tiny_str(t, "general.architecture", "mamba");
    add_tensors(t, NULL, NULL);
    ck_assert_int_eq(read_model(t, &d, NULL, &e), KOPI_E_MODEL);
    ck_assert_msg(strstr(e.text, "\"mamba\", supported are llama, qwen2, gemma3"), "%s", e.text);
}
END_TEST

/* ---- tensors and the program ------------------------------------------------------------------------------------- */

/* Row 28: explicit head sizes make q and o non-square; without them the shape is refused with both numbers. */
START_TEST(explicit_head_size)
{
    for (int given = 0; given < 2; given++) {
        struct tiny *t = tiny_new();
        struct kopi_decoder d;
        struct kopi__program *p = NULL;
        kopi_error e = {0};
        static float zeros[64 * 64];
        base_model(t, &(struct hp){"llama.rope.dimension_count", DROP, 0, ""});
        if (given) tiny_u32(t, "llama.attention.key_length", 16);
        add_tensors(t, "blk.0.attn_q.weight", "unused.0");
        tiny_matrix(t, "blk.0.attn_q.weight", KOPI_DTYPE_F32, 32, 64, zeros);
        kopi_status s = read_model(t, &d, &p, &e);
        ck_assert_int_eq(s, KOPI_E_MODEL);
        ck_assert_msg(given ? strstr(e.text, "blk.0.attn_k.weight is [32, 16], expected [32, 32]") != NULL
                            : strstr(e.text, "blk.0.attn_q.weight is [32, 64], expected [32, 32]") != NULL,
                      "%s", e.text);
    }
}
END_TEST

START_TEST(missing_tensor)
{
    struct tiny *t = tiny_new();
    struct kopi_decoder d;
    struct kopi__program *p;
    kopi_error e = {0};
    base_model(t, NULL);
    add_tensors(t, "blk.0.ffn_up.weight", "blk.0.ffn_upp.weight");
    ck_assert_int_eq(read_model(t, &d, &p, &e), KOPI_E_MODEL);
    ck_assert_msg(strstr(e.text, "tensor blk.0.ffn_up.weight is missing"), "%s", e.text);
}
END_TEST

/* No operation may run before one that it depends on, and activations that are alive at the same time may not overlap.
 */
static void check_plan(const struct kopi__program *b)
{
    const kopi_program *p = &b->p;
    for (uint32_t i = 1; i < p->n_ops; i++) ck_assert_uint_ge(b->ops[i].level, b->ops[i - 1].level);
    for (uint32_t x = 0; x < p->n_tensors; x++)
        for (uint32_t y = x + 1; y < p->n_tensors; y++) {
            const kopi_tensor *t[2] = {&b->tensors[x], &b->tensors[y]};
            uint32_t first[2] = {UINT32_MAX, UINT32_MAX}, last[2] = {0, 0};
            uint64_t size[2];
            if (t[0]->kind != KOPI_KIND_ACT || t[1]->kind != KOPI_KIND_ACT) continue;
            for (int k = 0; k < 2; k++) {
                size[k] = (uint64_t)t[k]->nb[t[k]->n_dims - 1] * (uint64_t)t[k]->dim[t[k]->n_dims - 1].n;
                ck_assert_uint_le(t[k]->off + size[k], p->act_bytes);
                for (uint32_t i = 0; i < p->n_ops; i++)
                    for (uint32_t o = 0; o < b->ops[i].n_in + b->ops[i].n_out; o++) {
                        int32_t use = o < b->ops[i].n_in ? b->ops[i].in[o] : b->ops[i].out[o - b->ops[i].n_in];
                        if (use != (int32_t)(k ? y : x)) continue;
                        if (b->ops[i].level < first[k]) first[k] = b->ops[i].level;
                        if (b->ops[i].level > last[k]) last[k] = b->ops[i].level;
                    }
            }
            bool alive_together = first[0] <= last[1] && first[1] <= last[0];
            bool overlap = t[0]->off < t[1]->off + size[1] && t[1]->off < t[0]->off + size[0];
            ck_assert_msg(!(alive_together && overlap), "%s and %s share memory", t[0]->name, t[1]->name);
        }
}

START_TEST(program_plan)
{
    struct tiny *t = tiny_new();
    struct kopi_decoder d;
    struct kopi__program *p;
    kopi_error e = {0};
    base_model(t, NULL);
    add_tensors(t, NULL, NULL);
    ck_assert_msg(read_model(t, &d, &p, &e) == KOPI_OK, "%s", e.text);
    check_plan(p);
    /* norm; q, k, v; rope q, k; kv write; attention ... : q, k and v are of one level */
    uint32_t level[3], n = 0;
    for (uint32_t i = 0; i < p->p.n_ops && n < 3; i++)
        if (p->ops[i].op == KOPI_OP_LINEAR) level[n++] = p->ops[i].level;
    ck_assert(n == 3 && level[0] == level[1] && level[1] == level[2]);
    ck_assert_uint_eq(p->p.n_groups, 1);
    ck_assert_uint_eq(p->groups[0].page_bytes, 64 * 2 * (16 + 16));
    kopi__program_free(p);
}
END_TEST

/* Every allocation fails in turn: an error each time, and nothing leaks (the sanitizer build sees it). */
START_TEST(allocation_failures)
{
    kopi_error e;
    struct kopi_gguf *g;
    struct kopi_decoder d;
    struct tiny *t = tiny_new();
    base_model(t, NULL);
    add_tensors(t, NULL, NULL);
    const char *path = tiny_path(path_buf, "m.gguf");
    tiny_write(t, path);
    tiny_free(t);
    ck_assert_int_eq(kopi__gguf_open(path, 0, NULL, 0, &g, &e), KOPI_OK);
    ck_assert_int_eq(kopi__decoder_read(g, &d, &e), KOPI_OK);
    const struct kopi_build b = {
        .n_ctx = 64, .max_tok = 8, .max_out = 8, .max_seq = 1, .kv_k = KOPI_DTYPE_F32, .kv_v = KOPI_DTYPE_F32};
    kopi_status s = KOPI_E_NOMEM;
    for (uint64_t n = 1; s != KOPI_OK; n++) {
        struct kopi__program *p = NULL;
        kopi__mem_fail_at(n);
        s = kopi__build(g, &d, &b, &p, &e);
        kopi__mem_fail_at(0);
        if (s != KOPI_OK) ck_assert_int_eq(s, KOPI_E_NOMEM);
        else kopi__program_free(p);
        ck_assert_uint_lt(n, 1000);
    }
    kopi__gguf_close(g);
    tiny_remove(path);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("model");
    tcase_add_test(t, double_functions);
    tcase_add_test(t, llama3_divisors);
    tcase_add_test(t, linear_and_yarn);
    tcase_add_test(t, rope_table);
    tcase_add_test(t, good_hyperparameters);
    tcase_add_test(t, bad_hyperparameters);
    tcase_add_test(t, unknown_architecture);
    tcase_add_test(t, explicit_head_size);
    tcase_add_test(t, missing_tensor);
    tcase_add_test(t, program_plan);
    tcase_add_test(t, allocation_failures);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("model");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
