/* The LINEAR and QUANTIZE kernels of plugins/cpu-threaded against a slow transcription of kopi/op.h: equal bits for
 * every type and level, with odd shapes and pages that can't be touched around all memory. */
#include "plugins/cpu-threaded/format.h"

#include <kopi/math.h>

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_TOK = 40 };

/* Levels from this one on are tested: all, or (tests/simde) the highest alone. */
#ifndef FIRST_LEVEL
#define FIRST_LEVEL KT_C
#endif

/* ---- memory between pages that can't be touched ------------------------------------------------------------------ */

struct guarded {
    char *map;
    size_t map_size;
    void *p; /* size bytes that end at the page (give or take the alignment) */
};

static struct guarded guarded(size_t size, size_t align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (size + align + page - 1) / page * page;
    struct guarded g = {.map_size = body + 2 * page};
    g.map = mmap(NULL, g.map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(g.map != MAP_FAILED);
    ck_assert_int_eq(mprotect(g.map, page, PROT_NONE), 0);
    ck_assert_int_eq(mprotect(g.map + page + body, page, PROT_NONE), 0);
    g.p = g.map + page + body - (size + align - 1) / align * align;
    return g;
}

static void release(struct guarded *g) { munmap(g->map, g->map_size); }

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static uint64_t state = 1;
static uint32_t rnd(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

static bool same(float a, float b) { return kopi_f32_bits(a) == kopi_f32_bits(b) || (isnan(a) && isnan(b)); }

/* ---- the file's blocks, element by element ----------------------------------------------------------------------- */

struct type {
    const char *name;
    uint32_t dtype, len, bytes;
    int d_at, m_at; /* of the F16 scale and minimum, -1: none */
};
static const struct type types[] = {
    {"q4_0", KOPI_DTYPE_Q4_0, 32, 18, 0, -1},     {"q4_1", KOPI_DTYPE_Q4_1, 32, 20, 0, 2},
    {"q5_0", KOPI_DTYPE_Q5_0, 32, 22, 0, -1},     {"q5_1", KOPI_DTYPE_Q5_1, 32, 24, 0, 2},
    {"q8_0", KOPI_DTYPE_Q8_0, 32, 34, 0, -1},     {"iq4_nl", KOPI_DTYPE_IQ4_NL, 32, 18, 0, -1},
    {"q2_k", KOPI_DTYPE_Q2_K, 256, 84, 80, 82},   {"q3_k", KOPI_DTYPE_Q3_K, 256, 110, 108, -1},
    {"q4_k", KOPI_DTYPE_Q4_K, 256, 144, 0, 2},    {"q5_k", KOPI_DTYPE_Q5_K, 256, 176, 0, 2},
    {"q6_k", KOPI_DTYPE_Q6_K, 256, 210, 208, -1}, {"f32", KOPI_DTYPE_F32, 1, 4, -1, -1},
    {"f16", KOPI_DTYPE_F16, 1, 2, -1, -1},        {"bf16", KOPI_DTYPE_BF16, 1, 2, -1, -1},
};
enum { N_TYPES = sizeof types / sizeof *types };

static float f16_at(const uint8_t *p) { return kopi_f16_to_f32((uint16_t)(p[0] | p[1] << 8)); }

/* Nibble i of blocks of 32, or of one of the four parts of 64 of a block of 256. */
static int nibble32(const uint8_t *p, int i) { return i < 16 ? p[i] & 15 : p[i - 16] >> 4; }
static int nibble64(const uint8_t *p, int i)
{
    return i % 64 < 32 ? p[i / 64 * 32 + i % 32] & 15 : p[i / 64 * 32 + i % 32] >> 4;
}
static int crumb(const uint8_t *p, int i) { return p[i / 128 * 32 + i % 32] >> 2 * (i % 128 / 32) & 3; }

/* The whole number of element i of a block, without its sub-block's scale. */
static int number(uint32_t dtype, const uint8_t *p, int i)
{
    static const int value[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    switch (dtype) {
    case KOPI_DTYPE_Q4_0: return nibble32(p + 2, i) - 8;
    case KOPI_DTYPE_Q4_1: return nibble32(p + 4, i);
    case KOPI_DTYPE_Q5_0: return (nibble32(p + 6, i) | (p[2 + i / 8] >> i % 8 & 1) << 4) - 16;
    case KOPI_DTYPE_Q5_1: return nibble32(p + 8, i) | (p[4 + i / 8] >> i % 8 & 1) << 4;
    case KOPI_DTYPE_Q8_0: return (int8_t)p[2 + i];
    case KOPI_DTYPE_IQ4_NL: return value[nibble32(p + 2, i)];
    case KOPI_DTYPE_Q2_K: return crumb(p + 16, i);
    case KOPI_DTYPE_Q3_K: return crumb(p + 32, i) - (p[i % 32] >> i / 32 & 1 ? 0 : 4);
    case KOPI_DTYPE_Q4_K: return nibble64(p + 16, i);
    case KOPI_DTYPE_Q5_K: return nibble64(p + 48, i) | (p[16 + i % 32] >> i / 32 & 1) << 4;
    default: break; /* Q6_K */
    }
    int low = p[i / 128 * 64 + i % 64] >> (i % 128 < 64 ? 0 : 4) & 15;
    return (low | crumb(p + 128, i) << 4) - 32;
}

/* Scale of 16 elements (sub-block j of 16) of a block of 256. */
static int scale(uint32_t dtype, const uint8_t *p, int j)
{
    const uint8_t *s = p + (dtype == KOPI_DTYPE_Q3_K ? 96 : 4);
    switch (dtype) {
    case KOPI_DTYPE_Q2_K: return p[j] & 15;
    case KOPI_DTYPE_Q3_K: return ((s[j % 8] >> j / 8 * 4 & 15) | (s[8 + j % 4] >> j / 4 * 2 & 3) << 4) - 32;
    case KOPI_DTYPE_Q6_K: return (int8_t)p[192 + j];
    default: break; /* Q4_K, Q5_K */
    }
    j /= 2;
    return j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
}

static int minimum(uint32_t dtype, const uint8_t *p, int j)
{
    if (dtype == KOPI_DTYPE_Q2_K) return p[j] >> 4;
    j /= 2;
    return j < 4 ? p[8 + j] & 63 : p[8 + j] >> 4 | p[4 + j] >> 6 << 4;
}

/* Element i of a row as f32. */
static float value(const struct type *y, const uint8_t *row, int i)
{
    const uint8_t *p = row + (uint32_t)i / y->len * y->bytes;
    float f;
    if (y->dtype == KOPI_DTYPE_F32) return memcpy(&f, p, 4), f;
    if (y->dtype == KOPI_DTYPE_F16) return f16_at(p);
    if (y->dtype == KOPI_DTYPE_BF16) return kopi_bf16_to_f32((uint16_t)(p[0] | p[1] << 8));
    i %= (int)y->len;
    int q = number(y->dtype, p, i);
    if (y->len == 256) q *= scale(y->dtype, p, i / 16);
    float v = f16_at(p + y->d_at) * (float)q;
    if (y->m_at < 0) return v;
    return y->len == 32 ? v + f16_at(p + y->m_at) : v - f16_at(p + y->m_at) * (float)minimum(y->dtype, p, i / 16);
}

/* ---- op.h, transcribed ------------------------------------------------------------------------------------------- */

struct quants {
    float d;
    int8_t q[256];
};

static struct quants quantize(const float *x, uint32_t len)
{
    struct quants b = {0};
    uint32_t a = 0;
    for (uint32_t i = 0; i < len; i++)
        a = (kopi_f32_bits(x[i]) & 0x7fffffffu) > a ? kopi_f32_bits(x[i]) & 0x7fffffffu : a;
    float max = kopi_bits_f32(a);
    if (a >= 0x7f800000u) {
        b.d = NAN;
    } else if (max >= 0x1p-100f) {
        b.d = max / 127;
        float r = 127 / max;
        for (uint32_t i = 0; i < len; i++) b.q[i] = (int8_t)nearbyintf(x[i] * r);
    }
    return b;
}

/* One output from one row of the file and the activations of one token. */
static float linear(const struct type *y, const uint8_t *row, uint32_t k, const float *x, const struct quants *xq)
{
    float acc = 0;
    if (y->len == 1) {
        for (uint32_t i = 0; i < k; i++) acc = fmaf(value(y, row, (int)i), x[i], acc);
        return acc;
    }
    for (uint32_t b = 0; b < k / y->len; b++, row += y->bytes, xq++) {
        int32_t isum = 0, msum = 0, sum = 0;
        for (int i = 0; i < (int)y->len; i++) {
            int q = number(y->dtype, row, i);
            isum += (y->len == 256 ? q * scale(y->dtype, row, i / 16) : q) * xq->q[i];
            if (y->len == 256 && y->m_at >= 0) msum += minimum(y->dtype, row, i / 16) * xq->q[i];
            sum += xq->q[i];
        }
        float d = f16_at(row + y->d_at), m = y->m_at < 0 ? 0 : f16_at(row + y->m_at);
        acc = fmaf(d * xq->d, (float)isum, acc);
        if (y->m_at >= 0) acc = y->len == 32 ? fmaf(m, xq->d * (float)sum, acc) : fmaf(-(m * xq->d), (float)msum, acc);
    }
    return acc;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

/* fill: RANDOM, or every code and scale at an end of its range. */
enum fill { RANDOM, ONES, ZEROS, ENDS, N_FILLS };

static void fill_weights(const struct type *y, enum fill fill, uint8_t *file, uint64_t n_blocks)
{
    for (uint64_t b = 0; b < n_blocks; b++, file += y->bytes) {
        for (uint32_t i = 0; i < y->bytes; i++)
            file[i] = (uint8_t)(fill == RANDOM  ? rnd()
                                : fill == ONES  ? 0xff
                                : fill == ZEROS ? 0
                                : rnd() % 2     ? 0x7f
                                                : 0x80);
        for (int m = 0; m < 2; m++) {
            int at = m ? y->m_at : y->d_at;
            uint16_t h = kopi_f32_to_f16((float)((int)(rnd() % 2001) - 1000) / 2048);
            if (rnd() % 50 == 0) h = (uint16_t)(rnd() & 0x83ff); /* subnormal */
            if (at >= 0) memcpy(file + at, &h, 2);
        }
        if (y->dtype == KOPI_DTYPE_F32) memcpy(file, &(float){(float)(int32_t)rnd() * 0x1p-31f}, 4);
        if (y->dtype == KOPI_DTYPE_F16) memcpy(file, &(uint16_t){kopi_f32_to_f16((float)(int32_t)rnd() * 0x1p-31f)}, 2);
        if (y->dtype == KOPI_DTYPE_BF16) memcpy(file, &(uint16_t){(uint16_t)((rnd() & 0x81ff) + 0x3e00)}, 2);
    }
}

/* Tokens of several kinds, among them blocks of zeros, tiny numbers, ties, NaN and infinity. */
static void fill_tokens(enum fill fill, float *x, uint32_t k)
{
    for (uint32_t t = 0; t < MAX_TOK; t++)
        for (uint32_t i = 0; i < k; i++) {
            float v = (float)(int32_t)rnd() * 0x1p-30f;
            uint32_t kind = (t + i / 256) % 16;
            if (fill != RANDOM) v = t % 3 == 0 ? 1.5f : t % 3 == 1 ? -1.5f : v;
            else if (kind == 3) v = 0;
            else if (kind == 5) v *= 0x1p-101f;
            else if (kind == 6) v *= 0x1p-126f;
            else if (kind == 7) v = (float)((int)(rnd() % 511) - 255) * 0.5f;
            else if (kind == 8 && i % 32 == 0) v = 127; /* ties come out as such */
            else if (kind == 8) v = (float)((int)(rnd() % 253) - 126) + 0.5f;
            else if (kind == 9) v *= 0x1p120f;
            else if (kind == 11 && i % 97 == 0) v = t % 2 ? NAN : -INFINITY;
            x[t * k + i] = v;
        }
}

/* ---- the test of a type and level -------------------------------------------------------------------------------- */

struct problem {
    const struct type *type;
    const struct kt_linear *l;
    enum kt_level level;
    uint32_t k, n;
    uint8_t *file;
    struct guarded groups, x, act, y, bias;
    float *want;
};

static void ranges_agree(struct problem *p, uint32_t n_tok)
{
    uint32_t unit = kt_act_unit(), groups = (p->n + 15) / 16, ldy = p->n + (n_tok % 3 ? 5 : 0);
    const float *bias = n_tok % 2 ? p->bias.p : NULL;
    struct kt_act act = {p->l->act_dtype, p->k, MAX_TOK, n_tok, p->act.p};
    struct guarded data = guarded(kt_act_bytes(act.dtype, act.k, n_tok), 4), y = guarded((size_t)ldy * n_tok * 4, 4);
    act.data = data.p;
    for (uint32_t i = 0; i < ldy * n_tok; i++) ((float *)y.p)[i] = 12345;
    uint32_t step = n_tok % 5 == 0 ? n_tok : unit;
    for (uint32_t t = 0; t < n_tok; t += step)
        kt_quantize_find(act.dtype, p->level)((float *)p->x.p + t * p->k, p->k, t, n_tok - t < step ? n_tok - t : step,
                                              &act);
    uint32_t per = n_tok % 4 == 0 ? groups : 1;
    for (uint32_t t = 0; t < n_tok; t += step)
        for (uint32_t g = 0; g < groups; g += per)
            p->l->run((char *)p->groups.p + g * p->l->group_bytes(p->k), per,
                      p->n - 16 * g < 16 * per ? p->n - 16 * g : 16 * per, p->k, &act, t,
                      n_tok - t < step ? n_tok - t : step, bias ? bias + 16 * g : NULL, (float *)y.p + t * ldy + 16 * g,
                      ldy);
    for (uint32_t t = 0; t < n_tok; t++)
        for (uint32_t r = 0; r < ldy; r++) {
            float got = ((float *)y.p)[t * ldy + r], want = r >= p->n ? 12345 : p->want[t * p->n + r];
            if (r < p->n && bias) want += bias[r];
            ck_assert_msg(same(got, want), "%s k %u n %u: token %u of %u, row %u: %a, not %a", p->l->name, p->k, p->n,
                          t, n_tok, r, (double)got, (double)want);
        }
    release(&data);
    release(&y);
}

static void rows_agree(const struct problem *p, uint64_t row_bytes)
{
    struct guarded out = guarded((size_t)p->k * 4, 4);
    for (uint32_t r = 0; r < p->n; r++) {
        p->l->to_f32((char *)p->groups.p + r / 16 * p->l->group_bytes(p->k), r % 16, p->k, out.p);
        for (uint32_t i = 0; i < p->k; i++) {
            float got = ((float *)out.p)[i], want = value(p->type, p->file + r * row_bytes, (int)i);
            ck_assert_msg(same(got, want), "%s row %u of %u, element %u: %a, not %a", p->l->name, r, p->n, i,
                          (double)got, (double)want);
        }
    }
    release(&out);
}

static void shape_agrees(const struct type *type, enum kt_level level, uint32_t k, uint32_t n, enum fill fill)
{
    struct problem p = {.type = type, .l = kt_linear_find(type->dtype, level), .level = level, .k = k, .n = n};
    uint64_t row_bytes = (uint64_t)k / type->len * type->bytes, group = p.l->group_bytes(k);
    uint32_t groups = (n + 15) / 16;
    struct guarded file = guarded(n * row_bytes, 1);
    p.file = file.p;
    p.groups = guarded(groups * group, 32);
    p.x = guarded((size_t)MAX_TOK * k * 4, 4);
    p.bias = guarded(n * 4, 4);
    p.want = malloc((size_t)MAX_TOK * n * 4);
    struct quants *xq = malloc(sizeof *xq * (k / type->len));
    ck_assert(p.want && xq);
    fill_weights(type, fill, p.file, (uint64_t)n * k / type->len);
    fill_tokens(fill, p.x.p, k);
    for (uint32_t r = 0; r < n; r++) ((float *)p.bias.p)[r] = (float)(int)(rnd() % 100) / 8;
    for (uint32_t g = 0; g < groups; g++)
        p.l->repack(p.file + 16 * g * row_bytes, row_bytes, n - 16 * g < 16 ? n - 16 * g : 16, k,
                    (char *)p.groups.p + g * group);
    rows_agree(&p, row_bytes);
    for (uint32_t t = 0; t < MAX_TOK; t++) {
        const float *x = (float *)p.x.p + t * k;
        for (uint32_t b = 0; type->len > 1 && b < k / type->len; b++) xq[b] = quantize(x + b * type->len, type->len);
        for (uint32_t r = 0; r < n; r++) p.want[t * n + r] = linear(type, p.file + r * row_bytes, k, x, xq);
    }
    for (uint32_t n_tok = 1; n_tok <= MAX_TOK; n_tok += fill == RANDOM ? 1 : 13) ranges_agree(&p, n_tok);
    free(p.want);
    free(xq);
    release(&file);
    release(&p.groups);
    release(&p.x);
    release(&p.bias);
}

/* The levels that the processor has; the others are named. */
static bool possible(enum kt_level level)
{
    if (level <= kt_level_detect()) return true;
    fprintf(stderr, "test_linear: level %s not tested: this processor lacks it\n", kt_level_name(level));
    return false;
}

START_TEST(bits_agree)
{
    const struct type *type = &types[_i % N_TYPES];
    enum kt_level level = (enum kt_level)(_i / N_TYPES);
    static const uint32_t k32[] = {32, 96, 1056}, k256[] = {256, 768, 512}, k1[] = {1, 37, 130}, n[] = {1, 40, 21};
    if (!possible(level)) return;
    const struct kt_linear *l = kt_linear_find(type->dtype, level);
    char name[64];
    snprintf(name, sizeof name, "linear_%s_%s", type->name, kt_level_name(level));
    ck_assert_ptr_nonnull(l);
#if defined(__x86_64__)
    ck_assert_str_eq(l->name, name);
#endif
    ck_assert_uint_eq(l->act_dtype, kopi_activation_dtype(type->dtype));
    state = (uint64_t)_i + 1;
    for (int i = 0; i < 3; i++)
        shape_agrees(type, level, type->len == 32 ? k32[i] : type->len == 256 ? k256[i] : k1[i], n[i], RANDOM);
    for (enum fill f = ONES; f < N_FILLS; f++) shape_agrees(type, level, type->len == 1 ? 16 : 256, 18, f);
}
END_TEST

/* The layout of the activations is the one that format.h states, with the numbers of op.h. */
START_TEST(quantize_agrees)
{
    enum kt_level level = (enum kt_level)_i;
    enum { K = 768 };
    if (!possible(level)) return;
    float *x = malloc(MAX_TOK * K * 4);
    uint8_t *data = malloc(MAX_TOK * K * 4);
    fill_tokens(RANDOM, x, K);
    for (uint32_t n_tok = 1; n_tok <= MAX_TOK; n_tok += 3)
        for (uint32_t len = 32; len <= 256; len *= 8) {
            struct kt_act act = {len == 32 ? KOPI_DTYPE_A8_32 : KOPI_DTYPE_A8_256, K, n_tok, n_tok, data};
            kt_quantize_find(act.dtype, level)(x, K, 0, n_tok, &act);
            for (uint32_t t0 = 0, w; t0 < n_tok; t0 += w) {
                w = kt_unit_width(t0, n_tok);
                const uint8_t *p = data + t0 * kt_token_bytes(act.dtype, K);
                for (uint32_t t = 0; t < w * (K / len); t++, p += t % w ? 0 : w * (len == 32 ? KT_A8_32 : KT_A8_256)) {
                    struct quants want = quantize(x + (t0 + t % w) * K + t / w * len, len);
                    const uint8_t *d = p + w * KT_RECORD * (len / 32) + 4 * (t % w);
                    float got;
                    memcpy(&got, d, 4);
                    ck_assert_msg(same(got, want.d), "token %u: scale %a, not %a", t0 + t % w, (double)got,
                                  (double)want.d);
                    int sum[16] = {0};
                    for (uint32_t i = 0; i < len; i++) {
                        ck_assert_int_eq((int8_t)p[w * KT_RECORD * (i / 32) + 4 * (i % 32 / 4 * w + t % w) + i % 4],
                                         want.q[i]);
                        sum[i / 16] += want.q[i];
                    }
                    for (uint32_t j = 0; j < len / 32; j++) {
                        int32_t s;
                        memcpy(&s, p + w * KT_RECORD * j + 4 * (8 * w + t % w), 4);
                        if (len == 32) ck_assert_int_eq(s, -128 * (sum[0] + sum[1]));
                        else ck_assert(sum[2 * j] == (int16_t)s && sum[2 * j + 1] == s >> 16);
                    }
                    memcpy(&got, d + 4 * w, 4);
                    if (len == 32) ck_assert(same(got, want.d * (float)(sum[0] + sum[1])));
                }
            }
        }
    free(x);
    free(data);
}
END_TEST

/* Repacked weights may take at most a twentieth more than the file's. */
START_TEST(groups_are_small)
{
    for (int i = 0; i < N_TYPES; i++)
        ck_assert_uint_le(20 * kt_linear_find(types[i].dtype, KT_C)->group_bytes(256),
                          21 * 16 * 256 / types[i].len * types[i].bytes);
    ck_assert_ptr_null(kt_linear_find(KOPI_DTYPE_IQ1_S, KT_C));
}
END_TEST

START_TEST(option_isa)
{
    enum kt_level out;
    char err[160] = "";
    ck_assert(kt_level_parse(NULL, KT_AVX2, &out, err, sizeof err) && out == KT_AVX2);
    ck_assert(kt_level_parse("auto", KT_AVX2, &out, err, sizeof err) && out == KT_AVX2);
    ck_assert(kt_level_parse("c", KT_AVX2, &out, err, sizeof err) && out == KT_C);
    ck_assert(kt_level_parse("avx2", KT_AVX2, &out, err, sizeof err) && out == KT_AVX2);
    ck_assert(!kt_level_parse("avx512vnni", KT_AVX2, &out, err, sizeof err));
    ck_assert_str_eq(err, "option isa: 'avx512vnni' is not possible on this processor, its highest level is avx2");
    ck_assert(!kt_level_parse("sse9", KT_AVX2, &out, err, sizeof err));
    ck_assert_str_eq(err, "option isa: 'sse9' is not possible; allowed are auto, c, avx2 and avx512vnni");
}
END_TEST

START_TEST(level_of_this_processor)
{
#if defined(__x86_64__)
    if (kt_level_detect() >= KT_AVX2) ck_assert(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
    if (kt_level_detect() == KT_AVX512VNNI) ck_assert(__builtin_cpu_supports("avx512vnni"));
    if (kt_level_detect() == KT_C) ck_assert(!__builtin_cpu_supports("avx2"));
#endif
}
END_TEST

int main(void)
{
    Suite *s = suite_create("linear");
    TCase *t = tcase_create("linear");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, bits_agree, FIRST_LEVEL * N_TYPES, N_TYPES * KT_N_LEVELS);
    tcase_add_loop_test(t, quantize_agrees, FIRST_LEVEL, KT_N_LEVELS);
    tcase_add_test(t, groups_are_small);
    tcase_add_test(t, option_isa);
    if (FIRST_LEVEL == KT_C) tcase_add_test(t, level_of_this_processor);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
