#include "run/model.h"

#include "base/error.h"
#include "base/mem.h"
#include "run/kv.h"
#include "run/row.h"
#include "run/speculate.h"
#include <stdatomic.h>
#include <stdio.h>

void kopi_model_free(kopi_model *m)
{
    if (!m) return;
    kopi__speculation_free(m->spec);
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
    kopi__free(m->chat_from);
    kopi__free(m);
}

uint32_t kopi_model_vocab_size(const kopi_model *m) { return m->n_vocab; }
uint32_t kopi_model_max_context(const kopi_model *m) { return m->n_ctx; }
const char *kopi_model_id(const kopi_model *m) { return m->id; }
void kopi_model_cancel(kopi_model *m) { atomic_store(&m->cancel, 1); }
void kopi_model_uncancel(kopi_model *m) { atomic_store(&m->cancel, 0); }

void kopi_backend_device(const kopi_model *m, kopi_backend_info *out)
{
    const struct kopi_instance *i = m->main;
    *out = (kopi_backend_info){.threads = i->threads,
                               .exact = (i->device.flags & KOPI_DEVICE_EXACT) != 0,
                               .weight_bytes = kopi__exec_weight_bytes(m->exec),
                               .work_bytes = kopi__exec_work_bytes(m->exec)};
    snprintf(out->name, sizeof out->name, "%s", i->plugin->desc.name);
    snprintf(out->device, sizeof out->device, "%s", i->device.name);
    snprintf(out->detail, sizeof out->detail, "%s", i->device.detail);
    snprintf(out->path, sizeof out->path, "%s", i->plugin->path);
    for (uint32_t g = 0; g < m->program->p.n_groups; g++)
        out->kv_bytes += m->program->groups[g].page_bytes * m->program->groups[g].n_pages;
}

kopi_status kopi__model_check_row(const kopi_model *m, const float *row, kopi_error *err)
{
    const kopi_kv_group *g = &m->program->groups[0];
    uint32_t bad = kopi__row_nonfinite(row, m->n_vocab);
    if (bad == m->n_vocab) return KOPI_OK;
    return kopi__fail(
        err, KOPI_E_NONFINITE, "%s: the logit of token %u is not finite%s", m->id, bad,
        g->dtype_k == KOPI_DTYPE_F16 || g->dtype_v == KOPI_DTYPE_F16
            ? "; if F16 overflowed in the KV cache, --cache-type-k f32 --cache-type-v f32 (kv.type_k, kv.type_v) help"
            : "");
}

kopi_status kopi__model_step(kopi_model *m, const kopi_run *run, kopi_error *err)
{
    if (atomic_load(m->stop)) return kopi__fail(err, KOPI_E_CANCELLED, "cancelled");
    kopi_status s = kopi__exec_run(m->exec, run, err);
    return s == KOPI_OK ? kopi__gguf_check_unchanged(m->gguf, err) : s;
}
