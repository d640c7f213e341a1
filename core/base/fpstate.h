/* core/base/fpstate.h - floating-point control state: rounding, denormals, exception masks. [any] */
#ifndef KOPI_CORE_BASE_FPSTATE_H
#define KOPI_CORE_BASE_FPSTATE_H

#include <stdbool.h>
#include <stdint.h>

uint64_t kopi__fp_get(void);        /* control bits only, no sticky flags */
void kopi__fp_set(uint64_t state);
uint64_t kopi__fp_default(void);    /* round to nearest even, denormals kept, exceptions masked */

#endif
