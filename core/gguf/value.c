#include "gguf/value.h"

#include "base/num.h"
#include "gguf/cursor.h"

static const struct { const char *name; uint32_t size; } types[KOPI_GGUF_N_TYPES] = {
    [KOPI_GGUF_U8] = {"u8", 1},         [KOPI_GGUF_I8] = {"i8", 1},       [KOPI_GGUF_U16] = {"u16", 2},
    [KOPI_GGUF_I16] = {"i16", 2},       [KOPI_GGUF_U32] = {"u32", 4},     [KOPI_GGUF_I32] = {"i32", 4},
    [KOPI_GGUF_F32] = {"f32", 4},       [KOPI_GGUF_BOOL] = {"bool", 1},   [KOPI_GGUF_STRING] = {"string", 0},
    [KOPI_GGUF_ARRAY] = {"array", 0},   [KOPI_GGUF_U64] = {"u64", 8},     [KOPI_GGUF_I64] = {"i64", 8},
    [KOPI_GGUF_F64] = {"f64", 8},
};

const char *kopi__gguf_type_name(uint32_t type) { return type < KOPI_GGUF_N_TYPES ? types[type].name : "?"; }
uint32_t kopi__gguf_type_size(uint32_t type) { return type < KOPI_GGUF_N_TYPES ? types[type].size : 0; }

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* An integer element as 64 bits, sign-extended; `negative` if it is below 0. */
struct integer { uint64_t bits; bool negative; };

static bool is_signed(uint32_t type)
{
    return type == KOPI_GGUF_I8 || type == KOPI_GGUF_I16 || type == KOPI_GGUF_I32 || type == KOPI_GGUF_I64;
}

static bool is_unsigned(uint32_t type)
{
    return type == KOPI_GGUF_U8 || type == KOPI_GGUF_U16 || type == KOPI_GGUF_U32 || type == KOPI_GGUF_U64;
}

static const uint8_t *element(const struct kopi_gguf_kv *kv, uint64_t i)
{
    return i < kv->n ? kv->value + i * types[kv->elem_type].size : NULL;
}

static bool get_integer(const struct kopi_gguf_kv *kv, uint64_t i, struct integer *out)
{
    bool sign = is_signed(kv->elem_type);
    const uint8_t *p = element(kv, i);
    if (!p || (!sign && !is_unsigned(kv->elem_type))) return false;
    uint32_t size = types[kv->elem_type].size;
    uint64_t bits = 0;
    memcpy(&bits, p, size);
    out->negative = sign && bits >> (8 * size - 1);
    if (out->negative && size < 8) bits |= UINT64_MAX << (8 * size);
    out->bits = bits;
    return true;
}

bool kopi__gguf_get_u64(const struct kopi_gguf_kv *kv, uint64_t i, uint64_t *out)
{
    struct integer v;
    if (!get_integer(kv, i, &v) || v.negative) return false;
    *out = v.bits;
    return true;
}

bool kopi__gguf_get_i64(const struct kopi_gguf_kv *kv, uint64_t i, int64_t *out)
{
    struct integer v;
    if (!get_integer(kv, i, &v) || (!v.negative && v.bits > INT64_MAX)) return false;
    *out = (int64_t)v.bits;
    return true;
}

/* ---- the others -------------------------------------------------------------------------------------------------- */

bool kopi__gguf_get_f64(const struct kopi_gguf_kv *kv, uint64_t i, double *out)
{
    struct integer v;
    if (get_integer(kv, i, &v)) {
        *out = v.negative ? (double)(int64_t)v.bits : (double)v.bits;
        return true;
    }
    const uint8_t *p = element(kv, i);
    if (p && kv->elem_type == KOPI_GGUF_F32) {
        float f;
        memcpy(&f, p, sizeof f);
        *out = f;
        return true;
    }
    if (!p || kv->elem_type != KOPI_GGUF_F64) return false;
    memcpy(out, p, sizeof *out);
    return true;
}

bool kopi__gguf_get_bool(const struct kopi_gguf_kv *kv, uint64_t i, bool *out)
{
    const uint8_t *p = element(kv, i);
    if (!p || kv->elem_type != KOPI_GGUF_BOOL) return false;
    *out = *p != 0;
    return true;
}

struct kopi_gguf_iter kopi__gguf_strings(const struct kopi_gguf_kv *kv)
{
    return (struct kopi_gguf_iter){kv->value, kv->elem_type == KOPI_GGUF_STRING ? kv->n : 0};
}

/* No bounds here: the array was walked with the cursor when the file was opened. */
bool kopi__gguf_next(struct kopi_gguf_iter *it, struct kopi_gguf_str *out)
{
    if (!it->left) return false;
    memcpy(&out->len, it->p, sizeof out->len);
    out->data = (const char *)it->p + sizeof out->len;
    it->p += sizeof out->len + out->len;
    it->left--;
    return true;
}

bool kopi__gguf_get_str(const struct kopi_gguf_kv *kv, uint64_t i, struct kopi_gguf_str *out)
{
    struct kopi_gguf_iter it = kopi__gguf_strings(kv);
    if (i >= it.left) return false;
    while (kopi__gguf_next(&it, out) && i--) {}
    return true;
}

bool kopi__gguf_bool(const struct kopi_gguf_kv *kv, bool *out)
{
    return kv->type != KOPI_GGUF_ARRAY && kopi__gguf_get_bool(kv, 0, out);
}

bool kopi__gguf_str(const struct kopi_gguf_kv *kv, struct kopi_gguf_str *out)
{
    return kv->type != KOPI_GGUF_ARRAY && kopi__gguf_get_str(kv, 0, out);
}

const char *kopi__gguf_number_text(const struct kopi_gguf_kv *kv, char *buf, size_t n)
{
    double v;
    if (!kopi__gguf_get_f64(kv, 0, &v)) return "?";
    return kv->elem_type == KOPI_GGUF_F32 ? kopi__format_f32((float)v, buf, n) : kopi__format_f64(v, buf, n);
}
