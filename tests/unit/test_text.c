/* Unit tests of core/text: pre-tokenizers, merges, special tokens, byte fallback, the streaming detokenizer
 * (failures.md, group b). */
#include "base/buf.h"
#include "base/mem.h"
#include "base/sys.h"
#include "tests/support/tinygguf.h"
#include "text/pretok.h"
#include "text/tokenizer.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- splits (row 16: the table at the end of failures.md) -------------------------------------------------------- */

static kopi_status join(void *ctx, const char *word, size_t len)
{
    struct kopi_buf *b = ctx;
    if (b->len) kopi__buf_char(b, '|');
    kopi__buf_add(b, word, len);
    return KOPI_OK;
}

static char *split(const char *pre, const char *text, size_t n)
{
    struct kopi_pretok *p;
    struct kopi_pretok_traits traits;
    kopi_error e = {0};
    struct kopi_buf b = KOPI_BUF_INIT;
    ck_assert_msg(kopi__pretok_new(pre, &p, &traits, &e) == KOPI_OK, "%s", e.text);
    ck_assert_msg(kopi__pretok_split(p, text, n, join, &b, &e) == KOPI_OK, "%s", e.text);
    kopi__pretok_free(p);
    return kopi__buf_take(&b);
}

START_TEST(verified_splits)
{
    static const struct { const char *text, *gpt2, *llama3, *qwen2;
    } t[] = {
        {"1234567", "1234567", "123|456|7", "1|2|3|4|5|6|7"},
        {"I'M", "I|'|M", "I|'M", "I|'M"},
        {"a \n\nb", "a| \n|\n|b", "a| \n\n|b", "a| \n\n|b"},
        {"a   b", "a|  | b", "a|  | b", "a|  | b"},
        {"x.\n\n", "x|.|\n\n", "x|.\n\n", "x|.\n\n"},
        {"(foo", "(|foo", "(foo", "(foo"},
        {"\xc2\xa0"
         "b",
         "\xc2\xa0|b",
         "\xc2\xa0"
         "b",
         "\xc2\xa0"
         "b"},
        {" \t\nb", " \t|\n|b", " \t\n|b", " \t\n|b"},
        {"e\xcc\x81"
         "a",
         "e|\xcc\x81|a",
         "e|\xcc\x81"
         "a",
         "e|\xcc\x81"
         "a"},
        {"\xef\xbc\x91\xef\xbc\x92", "\xef\xbc\x91\xef\xbc\x92", "\xef\xbc\x91\xef\xbc\x92",
         "\xef\xbc\x91|\xef\xbc\x92"},
        {"a\r\nb", "a|\r|\n|b", "a|\r\n|b", "a|\r\n|b"},
    };
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        const struct {
            const char *pre, *want;
        } cases[] = {{"gpt-2", t[i].gpt2}, {"llama-bpe", t[i].llama3}, {"qwen2", t[i].qwen2}};
        for (int k = 0; k < 3; k++) {
            char *got = split(cases[k].pre, t[i].text, strlen(t[i].text));
            ck_assert_msg(!strcmp(got, cases[k].want), "%s of case %zu: \"%s\", expected \"%s\"", cases[k].pre, i, got,
                          cases[k].want);
            kopi__free(got);
        }
    }
}
END_TEST

START_TEST(digits_one_by_one)
{
    char *s = split("smollm", "ab 12c", 6);
    ck_assert_str_eq(s, "ab| |1|2|c");
    kopi__free(s);
}
END_TEST

START_TEST(unknown_pretokenizer)
{
    struct kopi_pretok *p;
    struct kopi_pretok_traits traits;
    kopi_error e;
    static const char *const bad[] = {"nonsense", "gpt", "llama-bpe qwen2", " "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ck_assert_int_eq(kopi__pretok_new(bad[i], &p, &traits, &e), KOPI_E_MODEL);
        ck_assert_msg(strstr(e.text, "llama-bpe"), "%s", e.text);
    }
}
END_TEST

/* ---- fixtures ---------------------------------------------------------------------------------------------------- */

static char path_buf[512];

/* The byte-level alphabet: byte b as its character. */
static size_t alphabet(unsigned b, char *out)
{
    unsigned cp = b, n = 0;
    for (unsigned i = 0; i <= b; i++) {
        bool self = (i >= 0x21 && i <= 0x7e) || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
        if (!self && i == b) cp = 0x100 + n;
        if (!self) n++;
    }
    if (cp < 0x80) return out[0] = (char)cp, 1;
    out[0] = (char)(0xc0 | cp >> 6);
    out[1] = (char)(0x80 | (cp & 0x3f));
    return 2;
}

static struct kopi_tokenizer *load(struct tiny *t, struct kopi_gguf **g)
{
    struct kopi_tokenizer *tok;
    kopi_error e = {0};
    const char *path = tiny_path(path_buf, "t.gguf");
    tiny_write(t, path);
    tiny_free(t);
    ck_assert_msg(kopi__gguf_open(path, 0, NULL, 0, g, &e) == KOPI_OK, "%s", e.text);
    ck_assert_msg(kopi__tokenizer_new(*g, &tok, &e) == KOPI_OK, "%s", e.text);
    tiny_remove(path);
    return tok;
}

enum { N_BYTES = 256 };
static const char *const merges[] = {"a b", "b a", "ab a", "ab ab", "aba b", "abab abab", "c c", "cc cc", "cccc cccc"};
enum { N_MERGES = sizeof merges / sizeof *merges };
enum { BOS = N_BYTES + N_MERGES, IM_END, USER, PLAIN_END, N_TOKENS };

/* 256 bytes, the results of the merges, a BOS, two control tokens, a user-defined one, and a normal one that looks like
 * an end. */
static struct kopi_tokenizer *bpe(struct kopi_gguf **g, const char *pre, int add_bos)
{
    static char texts[N_TOKENS][16];
    const char *list[N_TOKENS];
    int32_t type[N_TOKENS];
    for (unsigned b = 0; b < N_BYTES; b++) texts[b][alphabet(b, texts[b])] = 0;
    for (int i = 0; i < N_MERGES; i++) {
        size_t n = 0;
        for (const char *p = merges[i]; *p; p++)
            if (*p != ' ') texts[N_BYTES + i][n++] = *p;
        texts[N_BYTES + i][n] = 0;
    }
    strcpy(texts[BOS], "<s>");
    strcpy(texts[IM_END], "<|im_end|>");
    strcpy(texts[USER], "<user>");
    strcpy(texts[PLAIN_END], "<|end|>");
    for (int i = 0; i < N_TOKENS; i++) {
        list[i] = texts[i];
        type[i] = i == BOS || i == IM_END ? KOPI_TOKEN_CONTROL
                  : i == USER             ? KOPI_TOKEN_USER_DEFINED
                                          : KOPI_TOKEN_NORMAL;
    }
    struct tiny *t = tiny_new();
    tiny_str(t, "general.architecture", "llama");
    tiny_str(t, "tokenizer.ggml.model", "gpt2");
    tiny_str(t, "tokenizer.ggml.pre", pre);
    tiny_arr_str(t, "tokenizer.ggml.tokens", list, N_TOKENS);
    tiny_arr_i32(t, "tokenizer.ggml.token_type", type, N_TOKENS);
    tiny_arr_str(t, "tokenizer.ggml.merges", merges, N_MERGES);
    tiny_u32(t, "tokenizer.ggml.bos_token_id", BOS);
    tiny_bool(t, "tokenizer.ggml.add_bos_token", add_bos);
    return load(t, g);
}

static int32_t *encode(const struct kopi_tokenizer *t, const char *text, size_t len, unsigned flags, size_t *n)
{
    int32_t *ids;
    kopi_error e = {0};
    ck_assert_msg(kopi__tokenize(t, text, len, flags, &ids, n, NULL, NULL, &e) == KOPI_OK, "%s", e.text);
    return ids;
}

/* ---- BPE --------------------------------------------------------------------------------------------------------- */

/* The slow definition: while there is a pair with a rule, merge the leftmost one of the lowest rank. */
static size_t naive(const char *text, size_t n, int32_t *ids)
{
    char piece[4096][32];
    size_t count = n;
    for (size_t i = 0; i < n; i++) snprintf(piece[i], sizeof piece[i], "%c", text[i]);
    for (;;) {
        size_t best = SIZE_MAX, rank = N_MERGES;
        for (size_t i = 0; i + 1 < count; i++)
            for (size_t m = 0; m < rank; m++) {
                char rule[70];
                snprintf(rule, sizeof rule, "%s %s", piece[i], piece[i + 1]);
                if (!strcmp(rule, merges[m])) {
                    best = i;
                    rank = m;
                }
            }
        if (best == SIZE_MAX) break;
        char joined[70];
        snprintf(joined, sizeof joined, "%s%s", piece[best], piece[best + 1]);
        memcpy(piece[best], joined, sizeof piece[best]);
        memmove(piece[best + 1], piece[best + 2], (count - best - 2) * sizeof piece[0]);
        count--;
    }
    for (size_t i = 0; i < count; i++) {
        ids[i] = (unsigned char)piece[i][0];
        for (int m = 0; m < N_MERGES && piece[i][1]; m++) {
            char joined[32] = "";
            for (const char *p = merges[m]; *p; p++)
                if (*p != ' ') strncat(joined, p, 1);
            if (strcmp(joined, piece[i])) continue;
            ids[i] = N_BYTES + m; /* of two rules with one result the first one's token */
            break;
        }
    }
    return count;
}

START_TEST(merges_equal_the_definition)
{
    struct kopi_gguf *g;
    struct kopi_tokenizer *t = bpe(&g, "gpt-2", 0);
    uint64_t seed = 5;
    for (int round = 0; round < 200; round++) {
        char text[400];
        int32_t want[400];
        size_t n = 1 + (size_t)(round * 2 % 399), got_n;
        for (size_t i = 0; i < n; i++) text[i] = "abc"[(int)((tiny_random(&seed) + 1) * 1.5f) % 3];
        size_t want_n = naive(text, n, want);
        int32_t *got = encode(t, text, n, 0, &got_n);
        ck_assert_uint_eq(got_n, want_n);
        ck_assert_int_eq(memcmp(got, want, want_n * sizeof *want), 0);
        kopi__free(got);
    }
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
}
END_TEST

/* Rows 20 and 21: long runs, on a stack of 256 KiB, in about linear time, and reversible. */
static void *long_runs(void *arg)
{
    static const struct { const char *unit; size_t n;
    } runs[] = {{"A", 43000},  {"\n", 100000}, {" ", 100000},    {".", 100000}, {"\xe4\xb8\x80", 30000},
                {"Z", 131072}, {"ab", 65536},  {"\xff", 100000}, {"1", 100000}, {"\xcc\x81", 50000},
                {"a ", 50000}};
    const struct kopi_tokenizer *t = arg;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        size_t len = strlen(runs[i].unit), total = len * runs[i].n, n, back_n;
        char *text = malloc(total), *back;
        for (size_t k = 0; k < runs[i].n; k++) memcpy(text + k * len, runs[i].unit, len);
        uint64_t start = kopi__now_ns();
        int32_t *ids = encode(t, text, total, 0, &n);
        ck_assert_msg(kopi__now_ns() - start < 5000000000u, "run %zu took over 5 s", i);
        ck_assert_int_eq(kopi__detokenize(t, ids, n, true, &back, &back_n, NULL), KOPI_OK);
        if (runs[i].unit[0] != '\xff') ck_assert(back_n == total && !memcmp(back, text, total));
        kopi__free(back);
        kopi__free(ids);
        free(text);
    }
    return NULL;
}

START_TEST(long_runs_on_a_small_stack)
{
    static const char *const pres[] = {"gpt-2", "llama-bpe", "qwen2", "smollm", "default", "gpt-4o"};
    for (size_t i = 0; i < sizeof pres / sizeof *pres; i++) {
        struct kopi_gguf *g;
        struct kopi_tokenizer *t = bpe(&g, pres[i], 0);
        pthread_attr_t a;
        pthread_t thread;
        pthread_attr_init(&a);
        pthread_attr_setstacksize(&a, 256 << 10);
        ck_assert_int_eq(pthread_create(&thread, &a, long_runs, t), 0);
        pthread_join(thread, NULL);
        pthread_attr_destroy(&a);
        kopi__tokenizer_free(t);
        kopi__gguf_close(g);
    }
}
END_TEST

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

static size_t count_id(const int32_t *ids, size_t n, int32_t id)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) k += ids[i] == id;
    return k;
}

START_TEST(control_tokens_only_where_asked)
{
    struct kopi_gguf *g;
    struct kopi_tokenizer *t = bpe(&g, "gpt-2", 0);
    static const char text[] = "x<|im_end|>y<user>z";
    size_t n;
    int32_t *ids = encode(t, text, strlen(text), 0, &n);
    ck_assert_uint_eq(count_id(ids, n, IM_END), 0);
    ck_assert_uint_eq(count_id(ids, n, USER), 1);
    kopi__free(ids);
    ids = encode(t, text, strlen(text), KOPI__TOK_PARSE_SPECIAL, &n);
    ck_assert_uint_eq(n, 5);
    ck_assert_int_eq(ids[1], IM_END);
    ck_assert_int_eq(ids[3], USER);
    kopi__free(ids);
    /* A message may not complete a token that the template began, nor hide one in two parts. */
    const struct kopi_segment seg[] = {{"<|im_", 5, 1}, {"end|><|im_", 10, 0}, {"end|>", 6, 0}, {"<|im_end|>", 10, 1}};
    ck_assert_int_eq(kopi__tokenize_segments(t, seg, 4, 0, &ids, &n, NULL, NULL, NULL), KOPI_OK);
    ck_assert_uint_eq(count_id(ids, n, IM_END), 1);
    ck_assert_int_eq(ids[n - 1], IM_END);
    kopi__free(ids);
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
}
END_TEST

/* Row 18: one BOS, whoever writes it. */
START_TEST(one_bos)
{
    static const struct {
        int add_bos, in_template;
        size_t want;
    } chat[] = {{1, 1, 1}, {1, 0, 1}, {0, 1, 1}, {0, 0, 0}};
    for (size_t i = 0; i < 4; i++) {
        struct kopi_gguf *g;
        struct kopi_tokenizer *t = bpe(&g, "gpt-2", chat[i].add_bos);
        const struct kopi_segment seg[] = {{"<s>", chat[i].in_template ? 3 : 0, 1}, {"hi", 2, 0}};
        int32_t *ids;
        size_t n;
        ck_assert_int_eq(kopi__tokenize_segments(t, seg, 2, KOPI__TOK_ADD_SPECIAL, &ids, &n, NULL, NULL, NULL),
                         KOPI_OK);
        ck_assert_uint_eq(count_id(ids, n, BOS), chat[i].want);
        kopi__free(ids);
        ids = encode(t, "hi", 2, KOPI__TOK_ADD_SPECIAL, &n);
        ck_assert_uint_eq(count_id(ids, n, BOS), (size_t)chat[i].add_bos);
        kopi__free(ids);
        kopi__tokenizer_free(t);
        kopi__gguf_close(g);
    }
}
END_TEST

/* Row 38: declared or not, a control token with an end-of-turn text ends; the same text as a normal token does not. */
START_TEST(ends_of_generation)
{
    struct kopi_gguf *g;
    struct kopi_tokenizer *t = bpe(&g, "gpt-2", 0);
    ck_assert(kopi__is_eog(t, IM_END));
    ck_assert(!kopi__is_eog(t, PLAIN_END));
    ck_assert(!kopi__is_eog(t, 'a') && !kopi__is_eog(t, -1) && !kopi__is_eog(t, N_TOKENS));
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
}
END_TEST

/* ---- SentencePiece (rows 19 and 22) ------------------------------------------------------------------------------ */

#define SP "\xe2\x96\x81"
enum { SP_FIXED = 8 };

static struct kopi_tokenizer *spm(struct kopi_gguf **g, bool prefix, bool newline_byte)
{
    static char bytes[256][8];
    static const char *const fixed[SP_FIXED] = {"<unk>", "<s>", "</s>", SP, SP SP, "hello", SP "hello", "he"};
    const char *list[SP_FIXED + 256];
    int32_t type[SP_FIXED + 256];
    float score[SP_FIXED + 256];
    int n = 0;
    for (; n < SP_FIXED; n++) {
        list[n] = fixed[n];
        type[n] = n == 0 ? KOPI_TOKEN_UNKNOWN : n < 3 ? KOPI_TOKEN_CONTROL : KOPI_TOKEN_NORMAL;
        score[n] = -(float)n;
    }
    for (int b = 0; b < 256; b++) {
        if (b == '\n' && !newline_byte) continue;
        snprintf(bytes[b], sizeof bytes[b], "<0x%02X>", b);
        list[n] = bytes[b];
        type[n] = KOPI_TOKEN_BYTE;
        score[n++] = 0;
    }
    struct tiny *t = tiny_new();
    tiny_str(t, "general.architecture", "llama");
    tiny_str(t, "tokenizer.ggml.model", "llama");
    tiny_arr_str(t, "tokenizer.ggml.tokens", list, (size_t)n);
    tiny_arr_i32(t, "tokenizer.ggml.token_type", type, (size_t)n);
    tiny_arr_f32(t, "tokenizer.ggml.scores", score, (size_t)n);
    tiny_bool(t, "tokenizer.ggml.add_space_prefix", prefix);
    return load(t, g);
}

START_TEST(byte_fallback_round_trip)
{
    static const char *const texts[] = {"",     " ",      "hello",        " hello",  "\xea\xb9\xb0", "\xf0\x9f\xa6\x99",
                                        "a\nb", "<0x41>", "hello  hello", "\xff\xfe"};
    for (int prefix = 0; prefix < 2; prefix++) {
        struct kopi_gguf *g;
        struct kopi_tokenizer *t = spm(&g, prefix, true);
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
            size_t n, back_n;
            char *back;
            int32_t *ids = encode(t, texts[i], strlen(texts[i]), 0, &n);
            ck_assert_int_eq(kopi__detokenize(t, ids, n, true, &back, &back_n, NULL), KOPI_OK);
            ck_assert_msg(back_n == strlen(texts[i]) && !memcmp(back, texts[i], back_n), "case %zu: \"%s\"", i, back);
            kopi__free(back);
            kopi__free(ids);
        }
        kopi__tokenizer_free(t);
        kopi__gguf_close(g);
    }
}
END_TEST

START_TEST(space_prefix)
{
    struct kopi_gguf *g;
    size_t n;
    struct kopi_tokenizer *t = spm(&g, true, true);
    int32_t *a = encode(t, "<s>hello", 8, KOPI__TOK_PARSE_SPECIAL, &n);
    ck_assert(n > 1 && a[0] == 1);
    kopi__free(a);
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
    t = spm(&g, false, false); /* no byte 0x0A: the newline becomes the unknown token, and loading works */
    a = encode(t, "\n", 1, 0, &n);
    ck_assert(n == 1 && a[0] == 0);
    kopi__free(a);
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
}
END_TEST

/* ---- vocabularies that are wrong (row 10) ------------------------------------------------------------------------ */

START_TEST(bad_side_arrays)
{
    static const char *const tokens[] = {"a", "b", "c", "d"}, *const bad_merge[] = {"ab"},
                             *const two_spaces[] = {"a b c"};
    static const float scores[] = {0, 0, 0, 0};
    static const int32_t types[] = {1, 1, 1, 1};
    for (int c = 0; c < 9; c++) {
        struct tiny *t = tiny_new();
        struct kopi_gguf *g;
        struct kopi_tokenizer *tok;
        kopi_error e = {0};
        tiny_str(t, "general.architecture", "llama");
        tiny_str(t, "tokenizer.ggml.model", c < 5 ? "llama" : c == 8 ? "bert" : "gpt2");
        if (c != 3) tiny_arr_str(t, "tokenizer.ggml.tokens", tokens, c == 4 ? 0 : 4);
        if (c == 0) tiny_arr_i32(t, "tokenizer.ggml.scores", types, 4);
        if (c == 1) tiny_arr_f32(t, "tokenizer.ggml.scores", scores, 3);
        if (c == 2) {
            tiny_arr_f32(t, "tokenizer.ggml.scores", scores, 4);
            tiny_u32(t, "tokenizer.ggml.token_type", 1);
        }
        if (c == 5) tiny_arr_str(t, "tokenizer.ggml.merges", bad_merge, 1);
        if (c == 6) tiny_arr_str(t, "tokenizer.ggml.merges", two_spaces, 1);
        if (c == 7) {
            tiny_arr_str(t, "tokenizer.ggml.merges", bad_merge, 0);
            tiny_u32(t, "tokenizer.ggml.eos_token_id", 4);
        }
        static const char *const says[] = {"scores", "scores", "token_type",   "tokens",  "tokens",
                                           "merges", "merges", "eos_token_id", "\"bert\""};
        const char *path = tiny_path(path_buf, "t.gguf");
        tiny_write(t, path);
        tiny_free(t);
        ck_assert_msg(kopi__gguf_open(path, 0, NULL, 0, &g, &e) == KOPI_OK, "%s", e.text);
        ck_assert_int_eq(kopi__tokenizer_new(g, &tok, &e), KOPI_E_MODEL);
        ck_assert_msg(strstr(e.text, says[c]), "case %d: %s", c, e.text);
        kopi__gguf_close(g);
        tiny_remove(path);
    }
}
END_TEST

/* ---- streaming (row 23) ------------------------------------------------------------------------------------------ */

START_TEST(streams_whole_characters)
{
    struct kopi_gguf *g;
    struct kopi_tokenizer *t = bpe(&g, "gpt-2", 0);
    static const struct { const char *bytes; size_t n; const char *want; } cases[] = {
        {"\xf0\x9f\x98\x80", 4, "\xf0\x9f\x98\x80"},
        {"\xf0\x9f" "A", 3, "\xef\xbf\xbd" "A"},
        {"\xf0\x9f", 2, "\xef\xbf\xbd"},
        {"\x80", 1, "\xef\xbf\xbd"},
        {"\xc0\x80", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"a\xc3\xa9z", 4, "a\xc3\xa9z"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kopi_detok d = {0};
        struct kopi_buf all = KOPI_BUF_INIT;
        for (size_t k = 0; k < cases[i].n; k++) {
            size_t before = all.len;
            kopi__detok_push(&d, t, (unsigned char)cases[i].bytes[k], false, &all);
            /* each delta is valid text by itself */
            char *delta = strndup(all.data ? all.data + before : "", all.len - before);
            ck_assert_msg(!(delta[0] & 0x80) || (delta[0] & 0xc0) == 0xc0, "case %zu delta %zu", i, k);
            free(delta);
        }
        kopi__detok_flush(&d, &all);
        ck_assert_msg(all.len == strlen(cases[i].want) && !memcmp(all.data, cases[i].want, all.len), "case %zu", i);
        kopi__buf_free(&all);
    }
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
}
END_TEST

START_TEST(bad_ids)
{
    struct kopi_gguf *g;
    struct kopi_tokenizer *t = bpe(&g, "gpt-2", 0);
    kopi_error e;
    char *text;
    size_t n;
    static const int32_t bad[] = {-1, N_TOKENS, INT32_MAX};
    for (int i = 0; i < 3; i++) ck_assert_int_eq(kopi__detokenize(t, &bad[i], 1, true, &text, &n, &e), KOPI_E_INVALID);
    kopi__tokenizer_free(t);
    kopi__gguf_close(g);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("text");
    tcase_add_test(t, verified_splits);
    tcase_add_test(t, digits_one_by_one);
    tcase_add_test(t, unknown_pretokenizer);
    tcase_add_test(t, merges_equal_the_definition);
    tcase_add_test(t, long_runs_on_a_small_stack);
    tcase_add_test(t, control_tokens_only_where_asked);
    tcase_add_test(t, one_bos);
    tcase_add_test(t, ends_of_generation);
    tcase_add_test(t, byte_fallback_round_trip);
    tcase_add_test(t, space_prefix);
    tcase_add_test(t, bad_side_arrays);
    tcase_add_test(t, streams_whole_characters);
    tcase_add_test(t, bad_ids);
    tcase_set_timeout(t, 120);
    Suite *s = suite_create("text");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
