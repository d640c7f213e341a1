/* kopi_model_load: from a configuration entry to a model that runs steps. */
#include "backend/assign.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "model/build.h"
#include "run/engine.h"
#include "run/kv.h"
#include "run/model.h"
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    DEFAULT_CTX = 8192,       /* positions with context.size: auto, if the model has that many */
    MAX_TEMPLATE = 1 << 20    /* bytes of a template file */
};

struct loading {
    kopi_model *m;
    const kopi_config *cfg;
    int index; /* of the model in the configuration */
    kopi_progress_fn progress;
    void *ctx;
    kopi_error *err;
};

static int cancelled(void *ctx) { return atomic_load(&((kopi_model *)ctx)->cancel); }

static int on_import(void *ctx, float share)
{
    struct loading *l = ctx;
    if (cancelled(l->m)) return 1;
    return l->progress ? l->progress(l->ctx, "load", (uint64_t)(share * 1000), 1000) : 0;
}

/* ---- the steps of loading -------------------------------------------------------------------------------------------- */

static kopi_status no_model(kopi_error *err)
{
    return kopi__fail(err, KOPI_E_CONFIG, "no model is configured; give one with --model FILE or models: in the configuration");
}

static kopi_status name_model(struct loading *l)
{
    size_t len;
    const char *id = kopi__config_model_id(l->cfg, l->index, &len), *path = kopi__config_str(l->cfg, "models[].path", l->index);
    if (!path) return no_model(l->err);
    l->m->path = kopi__strdup(path);
    l->m->id = kopi__strndup(id ? id : "", id ? len : 0);
    return l->m->path && l->m->id ? KOPI_OK : kopi__nomem(l->err, "model");
}

/* Polled while the file is hashed. */
static int stop_hashing(void *loading) { return on_import(loading, 0); }

static kopi_status check_sha256(struct loading *l)
{
    const char *want = kopi__config_str(l->cfg, "models[].sha256", l->index);
    char hex[65];
    if (!want) return KOPI_OK;
    kopi_status s = kopi__sha256_file(l->m->path, hex, stop_hashing, l, l->err);
    if (s == KOPI_OK && strcasecmp(hex, want))
        s = kopi__fail(l->err, KOPI_E_MODEL, "%s: SHA-256 is %s, the configuration says %s", l->m->path, hex, want);
    return s;
}

static kopi_status open_file(struct loading *l, const struct kopi_plugin_handle *plugin)
{
    unsigned flags = kopi__config_bool(l->cfg, "models[].mmap", l->index) ? 0 : KOPI__GGUF_NO_MMAP;
    return kopi__gguf_open(l->m->path, flags, plugin->desc.dtypes, plugin->desc.n_dtypes, &l->m->gguf, l->err);
}

static kopi_status make_template(struct loading *l, const char *source, size_t n)
{
    return kopi__chat_template_new(source, n, &l->m->chat, l->err);
}

static kopi_status template_from_file(struct loading *l, const char *path)
{
    FILE *f = fopen(path, "re");
    if (!f) return kopi__fail(l->err, KOPI_E_CONFIG, "template.source %s: %s", path, strerror(errno));
    char *text = kopi__alloc(MAX_TEMPLATE);
    size_t n = text ? fread(text, 1, MAX_TEMPLATE, f) : 0;
    kopi_status s = !text ? kopi__nomem(l->err, "template")
                    : ferror(f) ? kopi__fail(l->err, KOPI_E_CONFIG, "template.source %s: %s", path, strerror(errno))
                    : n == MAX_TEMPLATE ? kopi__fail(l->err, KOPI_E_CONFIG, "template.source %s: longer than %d bytes", path, MAX_TEMPLATE)
                                        : make_template(l, text, n);
    kopi__free(text);
    fclose(f);
    return s;
}

/* A file without a tokenizer still runs on ids; a template that can't be parsed only takes chat away, with a warning. */
static kopi_status read_text(struct loading *l)
{
    kopi_model *m = l->m;
    const char *source = kopi__config_str(l->cfg, "models[].template.source", l->index);
    struct kopi_gguf_str text;
    if (kopi__gguf_find(m->gguf, "tokenizer.ggml.model")) {
        kopi_status s = kopi__tokenizer_new(m->gguf, &m->tokenizer, l->err);
        if (s != KOPI_OK) return s;
    }
    if (source && !strcmp(source, "none")) return KOPI_OK;
    if (source && strcmp(source, "model")) return template_from_file(l, source);
    const struct kopi_gguf_kv *kv = kopi__gguf_find(m->gguf, "tokenizer.chat_template");
    if (!kv || !kopi__gguf_get_str(kv, 0, &text)) return KOPI_OK;
    kopi_error e;
    if (kopi__chat_template_new(text.data, text.len, &m->chat, &e) != KOPI_OK)
        kopi__log(KOPI_LOG_WARN, "%s: its chat template can't be used: %s", m->path, e.text);
    return KOPI_OK;
}

/* auto: F16, but F32 for a backend that computes LINEAR from F32 activations (cpu with linear: f32): its whole point is to be near
 * the truth, and an F16 cache would be its largest error. */
static uint32_t kv_dtype(const struct loading *l, const char *path)
{
    const char *type = kopi__config_str(l->cfg, path, l->index);
    bool from_f32 = kopi__instance_takes(l->m->main, KOPI_DTYPE_Q8_0, KOPI_DTYPE_F32) &&
                    !kopi__instance_takes(l->m->main, KOPI_DTYPE_Q8_0, KOPI_DTYPE_A8_32);
    return !strcmp(type, "f32") || (!strcmp(type, "auto") && from_f32) ? KOPI_DTYPE_F32 : KOPI_DTYPE_F16;
}

/* For kopi_build.takes: quantized activations, unless the backend takes only F32 ones; what it takes in neither form is the
 * fallback's, and so is the choice. */
static bool takes(void *ctx, uint32_t w, uint32_t a)
{
    const kopi_model *m = ctx;
    if (kopi__instance_takes(m->main, w, a)) return true;
    if (kopi__instance_takes(m->main, w, KOPI_DTYPE_F32)) return false;
    return !m->fallback || kopi__instance_takes(m->fallback, w, a);
}

static uint32_t context_size(const struct loading *l)
{
    uint32_t own = l->m->decoder.context_length;
    const struct kopi__setting *set = kopi__config_find(l->cfg, "models[].context.size", l->index);
    int64_t n = kopi__config_int(l->cfg, "models[].context.size", l->index);
    if (n > own)
        kopi__log(KOPI_LOG_WARN, "context size %lld is more than the %u that the model was trained for", (long long)n, own);
    if (n > 0) return (uint32_t)n;
    bool automatic = !set || !strcmp(set->text, "auto");
    return automatic && own > DEFAULT_CTX ? DEFAULT_CTX : own;
}

/* Says what the context will take, and refuses what the machine has not. */
static kopi_status check_memory(struct loading *l, const struct kopi_build *b)
{
    uint64_t seq, kv, rope, need, have = kopi__available_memory(), file = kopi__gguf_file_size(l->m->gguf);
    char t[3][40];
    if (!kopi__kv_bytes(&l->m->decoder, b, b->n_ctx, &seq) || !kopi__mul(seq, b->max_seq, &kv) ||
        !kopi__mul((uint64_t)b->n_ctx * l->m->decoder.n_rot * sizeof(float), l->m->decoder.window ? 2 : 1, &rope) ||
        !kopi__add(kv, rope, &kv) || !kopi__add(kv, file, &need))
        return kopi__fail(l->err, KOPI_E_NOMEM, "context size %u times %u sequences overflows; lower --ctx-size or --parallel", b->n_ctx, b->max_seq);
    kopi__format_bytes(kv, t[0], sizeof t[0]);
    kopi__format_bytes(file, t[1], sizeof t[1]);
    kopi__format_bytes(have, t[2], sizeof t[2]);
    if (need > have)
        return kopi__fail(l->err, KOPI_E_NOMEM, "context size %u needs %s for the KV cache beside %s of weights, but %s are available; lower --ctx-size%s",
                          b->n_ctx, t[0], t[1], t[2], b->max_seq > 1 ? " or --parallel" : "");
    kopi__log(KOPI_LOG_INFO, "%s: %s of weights; context %u x %u sequences: KV cache %s", l->m->id, t[1], b->n_ctx, b->max_seq, t[0]);
    return KOPI_OK;
}

static kopi_status check_determinism(struct loading *l, const struct kopi_instance *i)
{
    const char *want = kopi__config_str(l->cfg, "determinism", KOPI__MODEL_ALL);
    uint32_t exact = KOPI_DEVICE_EXACT, run = KOPI_DEVICE_EXACT | KOPI_DEVICE_REPEATABLE, flags = i->device.flags;
    if ((!strcmp(want, "exact") && !(flags & exact)) || (!strcmp(want, "run") && !(flags & run)))
        return kopi__config_fail(l->err, kopi__config_find(l->cfg, "determinism", KOPI__MODEL_ALL),
                                 "determinism is %s, but backend %s promises only \"%s\"", want, i->plugin->desc.name,
                                 flags & run ? "run" : "any");
    return KOPI_OK;
}

/* The cpu plugin beside another one; its absence matters only if something is missing. */
static struct kopi_instance *load_fallback(struct loading *l, const struct kopi_plugin_handle *main)
{
    const struct kopi_plugin_handle *cpu;
    struct kopi_instance *i = NULL;
    kopi_error e;
    if (strcmp(kopi__config_str(l->cfg, "backend.fallback", KOPI__MODEL_ALL), "cpu") || !strcmp(main->desc.name, "cpu")) return NULL;
    if (kopi__engine_plugin(l->m->engine, "cpu", &cpu, &e) != KOPI_OK ||
        kopi__engine_instance(l->m->engine, cpu, &l->m->cancel, &i, &e) != KOPI_OK)
        kopi__log(KOPI_LOG_INFO, "no fallback: %s", e.text);
    return i;
}

static kopi_status build(struct loading *l)
{
    kopi_model *m = l->m;
    struct kopi_build b = {.max_tok = (uint32_t)kopi__config_int(l->cfg, "models[].context.batch", l->index),
                           .max_seq = (uint32_t)kopi__config_int(l->cfg, "models[].context.parallel", l->index),
                           .kv_k = kv_dtype(l, "models[].kv.type_k"), .kv_v = kv_dtype(l, "models[].kv.type_v"),
                           .takes = takes, .ctx = m};
    b.n_ctx = context_size(l);
    if (b.max_tok > b.n_ctx * (uint64_t)b.max_seq) b.max_tok = b.n_ctx * b.max_seq;
    if (b.max_tok < b.max_seq) b.max_tok = b.max_seq;
    b.max_out = b.max_tok;
    m->n_ctx = b.n_ctx;
    m->max_tok = b.max_tok;
    m->max_out = b.max_out;
    m->max_seq = b.max_seq;
    m->n_vocab = m->decoder.n_vocab;
    kopi_status s = check_memory(l, &b);
    return s == KOPI_OK ? kopi__build(m->gguf, &m->decoder, &b, &m->program, l->err) : s;
}

static kopi_status load(struct loading *l)
{
    kopi_model *m = l->m;
    const struct kopi_plugin_handle *plugin;
    kopi_status s = name_model(l);
    if (s == KOPI_OK) s = kopi__engine_plugin(m->engine, NULL, &plugin, l->err);
    if (s == KOPI_OK) s = check_sha256(l);
    if (s == KOPI_OK) s = open_file(l, plugin);
    if (s == KOPI_OK) s = kopi__decoder_read(m->gguf, &m->decoder, l->err);
    if (s == KOPI_OK) s = read_text(l);
    if (s == KOPI_OK) s = kopi__engine_instance(m->engine, plugin, &m->cancel, &m->main, l->err);
    if (s == KOPI_OK) s = check_determinism(l, m->main);
    if (s == KOPI_OK) m->fallback = load_fallback(l, plugin);
    if (s == KOPI_OK) s = build(l);
    if (s == KOPI_OK) s = kopi__exec_new(m->main, m->fallback, m->program, m->gguf, on_import, l, &m->exec, l->err);
    if (s == KOPI_OK) s = kopi__kv_new(&m->program->p, m->exec, &m->kv, l->err);
    return s;
}

kopi_status kopi_model_load(kopi_engine *engine, const char *id, kopi_progress_fn progress, void *ctx, kopi_model **out, kopi_error *err)
{
    *out = NULL;
    int index = kopi__config_model(engine->cfg, id);
    if (index < 0 && !id) return no_model(err);
    if (index < 0) return kopi__fail(err, KOPI_E_CONFIG, "no model with id \"%s\" is configured", id);
    kopi_model *m = kopi__calloc(1, sizeof *m);
    if (!m) return kopi__nomem(err, "model");
    m->engine = engine;
    m->config_index = index;
    struct loading l = {m, engine->cfg, index, progress, ctx, err};
    kopi_status s = load(&l);
    if (s == KOPI_OK)
        *out = m;
    else
        kopi_model_free(m);
    return s;
}

void kopi_model_free(kopi_model *m)
{
    if (!m) return;
    kopi__kv_free(m->kv);
    kopi__exec_free(m->exec);
    kopi__instance_free(m->main);
    kopi__instance_free(m->fallback);
    kopi__program_free(m->program);
    kopi__chat_template_free(m->chat);
    kopi__tokenizer_free(m->tokenizer);
    kopi__gguf_close(m->gguf);
    kopi__free(m->id);
    kopi__free(m->path);
    kopi__free(m);
}

/* ---- a loaded model -------------------------------------------------------------------------------------------------- */

uint32_t kopi_model_vocab_size(const kopi_model *m) { return m->n_vocab; }
uint32_t kopi_model_max_context(const kopi_model *m) { return m->n_ctx; }
const char *kopi_model_id(const kopi_model *m) { return m->id; }
void kopi_model_cancel(kopi_model *m) { atomic_store(&m->cancel, 1); }
void kopi_model_uncancel(kopi_model *m) { atomic_store(&m->cancel, 0); }

void kopi_backend_device(const kopi_model *m, kopi_backend_info *out)
{
    const struct kopi_instance *i = m->main;
    *out = (kopi_backend_info){.threads = i->threads, .exact = (i->device.flags & KOPI_DEVICE_EXACT) != 0,
                               .weight_bytes = kopi__exec_weight_bytes(m->exec), .work_bytes = kopi__exec_work_bytes(m->exec)};
    snprintf(out->name, sizeof out->name, "%s", i->plugin->desc.name);
    snprintf(out->device, sizeof out->device, "%s", i->device.name);
    snprintf(out->detail, sizeof out->detail, "%s", i->device.detail);
    snprintf(out->path, sizeof out->path, "%s", i->plugin->path);
    for (uint32_t g = 0; g < m->program->p.n_groups; g++)
        out->kv_bytes += m->program->groups[g].page_bytes * m->program->groups[g].n_pages;
}

/* Index of the first NaN or infinity of a row, or n. The first pass has no branch, so that it runs at the speed of memory. */
static uint32_t first_nonfinite(const float *row, uint32_t n)
{
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t u;
        memcpy(&u, &row[i], sizeof u);
        bad |= (u & 0x7f800000u) == 0x7f800000u;
    }
    if (!bad) return n;
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(row[i])) return i;
    return n;
}

static kopi_status check_logits(const kopi_model *m, const kopi_output *o, kopi_error *err)
{
    const kopi_kv_group *g = &m->program->groups[0];
    for (uint32_t r = 0; r < o->n_rows; r++) {
        const float *row = (const float *)(const void *)((const char *)o->host + (int64_t)r * o->row_bytes);
        uint32_t bad = first_nonfinite(row, m->n_vocab);
        if (bad < m->n_vocab)
            return kopi__fail(err, KOPI_E_NONFINITE, "%s: the logit of token %u is not finite%s", m->id, bad,
                              g->dtype_k == KOPI_DTYPE_F16 || g->dtype_v == KOPI_DTYPE_F16
                                  ? "; if F16 overflowed in the KV cache, --cache-type-k f32 --cache-type-v f32 (kv.type_k, kv.type_v) help"
                                  : "");
    }
    return KOPI_OK;
}

kopi_status kopi__model_step(kopi_model *m, const kopi_run *run, kopi_error *err)
{
    if (cancelled(m)) return kopi__fail(err, KOPI_E_CANCELLED, "cancelled");
    kopi_status s = kopi__exec_run(m->exec, run, err);
    for (uint32_t i = 0; i < run->n_out && s == KOPI_OK; i++) {
        const kopi_output *o = kopi_output_at(run, i);
        if (o->kind == KOPI_OUTPUT_LOGITS && o->host) s = check_logits(m, o, err);
    }
    return s;
}
