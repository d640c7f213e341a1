#include "repl.h"

#include "base/log.h"
#include "base/utf8.h"
#include "config/config.h"
#include "lines.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- answers ----------------------------------------------------------------------------------------------------- */

static int on_text(void *ctx, const char *utf8, size_t len)
{
    (void)ctx;
    int code = cli_write(utf8, len);
    return code ? code : cli_finish_output();
}

/* Prompt of the next answer: the whole talk through the template, or only the last line where there is none. */
static kopi_status encode(struct repl *r, int32_t **ids, size_t *n, kopi_error *e)
{
    const char *last = r->talk.messages[r->talk.n - 1].content;
    if (!r->options->raw && kopi_model_has_chat_template(r->model))
        return kopi_chat_tokenize(r->model, r->talk.messages, r->talk.n, ids, n, e);
    return kopi_tokenize(r->model, last, strlen(last), KOPI_ADD_SPECIAL | KOPI_PARSE_SPECIAL, ids, n, e);
}

static void count(struct repl *r, const kopi_result *result)
{
    r->last = *result;
    r->last.text = NULL;
    r->n_answers++;
    r->n_tokens += result->n_generated;
    if (r->options->timings) cli_show_timings(result);
}

static const char make_room[] = ", or make room: /clear forgets the talk, /undo the last answer";

static bool generate(struct repl *r, const int32_t *ids, size_t n)
{
    kopi_error e;
    kopi_result result;
    const struct repl_options *o = r->options;
    kopi_request q = {.struct_size = sizeof q, .ids = ids, .n_ids = n, .stop = o->stop->at, .n_stop = o->stop->n,
                      .ignore_eos = o->ignore_eos, .special = o->special, .on_text = on_text, .progress = cli_progress};
    q.n_predict = (int32_t)kopi__config_int(cli_config, "models[].limits.max_tokens", 0);
    kopi_sampling_default(r->model, &q.sampling);
    kopi_status s = kopi_generate(r->model, r->cache, &q, &result, &e);
    cli_progress_end();
    cli_write("\n", 1);
    bool good = s == KOPI_OK, any = result.text_len || (good && result.finish != KOPI_FINISH_CANCELLED);
    if (s == KOPI_E_RANGE) cli_error(EXIT_RUN, "%s%s", e.text, make_room);
    else if (!good) cli_fail(&e);
    if (any && !talk_add(&r->talk, "assistant", result.text ? result.text : "", result.text_len)) good = false;
    if (s == KOPI_OK) {
        cli_note_full(r->model, &result, q.n_predict, make_room);
        count(r, &result);
    }
    kopi_result_clear(&result);
    return good && any;
}

bool repl_answer(struct repl *r)
{
    kopi_error e;
    int32_t *ids;
    size_t n;
    if (encode(r, &ids, &n, &e) != KOPI_OK) {
        cli_fail(&e);
        return false;
    }
    bool good = generate(r, ids, n);
    kopi_free(ids);
    return good;
}

void repl_ask(struct repl *r, const char *text)
{
    if (!talk_add(&r->talk, "user", text, strlen(text)) || repl_answer(r)) return;
    if (!talk_ends_with(&r->talk, "user")) return;
    talk_cut(&r->talk, r->talk.n - 1);
    kopi__log(KOPI_LOG_WARN, "no answer came, so the message is taken back");
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* text, a newline and line, without the """ that ends it (then *last). Takes both; NULL: no memory. */
static char *join(char *text, char *line, bool *last)
{
    size_t len = strlen(line), have = strlen(text);
    *last = len >= 3 && !strcmp(line + len - 3, "\"\"\"");
    if (*last) line[len - 3] = 0;
    char *more = realloc(text, have + len + 2);
    if (more) {
        more[have] = '\n';
        strcpy(more + have + 1, line);
    } else {
        free(text);
    }
    free(line);
    return more;
}

/* The lines up to a closing """, joined, in place of *line. */
static enum lines_status read_block(char **line)
{
    char *text = strdup(*line + 3), *next;
    enum lines_status s = text ? LINES_OK : LINES_FAILED;
    size_t len = text ? strlen(text) : 0;
    bool last = len >= 3 && !strcmp(text + len - 3, "\"\"\"");
    if (last) text[len - 3] = 0;
    free(*line);
    while (s == LINES_OK && !last) {
        s = lines_read(". ", &next);
        if (s == LINES_OK && !(text = join(text, next, &last))) s = LINES_FAILED;
    }
    *line = text;
    if (s == LINES_END) s = LINES_OK; /* the end of input ends the block */
    if (s == LINES_OK) return s;
    free(text);
    *line = NULL;
    return s;
}

static enum lines_status read_message(char **line)
{
    enum lines_status s = lines_read("> ", line);
    return s == LINES_OK && !strncmp(*line, "\"\"\"", 3) ? read_block(line) : s;
}

static int loop(struct repl *r)
{
    enum lines_status s = LINES_OK;
    int interrupted = 0; /* in a row: the second Ctrl-C ends the chat */
    while (!r->end && s != LINES_END && interrupted < 2) {
        char *line = NULL;
        s = read_message(&line);
        if (s == LINES_FAILED) return cli_error(EXIT_RUN, "out of memory");
        if (line && line[0] == '/')
            repl_command(r, line);
        else if (line && *line)
            repl_ask(r, line);
        free(line);
        if (cli_terminated()) return EXIT_INTERRUPTED;
        bool stopped = cli_reset_interrupt();
        if (stopped) kopi_model_uncancel(r->model);
        interrupted = s == LINES_INTERRUPTED ? interrupted + 1 : stopped;
    }
    if (s == LINES_END && isatty(STDOUT_FILENO)) putchar('\n');
    return interrupted ? EXIT_INTERRUPTED : cli_finish_output();
}

int cli_repl(kopi_model *model, const struct repl_options *o)
{
    struct repl r = {.model = model, .options = o};
    kopi_error e;
    size_t n_system = o->system_text ? strlen(o->system_text) : 0;
    if (!kopi__utf8_valid(o->system_text, n_system))
        return cli_error(EXIT_USAGE, "--system is not UTF-8, which a chat message is");
    if (kopi_cache_new(model, &r.cache, &e) != KOPI_OK) return cli_fail(&e);
    if (o->system_text) talk_add(&r.talk, "system", o->system_text, n_system);
    if (!kopi_model_has_chat_template(model))
        kopi__log(KOPI_LOG_WARN, "%s: each line is taken as it is", cli_no_template());
    if (!cli_quiet) fprintf(stderr, "/help lists the commands, Ctrl-D ends the chat\n");
    lines_open();
    int code = loop(&r);
    lines_close();
    talk_cut(&r.talk, 0);
    kopi_cache_free(r.cache);
    return code;
}
