/* kopi perplexity: as llama-perplexity defines it. The text is cut into pieces of --ctx tokens (the rest is dropped),
 * each is evaluated from an empty cache, and the second half of its tokens is scored. */
#include "commands.h"

#include "base/mem.h"
#include "base/num.h"
#include "run/model.h"
#include <math.h>
#include <stdlib.h>

static const char *file;
static int64_t piece_len = 512;

const struct cli_option cli_perplexity_options[] = {
    {"-f, --file", "FILE", CLI_INPUT, &file, "the text; - or without it: standard input", 0, 0},
    {"--ctx", "N", CLI_INT, &piece_len, "tokens of one piece (512)", 8, 1 << 20},
    {0},
};

struct sum { double nll, nll2; uint64_t n; };

/* Negative log likelihood of `target` under one row of logits. */
static double nll_of(const float *row, uint32_t n, int32_t target)
{
    float max = row[0];
    for (uint32_t i = 1; i < n; i++)
        if (row[i] > max) max = row[i];
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += exp((double)(row[i] - max));
    return log(sum) - (double)(row[target] - max);
}

enum { BATCH = 64 }; /* rows of logits in memory at once */

/* Scores the positions from the middle on; ids has one more entry than is evaluated. */
static kopi_status score(kopi_model *m, const int32_t *ids, size_t n, float *rows, struct sum *sum, kopi_error *err)
{
    size_t first = n / 2;
    uint32_t vocab = kopi_model_vocab_size(m);
    kopi_cache *cache;
    kopi_status s = kopi_cache_new(m, &cache, err);
    if (s != KOPI_OK) return s;
    s = kopi_model_forward_last(m, cache, ids, first, 0, NULL, err);
    for (size_t i = first; i + 1 < n && s == KOPI_OK; i += BATCH) {
        size_t k = n - 1 - i < BATCH ? n - 1 - i : BATCH;
        s = kopi_model_forward(m, cache, ids + i, k, rows, err);
        for (size_t r = 0; r < k && s == KOPI_OK; r++) {
            double v = nll_of(rows + r * vocab, vocab, ids[i + r + 1]);
            sum->nll += v;
            sum->nll2 += v * v;
            sum->n++;
        }
    }
    kopi_cache_free(cache);
    return s;
}

static int report(const struct sum *s)
{
    char a[40], b[40];
    double mean = s->nll / (double)s->n, variance = s->nll2 / (double)s->n - mean * mean, ppl = exp(mean);
    if (!isfinite(ppl))
        return cli_error(EXIT_RUN, "the perplexity is too large for a number: e to the power of %.0f", mean);
    double error = s->n > 1 && variance > 0 ? sqrt(variance / (double)(s->n - 1)) * ppl : 0;
    printf("%llu tokens scored, standard error %s\nppl = %s\n", (unsigned long long)s->n,
           kopi__format_fixed(error, 5, b, sizeof b), kopi__format_fixed(ppl, 4, a, sizeof a));
    return 0;
}

static int evaluate(kopi_model *m, int32_t *ids, size_t n)
{
    kopi_error e;
    struct sum sum = {0};
    size_t len = (size_t)piece_len, pieces = n / len;
    const struct kopi_tokenizer *t = m->tokenizer;
    if (!pieces)
        return cli_error(EXIT_USAGE, "the text has %zu tokens, at least --ctx %zu are needed", n, len);
    if (len > kopi_model_max_context(m))
        return cli_error(EXIT_USAGE, "--ctx is %zu, but the context only %u; raise --ctx-size, or give --ctx %u", len,
                         kopi_model_max_context(m), kopi_model_max_context(m));
    float *rows = kopi__realloc_array(NULL, BATCH, (size_t)kopi_model_vocab_size(m) * sizeof *rows);
    if (!rows) return cli_error(EXIT_RUN, "out of memory");
    kopi_status s = KOPI_OK;
    for (size_t p = 0; p < pieces && s == KOPI_OK; p++) {
        if (kopi__adds_bos(t)) ids[p * len] = kopi__bos(t);
        s = score(m, ids + p * len, len, rows, &sum, &e);
        cli_progress(NULL, "perplexity", p + 1, pieces);
    }
    kopi__free(rows);
    return s == KOPI_OK ? report(&sum) : cli_fail(&e);
}

int cli_perplexity(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_engine *engine;
    kopi_model *model;
    kopi_error e;
    size_t len, n;
    int32_t *ids;
    char *text = cli_read_file(file ? file : "-", &len);
    if (!text) return EXIT_RUN;
    int code = cli_load(&engine, &model);
    if (!code) {
        if (kopi_tokenize(model, text, len, KOPI_ADD_SPECIAL, &ids, &n, &e) != KOPI_OK)
            code = cli_fail(&e);
        else {
            code = evaluate(model, ids, n);
            kopi_free(ids);
        }
        cli_unload(engine, model);
    }
    free(text);
    return code;
}
