#include "base/fpstate.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#define FLAGS 0x3fu /* sticky exception flags of MXCSR */
uint64_t kopi__fp_get(void) { return _mm_getcsr() & ~FLAGS; }
void kopi__fp_set(uint64_t state) { _mm_setcsr((unsigned)state); }
uint64_t kopi__fp_default(void) { return 0x1f80; }
#elif defined(__aarch64__)
uint64_t kopi__fp_get(void)
{
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
}
void kopi__fp_set(uint64_t state) { __asm__ volatile("msr fpcr, %0" : : "r"(state)); }
uint64_t kopi__fp_default(void) { return 0; }
#else
#include <fenv.h>
uint64_t kopi__fp_get(void) { return (uint64_t)fegetround(); }
void kopi__fp_set(uint64_t state) { fesetround((int)state); }
uint64_t kopi__fp_default(void) { return FE_TONEAREST; }
#endif
