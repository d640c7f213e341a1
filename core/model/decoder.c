#include "model/decoder.h"

#include "base/error.h"
#include "base/num.h"
#include "model/arch/arch.h"
#include "model/rope.h"
#include <stdio.h>
#include <string.h>

enum { MAX_HEAD = 1 << 12 };

static const struct { const char *name; kopi_arch_fn fill; } archs[] = {
    {"llama", kopi__arch_llama},
    {"qwen2", kopi__arch_qwen2},
    {"gemma3", kopi__arch_gemma3},
};

/* Metadata that only models of another modality or shape have; ignoring it would give a wrong answer without a word. */
static const char *const refused_keys[] = {"attention.q_lora_rank", "ssm.state_size", "pooling_type"};

static kopi_arch_fn find_arch(const char *name)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (!strcmp(archs[i].name, name)) return archs[i].fill;
    return NULL;
}

static kopi_status unknown_arch(const struct kopi_gguf *g, const char *name, kopi_error *err)
{
    char list[256] = "";
    for (size_t i = 0, n = 0; i < sizeof archs / sizeof *archs; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", archs[i].name);
    return kopi__fail(err, KOPI_E_MODEL, "%s: general.architecture is \"%s\", supported are %s", kopi__gguf_path(g),
                      name, list);
}

static void read_yarn(struct kopi_meta *m, struct kopi_rope *r)
{
    static const double one = 1, fast = 32, slow = 1;
    r->scaling = KOPI_SCALING_YARN;
    r->beta_fast = kopi__meta_f64(m, "rope.scaling.yarn_beta_fast", 0.001, 1e6, &fast);
    r->beta_slow = kopi__meta_f64(m, "rope.scaling.yarn_beta_slow", 0.001, 1e6, &slow);
    r->ext_factor = kopi__meta_f64(m, "rope.scaling.yarn_ext_factor", 0, 1, &one);
    r->attn_factor = kopi__meta_f64(m, "rope.scaling.attn_factor", 0.001, 1000, &one);
    if (r->base <= 1) kopi__meta_fail(m, "rope.freq_base", "must be above 1 with yarn scaling");
}

static void read_llama3(struct kopi_meta *m, struct kopi_rope *r)
{
    static const double low = 1, high = 4;
    r->llama3 = true;
    r->low_freq_factor = kopi__meta_f64(m, "rope.scaling.low_freq_factor", 0.001, 1e6, &low);
    r->high_freq_factor = kopi__meta_f64(m, "rope.scaling.high_freq_factor", 0.001, 1e6, &high);
    if (r->high_freq_factor <= r->low_freq_factor)
        kopi__meta_fail(m, "rope.scaling.high_freq_factor", "must be above low_freq_factor");
}

static void read_linear(struct kopi_meta *m, struct kopi_rope *r)
{
    (void)m;
    r->scaling = KOPI_SCALING_LINEAR;
}

static const struct { const char *name; void (*read)(struct kopi_meta *m, struct kopi_rope *r); } scalings[] = {
    {"linear", read_linear}, {"yarn", read_yarn}, {"llama3", read_llama3}};

static void read_scaling(struct kopi_meta *m, struct kopi_rope *r, const char *type, double older_factor)
{
    static const double none = 0;
    for (size_t i = 0; i < sizeof scalings / sizeof *scalings; i++) {
        if (strcmp(type, scalings[i].name)) continue;
        r->factor = kopi__meta_f64(m, "rope.scaling.factor", 0, 1e6, older_factor > 0 ? &older_factor : &none);
        if (r->factor <= 0)
            kopi__meta_fail(m, "rope.scaling.factor", "must be above 0 with rope.scaling.type \"%s\"", type);
        scalings[i].read(m, r);
        return;
    }
    kopi__meta_fail(m, "rope.scaling.type", "is \"%s\", supported are none, linear, yarn, llama3", type);
}

static void read_rope(struct kopi_meta *m, struct kopi_decoder *d)
{
    static const double base = 10000, zero = 0;
    struct kopi_rope *r = &d->rope;
    char type[32] = "none";
    d->n_rot = kopi__meta_u32(m, "rope.dimension_count", 2, 1u << 16, &d->head_dim_k);
    if (d->n_rot % 2 || d->n_rot > d->head_dim_k)
        kopi__meta_fail(m, "rope.dimension_count", "is %u, allowed are even numbers up to the head size %u", d->n_rot,
                        d->head_dim_k);
    *r = (struct kopi_rope){.base = kopi__meta_f64(m, "rope.freq_base", 1, 1e12, &base), .factor = 1};
    double trained = d->context_length;
    r->orig_context = kopi__meta_f64(m, "rope.scaling.original_context_length", 1, 1e9, &trained);
    double linear = kopi__meta_f64(m, "rope.scale_linear", 0, 1e6, &zero); /* older name of linear scaling */
    kopi__meta_str(m, "rope.scaling.type", type, sizeof type);
    if (!strcmp(type, "none") && linear > 0) strcpy(type, "linear");
    if (strcmp(type, "none")) read_scaling(m, r, type, linear);
}

/* rope_freqs.weight: one divisor per pair. */
static void read_divisors(struct kopi_meta *m, struct kopi_decoder *d)
{
    const struct kopi_gguf_tensor *t = kopi__gguf_tensor(m->g, "rope_freqs.weight");
    if (!t || m->status != KOPI_OK) return;
    if (t->dtype != KOPI_DTYPE_F32 || t->n_dims != 1 || t->ne[0] != d->n_rot / 2) {
        m->status = kopi__fail(m->err, KOPI_E_MODEL,
                               "%s: tensor rope_freqs.weight must be F32 [%u] (half of rope.dimension_count)",
                               kopi__gguf_path(m->g), d->n_rot / 2);
        return;
    }
    for (uint32_t i = 0; i < d->n_rot / 2; i++) {
        float f;
        memcpy(&f, t->data + 4 * (size_t)i, sizeof f);
        if (!(f > 0 && f < 1e9f)) {
            m->status =
                kopi__fail(m->err, KOPI_E_MODEL, "%s: tensor rope_freqs.weight: element %u is not a positive number",
                           kopi__gguf_path(m->g), i);
            return;
        }
    }
    d->rope.divisors = t;
}

/* Faster than once around per position means nothing, and would leave the range in which sines are right. */
static void check_turns(struct kopi_meta *m, const struct kopi_decoder *d, const struct kopi_rope *r)
{
    double freq[MAX_HEAD / 2], magnitude;
    char turn[40];
    if (m->status != KOPI_OK) return;
    kopi__rope_frequencies(r, d->n_rot, freq, &magnitude);
    for (uint32_t i = 0; i < d->n_rot / 2; i++)
        if (!(freq[i] <= 16)) {
            m->status = kopi__fail(m->err, KOPI_E_MODEL,
                                   "%s: RoPE turns pair %u by %s radians per position, allowed are up to 16; look at "
                                   "%s.rope.scaling.factor and tensor rope_freqs.weight",
                                   kopi__gguf_path(m->g), i, kopi__format_f64(freq[i], turn, sizeof turn), d->arch);
            return;
        }
}

/* Rows of the embedding are the vocabulary, whatever metadata or tokenizer say; a token list of another length is
 * refused. */
static void read_vocab(struct kopi_meta *m, struct kopi_decoder *d)
{
    const struct kopi_gguf_tensor *t = kopi__gguf_tensor(m->g, "token_embd.weight");
    const struct kopi_gguf_kv *tokens = kopi__gguf_find(m->g, "tokenizer.ggml.tokens");
    if (m->status != KOPI_OK) return;
    if (!t || t->n_dims != 2 || t->ne[1] < 1 || t->ne[1] > INT32_MAX) {
        m->status = kopi__fail(m->err, KOPI_E_MODEL,
                               "%s: tensor token_embd.weight [n_embd, n_vocab] is missing or of another shape",
                               kopi__gguf_path(m->g));
        return;
    }
    d->n_vocab = (uint32_t)t->ne[1];
    uint32_t said = kopi__meta_u32(m, "vocab_size", 1, INT32_MAX, &d->n_vocab);
    if (said > d->n_vocab)
        kopi__meta_fail(m, "vocab_size", "is %u, but token_embd.weight has %u rows", said, d->n_vocab);
    if (tokens && tokens->n > d->n_vocab && m->status == KOPI_OK)
        m->status = kopi__fail(m->err, KOPI_E_MODEL,
                               "%s: tokenizer.ggml.tokens has %llu entries, but token_embd.weight %u rows",
                               kopi__gguf_path(m->g), (unsigned long long)tokens->n, d->n_vocab);
}

static void read_common(struct kopi_meta *m, struct kopi_decoder *d)
{
    d->n_layers = kopi__meta_u32(m, "block_count", 1, KOPI_MAX_LAYERS, NULL);
    d->n_embd = kopi__meta_u32(m, "embedding_length", 1, 1u << 20, NULL);
    d->n_ff = kopi__meta_u32(m, "feed_forward_length", 1, 1u << 24, NULL);
    d->n_heads = kopi__meta_u32(m, "attention.head_count", 1, 1u << 16, NULL);
    d->n_kv_heads = kopi__meta_u32(m, "attention.head_count_kv", 1, 1u << 16, &d->n_heads);
    d->context_length = kopi__meta_u32(m, "context_length", 1, INT32_MAX, NULL);
    if (m->status != KOPI_OK) return;
    if (d->n_heads % d->n_kv_heads)
        kopi__meta_fail(m, "attention.head_count_kv", "is %u, which does not divide attention.head_count %u",
                        d->n_kv_heads, d->n_heads);
    uint32_t size = d->n_embd / d->n_heads;
    bool explicit_size = kopi__meta_has(m, "attention.key_length");
    if (!explicit_size && d->n_embd % d->n_heads)
        kopi__meta_fail(m, "attention.head_count",
                        "is %u, which does not divide embedding_length %u (and there is no attention.key_length)",
                        d->n_heads, d->n_embd);
    if (size < 1) size = 1;
    d->head_dim_k = kopi__meta_u32(m, "attention.key_length", 1, MAX_HEAD, &size);
    d->head_dim_v = kopi__meta_u32(m, "attention.value_length", 1, MAX_HEAD, explicit_size ? &d->head_dim_k : &size);
    d->norm_kind = KOPI_NORM_RMS;
    d->norm_eps = (float)kopi__meta_f64(m, "attention.layer_norm_rms_epsilon", 0, 1, NULL);
    d->attn_scale = 1.0f / __builtin_sqrtf((float)d->head_dim_k);
    d->attn_scale = (float)kopi__meta_f64(m, "attention.scale", 1e-9, 1e9, &(double){(double)d->attn_scale});
    d->embed_scale = 1;
    d->act = KOPI_ACT_SILU;
}

kopi_status kopi__decoder_read(const struct kopi_gguf *g, struct kopi_decoder *out, kopi_error *err)
{
    struct kopi_decoder *d = out;
    *d = (struct kopi_decoder){0};
    struct kopi_gguf_str s;
    const struct kopi_gguf_kv *kv = kopi__gguf_find(g, "general.architecture");
    if (!kv || !kopi__gguf_str(kv, &s))
        return kopi__fail(err, KOPI_E_MODEL, "%s: general.architecture is missing or not a string", kopi__gguf_path(g));
    snprintf(d->arch, sizeof d->arch, "%.*s", (int)(s.len < sizeof d->arch ? s.len : sizeof d->arch - 1), s.data);
    kopi_arch_fn fill = s.len < sizeof d->arch ? find_arch(d->arch) : NULL;
    if (!fill) return unknown_arch(g, d->arch, err);
    struct kopi_meta m = {g, d->arch, err, KOPI_OK};
    for (size_t i = 0; i < sizeof refused_keys / sizeof *refused_keys; i++)
        if (kopi__meta_has(&m, refused_keys[i]))
            kopi__meta_fail(&m, refused_keys[i], "is set: such models are not supported");
    read_common(&m, d);
    if (m.status == KOPI_OK) read_rope(&m, d);
    d->rope_local = d->rope;
    if (m.status == KOPI_OK) fill(&m, d);
    read_divisors(&m, d);
    check_turns(&m, d, &d->rope);
    check_turns(&m, d, &d->rope_local);
    read_vocab(&m, d);
    return m.status;
}
