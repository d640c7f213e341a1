/* kopi_config_schema: the table of keys as JSON Schema 2020-12. */
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "config/schema.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

struct builder {
    bool failed; /* memory is short */
};

/* obj[name] = value, which is taken over; returns value. */
static json_t *set(struct builder *b, json_t *obj, const char *name, json_t *value)
{
    if (json_object_set_new(obj, name, value)) b->failed = true;
    return json_object_get(obj, name);
}

static json_t *member(struct builder *b, json_t *obj, const char *name)
{
    json_t *found = json_object_get(obj, name);
    return found ? found : set(b, obj, name, json_object());
}

static void set_text(struct builder *b, json_t *obj, const char *name, const char *text)
{
    set(b, obj, name, json_string(text));
}

/* ---- one key ----------------------------------------------------------------------------------------------------- */

static json_t *word_list(struct builder *b, const char *words)
{
    json_t *list = json_array();
    for (const char *w = words; *w; w += strcspn(w, "|"), w += *w == '|')
        if (json_array_append_new(list, json_stringn(w, strcspn(w, "|")))) b->failed = true;
    return list;
}

static void set_pattern(struct builder *b, json_t *s, const char *pattern)
{
    set_text(b, s, "type", "string");
    set_text(b, s, "pattern", pattern);
}

/* Type and bounds of a key into s; false: any text, so that nothing has to be said about references and words. */
static bool describe(struct builder *b, json_t *s, const kopi_config_key *key)
{
    switch (key->type) {
    case KOPI_CONFIG_BOOL: set_text(b, s, "type", "boolean"); return true;
    case KOPI_CONFIG_INT:
        set_text(b, s, "type", "integer");
        set(b, s, "minimum", json_integer(key->imin));
        set(b, s, "maximum", json_integer(key->imax));
        return true;
    case KOPI_CONFIG_FLOAT:
        set_text(b, s, "type", "number");
        set(b, s, "minimum", json_real(key->fmin));
        set(b, s, "maximum", json_real(key->fmax));
        return true;
    case KOPI_CONFIG_SIZE: set_pattern(b, s, "^[0-9]+(B|[KMG]i?B)?$"); return true;
    case KOPI_CONFIG_DURATION: set_pattern(b, s, "^[0-9]+(ms|s|m|h)$"); return true;
    case KOPI_CONFIG_NAME: set_pattern(b, s, "^[a-z0-9_-]{1,32}$"); return true;
    case KOPI_CONFIG_SHA256: set_pattern(b, s, "^[0-9a-fA-F]{64}$"); return true;
    case KOPI_CONFIG_ENUM: set(b, s, "enum", word_list(b, key->words)); return true;
    case KOPI_CONFIG_STRINGS:
    case KOPI_CONFIG_PATHS:
        set_text(b, s, "type", "array");
        set(b, s, "maxItems", json_integer(64));
        set_text(b, set(b, s, "items", json_object()), "type", "string");
        return false;
    case KOPI_CONFIG_SCALAR: set(b, s, "type", json_pack("[s, s, s]", "string", "number", "boolean")); return false;
    default:
        set_text(b, s, "type", "string");
        set(b, s, "minLength", json_integer(1));
        return false;
    }
}

static json_t *default_value(const kopi_config_key *key)
{
    int64_t i;
    double f;
    if (key->type == KOPI_CONFIG_BOOL) return json_boolean(!strcmp(key->default_value, "true"));
    if (key->type == KOPI_CONFIG_INT && kopi__parse_i64(key->default_value, &i)) return json_integer(i);
    if (key->type == KOPI_CONFIG_FLOAT && kopi__parse_f64(key->default_value, &f)) return json_real(f);
    return json_string(key->default_value);
}

static json_t *key_schema(struct builder *b, const kopi_config_key *key)
{
    json_t *s = json_object(), *own = json_object();
    set(b, s, "description",
        json_sprintf("%s%s%s", key->help, key->env ? "; variable: " : "", key->env ? key->env : ""));
    if (key->default_value) set(b, s, "default", default_value(key));
    if (!describe(b, own, key)) {
        if (json_object_update(s, own)) b->failed = true;
        json_decref(own);
        return s;
    }
    json_t *any = set(b, s, "anyOf", json_array());
    if (json_array_append_new(any, own)) b->failed = true;
    if (key->words && key->type != KOPI_CONFIG_ENUM &&
        json_array_append_new(any, json_pack("{s:o}", "enum", word_list(b, key->words))))
        b->failed = true;
    if (json_array_append_new(any, json_pack("{s:s}", "$ref", "#/$defs/reference"))) b->failed = true;
    return s;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static json_t *as_map(struct builder *b, json_t *node)
{
    set(b, node, "type", json_pack("[s, s]", "object", "null")); /* null: all of its keys are commented out */
    if (!json_object_get(node, "additionalProperties")) set(b, node, "additionalProperties", json_false());
    return node;
}

/* The member of the map `node` for one name of a path ("*": any name). */
static json_t *child(struct builder *b, json_t *node, const char *name)
{
    as_map(b, node);
    if (strcmp(name, "*")) return member(b, member(b, node, "properties"), name);
    if (!json_is_object(json_object_get(node, "additionalProperties"))) {
        set(b, node, "additionalProperties", json_object());
        set(b, node, "propertyNames", json_pack("{s:s}", "pattern", "^[A-Za-z0-9_-]{1,64}$"));
    }
    return json_object_get(node, "additionalProperties");
}

static void add_key(struct builder *b, json_t *root, const kopi_config_key *key)
{
    json_t *node = root, *own = key_schema(b, key);
    char name[80];
    for (const char *p = key->path; *p;) {
        size_t n = strcspn(p, ".[");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        node = child(b, node, name);
        p += n;
        if (*p == '[') {
            set_text(b, node, "type", "array");
            set(b, node, "maxItems", json_integer(KOPI__MODELS_MAX));
            node = member(b, node, "items");
            p += 2;
        }
        p += *p == '.';
    }
    if (json_object_update(node, own)) b->failed = true;
    json_decref(own);
}

/* `backend: NAME` beside the section, `model: FILE` instead of the list; a model needs its path. */
static void add_short_forms(struct builder *b, json_t *root)
{
    json_t *top = json_object_get(root, "properties"), *section = json_object_get(top, "backend");
    json_t *name = json_object_get(json_object_get(section, "properties"), "name");
    json_t *item = json_object_get(json_object_get(top, "models"), "items");
    json_t *path = json_object_get(json_object_get(item, "properties"), "path");
    set(b, top, "model", json_deep_copy(path));
    set_text(b, root, "type", "object");
    set_text(b, item, "type", "object");
    set(b, item, "required", json_pack("[s]", "path"));
    set(b, top, "backend", json_pack("{s:[O, O]}", "anyOf", name, section));
    set(b, root, "not", json_pack("{s:[s, s]}", "required", "model", "models"));
    set(b, root, "$defs", json_pack("{s:{s:s, s:s}}", "reference", "type", "string", "pattern", "\\$\\{"));
}

static int append(const char *text, size_t n, void *out) { return kopi__buf_add(out, text, n) ? 0 : -1; }

kopi_status kopi_config_schema(char **text, kopi_error *err)
{
    struct builder b = {false};
    struct kopi_buf out = KOPI_BUF_INIT;
    const kopi_config_key *key;
    json_t *root = json_pack("{s:s, s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema", "title",
                             "kopi configuration");
    for (size_t i = 0; (key = kopi_config_key_at(i)); i++) add_key(&b, root, key);
    add_short_forms(&b, root);
    if (!root || b.failed || json_dump_callback(root, append, &out, JSON_INDENT(2) | JSON_REAL_PRECISION(6)))
        out.failed = true;
    json_decref(root);
    kopi__buf_char(&out, '\n');
    *text = out.failed ? NULL : kopi__buf_take(&out);
    kopi__buf_free(&out);
    return *text ? KOPI_OK : kopi__nomem(err, "the schema");
}
