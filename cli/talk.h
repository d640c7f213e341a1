/* cli/talk.h - the messages of a chat, and the file that keeps them. One thread. */
#ifndef KOPI_CLI_TALK_H
#define KOPI_CLI_TALK_H

#include "cli.h"

struct talk {
    kopi_message *messages; /* texts are its own */
    size_t n;
};

/* role: a text that stays. What a message can't hold, NUL and bytes that are not UTF-8, becomes U+FFFD. False after a
 * message: no memory. */
bool talk_add(struct talk *t, const char *role, const char *content, size_t n);
void talk_cut(struct talk *t, size_t n); /* keeps the first n */
bool talk_ends_with(const struct talk *t, const char *role);

/* The last message, taken out, if it is of this role; else one without content. It can be given back once the talk has
 * the same length again; or it is dropped. */
kopi_message talk_take(struct talk *t, const char *role);
void talk_give(struct talk *t, kopi_message m);
void talk_drop(kopi_message m);

/* A JSON array of {"role": ..., "content": ...}, as in the messages of the OpenAI API. 0 or an exit code after a
 * message; a file that can't be read leaves the talk as it is. */
int talk_save(const struct talk *t, const char *path);
int talk_load(struct talk *t, const char *path);

#endif
