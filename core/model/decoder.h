/* core/model/decoder.h - the decoder description: what one family's metadata says, as data for the program builder.
 * Architectures are data, not code: core/model/arch/NAME.c fills this from its keys, core/model/build.c emits the
 * program. */
#ifndef KOPI_CORE_MODEL_DECODER_H
#define KOPI_CORE_MODEL_DECODER_H

#include "gguf/gguf.h"

enum { KOPI_MAX_LAYERS = 1024 };

enum kopi_rope_scaling { KOPI_SCALING_NONE = 0, KOPI_SCALING_LINEAR, KOPI_SCALING_YARN };

/* Frequencies of the rotary embedding. llama3 scaling comes from the file as divisors (`rope_freqs.weight`) or is
 * computed from metadata into `divisors`. */
struct kopi_rope {
    double base;
    enum kopi_rope_scaling scaling;
    double factor;                       /* linear, yarn: context extension */
    double orig_context;                 /* yarn: context of the training */
    double beta_fast, beta_slow, ext_factor, attn_factor; /* yarn */
    const struct kopi_gguf_tensor *divisors; /* F32 [n_rot / 2], or NULL */
    bool llama3;                         /* divisors by the Llama 3 rule from the four fields below */
    double low_freq_factor, high_freq_factor;
};

struct kopi_decoder {
    char arch[64];
    uint32_t n_layers, n_embd, n_ff, n_vocab, n_heads, n_kv_heads, head_dim_k, head_dim_v;
    uint32_t context_length;             /* of the training */
    uint32_t norm_kind;                  /* KOPI_NORM_* */
    float norm_eps;
    float embed_scale;                   /* 1: none */
    float attn_scale, attn_softcap, final_softcap; /* softcaps 0: none */
    bool qk_norm;                        /* RMS norm of each head of q and k, weights blk.N.attn_{q,k}_norm */
    bool post_norms; /* sandwich: norm after attention and after the feed-forward, before the residual */
    uint32_t rope_pairing, n_rot;        /* KOPI_ROPE_* */
    struct kopi_rope rope, rope_local;   /* local: the layers with a window */
    uint32_t window;                     /* 0: none */
    uint32_t window_period; /* every window_period-th layer (counted from 1) sees everything; 0: none does */
    uint32_t act;                        /* KOPI_ACT_* */
};

/* True if layer i uses the window. */
static inline bool kopi__layer_is_local(const struct kopi_decoder *d, uint32_t i)
{
    return d->window && !(d->window_period && (i + 1) % d->window_period == 0);
}

/* Reads general.architecture and that family's keys. Errors: KOPI_E_MODEL naming the key, its value and the limit. */
kopi_status kopi__decoder_read(const struct kopi_gguf *g, struct kopi_decoder *out, kopi_error *err);

#endif
