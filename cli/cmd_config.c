/* kopi config: validates a configuration, shows every value with its origin, prints the schema or a starter file. */
#include "commands.h"

#include <string.h>

const struct cli_option cli_config_options[] = {{0}};

/* Prints a text that the library made. */
static int give(kopi_status s, char *text, const kopi_error *e)
{
    if (s != KOPI_OK) return cli_fail(e);
    int code = cli_write(text, strlen(text));
    kopi_free(text);
    return code;
}

/* What is read is valid, or this is not reached. */
static int check(void)
{
    if (!cli_quiet) printf("the configuration is valid\n");
    return 0;
}

static int print(void)
{
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_print(cli_config, &text, &e);
    return give(s, text, &e);
}

static int schema(void)
{
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_schema(&text, &e);
    return give(s, text, &e);
}

static int init(void)
{
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_starter(&text, &e);
    return give(s, text, &e);
}

static const struct { const char *name; int (*run)(void); bool reads; } actions[] = {
    {"check", check, true}, {"print", print, true}, {"schema", schema, false}, {"init", init, false}};

/* check FILE, print FILE: as --config FILE, but that FILE may not hide behind another one. */
static int read_file(const char *path)
{
    kopi_error e;
    if (cli_config_file()) return cli_error(EXIT_USAGE, "one file at a time: \"%.60s\", or --config", path);
    kopi_status s = kopi_config_load(cli_config, path, &e);
    if (s == KOPI_OK) s = kopi_config_check(cli_config, &e);
    return s == KOPI_OK ? 0 : cli_fail(&e);
}

int cli_config_command(int n_args, char **args)
{
    for (size_t i = 0; n_args && i < sizeof actions / sizeof *actions; i++) {
        if (strcmp(args[0], actions[i].name)) continue;
        if (n_args > 1 + actions[i].reads)
            return cli_error(EXIT_USAGE, "kopi config %s takes no argument \"%.60s\"%s", args[0], args[n_args - 1],
                             actions[i].reads ? "" : "; it writes to standard output");
        int code = n_args > 1 ? read_file(args[1]) : 0;
        return code ? code : actions[i].run();
    }
    return cli_error(EXIT_USAGE, "kopi config takes one of: check [FILE], print [FILE], schema, init");
}
