#include "model/build.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "model/rope.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct builder {
    const struct kopi_gguf *g;
    const struct kopi_decoder *d;
    const struct kopi_build *o;
    struct kopi__program *p;
    kopi_error *err;
    kopi_status status;                 /* first failure that has a message */
    uint32_t layer, group;
    int32_t rope_full, rope_local;      /* tables */
    /* Quantized forms of the last input, shared by the weights that read it. */
    int32_t quantized_of, quantized[2]; /* A8_32, A8_256; -1: not made yet */
};

/* ---- tensors of the file ----------------------------------------------------------------------------------------- */

static const struct kopi_gguf_tensor *fail_tensor(struct builder *b, const char *name, const char *fmt, ...)
{
    if (b->status == KOPI_OK) {
        char text[512];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        b->status = kopi__fail(b->err, KOPI_E_MODEL, "%s: tensor %s %s", kopi__gguf_path(b->g), name, text);
    }
    return NULL;
}

static bool is_integer_or_double(uint32_t dtype)
{
    return dtype == KOPI_DTYPE_I8 || dtype == KOPI_DTYPE_I16 || dtype == KOPI_DTYPE_I32 || dtype == KOPI_DTYPE_I64 ||
           dtype == KOPI_DTYPE_F64;
}

/* Tensor of shape [ne0, ne1] (ne1 0: a vector, F32). NULL with a failure recorded if it is missing (and required) or
 * wrong. */
static const struct kopi_gguf_tensor *find(struct builder *b, const char *name, int64_t ne0, int64_t ne1, bool required)
{
    const struct kopi_gguf_tensor *t = kopi__gguf_tensor(b->g, name);
    char have[96], want[96];
    int64_t ne[2] = {ne0, ne1};
    uint32_t n_dims = ne1 ? 2 : 1;
    if (b->status != KOPI_OK) return NULL;
    if (!t) return required ? fail_tensor(b, name, "is missing") : NULL;
    if (t->n_dims != n_dims || t->ne[0] != ne0 || (ne1 && t->ne[1] != ne1))
        return fail_tensor(b, name, "is %s, expected %s", kopi__dims_text(t->ne, t->n_dims, have, sizeof have),
                           kopi__dims_text(ne, n_dims, want, sizeof want));
    if (!ne1 && t->dtype != KOPI_DTYPE_F32)
        return fail_tensor(b, name, "has type %u, a norm or bias must be F32", t->dtype);
    if (is_integer_or_double(t->dtype)) return fail_tensor(b, name, "has type %u, which is no weight type", t->dtype);
    return t;
}

static int32_t weight(struct builder *b, const char *name, int64_t ne0, int64_t ne1, bool required)
{
    const struct kopi_gguf_tensor *t = find(b, name, ne0, ne1, required);
    return t ? kopi__tensor_weight(b->p, t) : -1;
}

/* "blk.3.attn_q" + ".weight" */
static const char *name_of(const struct builder *b, const char *part, const char *suffix, char buf[96])
{
    if (b->layer == UINT32_MAX)
        snprintf(buf, 96, "%s%s", part, suffix);
    else
        snprintf(buf, 96, "blk.%u.%s%s", b->layer, part, suffix);
    return buf;
}

/* ---- one function per operation ---------------------------------------------------------------------------------- */

#define OP(b, op, in, out, params)                                                                                     \
    kopi__program_op((b)->p, op, (b)->layer, in, sizeof(in) / sizeof *(in), out, sizeof(out) / sizeof *(out), params,  \
                     sizeof *(params))

static int32_t act(struct builder *b, const char *part, int64_t n, int64_t heads)
{
    char name[96];
    return kopi__tensor_act(b->p, name_of(b, part, "", name), KOPI_DTYPE_F32, n, heads, KOPI_DIM_TOK);
}

static void norm_into(struct builder *b, const char *part, int32_t x, int32_t y, int64_t n)
{
    char name[96];
    const kopi_norm_params params = {b->d->norm_kind, b->d->norm_eps};
    int32_t in[] = {x, weight(b, name_of(b, part, ".weight", name), n, 0, true),
                    weight(b, name_of(b, part, ".bias", name), n, 0, false)};
    OP(b, KOPI_OP_NORM, in, (int32_t[]){y}, &params);
}

static int32_t norm(struct builder *b, const char *part, int32_t x, int64_t n)
{
    int32_t y = act(b, part, n, 1);
    norm_into(b, part, x, y, n);
    return y;
}

/* x in the form that LINEAR with this weight reads; quantized once per form. */
static int32_t as_input(struct builder *b, int32_t x, int64_t n, uint32_t w_dtype)
{
    uint32_t a = kopi_activation_dtype(w_dtype),
             sym = x < 0 ? 0 : b->p->tensors[x].dim[b->p->tensors[x].n_dims - 1].sym;
    if (a == KOPI_DTYPE_F32 || (b->o->takes && !b->o->takes(b->o->ctx, w_dtype, a))) return x;
    if (b->quantized_of != x) {
        b->quantized_of = x;
        b->quantized[0] = b->quantized[1] = -1;
    }
    int32_t *q = &b->quantized[a == KOPI_DTYPE_A8_256];
    if (*q < 0) {
        char name[96];
        *q = kopi__tensor_act(b->p, name_of(b, "quantized", "", name), a, n, 1, sym);
        kopi__program_op(b->p, KOPI_OP_QUANTIZE, b->layer, (int32_t[]){x}, 1, (int32_t[]){*q}, 1, NULL, 0);
    }
    return *q;
}

static void linear_into(struct builder *b, const char *part, int32_t x, int64_t k, int32_t y, int64_t n)
{
    char name[96];
    const struct kopi_gguf_tensor *w = find(b, name_of(b, part, ".weight", name), k, n, true);
    if (!w) return;
    int32_t in[] = {as_input(b, x, k, w->dtype), kopi__tensor_weight(b->p, w),
                    weight(b, name_of(b, part, ".bias", name), n, 0, false)};
    kopi__program_op(b->p, KOPI_OP_LINEAR, b->layer, in, 3, (int32_t[]){y}, 1, NULL, 0);
}

static int32_t linear(struct builder *b, const char *part, int32_t x, int64_t k, int64_t n, int64_t heads)
{
    int32_t y = act(b, part, n / heads, heads);
    linear_into(b, part, x, k, y, n);
    return y;
}

static void add(struct builder *b, int32_t x, int32_t y)
{
    kopi__program_op(b->p, KOPI_OP_ADD, b->layer, (int32_t[]){x, y}, 2, (int32_t[]){x}, 1, NULL, 0);
}

static void rope(struct builder *b, int32_t x)
{
    const kopi_rope_params params = {b->d->rope_pairing, b->d->n_rot};
    int32_t in[] = {x, kopi__layer_is_local(b->d, b->layer) ? b->rope_local : b->rope_full};
    OP(b, KOPI_OP_ROPE, in, (int32_t[]){x}, &params);
}

/* ---- the decoder ------------------------------------------------------------------------------------------------- */

static uint64_t dtype_bytes(uint32_t dtype) { return dtype == KOPI_DTYPE_F32 ? 4 : 2; }

/* Bytes of one position in one layer: K, V. */
static uint64_t row_k(const struct builder *b)
{
    return (uint64_t)b->d->n_kv_heads * b->d->head_dim_k * dtype_bytes(b->o->kv_k);
}
static uint64_t row_v(const struct builder *b)
{
    return (uint64_t)b->d->n_kv_heads * b->d->head_dim_v * dtype_bytes(b->o->kv_v);
}

bool kopi__kv_bytes(const struct kopi_decoder *d, const struct kopi_build *o, uint64_t n, uint64_t *out)
{
    const struct builder b = {.d = d, .o = o};
    uint64_t pages = n / KOPI_PAGE_LEN + (n % KOPI_PAGE_LEN != 0);
    return kopi__mul(pages, KOPI_PAGE_LEN * (uint64_t)d->n_layers * (row_k(&b) + row_v(&b)), out);
}

static void attention(struct builder *b, int32_t x)
{
    const struct kopi_decoder *d = b->d;
    char name[96];
    int32_t h = norm(b, "attn_norm", x, d->n_embd);
    int64_t nk = (int64_t)d->n_kv_heads * d->head_dim_k, nv = (int64_t)d->n_kv_heads * d->head_dim_v;
    int32_t q = linear(b, "attn_q", h, d->n_embd, (int64_t)d->n_heads * d->head_dim_k, d->n_heads);
    int32_t k = linear(b, "attn_k", h, d->n_embd, nk, d->n_kv_heads);
    int32_t v = linear(b, "attn_v", h, d->n_embd, nv, d->n_kv_heads);
    if (d->qk_norm) {
        norm_into(b, "attn_q_norm", q, q, d->head_dim_k);
        norm_into(b, "attn_k_norm", k, k, d->head_dim_k);
    }
    rope(b, q);
    rope(b, k);

    uint64_t at = (uint64_t)b->layer * KOPI_PAGE_LEN * (row_k(b) + row_v(b));
    int32_t kc = kopi__tensor_kv(b->p, name_of(b, "cache_k", "", name), b->o->kv_k, b->group, at, nk);
    int32_t vc =
        kopi__tensor_kv(b->p, name_of(b, "cache_v", "", name), b->o->kv_v, b->group, at + KOPI_PAGE_LEN * row_k(b), nv);
    const kopi_kv_write_params write = {d->n_kv_heads, d->head_dim_k, d->head_dim_v, 0};
    OP(b, KOPI_OP_KV_WRITE, ((int32_t[]){k, v}), ((int32_t[]){kc, vc}), &write);

    const kopi_attn_params params = {d->n_heads,
                                     d->n_kv_heads,
                                     d->head_dim_k,
                                     d->head_dim_v,
                                     d->attn_scale,
                                     d->attn_softcap,
                                     kopi__layer_is_local(d, b->layer) ? d->window : 0,
                                     0};
    int32_t a = act(b, "attn", d->head_dim_v, d->n_heads);
    OP(b, KOPI_OP_ATTN, ((int32_t[]){q, kc, vc}), (int32_t[]){a}, &params);
    int32_t y = linear(b, "attn_output", a, (int64_t)d->n_heads * d->head_dim_v, d->n_embd, 1);
    if (d->post_norms) norm_into(b, "post_attention_norm", y, y, d->n_embd);
    add(b, x, y);
}

static void feed_forward(struct builder *b, int32_t x)
{
    const struct kopi_decoder *d = b->d;
    const kopi_glu_params glu = {d->act, 0};
    int32_t h = norm(b, "ffn_norm", x, d->n_embd);
    int32_t gate = linear(b, "ffn_gate", h, d->n_embd, d->n_ff, 1);
    int32_t up = linear(b, "ffn_up", h, d->n_embd, d->n_ff, 1);
    OP(b, KOPI_OP_GLU, ((int32_t[]){gate, up}), (int32_t[]){gate}, &glu);
    int32_t y = linear(b, "ffn_down", gate, d->n_ff, d->n_embd, 1);
    if (d->post_norms) norm_into(b, "post_ffw_norm", y, y, d->n_embd);
    add(b, x, y);
}

/* Output: its own tensor if the file has one, else the embedding. */
static void head(struct builder *b, int32_t x)
{
    const struct kopi_decoder *d = b->d;
    int32_t h = norm(b, "output_norm", x, d->n_embd);
    int32_t rows = kopi__tensor_act(b->p, "output_rows", KOPI_DTYPE_F32, d->n_embd, 1, KOPI_DIM_OUT);
    kopi__program_op(b->p, KOPI_OP_GATHER, b->layer, (int32_t[]){h}, 1, (int32_t[]){rows}, 1, NULL, 0);
    int32_t logits = kopi__tensor_output(b->p, "logits", d->n_vocab, 0);
    linear_into(b, kopi__gguf_tensor(b->g, "output.weight") ? "output" : "token_embd", rows, d->n_embd, logits,
                d->n_vocab);
    if (d->final_softcap > 0) {
        const kopi_scale_params cap = {d->final_softcap, 0};
        OP(b, KOPI_OP_SOFTCAP, (int32_t[]){logits}, (int32_t[]){logits}, &cap);
    }
}

static int32_t embed(struct builder *b)
{
    const kopi_embed_params params = {b->d->embed_scale, 0};
    int32_t in[] = {weight(b, "token_embd.weight", b->d->n_embd, b->d->n_vocab, true)},
            x = act(b, "embedding", b->d->n_embd, 1);
    OP(b, KOPI_OP_EMBED, in, (int32_t[]){x}, &params);
    return x;
}

static int32_t rope_table(struct builder *b, const char *name, const struct kopi_rope *r)
{
    int64_t ne[] = {2, b->d->n_rot / 2, b->o->n_ctx};
    return kopi__tensor_const(b->p, name, ne, 3, kopi__rope_table(r, b->d->n_rot, b->o->n_ctx));
}

static void add_kv_group(struct builder *b)
{
    uint64_t per_seq = 0;
    kopi_kv_group g = {.struct_size = sizeof g, .kind = KOPI_KV_PAGES, .page_len = KOPI_PAGE_LEN, .dtype_k = b->o->kv_k,
                       .dtype_v = b->o->kv_v};
    kopi__kv_bytes(b->d, b->o, KOPI_PAGE_LEN, &g.page_bytes);
    per_seq = (b->o->n_ctx + KOPI_PAGE_LEN - 1) / KOPI_PAGE_LEN;
    g.n_pages = per_seq * b->o->max_seq;
    b->group = kopi__program_group(b->p, &g);
}

/* A tensor that nothing reads may be a part of the model that this program leaves out: said, once, by name. */
static void warn_unused(const struct builder *b)
{
    uint64_t n = kopi__gguf_n_tensors(b->g), unused = 0;
    const char *first = NULL;
    for (uint64_t i = 0; i < n; i++) {
        const struct kopi_gguf_tensor *t = kopi__gguf_tensor_at(b->g, i);
        bool used = t == b->d->rope.divisors;
        for (uint32_t k = 0; k < b->p->p.n_tensors && !used; k++) used = b->p->sources[k] == t;
        if (!used && !unused++) first = t->name;
    }
    if (unused)
        kopi__log(KOPI_LOG_WARN, "%s: %llu tensors are not used by architecture %s, the first is %s",
                  kopi__gguf_path(b->g), (unsigned long long)unused, b->d->arch, first);
}

kopi_status kopi__build(const struct kopi_gguf *g, const struct kopi_decoder *d, const struct kopi_build *o,
                        struct kopi__program **out, kopi_error *err)
{
    struct builder b = {.g = g, .d = d, .o = o, .err = err, .layer = UINT32_MAX, .quantized_of = -1};
    *out = NULL;
    kopi_status s = kopi__program_new(&b.p, err);
    if (s != KOPI_OK) return s;
    add_kv_group(&b);
    b.rope_full = rope_table(&b, "rope", &d->rope);
    b.rope_local = d->window ? rope_table(&b, "rope_local", &d->rope_local) : b.rope_full;
    int32_t x = embed(&b);
    for (b.layer = 0; b.layer < d->n_layers && b.status == KOPI_OK && b.p->failed == KOPI_OK; b.layer++) {
        attention(&b, x);
        feed_forward(&b, x);
    }
    b.layer = UINT32_MAX;
    head(&b, x);
    s = b.status;
    if (s == KOPI_OK) s = kopi__program_finish(b.p, o->max_tok, o->max_out, o->max_seq, o->n_ctx, err);
    if (s == KOPI_OK) {
        warn_unused(&b);
        *out = b.p;
    } else
        kopi__program_free(b.p);
    return s;
}
