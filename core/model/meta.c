#include "model/meta.h"

#include "base/error.h"
#include "base/num.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct kopi_gguf_kv *find(const struct kopi_meta *m, const char *name)
{
    char key[256];
    snprintf(key, sizeof key, "%s.%s", m->arch, name);
    return kopi__gguf_find(m->g, key);
}

bool kopi__meta_has(const struct kopi_meta *m, const char *name) { return find(m, name) != NULL; }

void kopi__meta_fail(struct kopi_meta *m, const char *name, const char *fmt, ...)
{
    if (m->status != KOPI_OK) return;
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    m->status = kopi__fail(m->err, KOPI_E_MODEL, "%s: %s.%s %s", kopi__gguf_path(m->g), m->arch, name, text);
}

uint32_t kopi__meta_u32(struct kopi_meta *m, const char *name, uint32_t min, uint32_t max, const uint32_t *fallback)
{
    if (m->status != KOPI_OK) return min;
    const struct kopi_gguf_kv *kv = find(m, name);
    uint64_t v = 0, other;
    if (!kv) {
        if (fallback) return *fallback;
        kopi__meta_fail(m, name, "is missing");
        return min;
    }
    if (!kv->n || !kopi__gguf_get_u64(kv, 0, &v)) {
        kopi__meta_fail(m, name, "is a %s, expected an integer from %u to %u", kopi__gguf_type_name(kv->type), min,
                        max);
        return min;
    }
    for (uint64_t i = 1; i < kv->n; i++)
        if (!kopi__gguf_get_u64(kv, i, &other) || other != v) {
            kopi__meta_fail(m, name, "differs from layer to layer, which is not supported");
            return min;
        }
    if (v < min || v > max) {
        kopi__meta_fail(m, name, "is %llu, allowed are %u to %u", (unsigned long long)v, min, max);
        return min;
    }
    return (uint32_t)v;
}

double kopi__meta_f64(struct kopi_meta *m, const char *name, double min, double max, const double *fallback)
{
    if (m->status != KOPI_OK) return min;
    const struct kopi_gguf_kv *kv = find(m, name);
    double v;
    char a[40], b[40], c[40];
    if (!kv) {
        if (fallback) return *fallback;
        kopi__meta_fail(m, name, "is missing");
        return min;
    }
    if (kv->n != 1 || !kopi__gguf_get_f64(kv, 0, &v)) {
        kopi__meta_fail(m, name, "is a %s, expected a number", kopi__gguf_type_name(kv->type));
        return min;
    }
    if (!(v >= min && v <= max)) {
        kopi__meta_fail(m, name, "is %s, allowed are %s to %s", kopi__gguf_number_text(kv, a, sizeof a),
                        kopi__format_f64(min, b, sizeof b), kopi__format_f64(max, c, sizeof c));
        return min;
    }
    return v;
}

bool kopi__meta_str(struct kopi_meta *m, const char *name, char *buf, size_t n)
{
    const struct kopi_gguf_kv *kv = find(m, name);
    struct kopi_gguf_str s;
    if (!kv) return false;
    if (!kopi__gguf_str(kv, &s) || s.len >= n || memchr(s.data, 0, s.len)) {
        kopi__meta_fail(m, name, "is not a short string");
        return false;
    }
    memcpy(buf, s.data, s.len);
    buf[s.len] = 0;
    return true;
}
