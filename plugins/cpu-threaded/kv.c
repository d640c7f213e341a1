#include "kv.h"

#include <string.h>

void kt_kv_part(struct kt_kv_part *part, const kopi_program *p, int32_t tensor, uint32_t n_heads, uint32_t head_dim)
{
    const kopi_tensor *t = kopi_tensor_at(p, tensor);
    part->group = kopi_group_at(p, t->group);
    part->group_index = t->group;
    part->n_heads = n_heads;
    part->head_dim = head_dim;
    part->page_len = part->group->page_len;
    part->f16 = t->dtype == KOPI_DTYPE_F16;
    part->off = t->off;
    part->head_bytes = (uint64_t)part->page_len * head_dim * (part->f16 ? 2 : 4);
}

static bool part_fits(const kopi_program *p, int32_t tensor, uint32_t n_heads, uint32_t head_dim)
{
    const kopi_tensor *t = tensor >= 0 ? kopi_tensor_at(p, tensor) : NULL;
    if (!t || (t->dtype != KOPI_DTYPE_F16 && t->dtype != KOPI_DTYPE_F32) || t->group >= p->n_groups) return false;
    return n_heads && head_dim && t->dim[0].n == (int64_t)n_heads * head_dim &&
           kopi_group_at(p, t->group)->page_len % KT_LANES == 0;
}

bool kt_kv_fits(const kopi_program *p, const kopi_op *op)
{
    if (op->op == KOPI_OP_KV_WRITE) {
        const kopi_kv_write_params *w = op->params;
        return part_fits(p, op->out[0], w->n_kv_heads, w->head_dim_k) &&
               part_fits(p, op->out[1], w->n_kv_heads, w->head_dim_v) &&
               kopi_tensor_at(p, op->out[0])->group == kopi_tensor_at(p, op->out[1])->group;
    }
    const kopi_attn_params *a = op->params;
    return part_fits(p, op->in[1], a->n_kv_heads, a->head_dim_k) &&
           part_fits(p, op->in[2], a->n_kv_heads, a->head_dim_v) && a->n_heads % a->n_kv_heads == 0;
}

/* ---- to and from the canonical page ------------------------------------------------------------------------------ */

/* Byte offset of one element inside the part: private layout. */
static uint64_t private_at(const struct kt_kv_part *t, bool key, uint32_t head, uint32_t pos, uint32_t d)
{
    uint64_t i = key ? ((uint64_t)(pos / KT_LANES) * t->head_dim + d) * KT_LANES + pos % KT_LANES
                     : (uint64_t)pos * t->head_dim + d;
    return head * t->head_bytes + i * (t->f16 ? 2 : 4);
}

static void convert(const struct kt_kv_part *t, bool key, char *private, char *canonical, bool to_canonical)
{
    size_t size = t->f16 ? 2 : 4;
    for (uint32_t pos = 0; pos < t->page_len; pos++)
        for (uint32_t h = 0; h < t->n_heads; h++)
            for (uint32_t d = 0; d < t->head_dim; d++) {
                char *a = private + t->off + private_at(t, key, h, pos, d);
                char *b = canonical + t->off + (((uint64_t)pos * t->n_heads + h) * t->head_dim + d) * size;
                if (to_canonical)
                    memcpy(b, a, size);
                else
                    memcpy(a, b, size);
            }
}

/* Every part of the group's pages has one KV_WRITE. */
static kopi_status convert_page(const kopi_program *p, uint32_t group, int32_t page, char *canonical, bool to_canonical)
{
    const kopi_kv_group *g = kopi_group_at(p, group);
    char *private = (char *)g->base + (uint64_t)page * g->page_bytes;
    for (uint32_t i = 0; i < p->n_ops; i++) {
        const kopi_op *op = kopi_op_at(p, i);
        if (op->op != KOPI_OP_KV_WRITE || kopi_tensor_at(p, op->out[0])->group != group) continue;
        const kopi_kv_write_params *w = op->params;
        struct kt_kv_part k, v;
        kt_kv_part(&k, p, op->out[0], w->n_kv_heads, w->head_dim_k);
        kt_kv_part(&v, p, op->out[1], w->n_kv_heads, w->head_dim_v);
        convert(&k, true, private, canonical, to_canonical);
        convert(&v, false, private, canonical, to_canonical);
    }
    return KOPI_OK;
}

kopi_status kt_kv_export(void *be, const kopi_program *p, uint32_t group, int32_t page, void *canonical)
{
    (void)be;
    return convert_page(p, group, page, canonical, true);
}

kopi_status kt_kv_import(void *be, const kopi_program *p, uint32_t group, int32_t page, const void *canonical)
{
    (void)be;
    return convert_page(p, group, page, (char *)(uintptr_t)canonical, false);
}
