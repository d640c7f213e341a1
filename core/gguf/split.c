#include "gguf/split.h"

#include <stdio.h>
#include <string.h>

#define TAIL "-%05u-of-%05u.gguf"
enum { TAIL_LEN = sizeof "-00001-of-00002.gguf" - 1 };

struct kopi_gguf_split kopi__gguf_split_name(const char *path)
{
    struct kopi_gguf_split s = {path, 0, 1, 0};
    size_t len = strlen(path);
    unsigned no, n;
    char again[TAIL_LEN + 1];
    if (len <= TAIL_LEN || len > INT32_MAX) return s;
    const char *tail = path + len - TAIL_LEN;
    if (sscanf(tail, "-%5u-of-%5u", &no, &n) != 2 || !no || no > n) return s;
    snprintf(again, sizeof again, TAIL, no % 100000, n % 100000);
    if (strcmp(again, tail)) return s;
    s.prefix = (int)(len - TAIL_LEN);
    s.n = n;
    return s;
}

char *kopi__gguf_split_path(const struct kopi_gguf_split *s, uint32_t i)
{
    return s->n == 1 ? kopi__strdup(s->path) : kopi__asprintf("%.*s" TAIL, s->prefix, s->path, i + 1, s->n);
}

/* Metadata of a file that is not named as a part. */
static kopi_status check_single(const struct kopi_gguf_reader *r)
{
    unsigned long long count = r->own[KOPI__GGUF_SPLIT_COUNT], no = r->own[KOPI__GGUF_SPLIT_NO] + 1;
    if (!r->has[KOPI__GGUF_SPLIT_COUNT] || count == 1) return KOPI_OK;
    return kopi__gguf_fail(r, "is part %llu of %llu of a split model and has to be named ...-%05llu-of-%05llu.gguf", no,
                           count, no, count);
}

static kopi_status check_total(const struct kopi_gguf_split *s, const struct kopi_gguf_reader *r)
{
    if (r->has[KOPI__GGUF_SPLIT_TENSORS] && r->own[KOPI__GGUF_SPLIT_TENSORS] != s->tensors)
        return kopi__gguf_fail(r, "key \"split.tensors.count\" is %llu, the first part has %llu",
                               (unsigned long long)r->own[KOPI__GGUF_SPLIT_TENSORS], (unsigned long long)s->tensors);
    if (r->part + 1 == s->n && r->g->n_entries != s->tensors)
        return kopi__gguf_fail(r, "key \"split.tensors.count\" is %llu, but the %u parts hold %llu tensors",
                               (unsigned long long)s->tensors, s->n, (unsigned long long)r->g->n_entries);
    return KOPI_OK;
}

kopi_status kopi__gguf_split_check(struct kopi_gguf_split *s, const struct kopi_gguf_reader *r)
{
    if (s->n == 1) return check_single(r);
    if (!r->has[KOPI__GGUF_SPLIT_COUNT] || !r->has[KOPI__GGUF_SPLIT_NO])
        return kopi__gguf_fail(r, "is named as a part of a split model, but key \"split.%s\" is missing",
                               r->has[KOPI__GGUF_SPLIT_COUNT] ? "no" : "count");
    if (r->own[KOPI__GGUF_SPLIT_COUNT] != s->n)
        return kopi__gguf_fail(r, "is one of %u parts by its name, but key \"split.count\" is %llu", s->n,
                               (unsigned long long)r->own[KOPI__GGUF_SPLIT_COUNT]);
    if (r->own[KOPI__GGUF_SPLIT_NO] != r->part)
        return kopi__gguf_fail(r, "is part %u by its name, but key \"split.no\" is %llu (counted from 0)", r->part + 1,
                               (unsigned long long)r->own[KOPI__GGUF_SPLIT_NO]);
    if (!r->part && !r->has[KOPI__GGUF_SPLIT_TENSORS])
        return kopi__gguf_fail(r, "key \"split.tensors.count\" is missing");
    if (!r->part) s->tensors = r->own[KOPI__GGUF_SPLIT_TENSORS];
    return check_total(s, r);
}
