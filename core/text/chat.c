#include "text/chat.h"
#include "base/error.h"
#include "base/mem.h"
#include "text/chat_messages.h"
#include <string.h>
#include <time.h>

struct kopi_chat_template {
    struct kopi_jtemplate *t;
    bool needs_parts; /* shows a message only if its content is a list of parts */
    bool drops_user;  /* renders, but shows it in neither way */
};

/* One request, its JSON parsed. */
struct request {
    const struct kopi_chat_message *messages;
    size_t n;
    const struct kopi_chat_options *o;
    json_t *json_messages, *json_tools, *json_kwargs; /* NULL: not given */
};

/* ---- the request --------------------------------------------------------------------------------------------------
 */

static kopi_status load(const char *text, const char *what, int type, json_t **out, kopi_error *err)
{
    json_error_t e;
    *out = NULL;
    if (!text) return KOPI_OK;
    json_t *json = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!json)
        return kopi__fail(err, KOPI_E_INVALID, "%s: JSON line %d, column %d: %s", what, e.line, e.column, e.text);
    if (json_typeof(json) != (json_type)type) {
        json_decref(json);
        return kopi__fail(err, KOPI_E_INVALID, "%s must be a JSON %s", what, type == JSON_ARRAY ? "array" : "object");
    }
    *out = json;
    return KOPI_OK;
}

static void request_free(struct request *r)
{
    json_decref(r->json_messages);
    json_decref(r->json_tools);
    json_decref(r->json_kwargs);
}
static kopi_status request_load(struct request *r, kopi_error *err)
{
    kopi_status s = load(r->o->messages_json, "messages", JSON_ARRAY, &r->json_messages, err);
    if (s == KOPI_OK) s = load(r->o->tools_json, "tools", JSON_ARRAY, &r->json_tools, err);
    if (s == KOPI_OK) s = load(r->o->kwargs_json, "template variables", JSON_OBJECT, &r->json_kwargs, err);
    for (size_t i = 0; s == KOPI_OK && i < json_array_size(r->json_messages); i++)
        if (!json_is_object(json_array_get(r->json_messages, i)))
            s = kopi__fail(err, KOPI_E_INVALID, "messages: message %zu is not an object", i + 1);
    if (s != KOPI_OK) request_free(r);
    return s;
}

/* ---- variables ----------------------------------------------------------------------------------------------------
 */

static bool set_token(struct kopi_jinja *j, const char *name, const char *text)
{
    struct kopi_jval v = kopi__jstring((struct kopi_jstr){0});
    if (!kopi__jstr_ref(&j->arena, text ? text : "", text ? strlen(text) : 0, KOPI_J_TEMPLATE, &v.s)) return false;
    kopi__jinja_set(j, name, v);
    return true;
}
static bool set_kwargs(struct kopi_jinja *j, json_t *kwargs)
{
    const char *name;
    json_t *value;
    struct kopi_jval v;
    json_object_foreach(kwargs, name, value)
    {
        if (!kopi__jfrom_jansson(j, value, KOPI_J_OUTSIDE, &v)) return false;
        kopi__jinja_set(j, name, v);
    }
    return true;
}

/* As transformers does it: tools and documents are always there, none if not given. */
static bool set_variables(struct kopi_jinja *j, const struct request *r, unsigned shape)
{
    struct kopi_jval messages, tools = kopi__jnone();
    kopi__jinja_set(j, "documents", kopi__jnone());
    if (!set_kwargs(j, r->json_kwargs)) return false;
    if (r->json_messages ? !kopi__chat_from_json(j, r->json_messages, shape, &messages)
                         : !kopi__chat_from_array(j, r->messages, r->n, shape, &messages))
        return false;
    if (r->json_tools && !kopi__jfrom_jansson(j, r->json_tools, KOPI_J_OUTSIDE, &tools)) return false;
    kopi__jinja_set(j, "messages", messages);
    kopi__jinja_set(j, "tools", tools);
    kopi__jinja_set(j, "add_generation_prompt", kopi__jbool(r->o->add_generation_prompt));
    return set_token(j, "bos_token", r->o->bos_text) && set_token(j, "eos_token", r->o->eos_text);
}

/* ---- the result ---------------------------------------------------------------------------------------------------
 */

static size_t run_end(const struct kopi_jbuf *b, size_t from)
{
    if (!b->mark) return b->used;
    size_t to = from;
    while (to < b->used && b->mark[to] == b->mark[from]) to++;
    return to;
}
static kopi_status to_segments(const struct kopi_jbuf *b, struct kopi_chat_render *out, kopi_error *err)
{
    size_t n = 0;
    for (size_t at = 0; at < b->used; at = run_end(b, at)) n++;
    *out = (struct kopi_chat_render){.text = kopi__strndup(b->used ? b->data : "", b->used), .text_len = b->used};
    out->segments = kopi__calloc(n ? n : 1, sizeof *out->segments);
    if (!out->text || !out->segments) {
        kopi__chat_render_free(out);
        return kopi__nomem(err, "the prompt");
    }
    for (size_t at = 0, end; at < b->used; at = end) {
        end = run_end(b, at);
        bool outside = (b->mark ? b->mark[at] : b->origin) == KOPI_J_OUTSIDE;
        out->segments[out->n_segments++] = (struct kopi_segment){out->text + at, end - at, !outside};
    }
    return KOPI_OK;
}
void kopi__chat_render_free(struct kopi_chat_render *r)
{
    kopi__free(r->segments);
    kopi__free(r->text);
    *r = (struct kopi_chat_render){0};
}

/* ---- rendering ----------------------------------------------------------------------------------------------------
 */

enum outcome {
    RENDERED,
    REFUSED,  /* the template failed: another shape of the messages may help */
    UNSHAPED, /* the messages can't take this shape, for a reason that tells more than what the template said */
    STOPPED   /* memory or a limit */
};

static kopi_status render_shape(const struct kopi_chat_template *t, const struct request *r, unsigned shape,
                                struct kopi_chat_render *out, enum outcome *outcome, kopi_error *err)
{
    struct kopi_jinja j;
    bool shaped = kopi__jinja_init(&j, t->t, (int64_t)time(NULL), err) && set_variables(&j, r, shape);
    kopi_status s = shaped ? kopi__jinja_run(&j) : kopi__jinja_settle(&j);
    *outcome = s == KOPI_OK ? RENDERED : j.arena.stop ? STOPPED : shaped ? REFUSED : UNSHAPED;
    if (s == KOPI_OK) s = to_segments(j.out, out, err);
    kopi__jinja_free(&j);
    return s;
}

static kopi_status render_some_shape(const struct kopi_chat_template *t, const struct request *r,
                                     struct kopi_chat_render *out, kopi_error *err)
{
    unsigned choices = r->json_messages ? kopi__chat_choices(r->json_messages) : 0, fixed = 0;
    enum outcome outcome;
    if (t->needs_parts) {
        fixed = KOPI__CHAT_PARTS;
        choices &= ~(unsigned)KOPI__CHAT_FLAT;
    }
    kopi_status s = render_shape(t, r, fixed, out, &outcome, err);
    for (unsigned shape = 1; shape <= choices && (outcome == REFUSED || outcome == UNSHAPED); shape++) {
        kopi_error again;
        if ((shape & choices) != shape) continue;
        kopi_status s2 = render_shape(t, r, shape | fixed, out, &outcome, &again);
        if (outcome == REFUSED) continue; /* the first reason counts */
        s = s2;
        if (s != KOPI_OK && err) *err = again;
    }
    return s;
}

kopi_status kopi__chat_render(const struct kopi_chat_template *t, const struct kopi_chat_message *messages, size_t n,
                              const struct kopi_chat_options *o, struct kopi_chat_render *out, kopi_error *err)
{
    struct request r = {.messages = messages, .n = n, .o = o};
    *out = (struct kopi_chat_render){0};
    kopi_status s = request_load(&r, err);
    if (s != KOPI_OK) return s;
    s = render_some_shape(t, &r, out, err);
    request_free(&r);
    return s;
}

/* ---- the template -------------------------------------------------------------------------------------------------
 */

static bool shows(const struct kopi_chat_template *t, unsigned shape, enum outcome *outcome, kopi_status *status)
{
    static const char needle[] = "kopi:needle";
    const struct kopi_chat_message m = {"user", needle, sizeof needle - 1};
    const struct kopi_chat_options o = {.add_generation_prompt = true};
    const struct request r = {.messages = &m, .n = 1, .o = &o};
    struct kopi_chat_render out = {0};
    *status = render_shape(t, &r, shape, &out, outcome, NULL);
    bool found = *status == KOPI_OK && strstr(out.text, needle);
    kopi__chat_render_free(&out);
    return found;
}

kopi_status kopi__chat_template_new(const char *source, size_t n, struct kopi_chat_template **out, kopi_error *err)
{
    struct kopi_chat_template *t = kopi__calloc(1, sizeof *t);
    kopi_status plain, parts = KOPI_OK;
    enum outcome outcome;
    *out = NULL;
    if (!t) return kopi__nomem(err, "the chat template");
    kopi_status s = kopi__jtemplate_parse(source, n, &t->t, err);
    if (s == KOPI_OK) {
        bool shown = shows(t, 0, &outcome, &plain), rendered = outcome == RENDERED;
        t->needs_parts =
            !shown && outcome != STOPPED /* it would stop once more */ && shows(t, KOPI__CHAT_PARTS, &outcome, &parts);
        t->drops_user = rendered && !shown && !t->needs_parts;
        if (plain == KOPI_E_NOMEM || parts == KOPI_E_NOMEM) s = kopi__nomem(err, "the chat template");
    }
    if (s == KOPI_OK) *out = t;
    else kopi__chat_template_free(t);
    return s;
}
bool kopi__chat_template_drops_user(const struct kopi_chat_template *t) { return t->drops_user; }

void kopi__chat_template_free(struct kopi_chat_template *t)
{
    if (!t) return;
    kopi__jtemplate_free(t->t);
    kopi__free(t);
}
