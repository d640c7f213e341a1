/* kopi config: validates a configuration, shows every value with its origin. */
#include "commands.h"

#include <string.h>

const struct cli_option cli_config_options[] = {{0}};

static int print_entry(void *ctx, const kopi_config_entry *e)
{
    (void)ctx;
    printf("%-34s %-24s # %s\n", e->path, e->value ? e->value : "", e->origin);
    return 0;
}

static int check(void)
{
    if (!cli_quiet) printf("the configuration is valid\n");
    return 0;
}

static int print(void)
{
    kopi_config_each(cli_config, print_entry, NULL);
    return 0;
}

static const struct { const char *name; int (*run)(void); } actions[] = {{"check", check}, {"print", print}};

int cli_config_command(int n_args, char **args)
{
    for (size_t i = 0; n_args == 1 && i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(args[0], actions[i].name)) return actions[i].run();
    return cli_error(EXIT_USAGE, "kopi config takes one of: check, print");
}
