#include "run/stop.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include <string.h>

enum { MAX_STOP = 1 << 16 };

/* fallback[i]: length of the longest proper prefix of s that is also a suffix of s[0 .. i]. (Knuth, Morris and Pratt
 * 1977.) */
static void build(struct kopi_stop_one *o)
{
    o->fallback[0] = 0;
    for (uint32_t i = 1, k = 0; i < o->len; i++) {
        while (k && o->s[i] != o->s[k]) k = o->fallback[k - 1];
        if (o->s[i] == o->s[k]) k++;
        o->fallback[i] = k;
    }
}

static void step(struct kopi_stop_one *o, char c)
{
    while (o->matched && o->s[o->matched] != c) o->matched = o->fallback[o->matched - 1];
    if (o->s[o->matched] == c) o->matched++;
}

static kopi_status add(struct kopi_stop_one *o, const char *s, size_t index, kopi_error *err)
{
    size_t len = strlen(s);
    if (!len) return kopi__fail(err, KOPI_E_INVALID, "stop string %zu is empty", index);
    if (len > MAX_STOP)
        return kopi__fail(err, KOPI_E_INVALID, "stop string %zu has %zu bytes, at most %d are allowed", index, len,
                          MAX_STOP);
    if (!kopi__utf8_valid(s, len)) return kopi__fail(err, KOPI_E_INVALID, "stop string %zu is not UTF-8", index);
    /* One block: the table, the string behind it. */
    if (!(o->fallback = kopi__alloc(len * sizeof *o->fallback + len))) return kopi__nomem(err, "stop strings");
    o->s = memcpy(o->fallback + len, s, len);
    o->len = len;
    build(o);
    return KOPI_OK;
}

kopi_status kopi__stop_init(struct kopi_stop *m, const char *const *stops, size_t n, kopi_error *err)
{
    *m = (struct kopi_stop){0};
    if (!n) return KOPI_OK;
    if (!(m->one = kopi__calloc(n, sizeof *m->one))) return kopi__nomem(err, "stop strings");
    for (; m->n < n; m->n++) {
        kopi_status s = add(&m->one[m->n], stops[m->n], m->n, err);
        if (s != KOPI_OK) return s;
    }
    return KOPI_OK;
}

void kopi__stop_free(struct kopi_stop *m)
{
    for (size_t i = 0; i < m->n; i++) kopi__free(m->one[i].fallback);
    kopi__free(m->one);
    kopi__buf_free(&m->held);
    *m = (struct kopi_stop){0};
}

/* Delivers all held bytes but the last `keep`. */
static bool deliver(struct kopi_stop *m, size_t keep, struct kopi_buf *out)
{
    size_t n = m->held.len - keep;
    if (!n) return true;
    if (!kopi__buf_add(out, m->held.data, n)) return false;
    memmove(m->held.data, m->held.data + n, keep);
    m->held.len = keep;
    m->held.data[keep] = 0;
    return true;
}

/* Feeds one byte: the length of the longest string that it completes, or else of the longest one that it may become. */
static size_t feed(struct kopi_stop *m, char c, bool *matched)
{
    size_t full = 0, part = 0;
    for (size_t k = 0; k < m->n; k++) {
        struct kopi_stop_one *o = &m->one[k];
        step(o, c);
        size_t *longest = o->matched == o->len ? &full : &part;
        if (o->matched > *longest) *longest = o->matched;
    }
    *matched = full > 0;
    return full ? full : part;
}

bool kopi__stop_push(struct kopi_stop *m, const char *text, size_t n, struct kopi_buf *out, bool *matched)
{
    size_t keep = m->held.len;
    *matched = false;
    for (size_t i = 0; i < n && !*matched; i++) {
        if (!kopi__buf_char(&m->held, text[i])) return false;
        keep = feed(m, text[i], matched);
    }
    if (!deliver(m, keep, out)) return false;
    if (*matched) kopi__buf_clear(&m->held);
    return true;
}

bool kopi__stop_flush(struct kopi_stop *m, struct kopi_buf *out)
{
    bool ok = deliver(m, 0, out);
    kopi__buf_clear(&m->held);
    return ok;
}
