/* core/text/jinja/str.h - strings that know who wrote each byte. [one thread; a constant buffer: any]
 *
 * A prompt is part template, part message. Only what the template itself wrote may become a control token, so every
 * string carries its origin through all operations. A buffer has one origin for all its bytes until bytes of the other
 * origin are added; from then on it has a mark per byte beside the data. A string is an immutable view of a buffer. */
#ifndef KOPI_CORE_TEXT_JINJA_STR_H
#define KOPI_CORE_TEXT_JINJA_STR_H

#include "text/jinja/arena.h"

enum kopi_jorigin { KOPI_J_TEMPLATE = 0, KOPI_J_OUTSIDE = 1 };

struct kopi_jbuf {
    char *data;
    uint8_t *mark;      /* NULL: all bytes are of `origin`; else an enum kopi_jorigin per byte */
    uint32_t used, cap; /* bytes behind `used` may be written; a buffer that only refers to bytes has cap == used */
    uint8_t origin;
};
struct kopi_jstr {
    struct kopi_jbuf *buf; /* NULL only if len is 0 */
    uint32_t off, len;
};

static inline const char *kopi__jstr_data(struct kopi_jstr s) { return s.len ? s.buf->data + s.off : ""; }
static inline uint8_t kopi__jstr_origin(struct kopi_jstr s, uint32_t i)
{
    return s.buf->mark ? s.buf->mark[s.off + i] : s.buf->origin;
}
/* OUTSIDE if any byte is. */
uint8_t kopi__jstr_any_origin(struct kopi_jstr s);

/* All that can fail return false (or NULL) with the arena's stop set. */
struct kopi_jbuf *kopi__jbuf_new(struct kopi_jarena *a, size_t cap);
bool kopi__jbuf_add(struct kopi_jarena *a, struct kopi_jbuf *b, const char *p, size_t n, uint8_t origin);
bool kopi__jbuf_add_str(struct kopi_jarena *a, struct kopi_jbuf *b, struct kopi_jstr s); /* keeps the origins */
bool kopi__jbuf_add_repeat(struct kopi_jarena *a, struct kopi_jbuf *b, char c, int64_t n, uint8_t origin);
/* All bytes become OUTSIDE if any is. */
void kopi__jbuf_one_origin(struct kopi_jbuf *b);
static inline struct kopi_jstr kopi__jbuf_str(struct kopi_jbuf *b) { return (struct kopi_jstr){b, 0, b->used}; }

/* A string that refers to the caller's bytes, which must outlive the arena. */
bool kopi__jstr_ref(struct kopi_jarena *a, const char *p, size_t n, uint8_t origin, struct kopi_jstr *out);
bool kopi__jstr_copy(struct kopi_jarena *a, const char *p, size_t n, uint8_t origin, struct kopi_jstr *out);
/* Repeated appending to the newest result costs linear time in all. */
bool kopi__jstr_concat(struct kopi_jarena *a, struct kopi_jstr x, struct kopi_jstr y, struct kopi_jstr *out);

static inline struct kopi_jstr kopi__jstr_sub(struct kopi_jstr s, uint32_t from, uint32_t to)
{
    return (struct kopi_jstr){s.buf, s.off + from, to - from};
}
bool kopi__jstr_is(struct kopi_jstr s, const char *text);
bool kopi__jstr_eq(struct kopi_jstr x, struct kopi_jstr y);
int kopi__jstr_cmp(struct kopi_jstr x, struct kopi_jstr y); /* by code point, which in UTF-8 is by byte */
/* Offset of the first occurrence at or after `from`, or -1. */
int64_t kopi__jstr_find(struct kopi_jstr s, struct kopi_jstr what, uint32_t from);

/* Where the caller has no arena, he has paid for the bytes (kopi__jwork_on).
 * Characters are code points; a byte that is not valid UTF-8 counts as one character. */
uint32_t kopi__jstr_next(struct kopi_jstr s, uint32_t at, uint32_t *cp); /* offset behind the character at `at` */
uint32_t kopi__jstr_prev(struct kopi_jstr s, uint32_t at);               /* offset of the character before `at` */
uint32_t kopi__jstr_chars(struct kopi_jstr s);
uint32_t kopi__jstr_offset(struct kopi_jstr s, uint32_t n_chars); /* offset of character n (len if past the end) */

bool kopi__jchar_space(uint32_t cp);     /* str.isspace() */
bool kopi__jchar_line_end(uint32_t cp);  /* where str.splitlines() splits */
bool kopi__jchar_printable(uint32_t cp); /* str.isprintable(), without the unassigned code points */
/* Strips white space, or the characters of *chars if not NULL, at the sides asked for. It costs what it strips. */
bool kopi__jstr_strip(struct kopi_jarena *a, struct kopi_jstr *s, const struct kopi_jstr *chars, bool left, bool right);

#endif
