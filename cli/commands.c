#include "commands.h"

static int run_help(int n, char **args)
{
    (void)n, (void)args;
    cli_help(NULL);
    return 0;
}

static int run_version(int n, char **args)
{
    (void)n, (void)args;
    printf("kopi %s (backend ABI %s)\n", kopi_version(), KOPI_ABI_VERSION_STRING);
    return 0;
}

#define ALL "backend plugin_dirs determinism models[]"
#define COMPUTE \
    "backend plugin_dirs determinism models[].path models[].mmap models[].context.size models[].context.batch " \
    "models[].kv"
/* One sequence, and no other name than the one that chose the model. */
#define ANSWER COMPUTE \
    " models[].context.overflow models[].template models[].sampling models[].speculation models[].limits"

const struct cli_command cli_commands[] = {
    {"run", NULL, "answer a prompt, or chat on a terminal", cli_run_options, ANSWER, cli_run},
    {"inspect", "FILE", "what a model file holds, and whether it will run", cli_inspect_options,
     "backend.name backend.path plugin_dirs", cli_inspect},
    {"tokenize", NULL, "text to token ids, or back with --decode", cli_tokenize_options, "models[].path models[].mmap",
     cli_tokenize},
    {"logits", NULL, "logits of given ids as a .npy file", cli_logits_options, COMPUTE, cli_logits},
    {"perplexity", NULL, "perplexity of a text", cli_perplexity_options, COMPUTE, cli_perplexity},
    {"bench", NULL, "speed of prompt processing and generation", cli_bench_options, COMPUTE, cli_bench},
    {"profile", NULL, "where the time of a short run goes, by operation", cli_profile_options, COMPUTE, cli_profile},
    {"backends", "[info NAME | check FILE-or-NAME | new NAME DIR]",
     "backends that are found, or one; a test of one; the start of one", cli_backends_options, COMPUTE, cli_backends},
    {"backends info", "NAME", "one backend, and with a model what it runs", cli_backends_options, COMPUTE,
     cli_backends_info},
    {"backends check", "FILE-or-NAME", "test a backend against the reference", cli_backends_check_options,
     "plugin_dirs", cli_backends_check},
    {"backends new", "NAME DIR", "start a backend: a folder that builds and passes", NULL, "", cli_backends_new},
    {"config", "check [FILE] | print [FILE] | schema | init", "validate, show or start a configuration", NULL, ALL,
     cli_config_command},
    {"config check", CLI_CONFIG_FILE, "validate a configuration, its backend and that its model files are there", NULL,
     ALL, cli_config_check},
    {"config print", CLI_CONFIG_FILE, "every value and where it comes from", NULL, ALL, cli_config_print},
    {"config schema", NULL, "JSON schema of the configuration", NULL, "", cli_config_schema},
    {"config init", NULL, "a configuration with every key and its comment, to start from", NULL, "", cli_config_init},
    {"version", NULL, "version of kopi and of its backend ABI", NULL, "", run_version},
    {"help", "[COMMAND]", "this list, or the options of a command", NULL, "", run_help},
    {0},
};
