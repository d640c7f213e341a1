#include "repl.h"

#include "config/config.h"
#include <stdlib.h>
#include <string.h>

struct repl {
    kopi_model *model;
    const struct repl_options *options;
    kopi_cache *cache;
    kopi_message *messages; /* the first n_fixed is the system message, if there is one */
    size_t n, n_fixed;
};

static bool add_message(struct repl *r, const char *role, const char *content)
{
    kopi_message *more = realloc(r->messages, (r->n + 1) * sizeof *more);
    char *copy = strdup(content);
    if (more) r->messages = more;
    if (!more || !copy) {
        free(copy);
        cli_error(EXIT_RUN, "out of memory");
        return false;
    }
    r->messages[r->n++] = (kopi_message){role, copy};
    return true;
}

static void keep(struct repl *r, size_t n)
{
    while (r->n > n) free((char *)(uintptr_t)r->messages[--r->n].content);
}

static int on_text(void *ctx, const char *utf8, size_t len)
{
    (void)ctx;
    int code = cli_write(utf8, len);
    return code ? code : cli_finish_output();
}

/* Prompt of the next answer: the whole talk through the template, or only the last line where there is none. */
static kopi_status encode(struct repl *r, int32_t **ids, size_t *n, kopi_error *e)
{
    const char *last = r->messages[r->n - 1].content;
    if (!r->options->raw && kopi_model_has_chat_template(r->model)) return kopi_chat_tokenize(r->model, r->messages, r->n, ids, n, e);
    return kopi_tokenize(r->model, last, strlen(last), KOPI_ADD_SPECIAL | KOPI_PARSE_SPECIAL, ids, n, e);
}

static void answer(struct repl *r)
{
    kopi_error e;
    kopi_result result;
    int32_t *ids;
    size_t n;
    if (encode(r, &ids, &n, &e) != KOPI_OK) {
        cli_fail(&e);
        keep(r, r->n - 1);
        return;
    }
    kopi_request q = {.struct_size = sizeof q, .ids = ids, .n_ids = n, .on_text = on_text, .progress = cli_progress};
    q.n_predict = (int32_t)kopi__config_int(cli_config, "models[].limits.max_tokens", 0);
    kopi_sampling_default(r->model, &q.sampling);
    kopi_status s = kopi_generate(r->model, r->cache, &q, &result, &e);
    cli_progress_end();
    kopi_free(ids);
    cli_write("\n", 1);
    if (s != KOPI_OK) cli_fail(&e);
    if (result.text && result.text_len)
        add_message(r, "assistant", result.text);
    else
        keep(r, r->n - 1);
    if (r->options->timings && s == KOPI_OK) cli_show_timings(&result);
    kopi_result_clear(&result);
}

/* ---- commands -------------------------------------------------------------------------------------------------------- */

static bool cmd_clear(struct repl *r, const char *arg)
{
    (void)arg;
    keep(r, r->n_fixed);
    return true;
}
static bool cmd_regen(struct repl *r, const char *arg)
{
    (void)arg;
    if (r->n <= r->n_fixed) return true;
    if (!strcmp(r->messages[r->n - 1].role, "assistant")) keep(r, r->n - 1);
    if (r->n > r->n_fixed) answer(r);
    return true;
}
static bool cmd_undo(struct repl *r, const char *arg)
{
    (void)arg;
    if (r->n > r->n_fixed && !strcmp(r->messages[r->n - 1].role, "assistant")) keep(r, r->n - 1);
    if (r->n > r->n_fixed) keep(r, r->n - 1);
    return true;
}
static bool cmd_system(struct repl *r, const char *arg)
{
    keep(r, 0);
    r->n_fixed = *arg && add_message(r, "system", arg);
    return true;
}
static bool cmd_exit(struct repl *r, const char *arg)
{
    (void)r, (void)arg;
    return false;
}
static bool cmd_help(struct repl *r, const char *arg);
static const struct { const char *name, *help; bool (*run)(struct repl *, const char *arg); } commands[] = {
    {"/help", "this list", cmd_help},
    {"/clear", "forget the talk", cmd_clear},
    {"/regen", "answer the last message again", cmd_regen},
    {"/undo", "take back the last message and its answer", cmd_undo},
    {"/system", "TEXT: start anew with this system message", cmd_system},
    {"/exit", "end (or Ctrl-D)", cmd_exit},
};
static bool cmd_help(struct repl *r, const char *arg)
{
    (void)r, (void)arg;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) printf("  %-8s %s\n", commands[i].name, commands[i].help);
    printf("  \"\"\"      begins and ends a message of several lines\n");
    return true;
}

static bool run_command(struct repl *r, const char *line)
{
    size_t n = strcspn(line, " ");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strlen(commands[i].name) == n && !strncmp(line, commands[i].name, n)) return commands[i].run(r, line[n] ? line + n + 1 : "");
    cli_error(EXIT_USAGE, "there is no command %.40s; see /help", line);
    return true;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

/* One line without its newline; NULL at the end of input. */
static char *read_line(const char *prompt)
{
    char *line = NULL;
    size_t cap = 0;
    fputs(prompt, stdout);
    fflush(stdout);
    ssize_t n = getline(&line, &cap, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n && line[n - 1] == '\n') line[n - 1] = 0;
    return line;
}

/* The lines up to a closing """, joined. */
static char *read_block(char *first)
{
    char *text = strdup(first + 3), *line;
    free(first);
    while (text && (line = read_line(". "))) {
        size_t len = strlen(line), have = strlen(text);
        bool last = len >= 3 && !strcmp(line + len - 3, "\"\"\"");
        if (last) line[len - 3] = 0;
        char *more = realloc(text, have + len + 2);
        if (more) {
            more[have] = '\n';
            strcpy(more + have + 1, line);
        }
        free(line);
        text = more;
        if (last) break;
    }
    return text;
}

int cli_repl(kopi_model *model, const struct repl_options *o)
{
    struct repl r = {.model = model, .options = o};
    kopi_error e;
    if (kopi_cache_new(model, &r.cache, &e) != KOPI_OK) return cli_fail(&e);
    if (o->system_text) r.n_fixed = add_message(&r, "system", o->system_text);
    if (!kopi_model_has_chat_template(model)) fprintf(stderr, "kopi: the model has no chat template: each line is taken as it is\n");
    for (bool on = true; on;) {
        char *line = read_line("> ");
        if (!line) break;
        if (!strncmp(line, "\"\"\"", 3)) line = read_block(line);
        if (line && line[0] == '/')
            on = run_command(&r, line);
        else if (line && *line && add_message(&r, "user", line))
            answer(&r);
        free(line);
        if (cli_reset_interrupt()) kopi_model_uncancel(model);
    }
    keep(&r, 0);
    free(r.messages);
    kopi_cache_free(r.cache);
    return 0;
}
