/* tojson as json.dumps writes it, and from_json. */
#include "text/jinja/json.h"
#include "text/jinja/run.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ------------------------------------------------------------------------------------------------------
 */

static bool from_array(struct kopi_jinja *j, const json_t *json, uint8_t origin, struct kopi_jval *out)
{
    size_t n = json_array_size(json);
    if (!kopi__jlist_new(j, KOPI_J_LIST, 0, out)) return false;
    for (size_t i = 0; i < n; i++) {
        struct kopi_jval v;
        if (!kopi__jfrom_jansson(j, json_array_get(json, i), origin, &v) || !kopi__jlist_push(j, out->list, v))
            return false;
    }
    return true;
}
static bool from_object(struct kopi_jinja *j, const json_t *json, uint8_t origin, struct kopi_jval *out)
{
    const char *key;
    json_t *value;
    if (!kopi__jdict_new(j, out)) return false;
    json_object_foreach((json_t *)(uintptr_t)json, key, value)
    {
        struct kopi_jval k = kopi__jstring((struct kopi_jstr){0}), v;
        if (!kopi__jstr_copy(&j->arena, key, strlen(key), origin, &k.s)) return false;
        if (!kopi__jfrom_jansson(j, value, origin, &v) || !kopi__jdict_add(j, out->dict, k, v)) return false;
    }
    return true;
}
bool kopi__jfrom_jansson(struct kopi_jinja *j, const json_t *json, uint8_t origin, struct kopi_jval *out)
{
    bool ok = true;
    if (!kopi__jenter(j)) return false;
    switch (json_typeof(json)) {
    case JSON_OBJECT: ok = from_object(j, json, origin, out); break;
    case JSON_ARRAY: ok = from_array(j, json, origin, out); break;
    case JSON_STRING:
        *out = kopi__jstring((struct kopi_jstr){0});
        ok = kopi__jstr_copy(&j->arena, json_string_value(json), json_string_length(json), origin, &out->s);
        break;
    case JSON_INTEGER: *out = kopi__jint(json_integer_value(json)); break;
    case JSON_REAL: *out = kopi__jfloat(json_real_value(json)); break;
    case JSON_TRUE: *out = kopi__jbool(true); break;
    case JSON_FALSE: *out = kopi__jbool(false); break;
    case JSON_NULL: *out = kopi__jnone(); break;
    }
    if (kopi__jis_number(out)) out->outside = origin;
    kopi__jleave(j);
    return ok;
}

static bool from_json(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    json_error_t e;
    if (a->self.type == KOPI_J_UNDEFINED) return kopi__jfail_undefined(j, &a->self);
    if (a->self.type != KOPI_J_STRING)
        return kopi__jfail(j, "from_json needs a str, not %s", kopi__jtype_name(&a->self));
    if (!kopi__jwork(&j->arena, 4 * (uint64_t)a->self.s.len)) return false; /* jansson's memory isn't counted */
    json_t *json = json_loadb(kopi__jstr_data(a->self.s), a->self.s.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
    if (!json) return kopi__jfail(j, "from_json: %s", e.text);
    bool ok = kopi__jfrom_jansson(j, json, kopi__jstr_any_origin(a->self.s), out);
    json_decref(json);
    return ok;
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

struct writer {
    struct kopi_jinja *j;
    struct kopi_jbuf *b;
    bool ascii, sort_keys, lines;
    struct kopi_jstr indent, item_sep, key_sep;
    uint32_t level;
};

static bool put(struct writer *w, const char *s)
{
    return kopi__jbuf_add(&w->j->arena, w->b, s, strlen(s), KOPI_J_TEMPLATE);
}
static bool put_str(struct writer *w, struct kopi_jstr s) { return kopi__jbuf_add_str(&w->j->arena, w->b, s); }

static bool newline(struct writer *w)
{
    if (!w->lines) return true;
    if (!kopi__jwork(&w->j->arena, w->level)) return false;
    if (!put(w, "\n")) return false;
    for (uint32_t i = 0; i < w->level; i++)
        if (!put_str(w, w->indent)) return false;
    return true;
}

/* The escape for cp, or NULL. */
static const char *escape(uint32_t cp, bool ascii, char buf[16])
{
    static const char plain[] = "\"\\\n\r\t\f\b", letter[] = "\"\\nrtfb";
    const char *known = cp && cp < 128 ? strchr(plain, (int)cp) : NULL;
    if (known) snprintf(buf, 16, "\\%c", letter[known - plain]);
    else if (cp < 0x20 || (ascii && cp >= 0x7f && cp < 0x10000)) snprintf(buf, 16, "\\u%04x", cp);
    else if (ascii && cp >= 0x10000) snprintf(buf, 16, "\\u%04x\\u%04x", 0xd7c0 + (cp >> 10), 0xdc00 + (cp & 0x3ff));
    else return NULL;
    return buf;
}
static bool write_string(struct writer *w, struct kopi_jstr s)
{
    char buf[16];
    uint32_t done = 0;
    if (!put(w, "\"") || !kopi__jwork_on(&w->j->arena, s.len, KOPI_J_DECODE)) return false;
    for (uint32_t i = 0, next, cp; i < s.len; i = next) {
        next = kopi__jstr_next(s, i, &cp);
        const char *e = escape(cp, w->ascii, buf);
        if (!e) continue;
        if (!kopi__jwork(&w->j->arena, 4)) return false;
        if (!put_str(w, kopi__jstr_sub(s, done, i))) return false;
        if (!kopi__jbuf_add(&w->j->arena, w->b, e, strlen(e), kopi__jstr_origin(s, i))) return false;
        done = next;
    }
    return put_str(w, kopi__jstr_sub(s, done, s.len)) && put(w, "\"");
}

static bool write_value(struct writer *w, const struct kopi_jval *v);

static bool write_list(struct writer *w, const struct kopi_jlist *l)
{
    if (l->n == 0) return put(w, "[]");
    w->level++;
    if (!put(w, "[")) return false;
    for (uint32_t i = 0; i < l->n; i++)
        if ((i && !put_str(w, w->item_sep)) || !newline(w) || !write_value(w, &l->v[i])) return false;
    w->level--;
    return newline(w) && put(w, "]");
}

/* Keys that are not strings are written as if they were. */
static bool write_key(struct writer *w, const struct kopi_jval *key)
{
    if (key->type == KOPI_J_STRING) return write_string(w, key->s);
    return put(w, "\"") && write_value(w, key) && put(w, "\"");
}
static bool pairs_of(struct writer *w, const struct kopi_jdict *d, struct kopi_jval *out)
{
    const struct kopi_jval by_key = kopi__jint(0);
    if (!kopi__jdict_items(w->j, d, out)) return false;
    return !w->sort_keys || kopi__jsorted(w->j, out->list, &by_key, true, false, out);
}
static bool write_dict(struct writer *w, const struct kopi_jdict *d)
{
    struct kopi_jval pairs;
    if (d->n == 0) return put(w, "{}");
    if (!pairs_of(w, d, &pairs)) return false;
    w->level++;
    if (!put(w, "{")) return false;
    for (uint32_t i = 0; i < pairs.list->n; i++) {
        const struct kopi_jval *pair = pairs.list->v[i].list->v;
        if ((i && !put_str(w, w->item_sep)) || !newline(w)) return false;
        if (!write_key(w, &pair[0]) || !put_str(w, w->key_sep) || !write_value(w, &pair[1])) return false;
    }
    w->level--;
    return newline(w) && put(w, "}");
}
static bool write_number(struct writer *w, const struct kopi_jval *v)
{
    char t[48];
    if (!kopi__jwork(&w->j->arena, v->type == KOPI_J_FLOAT ? KOPI_J_DECIMAL : 4)) return false;
    if (v->type == KOPI_J_BOOL) strcpy(t, v->b ? "true" : "false");
    else if (v->type == KOPI_J_INT) snprintf(t, sizeof t, "%lld", (long long)v->i);
    else if (isfinite(v->f)) kopi__jfloat_text(v->f, t);
    else strcpy(t, isnan(v->f) ? "NaN" : v->f < 0 ? "-Infinity" : "Infinity");
    return kopi__jbuf_add(&w->j->arena, w->b, t, strlen(t), v->outside);
}
static bool write_value(struct writer *w, const struct kopi_jval *v)
{
    bool ok;
    if (!kopi__jwork(&w->j->arena, 1)) return false;
    switch (v->type) {
    case KOPI_J_NONE: return put(w, "null");
    case KOPI_J_BOOL:
    case KOPI_J_INT:
    case KOPI_J_FLOAT: return write_number(w, v);
    case KOPI_J_STRING: return write_string(w, v->s);
    case KOPI_J_LIST:
    case KOPI_J_TUPLE:
    case KOPI_J_DICT:
        if (!kopi__jenter(w->j)) return false;
        ok = v->type == KOPI_J_DICT ? write_dict(w, v->dict) : write_list(w, v->list);
        kopi__jleave(w->j);
        return ok;
    default: return kopi__jfail(w->j, "tojson: %s is not JSON", kopi__jtype_name(v));
    }
}

static bool separators(struct writer *w, const struct kopi_jargs *a)
{
    struct kopi_jarena *m = &w->j->arena;
    if (!kopi__jstr_ref(m, w->lines ? "," : ", ", w->lines ? 1 : 2, KOPI_J_TEMPLATE, &w->item_sep)) return false;
    if (!kopi__jstr_ref(m, ": ", 2, KOPI_J_TEMPLATE, &w->key_sep)) return false;
    if (!a->given[2] || a->v[2].type == KOPI_J_NONE) return true;
    const struct kopi_jval *v = &a->v[2];
    if (!kopi__jis_seq(v) || v->list->n != 2 || v->list->v[0].type != KOPI_J_STRING ||
        v->list->v[1].type != KOPI_J_STRING)
        return kopi__jfail(w->j, "tojson: separators must be two strings");
    w->item_sep = v->list->v[0].s;
    w->key_sep = v->list->v[1].s;
    return true;
}
static bool indentation(struct writer *w, const struct kopi_jargs *a)
{
    int64_t width = 0;
    if (!a->given[1] || a->v[1].type == KOPI_J_NONE) return true;
    w->lines = true;
    if (a->v[1].type == KOPI_J_STRING) {
        w->indent = a->v[1].s;
        return true;
    }
    struct kopi_jbuf *b = kopi__jbuf_new(&w->j->arena, 0);
    if (!b || !kopi__jarg_int(w->j, a, 1, 0, &width) ||
        !kopi__jbuf_add_repeat(&w->j->arena, b, ' ', width, KOPI_J_TEMPLATE))
        return false;
    w->indent = kopi__jbuf_str(b);
    return true;
}

static bool to_json(struct kopi_jinja *j, const struct kopi_jargs *a, struct kopi_jval *out)
{
    struct writer w = {.j = j,
                       .b = kopi__jbuf_new(&j->arena, 0),
                       .ascii = kopi__jarg_bool(a, 0, false),
                       .sort_keys = kopi__jarg_bool(a, 3, false)};
    if (!w.b || !indentation(&w, a) || !separators(&w, a) || !write_value(&w, &a->self)) return false;
    kopi__jbuf_one_origin(w.b); /* an outside structure's brackets are outside text too */
    *out = kopi__jstring(kopi__jbuf_str(w.b));
    return true;
}

const struct kopi_jbuiltin kopi__jjson_filters[] = {
    {"tojson", "ensure_ascii indent separators sort_keys", to_json},
    {"from_json", "", from_json},
    {NULL, NULL, NULL},
};
