#include "inputs.h"

#include "config/config.h"
#include "gguf/split.h"
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct cli_command *command;
static const char *config_file;
static int n_arguments;
static char **arguments;

void cli_set_inputs(const struct cli_command *c, const char *config, int n_args, char **args)
{
    command = c;
    config_file = config;
    n_arguments = n_args;
    arguments = args;
}

static bool is_file(const char *path, const struct stat *of)
{
    struct stat st;
    return path && !stat(path, &st) && cli_same_file(&st, of);
}

/* One of the files of a model, which may be split. */
static bool is_part(const char *path, const struct stat *of)
{
    struct kopi_gguf_split split = kopi__gguf_split_name(path);
    bool found = is_file(path, of);
    for (uint32_t i = 0; i < split.n && split.n > 1 && split.n <= KOPI__GGUF_MAX_PARTS && !found; i++) {
        char *part = kopi__gguf_split_path(&split, i);
        found = is_file(part, of);
        kopi__free(part);
    }
    return found;
}

/* The file of "FILE:LINE:COLUMN". */
static bool is_origin(const char *where, const struct stat *of)
{
    char *path = where ? strdup(where) : NULL;
    for (int i = 0; i < 2 && path && strrchr(path, ':'); i++) *strrchr(path, ':') = 0;
    bool found = is_file(path, of);
    free(path);
    return found;
}

/* Every path that is configured, also what another one hides: it is read in the next run. */
static bool is_configured(const struct stat *of)
{
    for (size_t i = 0; cli_config && i < cli_config->settings.n; i++) {
        const struct kopi__setting *s = &cli_config->settings.at[i];
        if ((s->key->type == KOPI_CONFIG_PATH && is_part(s->text, of)) || is_origin(s->where, of)) return true;
    }
    return is_file(config_file, of);
}

static bool is_argument(const struct stat *of)
{
    for (int i = 0; i < n_arguments; i++)
        if (is_part(arguments[i], of)) return true;
    for (const struct cli_option *o = command ? command->options : NULL; o && o->names; o++)
        if (o->kind == CLI_INPUT && is_file(*(const char **)o->out, of)) return true;
    return false;
}

int cli_check_output(const char *path)
{
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) return 0;
    if (is_argument(&st) || is_configured(&st))
        return cli_error(EXIT_USAGE, "%s: is read by this command, so it can't be written, too", path);
    return cli_log_is(&st) ? cli_error(EXIT_USAGE, "%s: is the log file already", path) : 0;
}
