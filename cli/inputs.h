/* cli/inputs.h - the files that a command reads, by every name that it was given: none of them may be its output. One
 * thread. */
#ifndef KOPI_CLI_INPUTS_H
#define KOPI_CLI_INPUTS_H

#include "cli.h"

/* What the command line says (config: of --config, or NULL); all of it stays. Before it nothing is an input. */
void cli_set_inputs(const struct cli_command *c, const char *config, int n_args, char **args);

/* 0, or EXIT_USAGE after a message if writing to path would destroy an input or the log. */
int cli_check_output(const char *path);

#endif
