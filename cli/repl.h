/* cli/repl.h - chat on a terminal. One thread. */
#ifndef KOPI_CLI_REPL_H
#define KOPI_CLI_REPL_H

#include "talk.h"

struct repl_options {
    const char *system_text;
    const struct cli_list *stop;
    bool raw, timings, ignore_eos, special;
};

/* Reads lines until Ctrl-D, /exit or SIGTERM; Ctrl-C stops an answer and keeps it, or drops a line. Returns an exit
 * code. */
int cli_repl(kopi_model *model, const struct repl_options *o);
void cli_show_timings(const kopi_result *r);
/* Logs that an answer of at most n_predict tokens ended because the context is full, if it did; remedy: what helps
 * beside --ctx-size, or "". */
void cli_note_full(const kopi_model *m, const kopi_result *r, int32_t n_predict, const char *remedy);

/* ---- for repl_commands.c ----------------------------------------------------------------------------------------- */

struct repl {
    kopi_model *model;
    const struct repl_options *options;
    kopi_cache *cache;
    struct talk talk;
    kopi_result last;       /* without its text: of the last answer, for /stats */
    size_t n_answers, n_tokens;
    bool end;
};

/* Asks for an answer to what the talk ends with, and adds it. False if none came, and if it failed; what came until
 * then is added. */
bool repl_answer(struct repl *r);
void repl_ask(struct repl *r, const char *text); /* adds the message, then answers; with no answer it goes */
void repl_command(struct repl *r, const char *line); /* "/name argument" */

#endif
