/* kopi logits: float32 [n_tokens, n_vocab] of given ids, written row by row. */
#include "commands.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/sys.h"
#include "npy.h"
#include "run/model.h"
#include <stdlib.h>
#include <string.h>

static const char *ids_text, *ids_file, *out_path;
static int64_t chunk = 64;

const struct cli_option cli_logits_options[] = {
    {"--ids", "IDS", CLI_STRING, &ids_text, "token ids, separated by commas; taken as they are", 0, 0},
    {"--ids-file", "FILE", CLI_INPUT, &ids_file, "the same from a file; -: standard input", 0, 0},
    {"-o, --output", "FILE", CLI_STRING, &out_path, "the .npy file; - is standard output", 0, 0},
    {"--chunk", "N", CLI_INT, &chunk, "tokens per call of the model (64); 0: all at once", 0, INT32_MAX},
    {0},
};

/* A call of n tokens is done in steps of the batch size, so that many rows are all that have to be in memory. */
static size_t most_rows(const kopi_model *m, size_t n) { return n < m->max_tok ? n : m->max_tok; }

/* NULL after a message. */
static float *new_rows(size_t n, uint32_t vocab)
{
    uint64_t need = (uint64_t)n * vocab * sizeof(float), have = kopi__available_memory();
    char text[2][40];
    float *rows = need <= have ? kopi__realloc_array(NULL, n, (size_t)vocab * sizeof *rows) : NULL;
    if (!rows)
        cli_error(EXIT_RUN, "the logits of %zu tokens take %s, but %s are available; lower --chunk or --batch-size", n,
                  kopi__format_bytes(need, text[0], sizeof text[0]), kopi__format_bytes(have, text[1], sizeof text[1]));
    return rows;
}

static int compute(kopi_model *m, const int32_t *ids, size_t n, struct npy *out)
{
    uint32_t vocab = kopi_model_vocab_size(m);
    size_t step = chunk ? (size_t)chunk : n, most = most_rows(m, step < n ? step : n);
    kopi_error e;
    kopi_cache *cache;
    if (kopi_cache_new(m, &cache, &e) != KOPI_OK) return cli_fail(&e);
    float *rows = new_rows(most, vocab);
    int code = rows ? 0 : EXIT_RUN;
    for (size_t i = 0, k; i < n && !code; i += k) {
        k = most_rows(m, step - i % step < n - i ? step - i % step : n - i);
        if (kopi_model_forward(m, cache, ids + i, k, rows, &e) != KOPI_OK) code = cli_fail(&e);
        for (size_t r = 0; r < k && !code; r++) code = npy_row(out, rows + r * vocab, vocab);
        if (!code) cli_progress(NULL, "logits", i + k, n);
    }
    kopi__free(rows);
    kopi_cache_free(cache);
    return code;
}

static int with_model(const int32_t *ids, size_t n)
{
    kopi_engine *engine;
    kopi_model *model;
    struct npy out;
    int code = cli_load(&engine, &model);
    if (code) return code;
    if (n > kopi_model_max_context(model))
        code = cli_error(EXIT_RUN, "%zu ids do not fit into a context of %u; raise --ctx-size", n,
                         kopi_model_max_context(model));
    if (!code) {
        code = npy_open(&out, out_path, n, kopi_model_vocab_size(model));
        if (!code) code = compute(model, ids, n, &out);
        code = npy_close(&out, code);
    }
    cli_unload(engine, model);
    return code;
}

int cli_logits(int n_args, char **args)
{
    (void)n_args, (void)args;
    size_t n, len;
    char *text = NULL;
    if (!out_path) return cli_error(EXIT_USAGE, "kopi logits needs -o FILE");
    if (cli_exclude("--ids", ids_text, "--ids-file", ids_file)) return EXIT_USAGE;
    if (!ids_text && !ids_file) return cli_error(EXIT_USAGE, "kopi logits needs --ids or --ids-file");
    if (ids_file && !(text = cli_read_file(ids_file, &len))) return EXIT_RUN;
    int32_t *ids = cli_parse_ids(text ? text : ids_text, &n);
    free(text);
    if (!ids) return EXIT_USAGE;
    int code = n ? with_model(ids, n) : cli_error(EXIT_USAGE, "there is no id");
    free(ids);
    return code;
}
