#include "gguf/reader.h"

/* Both hashes point into the arrays, which don't move any more. */

static kopi_status twice(const struct kopi_gguf *g, uint32_t a, uint32_t b, const char *what, struct kopi_gguf_str s,
                         kopi_error *err)
{
    if (a == b)
        return kopi__fail(err, KOPI_E_MODEL, "%s: %s \"%.*s\" appears twice", g->parts[a].path, what,
                          KOPI__GGUF_SHOW(s));
    return kopi__fail(err, KOPI_E_MODEL, "%s: %s \"%.*s\" is already in %s", g->parts[b].path, what, KOPI__GGUF_SHOW(s),
                      g->parts[a].path);
}

static kopi_status index_keys(struct kopi_gguf *g, kopi_error *err)
{
    bool oom = false;
    for (uint64_t i = 0; i < g->n_keys; i++) {
        struct kopi_gguf_key *k = &g->keys[i], *other;
        unsigned n = (unsigned)k->kv.key.len;
        HASH_FIND(hh, g->key_index, k->kv.key.data, n, other);
        if (other) return twice(g, other->part, k->part, "key", k->kv.key, err);
        HASH_ADD_KEYPTR(hh, g->key_index, k->kv.key.data, n, k);
        if (oom) return kopi__nomem(err, "the metadata of a model");
    }
    return KOPI_OK;
}

static kopi_status index_tensors(struct kopi_gguf *g, kopi_error *err)
{
    bool oom = false;
    for (uint64_t i = 0; i < g->n_entries; i++) {
        struct kopi_gguf_entry *e = &g->entries[i], *other;
        e->tensor.name = e->name; /* the array may have moved since */
        struct kopi_gguf_str name = {e->name, strlen(e->name)};
        HASH_FIND(hh, g->entry_index, name.data, (unsigned)name.len, other);
        if (other) return twice(g, other->tensor.part, e->tensor.part, "tensor", name, err);
        HASH_ADD_KEYPTR(hh, g->entry_index, e->name, (unsigned)name.len, e);
        if (oom) return kopi__nomem(err, "the tensor directory of a model");
    }
    return KOPI_OK;
}

kopi_status kopi__gguf_index(struct kopi_gguf *g, kopi_error *err)
{
    kopi_status st = index_keys(g, err);
    return st == KOPI_OK ? index_tensors(g, err) : st;
}

void kopi__gguf_index_free(struct kopi_gguf *g)
{
    HASH_CLEAR(hh, g->key_index);
    HASH_CLEAR(hh, g->entry_index);
}

const struct kopi_gguf_kv *kopi__gguf_find(const struct kopi_gguf *g, const char *key)
{
    struct kopi_gguf_key *k;
    HASH_FIND(hh, g->key_index, key, (unsigned)strlen(key), k);
    return k ? &k->kv : NULL;
}

const struct kopi_gguf_tensor *kopi__gguf_tensor(const struct kopi_gguf *g, const char *name)
{
    struct kopi_gguf_entry *e;
    HASH_FIND(hh, g->entry_index, name, (unsigned)strlen(name), e);
    return e ? &e->tensor : NULL;
}
