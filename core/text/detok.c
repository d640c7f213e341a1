/* Token ids to text: all at once as bytes, or streamed without ever splitting a character. */
#include "base/buf.h"
#include "base/error.h"
#include "base/utf8.h"
#include "text/tokenizer.h"
#include <string.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Bytes of one token; the space that encoding put before the text is taken off the first one that renders to something.
 */
static const char *piece(const struct kopi_tokenizer *t, int32_t id, bool special, bool *not_first, size_t *n)
{
    if (id >= kopi__n_vocab(t)) { /* rows of the embedding beyond the token list have no text */
        *n = 0;
        return "";
    }
    const char *s = kopi__token_bytes(t, id, special, n);
    if (!*n) return s;
    if (!*not_first && *s == ' ' && kopi__adds_space(t)) {
        s++;
        --*n;
    }
    *not_first = true;
    return s;
}

kopi_status kopi__detokenize(const struct kopi_tokenizer *t, const int32_t *ids, size_t n, bool special, char **out,
                             size_t *out_len, kopi_error *err)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    bool not_first = false;
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        if (ids[i] < 0 || ids[i] >= kopi__n_vocab(t)) {
            kopi__buf_free(&b);
            return kopi__fail(err, KOPI_E_INVALID, "token id %d is not in the vocabulary of %d", ids[i],
                              kopi__n_vocab(t));
        }
        const char *s = piece(t, ids[i], special, &not_first, &len);
        kopi__buf_add(&b, s, len);
    }
    *out_len = b.len;
    *out = kopi__buf_take(&b);
    return *out ? KOPI_OK : kopi__nomem(err, "text");
}

/* Bytes at s that one U+FFFD stands for: the longest beginning of a character that never was completed (Unicode,
 * chapter 3.9). */
static size_t broken_length(const char *s, size_t n)
{
    for (size_t k = n < 3 ? n : 3; k > 1; k--)
        if (kopi__utf8_incomplete_tail(s, k) == k) return k;
    return 1;
}

/* Delivers s, which begins with what was held back; what may still become a character is kept for the next call. */
static bool deliver(struct kopi_detok *d, const char *s, size_t n, struct kopi_buf *out)
{
    size_t keep = kopi__utf8_incomplete_tail(s, n), end = n - keep;
    for (size_t i = 0, k; i < end; i += k) {
        uint32_t cp;
        k = kopi__utf8_decode(s + i, end - i, &cp);
        if (!(k ? kopi__buf_add(out, s + i, k) : kopi__buf_add(out, replacement, 3))) return false;
        if (!k) k = broken_length(s + i, end - i);
    }
    memcpy(d->tail, s + end, keep);
    d->n_tail = (unsigned)keep;
    return true;
}

bool kopi__detok_push(struct kopi_detok *d, const struct kopi_tokenizer *t, int32_t id, bool special,
                      struct kopi_buf *out)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    size_t n;
    const char *s = piece(t, id, special, &d->not_first, &n);
    if (!d->n_tail) return deliver(d, s, n, out);
    bool ok = kopi__buf_add(&b, d->tail, d->n_tail) && kopi__buf_add(&b, s, n) && deliver(d, b.data, b.len, out);
    kopi__buf_free(&b);
    return ok;
}

bool kopi__detok_flush(struct kopi_detok *d, struct kopi_buf *out)
{
    bool ok = !d->n_tail || kopi__buf_add(out, replacement, 3);
    d->n_tail = 0;
    return ok;
}
