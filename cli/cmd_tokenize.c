/* kopi tokenize: ids of a text on one line, or with --decode the bytes of ids. */
#include "commands.h"

#include "base/mem.h"
#include "text/tokenizer.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *prompt, *file, *decode;
static bool no_special, parse_special, json;

const struct cli_option cli_tokenize_options[] = {
    {"-p, --prompt", "TEXT", CLI_STRING, &prompt, "the text", 0, 0},
    {"-f, --file", "FILE", CLI_INPUT, &file, "the text, as bytes from a file; - or neither: standard input", 0, 0},
    {"--no-special", NULL, CLI_FLAG, &no_special, "add no BOS or EOS even if the model asks for it", 0, 0},
    {"--parse-special", NULL, CLI_FLAG, &parse_special, "text such as <|im_start|> becomes the control token", 0, 0},
    {"--json", NULL, CLI_FLAG, &json, "ids with their pieces", 0, 0},
    {"--decode", "IDS", CLI_STRING, &decode, "write the text of these ids instead", 0, 0},
    {0},
};

static int interrupted(void *ctx)
{
    (void)ctx;
    return cli_interrupted();
}

/* Pieces that are not valid UTF-8 are given as an array of bytes. */
static json_t *piece(const struct kopi_tokenizer *t, int32_t id)
{
    size_t n;
    const char *text = kopi__token_bytes(t, id, true, &n);
    json_t *s = json_stringn(text, n);
    if (s) return s;
    json_t *bytes = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(bytes, json_integer((unsigned char)text[i]));
    return bytes;
}

static int print_json(const struct kopi_tokenizer *t, const int32_t *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_pack("{s:i, s:o}", "id", ids[i], "piece", piece(t, ids[i])));
    int code = cli_print_json(list, JSON_COMPACT);
    json_decref(list);
    return code;
}

static int print_ids(const int32_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++) printf("%s%d", i ? " " : "", ids[i]);
    putchar('\n');
    return 0;
}

static int encode(const struct kopi_tokenizer *t)
{
    kopi_error e;
    size_t len, n;
    int32_t *ids;
    char *text = cli_read_prompt(prompt, file, &len);
    if (!text) return EXIT_RUN;
    unsigned flags = (no_special ? 0 : KOPI__TOK_ADD_SPECIAL) | (parse_special ? KOPI__TOK_PARSE_SPECIAL : 0);
    kopi_status s = kopi__tokenize(t, text, len, flags, &ids, &n, interrupted, NULL, &e);
    free(text);
    if (s != KOPI_OK) return cli_fail(&e);
    int code = json ? print_json(t, ids, n) : print_ids(ids, n);
    kopi__free(ids);
    return code;
}

static int detokenize(const struct kopi_tokenizer *t)
{
    kopi_error e;
    size_t n, len;
    char *text;
    int32_t *ids = cli_parse_ids(decode, &n);
    if (!ids) return EXIT_USAGE;
    kopi_status s = kopi__detokenize(t, ids, n, true, &text, &len, &e);
    int code = s != KOPI_OK ? cli_fail(&e) : json ? print_json(t, ids, n) : cli_write(text, len);
    if (s == KOPI_OK) kopi__free(text);
    free(ids);
    return code;
}

/* What is for the other way does not go with --decode. */
static int check_decode(void)
{
    const struct { const char *flag; bool given; } others[] = {{"--prompt", prompt},
                                                               {"--file", file},
                                                               {"--no-special", no_special},
                                                               {"--parse-special", parse_special}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (cli_exclude("--decode", decode, others[i].flag, others[i].given)) return EXIT_USAGE;
    return 0;
}

int cli_tokenize(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    struct kopi_gguf *g;
    struct kopi_tokenizer *t = NULL;
    if (cli_exclude("--prompt", prompt, "--file", file) || check_decode()) return EXIT_USAGE;
    const char *path = cli_model_path();
    if (!path) return EXIT_CONFIG;
    if (kopi__gguf_open(path, KOPI__GGUF_ANY_TYPE, NULL, 0, &g, &e) != KOPI_OK) return cli_fail(&e);
    int code = kopi__tokenizer_new(g, &t, &e) != KOPI_OK ? cli_fail(&e) : decode ? detokenize(t) : encode(t);
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
    return code;
}
