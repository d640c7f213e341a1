#include "text/pretok.h"

#include "base/error.h"
#include "base/mem.h"
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <stdio.h>
#include <string.h>

enum { MAX_PASSES = 5 };

/* The expressions as their models' tokenizer.json (or tiktoken source) publish them. Several are applied one after the
 * other, each to the pieces that the one before left. */
#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define GPT2 "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"
#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define MARKS " ?[^\\s\\p{L}\\p{N}]+"
#define LLAMA3 CONTRACTIONS "|" WORD "|\\p{N}{1,3}|" MARKS "[\\r\\n]*|" SPACES
#define QWEN2 CONTRACTIONS "|" WORD "|\\p{N}|" MARKS "[\\r\\n]*|" SPACES
#define QWEN35 CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES
#define SEED CONTRACTIONS "|" WORD "|\\p{N}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|" SPACES
#define BAILING                                                                                                        \
    "'(?:[sSdDmMtT]|[lL][lL]|[vV][eE]|[rR][eE])|" WORD "|\\p{N}|" MARKS "[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+"
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(end) "[^\\r\\n\\p{L}\\p{N}]?" UPPER "*" LOWER "+" end "|[^\\r\\n\\p{L}\\p{N}]?" UPPER "+" LOWER "*" end
#define GPT4O CASED(CONTRACTIONS "?") "|\\p{N}{1,3}|" MARKS "[\\r\\n/]*|" SPACES
#define TEKKEN CASED("") "|\\p{N}|" MARKS "[\\r\\n/]*|" SPACES
#define BLOOM " ?[^(\\s|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c})]+"
#define CJK "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}]+"
#define DEEPSEEK3                                                                                                      \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "              \
    "?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES
#define DEEPSEEK_HAN "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

static const struct scheme {
    const char *names; /* each between blanks; the first one names the family */
    const char *pass[MAX_PASSES];
    struct kopi_pretok_traits traits;
} schemes[] = {
    {" default ", {"[\\p{P}\\$\\+<=>\\^~\\|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"}, {0}},
    {" gpt-2 phi-2 mpt olmo jais exaone4 trillion granite-docling gigachat mellum a.x-4.0 jina-es jina-de jina-v2-de "
     "jina-v2-es jina-v2-code"
     " modern-bert ",
     {GPT2},
     {0}},
    {" llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 laguna jina-v5-nano ",
     {LLAMA3},
     {.ignore_merges = true, .add_bos = true}},
    {" dbrx smaug-bpe glm4 chatglm-bpe ", {LLAMA3}, {0}},
    {" qwen2 stablelm2 deepseek-r1-qwen megrez hunyuan grok-2 solar-open kormo openpangu f2llmv2 ", {QWEN2}, {0}},
    {" qwen35 ", {QWEN35}, {0}},
    {" smollm starcoder refact command-r cohere2_moe codeshell exaone minerva-7b mellum2 ", {"\\p{N}", GPT2}, {0}},
    {" gpt-4o llama4 kanana2 minimax-m2 ", {GPT4O}, {0}},
    {" tekken ", {TEKKEN}, {.ignore_merges = true, .add_bos = true}},
    {" falcon ", {"[\\p{P}\\$\\+<=>\\^~\\|`]+", GPT2, "[0-9][0-9][0-9]"}, {0}},
    {" deepseek-coder ", {"[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", DEEPSEEK_HAN, "\\p{N}"}, {0}},
    {" deepseek-v3 hunyuan-dense joyai-llm ", {"\\p{N}{1,3}", CJK, DEEPSEEK3}, {0}},
    {" seed-coder ", {SEED}, {0}},
    {" bailingmoe bailingmoe2 llada-moe ", {BAILING}, {0}},
    {" bloom poro-chat gpt3-finnish ", {BLOOM}, {0}},
    {" viking ", {BLOOM, "\\p{N}"}, {0}},
};

struct kopi_pretok {
    pcre2_code *code[MAX_PASSES];
    int n;
};

static const struct scheme *find_scheme(const char *name)
{
    char key[80];
    snprintf(key, sizeof key, " %s ", name && *name ? name : "default");
    if (strchr(key + 1, ' ') != key + strlen(key) - 1) return NULL;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strstr(schemes[i].names, key)) return &schemes[i];
    return NULL;
}

static kopi_status unknown(const char *name, kopi_error *err)
{
    char list[600] = "";
    size_t n = 0;
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes && n < sizeof list; i++)
        n += (size_t)snprintf(list + n, sizeof list - n, " %.*s", (int)strcspn(schemes[i].names + 1, " "),
                              schemes[i].names + 1);
    return kopi__fail(err, KOPI_E_MODEL, "tokenizer.ggml.pre is \"%.60s\", known families are%s", name, list);
}

kopi_status kopi__pretok_new(const char *name, struct kopi_pretok **out, struct kopi_pretok_traits *traits,
                             kopi_error *err)
{
    const struct scheme *s = find_scheme(name);
    *out = NULL;
    if (!s) return unknown(name, err);
    struct kopi_pretok *p = kopi__calloc(1, sizeof *p);
    if (!p) return kopi__nomem(err, "pre-tokenizer");
    for (; p->n < MAX_PASSES && s->pass[p->n]; p->n++) {
        int code;
        PCRE2_SIZE at;
        /* NO_UTF_CHECK: the caller's promise; each word would otherwise check the rest of the text again. */
        p->code[p->n] = pcre2_compile((PCRE2_SPTR)s->pass[p->n], PCRE2_ZERO_TERMINATED,
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &code, &at, NULL);
        if (!p->code[p->n]) {
            kopi__pretok_free(p);
            return kopi__fail(err, KOPI_E_NOMEM, "pre-tokenizer expression: PCRE2 error %d at %zu", code, (size_t)at);
        }
        pcre2_jit_compile(p->code[p->n], PCRE2_JIT_COMPLETE); /* without JIT the interpreter gives the same words */
    }
    *traits = s->traits;
    *out = p;
    return KOPI_OK;
}

void kopi__pretok_free(struct kopi_pretok *p)
{
    if (!p) return;
    for (int i = 0; i < MAX_PASSES; i++) pcre2_code_free(p->code[i]);
    kopi__free(p);
}

/* ---- splitting --------------------------------------------------------------------------------------------------- */

struct split {
    const struct kopi_pretok *p;
    pcre2_match_data *match[MAX_PASSES];
    pcre2_match_context *limits;
    kopi_status (*fn)(void *ctx, const char *word, size_t len);
    void *ctx;
    kopi_error *err;
};

/* The machine code of a JIT has a small stack of its own; without it the interpreter finds the same. */
static int find_next(const struct split *s, int i, const char *text, size_t n, size_t at)
{
    int rc = pcre2_match(s->p->code[i], (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK, s->match[i], s->limits);
    if (rc != PCRE2_ERROR_JIT_STACKLIMIT) return rc;
    return pcre2_match(s->p->code[i], (PCRE2_SPTR)text, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->match[i],
                       s->limits);
}

/* One pass over a piece of the text, then the next pass over each part of it; depth is the number of passes. Looking
 * ahead stops at the piece's end, as it does in the tokenizers that apply the passes one by one. */
static kopi_status pass(const struct split *s, int i, const char *text, size_t n)
{
    if (i == s->p->n) return n ? s->fn(s->ctx, text, n) : KOPI_OK;
    kopi_status r = KOPI_OK;
    size_t done = 0;
    for (size_t at = 0; at < n && r == KOPI_OK;) {
        int rc = find_next(s, i, text, n, at);
        if (rc == PCRE2_ERROR_NOMATCH) break;
        if (rc < 0) return kopi__fail(s->err, KOPI_E_INTERNAL, "pre-tokenizer: PCRE2 error %d after %zu bytes", rc, at);
        const PCRE2_SIZE *o = pcre2_get_ovector_pointer(s->match[i]);
        if (o[0] > done) r = pass(s, i + 1, text + done, o[0] - done);
        if (r == KOPI_OK) r = pass(s, i + 1, text + o[0], o[1] - o[0]);
        done = at = o[1];
    }
    return r == KOPI_OK && done < n ? pass(s, i + 1, text + done, n - done) : r;
}

kopi_status kopi__pretok_split(const struct kopi_pretok *p, const char *text, size_t n,
                               kopi_status (*fn)(void *ctx, const char *word, size_t len), void *ctx, kopi_error *err)
{
    struct split s = {.p = p, .limits = pcre2_match_context_create(NULL), .fn = fn, .ctx = ctx, .err = err};
    kopi_status r = s.limits ? KOPI_OK : kopi__nomem(err, "pre-tokenizer");
    for (int i = 0; i < p->n && r == KOPI_OK; i++) {
        s.match[i] = pcre2_match_data_create(1, NULL);
        if (!s.match[i]) r = kopi__nomem(err, "pre-tokenizer");
    }
    if (r == KOPI_OK) {
        /* One repetition of a class costs one step; a run of n characters needs about n. */
        pcre2_set_match_limit(s.limits, n > 1000000 ? UINT32_MAX : 100000000);
        pcre2_set_heap_limit(s.limits, 1 << 20); /* KiB */
        r = pass(&s, 0, text, n);
    }
    for (int i = 0; i < p->n; i++) pcre2_match_data_free(s.match[i]);
    pcre2_match_context_free(s.limits);
    return r;
}
