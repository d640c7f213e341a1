/* kopi config: validates a configuration, shows every value with its origin, prints the schema or a starter file. */
#include "commands.h"

#include "base/error.h"
#include "config/config.h"
#include "gguf/gguf.h"
#include "run/engine.h"
#include "run/load.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Prints a text that the library made. */
static int give(kopi_status s, char *text, const kopi_error *e)
{
    if (s != KOPI_OK) return cli_fail(e);
    int code = cli_write(text, strlen(text));
    kopi_free(text);
    return code;
}

/* ---- check: what the configuration names is there --------------------------------------------------------------- */

/* The backend loads, takes its options and promises what is wanted. */
static kopi_status check_backend(kopi_error *e)
{
    static const _Atomic int never;
    kopi_engine *engine;
    const struct kopi_plugin_handle *p;
    struct kopi_instance *i = NULL;
    kopi_status s = kopi_engine_new(cli_config, &engine, e);
    if (s != KOPI_OK) return s;
    s = kopi__engine_plugin(engine, NULL, &p, e);
    if (s == KOPI_OK) s = kopi__engine_instance(engine, p, &never, &i, e);
    if (s == KOPI_OK) s = kopi__engine_check_determinism(engine, i, e);
    kopi__instance_free(i);
    kopi_engine_free(engine);
    return s;
}

static kopi_status check_gguf(const struct kopi__setting *s, const char *path, kopi_error *e)
{
    struct kopi_gguf *g;
    kopi_status status = kopi__gguf_open(path, KOPI__GGUF_ANY_TYPE, NULL, 0, &g, e);
    if (status != KOPI_OK) return s->where ? kopi__fail_prefix(e, s->where) : status;
    kopi__gguf_close(g);
    return KOPI_OK;
}

static kopi_status check_draft(int model, kopi_error *e)
{
    const struct kopi__setting *s = kopi__config_find(cli_config, "models[].speculation.draft_model", model);
    const char *type = kopi__config_str(cli_config, "models[].speculation.type", model), *path, *sha256;
    if (!s || (strcmp(type, "auto") && strcmp(type, "draft"))) return KOPI_OK;
    kopi__draft_file(cli_config, s->text, &path, &sha256);
    return check_gguf(s, path, e);
}

static kopi_status check_template(int model, kopi_error *e)
{
    const struct kopi__setting *s = kopi__config_find(cli_config, "models[].template.source", model);
    if (kopi__key_has_word(s->key, s->text) || !access(s->text, R_OK)) return KOPI_OK;
    return kopi__config_fail(e, s, "%s: %s", s->text, strerror(errno));
}

static kopi_status check_model(int model, kopi_error *e)
{
    const struct kopi__setting *s = kopi__config_find(cli_config, "models[].path", model);
    kopi_status status = check_gguf(s, s->text, e);
    if (status == KOPI_OK) status = check_template(model, e);
    return status == KOPI_OK ? check_draft(model, e) : status;
}

/* Values that don't parse or go together have ended the command before. */
int cli_config_check(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    int n = (int)kopi_config_models(cli_config);
    kopi_status s = check_backend(&e);
    for (int i = 0; i < n && s == KOPI_OK; i++) s = check_model(i, &e);
    if (s != KOPI_OK) return cli_fail(&e);
    if (!cli_quiet)
        printf("the configuration is valid; its backend and %d model file%s are there\n", n, n == 1 ? "" : "s");
    return 0;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

int cli_config_print(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_print(cli_config, &text, &e);
    return give(s, text, &e);
}

int cli_config_schema(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_schema(&text, &e);
    return give(s, text, &e);
}

int cli_config_init(int n_args, char **args)
{
    (void)n_args, (void)args;
    kopi_error e;
    char *text = NULL;
    kopi_status s = kopi_config_starter(&text, &e);
    return give(s, text, &e);
}

int cli_config_command(int n_args, char **args)
{
    (void)n_args, (void)args;
    return cli_error(EXIT_USAGE, "kopi config takes one of: check [FILE], print [FILE], schema, init");
}
