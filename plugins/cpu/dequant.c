#include "dequant.h"

#include <string.h>

static float f16_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return kopi_f16_to_f32(h);
}

static uint32_t u32_at(const uint8_t *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}

/* ---- blocks of 32 ------------------------------------------------------------------------------------------------ */

/* 16 bytes: the low nibbles are elements 0-15, the high ones 16-31. */
static void nibbles(const uint8_t *restrict qs, int16_t *restrict q)
{
    for (int i = 0; i < 16; i++) {
        q[i] = qs[i] & 15;
        q[i + 16] = qs[i] >> 4;
    }
}

/* Bit i of the 32 is bit 4 of element i. */
static void fifth_bits(const uint8_t *restrict qh, int16_t *restrict q)
{
    uint32_t bits = u32_at(qh);
    for (int i = 0; i < 32; i++) q[i] |= (int16_t)((bits >> i & 1) << 4);
}

static void subtract(int16_t *q, int16_t zero)
{
    for (int i = 0; i < 32; i++) q[i] = (int16_t)(q[i] - zero);
}

static void block_q4_0(const uint8_t *restrict p, struct cpu_block32 *restrict b) /* d, qs[16] */
{
    b->d = f16_at(p);
    b->m = 0;
    nibbles(p + 2, b->q);
    subtract(b->q, 8);
}

static void block_q4_1(const uint8_t *restrict p, struct cpu_block32 *restrict b) /* d, m, qs[16] */
{
    b->d = f16_at(p);
    b->m = f16_at(p + 2);
    nibbles(p + 4, b->q);
}

static void block_q5_0(const uint8_t *restrict p, struct cpu_block32 *restrict b) /* d, qh[4], qs[16] */
{
    b->d = f16_at(p);
    b->m = 0;
    nibbles(p + 6, b->q);
    fifth_bits(p + 2, b->q);
    subtract(b->q, 16);
}

static void block_q5_1(const uint8_t *restrict p, struct cpu_block32 *restrict b) /* d, m, qh[4], qs[16] */
{
    b->d = f16_at(p);
    b->m = f16_at(p + 2);
    nibbles(p + 8, b->q);
    fifth_bits(p + 4, b->q);
}

static void block_q8_0(const uint8_t *restrict p, struct cpu_block32 *restrict b) /* d, qs[32] */
{
    b->d = f16_at(p);
    b->m = 0;
    for (int i = 0; i < 32; i++) b->q[i] = (int8_t)p[2 + i];
}

static void block_iq4_nl(const uint8_t *restrict p,
                         struct cpu_block32 *restrict b) /* d, qs[16]: indices into a table of values */
{
    static const int8_t value[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    b->d = f16_at(p);
    b->m = 0;
    nibbles(p + 2, b->q);
    for (int i = 0; i < 32; i++) b->q[i] = value[b->q[i]];
}

/* ---- blocks of 256 ----------------------------------------------------------------------------------------------- */

/* 64 bytes of 2-bit numbers: byte l of each half holds elements l, l + 32, l + 64, l + 96 of that half. */
static void pairs_of_bits(const uint8_t *restrict qs, int16_t *restrict q)
{
    for (int half = 0; half < 2; half++)
        for (int quarter = 0; quarter < 4; quarter++)
            for (int l = 0; l < 32; l++) q[128 * half + 32 * quarter + l] = qs[32 * half + l] >> 2 * quarter & 3;
}

/* 128 bytes of 4-bit numbers: byte l of each 32 holds elements l and l + 32 of its 64. */
static void wide_nibbles(const uint8_t *restrict qs, int16_t *restrict q)
{
    for (int part = 0; part < 4; part++)
        for (int l = 0; l < 32; l++) {
            q[64 * part + l] = qs[32 * part + l] & 15;
            q[64 * part + 32 + l] = qs[32 * part + l] >> 4;
        }
}

/* q times the scale of its sixteen. */
static void scale_sixteens(int16_t *restrict q, const int16_t *restrict sc)
{
    for (int j = 0; j < 16; j++)
        for (int i = 0; i < 16; i++) q[16 * j + i] = (int16_t)(q[16 * j + i] * sc[j]);
}

/* Eight scales and eight minimums of 6 bits in 12 bytes, each for 32 elements. */
static void scales_and_mins(const uint8_t *restrict s, int16_t *restrict sc, int16_t *restrict mn)
{
    for (int j = 0; j < 8; j++) {
        int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        int min = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
        sc[2 * j] = sc[2 * j + 1] = (int16_t)scale;
        mn[2 * j] = mn[2 * j + 1] = (int16_t)min;
    }
}

static void block_q2_k(const uint8_t *restrict p, struct cpu_block256 *restrict b) /* scales[16], qs[64], d, dmin */
{
    int16_t sc[16];
    b->d = f16_at(p + 80);
    b->dmin = f16_at(p + 82);
    for (int j = 0; j < 16; j++) {
        sc[j] = p[j] & 15;
        b->mn[j] = p[j] >> 4;
    }
    pairs_of_bits(p + 16, b->q);
    scale_sixteens(b->q, sc);
}

static void block_q3_k(const uint8_t *restrict p,
                       struct cpu_block256 *restrict b) /* hmask[32], qs[64], scales[12], d */
{
    int16_t sc[16];
    const uint8_t *s = p + 96;
    b->d = f16_at(p + 108);
    b->dmin = 0;
    memset(b->mn, 0, sizeof b->mn);
    for (int j = 0; j < 16; j++) { /* 6 bits: four from the first 8 bytes, two from the last 4 */
        int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4, high = s[8 + j % 4] >> 2 * (j / 4) & 3;
        sc[j] = (int16_t)((low | high << 4) - 32);
    }
    pairs_of_bits(p + 32, b->q);
    for (int part = 0; part < 8; part++) /* third bit, inverted: where it is not set, 4 is subtracted */
        for (int l = 0; l < 32; l++)
            b->q[32 * part + l] = (int16_t)(b->q[32 * part + l] + ((p[l] >> part & 1) << 2) - 4);
    scale_sixteens(b->q, sc);
}

static void block_q4_k(const uint8_t *restrict p, struct cpu_block256 *restrict b) /* d, dmin, scales[12], qs[128] */
{
    int16_t sc[16];
    b->d = f16_at(p);
    b->dmin = f16_at(p + 2);
    scales_and_mins(p + 4, sc, b->mn);
    wide_nibbles(p + 16, b->q);
    scale_sixteens(b->q, sc);
}

static void block_q5_k(const uint8_t *restrict p,
                       struct cpu_block256 *restrict b) /* d, dmin, scales[12], qh[32], qs[128] */
{
    int16_t sc[16];
    b->d = f16_at(p);
    b->dmin = f16_at(p + 2);
    scales_and_mins(p + 4, sc, b->mn);
    wide_nibbles(p + 48, b->q);
    for (int part = 0; part < 8; part++)
        for (int l = 0; l < 32; l++)
            b->q[32 * part + l] = (int16_t)(b->q[32 * part + l] | (p[16 + l] >> part & 1) << 4);
    scale_sixteens(b->q, sc);
}

static void block_q6_k(const uint8_t *restrict p, struct cpu_block256 *restrict b) /* ql[128], qh[64], scales[16], d */
{
    int16_t sc[16], high[256];
    b->d = f16_at(p + 208);
    b->dmin = 0;
    memset(b->mn, 0, sizeof b->mn);
    for (int j = 0; j < 16; j++) sc[j] = (int8_t)p[192 + j];
    pairs_of_bits(p + 128, high);
    for (int half = 0; half < 2; half++) /* each half: 64 bytes, low nibbles first, then the high ones */
        for (int l = 0; l < 64; l++) {
            b->q[128 * half + l] = p[64 * half + l] & 15;
            b->q[128 * half + 64 + l] = p[64 * half + l] >> 4;
        }
    for (int i = 0; i < 256; i++) b->q[i] = (int16_t)((b->q[i] | high[i] << 4) - 32);
    scale_sixteens(b->q, sc);
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static void f32_block32(const struct cpu_block32 *b, bool has_min, float *out)
{
    for (int i = 0; i < 32; i++) out[i] = b->d * (float)b->q[i];
    if (has_min)
        for (int i = 0; i < 32; i++) out[i] = out[i] + b->m;
}

static void f32_block256(const struct cpu_block256 *b, bool has_min, float *out)
{
    for (int i = 0; i < 256; i++) out[i] = b->d * (float)b->q[i];
    if (has_min)
        for (int i = 0; i < 256; i++) out[i] = out[i] - b->dmin * (float)b->mn[i / 16];
}

/* X(NAME, name, elements per block, bytes per block, has minimum) */
#define QUANTIZED(X)                                                                                                   \
    X(Q4_0, q4_0, 32, 18, false)                                                                                       \
    X(Q4_1, q4_1, 32, 20, true)                                                                                        \
    X(Q5_0, q5_0, 32, 22, false)                                                                                       \
    X(Q5_1, q5_1, 32, 24, true)                                                                                        \
    X(Q8_0, q8_0, 32, 34, false)                                                                                       \
    X(IQ4_NL, iq4_nl, 32, 18, false)                                                                                   \
    X(Q2_K, q2_k, 256, 84, true)                                                                                       \
    X(Q3_K, q3_k, 256, 110, false)                                                                                     \
    X(Q4_K, q4_k, 256, 144, true)                                                                                      \
    X(Q5_K, q5_k, 256, 176, true)                                                                                      \
    X(Q6_K, q6_k, 256, 210, false)

#define ROW_FUNCTIONS(NAME, name, len, bytes, has_min)                                                                 \
    static void unpack_##name(const void *blocks, void *out, int64_t n)                                                \
    {                                                                                                                  \
        struct cpu_block##len *b = out;                                                                                \
        for (int64_t i = 0; i < n; i++) block_##name((const uint8_t *)blocks + i * bytes, &b[i]);                      \
    }                                                                                                                  \
    static void name##_to_f32(const void *blocks, float *out, int64_t n)                                               \
    {                                                                                                                  \
        struct cpu_block##len b;                                                                                       \
        for (int64_t i = 0; i < n / len; i++) {                                                                        \
            block_##name((const uint8_t *)blocks + i * bytes, &b);                                                     \
            f32_block##len(&b, has_min, out + i * len);                                                                \
        }                                                                                                              \
    }
QUANTIZED(ROW_FUNCTIONS)

static void f32_to_f32(const void *row, float *out, int64_t n) { memcpy(out, row, (size_t)n * sizeof *out); }

static void f16_to_f32(const void *row, float *out, int64_t n)
{
    const uint16_t *h = row;
    for (int64_t i = 0; i < n; i++) out[i] = kopi_f16_to_f32(h[i]);
}

static void bf16_to_f32(const void *row, float *out, int64_t n)
{
    const uint16_t *h = row;
    for (int64_t i = 0; i < n; i++) out[i] = kopi_bf16_to_f32(h[i]);
}

#define NAMES(name) "linear_" #name CPU_SUFFIX, "linear_" #name "_f32" CPU_SUFFIX, "embed_" #name CPU_SUFFIX
#define ROW(NAME, name, len, bytes, has_min)                                                                           \
    {KOPI_DTYPE_##NAME, len, bytes, has_min, unpack_##name, name##_to_f32, NAMES(name)},
static const struct cpu_format formats[] = {
    QUANTIZED(ROW){KOPI_DTYPE_F32, 1, 4, false, NULL, f32_to_f32, NAMES(f32)},
    {KOPI_DTYPE_F16, 1, 2, false, NULL, f16_to_f32, NAMES(f16)},
    {KOPI_DTYPE_BF16, 1, 2, false, NULL, bf16_to_f32, NAMES(bf16)},
};

const struct cpu_format *cpu__format(uint32_t dtype)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i].dtype == dtype) return &formats[i];
    return NULL;
}
