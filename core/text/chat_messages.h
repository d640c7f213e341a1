/* core/text/chat_messages.h - the messages of a request as template values. [one thread]
 *
 * Templates disagree about what a message looks like: some take content as a list of parts, some only as a string; some
 * take a tool call's arguments as an object, some as JSON text; some know that content may be null. Requests come in
 * all these shapes. So a shape is a choice, and chat.c tries them in turn. */
#ifndef KOPI_CORE_TEXT_CHAT_MESSAGES_H
#define KOPI_CORE_TEXT_CHAT_MESSAGES_H

#include "text/chat.h"
#include "text/jinja/json.h"
#include "text/jinja/run.h"

enum {
    KOPI__CHAT_FLAT = 1,        /* parts of text joined by newlines, null or missing content the empty string */
    KOPI__CHAT_STRING_ARGS = 2, /* arguments of tool calls stay JSON text instead of becoming objects */
    KOPI__CHAT_PARTS = 4        /* a string becomes a list of one part of text */
};

/* Which of FLAT and STRING_ARGS would change something in these messages (an array of objects). */
unsigned kopi__chat_choices(const json_t *messages);

/* False: stored in j, or its arena stopped. */
bool kopi__chat_from_json(struct kopi_jinja *j, const json_t *messages, unsigned shape, struct kopi_jval *out);
bool kopi__chat_from_array(struct kopi_jinja *j, const struct kopi_chat_message *messages, size_t n, unsigned shape,
                           struct kopi_jval *out);

#endif
