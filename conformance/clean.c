#include "clean.h"

/* Length of the character at s, 0 where it is none (RFC 3629: no overlong forms, surrogates, nothing past U+10FFFF). */
static size_t character(const unsigned char *s)
{
    if (s[0] < 0x80) return 1;
    size_t n = s[0] >= 0xc2 && s[0] <= 0xdf ? 2 : (s[0] & 0xf0) == 0xe0 ? 3 : s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0;
    if (s[0] == 0xe0 && s[1] < 0xa0) return 0;
    if (s[0] == 0xed && s[1] > 0x9f) return 0;
    if (s[0] == 0xf0 && s[1] < 0x90) return 0;
    return s[0] == 0xf4 && s[1] > 0x8f ? 0 : n;
}

void cf_clean(char *text, size_t n, bool lines)
{
    text[n - 1] = 0;
    for (unsigned char *s = (unsigned char *)text; *s;) {
        size_t len = character(s);
        bool control = *s < 0x20 || *s == 0x7f, stays = lines && (*s == '\n' || *s == '\t');
        if (!len || (control && !stays)) *s = '?';
        s += len ? len : 1;
    }
}
