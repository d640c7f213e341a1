/* kopi_config_print and kopi_config_starter. */
#include "base/error.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/view.h"
#include "config/write.h"

#include <stdio.h>
#include <string.h>

static kopi_status take(struct kopi_buf *b, char **text, kopi_error *err)
{
    *text = b->failed ? NULL : kopi__buf_take(b);
    kopi__buf_free(b);
    return *text ? KOPI_OK : kopi__nomem(err, "the text of a configuration");
}

/* ---- print ------------------------------------------------------------------------------------------------------- */

struct printer {
    struct kopi__yaml_writer w;
    const kopi_config *c;
    size_t n_models;
};

static void list_value(struct kopi_buf *out, const char *const *items)
{
    kopi__buf_char(out, '[');
    for (size_t i = 0; items[i]; i++) {
        if (i) kopi__buf_str(out, ", ");
        kopi__yaml_scalar(out, items[i]);
    }
    kopi__buf_char(out, ']');
}

/* Written without quotes, whatever it looks like. */
static bool is_number(const kopi_config_key *key)
{
    return key->type == KOPI_CONFIG_BOOL || key->type == KOPI_CONFIG_INT || key->type == KOPI_CONFIG_FLOAT;
}

static int print_entry(void *ctx, const kopi_config_entry *e)
{
    struct printer *p = ctx;
    struct kopi_buf value = KOPI_BUF_INIT;
    bool in_model = !strncmp(e->path, "models[", 7);
    int model = KOPI__MODEL_ALL;
    if (in_model) sscanf(e->path + 7, "%d", &model);
    if (in_model && !p->n_models && !*p->w.prefix) {
        kopi__buf_str(&p->w.buf, "\n# No model is configured. One would get:");
        p->w.prefix = "# ";
    }
    if (!in_model) p->w.prefix = "";
    if (kopi__key_is_list(e->key)) list_value(&value, kopi__config_list(p->c, e->key->path, model));
    else if (is_number(e->key)) kopi__buf_str(&value, e->value);
    else kopi__yaml_scalar(&value, e->value);
    if (value.failed) p->w.buf.failed = true;
    else kopi__yaml_line(&p->w, e->path, value.data, e->origin, false);
    kopi__buf_free(&value);
    return p->w.buf.failed;
}

kopi_status kopi_config_print(const kopi_config *c, char **text, kopi_error *err)
{
    struct printer p = {.w = {.buf = KOPI_BUF_INIT, .prefix = ""}, .c = c, .n_models = kopi_config_models(c)};
    kopi_config_each(c, print_entry, &p);
    return take(&p.w.buf, text, err);
}

/* ---- starter ----------------------------------------------------------------------------------------------------- */

static const char head[] =
    "# kopi configuration. `kopi config check` checks it, `kopi config print` shows every value and its origin.\n"
    "# Relative paths begin at this file's folder. ${VAR} and ${VAR:-default} stand for the environment.\n"
    "# Take the # away from a line to set its key; what is shown is the default, or where it says so an example.\n"
    "# KOPI_X is the environment variable that sets the same and counts more than this file.\n";

#define NO_SHA256 "0000000000000000000000000000000000000000000000000000000000000000"

/* What is written instead of the default. The live lines are no comments: what a deployment has to say. */
static const struct written { const char *path, *value; bool live; } all_written[] = {
    {"version", "1", true},
    {"backend.name", "cpu-threaded", true},
    {"models[].path", "model.gguf", true},
    {"plugin_dirs", "[/opt/acme/kopi]", false},
    {"models[].aliases", "[other]", false},
    {"backend.path", "/opt/acme/kopi-acme.so", false},
    {"backend.sha256", NO_SHA256, false},
    {"backend.options.*.*", "{cpu-threaded: {isa: auto}}", false},
    {"models[].id", "name", false},
    {"models[].sha256", NO_SHA256, false},
    {"models[].speculation.draft_model", "small.gguf", false},
};

static struct written written(const kopi_config_key *key)
{
    for (size_t i = 0; i < sizeof all_written / sizeof *all_written; i++)
        if (!strcmp(key->path, all_written[i].path)) return all_written[i];
    return (struct written){key->path, key->default_value, false};
}

static void starter_line(struct kopi__yaml_writer *w, const kopi_config_key *key)
{
    char path[KOPI__PATH_MAX], comment[400], wanted[200];
    const char *star = strchr(key->path, '*');
    struct written v = written(key);
    bool example = !v.live && !key->default_value;
    snprintf(path, sizeof path, "%.*s", (int)(star ? star - key->path - 1 : KOPI__PATH_MAX - 1), key->path);
    snprintf(comment, sizeof comment, "%s%s (%s)%s%s", example ? "example: " : "", key->help,
             kopi__key_wanted(key, wanted, sizeof wanted), key->env ? "; " : "", key->env ? key->env : "");
    kopi__yaml_line(w, path, v.value, comment, !v.live);
}

kopi_status kopi_config_starter(char **text, kopi_error *err)
{
    struct kopi__yaml_writer w = {.buf = KOPI_BUF_INIT, .prefix = ""};
    const kopi_config_key *key;
    kopi__buf_str(&w.buf, head);
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++) starter_line(&w, key);
    return take(&w.buf, text, err);
}
