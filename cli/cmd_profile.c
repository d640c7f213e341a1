/* kopi profile: where the time of a short run goes: a prompt, then tokens one by one, in a table by operation. */
#include "commands.h"
#include "profile_trace.h"

#include "base/mem.h"
#include "base/sys.h"
#include "run/model.h"
#include <string.h>

enum { WARM_UP = 32 }; /* tokens of the run before */

static int64_t n_prompt = 512, n_gen = 32, depth;
static const char *trace_path, *format = "md";

const struct cli_option cli_profile_options[] = {
    {"-p, --n-prompt", "N", CLI_INT, &n_prompt, "tokens of the prompt (512); 0: none", 0, 1 << 24},
    {"-n, --n-gen", "N", CLI_INT, &n_gen, "tokens that are generated, one by one (32); 0: none", 0, 1 << 24},
    {"-d, --depth", "N", CLI_INT, &depth, "tokens that are in the cache before (0)", 0, 1 << 24},
    {"--trace", "FILE", CLI_STRING, &trace_path, "a file for ui.perfetto.dev or chrome://tracing, too", 0, 0},
    {"-o, --output", "md|json", CLI_STRING, &format, "form of the result (md)", 0, 0},
    {0},
};

struct profile {
    kopi_model *m;
    kopi_cache *cache;
    int32_t *ids;
    float *row;
    struct profile_trace file;
    int n_phases; /* printed */
};

/* Calls of the model: of `chunk` tokens each, n in all, the logits of the last of each. */
static kopi_status forward(const struct profile *p, int64_t n, int64_t chunk, kopi_error *e)
{
    kopi_status s = KOPI_OK;
    for (int64_t i = 0; i < n && s == KOPI_OK; i += chunk)
        s = kopi_model_forward_last(p->m, p->cache, p->ids + i, (size_t)(n - i < chunk ? n - i : chunk), 1, p->row, e);
    return s;
}

static int print_phase(struct profile *p, const struct profile_phase *ph, uint64_t began)
{
    bool json = !strcmp(format, "json");
    if (!(json ? profile_print_json(ph, p->n_phases++) : profile_print_table(ph)))
        return cli_error(EXIT_RUN, "out of memory");
    return p->file.out.f ? profile_trace_add(&p->file, ph, began) : 0;
}

static int run_phase(struct profile *p, const char *name, int64_t n, int64_t chunk)
{
    struct kopi_trace *t;
    kopi_error e;
    struct profile_phase ph = {.name = name, .program = &p->m->program->p};
    if (!n) return 0;
    if (kopi__trace_new(ph.program, kopi__exec_workers(p->m->exec), p->file.out.f != NULL, &t, &e) != KOPI_OK)
        return cli_fail(&e);
    kopi__exec_trace(p->m->exec, t);
    uint64_t began = kopi__now_ns();
    kopi_status s = forward(p, n, chunk, &e);
    ph.wall_ns = kopi__now_ns() - began;
    kopi__exec_trace(p->m->exec, NULL);
    if (s == KOPI_OK) s = kopi__trace_read(t, &ph.r, &e);
    int code = s == KOPI_OK ? print_phase(p, &ph, began) : cli_fail(&e);
    kopi__trace_free(t);
    return code;
}

/* A short run first: threads awake, caches and memory touched. */
static int warm_up(struct profile *p)
{
    kopi_error e;
    kopi_status s = kopi_cache_new(p->m, &p->cache, &e);
    if (s == KOPI_OK) s = forward(p, n_prompt > WARM_UP || !n_prompt ? WARM_UP : n_prompt, WARM_UP, &e);
    kopi_cache_free(p->cache);
    p->cache = NULL;
    if (s == KOPI_OK) s = kopi_cache_new(p->m, &p->cache, &e);
    if (s == KOPI_OK && depth) s = forward(p, depth, depth, &e);
    return s == KOPI_OK ? 0 : cli_fail(&e);
}

static int run_all(struct profile *p)
{
    uint32_t vocab = kopi_model_vocab_size(p->m);
    int64_t most = n_prompt > n_gen ? n_prompt : n_gen;
    if (depth > most) most = depth;
    if (most < WARM_UP) most = WARM_UP;
    p->ids = kopi__calloc((size_t)most, sizeof *p->ids);
    p->row = kopi__calloc(vocab, sizeof *p->row);
    if (!p->ids || !p->row) return cli_error(EXIT_RUN, "out of memory");
    for (int64_t i = 0; i < most; i++) p->ids[i] = (int32_t)((uint64_t)i * 7919 % vocab);
    int code = warm_up(p);
    if (!code) code = run_phase(p, "prompt", n_prompt, n_prompt);
    if (!code) code = run_phase(p, "generation", n_gen, 1);
    if (p->n_phases) puts("\n]"); /* of JSON */
    return code;
}

int cli_profile(int n_args, char **args)
{
    (void)n_args, (void)args;
    struct profile p = {0};
    kopi_engine *engine;
    if (strcmp(format, "md") && strcmp(format, "json"))
        return cli_error(EXIT_USAGE, "-o is \"%.40s\", allowed are md, json", format);
    if (!n_prompt && !n_gen) return cli_error(EXIT_USAGE, "there is nothing to measure: -p and -n are 0");
    int64_t need = depth + n_prompt + n_gen;
    if (need < WARM_UP) need = WARM_UP;
    int code = cli_need_context(need);
    if (!code) code = cli_load(&engine, &p.m);
    if (code) return code;
    code = cli_check_context(p.m, need);
    if (!code && trace_path) code = profile_trace_open(&p.file, trace_path);
    if (!code) code = run_all(&p);
    code = profile_trace_close(&p.file, code);
    kopi_cache_free(p.cache);
    kopi__free(p.ids);
    kopi__free(p.row);
    cli_unload(engine, p.m);
    return code;
}
