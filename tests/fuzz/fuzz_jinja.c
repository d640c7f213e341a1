/* Fuzz target: a template (up to the first NUL) over the JSON variables behind it, or over ordinary messages. Rendering
 * it twice gives the same text and the same origins, and outside text never loses its mark. */
#include "base/utf8.h"
#include "fuzz.h"
#include "text/chat.h"
#include "text/jinja/json.h"
#include "text/jinja/run.h"
#include <string.h>

static const char ordinary[] =
    "[{\"role\":\"system\",\"content\":\"\\u0001\"},{\"role\":\"user\",\"content\":\"\\u0001\\u0001 \\u0001\\n\"},"
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"\\u0001\",\"function\":{\"name\":\"\\u0001\","
    "\"arguments\":\"{\\\"\\u0001\\\":[1,2.5,true,null]}\"}}]},"
    "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"\\u0001\"}]}]";

static uint8_t outside(const struct kopi_jbuf *b, uint32_t i) { return b->mark ? b->mark[i] : b->origin; }

static kopi_status run(const struct kopi_jtemplate *t, const json_t *variables, struct kopi_jinja *j, kopi_error *err)
{
    const char *name;
    json_t *value;
    struct kopi_jval v;
    bool ok = kopi__jinja_init(j, t, 0, err);
    j->arena.work = 1 << 18; /* short runs find more */
    j->arena.limit = 16 << 20;
    json_object_foreach((json_t *)(uintptr_t)variables, name, value)
    {
        ok = ok && kopi__jfrom_jansson(j, value, KOPI_J_OUTSIDE, &v);
        if (ok) kopi__jinja_set(j, name, v);
    }
    if (ok) kopi__jinja_run(j);
    return kopi__jinja_settle(j);
}

static void render_twice(const struct kopi_jtemplate *t, const json_t *variables)
{
    struct kopi_jinja a, b;
    kopi_error ea = {0}, eb = {0};
    kopi_status sa = run(t, variables, &a, &ea), sb = run(t, variables, &b, &eb);
    FUZZ_CHECK(sa == sb && (sa == KOPI_OK || (sa == KOPI_E_INVALID && ea.text[0] && strcmp(ea.text, eb.text) == 0)));
    if (sa == KOPI_OK) {
        FUZZ_CHECK(a.out->used == b.out->used);
        for (uint32_t i = 0; i < a.out->used; i++)
            FUZZ_CHECK(a.out->data[i] == b.out->data[i] && outside(a.out, i) == outside(b.out, i) &&
                       outside(a.out, i) <= 1);
    }
    kopi__jinja_free(&a);
    kopi__jinja_free(&b);
}

/* The byte 1 is written by the messages only: wherever it comes out, it must be outside text. */
static void render_chat(const char *source, size_t n)
{
    struct kopi_chat_template *t;
    struct kopi_chat_render r;
    if (memchr(source, 1, n) || memchr(source, '\\', n) || kopi__chat_template_new(source, n, &t, NULL) != KOPI_OK)
        return;
    const struct kopi_chat_options o = {.add_generation_prompt = true, .bos_text = "<s>", .messages_json = ordinary};
    if (kopi__chat_render(t, NULL, 0, &o, &r, NULL) == KOPI_OK) {
        size_t total = 0;
        for (size_t i = 0; i < r.n_segments; i++) {
            FUZZ_CHECK(r.segments[i].text == r.text + total && r.segments[i].len);
            if (r.segments[i].parse_special) FUZZ_CHECK(!memchr(r.segments[i].text, 1, r.segments[i].len));
            total += r.segments[i].len;
        }
        FUZZ_CHECK(total == r.text_len);
    }
    kopi__chat_render_free(&r);
    kopi__chat_template_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *source = (const char *)data;
    size_t n = size ? strnlen(source, size) : 0;
    struct kopi_jtemplate *t;
    kopi_error e = {0};
    kopi_status s = kopi__jtemplate_parse(source, n, &t, &e);
    if (s != KOPI_OK) {
        FUZZ_CHECK(s == KOPI_E_MODEL && !t && e.text[0] && !strchr(e.text, '\n'));
        return 0;
    }
    json_t *variables = n < size ? json_loadb(source + n + 1, size - n - 1, JSON_ALLOW_NUL, NULL) : NULL;
    if (json_is_object(variables)) render_twice(t, variables);
    json_decref(variables);
    kopi__jtemplate_free(t);
    if (n + 1 >= size) render_chat(source, n);
    return 0;
}
