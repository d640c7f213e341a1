#include "base/dmath.h"

#include <stdint.h>
#include <string.h>

#define LN2_HI 0x1.62e42fee00000p-1 /* 32 bits: products with small integers are exact */
#define LN2_LO 0x1.a39ef35793c76p-33

static uint64_t bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static double from_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
/* Nearest integer, |x| < 2^51. */
static double nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* x = m * 2^e with m around 1; ln m = 2 artanh(f), f = (m - 1) / (m + 1), |f| < 0.172: the series in f^2 to f^25. */
double kopi__ln(double x)
{
    uint64_t u = bits(x);
    int e = (int)(u >> 52) - 1023;
    double m = from_bits((u & 0xfffffffffffffull) | 0x3ff0000000000000ull);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double f = (m - 1) / (m + 1), s = f * f, sum = 0;
    for (int k = 25; k >= 3; k -= 2) sum = (sum + 1.0 / k) * s;
    return e * LN2_HI + (e * LN2_LO + (2 * f * sum + 2 * f));
}

/* x = n ln 2 + r, |r| < 0.35: Taylor series to r^15. */
double kopi__exp(double x)
{
    double n = nearest(x * 1.4426950408889634);
    double r = (x - n * LN2_HI) - n * LN2_LO, sum = 1;
    for (int k = 15; k >= 1; k--) sum = 1 + sum * r / k;
    int64_t e = (int64_t)n, half = e / 2; /* two factors, since 2^n alone may overflow */
    return sum * from_bits((uint64_t)(1023 + half) << 52) * from_bits((uint64_t)(1023 + e - half) << 52);
}

/* x = k pi/2 + r, |r| < pi/4; pi/2 in three parts of 33 bits, so that the products with k < 2^20 are exact. */
void kopi__sincos(double x, double *sin_x, double *cos_x)
{
    double k = nearest(x * 0.6366197723675814);
    double r = ((x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a600000p-34) - k * 0x1.3198a2e037073p-69;
    double s2 = r * r, s = 1, c = 1;
    for (int i = 20; i >= 2; i -= 2) {
        c = 1 - c * s2 / (i * (i - 1));
        s = 1 - s * s2 / (i * (i + 1));
    }
    s *= r;
    switch ((int64_t)k & 3) {
    case 0: *sin_x = s; *cos_x = c; break;
    case 1: *sin_x = c; *cos_x = -s; break;
    case 2: *sin_x = -s; *cos_x = -c; break;
    default: *sin_x = -c; *cos_x = s; break;
    }
}
