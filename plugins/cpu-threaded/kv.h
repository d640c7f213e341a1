/* plugins/cpu-threaded/kv.h - the private layout of KV pages. Same bytes and the same parts as the canonical page of
 * kopi/op.h; inside a part the heads lie one after the other:
 *   K part: [n_kv_heads][page_len / 16][head_dim_k][16 positions]     V part: [n_kv_heads][page_len][head_dim_v] */
#ifndef KT_KV_H
#define KT_KV_H

#include "threaded.h"

/* Where the K or V part of one layer lies. */
struct kt_kv_part {
    const kopi_kv_group *group;
    uint32_t group_index, n_heads, head_dim;
    uint32_t page_len;
    bool f16;
    uint64_t off;        /* of the part in the page */
    uint64_t head_bytes; /* of one head in the part */
};
void kt_kv_part(struct kt_kv_part *part, const kopi_program *p, int32_t tensor, uint32_t n_heads, uint32_t head_dim);

/* Address of the 16 positions that hold `pos` (K: [head_dim][16], V: [16][head_dim]); NULL if the sequence has no page
 * there. [worker] */
static inline char *kt_kv_lanes(const struct kt_kv_part *part, const kopi_seq_run *seq, uint32_t head, uint32_t pos)
{
    int32_t page = seq->pages[part->group_index][pos / part->page_len];
    uint64_t lanes = pos % part->page_len / KT_LANES, bytes = (uint64_t)KT_LANES * part->head_dim * (part->f16 ? 2 : 4);
    if (page < 0) return NULL;
    return (char *)part->group->base + (uint64_t)page * part->group->page_bytes + part->off + head * part->head_bytes +
           lanes * bytes;
}

/* Whether the layout can hold the groups that op (KV_WRITE or ATTN) uses. */
bool kt_kv_fits(const kopi_program *p, const kopi_op *op);

kopi_status kt_kv_export(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical); /* [load] */
kopi_status kt_kv_import(void *be, const kopi_program *p, uint32_t group, int32_t page,
                         const void *canonical); /* [load] */

#endif
