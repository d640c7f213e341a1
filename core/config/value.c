#include "config/value.h"

#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/num.h"
#include "config/expand.h"
#include "config/schema.h"

#include <stdio.h>
#include <string.h>

void kopi__setting_clear(struct kopi__setting *s)
{
    kopi__free(s->name);
    kopi__free(s->text);
    kopi__free(s->where);
    kopi__free(s->items);
    *s = (struct kopi__setting){.key = s->key};
}

static bool parse_bool(const char *t, bool loose, bool *out)
{
    static const struct {
        const char *text;
        bool value, loose;
    } words[] = {{"true", true, false}, {"false", false, false}, {"1", true, true},  {"0", false, true},
                 {"yes", true, true},   {"no", false, true},     {"on", true, true}, {"off", false, true}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(t, words[i].text) && (loose || !words[i].loose)) {
            *out = words[i].value;
            return true;
        }
    return false;
}

static bool parse_duration(const char *t, int64_t *ms)
{
    static const struct {
        const char *suffix;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char digits[16];
    size_t n = strspn(t, "0123456789");
    if (!n || n >= sizeof digits) return false;
    memcpy(digits, t, n);
    digits[n] = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(t + n, units[i].suffix))
            return kopi__parse_i64(digits, ms) && !__builtin_mul_overflow(*ms, units[i].ms, ms);
    return false;
}

/* "010" is 8 for some YAML readers and 10 for others. */
static bool leading_zero(const char *t)
{
    t += *t == '-';
    return t[0] == '0' && t[1];
}

static bool in_range(const kopi_config_key *key, int64_t v) { return v >= key->imin && v <= key->imax; }

static bool all_of(const char *t, const char *set, size_t lo, size_t hi)
{
    size_t n = strlen(t);
    return n >= lo && n <= hi && strspn(t, set) == n;
}

/* True if t is a good value of a key with one value; paths are resolved elsewhere. */
static bool parse_one(struct kopi__setting *s, const char *t, bool loose)
{
    const kopi_config_key *key = s->key;
    uint64_t size;
    if (key->type != KOPI_CONFIG_ENUM && kopi__key_has_word(key, t)) {
        s->i = 0;
        return true;
    }
    switch (key->type) {
    case KOPI_CONFIG_BOOL: return parse_bool(t, loose, &s->b);
    case KOPI_CONFIG_INT: return !leading_zero(t) && kopi__parse_i64(t, &s->i) && in_range(key, s->i);
    case KOPI_CONFIG_FLOAT: return kopi__parse_f64(t, &s->f) && s->f >= key->fmin && s->f <= key->fmax;
    case KOPI_CONFIG_SIZE:
        if (!kopi__parse_size(t, &size) || size > INT64_MAX) return false;
        s->i = (int64_t)size;
        return in_range(key, s->i);
    case KOPI_CONFIG_DURATION: return parse_duration(t, &s->i) && in_range(key, s->i);
    case KOPI_CONFIG_NAME: return all_of(t, "abcdefghijklmnopqrstuvwxyz0123456789_-", 1, 32);
    case KOPI_CONFIG_SHA256: return all_of(t, "0123456789abcdefABCDEF", 64, 64);
    case KOPI_CONFIG_ENUM: return kopi__key_has_word(key, t);
    case KOPI_CONFIG_SCALAR: return true;
    default: return *t;
    }
}

static kopi_status refuse(const kopi_config_key *key, const char *t, kopi_error *err)
{
    char wanted[200];
    kopi__key_wanted(key, wanted, sizeof wanted);
    if (!*t) return kopi__fail(err, KOPI_E_CONFIG, "the value is empty; wanted: %s", wanted);
    if (key->type == KOPI_CONFIG_INT && leading_zero(t) && all_of(t + (*t == '-'), "0123456789", 1, 100))
        return kopi__fail(err, KOPI_E_CONFIG, "\"%.60s\" has a leading zero (octal for some readers); wanted: %s", t,
                          wanted);
    return kopi__fail(err, KOPI_E_CONFIG, "\"%.100s\" given; wanted: %s", t, wanted);
}

/* The text of one value as it is stored: a bool in its plain form, a path resolved. */
static kopi_status stored_text(const struct kopi__setting *s, const char *t, const struct kopi__raw *raw, char **out,
                               kopi_error *err)
{
    int type = s->key->type;
    if (type == KOPI_CONFIG_PATHS || (type == KOPI_CONFIG_PATH && !kopi__key_has_word(s->key, t)))
        return kopi__resolve_path(t, raw->dir, out, err);
    *out = kopi__strdup(type == KOPI_CONFIG_BOOL ? s->b ? "true" : "false" : t);
    return *out ? KOPI_OK : kopi__nomem(err, "a configuration value");
}

/* Makes items (pointers, then their bytes) from texts. */
static const char **make_items(char *const *texts, size_t n)
{
    uint64_t bytes = (n + 1) * sizeof(char *);
    for (size_t i = 0; i < n; i++) bytes += strlen(texts[i]) + 1;
    const char **items = kopi__alloc(bytes);
    if (!items) return NULL;
    char *p = (char *)(items + n + 1);
    for (size_t i = 0; i < n; i++) {
        items[i] = p;
        p = stpcpy(p, texts[i]) + 1;
    }
    items[n] = NULL;
    return items;
}

static kopi_status parse_list(struct kopi__setting *s, const struct kopi__raw *raw, kopi_error *err)
{
    const char *separator = s->key->type == KOPI_CONFIG_PATHS ? ":" : ",";
    struct kopi_buf joined = KOPI_BUF_INIT;
    kopi_status status = KOPI_OK;
    char **texts = kopi__calloc(raw->n, sizeof *texts);
    if (!texts) return kopi__nomem(err, "a list");
    for (size_t i = 0; i < raw->n && !status; i++) {
        status = *raw->texts[i] ? stored_text(s, raw->texts[i], raw, &texts[i], err)
                                : kopi__fail(err, KOPI_E_CONFIG, "item %zu of the list is empty", i + 1);
        if (status) break;
        if (i) kopi__buf_str(&joined, separator);
        kopi__buf_str(&joined, texts[i]);
    }
    if (!status) {
        s->items = make_items(texts, raw->n);
        s->text = joined.failed ? NULL : joined.data ? kopi__buf_take(&joined) : kopi__strdup("");
        if (!s->items || !s->text) status = kopi__nomem(err, "a list");
    }
    for (size_t i = 0; i < raw->n; i++) kopi__free(texts[i]);
    kopi__free(texts);
    kopi__buf_free(&joined);
    return status;
}

kopi_status kopi__value_parse(struct kopi__setting *s, const struct kopi__raw *raw, kopi_error *err)
{
    kopi_status status;
    s->text = NULL;
    s->items = NULL;
    if (kopi__key_is_list(s->key)) status = parse_list(s, raw, err);
    else if (!parse_one(s, raw->texts[0], raw->loose_bool)) status = refuse(s->key, raw->texts[0], err);
    else status = stored_text(s, raw->texts[0], raw, &s->text, err);
    if (status) {
        kopi__free(s->text);
        kopi__free(s->items);
        s->text = NULL;
        s->items = NULL;
    }
    return status;
}
