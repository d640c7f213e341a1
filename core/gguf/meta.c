#include "gguf/reader.h"

#include "gguf/value.h"

static const char *const own_keys[KOPI__GGUF_N_OWN] = {
    [KOPI__GGUF_ALIGNMENT] = "general.alignment",
    [KOPI__GGUF_SPLIT_NO] = "split.no",
    [KOPI__GGUF_SPLIT_COUNT] = "split.count",
    [KOPI__GGUF_SPLIT_TENSORS] = "split.tensors.count",
};

static kopi_status read_key(struct kopi_gguf_reader *r, uint64_t i, struct kopi_gguf_str *key)
{
    if (!kopi__gguf_read_str(&r->at, key))
        return kopi__gguf_fail(r, "key %llu of %llu runs past the end of the file", (unsigned long long)i + 1,
                               (unsigned long long)r->n_kv);
    if (!key->len) return kopi__gguf_fail(r, "key %llu is empty", (unsigned long long)i + 1);
    if (key->len > KOPI__GGUF_MAX_KEY)
        return kopi__gguf_fail(r, "key %llu has %llu bytes, at most %d are allowed", (unsigned long long)i + 1,
                               (unsigned long long)key->len, KOPI__GGUF_MAX_KEY);
    if (memchr(key->data, 0, key->len))
        return kopi__gguf_fail(r, "key %llu (\"%.*s\"...) contains a zero byte", (unsigned long long)i + 1,
                               KOPI__GGUF_SHOW(*key));
    return KOPI_OK;
}

static kopi_status past_end(const struct kopi_gguf_reader *r, const struct kopi_gguf_kv *kv)
{
    return kopi__gguf_fail(r, "the value of key \"%.*s\" (%llu x %s) runs past the end of the file",
                           KOPI__GGUF_SHOW(kv->key), (unsigned long long)kv->n, kopi__gguf_type_name(kv->elem_type));
}

/* type, elem_type and n. */
static kopi_status read_type(struct kopi_gguf_reader *r, struct kopi_gguf_kv *kv)
{
    kv->n = 1;
    if (!kopi__gguf_read_u32(&r->at, &kv->type)) return past_end(r, kv);
    kv->elem_type = kv->type;
    if (kv->type == KOPI_GGUF_ARRAY) {
        if (!kopi__gguf_read_u32(&r->at, &kv->elem_type) || !kopi__gguf_read_u64(&r->at, &kv->n))
            return past_end(r, kv);
        if (kv->elem_type == KOPI_GGUF_ARRAY)
            return kopi__gguf_fail(r, "key \"%.*s\" is an array of arrays, which is not supported",
                                   KOPI__GGUF_SHOW(kv->key));
    }
    if (kv->elem_type >= KOPI_GGUF_N_TYPES)
        return kopi__gguf_fail(r, "key \"%.*s\" has the unknown value type %u", KOPI__GGUF_SHOW(kv->key),
                               kv->elem_type);
    return KOPI_OK;
}

static kopi_status skip_strings(struct kopi_gguf_reader *r, const struct kopi_gguf_kv *kv)
{
    struct kopi_gguf_str s;
    for (uint64_t i = 0; i < kv->n; i++)
        if (!kopi__gguf_read_str(&r->at, &s)) return past_end(r, kv);
    return KOPI_OK;
}

static kopi_status check_bools(const struct kopi_gguf_reader *r, const struct kopi_gguf_kv *kv)
{
    for (uint64_t i = 0; i < kv->n; i++)
        if (kv->value[i] > 1)
            return kopi__gguf_fail(r, "key \"%.*s\" holds the bool %u, it must be 0 or 1", KOPI__GGUF_SHOW(kv->key),
                                   kv->value[i]);
    return KOPI_OK;
}

static kopi_status read_value(struct kopi_gguf_reader *r, struct kopi_gguf_kv *kv)
{
    kopi_status st = read_type(r, kv);
    if (st != KOPI_OK) return st;
    kv->value = r->at.p;
    uint64_t size = kopi__gguf_type_size(kv->elem_type);
    if (!size)
        st = skip_strings(r, kv);
    else if (!kopi__mul(kv->n, size, &size) || !kopi__gguf_skip(&r->at, size))
        st = past_end(r, kv);
    else if (kv->elem_type == KOPI_GGUF_BOOL)
        st = check_bools(r, kv);
    kv->value_size = (uint64_t)(r->at.p - kv->value);
    return st;
}

/* Fills r->own if the key is one of those; *own says whether. */
static kopi_status take_own(struct kopi_gguf_reader *r, const struct kopi_gguf_kv *kv, bool *own)
{
    size_t i = 0;
    while (i < KOPI__GGUF_N_OWN &&
           (strlen(own_keys[i]) != kv->key.len || memcmp(own_keys[i], kv->key.data, kv->key.len)))
        i++;
    *own = i < KOPI__GGUF_N_OWN;
    if (!*own) return KOPI_OK;
    if (r->has[i]) return kopi__gguf_fail(r, "key \"%s\" appears twice", own_keys[i]);
    if (kv->type == KOPI_GGUF_ARRAY || !kopi__gguf_get_u64(kv, 0, &r->own[i]))
        return kopi__gguf_fail(r, "key \"%s\" is not a natural number (its type is %s)", own_keys[i],
                               kopi__gguf_type_name(kv->type));
    r->has[i] = true;
    if (i != KOPI__GGUF_ALIGNMENT) return KOPI_OK;
    uint64_t a = r->own[i];
    if (kv->type != KOPI_GGUF_U32)
        return kopi__gguf_fail(r, "key \"%s\" has type %s, it must be u32", own_keys[i],
                               kopi__gguf_type_name(kv->type));
    if (a < KOPI__GGUF_MIN_ALIGNMENT || a > KOPI__GGUF_MAX_ALIGNMENT || (a & (a - 1)))
        return kopi__gguf_fail(r, "key \"%s\" is %llu, it must be a power of two from %d to %d", own_keys[i],
                               (unsigned long long)a, KOPI__GGUF_MIN_ALIGNMENT, KOPI__GGUF_MAX_ALIGNMENT);
    return KOPI_OK;
}

kopi_status kopi__gguf_read_meta(struct kopi_gguf_reader *r)
{
    struct kopi_gguf *g = r->g;
    struct kopi_gguf_key *keys = kopi__realloc_array(g->keys, g->n_keys + r->n_kv, sizeof *keys);
    if (!keys) return kopi__nomem(r->err, "the metadata of a model");
    g->keys = keys;
    r->own[KOPI__GGUF_ALIGNMENT] = KOPI__GGUF_DEFAULT_ALIGNMENT;
    for (uint64_t i = 0; i < r->n_kv; i++) {
        struct kopi_gguf_key *k = &keys[g->n_keys];
        *k = (struct kopi_gguf_key){.part = r->part};
        bool own = false;
        kopi_status st = read_key(r, i, &k->kv.key);
        if (st == KOPI_OK) st = read_value(r, &k->kv);
        if (st == KOPI_OK) st = take_own(r, &k->kv, &own);
        if (st != KOPI_OK) return st;
        if (!own || !r->part) g->n_keys++;
    }
    return KOPI_OK;
}
