/* cli/commands.h - the subcommands: cmd_NAME.c. */
#ifndef KOPI_CLI_COMMANDS_H
#define KOPI_CLI_COMMANDS_H

#include "cli.h"

#define CLI_COMMAND(name, fn) extern const struct cli_option cli_##name##_options[]; int fn(int n_args, char **args)
CLI_COMMAND(run, cli_run);
CLI_COMMAND(inspect, cli_inspect);
CLI_COMMAND(tokenize, cli_tokenize);
CLI_COMMAND(logits, cli_logits);
CLI_COMMAND(perplexity, cli_perplexity);
CLI_COMMAND(bench, cli_bench);
CLI_COMMAND(profile, cli_profile);
CLI_COMMAND(backends, cli_backends);
CLI_COMMAND(backends_check, cli_backends_check);
#undef CLI_COMMAND
int cli_backends_info(int n_args, char **args);
int cli_backends_new(int n_args, char **args);
int cli_config_command(int n_args, char **args);
int cli_config_check(int n_args, char **args);
int cli_config_print(int n_args, char **args);
int cli_config_schema(int n_args, char **args);
int cli_config_init(int n_args, char **args);

#endif
