#include "text/chat_messages.h"
#include <string.h>

static bool is_text_part(const json_t *part)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    return json_is_string(part) ||
           (json_is_string(json_object_get(part, "text")) && (!type || strcmp(type, "text") == 0));
}
static const json_t *part_text(const json_t *part)
{
    return json_is_string(part) ? part : json_object_get(part, "text");
}

/* The arguments of a tool call if they are text that holds a JSON object, else NULL. The caller owns the result. */
static json_t *arguments_object(const json_t *call)
{
    const json_t *function = json_object_get(call, "function"),
                 *args = json_object_get(function ? function : call, "arguments");
    if (!json_is_string(args)) return NULL;
    json_t *object = json_loadb(json_string_value(args), json_string_length(args), JSON_ALLOW_NUL, NULL);
    if (json_is_object(object)) return object;
    json_decref(object);
    return NULL;
}

unsigned kopi__chat_choices(const json_t *messages)
{
    unsigned choices = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *m = json_array_get(messages, i), *content = json_object_get(m, "content"),
                     *calls = json_object_get(m, "tool_calls");
        if (!json_is_string(content)) choices |= KOPI__CHAT_FLAT;
        for (size_t k = 0; k < json_array_size(calls); k++) {
            json_t *object = arguments_object(json_array_get(calls, k));
            if (object) choices |= KOPI__CHAT_STRING_ARGS;
            json_decref(object);
        }
    }
    return choices;
}

/* ---- content ------------------------------------------------------------------------------------------------------
 */

static bool literal(struct kopi_jinja *j, const char *s, struct kopi_jval *out)
{
    *out = kopi__jstring((struct kopi_jstr){0});
    return kopi__jstr_ref(&j->arena, s, strlen(s), KOPI_J_OUTSIDE, &out->s);
}
static bool add_field(struct kopi_jinja *j, struct kopi_jdict *d, const char *name, struct kopi_jval v)
{
    struct kopi_jval key;
    return literal(j, name, &key) && kopi__jdict_set(j, d, &key, v);
}

static bool as_parts(struct kopi_jinja *j, struct kopi_jval text, struct kopi_jval *out)
{
    struct kopi_jval part, type;
    return kopi__jlist_new(j, KOPI_J_LIST, 1, out) && kopi__jdict_new(j, &part) && literal(j, "text", &type) &&
           add_field(j, part.dict, "type", type) && add_field(j, part.dict, "text", text) &&
           kopi__jlist_push(j, out->list, part) && (out->list->parts = true);
}

static bool flattened(struct kopi_jinja *j, const json_t *content, size_t message, struct kopi_jval *out)
{
    struct kopi_jbuf *b = kopi__jbuf_new(&j->arena, 0);
    if (!b) return false;
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i), *text = part_text(part);
        if (!is_text_part(part))
            return kopi__jfail(j, "message %zu: part %zu is not text, and this template takes only text", message + 1,
                               i + 1);
        if (i && !kopi__jbuf_add(&j->arena, b, "\n", 1, KOPI_J_OUTSIDE)) return false;
        if (!kopi__jbuf_add(&j->arena, b, json_string_value(text), json_string_length(text), KOPI_J_OUTSIDE))
            return false;
    }
    *out = kopi__jstring(kopi__jbuf_str(b));
    return true;
}

static bool content_value(struct kopi_jinja *j, const json_t *content, size_t message, unsigned shape,
                          struct kopi_jval *out)
{
    if ((shape & KOPI__CHAT_FLAT) && !json_is_string(content)) return flattened(j, content, message, out);
    if (!kopi__jfrom_jansson(j, content, KOPI_J_OUTSIDE, out)) return false;
    if (out->type == KOPI_J_NONE) out->outside = KOPI_J_NO_CONTENT;
    if (out->type == KOPI_J_LIST) out->list->parts = true;
    if ((shape & KOPI__CHAT_PARTS) && out->type == KOPI_J_STRING) return as_parts(j, *out, out);
    return true;
}

/* ---- tool calls ---------------------------------------------------------------------------------------------------
 */

static bool with_object(struct kopi_jinja *j, const json_t *call, struct kopi_jval *v)
{
    json_t *object = arguments_object(call);
    struct kopi_jval key, *holder, args;
    if (!object) return true;
    bool ok = literal(j, "function", &key) && kopi__jdict_get(j, v->dict, &key, &holder);
    if (ok && (!holder || holder->type != KOPI_J_DICT)) holder = v;
    ok = ok && kopi__jfrom_jansson(j, object, KOPI_J_OUTSIDE, &args);
    if (ok) {
        args.dict->parts = true;
        ok = add_field(j, holder->dict, "arguments", args);
    }
    json_decref(object);
    return ok;
}
static bool calls_value(struct kopi_jinja *j, const json_t *calls, unsigned shape, struct kopi_jval *out)
{
    if (!kopi__jfrom_jansson(j, calls, KOPI_J_OUTSIDE, out)) return false;
    if (out->type != KOPI_J_LIST || (shape & KOPI__CHAT_STRING_ARGS)) return true;
    for (uint32_t i = 0; i < out->list->n; i++)
        if (out->list->v[i].type == KOPI_J_DICT && !with_object(j, json_array_get(calls, i), &out->list->v[i]))
            return false;
    return true;
}

/* ---- messages -----------------------------------------------------------------------------------------------------
 */

static bool message_value(struct kopi_jinja *j, const json_t *m, size_t index, unsigned shape, struct kopi_jval *out)
{
    const char *name;
    json_t *field;
    struct kopi_jval v;
    if (!kopi__jdict_new(j, out)) return false;
    json_object_foreach((json_t *)(uintptr_t)m, name, field)
    {
        bool ok;
        struct kopi_jval key = kopi__jstring((struct kopi_jstr){0});
        if (strcmp(name, "content") == 0) ok = content_value(j, field, index, shape, &v);
        else if (strcmp(name, "tool_calls") == 0) ok = calls_value(j, field, shape, &v);
        else ok = kopi__jfrom_jansson(j, field, KOPI_J_OUTSIDE, &v);
        if (!ok || !kopi__jstr_copy(&j->arena, name, strlen(name), KOPI_J_OUTSIDE, &key.s)) return false;
        if (!kopi__jdict_add(j, out->dict, key, v)) return false;
    }
    if ((shape & KOPI__CHAT_FLAT) && !json_object_get(m, "content"))
        return literal(j, "", &v) && add_field(j, out->dict, "content", v);
    return true;
}

bool kopi__chat_from_json(struct kopi_jinja *j, const json_t *messages, unsigned shape, struct kopi_jval *out)
{
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        struct kopi_jval m;
        if (!message_value(j, json_array_get(messages, i), i, shape, &m) || !kopi__jlist_push(j, out->list, m))
            return false;
    }
    return true;
}

bool kopi__chat_from_array(struct kopi_jinja *j, const struct kopi_chat_message *messages, size_t n, unsigned shape,
                           struct kopi_jval *out)
{
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    for (size_t i = 0; i < n; i++) {
        struct kopi_jval m, role, content = kopi__jstring((struct kopi_jstr){0});
        if (!kopi__jdict_new(j, &m) || !literal(j, messages[i].role, &role)) return false;
        if (!kopi__jstr_ref(&j->arena, messages[i].content, messages[i].content_len, KOPI_J_OUTSIDE, &content.s))
            return false;
        if ((shape & KOPI__CHAT_PARTS) && !as_parts(j, content, &content)) return false;
        if (!add_field(j, m.dict, "role", role) || !add_field(j, m.dict, "content", content)) return false;
        if (!kopi__jlist_push(j, out->list, m)) return false;
    }
    return true;
}
