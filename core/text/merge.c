#include "text/merge.h"

#include "base/error.h"
#include "base/mem.h"

bool kopi__merger_add(struct kopi_merger *m, uint32_t pos, uint32_t len, int32_t id)
{
    if (m->n_symbols == m->cap_symbols) {
        size_t cap = m->cap_symbols ? m->cap_symbols * 2 : 256;
        struct kopi_symbol *more = kopi__realloc_array(m->symbols, cap, sizeof *more);
        if (!more) return false;
        m->symbols = more;
        m->cap_symbols = cap;
    }
    int32_t i = (int32_t)m->n_symbols++;
    m->symbols[i] = (struct kopi_symbol){i - 1, -1, pos, len, id};
    if (i) m->symbols[i - 1].next = i;
    return true;
}

/* a is merged before b. */
static bool before(const struct kopi_pair *a, const struct kopi_pair *b)
{
    return a->rank > b->rank || (a->rank == b->rank && a->left < b->left);
}

static void sift_up(struct kopi_pair *h, size_t i)
{
    struct kopi_pair p = h[i];
    for (; i && before(&p, &h[(i - 1) / 2]); i = (i - 1) / 2) h[i] = h[(i - 1) / 2];
    h[i] = p;
}

static void sift_down(struct kopi_pair *h, size_t n)
{
    struct kopi_pair p = h[0];
    size_t i = 0;
    for (size_t c; (c = 2 * i + 1) < n; i = c) {
        if (c + 1 < n && before(&h[c + 1], &h[c])) c++;
        if (!before(&h[c], &p)) break;
        h[i] = h[c];
    }
    h[i] = p;
}

static bool push(struct kopi_merger *m, const char *text, int32_t left, int32_t right)
{
    if (left < 0 || right < 0) return true;
    const struct kopi_symbol *a = &m->symbols[left], *b = &m->symbols[right];
    struct kopi_pair p = {.left = left, .right = right, .len = a->len + b->len};
    if (!m->pair(m->ctx, text, a, b, &p)) return true;
    if (m->n_heap == m->cap_heap) {
        size_t cap = m->cap_heap ? m->cap_heap * 2 : 256;
        struct kopi_pair *more = kopi__realloc_array(m->heap, cap, sizeof *more);
        if (!more) return false;
        m->heap = more;
        m->cap_heap = cap;
    }
    m->heap[m->n_heap++] = p;
    sift_up(m->heap, m->n_heap - 1);
    return true;
}

kopi_status kopi__merger_run(struct kopi_merger *m, const char *text, int (*cancelled)(void *), void *ctx,
                             kopi_error *err)
{
    m->n_heap = 0;
    for (size_t i = 1; i < m->n_symbols; i++)
        if (!push(m, text, (int32_t)i - 1, (int32_t)i)) return kopi__nomem(err, "tokenizing");
    for (unsigned steps = 0; m->n_heap; steps++) {
        if (cancelled && steps % 4096 == 4095 && cancelled(ctx))
            return kopi__fail(err, KOPI_E_CANCELLED, "tokenizing was cancelled");
        struct kopi_pair p = m->heap[0];
        m->heap[0] = m->heap[--m->n_heap];
        if (m->n_heap) sift_down(m->heap, m->n_heap);
        struct kopi_symbol *a = &m->symbols[p.left], *b = &m->symbols[p.right];
        if (!a->len || !b->len || a->next != p.right || a->len + b->len != p.len)
            continue; /* one of them has grown or gone */
        a->len = p.len;
        a->id = p.id;
        a->next = b->next;
        b->len = 0;
        if (a->next >= 0) m->symbols[a->next].prev = p.left;
        if (!push(m, text, a->prev, p.left) || !push(m, text, p.left, a->next)) return kopi__nomem(err, "tokenizing");
    }
    return KOPI_OK;
}

void kopi__merger_clear(struct kopi_merger *m)
{
    kopi__free(m->symbols);
    kopi__free(m->heap);
    m->symbols = NULL;
    m->heap = NULL;
    m->n_symbols = m->cap_symbols = m->n_heap = m->cap_heap = 0;
}
