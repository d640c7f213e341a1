/* plugins/cpu-threaded/linear_table.h - the table of a level; included last in linear_*.c. */
#define KT_PASTE2_(a, b) a##b
#define KT_PASTE_(a, b) KT_PASTE2_(a, b)
#define KT_TEXT2_(a) #a
#define KT_TEXT_(a) KT_TEXT2_(a)
#define KT_ROW_(name, DTYPE, act)                                                                                      \
    {"linear_" #name "_" KT_TEXT_(KT_LEVEL),                                                                           \
     KOPI_DTYPE_##DTYPE,                                                                                               \
     KOPI_DTYPE_##act,                                                                                                 \
     kt_##name##_group_bytes,                                                                                          \
     kt_##name##_repack,                                                                                               \
     kt_##name##_to_f32,                                                                                               \
     name##_run},
#define KT_ROW32_(name, DTYPE, ...) KT_ROW_(name, DTYPE, A8_32)
#define KT_ROW256_(name, DTYPE, ...) KT_ROW_(name, DTYPE, A8_256)
#define KT_ROWF_(name, DTYPE, ...) KT_ROW_(name, DTYPE, F32)

const struct kt_kernel_table KT_PASTE_(kt_table_, KT_LEVEL) = {
    {KT_BLOCK32_TYPES(KT_ROW32_) KT_BLOCK256_TYPES(KT_ROW256_) KT_FLOAT_TYPES(KT_ROWF_)},
    quantize_a8_32,
    quantize_a8_256,
    quantize_f32,
};
