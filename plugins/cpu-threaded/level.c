#include "level.h"

#include <stdio.h>
#include <string.h>

static const char *const names[KT_N_LEVELS] = {"c", "avx2", "avx512vnni"};

const char *kt_level_name(enum kt_level level) { return names[level]; }

#if defined(__x86_64__)
#include <cpuid.h>

enum { LEAF1_C_FMA = 1 << 12, LEAF1_C_OSXSAVE = 1 << 27, LEAF1_C_AVX = 1 << 28, LEAF1_C_F16C = 1 << 29 };
enum { LEAF7_B_AVX2 = 1 << 5 };
#define LEAF7_B_AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW, VL */
enum { LEAF7_C_VNNI = 1 << 11 };
enum { XCR0_YMM = 0x06, XCR0_ZMM = 0xe6 }; /* registers that the operating system saves */

static bool all(unsigned have, unsigned want) { return (have & want) == want; }

static unsigned xcr0(void)
{
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return lo;
}

enum kt_level kt_level_detect(void)
{
    unsigned a, b1, c1, d, b7, c7;
    if (!__get_cpuid(1, &a, &b1, &c1, &d)) return KT_C;
    if (!all(c1, LEAF1_C_OSXSAVE | LEAF1_C_AVX | LEAF1_C_FMA | LEAF1_C_F16C)) return KT_C;
    if (!__get_cpuid_count(7, 0, &a, &b7, &c7, &d)) return KT_C;
    unsigned saved = xcr0();
    if (!all(saved, XCR0_YMM) || !all(b7, LEAF7_B_AVX2)) return KT_C;
    if (!all(saved, XCR0_ZMM) || !all(b7, LEAF7_B_AVX512) || !all(c7, LEAF7_C_VNNI)) return KT_AVX2;
    return KT_AVX512VNNI;
}
#else
enum kt_level kt_level_detect(void) { return KT_C; }
#endif

bool kt_level_parse(const char *text, enum kt_level have, enum kt_level *out, char *err, size_t err_size)
{
    *out = have;
    if (!text || strcmp(text, "auto") == 0) return true;
    for (int i = 0; i < KT_N_LEVELS; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (enum kt_level)i;
        if (*out <= have) return true;
        snprintf(err, err_size, "option isa: '%s' is not possible on this processor, its highest level is %s", text,
                 names[have]);
        return false;
    }
    snprintf(err, err_size, "option isa: '%s' is not possible; allowed are auto, c, avx2 and avx512vnni", text);
    return false;
}
