/* The commands of a chat. */
#include "repl.h"

#include "base/log.h"
#include "base/utf8.h"
#include "config/config.h"
#include "run/model.h"
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Messages that /clear keeps: the system's. */
static size_t n_fixed(const struct repl *r) { return r->talk.n && !strcmp(r->talk.messages[0].role, "system"); }

static void cmd_clear(struct repl *r, const char *arg)
{
    (void)arg;
    talk_cut(&r->talk, n_fixed(r));
}
static void cmd_regen(struct repl *r, const char *arg)
{
    kopi_message old = talk_take(&r->talk, "assistant");
    size_t n = r->talk.n;
    bool asked = talk_ends_with(&r->talk, "user");
    (void)arg;
    if (!asked) cli_error(EXIT_USAGE, "there is no message to answer yet");
    if (asked && repl_answer(r)) {
        talk_drop(old);
        return;
    }
    if (!old.content) return;
    if (r->talk.n > n) talk_cut(&r->talk, n);
    talk_give(&r->talk, old);
    if (asked) kopi__log(KOPI_LOG_WARN, "no new answer came, so the old one stays");
}
static void cmd_undo(struct repl *r, const char *arg)
{
    (void)arg;
    if (talk_ends_with(&r->talk, "assistant")) talk_cut(&r->talk, r->talk.n - 1);
    if (talk_ends_with(&r->talk, "user")) talk_cut(&r->talk, r->talk.n - 1);
}
static void cmd_system(struct repl *r, const char *arg)
{
    talk_cut(&r->talk, 0);
    if (*arg) talk_add(&r->talk, "system", arg, strlen(arg));
}
static void cmd_exit(struct repl *r, const char *arg)
{
    (void)arg;
    r->end = true;
}

/* ---- settings ---------------------------------------------------------------------------------------------------- */

static const char sampling[] = "models[].sampling.", max_tokens[] = "models[].limits.max_tokens";

/* Settings that an answer reads: the sampling values and the length. */
static bool is_setting(const kopi_config_key *key)
{
    return !strncmp(key->path, sampling, strlen(sampling)) || !strcmp(key->path, max_tokens);
}
static const char *name_of(const kopi_config_key *key) { return strrchr(key->path, '.') + 1; }

static const kopi_config_key *find_setting(const char *name, size_t n)
{
    const kopi_config_key *key;
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++)
        if (is_setting(key) && strlen(name_of(key)) == n && !strncmp(name_of(key), name, n)) return key;
    return NULL;
}

static void cmd_show(struct repl *r, const char *arg)
{
    const kopi_config_key *key;
    (void)arg;
    printf("  model       %s (%u of %u positions used)\n", r->model->path, kopi_cache_length(r->cache),
           r->model->n_ctx);
    printf("  backend     %s (%s)\n", r->model->main->plugin->desc.name, r->model->main->device.detail);
    printf("  messages    %zu\n", r->talk.n);
    if (n_fixed(r)) printf("  system      %s\n", r->talk.messages[0].content);
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++)
        if (is_setting(key))
            printf("  %-18s %s\n", name_of(key),
                   kopi__config_find(cli_config, key->path, r->model->config_index)->text);
}

static void cmd_set(struct repl *r, const char *arg)
{
    size_t n = strcspn(arg, " =");
    const char *value = arg + n + strspn(arg + n, " =");
    const kopi_config_key *key = find_setting(arg, n);
    kopi_error e;
    (void)r;
    if (!key)
        cli_error(EXIT_USAGE, "/set NAME VALUE: there is no setting \"%.*s\"; /show lists them", (int)(n < 40 ? n : 40),
                  arg);
    else if (!*value)
        cli_error(EXIT_USAGE, "/set %s needs a value", name_of(key));
    else if (kopi__config_set_key(cli_config, key, "/set", name_of(key), value, &e) != KOPI_OK)
        cli_fail(&e);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void cmd_save(struct repl *r, const char *arg)
{
    if (!*arg)
        cli_error(EXIT_USAGE, "/save needs a file");
    else if (!talk_save(&r->talk, arg))
        printf("%zu messages in %s\n", r->talk.n, arg);
}
static void cmd_load(struct repl *r, const char *arg)
{
    if (!*arg)
        cli_error(EXIT_USAGE, "/load needs a file");
    else if (!talk_load(&r->talk, arg))
        printf("%zu messages from %s\n", r->talk.n, arg);
}

/* Runs the editor on the file; through the shell, since $EDITOR may have options. */
static bool run_editor(const char *path)
{
    const char *editor = getenv("VISUAL");
    if (!editor || !*editor) editor = getenv("EDITOR");
    if (!editor || !*editor) editor = "vi";
    char script[] = "exec $0 \"$1\"", sh[] = "sh", c[] = "-c";
    char *args[] = {sh, c, script, (char *)(uintptr_t)editor, (char *)(uintptr_t)path, NULL};
    pid_t pid;
    int status = 0, e = posix_spawn(&pid, "/bin/sh", NULL, NULL, args, environ);
    while (!e && waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    if (e || !WIFEXITED(status) || WEXITSTATUS(status)) {
        cli_error(EXIT_RUN, "the editor \"%.80s\" failed; $VISUAL or $EDITOR names another", editor);
        return false;
    }
    return true;
}

/* The text that the user wrote in $VISUAL or $EDITOR, begun with `text`; NULL after a message. Freed by free(). */
static char *edit(const char *text)
{
    const char *folder = getenv("TMPDIR");
    char *path, *result = NULL;
    size_t n = strlen(text), len;
    if (asprintf(&path, "%s/kopi-XXXXXX", folder && *folder ? folder : "/tmp") < 0) {
        cli_error(EXIT_RUN, "out of memory");
        return NULL;
    }
    int fd = mkstemp(path);
    if (fd < 0) {
        cli_error(EXIT_RUN, "%s: %s", path, strerror(errno));
        free(path);
        return NULL;
    }
    bool ok = write(fd, text, n) == (ssize_t)n;
    if (!ok) cli_error(EXIT_RUN, "%s: %s", path, strerror(errno));
    if (close(fd) == 0 && ok && run_editor(path)) result = cli_read_file(path, &len);
    unlink(path);
    free(path);
    if (result && strlen(result) != len) {
        cli_error(EXIT_RUN, "the text holds a NUL byte, which a chat message can't");
        free(result);
        return NULL;
    }
    if (result && !kopi__utf8_valid(result, len)) {
        cli_error(EXIT_RUN, "the text is not UTF-8, which a chat message is");
        free(result);
        return NULL;
    }
    for (len = result ? strlen(result) : 0; len && result[len - 1] == '\n';) result[--len] = 0;
    return result;
}

static void cmd_edit(struct repl *r, const char *arg)
{
    char *text = edit(arg);
    if (text && *text) {
        printf("%s\n", text);
        repl_ask(r, text);
    }
    free(text);
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

static void cmd_stats(struct repl *r, const char *arg)
{
    (void)arg;
    if (!r->n_answers) {
        printf("  no answer yet\n");
        return;
    }
    printf("  %zu answer%s, %zu tokens in all; the last:\n", r->n_answers, r->n_answers == 1 ? "" : "s", r->n_tokens);
    fflush(stdout);
    cli_show_timings(&r->last);
}

static void cmd_help(struct repl *r, const char *arg);
static const struct {
    const char *name, *arg, *help;
    void (*run)(struct repl *, const char *);
} commands[] = {
    {"/help", "", "this list", cmd_help},
    {"/clear", "", "forget the talk, but for the system message", cmd_clear},
    {"/regen", "", "answer the last message again", cmd_regen},
    {"/undo", "", "take back the last message and its answer", cmd_undo},
    {"/system", "TEXT", "start anew with this system message", cmd_system},
    {"/set", "NAME VALUE", "a sampling value, or max_tokens, from the next answer on", cmd_set},
    {"/show", "", "the model, the system message and the settings", cmd_show},
    {"/save", "FILE", "the messages, as JSON", cmd_save},
    {"/load", "FILE", "go on with the messages of a file", cmd_load},
    {"/edit", "[TEXT]", "write a message in $VISUAL or $EDITOR", cmd_edit},
    {"/stats", "", "tokens and speed", cmd_stats},
    {"/exit", "", "end, as Ctrl-D does", cmd_exit},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static void cmd_help(struct repl *r, const char *arg)
{
    (void)r, (void)arg;
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-8s%-12s%s\n", commands[i].name, commands[i].arg, commands[i].help);
    printf("  \"\"\"                 begins and ends a message of several lines\n");
}

void repl_command(struct repl *r, const char *line)
{
    size_t n = strcspn(line, " ");
    const char *arg = line + n + strspn(line + n, " ");
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strlen(commands[i].name) == n && !strncmp(line, commands[i].name, n)) {
            commands[i].run(r, arg);
            return;
        }
    cli_error(EXIT_USAGE, "there is no command %.40s; see /help", line);
}
