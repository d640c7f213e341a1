/* An answer from a model, with the public interface of libkopi alone:
 *
 *     generate kopi.yaml "Why is the sky blue?"
 *
 * kopi.yaml needs two lines, `backend: cpu-threaded` and `model: path/of/model.gguf`. The text goes to stdout as it
 * comes, numbers to stderr. Ctrl-C ends the answer and keeps what is there. Outside of kopi's tree: cc generate.c
 * $(pkg-config --cflags --libs kopi), and -Wl,-rpath,$(pkg-config --variable=libdir kopi) if kopi is not in a standard
 * place. */
#include <kopi/kopi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static kopi_model *running;

static void on_interrupt(int sig)
{
    (void)sig;
    kopi_model_cancel(running);
}

static int print(void *ctx, const char *utf8, size_t len)
{
    (void)ctx;
    fwrite(utf8, 1, len, stdout);
    return fflush(stdout); /* a broken pipe ends the answer */
}

/* The prompt as tokens: through the model's chat template if it has one. */
static kopi_status encode(const kopi_model *model, const char *prompt, int32_t **ids, size_t *n, kopi_error *err)
{
    const kopi_message message = {"user", prompt};
    if (kopi_model_has_chat_template(model)) return kopi_chat_tokenize(model, &message, 1, ids, n, err);
    return kopi_tokenize(model, prompt, strlen(prompt), KOPI_ADD_SPECIAL, ids, n, err);
}

static void report(const kopi_model *model, const kopi_result *r)
{
    kopi_backend_info info;
    kopi_backend_device(model, &info);
    fprintf(stderr, "[%s, %u threads: %zu + %zu tokens, %.1f per second, seed %lld]\n", info.name, info.threads,
            r->n_prompt, r->n_generated, r->generate_ns ? (double)r->n_generated * 1e9 / (double)r->generate_ns : 0.0,
            (long long)r->seed);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: generate CONFIG.yaml PROMPT\n");
        return 2;
    }
    kopi_config *config = NULL;
    kopi_engine *engine = NULL;
    kopi_model *model = NULL;
    kopi_cache *cache = NULL;
    int32_t *ids = NULL;
    size_t n_ids = 0;
    kopi_result result = {0};
    kopi_error err = {0};

    kopi_status s = kopi_config_new(&config, &err);
    if (s == KOPI_OK) s = kopi_config_load(config, argv[1], &err);
    if (s == KOPI_OK) s = kopi_engine_new(config, &engine, &err);
    if (s == KOPI_OK) s = kopi_model_load(engine, NULL, NULL, NULL, &model, &err);
    if (s == KOPI_OK) s = kopi_cache_new(model, &cache, &err);
    if (s == KOPI_OK) s = encode(model, argv[2], &ids, &n_ids, &err);
    if (s == KOPI_OK) {
        kopi_request request = {
            .struct_size = sizeof request, .n_predict = -1, .ids = ids, .n_ids = n_ids, .on_text = print};
        kopi_sampling_default(model, &request.sampling);
        running = model;
        signal(SIGINT, on_interrupt);
        s = kopi_generate(model, cache, &request, &result, &err);
        putchar('\n');
    }
    if (s == KOPI_OK) report(model, &result);
    else fprintf(stderr, "generate: %s\n", err.text);

    signal(SIGINT, SIG_DFL);
    kopi_result_clear(&result);
    kopi_free(ids);
    kopi_cache_free(cache);
    kopi_model_free(model);
    kopi_engine_free(engine);
    kopi_config_free(config);
    return s == KOPI_OK ? 0 : 1;
}
