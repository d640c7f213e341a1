#include "text/tokenizer.h"

#include "base/error.h"
#include "base/mem.h"
#include "text/bpe.h"
#include "text/special.h"
#include "text/spm.h"
#include <string.h>

struct kopi_tokenizer {
    struct kopi_vocab vocab;
    struct kopi_specials specials;
    struct kopi_bpe *bpe; /* NULL: SentencePiece */
};

kopi_status kopi__tokenizer_new(const struct kopi_gguf *g, struct kopi_tokenizer **out, kopi_error *err)
{
    *out = NULL;
    struct kopi_tokenizer *t = kopi__calloc(1, sizeof *t);
    if (!t) return kopi__nomem(err, "tokenizer");
    kopi_status r = kopi__vocab_load(g, &t->vocab, err);
    if (r == KOPI_OK && t->vocab.bpe) r = kopi__bpe_new(g, &t->vocab, &t->bpe, err);
    if (r == KOPI_OK) r = kopi__vocab_flags(g, &t->vocab, err);
    if (r == KOPI_OK && (r = kopi__specials_new(&t->vocab, &t->specials, err)) == KOPI_E_MODEL)
        kopi__fail_prefix(err, kopi__gguf_path(g));
    if (r == KOPI_OK) *out = t;
    else kopi__tokenizer_free(t);
    return r;
}

void kopi__tokenizer_free(struct kopi_tokenizer *t)
{
    if (!t) return;
    kopi__bpe_free(t->bpe);
    kopi__specials_clear(&t->specials);
    kopi__vocab_clear(&t->vocab);
    kopi__free(t);
}

/* ---- encoding ---------------------------------------------------------------------------------------------------- */

struct job {
    const struct kopi_tokenizer *t;
    struct kopi_ids ids;
    int (*cancelled)(void *);
    void *ctx;
    kopi_error *err;
};

static kopi_status plain(struct job *j, const char *text, size_t n)
{
    if (!n) return KOPI_OK;
    if (j->cancelled && j->cancelled(j->ctx)) return kopi__fail(j->err, KOPI_E_CANCELLED, "tokenizing was cancelled");
    return j->t->bpe ? kopi__bpe_encode(j->t->bpe, &j->t->vocab, text, n, &j->ids, j->cancelled, j->ctx, j->err)
                     : kopi__spm_encode(&j->t->vocab, text, n, &j->ids, j->cancelled, j->ctx, j->err);
}

static kopi_status add(struct job *j, int32_t id)
{
    return kopi__ids_add(&j->ids, id) ? KOPI_OK : kopi__nomem(j->err, "token ids");
}

/* Special tokens first, then the texts between them. */
static kopi_status body(struct job *j, const char *text, size_t n, const unsigned char *allowed)
{
    struct kopi_special_match *m;
    size_t n_matches, at = 0;
    kopi_status r = kopi__specials_find(&j->t->specials, &j->t->vocab, text, n, allowed, &m, &n_matches, j->err);
    if (r != KOPI_OK) return r;
    for (size_t i = 0; i < n_matches && r == KOPI_OK; i++) {
        if (m[i].pos > at) r = plain(j, text + at, m[i].pos - at);
        if (r == KOPI_OK) r = add(j, m[i].id);
        at = m[i].pos + m[i].len;
        size_t end = i + 1 < n_matches ? m[i + 1].pos : n;
        if (j->t->vocab.rstrip && j->t->vocab.rstrip[m[i].id])
            while (at < end && (text[at] == ' ' || (text[at] >= '\t' && text[at] <= '\r'))) at++;
    }
    kopi__free(m);
    return r == KOPI_OK ? plain(j, text + at, n - at) : r;
}

/* doubled: keep a BOS that the text itself begins with beside the one that is added, as the reference does for raw
 * texts. */
static kopi_status encode(const struct kopi_tokenizer *t, const char *text, size_t n, const unsigned char *allowed,
                          unsigned flags, bool doubled, int32_t **ids, size_t *n_ids, int (*cancelled)(void *),
                          void *ctx, kopi_error *err)
{
    const struct kopi_vocab *v = &t->vocab;
    struct job j = {.t = t, .cancelled = cancelled, .ctx = ctx, .err = err};
    bool bos = flags & KOPI__TOK_ADD_SPECIAL && v->add_bos && v->bos >= 0;
    *ids = NULL;
    *n_ids = 0;
    kopi_status r = bos ? add(&j, v->bos) : KOPI_OK;
    if (r == KOPI_OK) r = body(&j, text, n, allowed);
    if (r == KOPI_OK && bos && !doubled && j.ids.n > 1 && j.ids.at[1] == v->bos) {
        memmove(j.ids.at, j.ids.at + 1, (j.ids.n - 1) * sizeof *j.ids.at);
        j.ids.n--;
    }
    if (r == KOPI_OK && flags & KOPI__TOK_ADD_SPECIAL && v->add_eos && v->eos >= 0) r = add(&j, v->eos);
    if (r == KOPI_OK && !j.ids.at && !(j.ids.at = kopi__alloc(sizeof *j.ids.at))) r = kopi__nomem(err, "token ids");
    if (r != KOPI_OK) {
        kopi__free(j.ids.at);
        return r;
    }
    *ids = j.ids.at;
    *n_ids = j.ids.n;
    return KOPI_OK;
}

kopi_status kopi__tokenize(const struct kopi_tokenizer *t, const char *text, size_t n, unsigned flags, int32_t **ids,
                           size_t *n_ids, int (*cancelled)(void *), void *ctx, kopi_error *err)
{
    unsigned char *allowed = NULL;
    if (flags & KOPI__TOK_PARSE_SPECIAL) {
        if (!(allowed = kopi__alloc(n))) return kopi__nomem(err, "tokenizing");
        memset(allowed, 1, n);
    }
    kopi_status r = encode(t, text, n, allowed, flags, true, ids, n_ids, cancelled, ctx, err);
    kopi__free(allowed);
    return r;
}

kopi_status kopi__tokenize_segments(const struct kopi_tokenizer *t, const struct kopi_segment *seg, size_t n_seg,
                                    unsigned flags, int32_t **ids, size_t *n_ids, int (*cancelled)(void *), void *ctx,
                                    kopi_error *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < n_seg; i++)
        if (!kopi__add(total, seg[i].len, &total)) return kopi__nomem(err, "tokenizing");
    char *text = kopi__alloc(total);
    unsigned char *allowed = kopi__alloc(total);
    kopi_status r = KOPI_E_NOMEM;
    if (text && allowed) {
        size_t at = 0;
        for (size_t i = 0; i < n_seg; at += seg[i++].len) {
            if (seg[i].len) memcpy(text + at, seg[i].text, seg[i].len);
            memset(allowed + at, seg[i].parse_special != 0, seg[i].len);
        }
        r = encode(t, text, total, allowed, flags, false, ids, n_ids, cancelled, ctx, err);
    } else kopi__nomem(err, "tokenizing");
    kopi__free(text);
    kopi__free(allowed);
    return r;
}

/* ---- the vocabulary ---------------------------------------------------------------------------------------------- */

int32_t kopi__n_vocab(const struct kopi_tokenizer *t) { return (int32_t)t->vocab.n; }
enum kopi_token_type kopi__token_type(const struct kopi_tokenizer *t, int32_t id) { return t->vocab.type[id]; }

const char *kopi__token_text(const struct kopi_tokenizer *t, int32_t id, size_t *n)
{
    *n = t->vocab.text[id].len;
    return t->vocab.text[id].data;
}

const char *kopi__token_bytes(const struct kopi_tokenizer *t, int32_t id, bool special, size_t *n)
{
    bool hidden = t->vocab.type[id] == KOPI_TOKEN_CONTROL || t->vocab.type[id] == KOPI_TOKEN_UNKNOWN;
    *n = hidden && !special ? 0 : t->vocab.bytes[id].len;
    return t->vocab.bytes[id].data;
}

int32_t kopi__token_find(const struct kopi_tokenizer *t, const char *text, size_t n)
{
    return kopi__vocab_find(&t->vocab, text, n);
}
int32_t kopi__bos(const struct kopi_tokenizer *t) { return t->vocab.bos; }
int32_t kopi__eos(const struct kopi_tokenizer *t) { return t->vocab.eos; }
bool kopi__adds_bos(const struct kopi_tokenizer *t) { return t->vocab.add_bos && t->vocab.bos >= 0; }
bool kopi__adds_space(const struct kopi_tokenizer *t) { return t->vocab.add_space_prefix; }
bool kopi__is_eog(const struct kopi_tokenizer *t, int32_t id)
{
    return id >= 0 && (uint32_t)id < t->vocab.n && t->vocab.eog[id];
}
