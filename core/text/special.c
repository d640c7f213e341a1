#include "text/special.h"

#include "base/error.h"
#include "base/mem.h"
#include <stdlib.h>

typedef struct kopi_special_match match;

static bool is_special(const struct kopi_vocab *v, uint32_t i)
{
    return (v->type[i] == KOPI_TOKEN_CONTROL || v->type[i] == KOPI_TOKEN_UNKNOWN ||
            v->type[i] == KOPI_TOKEN_USER_DEFINED) &&
           v->text[i].len;
}

static uint32_t child_of(const struct kopi_specials *s, uint32_t node, unsigned char byte)
{
    uint32_t c = s->nodes[node].child;
    while (c && s->nodes[c].byte != byte) c = s->nodes[c].sibling;
    return c;
}

static uint32_t add_node(struct kopi_specials *s, unsigned char byte, uint32_t sibling)
{
    s->nodes[s->n] = (struct kopi_special_node){.sibling = sibling, .id = -1, .byte = byte};
    return s->n++;
}

static void insert(struct kopi_specials *s, struct kopi_piece text, int32_t id)
{
    const unsigned char *p = (const unsigned char *)text.data;
    uint32_t node = s->root[p[0]];
    if (!node) node = s->root[p[0]] = add_node(s, p[0], 0);
    for (uint32_t i = 1, next; i < text.len; i++, node = next) {
        next = child_of(s, node, p[i]);
        if (!next) next = s->nodes[node].child = add_node(s, p[i], s->nodes[node].child);
    }
    if (s->nodes[node].id < 0) s->nodes[node].id = id;
}

/* At every byte of a text as many may be compared. */
enum { SPECIAL_MAX = 256 };

kopi_status kopi__specials_new(const struct kopi_vocab *v, struct kopi_specials *out, kopi_error *err)
{
    uint64_t most = 1;
    *out = (struct kopi_specials){.n = 1};
    for (uint32_t i = 0; i < v->n; i++) {
        if (!is_special(v, i)) continue;
        if (v->text[i].len > SPECIAL_MAX)
            return kopi__fail(err, KOPI_E_MODEL,
                              "tokenizer.ggml.tokens: special token %u has %u bytes; at most %d are read", i,
                              v->text[i].len, SPECIAL_MAX);
        most += v->text[i].len;
    }
    if (most > UINT32_MAX) return kopi__fail(err, KOPI_E_MODEL, "the texts of special tokens have over 4 GiB together");
    out->nodes = kopi__realloc_array(NULL, most, sizeof *out->nodes);
    if (!out->nodes) return kopi__nomem(err, "special tokens");
    for (uint32_t i = 0; i < v->n; i++)
        if (is_special(v, i)) insert(out, v->text[i], (int32_t)i);
    return KOPI_OK;
}

void kopi__specials_clear(struct kopi_specials *s)
{
    kopi__free(s->nodes);
    s->nodes = NULL;
}

/* The longest token of at most `most` bytes that stands at pos; len 0: none. */
static match longest(const struct kopi_specials *s, const struct kopi_vocab *v, const char *text, size_t n, size_t pos,
                     size_t most, const unsigned char *allowed)
{
    match m = {.pos = pos, .id = -1};
    uint32_t node = s->root[(unsigned char)text[pos]];
    bool free_so_far = allowed != NULL; /* control tokens may stand on the bytes up to here */
    if (most > n - pos) most = n - pos;
    for (size_t depth = 1; node; depth++) {
        int32_t id = s->nodes[node].id;
        free_so_far = free_so_far && allowed[pos + depth - 1];
        if (id >= 0 && (free_so_far || v->type[id] == KOPI_TOKEN_USER_DEFINED)) {
            m.len = (uint32_t)depth;
            m.id = id;
        }
        if (depth >= most) break;
        node = child_of(s, node, (unsigned char)text[pos + depth]);
    }
    return m;
}

/* ---- a heap of candidates, one for each position: longer ones first, then lower ids, then from the left ---------- */

static bool before(const match *a, const match *b)
{
    if (a->len != b->len) return a->len > b->len;
    return a->id != b->id ? a->id < b->id : a->pos < b->pos;
}

static void sift_down(match *h, size_t n, size_t i)
{
    match m = h[i];
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(&h[c + 1], &h[c])) c++;
        if (!before(&h[c], &m)) break;
        h[i] = h[c];
    }
    h[i] = m;
}

/* Bytes from m.pos on that no accepted match has taken, at most m.len. */
static uint32_t room(const match *m, const unsigned char *taken)
{
    uint32_t k = 0;
    while (k < m->len && !taken[m->pos + k]) k++;
    return k;
}

static int by_position(const void *a, const void *b)
{
    const match *x = a, *y = b;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

struct found {
    match *at;
    size_t n, cap;
};

static bool add_match(struct found *f, match m)
{
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 64;
        match *more = kopi__realloc_array(f->at, cap, sizeof *more);
        if (!more) return false;
        f->at = more;
        f->cap = cap;
    }
    f->at[f->n++] = m;
    return true;
}

kopi_status kopi__specials_find(const struct kopi_specials *s, const struct kopi_vocab *v, const char *text, size_t n,
                                const unsigned char *allowed, struct kopi_special_match **out, size_t *n_out,
                                kopi_error *err)
{
    struct found heap = {0}, kept = {0};
    unsigned char *taken = NULL;
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++) {
        match m = longest(s, v, text, n, i, n, allowed);
        if (m.len) ok = add_match(&heap, m);
    }
    if (ok && heap.n) ok = (taken = kopi__calloc(n, 1)) != NULL;
    for (size_t i = heap.n / 2; ok && i-- > 0;) sift_down(heap.at, heap.n, i);
    while (ok && heap.n) {
        match *top = heap.at, m = *top;
        uint32_t k = room(&m, taken);
        if (k == m.len) {
            for (uint32_t i = 0; i < k; i++) taken[m.pos + i] = 1;
            ok = add_match(&kept, m);
        }
        *top = k && k < m.len ? longest(s, v, text, n, m.pos, k, allowed) : (match){0};
        if (!top->len) *top = heap.at[--heap.n];
        if (heap.n) sift_down(heap.at, heap.n, 0);
    }
    kopi__free(heap.at);
    kopi__free(taken);
    if (!ok) {
        kopi__free(kept.at);
        return kopi__nomem(err, "tokenizing");
    }
    if (kept.n) qsort(kept.at, kept.n, sizeof *kept.at, by_position);
    *out = kept.at;
    *n_out = kept.n;
    return KOPI_OK;
}
