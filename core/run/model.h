/* core/run/model.h - a loaded model: file, tokenizer, program, backend and KV memory, ready to run steps.
 * Immutable after load but for the KV pages and the backend's working memory: one step at a time. */
#ifndef KOPI_CORE_RUN_MODEL_H
#define KOPI_CORE_RUN_MODEL_H

#include "backend/exec.h"
#include "gguf/gguf.h"
#include "model/decoder.h"
#include "model/program.h"
#include "text/chat.h"
#include "text/tokenizer.h"

struct kopi_kv;          /* core/run/kv.h: pages, made by kopi_model_load */
struct kopi_speculation; /* core/run/speculate.h */

struct kopi_model {
    kopi_engine *engine; /* borrowed: thread team, plugin search, configuration */
    int config_index;    /* models[] entry */
    char *id, *path;
    struct kopi_gguf *gguf;
    struct kopi_tokenizer *tokenizer; /* NULL: the file has no tokenizer (ids only) */
    struct kopi_chat_template *chat;  /* NULL: no template */
    char *chat_from;                  /* the file that has it */
    struct kopi_decoder decoder;
    struct kopi__program *program;
    struct kopi_instance *main, *fallback; /* fallback: NULL if there is none */
    struct kopi_exec *exec;
    struct kopi_kv *kv;
    uint32_t n_vocab, n_ctx;            /* positions per sequence */
    uint32_t max_tok, max_out, max_seq; /* bounds of one step */
    _Atomic int cancel;                 /* set by kopi_model_cancel */
    const _Atomic int *stop;       /* polled by everything long: its own cancel, or that of the model it drafts for */
    struct kopi_speculation *spec; /* NULL: none */
};

/* Runs one step; the logits of run->outputs are written by the backend. KOPI_E_IO: the model's file was changed. [one
 * thread at a time per model] */
kopi_status kopi__model_step(kopi_model *m, const kopi_run *run, kopi_error *err);
/* KOPI_E_NONFINITE for a row of logits with a value that is not finite, naming kv.type where F16 may be the reason.
 * [any] */
kopi_status kopi__model_check_row(const kopi_model *m, const float *row, kopi_error *err);

#endif
