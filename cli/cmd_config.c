/* kopi config: validates a configuration, shows every value with its origin, prints the schema or a starter file. */
#include "commands.h"

#include <string.h>

/* Prints a text that the library made. */
static int give(kopi_status s, char *text, const kopi_error *e)
{
    if (s != KOPI_OK) return cli_fail(e);
    int code = cli_write(text, strlen(text));
    kopi_free(text);
    return code;
}

/* check FILE, print FILE: as --config FILE, but that FILE may not hide behind another one. */
static int read_file(int n_args, char **args)
{
    kopi_error e;
    if (!n_args) return 0;
    if (n_args > 1) return cli_error(EXIT_USAGE, "one file at a time: \"%.60s\", \"%.60s\"", args[0], args[1]);
    if (cli_config_file()) return cli_error(EXIT_USAGE, "one file at a time: \"%.60s\", or --config", args[0]);
    kopi_status s = kopi_config_load(cli_config, args[0], &e);
    if (s == KOPI_OK) s = kopi_config_check(cli_config, &e);
    return s == KOPI_OK ? 0 : cli_fail(&e);
}

/* What is read is valid, or its end is not reached. */
int cli_config_check(int n_args, char **args)
{
    int code = read_file(n_args, args);
    if (!code && !cli_quiet) printf("the configuration is valid\n");
    return code;
}

int cli_config_print(int n_args, char **args)
{
    kopi_error e;
    char *text = NULL;
    int code = read_file(n_args, args);
    if (code) return code;
    kopi_status s = kopi_config_print(cli_config, &text, &e);
    return give(s, text, &e);
}

int cli_config_schema(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_schema(&text, &e);
    return give(s, text, &e);
}

int cli_config_init(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_starter(&text, &e);
    return give(s, text, &e);
}

int cli_config_command(int n_args, char **args)
{
    (void)n_args, (void)args;
    return cli_error(EXIT_USAGE, "kopi config takes one of: check [FILE], print [FILE], schema, init");
}
