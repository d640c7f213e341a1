/* plugins/cpu-threaded/graph.h - the program as nodes that make values: every output of an operation is a value of its
 * own, so that "in place" is a matter of where values are put (schedule.c), not of order.
 *
 * Two rewrites happen here. LINEAR with F32 input gets a PACK node (the kernels' layout), shared by all that read the
 * same value. And GATHER is moved up: what only feeds wanted rows is computed for the wanted rows only, back to the
 * last layer's attention; a node on wanted rows that reads a value with a row per token takes the row of its token. */
#ifndef KT_GRAPH_H
#define KT_GRAPH_H

#include "kv.h"

enum { KT_NODE_PACK = KOPI_OP_END_, KT_NODE_KINDS }; /* beside KOPI_OP_* */

struct kt_value {
    int32_t tensor, node;  /* of the program; the node that makes it, -1: from outside */
    uint32_t n, act_dtype; /* F32 elements of a row; or elements of a row quantized to, packed as act_dtype */
    bool act;              /* in the layout of kt_act */
    bool wanted;           /* a row per wanted row, else per token */
    bool outside;          /* also used outside this plan: lives at the tensor's address */
    int32_t output;        /* of the run, or -1 */
};

struct kt_node {
    uint32_t kind;                 /* KOPI_OP_* or KT_NODE_PACK */
    const kopi_op *op;             /* PACK: the LINEAR that asked first */
    int32_t in[2], out;            /* values, -1: none. KV_WRITE: k, v; ATTN: q; GLU: gate, up; ADD: a, b; else x */
    bool wanted;                   /* works on wanted rows */
    bool gone;                     /* GATHER that became a name for its input */
    const struct kt_weight *weight;/* LINEAR; EMBED from a repacked weight, else NULL */
    const struct kt_linear *kernel;/* EMBED of rows as in the file: repacks and unpacks one at a time */
    const void *data;              /* EMBED: those rows; ROPE: table */
    int64_t data_stride;           /* bytes from row to row of data */
    const float *weight_f32, *bias;/* NORM; LINEAR: bias */
    kt_quantize_fn quantize;       /* QUANTIZE, PACK */
    struct kt_kv_part k, v;        /* KV_WRITE, ATTN */
    int32_t kv_tensor;             /* index of the K tensor: names the part */
};

struct kt_graph {
    const kopi_program *prog;
    struct kt_node *nodes;
    struct kt_value *values;
    uint32_t n_nodes, n_values;
    bool outside;                  /* some value lives outside */
};

kopi_status kt_graph_make(struct kt *kt, const kopi_program *p, uint32_t first_op, uint32_t n_ops,
                          struct kt_graph *g);         /* [load] */
void kt_graph_free(struct kt *kt, struct kt_graph *g); /* [load] also of a half-made one */

#endif
