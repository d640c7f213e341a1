#include "model/rope.h"

#include "base/dmath.h"
#include "base/mem.h"
#include <string.h>

#define PI 3.14159265358979323846

static double clamp01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

/* Dimension at which a frequency makes `rotations` turns over the original context (YaRN, equation 17 solved for d). */
static double correction_dim(const struct kopi_rope *r, uint32_t n_rot, double rotations)
{
    return n_rot * kopi__ln(r->orig_context / (rotations * 2 * PI)) / (2 * kopi__ln(r->base));
}

/* Weight of the unscaled frequency: 1 for fast pairs, 0 for slow ones, a ramp between. */
static double yarn_ramp(const struct kopi_rope *r, uint32_t n_rot, uint32_t pair)
{
    double low = __builtin_floor(correction_dim(r, n_rot, r->beta_fast));
    double high = __builtin_ceil(correction_dim(r, n_rot, r->beta_slow));
    if (low < 0) low = 0;
    if (high > n_rot - 1) high = n_rot - 1;
    double width = high - low < 0.001 ? 0.001 : high - low;
    return 1 - clamp01((pair - low) / width);
}

/* Llama 3: slow pairs are divided by `factor`, fast ones kept, between them a smooth mix by wavelength. */
static double llama3_divisor(const struct kopi_rope *r, double freq)
{
    double wavelength = 2 * PI / freq;
    double longest = r->orig_context / r->low_freq_factor, shortest = r->orig_context / r->high_freq_factor;
    if (wavelength < shortest) return 1;
    if (wavelength > longest) return r->factor;
    double smooth = (r->orig_context / wavelength - r->low_freq_factor) / (r->high_freq_factor - r->low_freq_factor);
    return 1 / ((1 - smooth) / r->factor + smooth);
}

static double file_divisor(const struct kopi_gguf_tensor *t, uint32_t pair)
{
    float f;
    memcpy(&f, t->data + 4 * (size_t)pair, sizeof f);
    return f;
}

void kopi__rope_frequencies(const struct kopi_rope *r, uint32_t n_rot, double *freq, double *magnitude)
{
    double ln_base = kopi__ln(r->base);
    *magnitude = 1;
    for (uint32_t i = 0; i < n_rot / 2; i++) {
        double f = kopi__exp(-2.0 * i / n_rot * ln_base);
        if (r->llama3) f /= llama3_divisor(r, f);
        if (r->divisors) f /= file_divisor(r->divisors, i);
        if (r->scaling == KOPI_SCALING_LINEAR) f /= r->factor;
        if (r->scaling == KOPI_SCALING_YARN) {
            double keep = yarn_ramp(r, n_rot, i) * r->ext_factor;
            f = f / r->factor * (1 - keep) + f * keep;
        }
        freq[i] = f;
    }
    if (r->scaling == KOPI_SCALING_YARN)
        *magnitude = r->attn_factor * (r->ext_factor != 0 && r->factor > 1 ? 1 + 0.1 * kopi__ln(r->factor) : 1);
}

float *kopi__rope_table(const struct kopi_rope *r, uint32_t n_rot, uint32_t n_pos)
{
    uint32_t pairs = n_rot / 2;
    uint64_t bytes;
    double magnitude;
    if (!kopi__mul((uint64_t)pairs * 2 * sizeof(float), n_pos, &bytes)) return NULL;
    double *freq = kopi__calloc(pairs, sizeof *freq);
    float *table = freq ? kopi__alloc_aligned(bytes, 64) : NULL;
    if (table) {
        kopi__rope_frequencies(r, n_rot, freq, &magnitude);
        float *out = table;
        for (uint32_t p = 0; p < n_pos; p++)
            for (uint32_t i = 0; i < pairs; i++, out += 2) {
                double s, c;
                kopi__sincos(p * freq[i], &s, &c);
                out[0] = (float)(c * magnitude);
                out[1] = (float)(s * magnitude);
            }
    }
    kopi__free(freq);
    return table;
}
