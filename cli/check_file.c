#include "check_file.h"

#include "conformance/tinygguf.h"
#include "conformance/values.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The shape of all of them: grouped heads whose size is not n_embd / n_heads. */
enum { EMBD = 64, MIXED_EMBD = 256, FF = 256, HEADS = 4, KV_HEADS = 2, HEAD = 24 };

struct writer {
    struct tiny *t;
    const struct check_model *m;
    uint64_t state;
    int64_t embd;
    uint32_t n_mixed;
};

static void key(const struct writer *w, const char *name, uint32_t v)
{
    char full[96];
    snprintf(full, sizeof full, "%s.%s", w->m->arch, name);
    tiny_u32(w->t, full, v);
}

static void keys(const struct writer *w)
{
    char name[96];
    tiny_str(w->t, "general.architecture", w->m->arch);
    key(w, "vocab_size", CHECK_VOCAB);
    key(w, "context_length", CHECK_CONTEXT);
    key(w, "embedding_length", (uint32_t)w->embd);
    key(w, "feed_forward_length", FF);
    key(w, "block_count", w->m->n_layers);
    key(w, "attention.head_count", HEADS);
    key(w, "attention.head_count_kv", KV_HEADS);
    key(w, "attention.key_length", HEAD);
    key(w, "attention.value_length", HEAD);
    key(w, "rope.dimension_count", HEAD);
    if (w->m->window) {
        key(w, "attention.sliding_window", w->m->window);
        key(w, "attention.sliding_window_pattern", 2);
    }
    snprintf(name, sizeof name, "%s.attention.layer_norm_rms_epsilon", w->m->arch);
    tiny_f32(w->t, name, 1e-5f);
}

/* The block types, one after the other. */
static void mixed(struct writer *w, const char *name, int64_t n, int64_t rows)
{
    static const uint32_t types[] = {KOPI_DTYPE_Q4_0, KOPI_DTYPE_Q4_1, KOPI_DTYPE_Q5_0,   KOPI_DTYPE_Q5_1,
                                     KOPI_DTYPE_Q4_K, KOPI_DTYPE_Q5_K, KOPI_DTYPE_IQ4_NL, KOPI_DTYPE_Q6_K};
    const struct cf_weight_type *t = cf_weight_type(types[w->n_mixed++ % (sizeof types / sizeof *types)]);
    struct cf_random r = {w->state += 77};
    size_t blocks = (size_t)(n / t->len * rows);
    void *data = malloc(blocks * t->bytes);
    if (!data) abort(); /* as the writer does */
    cf_blocks(&r, CF_MILD, t, data, blocks);
    tiny_tensor(w->t, name, t->dtype, (const int64_t[]){n, rows}, 2, data, blocks * t->bytes);
    free(data);
}

/* Values around 0 for a matrix, around `middle` for a vector. */
static void values(struct writer *w, const char *name, uint32_t dtype, int64_t n, int64_t rows, float middle)
{
    size_t count = (size_t)(n * (rows ? rows : 1));
    float *v = malloc(sizeof *v * count), scale = rows ? 1.7f / sqrtf((float)n) : 0.2f;
    if (!v) abort();
    for (size_t i = 0; i < count; i++) v[i] = tiny_random(&w->state) * scale + middle;
    tiny_matrix(w->t, name, dtype, n, rows, v);
    free(v);
}

static void matrix(struct writer *w, const char *name, int64_t n, int64_t rows)
{
    bool feed_forward = strstr(name, "ffn_");
    uint32_t dtype = w->m->dtype == UINT32_MAX ? (uint32_t)KOPI_DTYPE_Q8_0 : w->m->dtype;
    if (feed_forward && w->m->dtype == UINT32_MAX) mixed(w, name, n, rows);
    else values(w, name, dtype, n, rows, 0);
}

static void layer(struct writer *w, uint32_t index)
{
    enum { NONE, E, Q, K, F, H };
    const int64_t size[] = {[NONE] = 0, [E] = w->embd, [Q] = HEADS * HEAD, [K] = KV_HEADS * HEAD, [F] = FF, [H] = HEAD};
    const bool gemma = !strcmp(w->m->arch, "gemma3"), qwen = !strcmp(w->m->arch, "qwen2");
    const struct {
        const char *name;
        int n, rows;
        bool there;
    } parts[] = {
        {"attn_norm.weight", E, NONE, true},
        {"attn_q.weight", E, Q, true},
        {"attn_k.weight", E, K, true},
        {"attn_v.weight", E, K, true},
        {"attn_q.bias", Q, NONE, qwen},
        {"attn_k.bias", K, NONE, qwen},
        {"attn_v.bias", K, NONE, qwen},
        {"attn_q_norm.weight", H, NONE, gemma},
        {"attn_k_norm.weight", H, NONE, gemma},
        {"attn_output.weight", Q, E, true},
        {"post_attention_norm.weight", E, NONE, gemma},
        {"ffn_norm.weight", E, NONE, true},
        {"ffn_gate.weight", E, F, true},
        {"ffn_up.weight", E, F, true},
        {"ffn_down.weight", F, E, true},
        {"post_ffw_norm.weight", E, NONE, gemma},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char name[64];
        if (!parts[i].there) continue;
        snprintf(name, sizeof name, "blk.%u.%s", index, parts[i].name);
        if (parts[i].rows) matrix(w, name, size[parts[i].n], size[parts[i].rows]);
        else values(w, name, KOPI_DTYPE_F32, size[parts[i].n], 0, strstr(name, "bias") ? 0.0f : 1.0f);
    }
}

const char *check_model_file(const struct check_model *m, uint64_t seed, char *buf)
{
    struct writer w = {.t = tiny_new(), .m = m, .state = seed, .embd = m->dtype == UINT32_MAX ? MIXED_EMBD : EMBD};
    int fd = memfd_create("model", MFD_CLOEXEC);
    if (fd < 0) abort();
    snprintf(buf, 64, "/proc/self/fd/%d", fd);
    keys(&w);
    matrix(&w, "token_embd.weight", w.embd, CHECK_VOCAB);
    values(&w, "output_norm.weight", KOPI_DTYPE_F32, w.embd, 0, 1);
    if (strcmp(m->arch, "gemma3")) matrix(&w, "output.weight", w.embd, CHECK_VOCAB); /* Gemma's is the embedding */
    for (uint32_t i = 0; i < m->n_layers; i++) layer(&w, i);
    tiny_write(w.t, buf);
    tiny_free(w.t);
    return buf;
}
