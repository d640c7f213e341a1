#include "decoder_rig.h"

#include "backend/exec.h"
#include "model/build.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct kopi_gguf *gguf;
    struct kopi_decoder decoder;
    struct kopi__program *program;
    struct kopi_team_pool *team;
    struct kopi_instance *instance;
    struct kopi_exec *exec;
    const char *isa;
    uint32_t *n_past, pages_per_seq, n_seq;
    int32_t **pages; /* [n_seq] -> ids */
    const int32_t **tables;
    kopi_run run;
    kopi_seq_run *seqs;
    int32_t *tokens, *pos, *seq, *rows;
    _Atomic int cancel;
};

static void must(kopi_status s, const kopi_error *err)
{
    if (s == KOPI_OK) return;
    fprintf(stderr, "rig: %s\n", err->text);
    abort();
}

static void *zeros(size_t n, size_t size)
{
    void *p = calloc(n ? n : 1, size);
    if (!p) abort();
    return p;
}

static const char *option(void *ctx, const char *backend, const char *key)
{
    (void)backend;
    return strcmp(key, "isa") == 0 ? ((struct rig *)ctx)->isa : NULL;
}

/* Pages of the sequences lie scattered over the group. */
static void deal_pages(struct rig *r, uint32_t n_seq)
{
    uint32_t n = r->pages_per_seq * n_seq, step = 7;
    while (n % step == 0) step += 2;
    for (uint32_t i = 0; i < n; i++) r->pages[i % n_seq][i / n_seq] = (int32_t)((uint64_t)i * step % n);
}

static void make_tables(struct rig *r, const struct rig_config *c)
{
    r->pages_per_seq = (c->n_ctx + KOPI_PAGE_LEN - 1) / KOPI_PAGE_LEN;
    r->n_past = zeros(c->n_seq, sizeof *r->n_past);
    r->pages = zeros(c->n_seq, sizeof *r->pages);
    r->tables = zeros(c->n_seq, sizeof *r->tables);
    for (uint32_t s = 0; s < c->n_seq; s++) r->tables[s] = r->pages[s] = zeros(r->pages_per_seq, sizeof **r->pages);
    deal_pages(r, c->n_seq);
    r->seqs = zeros(c->n_seq, sizeof *r->seqs);
    r->tokens = zeros(c->max_tok, sizeof *r->tokens);
    r->pos = zeros(c->max_tok, sizeof *r->pos);
    r->seq = zeros(c->max_tok, sizeof *r->seq);
    r->rows = zeros(c->max_tok, sizeof *r->rows);
}

static kopi_status open_all(struct rig *r, const struct rig_config *c, kopi_error *err)
{
    const struct kopi_build build = {.n_ctx = c->n_ctx,
                                     .max_tok = c->max_tok,
                                     .max_out = c->max_tok,
                                     .max_seq = c->n_seq,
                                     .kv_k = c->kv_dtype,
                                     .kv_v = c->kv_dtype};
    const struct kopi_plugin_search search = {.path = c->plugin};
    const struct kopi_instance_env env = {
        .team = NULL, .threads = c->threads, .cancel = &r->cancel, .option = option, .option_ctx = r};
    const struct kopi_plugin_handle *plugin;
    kopi_status s = kopi__gguf_open(c->model, 0, NULL, 0, &r->gguf, err);
    if (s == KOPI_OK) s = kopi__decoder_read(r->gguf, &r->decoder, err);
    if (s == KOPI_OK) s = kopi__build(r->gguf, &r->decoder, &build, &r->program, err);
    if (s == KOPI_OK) s = kopi__team_new(c->threads, &r->team, err);
    if (s == KOPI_OK) s = kopi__plugin_load(&search, &plugin, err);
    if (s != KOPI_OK) return s;
    struct kopi_instance_env with_team = env;
    with_team.team = r->team;
    s = kopi__instance_new(plugin, 0, &with_team, &r->instance, err);
    return s == KOPI_OK ? kopi__exec_new(r->instance, NULL, r->program, r->gguf, NULL, NULL, &r->exec, err) : s;
}

int rig_try(const struct rig_config *c, struct rig **out)
{
    struct rig *r = zeros(1, sizeof *r);
    kopi_error err = {0};
    r->isa = c->isa;
    r->n_seq = c->n_seq;
    kopi_status s = open_all(r, c, &err);
    *out = NULL;
    if (s == KOPI_OK) {
        make_tables(r, c);
        *out = r;
    } else {
        if (s != KOPI_E_NOMEM) fprintf(stderr, "rig: %s\n", err.text);
        rig_close(r);
    }
    return s;
}

struct rig *rig_open(const struct rig_config *c)
{
    struct rig *r;
    if (rig_try(c, &r) != KOPI_OK) abort();
    return r;
}

void rig_close(struct rig *r)
{
    if (!r) return;
    kopi__exec_free(r->exec);
    kopi__instance_free(r->instance);
    kopi__team_free(r->team);
    kopi__program_free(r->program);
    kopi__gguf_close(r->gguf);
    for (uint32_t s = 0; r->pages && s < r->n_seq; s++) free(r->pages[s]);
    free(r->n_past);
    free(r->pages);
    free(r->tables);
    free(r->seqs);
    free(r->tokens);
    free(r->pos);
    free(r->seq);
    free(r->rows);
    free(r);
}

int rig_run(struct rig *r, const struct rig_part *parts, uint32_t n, enum rig_want want, float *logits)
{
    kopi_error err = {0};
    uint32_t t = 0, n_rows = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t s = parts[i].seq;
        r->seqs[i] = (kopi_seq_run){.struct_size = sizeof *r->seqs, .id = s, .first = t, .n_new = parts[i].n_tok,
                                    .n_past = r->n_past[s], .pages = &r->tables[s]};
        for (uint32_t k = 0; k < parts[i].n_tok; k++, t++) {
            r->tokens[t] = parts[i].tokens[k];
            r->pos[t] = (int32_t)(r->n_past[s] + k);
            r->seq[t] = (int32_t)i;
            if (want == RIG_ALL || (want == RIG_LAST && k + 1 == parts[i].n_tok)) r->rows[n_rows++] = (int32_t)t;
        }
    }
    const kopi_output output = {.struct_size = sizeof output,
                                .kind = KOPI_OUTPUT_LOGITS,
                                .dtype = KOPI_DTYPE_F32,
                                .n_rows = n_rows,
                                .rows = r->rows,
                                .host = logits,
                                .row_bytes = (int64_t)r->decoder.n_vocab * 4};
    const kopi_run run = {.struct_size = sizeof run,
                          .n_tok = t,
                          .n_seq = n,
                          .n_out = 1,
                          .seq_stride = sizeof *r->seqs,
                          .output_stride = sizeof output,
                          .tokens = r->tokens,
                          .pos = r->pos,
                          .seq = r->seq,
                          .seqs = r->seqs,
                          .outputs = &output};
    kopi_status s = kopi__exec_run(r->exec, &run, &err);
    if (s != KOPI_OK && s != KOPI_E_CANCELLED) must(s, &err);
    for (uint32_t i = 0; i < n && s == KOPI_OK; i++) r->n_past[parts[i].seq] += parts[i].n_tok;
    return s;
}

void rig_forget(struct rig *r)
{
    const kopi_kv_group *g = &r->program->groups[0];
    memset(g->base, 0xff, g->page_bytes * g->n_pages);
    memset(r->n_past, 0, r->n_seq * sizeof *r->n_past);
}

void rig_cancel(struct rig *r, bool yes) { atomic_store(&r->cancel, yes); }

uint32_t rig_n_vocab(const struct rig *r) { return r->decoder.n_vocab; }

const char *rig_code(struct rig *r, uint32_t op)
{
    for (uint32_t i = 0; i < r->program->p.n_ops; i++)
        if (r->program->ops[i].op == op)
            return r->instance->ops.describe(r->instance->be, &r->program->p, &r->program->ops[i]);
    return NULL;
}

uint64_t rig_page_bytes(const struct rig *r) { return r->program->groups[0].page_bytes; }

void rig_get_page(struct rig *r, uint32_t seq, uint32_t page, void *out)
{
    const kopi_kv_group *g = &r->program->groups[0];
    int32_t id = r->pages[seq][page];
    if (r->instance->ops.kv_export)
        must(r->instance->ops.kv_export(r->instance->be, &r->program->p, 0, id, out), &(kopi_error){0});
    else
        memcpy(out, (char *)g->base + (uint64_t)id * g->page_bytes, g->page_bytes);
}

void rig_set_past(struct rig *r, uint32_t seq, uint32_t n) { r->n_past[seq] = n; }

void rig_set_page(struct rig *r, uint32_t seq, uint32_t page, const void *in)
{
    const kopi_kv_group *g = &r->program->groups[0];
    int32_t id = r->pages[seq][page];
    if (r->instance->ops.kv_import)
        must(r->instance->ops.kv_import(r->instance->be, &r->program->p, 0, id, in), &(kopi_error){0});
    else
        memcpy((char *)g->base + (uint64_t)id * g->page_bytes, in, g->page_bytes);
}
