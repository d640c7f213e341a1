#include "text/vocab.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/utf8.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- text -> id -------------------------------------------------------------------------------------------------- */

static bool table_new(struct kopi_piece_table *t, uint32_t n)
{
    uint32_t size = 16;
    while (size < n * 3ull / 2) size *= 2;
    t->slots = kopi__calloc(size, sizeof *t->slots);
    t->mask = size - 1;
    return t->slots != NULL;
}

/* The slot of these bytes: the one that holds them, or the free one where they belong. */
static struct kopi_piece_slot *slot_of(const struct kopi_piece_table *t, const struct kopi_piece *pieces, const char *s,
                                       size_t n, uint64_t hash)
{
    for (uint32_t i = (uint32_t)hash & t->mask;; i = (i + 1) & t->mask) {
        struct kopi_piece_slot *slot = &t->slots[i];
        if (!slot->id1) return slot;
        const struct kopi_piece *p = &pieces[slot->id1 - 1];
        if (slot->tag == hash >> 32 && p->len == n && !memcmp(p->data, s, n)) return slot;
    }
}

static void table_add(struct kopi_piece_table *t, const struct kopi_piece *pieces, uint32_t id)
{
    uint64_t hash = kopi__hash(pieces[id].data, pieces[id].len);
    struct kopi_piece_slot *slot = slot_of(t, pieces, pieces[id].data, pieces[id].len, hash);
    if (!slot->id1) *slot = (struct kopi_piece_slot){(uint32_t)(hash >> 32), id + 1};
}

int32_t kopi__vocab_find(const struct kopi_vocab *v, const char *text, size_t n)
{
    return (int32_t)slot_of(&v->by_text, v->text, text, n, kopi__hash(text, n))->id1 - 1;
}

int32_t kopi__vocab_find_bytes(const struct kopi_vocab *v, const char *bytes, size_t n)
{
    return (int32_t)slot_of(&v->by_bytes, v->bytes, bytes, n, kopi__hash(bytes, n))->id1 - 1;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static kopi_status bad_key(const struct kopi_gguf *g, kopi_error *err,
                                                                 const char *key, const char *fmt, ...)
{
    char what[160];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return kopi__fail(err, KOPI_E_MODEL, "%s: tokenizer.ggml.%s %s", kopi__gguf_path(g), key, what);
}

static const struct kopi_gguf_kv *find(const struct kopi_gguf *g, const char *key)
{
    char name[96];
    snprintf(name, sizeof name, "tokenizer.ggml.%s", key);
    return kopi__gguf_find(g, name);
}

static bool is_array(const struct kopi_gguf_kv *kv) { return kv && kv->type == KOPI_GGUF_ARRAY; }

static kopi_status read_tokens(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    const struct kopi_gguf_kv *kv = find(g, "tokens");
    if (!kv) return bad_key(g, err, "tokens", "is missing");
    if (!is_array(kv) || kv->elem_type != KOPI_GGUF_STRING || !kv->n || kv->n > INT32_MAX / 2)
        return bad_key(g, err, "tokens", "must be an array of at least one string");
    v->n = (uint32_t)kv->n;
    v->text = kopi__calloc(v->n, sizeof *v->text);
    v->bytes = kopi__calloc(v->n, sizeof *v->bytes);
    v->type = kopi__calloc(v->n, 1);
    v->eog = kopi__calloc(v->n, 1);
    if (!v->text || !v->bytes || !v->type || !v->eog || !table_new(&v->by_text, v->n))
        return kopi__nomem(err, "vocabulary");
    struct kopi_gguf_iter it = kopi__gguf_strings(kv);
    struct kopi_gguf_str s;
    for (uint32_t i = 0; i < v->n && kopi__gguf_next(&it, &s); i++) {
        if (s.len > UINT32_MAX / 2) return bad_key(g, err, "tokens", "holds a token of over 2 GiB");
        v->text[i] = (struct kopi_piece){s.data, (uint32_t)s.len};
        table_add(&v->by_text, v->text, i);
    }
    return KOPI_OK;
}

static kopi_status read_types(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    const struct kopi_gguf_kv *kv = find(g, "token_type");
    memset(v->type, KOPI_TOKEN_NORMAL, v->n);
    if (!kv) return KOPI_OK;
    if (!is_array(kv) || kv->n != v->n)
        return bad_key(g, err, "token_type", "must be an array of %u integers, one for each token", v->n);
    for (uint32_t i = 0; i < v->n; i++) {
        uint64_t t;
        if (!kopi__gguf_get_u64(kv, i, &t)) return bad_key(g, err, "token_type", "must hold integers from 0 up");
        v->type[i] = t >= KOPI_TOKEN_NORMAL && t <= KOPI_TOKEN_BYTE ? (uint8_t)t : KOPI_TOKEN_NORMAL;
    }
    return KOPI_OK;
}

static kopi_status read_scores(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    const struct kopi_gguf_kv *kv = find(g, "scores");
    if (v->bpe) return KOPI_OK; /* BPE files may carry scores that mean nothing */
    if (!is_array(kv) || kv->elem_type != KOPI_GGUF_F32 || kv->n != v->n)
        return bad_key(g, err, "scores", "must be an array of %u f32, one for each token", v->n);
    v->score = kopi__alloc(v->n * sizeof *v->score);
    if (!v->score) return kopi__nomem(err, "vocabulary");
    memcpy(v->score, kv->value, v->n * sizeof *v->score);
    for (uint32_t i = 0; i < v->n; i++)
        if (v->score[i] != v->score[i]) return bad_key(g, err, "scores", "has a NaN at index %u", i);
    return KOPI_OK;
}

/* A special token's id; -1 where the key is absent. */
static kopi_status read_id(const struct kopi_gguf *g, const struct kopi_vocab *v, const char *key, int32_t *id,
                           kopi_error *err)
{
    const struct kopi_gguf_kv *kv = find(g, key);
    int64_t u;
    *id = -1;
    if (!kv) return KOPI_OK;
    if (kv->n != 1 || !kopi__gguf_get_i64(kv, 0, &u))
        return bad_key(g, err, key, "is a %s, expected a token id below %u", kopi__gguf_type_name(kv->type), v->n);
    if (u < 0 || u >= v->n) return bad_key(g, err, key, "is %lld, no token id below %u", (long long)u, v->n);
    *id = (int32_t)u;
    return KOPI_OK;
}

static kopi_status read_flag(const struct kopi_gguf *g, const char *key, bool *flag, kopi_error *err)
{
    const struct kopi_gguf_kv *kv = find(g, key);
    if (kv && !kopi__gguf_bool(kv, flag))
        return bad_key(g, err, key, "is a %s, expected a bool", kopi__gguf_type_name(kv->type));
    return KOPI_OK;
}

/* ---- what tokens render to --------------------------------------------------------------------------------------- */

/* The byte that a character of the byte-level alphabet stands for, or -1: printable Latin-1 is itself, the other 68
 * bytes come in order from U+0100 on (GPT-2, encoder.py). */
static int byte_of(uint32_t cp)
{
    static const struct {
        uint32_t first, last;
        int byte;
    } ranges[] = {
        {0x21, 0x7e, 0x21},   {0xa1, 0xac, 0xa1},   {0xae, 0xff, 0xae},
        {0x100, 0x120, 0x00}, {0x121, 0x142, 0x7f}, {0x143, 0x143, 0xad},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last) return ranges[i].byte + (int)(cp - ranges[i].first);
    return -1;
}

/* Bytes of a BPE token into out (never longer than the text); 0: it has characters outside the alphabet. */
static uint32_t decode_symbols(struct kopi_piece t, char *out)
{
    uint32_t n = 0, cp;
    for (size_t i = 0, k; i < t.len; i += k) {
        k = kopi__utf8_decode(t.data + i, t.len - i, &cp);
        int b = k ? byte_of(cp) : -1;
        if (b < 0) return 0;
        out[n++] = (char)b;
    }
    return n;
}

/* U+2581 becomes a space. */
static uint32_t decode_spaces(struct kopi_piece t, char *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < t.len; i++) {
        bool mark = t.len - i >= 3 && !memcmp(t.data + i, "\xe2\x96\x81", 3);
        out[n++] = mark ? ' ' : t.data[i];
        if (mark) i += 2;
    }
    return n;
}

/* "<0x41>" -> 0x41, or -1. */
static int parse_byte_token(struct kopi_piece t)
{
    static const char hex[] = "0123456789ABCDEF";
    const char *a, *b;
    if (t.len != 6 || memcmp(t.data, "<0x", 3) || t.data[5] != '>') return -1;
    a = memchr(hex, t.data[3], 16);
    b = memchr(hex, t.data[4], 16);
    return a && b ? (int)((a - hex) << 4 | (b - hex)) : -1;
}

static uint32_t render(const struct kopi_vocab *v, uint32_t i, char *out)
{
    struct kopi_piece t = v->text[i];
    int byte = v->type[i] == KOPI_TOKEN_BYTE ? parse_byte_token(t) : -1;
    if (byte >= 0) {
        out[0] = (char)byte;
        return 1;
    }
    bool plain = v->type[i] == KOPI_TOKEN_NORMAL || v->type[i] == KOPI_TOKEN_BYTE || v->type[i] == KOPI_TOKEN_UNUSED;
    uint32_t n = !plain ? 0 : v->bpe ? decode_symbols(t, out) : decode_spaces(t, out);
    if (n) return n;
    memcpy(out, t.data, t.len);
    return t.len;
}

static kopi_status make_bytes(struct kopi_vocab *v, kopi_error *err)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < v->n; i++) total += v->text[i].len + 1u;
    char *out = v->storage = kopi__alloc(total);
    if (!out || (v->bpe && !table_new(&v->by_bytes, v->n))) return kopi__nomem(err, "vocabulary");
    for (int b = 0; b < 256; b++) v->byte_id[b] = -1;
    for (uint32_t i = 0; i < v->n; i++) {
        uint32_t n = render(v, i, out);
        v->bytes[i] = (struct kopi_piece){out, n};
        out += n;
        bool ordinary =
            v->bpe ? v->type[i] == KOPI_TOKEN_NORMAL || v->type[i] == KOPI_TOKEN_UNUSED : v->type[i] == KOPI_TOKEN_BYTE;
        if (!ordinary) continue;
        if (v->bpe) table_add(&v->by_bytes, v->bytes, i);
        if (n == 1 && v->byte_id[(unsigned char)v->bytes[i].data[0]] < 0)
            v->byte_id[(unsigned char)v->bytes[i].data[0]] = (int32_t)i;
    }
    if (!v->bpe) /* SentencePiece without byte tokens: single characters serve */
        for (int b = 0; b < 256; b++) {
            char c = (char)b;
            if (v->byte_id[b] < 0) v->byte_id[b] = kopi__vocab_find(v, &c, 1);
        }
    return KOPI_OK;
}

/* ---- end of generation ------------------------------------------------------------------------------------------- */

/* Texts that end a turn, a text or a file in known families. They count as control tokens only; files that declare them
 * user-defined mean the same (such a token typed by a user must not end anything). */
static const char *const end_texts[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|eot|>",
    "<|eom|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<EOT>",
    "_<EOT>",
    "< EOT >",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "</s>",
    "<turn|>",
    "<|tool_response>",
    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_end|>",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

static int32_t find_end(const struct kopi_vocab *v, const char *text)
{
    int32_t id = kopi__vocab_find(v, text, strlen(text));
    return id >= 0 && v->eog[id] ? id : -1;
}

/* Families in which an end text of others only closes a part of the answer: where all of `with` end, `text` does not.
 */
static void drop_inner_ends(struct kopi_vocab *v)
{
    static const struct {
        const char *text, *with[2];
    } inner[] = {
        {"<|end|>", {"<|return|>", "<|call|>"}}, /* harmony: the end of one channel's message */
        {"<|end|>", {"<|calls|>", "<|flush|>"}},
        {"</s>", {"<|tool_response>", "<turn|>"}},
    };
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++) {
        int32_t id = find_end(v, inner[i].text);
        if (id >= 0 && id != v->eos && find_end(v, inner[i].with[0]) >= 0 && find_end(v, inner[i].with[1]) >= 0)
            v->eog[id] = 0;
    }
}

static kopi_status read_ends(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    static const char *const keys[] = {"eos_token_id",     "eot_token_id",     "eom_token_id",
                                       "fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int32_t id;
        kopi_status s = read_id(g, v, keys[i], &id, err);
        if (s != KOPI_OK) return s;
        if (id >= 0) v->eog[id] = 1;
    }
    for (size_t i = 0; i < sizeof end_texts / sizeof *end_texts; i++) {
        int32_t id = kopi__vocab_find(v, end_texts[i], strlen(end_texts[i]));
        if (id >= 0 && v->type[id] == KOPI_TOKEN_USER_DEFINED) v->type[id] = KOPI_TOKEN_CONTROL;
        if (id >= 0 && v->type[id] == KOPI_TOKEN_CONTROL) v->eog[id] = 1;
    }
    drop_inner_ends(v);
    return KOPI_OK;
}

/* ---- white space behind special tokens --------------------------------------------------------------------------- */

static bool contains_phi3(struct kopi_gguf_str s)
{
    for (uint64_t i = 0; i + 4 <= s.len; i++)
        if ((!strncasecmp(s.data + i, "phi3", 4)) || (i + 5 <= s.len && !strncasecmp(s.data + i, "phi-3", 5)))
            return true;
    return false;
}

/* Phi-3's tokenizer.json marks its special tokens rstrip, but for three. GGUF has no key for that: the name tells. */
static kopi_status read_rstrip(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    static const char *const keep[] = {"<unk>", "<s>", "<|endoftext|>"};
    const struct kopi_gguf_kv *kv = kopi__gguf_find(g, "general.name");
    struct kopi_gguf_str name;
    if (!kv || !kopi__gguf_str(kv, &name) || !contains_phi3(name)) return KOPI_OK;
    v->rstrip = kopi__alloc(v->n);
    if (!v->rstrip) return kopi__nomem(err, "vocabulary");
    memset(v->rstrip, 1, v->n);
    for (size_t i = 0; i < sizeof keep / sizeof *keep; i++) {
        int32_t id = kopi__vocab_find(v, keep[i], strlen(keep[i]));
        if (id >= 0) v->rstrip[id] = 0;
    }
    return KOPI_OK;
}

kopi_status kopi__vocab_load(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    struct kopi_gguf_str model;
    const struct kopi_gguf_kv *kv = find(g, "model");
    *v = (struct kopi_vocab){.bos = -1, .eos = -1, .unk = -1};
    if (!kv || !kopi__gguf_str(kv, &model)) return bad_key(g, err, "model", "is missing or not a string");
    v->bpe = model.len == 4 && !memcmp(model.data, "gpt2", 4);
    if (!v->bpe && !(model.len == 5 && !memcmp(model.data, "llama", 5)))
        return kopi__fail(err, KOPI_E_MODEL, "%s: tokenizer.ggml.model is \"%.*s\", supported are gpt2, llama",
                          kopi__gguf_path(g), (int)(model.len < 40 ? model.len : 40), model.data);
    v->add_bos = !v->bpe;
    v->add_space_prefix = !v->bpe;
    kopi_status s = read_tokens(g, v, err);
    if (s == KOPI_OK) s = read_types(g, v, err);
    if (s == KOPI_OK) s = read_scores(g, v, err);
    if (s == KOPI_OK) s = make_bytes(v, err);
    if (s == KOPI_OK) s = read_id(g, v, "bos_token_id", &v->bos, err);
    if (s == KOPI_OK) s = read_id(g, v, "eos_token_id", &v->eos, err);
    if (s == KOPI_OK) s = read_id(g, v, "unknown_token_id", &v->unk, err);
    if (s == KOPI_OK && !v->bpe && v->bos < 0 && v->n > 1)
        v->bos = 1; /* SentencePiece's own numbers, where the file gives none */
    if (s == KOPI_OK && !v->bpe && v->eos < 0 && v->n > 2) v->eos = 2;
    if (s == KOPI_OK && !v->bpe && v->unk < 0) v->unk = 0;
    if (s == KOPI_OK && v->eos >= 0) v->eog[v->eos] = 1;
    if (s == KOPI_OK) s = read_ends(g, v, err);
    if (s == KOPI_OK) s = read_rstrip(g, v, err);
    return s;
}

/* After the pre-tokenizer has set its defaults: the file's own words win. */
kopi_status kopi__vocab_flags(const struct kopi_gguf *g, struct kopi_vocab *v, kopi_error *err)
{
    kopi_status s = read_flag(g, "add_bos_token", &v->add_bos, err);
    if (s == KOPI_OK) s = read_flag(g, "add_eos_token", &v->add_eos, err);
    if (s == KOPI_OK) s = read_flag(g, "add_space_prefix", &v->add_space_prefix, err);
    return s;
}

void kopi__vocab_clear(struct kopi_vocab *v)
{
    kopi__free(v->text);
    kopi__free(v->bytes);
    kopi__free(v->type);
    kopi__free(v->score);
    kopi__free(v->storage);
    kopi__free(v->eog);
    kopi__free(v->rstrip);
    kopi__free(v->by_text.slots);
    kopi__free(v->by_bytes.slots);
    *v = (struct kopi_vocab){0};
}
