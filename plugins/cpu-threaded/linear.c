/* Tables of the levels. */
#include "format.h"

static const struct kt_kernel_table *const tables[KT_N_LEVELS] = {
    [KT_C] = &kt_table_c,
#if defined(__x86_64__)
    [KT_AVX2] = &kt_table_avx2,
    [KT_AVX512VNNI] = &kt_table_avx512vnni,
#endif
};

static const struct kt_kernel_table *table(enum kt_level level)
{
    while (!tables[level]) level--;
    return tables[level];
}

const struct kt_linear *kt_linear_find(uint32_t dtype, enum kt_level level)
{
    const struct kt_kernel_table *t = table(level);
    for (int i = 0; i < KT_N_LINEARS; i++)
        if (t->linear[i].dtype == dtype) return &t->linear[i];
    return NULL;
}

kt_quantize_fn kt_quantize_find(uint32_t act_dtype, enum kt_level level)
{
    const struct kt_kernel_table *t = table(level);
    return act_dtype == KOPI_DTYPE_A8_32 ? t->a8_32 : act_dtype == KOPI_DTYPE_A8_256 ? t->a8_256 : t->f32;
}

uint32_t kt_act_unit(void) { return KT_UNIT; }

uint64_t kt_act_bytes(uint32_t dtype, uint32_t k, uint32_t cap) { return kt_token_bytes(dtype, k) * cap; }
