#include "text/jinja/str.h"
#include "base/utf8.h"
#include <string.h>

/* Views use 32-bit offsets. */
enum { MAX_STRING = 1 << 30 };

struct kopi_jbuf *kopi__jbuf_new(struct kopi_jarena *a, size_t cap)
{
    struct kopi_jbuf *b = kopi__jzalloc(a, 1, sizeof *b);
    if (!b || cap > MAX_STRING) {
        if (b) a->stop = a->stop ? a->stop : KOPI_JSTOP_BYTES;
        return NULL;
    }
    if (cap && !(b->data = kopi__jalloc(a, cap))) return NULL;
    b->cap = (uint32_t)cap;
    return b;
}

static bool make_room(struct kopi_jarena *a, struct kopi_jbuf *b, size_t n)
{
    if (n <= b->cap - b->used) return true;
    size_t cap = (size_t)b->used + n;
    if (n > MAX_STRING || cap > MAX_STRING) {
        if (!a->stop) a->stop = KOPI_JSTOP_BYTES;
        return false;
    }
    cap += cap / 2 + 32;
    char *data = kopi__jalloc(a, cap);
    uint8_t *mark = data && b->mark ? kopi__jalloc(a, cap) : NULL;
    if (!data || (b->mark && !mark)) return false;
    if (b->used) memcpy(data, b->data, b->used);
    if (mark) memcpy(mark, b->mark, b->used);
    b->data = data;
    b->mark = mark;
    b->cap = (uint32_t)cap;
    return true;
}

/* One mark per byte from here on. */
static bool make_marks(struct kopi_jarena *a, struct kopi_jbuf *b)
{
    if (b->mark) return true;
    uint8_t *mark = kopi__jalloc(a, b->cap);
    if (!mark) return false;
    memset(mark, b->origin, b->used);
    b->mark = mark;
    return true;
}

/* Room for n more bytes of `origin`, marked; the bytes are the caller's to fill. */
static bool extend(struct kopi_jarena *a, struct kopi_jbuf *b, size_t n, uint8_t origin)
{
    if (!make_room(a, b, n) || !kopi__jwork_on(a, n, KOPI_J_COPY)) return false;
    if (b->used == 0 && !b->mark) b->origin = origin;
    if (origin != b->origin && !make_marks(a, b)) return false;
    if (b->mark) memset(b->mark + b->used, origin, n);
    b->used += (uint32_t)n;
    return true;
}

bool kopi__jbuf_add(struct kopi_jarena *a, struct kopi_jbuf *b, const char *p, size_t n, uint8_t origin)
{
    if (n == 0) return true;
    if (!extend(a, b, n, origin)) return false;
    memcpy(b->data + b->used - n, p, n);
    return true;
}

bool kopi__jbuf_add_repeat(struct kopi_jarena *a, struct kopi_jbuf *b, char c, int64_t n, uint8_t origin)
{
    if (n <= 0) return true;
    if (!extend(a, b, (size_t)n, origin)) return false;
    memset(b->data + b->used - n, c, (size_t)n);
    return true;
}

bool kopi__jbuf_add_str(struct kopi_jarena *a, struct kopi_jbuf *b, struct kopi_jstr s)
{
    if (s.len == 0) return true;
    if (!s.buf->mark) return kopi__jbuf_add(a, b, s.buf->data + s.off, s.len, s.buf->origin);
    if (!make_room(a, b, s.len) || !make_marks(a, b) || !kopi__jwork_on(a, s.len, KOPI_J_COPY)) return false;
    memcpy(b->data + b->used, s.buf->data + s.off, s.len);
    memcpy(b->mark + b->used, s.buf->mark + s.off, s.len);
    b->used += s.len;
    return true;
}

uint8_t kopi__jstr_any_origin(struct kopi_jstr s)
{
    if (s.len == 0) return KOPI_J_TEMPLATE;
    if (!s.buf->mark) return s.buf->origin;
    return memchr(s.buf->mark + s.off, KOPI_J_OUTSIDE, s.len) ? KOPI_J_OUTSIDE : KOPI_J_TEMPLATE;
}

void kopi__jbuf_one_origin(struct kopi_jbuf *b)
{
    b->origin = kopi__jstr_any_origin(kopi__jbuf_str(b));
    b->mark = NULL;
}

bool kopi__jstr_ref(struct kopi_jarena *a, const char *p, size_t n, uint8_t origin, struct kopi_jstr *out)
{
    if (n > MAX_STRING) {
        if (!a->stop) a->stop = KOPI_JSTOP_BYTES;
        return false;
    }
    struct kopi_jbuf *b = kopi__jalloc(a, sizeof *b);
    if (!b) return false;
    *b = (struct kopi_jbuf){.data = (char *)(uintptr_t)p, .used = (uint32_t)n, .cap = (uint32_t)n, .origin = origin};
    *out = kopi__jbuf_str(b);
    return true;
}

bool kopi__jstr_copy(struct kopi_jarena *a, const char *p, size_t n, uint8_t origin, struct kopi_jstr *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(a, n);
    if (!b || !kopi__jbuf_add(a, b, p, n, origin)) return false;
    *out = kopi__jbuf_str(b);
    return true;
}

bool kopi__jstr_concat(struct kopi_jarena *a, struct kopi_jstr x, struct kopi_jstr y, struct kopi_jstr *out)
{
    if (x.len == 0 || y.len == 0) {
        *out = x.len ? x : y;
        return true;
    }
    /* Behind the newest result there is free space that no other view sees: write there. */
    struct kopi_jbuf *b = x.buf;
    if (x.off + x.len != b->used || b->cap - b->used < y.len) {
        size_t sum = (size_t)x.len + y.len;
        b = kopi__jbuf_new(a, sum + sum / 2);
        if (!b || !kopi__jbuf_add_str(a, b, x)) return false;
        x.off = 0;
    }
    if (!kopi__jbuf_add_str(a, b, y)) return false;
    *out = (struct kopi_jstr){b, x.off, x.len + y.len};
    return true;
}

bool kopi__jstr_is(struct kopi_jstr s, const char *text)
{
    return strlen(text) == s.len && memcmp(kopi__jstr_data(s), text, s.len) == 0;
}
bool kopi__jstr_eq(struct kopi_jstr x, struct kopi_jstr y)
{
    return x.len == y.len && memcmp(kopi__jstr_data(x), kopi__jstr_data(y), x.len) == 0;
}
int kopi__jstr_cmp(struct kopi_jstr x, struct kopi_jstr y)
{
    int c = memcmp(kopi__jstr_data(x), kopi__jstr_data(y), x.len < y.len ? x.len : y.len);
    if (c) return c < 0 ? -1 : 1;
    return (x.len > y.len) - (x.len < y.len);
}
int64_t kopi__jstr_find(struct kopi_jstr s, struct kopi_jstr what, uint32_t from)
{
    if (from > s.len) return -1;
    if (what.len == 0) return from;
    const char *p = kopi__jstr_data(s);
    const char *hit = memmem(p + from, s.len - from, kopi__jstr_data(what), what.len);
    return hit ? hit - p : -1;
}

uint32_t kopi__jstr_next(struct kopi_jstr s, uint32_t at, uint32_t *cp)
{
    const char *p = s.buf->data + s.off + at;
    if ((unsigned char)*p < 0x80) {
        *cp = (unsigned char)*p;
        return at + 1;
    }
    size_t n = kopi__utf8_decode(p, s.len - at, cp);
    if (n) return at + (uint32_t)n;
    *cp = 0xfffd;
    return at + 1;
}
uint32_t kopi__jstr_prev(struct kopi_jstr s, uint32_t at)
{
    uint32_t cp;
    for (uint32_t back = 4; back > 1; back--)
        if (back <= at && kopi__utf8_decode(s.buf->data + s.off + at - back, back, &cp) == back) return at - back;
    return at - 1;
}
uint32_t kopi__jstr_chars(struct kopi_jstr s)
{
    uint32_t n = 0, cp;
    for (uint32_t i = 0; i < s.len; n++) i = kopi__jstr_next(s, i, &cp);
    return n;
}
uint32_t kopi__jstr_offset(struct kopi_jstr s, uint32_t n_chars)
{
    uint32_t i = 0, cp;
    while (n_chars-- && i < s.len) i = kopi__jstr_next(s, i, &cp);
    return i;
}

bool kopi__jchar_space(uint32_t cp)
{
    if (cp < 0x80) return (cp >= 9 && cp <= 13) || (cp >= 28 && cp <= 32);
    return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}
bool kopi__jchar_line_end(uint32_t cp)
{
    return (cp >= 10 && cp <= 13) || (cp >= 28 && cp <= 30) || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}
bool kopi__jchar_printable(uint32_t cp)
{
    /* categories Cc, Cf, Zl, Zp, Co and every Zs but the space */
    static const struct {
        uint32_t first, last;
    } no[] = {{0, 0x1f},          {0x7f, 0xa0},       {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
              {0x6dd, 0x6dd},     {0x70f, 0x70f},     {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
              {0x180e, 0x180e},   {0x2000, 0x200f},   {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
              {0xe000, 0xf8ff},   {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffe, 0xffff},   {0x110bd, 0x110bd},
              {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe00ff},
              {0xf0000, 0x10ffff}};
    for (size_t i = 0; i < sizeof no / sizeof *no && cp >= no[i].first; i++)
        if (cp <= no[i].last) return false;
    return true;
}

static bool strips(uint32_t cp, const struct kopi_jstr *chars)
{
    if (!chars) return kopi__jchar_space(cp);
    uint32_t c;
    for (uint32_t i = 0; i < chars->len;) {
        i = kopi__jstr_next(*chars, i, &c);
        if (c == cp) return true;
    }
    return false;
}
bool kopi__jstr_strip(struct kopi_jarena *a, struct kopi_jstr *s, const struct kopi_jstr *chars, bool left, bool right)
{
    const uint64_t per_char = 1 + (chars ? chars->len / KOPI_J_DECODE : 0);
    uint32_t from = 0, to = s->len, cp;
    while (left && from < to) {
        uint32_t next = kopi__jstr_next(*s, from, &cp);
        if (!kopi__jwork(a, per_char)) return false;
        if (!strips(cp, chars)) break;
        from = next;
    }
    while (right && to > from) {
        uint32_t prev = kopi__jstr_prev(*s, to);
        kopi__jstr_next(*s, prev, &cp);
        if (!kopi__jwork(a, per_char)) return false;
        if (!strips(cp, chars)) break;
        to = prev;
    }
    *s = kopi__jstr_sub(*s, from, to);
    return true;
}
