/* kopi_model_load: from a configuration entry to a model that runs steps. */
#include "run/load.h"

#include "backend/assign.h"
#include "backend/device.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "model/build.h"
#include "run/engine.h"
#include "run/kv.h"
#include "run/speculate.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    DEFAULT_CTX = 8192,       /* positions with context.size: auto, if the model has that many */
    MAX_TEMPLATE = 1 << 20    /* bytes of a template file */
};

struct loading {
    kopi_model *m;
    const kopi_config *cfg;
    int index;                /* of the model in the configuration; past the last: what holds for every model */
    const char *path, *sha256; /* sha256: NULL: any file will do */
    const kopi_model *target; /* this one drafts for it; NULL: none */
    kopi_progress_fn progress;
    void *ctx;
    kopi_error *err;
};

static int cancelled(const kopi_model *m) { return atomic_load(m->stop); }

static int on_import(void *ctx, float share)
{
    struct loading *l = ctx;
    if (cancelled(l->m)) return 1;
    return l->progress ? l->progress(l->ctx, "load", (uint64_t)(share * 1000), 1000) : 0;
}

/* ---- the steps of loading ---------------------------------------------------------------------------------------- */

static kopi_status no_model(kopi_error *err)
{
    return kopi__fail(err, KOPI_E_CONFIG,
                      "no model is configured; give one with --model FILE or models: in the configuration");
}

static kopi_status name_model(struct loading *l)
{
    size_t len;
    const char *id = kopi__config_model_id(l->cfg, l->index, &len);
    if (!l->path) return no_model(l->err);
    if (l->target) id = kopi__config_stem(l->path, &len);
    l->m->path = kopi__strdup(l->path);
    l->m->id = kopi__strndup(id ? id : "", id ? len : 0);
    return l->m->path && l->m->id ? KOPI_OK : kopi__nomem(l->err, "model");
}

/* Polled while the file is hashed. */
static int stop_hashing(void *loading) { return on_import(loading, 0); }

static kopi_status check_sha256(struct loading *l)
{
    char hex[65];
    if (!l->sha256) return KOPI_OK;
    kopi_status s = kopi__sha256_file(l->m->path, hex, stop_hashing, l, l->err);
    if (s == KOPI_OK && strcasecmp(hex, l->sha256))
        s = kopi__fail(l->err, KOPI_E_MODEL, "%s: SHA-256 is %s, the configuration says %s", l->m->path, hex,
                       l->sha256);
    return s;
}

static kopi_status open_file(struct loading *l, const struct kopi_plugin_handle *plugin)
{
    unsigned flags = kopi__config_bool(l->cfg, "models[].mmap", l->index) ? 0 : KOPI__GGUF_NO_MMAP;
    return kopi__gguf_open(l->m->path, flags, plugin->desc.dtypes, plugin->desc.n_dtypes, &l->m->gguf, l->err);
}

/* Takes the template, or says in `why` what speaks against it. */
static kopi_status take_template(kopi_model *m, const char *from, const char *text, size_t n, kopi_error *why)
{
    struct kopi_chat_template *t;
    kopi_status s = kopi__chat_template_new(text, n, &t, why);
    if (s != KOPI_OK) return s;
    m->chat_from = kopi__strdup(from);
    if (m->chat_from && !kopi__chat_template_drops_user(t)) {
        m->chat = t;
        return KOPI_OK;
    }
    kopi__chat_template_free(t);
    return m->chat_from ? kopi__fail(why, KOPI_E_MODEL, "it leaves out what the user says")
                        : kopi__nomem(why, "template");
}

static kopi_status parse_template(struct loading *l, const struct kopi__setting *source, const char *text, size_t n)
{
    kopi_error why;
    if (n == MAX_TEMPLATE)
        return kopi__config_fail(l->err, source, "%s: longer than %d bytes", source->text, MAX_TEMPLATE);
    kopi_status s = take_template(l->m, source->text, text, n, &why);
    if (s == KOPI_E_NOMEM) return kopi__nomem(l->err, "template");
    return s == KOPI_OK ? s : kopi__config_fail(l->err, source, "%s: %s", source->text, why.text);
}

static kopi_status template_from_file(struct loading *l, const struct kopi__setting *source)
{
    FILE *f = fopen(source->text, "re");
    if (!f) return kopi__config_fail(l->err, source, "%s: %s", source->text, strerror(errno));
    char *text = kopi__alloc(MAX_TEMPLATE);
    size_t n = text ? fread(text, 1, MAX_TEMPLATE, f) : 0;
    kopi_status s = !text       ? kopi__nomem(l->err, "template")
                    : ferror(f) ? kopi__config_fail(l->err, source, "%s: %s", source->text, strerror(errno))
                                : parse_template(l, source, text, n);
    kopi__free(text);
    fclose(f);
    return s;
}

/* A file without a tokenizer still runs on ids; a template that can't be parsed only takes chat away, with a warning.
 */
static kopi_status read_text(struct loading *l)
{
    kopi_model *m = l->m;
    const struct kopi__setting *source = kopi__config_find(l->cfg, "models[].template.source", l->index);
    struct kopi_gguf_str text;
    if (kopi__gguf_find(m->gguf, "tokenizer.ggml.model")) {
        kopi_status s = kopi__tokenizer_new(m->gguf, &m->tokenizer, l->err);
        if (s != KOPI_OK) return s;
    }
    if (l->target || !strcmp(source->text, "none")) return KOPI_OK;
    if (strcmp(source->text, "model")) return template_from_file(l, source);
    const struct kopi_gguf_kv *kv = kopi__gguf_find(m->gguf, "tokenizer.chat_template");
    kopi_error e = {0};
    if (!kv) return KOPI_OK;
    kopi_status s = kopi__gguf_str(kv, &text)
                        ? take_template(m, m->path, text.data, text.len, &e)
                        : kopi__fail(&e, KOPI_E_MODEL, "its type is %s, not string", kopi__gguf_type_name(kv->type));
    if (s == KOPI_E_NOMEM) return kopi__nomem(l->err, "template");
    if (s != KOPI_OK) kopi__log(KOPI_LOG_WARN, "%s: its chat template can't be used: %s", m->path, e.text);
    return KOPI_OK;
}

/* auto: F16, but F32 for a backend that computes LINEAR from F32 activations (cpu with linear: f32): its whole point is
 * to be near the truth, and an F16 cache would be its largest error. */
static uint32_t kv_dtype(const struct loading *l, const char *path)
{
    const char *type = kopi__config_str(l->cfg, path, l->index);
    bool from_f32 = kopi__instance_takes(l->m->main, KOPI_DTYPE_Q8_0, KOPI_DTYPE_F32) &&
                    !kopi__instance_takes(l->m->main, KOPI_DTYPE_Q8_0, KOPI_DTYPE_A8_32);
    return !strcmp(type, "f32") || (!strcmp(type, "auto") && from_f32) ? KOPI_DTYPE_F32 : KOPI_DTYPE_F16;
}

/* For kopi_build.takes: quantized activations, unless the backend takes only F32 ones; what it takes in neither form is
 * the fallback's, and so is the choice. */
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
        kopi__log(KOPI_LOG_WARN, "context size %lld is more than the %u that the model was trained for", (long long)n,
                  own);
    if (n > 0) return (uint32_t)n;
    bool automatic = !set || !strcmp(set->text, "auto");
    return automatic && own > DEFAULT_CTX ? DEFAULT_CTX : own;
}

/* Says what the context will take, and refuses what the machine has not. */
static kopi_status check_memory(struct loading *l, const struct kopi_build *b)
{
    const struct kopi_instance *i = l->m->main;
    uint64_t seq, kv, rope, need, file = kopi__gguf_file_size(l->m->gguf);
    uint64_t have = !kopi__device_is_apart(i) ? kopi__available_memory()
                    : i->device.mem_free      ? i->device.mem_free
                                              : UINT64_MAX;
    char t[3][40];
    if (!kopi__kv_bytes(&l->m->decoder, b, b->n_ctx, &seq) || !kopi__mul(seq, b->max_seq, &kv) ||
        !kopi__mul((uint64_t)b->n_ctx * l->m->decoder.n_rot * sizeof(float), l->m->decoder.window ? 2 : 1, &rope) ||
        !kopi__add(kv, rope, &kv) || !kopi__add(kv, file, &need))
        return kopi__fail(l->err, KOPI_E_NOMEM,
                          "context size %u times %u sequences overflows; lower --ctx-size or --parallel", b->n_ctx,
                          b->max_seq);
    kopi__format_bytes(kv, t[0], sizeof t[0]);
    kopi__format_bytes(file, t[1], sizeof t[1]);
    kopi__format_bytes(have, t[2], sizeof t[2]);
    if (need > have)
        return kopi__fail(l->err, KOPI_E_NOMEM,
                          "context size %u needs %s for the KV cache beside %s of weights, but %s are available%s; "
                          "lower --ctx-size%s",
                          b->n_ctx, t[0], t[1], t[2], kopi__device_is_apart(i) ? " on the device" : "",
                          b->max_seq > 1 ? " or --parallel" : "");
    kopi__log(KOPI_LOG_INFO, "%s: %s of weights; context %u x %u sequences: KV cache %s", l->m->id, t[1], b->n_ctx,
              b->max_seq, t[0]);
    return KOPI_OK;
}

/* The cpu plugin beside another one; its absence matters only if something is missing. */
static struct kopi_instance *load_fallback(struct loading *l, const struct kopi_plugin_handle *main)
{
    const struct kopi_plugin_handle *cpu;
    struct kopi_instance *i = NULL;
    kopi_error e;
    if (strcmp(kopi__config_str(l->cfg, "backend.fallback", KOPI__MODEL_ALL), "cpu") || !strcmp(main->desc.name, "cpu"))
        return NULL;
    if (kopi__engine_plugin(l->m->engine, "cpu", &cpu, &e) != KOPI_OK ||
        kopi__engine_instance(l->m->engine, cpu, l->m->stop, &i, &e) != KOPI_OK)
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
    b.n_ctx = l->target ? l->target->n_ctx : context_size(l);
    if (l->target) b.max_tok = l->target->max_tok, b.max_seq = l->target->max_seq;
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
    if (s == KOPI_OK) kopi__gguf_willneed(l->m->gguf); /* the disk reads on while the vocabulary is made */
    if (s == KOPI_OK) s = kopi__decoder_read(m->gguf, &m->decoder, l->err);
    if (s == KOPI_OK) s = read_text(l);
    if (s == KOPI_OK) s = kopi__engine_instance(m->engine, plugin, m->stop, &m->main, l->err);
    if (s == KOPI_OK) s = kopi__engine_check_determinism(m->engine, m->main, l->err);
    if (s == KOPI_OK) m->fallback = load_fallback(l, plugin);
    if (s == KOPI_OK) s = build(l);
    if (s == KOPI_OK) {
        s = kopi__exec_new(m->main, m->fallback, m->program, m->gguf, on_import, l, &m->exec, l->err);
        if (s == KOPI_E_BACKEND) kopi__fail_prefix(l->err, m->path);
    }
    if (s == KOPI_OK) s = kopi__kv_new(&m->program->p, m->exec, &m->kv, l->err);
    return s;
}

static kopi_status load_model(struct loading *l, kopi_engine *engine, kopi_model **out)
{
    *out = NULL;
    kopi_model *m = l->m = kopi__calloc(1, sizeof *m);
    if (!m) return kopi__nomem(l->err, "model");
    m->engine = engine;
    m->config_index = l->index;
    m->stop = l->target ? &l->target->cancel : &m->cancel;
    kopi_status s = load(l);
    if (s == KOPI_OK && !l->target) s = kopi__speculation_new(m, l->progress, l->ctx, &m->spec, l->err);
    if (s == KOPI_OK) *out = m;
    else kopi_model_free(m);
    return s;
}

kopi_status kopi_model_load(kopi_engine *engine, const char *id, kopi_progress_fn progress, void *ctx, kopi_model **out,
                            kopi_error *err)
{
    *out = NULL;
    int index = kopi__config_model(engine->cfg, id);
    if (index < 0 && !id) return no_model(err);
    if (index < 0) return kopi__fail(err, KOPI_E_CONFIG, "no model with id \"%s\" is configured", id);
    struct loading l = {.cfg = engine->cfg, .index = index, .progress = progress, .ctx = ctx, .err = err,
                        .path = kopi__config_str(engine->cfg, "models[].path", index),
                        .sha256 = kopi__config_str(engine->cfg, "models[].sha256", index)};
    return load_model(&l, engine, out);
}

void kopi__draft_file(const kopi_config *cfg, const char *name, const char **path, const char **sha256)
{
    const char *slash = strrchr(name, '/'), *id = slash && access(name, F_OK) ? slash + 1 : name;
    *path = name;
    *sha256 = NULL;
    kopi__config_named(cfg, id, path, sha256);
}

kopi_status kopi__load_draft(const kopi_model *target, const char *name, kopi_progress_fn progress, void *ctx,
                             kopi_model **out, kopi_error *err)
{
    kopi_engine *engine = target->engine;
    struct loading l = {.cfg = engine->cfg,
                        .index = (int)kopi_config_models(engine->cfg),
                        .target = target,
                        .progress = progress,
                        .ctx = ctx,
                        .err = err};
    kopi__draft_file(engine->cfg, name, &l.path, &l.sha256);
    return load_model(&l, engine, out);
}
