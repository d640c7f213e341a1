/* kopi_sampling_default: a model's sampling values. What the user wrote (in any way) comes first, then what the model
 * file recommends, then the built-in defaults, which are those of the configuration table. */
#include "run/engine.h"
#include "run/model.h"
#include <float.h>
#include <string.h>

enum type { INT, FLOAT };
static const struct field {
    const char *path, *hint; /* hint: key of the model file, or NULL */
    enum type type;
    size_t at;
    double lo, hi; /* of a hint that is taken */
} fields[] = {
    {"models[].sampling.temperature", "general.sampling.temp", FLOAT, offsetof(kopi_sampling, temperature), 0, 100},
    {"models[].sampling.top_k", "general.sampling.top_k", INT, offsetof(kopi_sampling, top_k), -1, INT32_MAX},
    {"models[].sampling.top_p", "general.sampling.top_p", FLOAT, offsetof(kopi_sampling, top_p), 0, 1},
    {"models[].sampling.min_p", "general.sampling.min_p", FLOAT, offsetof(kopi_sampling, min_p), 0, 1},
    {"models[].sampling.repeat_penalty", "general.sampling.penalty_repeat", FLOAT,
     offsetof(kopi_sampling, repeat_penalty), 0.01, 100},
    {"models[].sampling.repeat_last_n", "general.sampling.penalty_last_n", INT, offsetof(kopi_sampling, repeat_last_n),
     -1, INT32_MAX},
    {"models[].sampling.presence_penalty", NULL, FLOAT, offsetof(kopi_sampling, presence_penalty), 0, 0},
    {"models[].sampling.frequency_penalty", NULL, FLOAT, offsetof(kopi_sampling, frequency_penalty), 0, 0},
};

static void store(kopi_sampling *out, const struct field *f, double v)
{
    char *at = (char *)out + f->at;
    if (f->type == INT) memcpy(at, &(int32_t){(int32_t)v}, sizeof(int32_t));
    else memcpy(at, &(float){(float)v}, sizeof(float));
}

/* What the model file recommends, or v; a recommendation out of its range is none. */
static double hint(const struct kopi_gguf *g, const struct field *f, double v)
{
    const struct kopi_gguf_kv *kv = f->hint ? kopi__gguf_find(g, f->hint) : NULL;
    double h;
    if (!kv || kv->type == KOPI_GGUF_ARRAY || !kopi__gguf_get_f64(kv, 0, &h)) return v;
    return h >= f->lo && h <= f->hi ? h : v;
}

void kopi_sampling_default(const kopi_model *model, kopi_sampling *out)
{
    *out = (kopi_sampling){.struct_size = sizeof *out,
                           .top_k = 40,
                           .temperature = 0.8f,
                           .top_p = 0.95f,
                           .min_p = 0.05f,
                           .repeat_penalty = 1,
                           .repeat_last_n = 64,
                           .seed = -1};
    if (!model) return;
    const kopi_config *cfg = model->engine->cfg;
    for (const struct field *f = fields; f < fields + sizeof fields / sizeof *fields; f++) {
        const struct kopi__setting *set = kopi__config_find(cfg, f->path, model->config_index);
        double v = f->type == INT ? (double)kopi__config_int(cfg, f->path, model->config_index)
                                  : kopi__config_float(cfg, f->path, model->config_index);
        if (set->from == KOPI_FROM_DEFAULT) v = hint(model->gguf, f, v);
        store(out, f, v);
    }
    out->seed = kopi__config_int(cfg, "models[].sampling.seed", model->config_index);
}
