#include "base/utf8.h"

/* Smallest code point of a sequence of n bytes. */
static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};

static unsigned sequence_length(unsigned char c)
{
    if (c < 0x80) return 1;
    if (c >= 0xc2 && c <= 0xdf) return 2;
    if (c >= 0xe0 && c <= 0xef) return 3;
    if (c >= 0xf0 && c <= 0xf4) return 4;
    return 0;
}

/* The second byte of these sequences has a narrower range: no overlong forms, surrogates or code points past U+10FFFF.
 */
static bool second_ok(unsigned char first, unsigned char c)
{
    switch (first) {
    case 0xe0: return c >= 0xa0 && c <= 0xbf;
    case 0xed: return c >= 0x80 && c <= 0x9f;
    case 0xf0: return c >= 0x90 && c <= 0xbf;
    case 0xf4: return c >= 0x80 && c <= 0x8f;
    default: return (c & 0xc0) == 0x80;
    }
}

size_t kopi__utf8_decode(const char *str, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)str;
    if (!n) return 0;
    unsigned len = sequence_length(s[0]);
    if (!len || len > n) return 0;
    if (len == 1) return *cp = s[0], 1;
    if (!second_ok(s[0], s[1])) return 0;
    uint32_t v = s[0] & (0xffu >> (len + 1));
    for (unsigned i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        v = v << 6 | (s[i] & 0x3f);
    }
    if (v < smallest[len]) return 0;
    *cp = v;
    return len;
}

size_t kopi__utf8_encode(uint32_t cp, char out[4])
{
    if (cp < 0x80) return out[0] = (char)cp, 1;
    size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; cp >>= 6) out[i] = (char)(0x80 | (cp & 0x3f));
    out[0] = (char)((0xf00u >> n & 0xf0u) | cp);
    return n;
}

size_t kopi__utf8_incomplete_tail(const char *str, size_t n)
{
    const unsigned char *s = (const unsigned char *)str;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        unsigned char c = s[n - back];
        if ((c & 0xc0) == 0x80) continue;
        unsigned len = sequence_length(c);
        if (len <= back) return 0;
        return back == 1 || second_ok(c, s[n - back + 1]) ? back : 0;
    }
    return 0;
}

bool kopi__utf8_valid(const char *s, size_t n)
{
    uint32_t cp;
    for (size_t i = 0, k; i < n; i += k)
        if (!(k = kopi__utf8_decode(s + i, n - i, &cp))) return false;
    return true;
}
