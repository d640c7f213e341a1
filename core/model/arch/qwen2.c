/* Qwen2 and Qwen2.5 (Yang et al. 2024): biases on Q, K and V (found by their tensors), half-split pairs, YaRN for long
 * contexts through the common keys. */
#include "model/arch/arch.h"

void kopi__arch_qwen2(struct kopi_meta *m, struct kopi_decoder *d)
{
    (void)m;
    d->rope_pairing = KOPI_ROPE_HALF;
}
