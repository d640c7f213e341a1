/* kopi/op.h - the operations of a program: ids, operands, parameters and exact semantics. Self-contained; C99 and C++17.
 *
 * Notation. A tensor [a, b, c] has a contiguous and c slowest; TOK, OUT are the step's number of tokens and of wanted
 * rows. Unless said otherwise activations are F32, contiguous, one row per token: a tensor of two or three dimensions whose
 * slowest one is TOK (or OUT); its row is the product of the others, so [64, 9, TOK] is also a [576, TOK]. fma(a, b, c)
 * rounds once; every other + - * / and sqrt is one IEEE-754 binary32 operation, round to nearest even, denormals kept.
 * "ascending" fixes an order.
 *
 * A backend that claims KOPI_DEVICE_EXACT gives exactly these bits, whatever the batch, the number of threads or the
 * instruction set. exp, tanh, silu, gelu and the conversions are those of kopi/math.h. docs/numerics.md has the reasons.
 *
 * sum16(f, n): sixteen accumulators from +0, element i goes to accumulator i mod 16 in ascending i; then
 * s[j] += s[j + 8] for j < 8, s[j] += s[j + 4] for j < 4, s[j] += s[j + 2] for j < 2, and the result is s[0] + s[1]. */
#ifndef KOPI_OP_H
#define KOPI_OP_H

#include <kopi/dtype.h>

KOPI_BEGIN_DECLS

/* The set of operations and their versions below. Moves separately from the ABI. */
#define KOPI_OPSET 1u

/* X(NAME, id, version) */
#define KOPI_OPS(X)                                                                                                    \
    X(EMBED, 1u, 1)                                                                                                    \
    X(NORM, 2u, 1)                                                                                                     \
    X(QUANTIZE, 3u, 1)                                                                                                 \
    X(LINEAR, 4u, 1)                                                                                                   \
    X(ROPE, 5u, 1)                                                                                                     \
    X(KV_WRITE, 6u, 1)                                                                                                 \
    X(ATTN, 7u, 1)                                                                                                     \
    X(GLU, 8u, 1)                                                                                                      \
    X(ADD, 9u, 1)                                                                                                      \
    X(SCALE, 10u, 1)                                                                                                   \
    X(SOFTCAP, 11u, 1)                                                                                                 \
    X(GATHER, 12u, 1)

#define KOPI_OP_ID_(name, id, version) KOPI_OP_##name = (int)id,
enum { KOPI_OPS(KOPI_OP_ID_) KOPI_OP_END_ };
#undef KOPI_OP_ID_

/* EMBED  in: weight [n, n_vocab] of any dtype.  out: [n, TOK] F32.
 * Row t = to_f32(weight row run->tokens[t]), then each value * scale (skipped when scale is 1). Run-time embeddings
 * (run->embd, [n, TOK]) take the place of the row, with the same scale rule.
 *
 * to_f32 of a block, with the file's integers q (zero point subtracted), sc and mn (6-bit scales of Q3_K minus 32) and its
 * F16 values d, m and dmin. Integer products are exact and converted to F32, products of those with d and dmin are exact too,
 * so that only the sums of the types with a minimum round; F32, F16 and BF16 convert exactly.
 *   Q4_0 Q5_0 Q8_0 IQ4_NL   d * q               Q3_K Q6_K         d * (sc * q)
 *   Q4_1 Q5_1               d * q + m           Q2_K Q4_K Q5_K    d * (sc * q) - dmin * mn */
typedef struct kopi_embed_params {
    float scale;
    uint32_t reserved;
} kopi_embed_params;

/* NORM  in: x [n, m, TOK], weight [n] F32, bias [n] F32 (index -1: none).  out: like x; may be x itself.
 * Each of the m * TOK rows of n values (m > 1: one norm per head) on its own:
 *   RMS:    r = 1 / sqrt(sum16(fma(x, x, s)) / n + eps);                     y = (x * r) * weight  [+ bias]
 *   LAYER:  mean = sum16(s + x) / n; d = x - mean; r = 1 / sqrt(sum16(fma(d, d, s)) / n + eps); y = (d * r) * weight [+ bias]
 * A missing weight or bias leaves out its operation. (RMSNorm: Zhang and Sennrich 2019; LayerNorm: Ba et al. 2016.) */
enum { KOPI_NORM_RMS = 0, KOPI_NORM_LAYER = 1 };
typedef struct kopi_norm_params {
    uint32_t kind;
    float eps;
} kopi_norm_params;

/* QUANTIZE  in: x [n, TOK] F32.  out: [n, TOK] of A8_32 or A8_256: rows of the blocks below (n a multiple of the block).
 * Per block: a = largest |x| (compared as the bits without the sign, so NaN is above infinity).
 *   a not finite: d = NaN (0x7fc00000), all q and sums 0.   a < 2^-100: d = +0, all q and sums 0.
 *   else: d = a / 127; r = 127 / a; q[i] = x[i] * r rounded to the nearest integer, ties to even. */
typedef struct kopi_a8_32 {
    float d;
    int32_t sum;    /* of q */
    int8_t q[32];
} kopi_a8_32;
typedef struct kopi_a8_256 {
    float d;
    uint32_t reserved; /* 0 */
    int16_t sum[16];   /* of each 16 q */
    int8_t q[256];
} kopi_a8_256;

/* LINEAR  in: x [k, TOK], weight [k, n], bias [n] F32 (index -1: none).  out: y [n, TOK] F32, y = weight * x (+ bias last).
 * In a program x has the type that kopi_activation_dtype(weight dtype) gives: A8_32 for weight blocks of 32, A8_256 for
 * blocks of 256, F32 for F32, F16 and BF16 weights.
 *   float weights:   acc = fma(w, x, acc), ascending k, from +0.
 *   A8_32, A8_256:   blocks ascending, from acc = +0; isum and msum are exact int32 sums, converted to F32 once:
 *     symmetric    (Q4_0 Q5_0 Q8_0 IQ4_NL: w = d * q; Q3_K Q6_K: w = d * sc * q)
 *                  acc = fma(d * da, isum, acc)            isum = sum q x,  or  sum over sub-blocks of sc * (sum q x)
 *     with minimum (Q4_1 Q5_1: w = d * q + m)
 *                  acc = fma(d * da, isum, acc); acc = fma(m, da * sum x, acc)
 *     with minimum (Q2_K Q4_K Q5_K: w = d * sc * q - dmin * mn)
 *                  acc = fma(d * da, isum, acc); acc = fma(-(dmin * da), msum, acc)   msum = sum over sub-blocks mn * (sum x)
 *   The products in parentheses and da * sum x are rounded once; d, m, dmin are the file's F16 values. */
/* (no parameters) */

/* Type of x in LINEAR with this weight type; F32 for float weights and for types that this header doesn't know. */
static inline uint32_t kopi_activation_dtype(uint32_t weight_dtype)
{
    switch (weight_dtype) {
    case KOPI_DTYPE_Q4_0: case KOPI_DTYPE_Q4_1: case KOPI_DTYPE_Q5_0: case KOPI_DTYPE_Q5_1: case KOPI_DTYPE_Q8_0:
    case KOPI_DTYPE_IQ4_NL: return KOPI_DTYPE_A8_32;
    case KOPI_DTYPE_Q2_K: case KOPI_DTYPE_Q3_K: case KOPI_DTYPE_Q4_K: case KOPI_DTYPE_Q5_K: case KOPI_DTYPE_Q6_K:
        return KOPI_DTYPE_A8_256;
    default: return KOPI_DTYPE_F32;
    }
}

/* ROPE  in: x [head_dim, n_heads, TOK], table [2, n_rot / 2, n_pos] F32 (cos, sin of pair i at position p at
 * [0, i, p], [1, i, p]; made by the core).  out: like x; may be x itself. Pairs: INTERLEAVED (2i, 2i + 1), HALF
 * (i, i + n_rot / 2); dimensions from n_rot on are copied.
 *   y0 = fma(x0, cos, -(x1 * sin));  y1 = fma(x0, sin, x1 * cos)        with the table row of run->pos of the token.
 * (RoFormer: Su et al. 2021.) */
enum { KOPI_ROPE_INTERLEAVED = 0, KOPI_ROPE_HALF = 1 };
typedef struct kopi_rope_params {
    uint32_t pairing, n_rot;
} kopi_rope_params;

/* KV_WRITE  in: k [head_dim_k * n_kv_heads, TOK], v [head_dim_v * n_kv_heads, TOK].  out: the KV tensors of one layer (K, V).
 * Stores the rows of token t at its position in the pages of its sequence; F16: rounded to nearest even.
 *
 * Canonical page: for each layer of the group in ascending order its K part, then its V part; a part is
 * [head_dim * n_kv_heads, page_len] of the group's type, positions ascending. A KV tensor has kind KOPI_KIND_KV, `group`,
 * and `off` = byte offset of its part in the page. A backend that implements both KV_WRITE and ATTN may use a layout of its
 * own of the same size, and then has kv_export and kv_import.
 *
 * ATTN  in: q [head_dim_k * n_heads, TOK], K, V (KV tensors).  out: [head_dim_v * n_heads, TOK] F32.
 * Query at position p of its sequence sees the positions j <= p (window w > 0: also j > p - w). Head h reads KV head
 * h / (n_heads / n_kv_heads). In this order:
 *   1. score[j] = (fma chain q[d] * k[j][d], ascending d, from +0) * scale; softcap > 0: softcap * kopi_tanh(score / softcap).
 *   2. The positions are cut at multiples of 256 into chunks, each into blocks at multiples of 32. Chunks and blocks
 *      without a visible position are skipped; masked positions take no part. Per chunk from m = -inf, sixteen l[] = +0,
 *      o[] = +0, blocks ascending:
 *        mb = max of the visible scores of the block; mn = max(m, mb);
 *        if mn > m: c = m == -inf ? +0 : kopi_exp(m - mn); l[i] = l[i] * c; o[d] = o[d] * c; m = mn   (else: no multiplication)
 *        p[j] = kopi_exp(score[j] - m); l[j mod 16] += p[j], ascending j; o[d] = fma(p[j], v[j][d], o[d]), ascending j.
 *      The chunk's l is the tree of sum16 over l[]. A NaN score makes m, and with it the row, NaN.
 *   3. Chunks merge ascending into (M, L, O), which starts as the first visible chunk:
 *        mn = max(M, m); a = kopi_exp(M - mn); b = kopi_exp(m - mn); L = fma(l, b, L * a); O[d] = fma(o[d], b, O[d] * a); M = mn
 *   4. y[d] = O[d] / L.
 * (Online softmax: Milakov and Gimelshein 2018.) */
typedef struct kopi_attn_params {
    uint32_t n_heads, n_kv_heads, head_dim_k, head_dim_v;
    float scale, softcap;   /* softcap 0: none */
    uint32_t window;        /* 0: all; w: the token itself and w - 1 before it */
    uint32_t reserved;
} kopi_attn_params;
typedef struct kopi_kv_write_params {
    uint32_t n_kv_heads, head_dim_k, head_dim_v, reserved;
} kopi_kv_write_params;

/* GLU  in: gate [n, TOK], up [n, TOK] (index -1: none).  out: act(gate) * up; may be gate itself.
 *   SILU kopi_silu;  GELU_TANH kopi_gelu_tanh;  RELU x > 0 ? x : +0 (NaN stays NaN). */
enum { KOPI_ACT_SILU = 0, KOPI_ACT_GELU_TANH = 1, KOPI_ACT_RELU = 2 };
typedef struct kopi_glu_params {
    uint32_t act, reserved;
} kopi_glu_params;

/* ADD      in: a, b [n, TOK].  out: a + b; may be a itself.
 * SCALE    in: x [n, TOK].     out: x * scale; may be x itself.
 * SOFTCAP  in: x [n, TOK].     out: cap * kopi_tanh(x / cap); may be x itself. */
typedef struct kopi_scale_params {
    float value; /* scale or cap */
    uint32_t reserved;
} kopi_scale_params;

/* GATHER  in: x [n, TOK].  out: [n, OUT]: row i = x row run->outputs[0].rows[i]. */

KOPI_END_DECLS

#endif
