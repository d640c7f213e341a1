#include "base/num.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The "C" locale for this thread while a number is read or written. Made once; NULL (memory short) leaves the caller's.
 */
static locale_t c_locale(void)
{
    static _Thread_local locale_t c;
    if (!c) c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return c;
}

static bool digits(const char *s) { return *s && strspn(s, "0123456789") == strlen(s); }

bool kopi__parse_u64(const char *s, uint64_t *out)
{
    if (!digits(s)) return false;
    errno = 0;
    unsigned long long v = strtoull(s, NULL, 10);
    if (errno) return false;
    *out = v;
    return true;
}

bool kopi__parse_i64(const char *s, int64_t *out)
{
    if (!digits(s + (*s == '-'))) return false;
    errno = 0;
    long long v = strtoll(s, NULL, 10);
    if (errno) return false;
    *out = v;
    return true;
}

bool kopi__parse_f64(const char *s, double *out)
{
    if (!*s || strspn(s, "+-0123456789.eE") != strlen(s)) return false;
    char *end;
    double v = strtod_l(s, &end, c_locale());
    if (*end || end == s || !isfinite(v)) return false;
    if (v == 0 && strcspn(s, "123456789") < strcspn(s, "eE")) return false; /* too small for a double: 1e-400 */
    *out = v;
    return true;
}

bool kopi__parse_size(const char *s, uint64_t *out)
{
    static const struct { const char *suffix; uint64_t unit; } units[] = {
        {"", 1}, {"B", 1}, {"KB", 1000}, {"MB", 1000000}, {"GB", 1000000000}, {"KiB", 1ull << 10}, {"MiB", 1ull << 20},
        {"GiB", 1ull << 30}};
    size_t n = strspn(s, "0123456789");
    char number[24];
    if (!n || n >= sizeof number) return false;
    memcpy(number, s, n);
    number[n] = 0;
    uint64_t v;
    if (!kopi__parse_u64(number, &v)) return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(s + n, units[i].suffix)) return !__builtin_mul_overflow(v, units[i].unit, out);
    return false;
}

/* The length that the number has, as snprintf. */
static size_t format(char *buf, size_t n, const char *fmt, int precision, double v)
{
    locale_t c = c_locale(), old = c ? uselocale(c) : (locale_t)0;
    int len = snprintf(buf, n, fmt, precision, v);
    if (old) uselocale(old);
    return (size_t)len;
}

static const char *shortest(double v, int max_digits, bool single, char *buf, size_t n)
{
    if (isnan(v)) return "nan";
    if (isinf(v)) return v < 0 ? "-inf" : "inf";
    if (v == trunc(v) && fabs(v) < 1e15) return kopi__format_fixed(v, 0, buf, n);
    for (int p = 1; p <= max_digits; p++) {
        format(buf, n, "%.*g", p, v);
        double back = strtod_l(buf, NULL, c_locale());
        if (single ? (float)back == (float)v : back == v) break;
    }
    return buf;
}

const char *kopi__format_f64(double v, char *buf, size_t n) { return shortest(v, 17, false, buf, n); }
const char *kopi__format_f32(float v, char *buf, size_t n) { return shortest((double)v, 9, true, buf, n); }
const char *kopi__format_fixed(double v, int precision, char *buf, size_t n)
{
    if (format(buf, n, "%.*f", precision, v) >= n) format(buf, n, "%.*e", precision, v);
    return buf;
}

const char *kopi__format_bytes(uint64_t v, char *buf, size_t n)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double x = (double)v;
    int u = 0;
    for (; x >= 1024 && u < 4; u++) x /= 1024;
    char number[40];
    snprintf(buf, n, "%s %s", kopi__format_fixed(x, u ? 1 : 0, number, sizeof number), unit[u]);
    return buf;
}
