/* Llama family (Touvron et al. 2023; Llama 3 model card): pairs are interleaved in the file; Llama 3.1 and later bring
 * the divisors of their frequencies as a tensor. SmolLM2 is of this family. */
#include "model/arch/arch.h"

void kopi__arch_llama(struct kopi_meta *m, struct kopi_decoder *d)
{
    static const uint32_t none = 0;
    d->rope_pairing = KOPI_ROPE_INTERLEAVED;
    if (kopi__meta_u32(m, "expert_count", 0, UINT32_MAX, &none))
        kopi__meta_fail(m, "expert_count", "is not 0: mixture-of-experts models are not supported");
}
