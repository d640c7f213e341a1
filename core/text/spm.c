#include "text/spm.h"

#include "base/buf.h"
#include "base/error.h"
#include "text/merge.h"

#define SPACE "\xe2\x96\x81" /* U+2581 */

/* Text never becomes a control or byte token by spelling it. */
static int32_t find(const struct kopi_vocab *v, const char *text, size_t n)
{
    int32_t id = kopi__vocab_find(v, text, n);
    bool spelled = id >= 0 && v->type[id] != KOPI_TOKEN_CONTROL && v->type[id] != KOPI_TOKEN_UNKNOWN &&
                   v->type[id] != KOPI_TOKEN_BYTE;
    return spelled ? id : -1;
}

static bool pair(const void *ctx, const char *text, const struct kopi_symbol *a, const struct kopi_symbol *b,
                 struct kopi_pair *out)
{
    const struct kopi_vocab *v = ctx;
    int32_t id = find(v, text + a->pos, a->len + b->len);
    if (id < 0) return false;
    out->rank = (double)v->score[id];
    out->id = id;
    return true;
}

/* Length of the character that begins with c, as its first byte says. */
static uint32_t char_len(unsigned char c) { return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4; }

/* A symbol that is no token falls back to its bytes. */
static bool add_symbol(const struct kopi_vocab *v, const char *text, const struct kopi_symbol *s, struct kopi_ids *out)
{
    int32_t id = s->id >= 0 ? s->id : find(v, text + s->pos, s->len);
    if (id >= 0) return kopi__ids_add(out, id);
    for (uint32_t i = 0; i < s->len; i++) {
        id = v->byte_id[(unsigned char)text[s->pos + i]];
        if (id < 0) id = v->unk;
        if (id >= 0 && !kopi__ids_add(out, id)) return false;
    }
    return true;
}

static kopi_status encode(const struct kopi_vocab *v, const char *text, size_t n, struct kopi_ids *out,
                          int (*cancelled)(void *), void *ctx, kopi_error *err)
{
    struct kopi_merger m = {.pair = pair, .ctx = v};
    kopi_status r = KOPI_OK;
    for (size_t i = 0; i < n && r == KOPI_OK;) {
        uint32_t k = char_len((unsigned char)text[i]);
        if (k > n - i) k = (uint32_t)(n - i);
        if (cancelled && i % 65536 < k && cancelled(ctx))
            r = kopi__fail(err, KOPI_E_CANCELLED, "tokenizing was cancelled");
        else if (!kopi__merger_add(&m, (uint32_t)i, k, -1)) r = kopi__nomem(err, "tokenizing");
        i += k;
    }
    if (r == KOPI_OK) r = kopi__merger_run(&m, text, cancelled, ctx, err);
    for (int32_t i = m.n_symbols ? 0 : -1; i >= 0 && r == KOPI_OK; i = m.symbols[i].next)
        if (!add_symbol(v, text, &m.symbols[i], out)) r = kopi__nomem(err, "token ids");
    kopi__merger_clear(&m);
    return r;
}

kopi_status kopi__spm_encode(const struct kopi_vocab *v, const char *text, size_t n, struct kopi_ids *out,
                             int (*cancelled)(void *), void *ctx, kopi_error *err)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    if (n > INT32_MAX / 4) return kopi__fail(err, KOPI_E_RANGE, "a text of %zu bytes is too long, at most 512 MiB", n);
    bool ok = !v->add_space_prefix || kopi__buf_str(&b, SPACE);
    for (size_t i = 0; i < n && ok; i++) ok = text[i] == ' ' ? kopi__buf_str(&b, SPACE) : kopi__buf_char(&b, text[i]);
    kopi_status r = ok ? encode(v, b.data, b.len, out, cancelled, ctx, err) : kopi__nomem(err, "tokenizing");
    kopi__buf_free(&b);
    return r;
}
