#include "text/special.h"

#include "base/error.h"
#include "base/mem.h"
#include <stdlib.h>
#include <string.h>

static int compare(struct kopi_piece a, struct kopi_piece b)
{
    int c = memcmp(a.data, b.data, a.len < b.len ? a.len : b.len);
    return c ? c : a.len < b.len ? -1 : a.len > b.len;
}

static int by_text(const void *a, const void *b, void *ctx)
{
    const struct kopi_vocab *v = ctx;
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    int c = compare(v->text[x], v->text[y]);
    return c ? c : x < y ? -1 : 1;
}

static bool is_special(const struct kopi_vocab *v, uint32_t i)
{
    return (v->type[i] == KOPI_TOKEN_CONTROL || v->type[i] == KOPI_TOKEN_UNKNOWN || v->type[i] == KOPI_TOKEN_USER_DEFINED) && v->text[i].len;
}

kopi_status kopi__specials_new(const struct kopi_vocab *v, struct kopi_specials *out, kopi_error *err)
{
    *out = (struct kopi_specials){0};
    for (uint32_t i = 0; i < v->n; i++) out->n += is_special(v, i);
    out->ids = kopi__calloc(out->n, sizeof *out->ids);
    if (!out->ids) return kopi__nomem(err, "special tokens");
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->n; i++)
        if (is_special(v, i)) out->ids[n++] = (int32_t)i;
    qsort_r(out->ids, n, sizeof *out->ids, by_text, (void *)(uintptr_t)v);
    for (uint32_t b = 0, i = 0; b <= 256; b++) {
        while (i < n && (unsigned char)v->text[out->ids[i]].data[0] < b) i++;
        out->first[b] = i;
    }
    return KOPI_OK;
}

void kopi__specials_clear(struct kopi_specials *s)
{
    kopi__free(s->ids);
    s->ids = NULL;
}

struct found { struct kopi_special_match *at; size_t n, cap; };

static bool add_match(struct found *f, size_t pos, uint32_t len, int32_t id)
{
    if (f->n == f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 64;
        struct kopi_special_match *more = kopi__realloc_array(f->at, cap, sizeof *more);
        if (!more) return false;
        f->at = more;
        f->cap = cap;
    }
    f->at[f->n++] = (struct kopi_special_match){pos, len, id};
    return true;
}

/* End of the range of ids[lo .. hi) whose byte `depth` is at most c (upper) or below c (lower). */
static uint32_t bound(const struct kopi_specials *s, const struct kopi_vocab *v, uint32_t lo, uint32_t hi, uint32_t depth, int c)
{
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        struct kopi_piece t = v->text[s->ids[mid]];
        int b = depth < t.len ? (unsigned char)t.data[depth] : -1;
        if (b < c) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* All tokens that stand at pos, by narrowing the sorted range byte by byte. */
static bool match_at(const struct kopi_specials *s, const struct kopi_vocab *v, const char *text, size_t n, size_t pos,
                     const unsigned char *allowed, struct found *f)
{
    unsigned char c = (unsigned char)text[pos];
    uint32_t lo = s->first[c], hi = s->first[c + 1];
    size_t free_len = 0; /* bytes from pos on where control tokens may stand */
    for (uint32_t depth = 1; lo < hi; depth++) {
        if (allowed && free_len == depth - 1 && allowed[pos + depth - 1]) free_len = depth;
        int32_t id = s->ids[lo];
        if (v->text[id].len == depth) { /* shortest text first in the range */
            bool everywhere = v->type[id] == KOPI_TOKEN_USER_DEFINED;
            if ((everywhere || free_len >= depth) && !add_match(f, pos, depth, id)) return false;
            lo = bound(s, v, lo, hi, depth, 0);
        }
        if (pos + depth >= n) break;
        c = (unsigned char)text[pos + depth];
        lo = bound(s, v, lo, hi, depth, c);
        hi = bound(s, v, lo, hi, depth, c + 1);
    }
    return true;
}

static int by_length(const void *a, const void *b)
{
    const struct kopi_special_match *x = a, *y = b;
    if (x->len != y->len) return x->len > y->len ? -1 : 1;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

static int by_position(const void *a, const void *b)
{
    const struct kopi_special_match *x = a, *y = b;
    return x->pos < y->pos ? -1 : x->pos > y->pos;
}

/* Keeps those that overlap none taken before; taken is a bitmap of bytes. */
static size_t accept(struct found *f, unsigned char *taken)
{
    size_t kept = 0;
    qsort(f->at, f->n, sizeof *f->at, by_length);
    for (size_t i = 0; i < f->n; i++) {
        struct kopi_special_match m = f->at[i];
        /* Matches come by falling length, so one that was taken before and overlaps covers one of the two ends. */
        if (taken[m.pos] || taken[m.pos + m.len - 1]) continue;
        memset(taken + m.pos, 1, m.len);
        f->at[kept++] = m;
    }
    qsort(f->at, kept, sizeof *f->at, by_position);
    return kept;
}

kopi_status kopi__specials_find(const struct kopi_specials *s, const struct kopi_vocab *v, const char *text, size_t n,
                                const unsigned char *allowed, struct kopi_special_match **out, size_t *n_out, kopi_error *err)
{
    struct found f = {0};
    bool ok = true;
    *out = NULL;
    *n_out = 0;
    for (size_t i = 0; i < n && ok && s->n; i++) ok = match_at(s, v, text, n, i, allowed, &f);
    if (ok && f.n) {
        unsigned char *taken = kopi__calloc(n, 1);
        ok = taken != NULL;
        if (ok) f.n = accept(&f, taken);
        kopi__free(taken);
    }
    if (!ok) {
        kopi__free(f.at);
        return kopi__nomem(err, "tokenizing");
    }
    *out = f.at;
    *n_out = f.n;
    return KOPI_OK;
}
