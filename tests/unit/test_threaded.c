/* The fast CPU backend against the reference: operation by operation (conformance), and whole models through its plans,
 * at every level of the instruction set, with several teams and in many pieces. Equal means equal bits. */
#include "base/mem.h"
#include "conformance/values.h"
#include "decoder_rig.h"
#include "tests/support/plugin.h"
#include "tests/support/tinygguf.h"

#include <kopi/kopi.h>
#include <kopi/math.h>
#include <kopi/op.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- levels ------------------------------------------------------------------------------------------------------ */

struct level { const char *isa, *option, *suffix; };
static const struct level levels[] = {
    {"c", "isa=c", "_c"}, {"avx2", "isa=avx2", "_avx2"}, {"avx512vnni", "isa=avx512vnni", "_avx512vnni"}};
enum { N_LEVELS = sizeof levels / sizeof *levels };

static bool runs_here(int level)
{
#if defined(__x86_64__)
    if (level == 1) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (level == 2) return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
#endif
    return level == 0;
}

/* ---- operation by operation -------------------------------------------------------------------------------------- */

static void line(void *ctx, enum cf_verdict v, const char *name, const char *detail)
{
    int *shown = ctx;
    show_failures(ctx, v, name, detail);
    if (v == CF_SKIP && strncmp(name, "quantize", 8) != 0 && (*shown)++ < 10)
        fprintf(stderr, "skipped %s: %s\n", name, detail);
}

/* QUANTIZE alone is not claimed: its result has a private layout. */
START_TEST(operations_agree)
{
    if (!runs_here(_i)) return;
    int shown = 0;
    const char *const options[] = {levels[_i].option, NULL};
    const struct cf_side reference = {plugin_of(PLUGIN_CPU), NULL, NULL},
                         subject = {plugin_of(PLUGIN_THREADED), options, levels[_i].suffix};
    const struct cf_options o = {.seed = 5, .report = {.line = line, .ctx = &shown}};
    struct cf_counts n;
    ck_assert_int_eq(cf_compare(&reference, &subject, &o, &n), KOPI_OK);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_int_eq(shown, 0);
    ck_assert_uint_gt(n.passed, 250);
}
END_TEST

START_TEST(life)
{
    int shown = 0;
    const struct cf_side subject = {plugin_of(PLUGIN_THREADED), NULL, NULL};
    const struct cf_report report = {.line = line, .ctx = &shown};
    struct cf_counts n = {0};
    cf_life(&subject, &report, &n);
    ck_assert_uint_eq(n.failed, 0);
    ck_assert_uint_gt(n.passed, 5);
}
END_TEST

/* ---- models ------------------------------------------------------------------------------------------------------ */

/* A decoder of random weights. types: q, k, v, output of attention; gate, up, down; embedding, output (0 and tied:
 * none). */
struct model {
    const char *arch;
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim, n_vocab, window;
    bool bias, norms, tied;
    uint32_t types[9];
};
#define T(name) KOPI_DTYPE_##name
static const struct model models[] = {
    {"llama", 3, 256, 512, 4, 2, 64, 101, 0, false, false, true,
     {T(Q4_K), T(Q6_K), T(Q5_0), T(Q8_0), T(Q4_1), T(Q5_1), T(Q3_K), T(Q6_K), 0}},
    {"qwen2", 2, 224, 352, 7, 1, 32, 70, 0, true, false, false,
     {T(Q4_1), T(Q4_0), T(F16), T(Q5_0), T(Q8_0), T(Q8_0), T(IQ4_NL), T(Q4_0), T(Q8_0)}},
    {"gemma3", 7, 96, 160, 3, 1, 24, 90, 40, false, true, true,
     {T(F32), T(F16), T(BF16), T(F32), T(Q4_0), T(Q4_0), T(F16), T(F16), 0}},
    {"llama", 1, 64, 40, 5, 5, 20, 64, 0, false, false, false,
     {T(F32), T(F32), T(F32), T(F32), T(Q5_1), T(Q5_0), T(F32), T(Q8_0), T(F32)}},
};
enum { N_MODELS = sizeof models / sizeof *models };

static void put(struct tiny *f, struct cf_random *r, const char *name, uint32_t dtype, int64_t k, int64_t rows)
{
    const struct cf_weight_type *t = cf_weight_type(dtype);
    size_t n = (size_t)(k / t->len * (rows ? rows : 1));
    char *data = malloc(n * t->bytes);
    cf_blocks(r, CF_MILD, t, data, n);
    const int64_t ne[] = {k, rows};
    tiny_tensor(f, name, dtype, ne, rows ? 2 : 1, data, n * t->bytes);
    free(data);
}

static void put_layer(struct tiny *f, struct cf_random *r, const struct model *m, uint32_t layer)
{
    int64_t q = (int64_t)m->n_heads * m->head_dim, kv = (int64_t)m->n_kv_heads * m->head_dim;
    const struct { const char *name; uint32_t dtype; int64_t k, rows; bool there;
    } parts[] = {{"attn_norm.weight", T(F32), m->n_embd, 0, true},
                 {"attn_q.weight", m->types[0], m->n_embd, q, true},
                 {"attn_k.weight", m->types[1], m->n_embd, kv, true},
                 {"attn_v.weight", m->types[2], m->n_embd, kv, true},
                 {"attn_q.bias", T(F32), q, 0, m->bias},
                 {"attn_k.bias", T(F32), kv, 0, m->bias},
                 {"attn_v.bias", T(F32), kv, 0, m->bias},
                 {"attn_q_norm.weight", T(F32), m->head_dim, 0, m->norms},
                 {"attn_k_norm.weight", T(F32), m->head_dim, 0, m->norms},
                 {"attn_output.weight", m->types[3], q, m->n_embd, true},
                 {"post_attention_norm.weight", T(F32), m->n_embd, 0, m->norms},
                 {"ffn_norm.weight", T(F32), m->n_embd, 0, true},
                 {"ffn_gate.weight", m->types[4], m->n_embd, m->n_ff, true},
                 {"ffn_up.weight", m->types[5], m->n_embd, m->n_ff, true},
                 {"ffn_down.weight", m->types[6], m->n_ff, m->n_embd, true},
                 {"post_ffw_norm.weight", T(F32), m->n_embd, 0, m->norms}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%u.%s", layer, parts[i].name);
        if (parts[i].there) put(f, r, name, parts[i].dtype, parts[i].k, parts[i].rows);
    }
}

static const char *write_model(char *buf, const struct model *m)
{
    struct tiny *f = tiny_new();
    struct cf_random r = {99};
    const struct { const char *key; uint32_t value;
    } numbers[] = {{"block_count", m->n_layers},           {"embedding_length", m->n_embd},
                   {"feed_forward_length", m->n_ff},       {"context_length", 1024},
                   {"attention.head_count", m->n_heads},   {"attention.head_count_kv", m->n_kv_heads},
                   {"attention.key_length", m->head_dim},  {"attention.value_length", m->head_dim},
                   {"attention.sliding_window", m->window}};
    char key[96];
    tiny_str(f, "general.architecture", m->arch);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(key, sizeof key, "%s.%s", m->arch, numbers[i].key);
        if (numbers[i].value) tiny_u32(f, key, numbers[i].value);
    }
    snprintf(key, sizeof key, "%s.attention.layer_norm_rms_epsilon", m->arch);
    tiny_f32(f, key, 1e-5f);
    if (m->norms) {
        snprintf(key, sizeof key, "%s.final_logit_softcapping", m->arch);
        tiny_f32(f, key, 30.0f);
    }
    put(f, &r, "token_embd.weight", m->types[7], m->n_embd, m->n_vocab);
    put(f, &r, "output_norm.weight", T(F32), m->n_embd, 0);
    if (!m->tied) put(f, &r, "output.weight", m->types[8], m->n_embd, m->n_vocab);
    for (uint32_t i = 0; i < m->n_layers; i++) put_layer(f, &r, m, i);
    tiny_write(f, tiny_path(buf, "model.gguf"));
    tiny_free(f);
    return buf;
}

/* ---- whole models ------------------------------------------------------------------------------------------------ */

enum { N_TOK = 300, N_CTX = 384 };

/* Two sequences; a row of logits for each position. */
struct text {
    int32_t tokens[2][N_TOK];
    uint32_t n_vocab;
    float *logits[2];
};

static struct rig_config config(const char *model, const char *plugin_file, const char *isa, unsigned threads,
                                uint32_t kv_dtype)
{
    return (struct rig_config){model, plugin_file, isa, threads, N_CTX, N_TOK, 2, kv_dtype};
}

/* What the reference says. */
static void reference(struct text *t, const char *model, uint32_t kv_dtype)
{
    const struct rig_config c = config(model, PLUGIN_CPU, NULL, 2, kv_dtype);
    struct rig *r = rig_open(&c);
    struct cf_random random = {7};
    t->n_vocab = rig_n_vocab(r);
    rig_forget(r);
    for (uint32_t s = 0; s < 2; s++) {
        t->logits[s] = malloc((size_t)N_TOK * t->n_vocab * sizeof(float));
        for (int i = 0; i < N_TOK; i++) t->tokens[s][i] = (int32_t)cf_below(&random, t->n_vocab);
        const struct rig_part part = {s, N_TOK, t->tokens[s]};
        ck_assert_int_eq(rig_run(r, &part, 1, RIG_ALL, t->logits[s]), KOPI_OK);
    }
    rig_close(r);
}

static void same_rows(const struct text *t, uint32_t seq, uint32_t first, uint32_t n, const float *logits,
                      const char *what)
{
    const float *want = t->logits[seq] + (size_t)first * t->n_vocab;
    for (size_t i = 0; i < (size_t)n * t->n_vocab; i++)
        if (kopi_f32_bits(want[i]) != kopi_f32_bits(logits[i]))
            ck_abort_msg("%s: sequence %u position %zu logit %zu: %a, expected %a", what, seq, first + i / t->n_vocab,
                         i % t->n_vocab, (double)logits[i], (double)want[i]);
}

/* The first sequence in pieces of n tokens, all rows wanted or only each piece's last. */
static void in_pieces(struct rig *r, const struct text *t, uint32_t n, enum rig_want want, const char *what)
{
    float *logits = malloc((size_t)N_TOK * t->n_vocab * sizeof *logits);
    rig_forget(r);
    for (uint32_t at = 0, m; at < N_TOK; at += m) {
        m = N_TOK - at < n ? N_TOK - at : n;
        const struct rig_part part = {0, m, t->tokens[0] + at};
        ck_assert_int_eq(rig_run(r, &part, 1, want, logits), KOPI_OK);
        if (want == RIG_ALL) same_rows(t, 0, at, m, logits, what);
        if (want == RIG_LAST) same_rows(t, 0, at + m - 1, 1, logits, what);
    }
    free(logits);
}

/* Both sequences at once, in pieces of different lengths. */
static void side_by_side(struct rig *r, const struct text *t, uint32_t n0, uint32_t n1, const char *what)
{
    float *logits = malloc((size_t)N_TOK * t->n_vocab * sizeof *logits);
    rig_forget(r);
    for (uint32_t a = 0, b = 0; a + n0 <= N_TOK && b + n1 <= N_TOK; a += n0, b += n1) {
        const struct rig_part parts[] = {{1, n1, t->tokens[1] + b}, {0, n0, t->tokens[0] + a}};
        ck_assert_int_eq(rig_run(r, parts, 2, RIG_ALL, logits), KOPI_OK);
        same_rows(t, 1, b, n1, logits, what);
        same_rows(t, 0, a, n0, logits + (size_t)n1 * t->n_vocab, what);
    }
    free(logits);
}

static void whole_model(const struct model *m, const struct level *level, uint32_t kv_dtype)
{
    char buf[512], what[128];
    struct text t;
    const char *path = write_model(buf, m);
    reference(&t, path, kv_dtype);
    for (uint32_t threads = level == levels ? 3 : 1; threads <= 3; threads++) { /* plain C is slow */
        const struct rig_config c = config(path, PLUGIN_THREADED, level->isa, threads, kv_dtype);
        struct rig *r = rig_open(&c);
        snprintf(what, sizeof what, "%s %s %u threads", m->arch, level->isa, threads);
        ck_assert_str_eq(rig_code(r, KOPI_OP_ATTN) + strlen("attn"), level->suffix);
        in_pieces(r, &t, N_TOK, RIG_ALL, what);
        in_pieces(r, &t, N_TOK, RIG_LAST, what);
        in_pieces(r, &t, 130, RIG_LAST, what);
        in_pieces(r, &t, 37, RIG_ALL, what);
        in_pieces(r, &t, 5, RIG_ALL, what);
        in_pieces(r, &t, 1, RIG_LAST, what);
        side_by_side(r, &t, 1, 1, what);
        side_by_side(r, &t, 2, 17, what);
        side_by_side(r, &t, 150, 101, what);
        rig_close(r);
    }
    free(t.logits[0]);
    free(t.logits[1]);
    tiny_remove(path);
}

START_TEST(models_agree)
{
    int level = _i / N_MODELS;
    if (runs_here(level)) whole_model(&models[_i % N_MODELS], &levels[level], _i % 2 ? T(F32) : T(F16));
}
END_TEST

/* ---- pages, cancelling, memory ----------------------------------------------------------------------------------- */

/* The canonical pages are those of the reference, and a sequence goes on from pages that were put in. */
START_TEST(pages_go_in_and_out)
{
    char buf[512];
    struct text t;
    const char *path = write_model(buf, &models[2]);
    reference(&t, path, T(F16));
    const struct rig_config cpu = config(path, PLUGIN_CPU, NULL, 1, T(F16)),
                            fast = config(path, PLUGIN_THREADED, NULL, 2, T(F16));
    struct rig *a = rig_open(&cpu), *b = rig_open(&fast);
    rig_forget(a);
    rig_forget(b);
    enum { N_PAGES = 2, N = 64 * N_PAGES };
    const struct rig_part part = {0, N, t.tokens[0]}, next = {1, 3, t.tokens[0] + N};
    ck_assert_int_eq(rig_run(a, &part, 1, RIG_NONE, NULL), KOPI_OK);
    ck_assert_int_eq(rig_run(b, &part, 1, RIG_NONE, NULL), KOPI_OK);
    char *want = malloc(rig_page_bytes(a)), *have = malloc(rig_page_bytes(b));
    ck_assert_uint_eq(rig_page_bytes(a), rig_page_bytes(b));
    for (uint32_t i = 0; i < N_PAGES; i++) {
        rig_get_page(a, 0, i, want);
        rig_get_page(b, 0, i, have);
        ck_assert_mem_eq(want, have, rig_page_bytes(a));
        rig_set_page(b, 1, i, want);
    }
    float logits[3 * 128];
    rig_set_past(b, 1, N);
    ck_assert_int_eq(rig_run(b, &next, 1, RIG_ALL, logits), KOPI_OK);
    same_rows(&t, 0, N, 3, logits, "imported pages");
    free(want);
    free(have);
    rig_close(a);
    rig_close(b);
    free(t.logits[0]);
    free(t.logits[1]);
    tiny_remove(path);
}
END_TEST

START_TEST(cancelling)
{
    char buf[512];
    int32_t tokens[N_TOK] = {1, 2, 3};
    const char *path = write_model(buf, &models[0]);
    const struct rig_config c = config(path, PLUGIN_THREADED, NULL, 3, T(F16));
    struct rig *r = rig_open(&c);
    for (uint32_t n = 1; n <= N_TOK; n = n * 4 + 3) {
        const struct rig_part part = {0, n, tokens};
        rig_forget(r);
        rig_cancel(r, true);
        ck_assert_int_eq(rig_run(r, &part, 1, RIG_NONE, NULL), KOPI_E_CANCELLED);
        rig_cancel(r, false);
        ck_assert_int_eq(rig_run(r, &part, 1, RIG_NONE, NULL), KOPI_OK);
    }
    rig_close(r);
    tiny_remove(path);
}
END_TEST

/* Every allocation of a load fails once: KOPI_E_NOMEM, and nothing is left behind (the sanitizer builds look). */
START_TEST(memory_runs_out)
{
    char buf[512];
    const char *path = write_model(buf, &models[3]);
    const struct rig_config c = config(path, PLUGIN_THREADED, NULL, 2, T(F16));
    struct rig *r;
    uint64_t before = kopi__mem_count();
    ck_assert_int_eq(rig_try(&c, &r), KOPI_OK);
    rig_close(r);
    uint64_t n = kopi__mem_count() - before;
    ck_assert_uint_gt(n, 100);
    for (uint64_t i = 1; i <= n; i++) {
        kopi__mem_fail_at(i);
        int s = rig_try(&c, &r);
        kopi__mem_fail_at(0);
        rig_close(r);
        ck_assert_msg(s == KOPI_E_NOMEM || (s == KOPI_OK && i + 40 > n), "allocation %d of %d: status %d", (int)i,
                      (int)n, s);
    }
    tiny_remove(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("cpu-threaded");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, operations_agree, 0, N_LEVELS);
    tcase_add_test(t, life);
    tcase_add_loop_test(t, models_agree, 0, N_LEVELS * N_MODELS);
    tcase_add_test(t, pages_go_in_and_out);
    tcase_add_test(t, cancelling);
    tcase_add_test(t, memory_runs_out);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
