/* core/gguf/split.h - models in several files: PREFIX-00001-of-0000N.gguf, numbered from 1. [any] */
#ifndef KOPI_CORE_GGUF_SPLIT_H
#define KOPI_CORE_GGUF_SPLIT_H

#include "gguf/reader.h"

struct kopi_gguf_split {
    const char *path;  /* of any part; lent */
    int prefix;        /* bytes of path before "-00001-of-" */
    uint32_t n;        /* parts; 1 if the name is not that of a part */
    uint64_t tensors;  /* of all parts, as the first one says */
};

struct kopi_gguf_split kopi__gguf_split_name(const char *path);
/* The path of part i, counted from 0; `path` itself if n is 1. To be freed; NULL when memory is short. */
char *kopi__gguf_split_path(const struct kopi_gguf_split *s, uint32_t i);
/* The keys split.* of a part, read in ascending order, against its name and the first part; after the last one the
 * number of tensors as well. */
kopi_status kopi__gguf_split_check(struct kopi_gguf_split *s, const struct kopi_gguf_reader *r);

#endif
