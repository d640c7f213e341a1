/* Gemma 3 (Gemma Team 2025): norms of q and k heads, norms before and after each block, five layers with a sliding
 * window for one that sees everything, each kind with its own RoPE base, embeddings scaled by sqrt(n_embd), tied
 * output. */
#include "model/arch/arch.h"

void kopi__arch_gemma3(struct kopi_meta *m, struct kopi_decoder *d)
{
    static const uint32_t period = 6, no_window = 0;
    static const double local_base = 10000, no_cap = 0;
    d->rope_pairing = KOPI_ROPE_HALF;
    d->qk_norm = d->post_norms = true;
    d->act = KOPI_ACT_GELU_TANH;
    d->embed_scale = __builtin_sqrtf((float)d->n_embd);
    d->window = kopi__meta_u32(m, "attention.sliding_window", 0, INT32_MAX, &no_window);
    d->window_period = kopi__meta_u32(m, "attention.sliding_window_pattern", 0, KOPI_MAX_LAYERS, &period);
    d->rope_local =
        (struct kopi_rope){.base = kopi__meta_f64(m, "rope.freq_base_swa", 1, 1e12, &local_base), .factor = 1};
    d->final_softcap = (float)kopi__meta_f64(m, "final_logit_softcapping", 0, 1e6, &no_cap);
    /* The 27B model scales its queries by the mean head size, not by the one it has. */
    if (d->n_layers == 62) d->attn_scale = 1.0f / __builtin_sqrtf((float)d->n_embd / (float)d->n_heads);
}
