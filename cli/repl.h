/* cli/repl.h - chat on a terminal. */
#ifndef KOPI_CLI_REPL_H
#define KOPI_CLI_REPL_H

#include "cli.h"

struct repl_options { const char *system_text; bool raw, timings; };

/* Reads lines until Ctrl-D or /exit; Ctrl-C stops an answer and keeps it. Returns an exit code. */
int cli_repl(kopi_model *model, const struct repl_options *o);
void cli_show_timings(const kopi_result *r);

#endif
