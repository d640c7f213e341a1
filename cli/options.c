#include "cli.h"

#include "base/num.h"
#include "config/nearest.h"
#include "inputs.h"
#include <stdlib.h>
#include <string.h>

kopi_config *cli_config;
bool cli_quiet, cli_no_progress;

/* Options of every command. */
static struct cli_list sets;
static const char *config_file, *log_file;
static bool verbose, help;
static const struct cli_option global[] = {
    {"--config", "FILE", CLI_STRING, &config_file, "YAML configuration", 0, 0},
    {"--set", "KEY=VALUE", CLI_LIST, &sets, "one value of the configuration, e.g. backend.options.cpu.isa=baseline", 0,
     0},
    {"-v, --verbose", NULL, CLI_FLAG, &verbose, "say more on stderr", 0, 0},
    {"-q, --quiet", NULL, CLI_FLAG, &cli_quiet, "say only errors on stderr", 0, 0},
    {"--log-file", "FILE", CLI_STRING, &log_file, "append the log to this file; only errors go to stderr, too", 0, 0},
    {"--no-progress", NULL, CLI_FLAG, &cli_no_progress, "no moving lines on a terminal", 0, 0},
    {"-h, --help", NULL, CLI_FLAG, &help, "this text", 0, 0},
    {0},
};
enum { N_CONFIG_OPTIONS = 2 }; /* the first ones: no matter where nothing is configured */
static const struct cli_option none[] = {{0}};

bool cli_has_name(const char *names, const char *flag)
{
    size_t n = strlen(flag);
    for (const char *p = names; p && (p = strstr(p, flag)); p += n)
        if ((p == names || p[-1] == ' ') && (!p[n] || p[n] == ',')) return true;
    return false;
}

static const struct cli_option *find(const struct cli_option *list, const char *flag)
{
    for (; list->names; list++)
        if (cli_has_name(list->names, flag)) return list;
    return NULL;
}

bool cli_takes_key(const struct cli_command *c, const kopi_config_key *key)
{
    if (!key->flags) return false;
    for (const char *p = c->keys; p && *p; p += strcspn(p, " "), p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        if (!strncmp(key->path, p, n) && (!key->path[n] || key->path[n] == '.')) return true;
    }
    return !strncmp(key->path, "log.", 4);
}

/* ---- commands below commands ------------------------------------------------------------------------------------- */

/* "backends" and "backends check" are of one family. */
static bool same_family(const char *a, const char *b)
{
    size_t n = strcspn(a, " ");
    return n == strcspn(b, " ") && !strncmp(a, b, n);
}

static const struct cli_option *find_in_family(const char *name, const char *flag, const struct cli_command **owner)
{
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        const struct cli_option *o = same_family(c->name, name) ? find(c->options ? c->options : none, flag) : NULL;
        if (!o) continue;
        *owner = c;
        return o;
    }
    return NULL;
}

/* Whether the argument behind this one is its value. */
static bool next_is_value(const char *name, const char *flag)
{
    const struct cli_command *owner;
    const struct cli_option *o = find_in_family(name, flag, &owner);
    if (!o) o = find(global, flag);
    const kopi_config_key *key = o ? NULL : kopi_config_key_of_flag(flag);
    return o ? o->kind != CLI_FLAG : key && key->type != KOPI_CONFIG_BOOL;
}

static const char *first_argument(const char *name, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "--")) return i + 1 < argc ? argv[i + 1] : NULL;
        if (argv[i][0] != '-' || !argv[i][1]) return argv[i];
        i += next_is_value(name, argv[i]);
    }
    return NULL;
}

const struct cli_command *cli_command(const char *name, int argc, char **argv)
{
    const char *word = first_argument(name, argc, argv);
    const struct cli_command *found = NULL;
    size_t n = strlen(name);
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        if (!strcmp(c->name, name)) found = c;
        if (word && !strncmp(c->name, name, n) && c->name[n] == ' ' && !strcmp(c->name + n + 1, word)) return c;
    }
    return found && !strchr(name, ' ') ? found : NULL;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

/* The known name nearest to a misspelt or abbreviated flag, for the message; NULL if nothing is near. */
static void note_nearest(const char *names, const char *flag, const char **best, size_t *best_len, unsigned *best_cost)
{
    for (const char *p = names; p && *p; p += strspn(p, ", ")) {
        size_t n = strcspn(p, ", ");
        char one[64];
        if (n < sizeof one) {
            memcpy(one, p, n);
            one[n] = 0;
            unsigned cost = strncmp(one, flag, strlen(flag)) ? (unsigned)kopi__nearest_distance(one, flag) : 0;
            if (cost < *best_cost) {
                *best = p;
                *best_len = n;
                *best_cost = cost;
            }
        }
        p += n;
    }
}

static bool takes_value(const struct cli_command *c, const char *flag)
{
    const struct cli_option *o = find(c->options ? c->options : none, flag);
    if (o) return o->kind != CLI_FLAG;
    const kopi_config_key *key = kopi_config_key_of_flag(flag);
    return key && cli_takes_key(c, key) && key->type != KOPI_CONFIG_BOOL;
}

/* The length of the flag in one with its number joined, as -n8; 0: it is none. */
static size_t joined(const struct cli_command *c, const char *flag)
{
    char one[8];
    size_t n = strcspn(flag, "0123456789");
    if (flag[1] == '-' || !flag[n] || n >= sizeof one) return 0;
    snprintf(one, sizeof one, "%.*s", (int)n, flag);
    return takes_value(c, one) ? n : 0;
}

static int unknown_flag(const struct cli_command *c, const char *flag)
{
    const struct cli_command *owner;
    if (find_in_family(c->name, flag, &owner))
        return cli_error(EXIT_USAGE, "kopi %s has no option %.60s; kopi %s has", c->name, flag, owner->name);
    const char *best = NULL;
    size_t len = joined(c, flag);
    if (len)
        return cli_error(EXIT_USAGE, "kopi %s has no option %.60s; did you mean %.*s %.40s?", c->name, flag, (int)len,
                         flag, flag + len);
    unsigned cost = flag[2] ? 3 : 0; /* every other letter is near to one letter */
    for (const struct cli_option *o = c->options ? c->options : none; o->names; o++)
        note_nearest(o->names, flag, &best, &len, &cost);
    for (const struct cli_option *o = global; o->names; o++) note_nearest(o->names, flag, &best, &len, &cost);
    const kopi_config_key *key;
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++)
        if (cli_takes_key(c, key)) note_nearest(key->flags, flag, &best, &len, &cost);
    if (best)
        return cli_error(EXIT_USAGE, "kopi %s has no option %.60s; did you mean %.*s?", c->name, flag, (int)len, best);
    return cli_error(EXIT_USAGE, "kopi %s has no option %.60s; see kopi %s --help", c->name, flag, c->name);
}

/* Whether this was asked before: the second of two texts or files would hide the first. */
static bool again(const void *out)
{
    enum { MOST = 64 };
    static const void *seen[MOST];
    static int n;
    for (int i = 0; i < n; i++)
        if (seen[i] == out) return true;
    if (n < MOST) seen[n++] = out;
    return false;
}

static int store(const struct cli_option *o, const char *flag, const char *value)
{
    switch (o->kind) {
    case CLI_FLAG: *(bool *)o->out = true; return 0;
    case CLI_STRING:
    case CLI_INPUT:
        if (again(o->out)) return cli_error(EXIT_USAGE, "%s is given twice", o->names);
        *(const char **)o->out = value;
        return 0;
    case CLI_INT: {
        int64_t v;
        if (!kopi__parse_i64(value, &v) || v < o->min || v > o->max)
            return cli_error(EXIT_USAGE, "%s is \"%.40s\", allowed are whole numbers from %lld to %lld", flag, value,
                             (long long)o->min, (long long)o->max);
        *(int64_t *)o->out = v;
        return 0;
    }
    default: {
        struct cli_list *l = o->out;
        const char **more = realloc(l->at, (l->n + 1) * sizeof *more);
        if (!more) return cli_error(EXIT_RUN, "out of memory");
        l->at = more;
        l->at[l->n++] = value;
        return 0;
    }
    }
}

/* What --help calls the value of a key: the possible words, where there are no others. */
static const char *key_arg(const kopi_config_key *key) { return key->type == KOPI_CONFIG_ENUM ? key->words : key->arg; }

/* A flag of the configuration waits until files and environment are read: it counts more than they do. */
struct pending { const char *flag, *value; };

/* One option at argv[*i], with "=value" or the next argument as its value. */
static int parse_one(const struct cli_command *c, int argc, char **argv, int *i, struct pending *pending,
                     int *n_pending)
{
    char *flag = argv[*i], *eq = flag[1] == '-' ? strchr(flag, '=') : NULL, *value = NULL;
    if (eq) {
        *eq = 0;
        value = eq + 1;
    }
    const struct cli_option *o = find(c->options ? c->options : none, flag);
    if (!o) o = find(global, flag);
    const kopi_config_key *key = o ? NULL : kopi_config_key_of_flag(flag);
    if (!o && (!key || !cli_takes_key(c, key))) return unknown_flag(c, flag);
    bool wants = o ? o->kind != CLI_FLAG : key->type != KOPI_CONFIG_BOOL;
    if (!wants && value) return cli_error(EXIT_USAGE, "%s takes no value", flag);
    if (wants && !value) {
        if (*i + 1 >= argc)
            return cli_error(EXIT_USAGE, "%s needs a value: %s %s", flag, flag, o ? o->arg : key_arg(key));
        value = argv[++*i];
    }
    if (o) return store(o, flag, value);
    pending[(*n_pending)++] = (struct pending){flag, value};
    return 0;
}

/* What a command without the flag has no use for: a draft model where no text is generated, and room for sequences that
 * are not there. */
static const struct { const char *flag, *key, *value; } unused[] = {
    {"--spec-type", "models[].speculation.type", "none"}, {"--parallel", "models[].context.parallel", "1"}};

static int configure(const struct cli_command *c, const struct pending *pending, int n)
{
    kopi_error e;
    if (cli_quiet) kopi_log_set(KOPI_LOG_ERROR, NULL, NULL); /* also until the configuration says what is logged */
    kopi_status s = kopi_config_new(&cli_config, &e);
    bool uses_none = !*c->keys; /* help, above all: then a broken configuration is nothing to it, if not named */
    if (s == KOPI_OK && !uses_none) s = kopi_config_load_standard(cli_config, &e);
    if (s == KOPI_OK && config_file) s = kopi_config_load(cli_config, config_file, &e);
    if (s == KOPI_OK && !uses_none) s = kopi_config_load_env(cli_config, &e);
    for (size_t i = 0; i < sets.n && s == KOPI_OK; i++) {
        char *key = strdup(sets.at[i]), *eq = key ? strchr(key, '=') : NULL;
        if (!key) return cli_error(EXIT_RUN, "out of memory");
        if (!eq) {
            free(key);
            return cli_error(EXIT_USAGE, "--set %.80s: expected key=value", sets.at[i]);
        }
        *eq = 0;
        s = kopi_config_set(cli_config, key, eq + 1, &e);
        free(key);
    }
    for (size_t i = 0; i < sizeof unused / sizeof *unused && s == KOPI_OK; i++)
        if (!cli_takes_key(c, kopi_config_key_of_flag(unused[i].flag)))
            s = kopi_config_set(cli_config, unused[i].key, unused[i].value, &e);
    for (int i = 0; i < n; i++) {
        if (s != KOPI_OK) break;
        s = kopi_config_flag(cli_config, pending[i].flag, pending[i].value, &e);
    }
    if (s == KOPI_OK) s = kopi_config_check(cli_config, &e);
    return s == KOPI_OK ? 0 : cli_fail(&e);
}

/* FILE of config check and config print; it may not hide behind another one. */
static int take_config(const struct cli_command *c, char **args, int n_args)
{
    if (!n_args || !c->args || strcmp(c->args, CLI_CONFIG_FILE)) return 0;
    if (n_args > 1) return cli_error(EXIT_USAGE, "one file at a time: \"%.60s\", \"%.60s\"", args[0], args[1]);
    if (config_file) return cli_error(EXIT_USAGE, "one file at a time: \"%.60s\", or --config", args[0]);
    config_file = args[0];
    return 0;
}

/* An argument that the command doesn't take is most likely the value of a flag that was left out. */
static int unwanted(const struct cli_command *c, const char *arg)
{
    size_t n = strlen(arg);
    bool model = n > 5 && !strcmp(arg + n - 5, ".gguf") && cli_takes_key(c, kopi_config_key_of_flag("--model"));
    const struct cli_option *text = find(c->options ? c->options : none, "--prompt");
    bool writes = same_family(c->name, "config");
    return cli_error(EXIT_USAGE, "kopi %s takes no argument \"%.60s\"%s%s", c->name, arg,
                     writes          ? "; it writes to standard output"
                     : model || text ? "; did you mean "
                                     : "",
                     model  ? "-m FILE?"
                     : text ? "-p TEXT?"
                            : "");
}

int cli_parse(const struct cli_command *c, int argc, char **argv, char **args, int *n_args)
{
    struct pending *pending = calloc((size_t)argc + 1, sizeof *pending);
    int n_pending = 0, code = pending ? 0 : cli_error(EXIT_RUN, "out of memory");
    bool only_args = false;
    for (int i = 0; i < argc && !code; i++) {
        if (!only_args && !strcmp(argv[i], "--")) only_args = true;
        else if (!only_args && argv[i][0] == '-' && argv[i][1])
            code = parse_one(c, argc, argv, &i, pending, &n_pending);
        else args[(*n_args)++] = argv[i];
    }
    if (*n_args && strchr(c->name, ' ')) memmove(args, args + 1, (size_t)(*n_args)-- * sizeof *args); /* its name */
    if (!code && help) {
        cli_help(c);
        code = -1;
    }
    if (!code && *n_args && !c->args) code = unwanted(c, args[0]);
    if (!code) code = take_config(c, args, *n_args);
    if (!code) code = configure(c, pending, n_pending);
    cli_set_inputs(c, config_file, *n_args, args);
    if (!code) code = cli_log_open(log_file, verbose ? KOPI_LOG_INFO : KOPI_LOG_ERROR);
    free(pending);
    return code;
}

/* ---- help -------------------------------------------------------------------------------------------------------- */

static void row(const char *names, const char *arg, const char *text, const char *dflt)
{
    char left[96];
    snprintf(left, sizeof left, "%s%s%s", names, arg ? " " : "", arg ? arg : "");
    if (strlen(left) > 31) printf("  %s\n%34s", left, "");
    else printf("  %-31s ", left);
    if (dflt) printf("%s (%s)\n", text, dflt);
    else printf("%s\n", text);
}

static void list_options(const struct cli_option *o)
{
    for (; o && o->names; o++) row(o->names, o->arg, o->help, NULL);
}

/* Whether an option of the command has every name of the key, as -np of bench, which takes a list. */
static bool hidden(const struct cli_command *c, const kopi_config_key *key)
{
    char one[64];
    for (const char *p = key->flags; *p; p += strspn(p, ", ")) {
        size_t n = strcspn(p, ", ");
        snprintf(one, sizeof one, "%.*s", (int)n, p);
        if (!find(c->options ? c->options : none, one)) return false;
        p += n;
    }
    return true;
}

static void list_key(const kopi_config_key *key)
{
    char names[64]; /* a flag that is on or off is one word, and begins with two dashes */
    if (key->type != KOPI_CONFIG_BOOL) return row(key->flags, key_arg(key), key->help, key->default_value);
    snprintf(names, sizeof names, "--[no-]%s", key->flags + 2);
    row(names, NULL, key->help, key->default_value);
}

/* The commands that the first argument of this one names. */
static void list_family(const struct cli_command *of)
{
    const char *title = "\nCommands (--help for each):\n";
    for (const struct cli_command *c = cli_commands; c->name; c++) {
        if (c == of || !same_family(c->name, of->name)) continue;
        printf("%s", title);
        title = "";
        row(c->name, c->args, c->summary, NULL);
    }
}

void cli_help(const struct cli_command *c)
{
    if (!c) {
        printf(
            "kopi runs language models through exchangeable backends.\n\nCommands (kopi COMMAND --help for each):\n");
        for (c = cli_commands; c->name; c++)
            if (!strchr(c->name, ' ')) row(c->name, c->args, c->summary, NULL);
        return;
    }
    printf("kopi %s%s%s [options]\n  %s\n\nOptions:\n", c->name, c->args ? " " : "", c->args ? c->args : "",
           c->summary);
    list_options(c->options);
    const kopi_config_key *key;
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++)
        if (*c->keys && cli_takes_key(c, key) && !hidden(c, key)) list_key(key);
    list_options(*c->keys ? global : global + N_CONFIG_OPTIONS);
    if (!strchr(c->name, ' ')) list_family(c);
}
