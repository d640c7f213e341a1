#include "text/bpe.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/merge.h"
#include <stdio.h>
#include <string.h>

struct merge {
    int32_t left, right, id;
    uint32_t rank;
};

struct kopi_bpe {
    struct kopi_pretok *pretok;
    bool ignore_merges;
    struct merge *slots; /* open addressing on (left, right); left -1: free */
    uint32_t mask;
    uint64_t factor; /* odd, drawn at random: multiply-shift hashing (Dietzfelbinger et al. 1997) */
    unsigned shift;
};

bool kopi__ids_add(struct kopi_ids *l, int32_t id)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        int32_t *more = kopi__realloc_array(l->at, cap, sizeof *more);
        if (!more) return false;
        l->at = more;
        l->cap = cap;
    }
    l->at[l->n++] = id;
    return true;
}

static struct merge *slot_of(const struct kopi_bpe *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    for (uint32_t i = (uint32_t)(key * b->factor >> b->shift);; i = (i + 1) & b->mask) {
        struct merge *m = &b->slots[i];
        if (m->left < 0 || (m->left == left && m->right == right)) return m;
    }
}

/* A part of a merge rule, in the byte-level alphabet, to its token. Text never becomes a control token by merges. */
static int32_t part_id(const struct kopi_vocab *v, const char *s, size_t n)
{
    int32_t id = kopi__vocab_find(v, s, n);
    return id >= 0 && v->type[id] != KOPI_TOKEN_CONTROL && v->type[id] != KOPI_TOKEN_UNKNOWN ? id : -1;
}

/* "left right": exactly one separator, which may not be the first byte ("Ġ" never is a plain space). */
static kopi_status add_rule(struct kopi_bpe *b, const struct kopi_vocab *v, struct kopi_gguf_str rule, uint32_t rank,
                            char *joined)
{
    const char *space = rule.len > 1 ? memchr(rule.data + 1, ' ', rule.len - 1) : NULL;
    if (!space) return KOPI_E_MODEL;
    size_t nl = (size_t)(space - rule.data), nr = rule.len - nl - 1;
    if (!nr || memchr(space + 1, ' ', nr)) return KOPI_E_MODEL;
    memcpy(joined, rule.data, nl);
    memcpy(joined + nl, space + 1, nr);
    struct merge m = {part_id(v, rule.data, nl), part_id(v, space + 1, nr), part_id(v, joined, nl + nr), rank};
    if (m.left < 0 || m.right < 0 || m.id < 0) return KOPI_OK; /* a rule outside the vocabulary can never apply */
    struct merge *slot = slot_of(b, m.left, m.right);
    if (slot->left < 0) *slot = m;
    return KOPI_OK;
}

static kopi_status read_merges(struct kopi_bpe *b, const struct kopi_gguf *g, const struct kopi_vocab *v,
                               kopi_error *err)
{
    const struct kopi_gguf_kv *kv = kopi__gguf_find(g, "tokenizer.ggml.merges");
    const char *path = kopi__gguf_path(g);
    if (!kv) return kopi__fail(err, KOPI_E_MODEL, "%s: tokenizer.ggml.merges is missing", path);
    if (kv->type != KOPI_GGUF_ARRAY || (kv->n && kv->elem_type != KOPI_GGUF_STRING) || kv->n > INT32_MAX / 4)
        return kopi__fail(err, KOPI_E_MODEL, "%s: tokenizer.ggml.merges must be an array of strings", path);
    uint64_t size = 16, longest = 0;
    b->shift = 60;
    for (; size < kv->n * 3 / 2; size *= 2) b->shift--;
    b->factor = kopi__hash(&b, sizeof b) | 1;
    struct kopi_gguf_str s;
    struct kopi_gguf_iter it = kopi__gguf_strings(kv);
    if (kv->n)
        while (kopi__gguf_next(&it, &s)) longest = s.len > longest ? s.len : longest;
    char *joined = kopi__alloc(longest + 1);
    b->slots = kopi__realloc_array(NULL, size, sizeof *b->slots);
    b->mask = (uint32_t)size - 1;
    kopi_status r = joined && b->slots ? KOPI_OK : kopi__nomem(err, "merges");
    for (uint64_t i = 0; i < size && r == KOPI_OK; i++) b->slots[i].left = -1;
    it = kopi__gguf_strings(kv);
    for (uint32_t i = 0; i < kv->n && r == KOPI_OK && kopi__gguf_next(&it, &s); i++)
        if (add_rule(b, v, s, i, joined) != KOPI_OK)
            r = kopi__fail(err, KOPI_E_MODEL,
                           "%s: tokenizer.ggml.merges: entry %u is not two parts with one space between", path, i);
    kopi__free(joined);
    return r;
}

kopi_status kopi__bpe_new(const struct kopi_gguf *g, struct kopi_vocab *v, struct kopi_bpe **out, kopi_error *err)
{
    char name[64] = "";
    struct kopi_gguf_str s;
    struct kopi_pretok_traits traits;
    const struct kopi_gguf_kv *pre = kopi__gguf_find(g, "tokenizer.ggml.pre");
    *out = NULL;
    if (pre && (!kopi__gguf_str(pre, &s) || s.len >= sizeof name || memchr(s.data, 0, s.len)))
        return kopi__fail(err, KOPI_E_MODEL, "%s: tokenizer.ggml.pre is not a short string", kopi__gguf_path(g));
    if (pre) snprintf(name, sizeof name, "%.*s", (int)s.len, s.data);
    struct kopi_bpe *b = kopi__calloc(1, sizeof *b);
    if (!b) return kopi__nomem(err, "tokenizer");
    kopi_status r = kopi__pretok_new(name, &b->pretok, &traits, err);
    if (r != KOPI_OK && err && r == KOPI_E_MODEL) kopi__fail_prefix(err, kopi__gguf_path(g));
    if (r == KOPI_OK) r = read_merges(b, g, v, err);
    if (r == KOPI_OK) {
        b->ignore_merges = traits.ignore_merges;
        v->add_bos = traits.add_bos;
        *out = b;
    } else kopi__bpe_free(b);
    return r;
}

void kopi__bpe_free(struct kopi_bpe *b)
{
    if (!b) return;
    kopi__pretok_free(b->pretok);
    kopi__free(b->slots);
    kopi__free(b);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

struct encode {
    const struct kopi_bpe *b;
    const struct kopi_vocab *v;
    struct kopi_merger m;
    struct kopi_ids *out;
    int (*cancelled)(void *);
    void *ctx;
    kopi_error *err;
    size_t since_poll; /* bytes since cancelled was asked */
};

static bool pair(const void *ctx, const char *text, const struct kopi_symbol *a, const struct kopi_symbol *b,
                 struct kopi_pair *out)
{
    const struct encode *e = ctx;
    (void)text;
    if (a->id < 0 || b->id < 0) return false;
    const struct merge *m = slot_of(e->b, a->id, b->id);
    if (m->left < 0) return false;
    out->rank = -(double)m->rank;
    out->id = m->id;
    return true;
}

static kopi_status add_id(struct encode *e, int32_t id)
{
    return id < 0 || kopi__ids_add(e->out, id) ? KOPI_OK : kopi__nomem(e->err, "token ids");
}

static kopi_status encode_word(void *ctx, const char *word, size_t n)
{
    struct encode *e = ctx;
    if ((e->since_poll += n) >= 65536 && e->cancelled) {
        e->since_poll = 0;
        if (e->cancelled(e->ctx)) return kopi__fail(e->err, KOPI_E_CANCELLED, "tokenizing was cancelled");
    }
    int32_t whole = e->b->ignore_merges || n == 1 ? kopi__vocab_find_bytes(e->v, word, n) : -1;
    if (whole >= 0) return add_id(e, whole);
    e->m.n_symbols = 0;
    for (size_t i = 0; i < n; i++)
        if (!kopi__merger_add(&e->m, (uint32_t)i, 1, e->v->byte_id[(unsigned char)word[i]]))
            return kopi__nomem(e->err, "tokenizing");
    kopi_status r = kopi__merger_run(&e->m, word, e->cancelled, e->ctx, e->err);
    for (int32_t i = e->m.n_symbols ? 0 : -1; i >= 0 && r == KOPI_OK; i = e->m.symbols[i].next)
        r = add_id(e, e->m.symbols[i].id);
    return r;
}

/* A character by its first byte and continuation bytes alone: overlong forms and surrogates count, as in the reference.
 * Returns its length, or 0. */
static size_t decode_loosely(const char *text, size_t n, uint32_t *cp)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t len = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;
    if (!len || len > n) return 0;
    *cp = len == 1 ? s[0] : s[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0;
        *cp = *cp << 6 | (s[i] & 0x3f);
    }
    return len;
}

/* The words of a text with bytes that are no UTF-8: overlong forms become their character, stray bytes U+FFFD, and
 * surrogates, which no expression may see, are words of their own. */
static kopi_status encode_invalid(struct encode *e, const char *text, size_t n)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    kopi_status r = KOPI_OK;
    for (size_t i = 0, k; i <= n && r == KOPI_OK; i += k) {
        uint32_t cp = 0xfffd;
        char c[4];
        k = i < n ? decode_loosely(text + i, n - i, &cp) : 0;
        bool surrogate = k && cp >= 0xd800 && cp < 0xe000;
        if ((surrogate || i == n) && b.len) {
            r = kopi__pretok_split(e->b->pretok, b.data, b.len, encode_word, e, e->err);
            kopi__buf_clear(&b);
        }
        if (r == KOPI_OK && surrogate) r = encode_word(e, text + i, k);
        if (!k || cp > 0x10ffff) cp = 0xfffd;
        if (!k) k = 1;
        if (!surrogate && i < n && !kopi__buf_add(&b, c, kopi__utf8_encode(cp, c)))
            r = kopi__nomem(e->err, "tokenizing");
    }
    kopi__buf_free(&b);
    return r;
}

kopi_status kopi__bpe_encode(const struct kopi_bpe *b, const struct kopi_vocab *v, const char *text, size_t n,
                             struct kopi_ids *out, int (*cancelled)(void *), void *ctx, kopi_error *err)
{
    struct encode e = {.b = b, .v = v, .out = out, .cancelled = cancelled, .ctx = ctx, .err = err};
    e.m.pair = pair;
    e.m.ctx = &e;
    if (n > INT32_MAX) return kopi__fail(err, KOPI_E_RANGE, "a text of %zu bytes is too long, at most 2 GiB", n);
    kopi_status r = kopi__utf8_valid(text, n) ? kopi__pretok_split(b->pretok, text, n, encode_word, &e, err)
                                              : encode_invalid(&e, text, n);
    kopi__merger_clear(&e.m);
    return r;
}
