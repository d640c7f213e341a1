#include "config/yaml.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "config/expand.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 8 }; /* deeper than the table of keys; what is not in the table is refused before it can nest */

enum frame_kind { FRAME_MAP, FRAME_MODELS, FRAME_LIST };
struct frame {
    enum frame_kind kind;
    char path[KOPI__PATH_MAX];  /* in the schema: "models[].context" */
    char shown[KOPI__PATH_MAX]; /* as the user would write it: "models[0].context" */
    size_t line, col;           /* where it begins, from 1 */
    char *names[KOPI__MAP_MAX]; /* MAP: the keys so far */
    size_t n;                   /* keys or items so far */
    bool has_key;               /* MAP: child_* is a key that waits for its value */
    char child_path[KOPI__PATH_MAX], child_shown[KOPI__PATH_MAX];
    char *items[KOPI__LIST_MAX]; /* LIST */
    const kopi_config_key *key;  /* LIST */
};

struct reader {
    const char *name, *dir;
    struct kopi__document *doc;
    struct frame *stack;
    size_t depth;
    int model; /* index of the model being read, or KOPI__MODEL_ALL */
    size_t documents;
    kopi_error *err;
};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static kopi_status fail_at(struct reader *r, size_t line, size_t col, const char *shown, kopi_status status,
                           const char *text)
{
    if (status == KOPI_E_NOMEM) return kopi__nomem(r->err, "the configuration");
    return kopi__fail(r->err, KOPI_E_CONFIG, "%s:%zu:%zu: %s%s%s", r->name, line, col, shown, *shown ? ": " : "", text);
}

static kopi_status fail_event(struct reader *r, const yaml_event_t *e, const char *shown, const char *text)
{
    return fail_at(r, e->start_mark.line + 1, e->start_mark.column + 1, shown, KOPI_E_CONFIG, text);
}

/* Status of a callee that left the bare message in r->err: puts the place before it. */
static kopi_status fail_with(struct reader *r, const yaml_event_t *e, const char *shown, kopi_status status)
{
    char text[sizeof r->err->text] = "";
    if (r->err) memcpy(text, r->err->text, sizeof text);
    return fail_at(r, e->start_mark.line + 1, e->start_mark.column + 1, shown, status, text);
}

/* ---- the stack of maps and lists --------------------------------------------------------------------------------- */

static struct frame *top(struct reader *r) { return r->depth ? &r->stack[r->depth - 1] : NULL; }

static void pop(struct reader *r)
{
    struct frame *f = top(r);
    for (size_t i = 0; i < f->n; i++) {
        if (f->kind == FRAME_MAP) kopi__free(f->names[i]);
        if (f->kind == FRAME_LIST) kopi__free(f->items[i]);
    }
    r->depth--;
}

/* Where a value that begins now belongs: copies its two paths. */
static kopi_status place(struct reader *r, const yaml_event_t *e, char path[KOPI__PATH_MAX], char shown[KOPI__PATH_MAX])
{
    struct frame *f = top(r);
    *path = *shown = 0;
    if (!f) return KOPI_OK;
    if (f->kind == FRAME_MAP) {
        if (!f->has_key) return fail_event(r, e, f->shown, "a key has to be a plain name");
        strcpy(path, f->child_path);
        strcpy(shown, f->child_shown);
        f->has_key = false;
        return KOPI_OK;
    }
    strcpy(path, f->path);
    if (snprintf(shown, KOPI__PATH_MAX, "%s[%zu]", f->shown, f->n) >= KOPI__PATH_MAX)
        return fail_event(r, e, f->path, "the path is too long");
    if (f->n >= (f->kind == FRAME_LIST ? KOPI__LIST_MAX : KOPI__MODELS_MAX))
        return fail_event(r, e, f->shown, "too many items (64 at most)");
    return KOPI_OK;
}

static kopi_status push(struct reader *r, const yaml_event_t *e, enum frame_kind kind, const char *path,
                        const char *shown)
{
    if (r->depth == DEPTH_MAX) return fail_event(r, e, shown, "nested too deeply");
    struct frame *f = &r->stack[r->depth++];
    f->kind = kind;
    f->n = 0;
    f->has_key = false;
    f->key = NULL;
    f->line = e->start_mark.line + 1;
    f->col = e->start_mark.column + 1;
    strcpy(f->path, path);
    strcpy(f->shown, shown);
    return KOPI_OK;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool is_plain(const yaml_event_t *e) { return e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE; }

static bool is_null(const yaml_event_t *e)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
        if (is_plain(e) && !strcmp((const char *)e->data.scalar.value, nulls[i])) return true;
    return false;
}

static bool is_text_type(const kopi_config_key *key)
{
    return key->type != KOPI_CONFIG_BOOL && key->type != KOPI_CONFIG_INT && key->type != KOPI_CONFIG_FLOAT;
}

/* The scalar's text with its references replaced; refuses nulls, and quoted text for a number or a boolean. */
static kopi_status scalar_text(struct reader *r, const yaml_event_t *e, const kopi_config_key *key, const char *shown,
                               char **out)
{
    const char *raw = (const char *)e->data.scalar.value;
    char wanted[200], text[300];
    bool used;
    if (is_null(e)) {
        snprintf(text, sizeof text, "no value is given%s; wanted: %s",
                 *raw ? " (this is YAML's null; quote it to have text)" : "",
                 kopi__key_wanted(key, wanted, sizeof wanted));
        return fail_event(r, e, shown, text);
    }
    if (strlen(raw) != e->data.scalar.length) return fail_event(r, e, shown, "the value contains a zero byte");
    kopi_status status = kopi__expand(raw, out, &used, r->err);
    if (status) return fail_with(r, e, shown, status);
    if (!is_plain(e) && !used && !is_text_type(key) && !kopi__key_has_word(key, *out)) {
        snprintf(text, sizeof text, "\"%.60s\" in quotes is text; wanted: %s", *out,
                 kopi__key_wanted(key, wanted, sizeof wanted));
        kopi__free(*out);
        return fail_event(r, e, shown, text);
    }
    return KOPI_OK;
}

/* Stores the value of a key; texts stay the caller's. */
static kopi_status store(struct reader *r, const yaml_event_t *e, size_t line, size_t col, const kopi_config_key *key,
                         const char *shown, char *const *texts, size_t n)
{
    struct kopi__setting s = {.key = key, .from = KOPI_FROM_FILE, .model = r->model};
    struct kopi__raw raw = {.texts = (const char *const *)texts, .n = n, .dir = r->dir};
    kopi_status status = kopi__value_parse(&s, &raw, r->err);
    if (status) return fail_with(r, e, shown, status);
    s.where = kopi__asprintf("%s:%zu:%zu", r->name, line, col);
    if (strchr(key->path, '*')) s.name = kopi__strdup(shown);
    if (!s.where || (strchr(key->path, '*') && !s.name)) {
        kopi__setting_clear(&s);
        return kopi__nomem(r->err, "the configuration");
    }
    return kopi__settings_add(&r->doc->settings, &s, r->err);
}

static kopi_status value(struct reader *r, const yaml_event_t *e, const kopi_config_key *key, const char *shown)
{
    char *text;
    if (kopi__key_is_list(key)) return fail_event(r, e, shown, "a list is wanted: [a, b]");
    kopi_status status = scalar_text(r, e, key, shown, &text);
    if (status) return status;
    status = store(r, e, e->start_mark.line + 1, e->start_mark.column + 1, key, shown, &text, 1);
    kopi__free(text);
    return status;
}

static kopi_status list_item(struct reader *r, const yaml_event_t *e, const char *shown)
{
    struct frame *f = top(r);
    kopi_status status = scalar_text(r, e, f->key, shown, &f->items[f->n]);
    if (!status) f->n++;
    return status;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static bool has_name(const struct frame *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->names[i], name)) return true;
    return false;
}

static kopi_status map_key(struct reader *r, const yaml_event_t *e)
{
    struct frame *f = top(r);
    const char *name = (const char *)e->data.scalar.value;
    if (strlen(name) != e->data.scalar.length) return fail_event(r, e, f->shown, "the key contains a zero byte");
    const char *other = !r->depth || r->depth > 1 ? NULL
                        : !strcmp(name, "model")  ? "models"
                        : !strcmp(name, "models") ? "model"
                                                  : NULL;
    if (other && has_name(f, other)) return fail_event(r, e, name, "model and models at once; keep one of the two");
    if (!strcmp(name, "model") && r->depth == 1) strcpy(f->child_path, "model");
    else if (!kopi__schema_child(f->path, name, f->child_path))
        return fail_with(r, e, f->shown, kopi__schema_unknown(f->path, name, r->err));
    if (snprintf(f->child_shown, KOPI__PATH_MAX, "%s%s%s", f->shown, *f->shown ? "." : "", name) >= KOPI__PATH_MAX)
        return fail_event(r, e, f->shown, "the path is too long");
    if (has_name(f, name)) return fail_event(r, e, f->child_shown, "the key is written twice");
    if (f->n == KOPI__MAP_MAX) return fail_event(r, e, f->shown, "too many keys (64 at most)");
    f->names[f->n] = kopi__strdup(name);
    if (!f->names[f->n]) return kopi__nomem(r->err, "the configuration");
    f->n++;
    f->has_key = true;
    return KOPI_OK;
}

/* `backend: NAME` and `model: FILE`. */
static kopi_status short_form(struct reader *r, const yaml_event_t *e, const char *path, const char *target)
{
    const kopi_config_key *key;
    kopi__schema_node(target, &key);
    if (strcmp(path, "model")) return value(r, e, key, target);
    r->doc->has_models = true;
    r->doc->n_models = 1;
    r->model = 0;
    kopi_status status = value(r, e, key, "model");
    r->model = KOPI__MODEL_ALL;
    return status;
}

static kopi_status on_scalar(struct reader *r, const yaml_event_t *e)
{
    char path[KOPI__PATH_MAX], shown[KOPI__PATH_MAX];
    const kopi_config_key *key = NULL;
    struct frame *f = top(r);
    if (!f && is_null(e) && !*e->data.scalar.value) return KOPI_OK; /* an empty document */
    if (!f) return fail_event(r, e, "", "the file has to be a map of keys: `key: value`");
    if (f->kind == FRAME_MAP && !f->has_key) return map_key(r, e);
    kopi_status status = place(r, e, path, shown);
    if (status) return status;
    if (f->kind == FRAME_LIST) return list_item(r, e, shown);
    if (f->kind == FRAME_MODELS) return fail_event(r, e, shown, "a model is a map: `- path: FILE`");
    const char *target = kopi__schema_short(path);
    bool nothing = is_null(e) && !*e->data.scalar.value;
    if (target && (!nothing || !strcmp(path, "model"))) return short_form(r, e, path, target);
    enum kopi__node node = kopi__schema_node(path, &key);
    if (node == KOPI__NODE_KEY) return value(r, e, key, shown);
    if (node == KOPI__NODE_MAP && nothing) return KOPI_OK; /* a section whose keys are all commented out */
    return fail_event(r, e, shown,
                      node == KOPI__NODE_LIST ? "a list of models is wanted: `- path: FILE`"
                                              : "this is a section: its keys stand below it, indented");
}

static kopi_status on_map(struct reader *r, const yaml_event_t *e)
{
    char path[KOPI__PATH_MAX], shown[KOPI__PATH_MAX];
    struct frame *f = top(r);
    kopi_status status = place(r, e, path, shown);
    if (status) return status;
    if (f && f->kind == FRAME_MODELS) {
        r->model = (int)f->n++;
        r->doc->n_models = (int)f->n;
        return push(r, e, FRAME_MAP, path, shown);
    }
    if (!strcmp(path, "model"))
        return fail_event(r, e, shown, "one path is wanted; with more keys write models: [{path: FILE}]");
    enum kopi__node node = kopi__schema_node(path, NULL);
    if ((f && f->kind == FRAME_LIST) || node == KOPI__NODE_KEY)
        return fail_event(r, e, shown, "one value is wanted, not a map");
    if (node == KOPI__NODE_LIST) return fail_event(r, e, shown, "a list of models is wanted: `- path: FILE`");
    return push(r, e, FRAME_MAP, path, shown);
}

static kopi_status on_sequence(struct reader *r, const yaml_event_t *e)
{
    char path[KOPI__PATH_MAX], shown[KOPI__PATH_MAX];
    const kopi_config_key *key = NULL;
    struct frame *f = top(r);
    kopi_status status = place(r, e, path, shown);
    if (status) return status;
    if (!f) return fail_event(r, e, "", "the file has to be a map of keys, not a list");
    enum kopi__node node = kopi__schema_node(path, &key);
    if (f->kind != FRAME_MAP) return fail_event(r, e, shown, "a list inside a list");
    if (node == KOPI__NODE_LIST) {
        r->doc->has_models = true;
        status = push(r, e, FRAME_MODELS, path, shown);
        if (!status) strcat(top(r)->path, "[]");
        return status;
    }
    if (node != KOPI__NODE_KEY || !kopi__key_is_list(key))
        return fail_event(r, e, shown, "one value is wanted, not a list");
    status = push(r, e, FRAME_LIST, path, shown);
    if (!status) top(r)->key = key;
    return status;
}

/* The map or list at the top is complete. */
static kopi_status on_end(struct reader *r, const yaml_event_t *e)
{
    struct frame *f = top(r);
    kopi_status status = KOPI_OK;
    bool is_model = r->depth > 1 && r->stack[r->depth - 2].kind == FRAME_MODELS;
    if (f->kind == FRAME_LIST) {
        status = store(r, e, f->line, f->col, f->key, f->shown, f->items, f->n);
    } else if (is_model) {
        if (!has_name(f, "path"))
            status = fail_at(r, f->line, f->col, f->shown, KOPI_E_CONFIG, "path is missing: the GGUF file");
        r->model = KOPI__MODEL_ALL;
    }
    pop(r);
    return status;
}

static kopi_status on_document(struct reader *r, const yaml_event_t *e)
{
    const yaml_version_directive_t *v = e->data.document_start.version_directive;
    if (r->documents++) return fail_event(r, e, "", "a second document; a configuration is one");
    if (v && (v->major != 1 || v->minor != 2)) return fail_event(r, e, "", "only %YAML 1.2 is read");
    return KOPI_OK;
}

/* What is refused wherever it stands: aliases could grow without bound, tags change types. */
static const char *forbidden(const yaml_event_t *e)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (e->type) {
    case YAML_ALIAS_EVENT: return "aliases (*name) are not supported: write the value out";
    case YAML_SCALAR_EVENT: anchor = e->data.scalar.anchor, tag = e->data.scalar.tag; break;
    case YAML_SEQUENCE_START_EVENT: anchor = e->data.sequence_start.anchor, tag = e->data.sequence_start.tag; break;
    case YAML_MAPPING_START_EVENT: anchor = e->data.mapping_start.anchor, tag = e->data.mapping_start.tag; break;
    default: break;
    }
    if (anchor) return "anchors (&name) are not supported: write the value out";
    return tag ? "tags (!name) are not supported" : NULL;
}

static kopi_status on_event(struct reader *r, const yaml_event_t *e)
{
    const char *text = forbidden(e);
    struct frame *f = top(r);
    if (text) return fail_event(r, e, !f ? "" : f->kind == FRAME_MAP && f->has_key ? f->child_shown : f->shown, text);
    switch (e->type) {
    case YAML_DOCUMENT_START_EVENT: return on_document(r, e);
    case YAML_SCALAR_EVENT: return on_scalar(r, e);
    case YAML_MAPPING_START_EVENT: return on_map(r, e);
    case YAML_SEQUENCE_START_EVENT: return on_sequence(r, e);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT: return on_end(r, e);
    default: return KOPI_OK;
    }
}

/* ---- the text ---------------------------------------------------------------------------------------------------- */

/* Line and column of a byte, from 1. */
static kopi_status fail_byte(struct reader *r, const char *text, size_t at, const char *message)
{
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at; i++)
        if (text[i] == '\n') line++, start = i + 1;
    return fail_at(r, line, at - start + 1, "", KOPI_E_CONFIG, message);
}

/* UTF-8 and indentation, in one pass: libyaml would name neither by its place. */
static kopi_status check_text(struct reader *r, const char *text, size_t n)
{
    bool indent = true;
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        size_t len = kopi__utf8_decode(text + i, n - i, &cp);
        if (!len) return fail_byte(r, text, i, "the file is not UTF-8 here");
        if ((cp < 0x20 && cp != '\t' && cp != '\n' && cp != '\r') || cp == 0x7f)
            return fail_byte(r, text, i, "a control character");
        if (cp == 0xfeff && indent)
            return fail_byte(r, text, i, "a byte order mark (U+FEFF) at the beginning of a line");
        if (cp == '\t' && indent) return fail_byte(r, text, i, "a tab in the indentation; YAML wants spaces");
        indent = cp == '\n' || cp == '\r' || (indent && cp == ' ');
        i += len;
    }
    return KOPI_OK;
}

static kopi_status parser_failed(struct reader *r, const yaml_parser_t *p, const char *text)
{
    char message[300];
    if (p->error == YAML_MEMORY_ERROR) return kopi__nomem(r->err, "the configuration");
    snprintf(message, sizeof message, "not YAML: %s%s%s", p->problem ? p->problem : "unreadable", p->context ? " " : "",
             p->context ? p->context : "");
    if (p->error == YAML_READER_ERROR) return fail_byte(r, text, p->problem_offset, message);
    return fail_at(r, p->problem_mark.line + 1, p->problem_mark.column + 1, "", KOPI_E_CONFIG, message);
}

static kopi_status parse(struct reader *r, const char *text, size_t n)
{
    yaml_parser_t p;
    kopi_status status = KOPI_OK;
    bool done = false;
    if (!yaml_parser_initialize(&p)) return kopi__nomem(r->err, "the configuration");
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
    while (!status && !done) {
        yaml_event_t e;
        if (!yaml_parser_parse(&p, &e)) {
            status = parser_failed(r, &p, text);
            break;
        }
        status = on_event(r, &e);
        done = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
    }
    yaml_parser_delete(&p);
    return status;
}

kopi_status kopi__yaml_read(const char *name, const char *dir, const char *text, size_t n, struct kopi__document *doc,
                            kopi_error *err)
{
    kopi_error own;
    struct reader r = {.name = name, .dir = dir, .doc = doc, .model = KOPI__MODEL_ALL, .err = err ? err : &own};
    *doc = (struct kopi__document){.n_models = 0};
    if (n > KOPI__CONFIG_FILE_MAX)
        return kopi__fail(err, KOPI_E_CONFIG, "%s: larger than %u bytes; no configuration is", name,
                          KOPI__CONFIG_FILE_MAX);
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) text += 3, n -= 3;
    r.stack = kopi__calloc(DEPTH_MAX, sizeof *r.stack);
    if (!r.stack) return kopi__nomem(err, "the configuration");
    kopi_status status = check_text(&r, text, n);
    if (!status) status = parse(&r, text, n);
    while (r.depth) pop(&r);
    kopi__free(r.stack);
    doc->empty = !doc->settings.n && !doc->has_models;
    if (status) kopi__settings_clear(&doc->settings);
    return status;
}
