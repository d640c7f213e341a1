/* Sampling values of a model as configured, and the built-in ones. */
#include "config/config.h"
#include "run/engine.h"
#include "run/model.h"

void kopi_sampling_default(const kopi_model *m, kopi_sampling *out)
{
    *out = (kopi_sampling){.struct_size = sizeof *out, .top_k = 40, .temperature = 0.8f, .top_p = 0.95f, .min_p = 0.05f,
                           .repeat_penalty = 1, .repeat_last_n = 64, .seed = -1};
    if (!m) return;
    const kopi_config *c = m->engine->cfg;
    int i = m->config_index;
    out->top_k = (int32_t)kopi__config_int(c, "models[].sampling.top_k", i);
    out->temperature = (float)kopi__config_float(c, "models[].sampling.temperature", i);
    out->top_p = (float)kopi__config_float(c, "models[].sampling.top_p", i);
    out->min_p = (float)kopi__config_float(c, "models[].sampling.min_p", i);
    out->repeat_penalty = (float)kopi__config_float(c, "models[].sampling.repeat_penalty", i);
    out->repeat_last_n = (int32_t)kopi__config_int(c, "models[].sampling.repeat_last_n", i);
    out->presence_penalty = (float)kopi__config_float(c, "models[].sampling.presence_penalty", i);
    out->frequency_penalty = (float)kopi__config_float(c, "models[].sampling.frequency_penalty", i);
    out->seed = kopi__config_int(c, "models[].sampling.seed", i);
}
