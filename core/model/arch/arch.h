/* core/model/arch/arch.h - the families that kopi knows: one small file each fills the decoder description. [load] */
#ifndef KOPI_CORE_MODEL_ARCH_ARCH_H
#define KOPI_CORE_MODEL_ARCH_ARCH_H

#include "model/decoder.h"
#include "model/meta.h"
#include <kopi/op.h>

/* Called with the common keys already read into d (kopi__decoder_read); sets what the family does differently. */
typedef void (*kopi_arch_fn)(struct kopi_meta *m, struct kopi_decoder *d);

void kopi__arch_llama(struct kopi_meta *m, struct kopi_decoder *d);
void kopi__arch_qwen2(struct kopi_meta *m, struct kopi_decoder *d);
void kopi__arch_gemma3(struct kopi_meta *m, struct kopi_decoder *d);

#endif
