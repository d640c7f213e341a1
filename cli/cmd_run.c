/* kopi run: one answer to a prompt, or a chat on a terminal. */
#include "commands.h"

#include "base/log.h"
#include "base/num.h"
#include "config/config.h"
#include "repl.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *prompt, *file, *system_text;
static bool raw, timings, ignore_eos, special, json;
static struct cli_list stop;

const struct cli_option cli_run_options[] = {
    {"-p, --prompt", "TEXT", CLI_STRING, &prompt, "the prompt; without one: standard input, or a chat on a terminal", 0,
     0},
    {"-f, --file", "FILE", CLI_INPUT, &file, "the prompt, as bytes from a file; -: standard input", 0, 0},
    {"--system", "TEXT", CLI_STRING, &system_text, "system message", 0, 0},
    {"--raw", NULL, CLI_FLAG, &raw, "the prompt as it is, without the model's chat template", 0, 0},
    {"--stop", "TEXT", CLI_LIST, &stop, "end the answer before this text (several allowed)", 0, 0},
    {"--ignore-eos", NULL, CLI_FLAG, &ignore_eos, "go on past the end of the answer", 0, 0},
    {"--special", NULL, CLI_FLAG, &special, "show control tokens; the one that ends the answer only with --ignore-eos",
     0, 0},
    {"--show-timings", NULL, CLI_FLAG, &timings, "tokens and speed on stderr at the end", 0, 0},
    {"--json", NULL, CLI_FLAG, &json, "the answer as one JSON object with tokens, speed and seed", 0, 0},
    {0},
};

struct stream { int code; };

static int on_text(void *ctx, const char *utf8, size_t len)
{
    struct stream *s = ctx;
    s->code = cli_write(utf8, len);
    if (!s->code) s->code = cli_finish_output();
    return s->code;
}

/* Ids of the prompt: through the template, or raw where there is none (said once on stderr) or --raw. */
static int encode(kopi_model *m, const char *text, size_t len, int32_t **ids, size_t *n)
{
    kopi_error e;
    kopi_status s;
    if (!raw && kopi_model_has_chat_template(m)) {
        if (strlen(text) != len)
            return cli_error(EXIT_USAGE, "the prompt holds a NUL byte, which a chat message can't; use --raw");
        kopi_message messages[] = {{"system", system_text}, {"user", text}};
        s = kopi_chat_tokenize(m, system_text ? messages : messages + 1, system_text ? 2 : 1, ids, n, &e);
    } else {
        if (system_text)
            return cli_error(EXIT_USAGE, "--system needs a chat template, and %s",
                             raw ? "--raw goes without" : cli_no_template());
        if (!raw) kopi__log(KOPI_LOG_WARN, "%s: the prompt is taken as it is", cli_no_template());
        s = kopi_tokenize(m, text, len, KOPI_ADD_SPECIAL | KOPI_PARSE_SPECIAL, ids, n, &e);
    }
    if (s != KOPI_OK) return cli_fail(&e);
    if (!*n) {
        kopi_free(*ids);
        return cli_error(EXIT_USAGE, "the prompt is empty");
    }
    return 0;
}

void cli_show_timings(const kopi_result *r)
{
    char a[40], b[40], c[40], d[40];
    double prompt_s = (double)r->prompt_ns * 1e-9, gen_s = (double)r->generate_ns * 1e-9;
    size_t fresh = r->n_prompt - r->n_cached, steps = r->n_generated ? r->n_generated - 1 : 0;
    fprintf(stderr,
            "prompt: %zu tokens (%zu from the cache) in %s s, %s tokens/s; answer: %zu tokens in %s s, %s tokens/s; "
            "seed %lld\n",
            r->n_prompt, r->n_cached, kopi__format_fixed(prompt_s, 3, a, sizeof a),
            kopi__format_fixed(prompt_s > 0 ? (double)fresh / prompt_s : 0, 1, b, sizeof b), r->n_generated,
            kopi__format_fixed(gen_s, 3, c, sizeof c),
            kopi__format_fixed(gen_s > 0 ? (double)steps / gen_s : 0, 1, d, sizeof d), (long long)r->seed);
    if (r->n_drafted)
        fprintf(stderr, "guesses: %zu tokens, %zu accepted, %zu rejected\n", r->n_drafted, r->n_accepted,
                r->n_drafted - r->n_accepted);
}

void cli_note_full(const kopi_model *m, const kopi_result *r, int32_t n_predict, const char *remedy)
{
    bool by_limit = n_predict >= 0 && r->n_generated >= (size_t)n_predict;
    if (r->finish == KOPI_FINISH_LENGTH && !by_limit)
        kopi__log(KOPI_LOG_WARN, "the context of %u tokens is full, so the answer ends here; raise --ctx-size%s",
                  kopi_model_max_context(m), remedy);
}

static double per_second(size_t n, uint64_t ns) { return ns ? (double)n * 1e9 / (double)ns : 0; }

/* timings: with the names of llama.cpp's server. */
static int print_json(const kopi_result *r)
{
    static const char *const finish[] = {"stop", "length", "cancelled"};
    size_t fresh = r->n_prompt - r->n_cached, steps = r->n_generated ? r->n_generated - 1 : 0;
    json_t *all = json_pack("{s:s%, s:s, s:I, s:{s:I, s:I, s:f, s:f, s:I, s:f, s:f, s:I, s:I}}", "text", r->text,
                            r->text_len, "finish_reason", finish[r->finish], "seed", (json_int_t)r->seed, "timings",
                            "cache_n", (json_int_t)r->n_cached, "prompt_n", (json_int_t)fresh, "prompt_ms",
                            (double)r->prompt_ns * 1e-6, "prompt_per_second", per_second(fresh, r->prompt_ns),
                            "predicted_n", (json_int_t)r->n_generated, "predicted_ms", (double)r->generate_ns * 1e-6,
                            "predicted_per_second", per_second(steps, r->generate_ns), "draft_n",
                            (json_int_t)r->n_drafted, "draft_n_accepted", (json_int_t)r->n_accepted);
    int code = cli_print_json(all, JSON_COMPACT);
    json_decref(all);
    return code;
}

static int answer(kopi_model *m, const int32_t *ids, size_t n)
{
    kopi_error e;
    kopi_cache *cache;
    kopi_result result;
    struct stream out = {0};
    kopi_request q = {.struct_size = sizeof q,
                      .ids = ids,
                      .n_ids = n,
                      .stop = stop.at,
                      .n_stop = stop.n,
                      .ignore_eos = ignore_eos,
                      .special = special,
                      .on_text = json ? NULL : on_text,
                      .progress = cli_progress,
                      .ctx = &out};
    q.n_predict = (int32_t)kopi__config_int(cli_config, "models[].limits.max_tokens", 0);
    kopi_sampling_default(m, &q.sampling);
    if (kopi_cache_new(m, &cache, &e) != KOPI_OK) return cli_fail(&e);
    kopi_status s = kopi_generate(m, cache, &q, &result, &e);
    cli_progress_end();
    int code = out.code;
    if (!code && json && s == KOPI_OK) code = print_json(&result);
    if (!code && !json && result.n_generated) code = cli_write("\n", 1);
    if (!code) code = cli_finish_output();
    if (!code && s != KOPI_OK) code = cli_fail(&e);
    if (!code && cli_interrupted()) code = EXIT_INTERRUPTED;
    if (s == KOPI_OK) cli_note_full(m, &result, q.n_predict, "");
    if (timings && s == KOPI_OK) cli_show_timings(&result);
    kopi_result_clear(&result);
    kopi_cache_free(cache);
    return code;
}

static int one_answer(kopi_model *m, const char *text, size_t len)
{
    int32_t *ids;
    size_t n;
    int code = encode(m, text, len, &ids, &n);
    if (code) return code;
    code = answer(m, ids, n);
    kopi_free(ids);
    return code;
}

int cli_run(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_engine *engine;
    kopi_model *model;
    size_t len = 0;
    char *text = NULL;
    if (cli_exclude("--prompt", prompt, "--file", file)) return EXIT_USAGE;
    bool chat = !prompt && !file && isatty(STDIN_FILENO);
    if (chat && json) return cli_error(EXIT_USAGE, "--json is for one answer; give it a prompt");
    if (!chat) {
        if (!(text = cli_read_prompt(prompt, file, &len))) return EXIT_RUN;
        if (!len) {
            free(text);
            return cli_error(EXIT_USAGE, "the prompt is empty");
        }
    }
    int code = cli_load(&engine, &model);
    if (!code) {
        code = chat ? cli_repl(model, &(struct repl_options){system_text, &stop, raw, timings, ignore_eos, special})
                    : one_answer(model, text, len);
        cli_unload(engine, model);
    }
    free(text);
    return code;
}
