/* core/text/chat.h - chat messages to prompt segments, through the model's own Jinja template. [any] */
#ifndef KOPI_CORE_TEXT_CHAT_H
#define KOPI_CORE_TEXT_CHAT_H

#include "text/tokenizer.h"

struct kopi_chat_template;

struct kopi_chat_message { const char *role; const char *content; size_t content_len; };

/* Parses the Jinja source. Errors: KOPI_E_MODEL with line and column of the template. */
kopi_status kopi__chat_template_new(const char *source, size_t n, struct kopi_chat_template **out, kopi_error *err);
/* True if it renders, but leaves out what a user says: an empty one, above all. */
bool kopi__chat_template_drops_user(const struct kopi_chat_template *t);
void kopi__chat_template_free(struct kopi_chat_template *t);

struct kopi_chat_render {
    struct kopi_segment *segments; /* point into text; what came from a message's content (or any other outside value)
                                      has parse_special 0, what the template itself wrote has 1 */
    size_t n_segments;
    char *text;
    size_t text_len;
};
struct kopi_chat_options {
    bool add_generation_prompt;
    const char *bos_text, *eos_text; /* "" if the model has none */
    const char *kwargs_json;         /* more variables as a JSON object, or NULL */
    const char *messages_json;       /* the messages as a JSON array instead of `messages` (tools, parts), or NULL */
    const char *tools_json;          /* JSON array, or NULL */
};
/* Renders. Bounded in steps, output and depth. Errors: KOPI_E_INVALID with the template's raise_exception text, or what
 * the template does that is not supported. The result is freed by kopi__chat_render_free. */
kopi_status kopi__chat_render(const struct kopi_chat_template *t, const struct kopi_chat_message *messages, size_t n,
                              const struct kopi_chat_options *o, struct kopi_chat_render *out, kopi_error *err);
void kopi__chat_render_free(struct kopi_chat_render *r);

#endif
