/* The text part of kopi.h: a model's tokenizer and chat template under their public names. */
#include "base/error.h"
#include "base/mem.h"
#include "run/model.h"
#include <stdatomic.h>
#include <string.h>

static int cancelled(void *m) { return atomic_load(&((const kopi_model *)m)->cancel); }

static kopi_status need_tokenizer(const kopi_model *m, kopi_error *err)
{
    if (m->tokenizer) return KOPI_OK;
    return kopi__fail(err, KOPI_E_UNSUPPORTED, "%s has no tokenizer: only token ids work", m->path);
}

kopi_status kopi_tokenize(const kopi_model *m, const char *text, size_t len, unsigned flags, int32_t **ids, size_t *n,
                          kopi_error *err)
{
    unsigned f = (flags & KOPI_ADD_SPECIAL ? KOPI__TOK_ADD_SPECIAL : 0) |
                 (flags & KOPI_PARSE_SPECIAL ? KOPI__TOK_PARSE_SPECIAL : 0);
    kopi_status s = need_tokenizer(m, err);
    if (s != KOPI_OK) return s;
    return kopi__tokenize(m->tokenizer, text, len, f, ids, n, cancelled, (void *)(uintptr_t)m, err);
}

kopi_status kopi_detokenize(const kopi_model *m, const int32_t *ids, size_t n, int special, char **text, size_t *len,
                            kopi_error *err)
{
    kopi_status s = need_tokenizer(m, err);
    return s == KOPI_OK ? kopi__detokenize(m->tokenizer, ids, n, special != 0, text, len, err) : s;
}

int kopi_token_is_eog(const kopi_model *m, int32_t id)
{
    return m->tokenizer && id >= 0 && id < kopi__n_vocab(m->tokenizer) && kopi__is_eog(m->tokenizer, id);
}

int kopi_model_has_chat_template(const kopi_model *m) { return m->chat != NULL; }

/* Text of a control token as a template's bos_token or eos_token: owned by the caller, "" if the model has none. */
static char *token_text(const struct kopi_tokenizer *t, int32_t id)
{
    size_t n = 0;
    const char *s = id >= 0 ? kopi__token_text(t, id, &n) : "";
    return kopi__strndup(s, n);
}

static kopi_status render(const kopi_model *m, const kopi_message *messages, size_t n, struct kopi_chat_render *out,
                          kopi_error *err)
{
    struct kopi_chat_message *list = kopi__calloc(n, sizeof *list);
    char *bos = token_text(m->tokenizer, kopi__bos(m->tokenizer)),
         *eos = token_text(m->tokenizer, kopi__eos(m->tokenizer));
    kopi_status s = KOPI_OK;
    if (!list || !bos || !eos) s = kopi__nomem(err, "chat");
    for (size_t i = 0; i < n && s == KOPI_OK; i++)
        list[i] = (struct kopi_chat_message){messages[i].role, messages[i].content, strlen(messages[i].content)};
    const struct kopi_chat_options o = {.add_generation_prompt = true, .bos_text = bos, .eos_text = eos};
    if (s == KOPI_OK && (s = kopi__chat_render(m->chat, list, n, &o, out, err)) != KOPI_OK)
        kopi__fail_prefix(err, m->chat_from);
    kopi__free(list);
    kopi__free(bos);
    kopi__free(eos);
    return s;
}

kopi_status kopi_chat_tokenize(const kopi_model *m, const kopi_message *messages, size_t n_messages, int32_t **ids,
                               size_t *n, kopi_error *err)
{
    struct kopi_chat_render r = {0};
    kopi_status s = need_tokenizer(m, err);
    if (s == KOPI_OK && !m->chat) s = kopi__fail(err, KOPI_E_UNSUPPORTED, "%s has no chat template", m->path);
    if (s == KOPI_OK) s = render(m, messages, n_messages, &r, err);
    if (s != KOPI_OK) return s;
    s = kopi__tokenize_segments(m->tokenizer, r.segments, r.n_segments, KOPI__TOK_ADD_SPECIAL, ids, n, cancelled,
                                (void *)(uintptr_t)m, err);
    kopi__chat_render_free(&r);
    return s;
}

void kopi_free(void *p) { kopi__free(p); }
