/* cli/cli.h - what the subcommands of `kopi` share: options, configuration, messages, signals. One thread. */
#ifndef KOPI_CLI_CLI_H
#define KOPI_CLI_CLI_H

#include <jansson.h>
#include <kopi/kopi.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Exit codes of kopi. */
enum {
    EXIT_RUN = 1,
    EXIT_USAGE = 2,
    EXIT_CONFIG = 3,
    EXIT_MODEL = 4,
    EXIT_BACKEND = 5,
    EXIT_CONFORMANCE = 6,
    EXIT_INTERRUPTED = 130
};

/* CLI_INPUT: a string, the name of a file that is read. */
enum cli_kind { CLI_FLAG, CLI_STRING, CLI_INPUT, CLI_INT, CLI_LIST };
struct cli_list { const char **at; size_t n; };

/* An option of one command. `out` is bool *, const char **, int64_t * or struct cli_list * by kind. */
struct cli_option {
    const char *names; /* "-p, --prompt" */
    const char *arg;   /* what --help calls the value; NULL for CLI_FLAG */
    enum cli_kind kind;
    void *out;
    const char *help;
    int64_t min, max;  /* of CLI_INT */
};

#define CLI_CONFIG_FILE "[FILE]" /* args of a command whose argument is as that of --config */

struct cli_command {
    const char *name, *args, *summary; /* name: "run", or "backends check": what the first argument of another names */
    const struct cli_option *options; /* ends with names NULL; NULL: none */
    const char
        *keys; /* sections of the configuration whose flags this command takes: "backend models[].context"; "" none */
    int (*run)(int n_args, char **args);
};
extern const struct cli_command cli_commands[]; /* ends with name NULL */

/* The one configuration of this process, filled from files, environment, --set and flags before a command runs. */
extern kopi_config *cli_config;
extern bool cli_quiet, cli_no_progress;

/* The command of that name, or where the arguments behind it name one below it, that one; NULL: there is none. */
const struct cli_command *cli_command(const char *name, int argc, char **argv);
/* Opens the log as the configuration says, at `least` of this level, in a file if path isn't NULL. Returns 0 or an exit
 * code after a message. */
int cli_log_open(const char *path, int least);
void cli_log_error(const char *text);
struct stat;
bool cli_same_file(const struct stat *a, const struct stat *b); /* by device and inode */
bool cli_log_is(const struct stat *of);                         /* whether the log goes to this file */
int cli_log_close(void);                /* 0, or EXIT_RUN after a message: lines could not be written */
/* Parses argv for a command into its options and the configuration. Positional arguments are moved to args. Returns 0
 * or an exit code after a message. */
int cli_parse(const struct cli_command *c, int argc, char **argv, char **args, int *n_args);
bool cli_has_name(const char *names, const char *flag);
/* True if the flag of this configuration key belongs to the command. */
bool cli_takes_key(const struct cli_command *c, const kopi_config_key *key);
void cli_help(const struct cli_command *c); /* NULL: the list of commands */

/* "kopi: ..." on stderr, one line; in the log's form and file, too, as soon as that is open. Returns code. */
int cli_error(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The message of err with the exit code that its status has. */
int cli_fail(const kopi_error *err);

/* Engine and model of the configuration, with progress on a terminal. Returns 0 or an exit code after a message. */
int cli_load(kopi_engine **engine, kopi_model **model);
/* Of a model without a chat template: that it has none, or that it is turned off. */
const char *cli_no_template(void);
/* Before cli_load: a context of as many positions, unless the user gave its size. */
int cli_need_context(int64_t positions);
/* After it: EXIT_USAGE and a message if the user's context is shorter. */
int cli_check_context(const kopi_model *model, int64_t positions);
void cli_unload(kopi_engine *engine, kopi_model *model);

/* Ctrl-C, SIGTERM and SIGHUP: the first one cancels what runs (cli_interrupted becomes true), the second ends the
 * process with 130. */
void cli_catch_interrupt(void);
void cli_cancel_on_interrupt(kopi_model *model); /* NULL: none */
bool cli_interrupted(void);
bool cli_terminated(void);           /* by SIGTERM or SIGHUP: a chat ends, too */
void cli_add_signals(sigset_t *set); /* the signals of above */
bool cli_reset_interrupt(void); /* true if there was one; the next is the first again */

/* A progress line on stderr; moves only on a terminal. Fits kopi_progress_fn; ctx is not used. */
int cli_progress(void *ctx, const char *what, uint64_t done, uint64_t total);
void cli_progress_end(void);

/* Flushes stdout; 0, or EXIT_RUN after a message (none for a closed pipe). Every command ends with it. */
int cli_finish_output(void);
int cli_write(const void *bytes, size_t n); /* to stdout; 0 or an exit code as above */
/* To stdout, with flags of jansson; NULL, that memory was short, fails too. 0 or EXIT_RUN after a message. */
int cli_print_json(const json_t *all, size_t flags);

/* The whole of a file ("-": stdin), NUL-terminated, freed by free(). NULL after a message. */
char *cli_read_file(const char *path, size_t *n);
/* The same of -p (text) or -f (file), of stdin if both are NULL. */
char *cli_read_prompt(const char *text, const char *file, size_t *n);

/* The model file of --model, for commands that only read the file; NULL after a message. */
const char *cli_model_path(void);

/* Comma- or space-separated ids; freed by free(). NULL after a message. */
int32_t *cli_parse_ids(const char *text, size_t *n);

/* 0, or EXIT_USAGE after a message if both options are given. */
int cli_exclude(const char *a, bool has_a, const char *b, bool has_b);

#endif
