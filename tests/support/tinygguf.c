#include "tinygguf.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void (*tiny_extra)(struct tiny *t);

static void die(const char *what)
{
    perror(what);
    abort();
}

const char *tiny_path(char *buf, const char *name)
{
    const char *dir = getenv("TMPDIR");
    snprintf(buf, 512, "%s/kopi-test-XXXXXX", dir ? dir : "/tmp");
    if (!mkdtemp(buf)) die(buf);
    size_t n = strlen(buf);
    snprintf(buf + n, 512 - n, "/%s", name);
    return buf;
}

void tiny_remove(const char *path)
{
    char dir[512];
    snprintf(dir, sizeof dir, "%s", path);
    *strrchr(dir, '/') = 0;
    if (unlink(path) || rmdir(dir)) die(path);
}

/* The printable code point that byte-level BPE writes for a byte: itself where printable in Latin-1, else 256 + a
 * counter. */
static uint32_t byte_symbol(unsigned char c)
{
    uint32_t shift = 0;
    for (unsigned b = 0; b < 256; b++) {
        bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (b == c) return printable ? b : 256 + shift;
        shift += !printable;
    }
    return 0;
}

static char *byte_text(const struct tiny_piece *p)
{
    size_t n = p->len ? p->len : strlen(p->text), k = 0;
    char *s = malloc(2 * n + 1);
    if (!s) die("malloc");
    for (size_t i = 0; i < n; i++) {
        uint32_t c = p->type == 3 ? (unsigned char)p->text[i] : byte_symbol((unsigned char)p->text[i]);
        if (c >= 0x80) s[k++] = (char)(0xc0 | c >> 6);
        s[k++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3f) : c);
    }
    s[k] = 0;
    return s;
}

void tiny_vocab(struct tiny *t, const struct tiny_piece *pieces, uint32_t n, int32_t bos, int32_t eos)
{
    char **text = calloc(n, sizeof *text);
    int32_t *type = calloc(n, sizeof *type);
    if (!text || !type) die("calloc");
    for (uint32_t i = 0; i < n; i++) {
        char unused[32];
        snprintf(unused, sizeof unused, "<unused%u>", i);
        type[i] = pieces[i].text ? pieces[i].type ? pieces[i].type : 1 : 5;
        text[i] = pieces[i].text ? byte_text(&pieces[i]) : strdup(unused);
    }
    tiny_str(t, "tokenizer.ggml.model", "gpt2");
    tiny_str(t, "tokenizer.ggml.pre", "gpt-2");
    tiny_arr_str(t, "tokenizer.ggml.tokens", (const char *const *)text, n);
    tiny_arr_i32(t, "tokenizer.ggml.token_type", type, n);
    tiny_arr_str(t, "tokenizer.ggml.merges", NULL, 0);
    if (bos >= 0) tiny_u32(t, "tokenizer.ggml.bos_token_id", (uint32_t)bos);
    if (eos >= 0) tiny_u32(t, "tokenizer.ggml.eos_token_id", (uint32_t)eos);
    for (uint32_t i = 0; i < n; i++) free(text[i]);
    free(text);
    free(type);
}

static void finish_model(struct tiny *t, const char *path)
{
    if (tiny_extra) tiny_extra(t);
    tiny_write(t, path);
    tiny_free(t);
}

static void llama_keys(struct tiny *t, uint32_t n_vocab, uint32_t n_embd, uint32_t n_ff, uint32_t layers,
                       uint32_t heads, uint32_t kv_heads, uint32_t context)
{
    tiny_str(t, "general.architecture", "llama");
    tiny_u32(t, "llama.vocab_size", n_vocab);
    tiny_u32(t, "llama.context_length", context);
    tiny_u32(t, "llama.embedding_length", n_embd);
    tiny_u32(t, "llama.feed_forward_length", n_ff);
    tiny_u32(t, "llama.block_count", layers);
    tiny_u32(t, "llama.attention.head_count", heads);
    tiny_u32(t, "llama.attention.head_count_kv", kv_heads);
    tiny_u32(t, "llama.rope.dimension_count", n_embd / heads);
    tiny_f32(t, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
}

/* A matrix of one value, but `diagonal` at [j, (j + shift) mod n]. */
static void fill(struct tiny *t, const char *name, int64_t n, int64_t rows, float value, float diagonal, int64_t shift,
                 int32_t poison)
{
    float *v = malloc(sizeof *v * (size_t)(n * (rows ? rows : 1)));
    if (!v) die("malloc");
    for (int64_t i = 0; i < n * (rows ? rows : 1); i++) v[i] = value;
    if (diagonal != 0)
        for (int64_t j = 0; j < rows; j++) v[j * n + (j + n + shift) % n] = j == poison ? NAN : diagonal;
    tiny_matrix(t, name, KOPI_DTYPE_F32, n, rows, v);
    free(v);
}

void tiny_chain_model(const char *path, uint32_t n, const struct tiny_piece *pieces, int32_t eos, int32_t poison,
                      uint32_t context)
{
    struct tiny *t = tiny_new();
    llama_keys(t, n, n, 32, 1, 2, 1, context);
    if (pieces) tiny_vocab(t, pieces, n, -1, eos);
    fill(t, "token_embd.weight", n, n, 0, 1, 0, poison);
    fill(t, "output.weight", n, n, 0, 1, -1, -1);
    fill(t, "output_norm.weight", n, 0, 1, 0, 0, -1);
    fill(t, "blk.0.attn_norm.weight", n, 0, 1, 0, 0, -1);
    fill(t, "blk.0.ffn_norm.weight", n, 0, 1, 0, 0, -1);
    fill(t, "blk.0.attn_q.weight", n, n, 0.01f, 0, 0, -1);
    fill(t, "blk.0.attn_k.weight", n, n / 2, 0.01f, 0, 0, -1);
    fill(t, "blk.0.attn_v.weight", n, n / 2, 0.01f, 0, 0, -1);
    fill(t, "blk.0.attn_output.weight", n, n, 0, 0, 0, -1);
    fill(t, "blk.0.ffn_gate.weight", n, 32, 0.01f, 0, 0, -1);
    fill(t, "blk.0.ffn_up.weight", n, 32, 0.01f, 0, 0, -1);
    fill(t, "blk.0.ffn_down.weight", 32, n, 0, 0, 0, -1);
    finish_model(t, path);
}

static void random_matrix(struct tiny *t, const char *name, uint32_t dtype, int64_t n, int64_t rows, uint64_t *state)
{
    size_t count = (size_t)(n * (rows ? rows : 1));
    float *v = malloc(sizeof *v * count), scale = rows ? 1.7f / sqrtf((float)n) : 0.2f;
    if (!v) die("malloc");
    for (size_t i = 0; i < count; i++) v[i] = tiny_random(state) * scale + (rows ? 0 : 1);
    tiny_matrix(t, name, rows ? dtype : KOPI_DTYPE_F32, n, rows, v);
    free(v);
}

void tiny_llama_model(const char *path, const struct tiny_llama *c)
{
    static const struct {
        const char *name;
        int in, rows;
    } part[] = {/* sizes: 0 vector, 1 n_embd, 2 n_embd / 2, 3 n_ff */
                {"attn_norm", 1, 0}, {"attn_q", 1, 1},   {"attn_k", 1, 2}, {"attn_v", 1, 2},  {"attn_output", 1, 1},
                {"ffn_norm", 1, 0},  {"ffn_gate", 1, 3}, {"ffn_up", 1, 3}, {"ffn_down", 3, 1}};
    const int64_t size[] = {0, c->n_embd, c->n_embd / 2, c->n_ff};
    struct tiny *t = tiny_new();
    uint64_t state = c->seed;
    llama_keys(t, c->n_vocab, c->n_embd, c->n_ff, 2, 4, 2, c->context);
    random_matrix(t, "token_embd.weight", c->dtype, c->n_embd, c->n_vocab, &state);
    random_matrix(t, "output_norm.weight", c->dtype, c->n_embd, 0, &state);
    for (int layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", layer, part[i].name);
            random_matrix(t, name, c->dtype, size[part[i].in], size[part[i].rows], &state);
        }
    if (c->output == TINY_COPY) state = c->seed;
    if (c->output != TINY_TIED) random_matrix(t, "output.weight", c->dtype, c->n_embd, c->n_vocab, &state);
    finish_model(t, path);
}
