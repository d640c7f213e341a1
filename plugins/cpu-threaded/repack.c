/* The layout of format.h: rows of the file to a group, and a row of a group to f32. */
#include "format.h"

#include <kopi/math.h>

#include <string.h>

/* One block of the file: codes in column order, scales and minimums as the layout keeps them, d and m as they are. */
struct block {
    uint16_t d, m;
    uint8_t code[256], scale[16], min[16];
};

static uint16_t u16_at(const uint8_t *p)
{
    uint16_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

/* ---- blocks of the file ------------------------------------------------------------------------------------------ */

/* 16 bytes: the low nibbles are elements 0-15, the high ones 16-31. */
static void nibbles(const uint8_t *restrict p, uint8_t *restrict code, int n)
{
    for (int i = 0; i < n; i++) {
        code[i] = p[i] & 15;
        code[i + n] = p[i] >> 4;
    }
}

/* Bit i of the 32 is bit 4 of element i: eight elements at a time. */
static void fifth_bits(const uint8_t *restrict p, uint8_t *restrict code)
{
    const uint64_t each = 0x0101010101010101u;
    for (int i = 0; i < 4; i++) {
        uint64_t bit = p[i] * each & 0x8040201008040201u; /* byte k has bit k or is 0 */
        uint64_t high = (bit + 0x7f * each) >> 3 & 0x10 * each, eight;
        memcpy(&eight, code + 8 * i, sizeof eight);
        eight |= high;
        memcpy(code + 8 * i, &eight, sizeof eight);
    }
}

static void read_q4_0(const uint8_t *p, struct block *b) /* d, qs[16] */
{
    b->d = u16_at(p);
    nibbles(p + 2, b->code, 16);
}

static void read_q4_1(const uint8_t *p, struct block *b) /* d, m, qs[16] */
{
    b->d = u16_at(p);
    b->m = u16_at(p + 2);
    nibbles(p + 4, b->code, 16);
}

static void read_q5_0(const uint8_t *p, struct block *b) /* d, qh[4], qs[16] */
{
    b->d = u16_at(p);
    nibbles(p + 6, b->code, 16);
    fifth_bits(p + 2, b->code);
}

static void read_q5_1(const uint8_t *p, struct block *b) /* d, m, qh[4], qs[16] */
{
    b->d = u16_at(p);
    b->m = u16_at(p + 2);
    nibbles(p + 8, b->code, 16);
    fifth_bits(p + 4, b->code);
}

static void read_q8_0(const uint8_t *p, struct block *b) /* d, qs[32] */
{
    b->d = u16_at(p);
    for (int i = 0; i < 32; i++) b->code[i] = p[2 + i] ^ 128;
}

static void read_iq4_nl(const uint8_t *p, struct block *b) { read_q4_0(p, b); }

/* 64 bytes of 2-bit numbers: byte l of each half holds elements l, l + 32, l + 64, l + 96 of that half. */
static void two_bits(const uint8_t *restrict p, uint8_t *restrict code)
{
    for (int half = 0; half < 2; half++)
        for (int quarter = 0; quarter < 4; quarter++)
            for (int l = 0; l < 32; l++) code[128 * half + 32 * quarter + l] = p[32 * half + l] >> 2 * quarter & 3;
}

/* 32 bytes: bit i of byte l is bit `to` of element 32 * i + l. */
static void one_bit(const uint8_t *restrict p, uint8_t *restrict code, int to)
{
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 32; l++) code[32 * i + l] |= (uint8_t)((p[l] >> i & 1) << to);
}

/* Eight scales and eight minimums of 6 bits in 12 bytes. */
static void scales_and_mins(const uint8_t *p, struct block *b)
{
    for (int j = 0; j < 4; j++) {
        b->scale[j] = p[j] & 63;
        b->min[j] = p[j + 4] & 63;
        b->scale[j + 4] = (uint8_t)((p[j + 8] & 15) | p[j] >> 6 << 4);
        b->min[j + 4] = (uint8_t)(p[j + 8] >> 4 | p[j + 4] >> 6 << 4);
    }
}

static void read_q2_k(const uint8_t *p, struct block *b) /* scales[16], qs[64], d, dmin */
{
    b->d = u16_at(p + 80);
    b->m = u16_at(p + 82);
    memcpy(b->scale, p, 16);
    two_bits(p + 16, b->code);
}

static void read_q3_k(const uint8_t *p, struct block *b) /* hmask[32], qs[64], scales[12], d */
{
    const uint8_t *s = p + 96;
    b->d = u16_at(p + 108);
    for (int j = 0; j < 16; j++) { /* 6 bits: four from the first 8 bytes, two from the last 4 */
        int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4, high = s[8 + j % 4] >> 2 * (j / 4) & 3;
        b->scale[j] = (uint8_t)((low | high << 4) - 32);
    }
    two_bits(p + 32, b->code);
    one_bit(p, b->code, 2);
}

static void read_q4_k(const uint8_t *p, struct block *b) /* d, dmin, scales[12], qs[128] */
{
    b->d = u16_at(p);
    b->m = u16_at(p + 2);
    scales_and_mins(p + 4, b);
    for (int i = 0; i < 4; i++) nibbles(p + 16 + 32 * i, b->code + 64 * i, 32);
}

static void read_q5_k(const uint8_t *p, struct block *b) /* d, dmin, scales[12], qh[32], qs[128] */
{
    b->d = u16_at(p);
    b->m = u16_at(p + 2);
    scales_and_mins(p + 4, b);
    for (int i = 0; i < 4; i++) nibbles(p + 48 + 32 * i, b->code + 64 * i, 32);
    one_bit(p + 16, b->code, 4);
}

static void read_q6_k(const uint8_t *p, struct block *b) /* ql[128], qh[64], scales[16], d */
{
    uint8_t low[128];
    b->d = u16_at(p + 208);
    memcpy(b->scale, p + 192, 16);
    two_bits(p + 128, b->code);
    for (int half = 0; half < 2; half++) {
        nibbles(p + 64 * half, low, 64);
        for (int l = 0; l < 128; l++) b->code[128 * half + l] = (uint8_t)(low[l] | b->code[128 * half + l] << 4);
    }
}

/* ---- planes ------------------------------------------------------------------------------------------------------ */

/* Bits [from, from + bits) of a row's codes into its 4 bytes of each 64 of a plane. */
static void put_plane(const uint8_t *code, int len, int from, int bits, uint8_t *plane, int row)
{
    uint32_t mask = 0x01010101u * ((1u << bits) - 1);
    int per = 8 / bits;
    for (int c = 0; c < len / 4; c += per, plane += 64) {
        uint32_t quads = 0;
        for (int i = 0; i < per; i++) quads |= (u32_at(code + 4 * (c + i)) >> from & mask) << bits * i;
        memcpy(plane + 4 * row, &quads, 4);
    }
}

static void get_plane(const uint8_t *plane, int row, int len, int to, int bits, uint8_t *code)
{
    uint32_t mask = 0x01010101u * ((1u << bits) - 1);
    int per = 8 / bits;
    for (int c = 0; c < len / 4; c += per, plane += 64)
        for (int i = 0; i < per; i++) {
            uint32_t quad = u32_at(code + 4 * (c + i)) | (u32_at(plane + 4 * row) >> bits * i & mask) << to;
            memcpy(code + 4 * (c + i), &quad, 4);
        }
}

KT_INLINE void put_block(const struct kt_format *f, const struct block *b, uint8_t *p, int row)
{
    memcpy(p + 2 * row, &b->d, 2);
    if (f->min) memcpy(p + 32 + 2 * row, &b->m, 2);
    for (int j = 0; f->sub && j < f->len / f->sub; j++) {
        p[kt_scale_at(f) + KT_ROWS * j + row] = b->scale[j];
        if (f->min && !f->packed) p[kt_min_at(f) + KT_ROWS * j + row] = b->min[j];
    }
    if (f->hi) put_plane(b->code, f->len, f->lo, f->hi, p + kt_hi_at(f), row);
    put_plane(b->code, f->len, 0, f->lo, p + kt_lo_at(f), row);
}

KT_INLINE void get_block(const struct kt_format *f, const uint8_t *p, int row, struct block *b)
{
    b->d = u16_at(p + 2 * row);
    b->m = f->min ? u16_at(p + 32 + 2 * row) : 0;
    for (int j = 0; f->sub && j < f->len / f->sub; j++) {
        b->scale[j] = p[kt_scale_at(f) + KT_ROWS * j + row];
        b->min[j] = f->packed ? b->scale[j] >> 4 : f->min ? p[kt_min_at(f) + KT_ROWS * j + row] : 0;
        if (f->packed) b->scale[j] &= 15;
    }
    memset(b->code, 0, sizeof b->code);
    get_plane(p + kt_lo_at(f), row, f->len, 0, f->lo, b->code);
    if (f->hi) get_plane(p + kt_hi_at(f), row, f->len, f->lo, f->hi, b->code);
}

/* w = d * q + m, or d * (scale * q) - m * min: the whole numbers are exact, then one rounding per operation. */
KT_INLINE void block_to_f32(const struct kt_format *f, const struct block *b, float *out)
{
    static const uint8_t value[16] = {KT_IQ4_NL_VALUES};
    float d = kopi_f16_to_f32(b->d), m = kopi_f16_to_f32(b->m);
    for (int i = 0; i < f->len; i++) {
        int q = (f->codes ? value[b->code[i]] : b->code[i]) - f->off;
        if (f->sub) q *= (int8_t)b->scale[i / f->sub];
        out[i] = d * (float)q;
        if (f->min) out[i] = f->sub ? out[i] - m * (float)b->min[i / f->sub] : out[i] + m;
    }
}

#define ROWS_OF_BLOCKS(name, DTYPE, file, ...)                                                                         \
    uint64_t kt_##name##_group_bytes(uint32_t k)                                                                       \
    {                                                                                                                  \
        return (uint64_t)(k / (uint32_t)kt_##name.len) * (uint64_t)kt_block_bytes(&kt_##name);                         \
    }                                                                                                                  \
    void kt_##name##_repack(const void *rows, uint64_t row_bytes, uint32_t n_rows, uint32_t k, void *group)            \
    {                                                                                                                  \
        const struct kt_format *f = &kt_##name;                                                                        \
        struct block b;                                                                                                \
        if (n_rows < KT_ROWS) memset(group, 0, kt_##name##_group_bytes(k));                                            \
        for (uint32_t i = 0; i < k / (uint32_t)f->len; i++)                                                            \
            for (uint32_t r = 0; r < n_rows; r++) {                                                                    \
                read_##name((const uint8_t *)rows + r * row_bytes + (uint64_t)i * file, &b);                           \
                put_block(f, &b, (uint8_t *)group + (uint64_t)i * (uint64_t)kt_block_bytes(f), (int)r);                \
            }                                                                                                          \
    }                                                                                                                  \
    void kt_##name##_to_f32(const void *group, uint32_t row, uint32_t k, float *out)                                   \
    {                                                                                                                  \
        const struct kt_format *f = &kt_##name;                                                                        \
        struct block b;                                                                                                \
        for (uint32_t i = 0; i < k / (uint32_t)f->len; i++, out += f->len) {                                           \
            get_block(f, (const uint8_t *)group + (uint64_t)i * (uint64_t)kt_block_bytes(f), (int)row, &b);            \
            block_to_f32(f, &b, out);                                                                                  \
        }                                                                                                              \
    }
KT_BLOCK32_TYPES(ROWS_OF_BLOCKS)
KT_BLOCK256_TYPES(ROWS_OF_BLOCKS)

/* ---- floats ------------------------------------------------------------------------------------------------------ */

static float value_f32(const void *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}
static float value_f16(const void *p) { return kopi_f16_to_f32(u16_at(p)); }
static float value_bf16(const void *p) { return kopi_bf16_to_f32(u16_at(p)); }

#define ROWS_OF_FLOATS(name, DTYPE, bytes)                                                                             \
    uint64_t kt_##name##_group_bytes(uint32_t k) { return (uint64_t)k * KT_ROWS * bytes; }                             \
    void kt_##name##_repack(const void *rows, uint64_t row_bytes, uint32_t n_rows, uint32_t k, void *group)            \
    {                                                                                                                  \
        memset(group, 0, kt_##name##_group_bytes(k));                                                                  \
        for (uint64_t i = 0; i < k; i++)                                                                               \
            for (uint32_t r = 0; r < n_rows; r++)                                                                      \
                memcpy((uint8_t *)group + (i * KT_ROWS + r) * bytes,                                                   \
                       (const uint8_t *)rows + r * row_bytes + i * bytes, bytes);                                      \
    }                                                                                                                  \
    void kt_##name##_to_f32(const void *group, uint32_t row, uint32_t k, float *out)                                   \
    {                                                                                                                  \
        for (uint64_t i = 0; i < k; i++) out[i] = value_##name((const uint8_t *)group + (i * KT_ROWS + row) * bytes);  \
    }
KT_FLOAT_TYPES(ROWS_OF_FLOATS)
