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

static const struct { const char *name; int (*run)(void); } actions[] = {
    {"check", check}, {"print", print}, {"schema", schema}, {"init", init}};

int cli_config_command(int n_args, char **args)
{
    for (size_t i = 0; n_args == 1 && i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(args[0], actions[i].name)) return actions[i].run();
    return cli_error(EXIT_USAGE, "kopi config takes one of: check, print, schema, init");
}
