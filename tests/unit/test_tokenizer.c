/* Unit tests of core/text against its definitions: which special tokens are found, what text may never become, ends of
 * families, more pre-tokenizers, time, cancelling, and memory that runs short. (test_text.c has the reported failures.)
 */
#include "base/buf.h"
#include "base/mem.h"
#include "tests/support/tinygguf.h"
#include "text/pretok.h"
#include "text/tokenizer.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SP "\xe2\x96\x81"

/* ---- fixtures ---------------------------------------------------------------------------------------------------- */

struct piece {
    const char *text;
    int32_t type;
};
enum { N = KOPI_TOKEN_NORMAL, C = KOPI_TOKEN_CONTROL, U = KOPI_TOKEN_USER_DEFINED, UNK = KOPI_TOKEN_UNKNOWN };
enum { MOST = 1024 };

struct model {
    struct kopi_gguf *g;
    struct kopi_tokenizer *t;
};

struct source {
    const char *model, *name; /* name: general.name or NULL */
    const struct piece *pieces;
    size_t n_pieces;
    const char *const *merges;
    size_t n_merges;
    bool space_prefix;
};

/* The pieces, then what every text needs: printable ASCII, space and newline (gpt2), or the 256 byte tokens (llama). */
static struct kopi_gguf *open_source(const struct source *s)
{
    static char texts[256][8], path[512];
    const char *list[MOST];
    int32_t type[MOST];
    float score[MOST];
    size_t n = s->n_pieces;
    bool spm = !strcmp(s->model, "llama");
    for (size_t i = 0; i < n; i++) {
        list[i] = s->pieces[i].text;
        type[i] = s->pieces[i].type;
    }
    for (int b = 0; b < 256; b++) {
        if (!spm && b != ' ' && b != '\n' && (b < 0x21 || b > 0x7e)) continue;
        if (spm) snprintf(texts[b], sizeof texts[b], "<0x%02X>", b);
        else snprintf(texts[b], sizeof texts[b], b == ' ' ? "\xc4\xa0" : b == '\n' ? "\xc4\x8a" : "%c", b);
        list[n] = texts[b];
        type[n++] = spm ? KOPI_TOKEN_BYTE : N;
    }
    for (size_t i = 0; i < n; i++) score[i] = -(float)i;
    struct tiny *t = tiny_new();
    tiny_str(t, "general.architecture", "llama");
    if (s->name) tiny_str(t, "general.name", s->name);
    tiny_str(t, "tokenizer.ggml.model", s->model);
    tiny_str(t, "tokenizer.ggml.pre", "gpt-2");
    tiny_arr_str(t, "tokenizer.ggml.tokens", list, n);
    tiny_arr_i32(t, "tokenizer.ggml.token_type", type, n);
    if (spm) tiny_arr_f32(t, "tokenizer.ggml.scores", score, n);
    else tiny_arr_str(t, "tokenizer.ggml.merges", s->merges ? s->merges : list, s->n_merges);
    if (spm) tiny_bool(t, "tokenizer.ggml.add_space_prefix", s->space_prefix);
    struct kopi_gguf *g;
    kopi_error e = {0};
    tiny_path(path, "t.gguf");
    tiny_write(t, path);
    tiny_free(t);
    ck_assert_msg(kopi__gguf_open(path, 0, NULL, 0, &g, &e) == KOPI_OK, "%s", e.text);
    tiny_remove(path);
    return g;
}

static struct model load(struct source s)
{
    kopi_error e = {0};
    struct model m = {.g = open_source(&s)};
    ck_assert_msg(kopi__tokenizer_new(m.g, &m.t, &e) == KOPI_OK, "%s", e.text);
    return m;
}

static void drop(struct model m)
{
    kopi__tokenizer_free(m.t);
    kopi__gguf_close(m.g);
}

static int32_t *encode(struct model m, const char *text, size_t len, unsigned flags, size_t *n)
{
    int32_t *ids;
    kopi_error e = {0};
    ck_assert_msg(kopi__tokenize(m.t, text, len, flags, &ids, n, NULL, NULL, &e) == KOPI_OK, "%s", e.text);
    return ids;
}

/* The text's tokens are these vocabulary entries. */
static void expect(struct model m, const char *text, unsigned flags, const char *const *want, size_t n_want)
{
    size_t n;
    int32_t *ids = encode(m, text, strlen(text), flags, &n);
    ck_assert_msg(n == n_want, "\"%s\": %zu tokens, expected %zu", text, n, n_want);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = kopi__token_text(m.t, ids[i], &len);
        ck_assert_msg(len == strlen(want[i]) && !memcmp(s, want[i], len),
                      "\"%s\": token %zu is \"%.*s\", expected \"%s\"", text, i, (int)len, s, want[i]);
    }
    kopi__free(ids);
}
#define EXPECT(m, text, flags, ...)                                                                                    \
    expect(m, text, flags, (const char *const[]){__VA_ARGS__},                                                         \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
#define PIECES(p) .pieces = (p), .n_pieces = sizeof(p) / sizeof *(p)
#define MERGES(p) .merges = (p), .n_merges = sizeof(p) / sizeof *(p)

/* ---- pre-tokenizers ---------------------------------------------------------------------------------------------- */

static kopi_status join(void *ctx, const char *word, size_t len)
{
    struct kopi_buf *b = ctx;
    if (b->len) kopi__buf_char(b, '|');
    kopi__buf_add(b, word, len);
    return KOPI_OK;
}

START_TEST(families_split_as_published)
{
    static const struct {
        const char *pre, *text, *want;
    } cases[] = {
        {"default", "x1234y.z", "x|123|4|y|.|z"},
        {"gpt-4o", "HelloWorld's 12345", "Hello|World's| |123|45"},
        {"llama4", "camelCASE/\n\nx", "camel|CASE|/\n\n|x"},
        {"tekken", "HelloWorld's 12", "Hello|World|'s| |1|2"},
        {"qwen35",
         "e\xcc\x81"
         "a!",
         "e\xcc\x81"
         "a|!"},
        {"falcon", "a`b 1234", "a|`|b| |123|4"},
        {"deepseek-coder", "a\n12 b.", "a|\n|1|2| b|."},
        {"deepseek-v3",
         "x\xe4\xb8\xad\xe6\x96\x87"
         "12345",
         "x|\xe4\xb8\xad\xe6\x96\x87|123|45"},
        {"deepseek-v3", ".foo ==\n", ".foo| ==\n"},
        {"seed-coder", "x.\n\n", "x|.|\n\n"},
        {"bailingmoe", "a'LL\n\nb", "a|'LL|\n\n|b"},
        {"bloom", "ab, cd", "ab|,| cd"},
        {"viking", "ab12", "ab|1|2"},
        {"glm4", "1234 I'm", "123|4| I|'m"},
        {"command-r", "12 a", "1|2| a"},
        {"exaone4", "12 a", "12| a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kopi_pretok *p;
        struct kopi_pretok_traits traits;
        struct kopi_buf b = KOPI_BUF_INIT;
        ck_assert_int_eq(kopi__pretok_new(cases[i].pre, &p, &traits, NULL), KOPI_OK);
        ck_assert_int_eq(kopi__pretok_split(p, cases[i].text, strlen(cases[i].text), join, &b, NULL), KOPI_OK);
        ck_assert_msg(!strcmp(b.data, cases[i].want), "%s: \"%s\", expected \"%s\"", cases[i].pre, b.data,
                      cases[i].want);
        kopi__buf_free(&b);
        kopi__pretok_free(p);
    }
}
END_TEST

/* ---- special tokens ---------------------------------------------------------------------------------------------- */

START_TEST(longer_ones_are_cut_out_first)
{
    static const struct piece p[] = {{"cde", U}, {"abc", U}, {"ab", U}, {"aab", U}, {"aa", U}};
    struct model m = load((struct source){"gpt2", PIECES(p)});
    EXPECT(m, "abcde", 0, "ab",
           "cde"); /* of two equally long ones the lower id; the other leaves room for a shorter one */
    EXPECT(m, "aaab", 0, "a", "aab"); /* not aa, ab */
    EXPECT(m, "aaaa", 0, "aa", "aa"); /* from the left */
    EXPECT(m, "xabcx", 0, "x", "abc", "x");
    drop(m);
}
END_TEST

/* The slow definition: the tokens by falling length, each wherever it still fits, from the left. */
static size_t naive(struct model m, const char *text, size_t n, int32_t n_special, int32_t *ids)
{
    int32_t at[64];
    size_t count = 0, len;
    memset(at, 0xff, sizeof at); /* -1: plain; -2: inside a token */
    for (size_t want = 8; want; want--)
        for (int32_t id = 0; id < n_special; id++) {
            const char *s = kopi__token_text(m.t, id, &len);
            if (len != want) continue;
            for (size_t i = 0; i + len <= n; i++) {
                bool fits = !memcmp(text + i, s, len);
                for (size_t k = 0; k < len; k++) fits = fits && at[i + k] == -1;
                for (size_t k = 0; fits && k < len; k++) at[i + k] = k ? -2 : id;
            }
        }
    for (size_t i = 0; i < n; i++)
        if (at[i] != -2) ids[count++] = at[i] >= 0 ? at[i] : kopi__token_find(m.t, text + i, 1);
    return count;
}

START_TEST(special_tokens_equal_the_definition)
{
    uint64_t seed = 11;
    for (int round = 0; round < 40; round++) {
        struct piece p[12];
        char texts[12][8];
        for (int i = 0; i < 12; i++) {
            int len = 2 + (int)((tiny_random(&seed) + 1) * 2.5f);
            for (int k = 0; k < len; k++) texts[i][k] = tiny_random(&seed) < 0 ? 'a' : 'b';
            texts[i][len] = 0;
            p[i] = (struct piece){texts[i], U};
            for (int k = 0; k < i; k++)
                if (!strcmp(texts[k], texts[i])) p[i].type = N; /* a text counts once */
            if (p[i].type == N) texts[i][0] = (char)('m' + i), texts[i][1] = 'n', texts[i][2] = 0;
        }
        struct model m = load((struct source){"gpt2", PIECES(p)});
        for (int k = 0; k < 25; k++) {
            char text[64];
            int32_t want[64];
            size_t n = (size_t)(round + k) % 64, got_n;
            for (size_t i = 0; i < n; i++) text[i] = "aabbc"[(int)((tiny_random(&seed) + 1) * 2.5f) % 5];
            size_t want_n = naive(m, text, n, 12, want);
            int32_t *got = encode(m, text, n, 0, &got_n);
            ck_assert_msg(got_n == want_n && !memcmp(got, want, want_n * sizeof *want), "\"%.*s\"", (int)n, text);
            kopi__free(got);
        }
        drop(m);
    }
}
END_TEST

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char run_texts[31][32];

/* Gemma's vocabulary has a token for each run of up to 31 newlines. */
START_TEST(runs_of_nested_special_tokens)
{
    struct piece p[31];
    for (int i = 0; i < 31; i++) {
        memset(run_texts[i], '\n', (size_t)i + 1);
        p[i] = (struct piece){run_texts[i], U};
    }
    struct model m = load((struct source){"llama", PIECES(p)});
    size_t len = 200000, n;
    char *text = malloc(len);
    memset(text, '\n', len);
    double start = cpu_seconds();
    int32_t *ids = encode(m, text, len, 0, &n);
    ck_assert_msg(cpu_seconds() - start < 3, "%g s", cpu_seconds() - start);
    ck_assert_uint_eq(n, len / 31 + 1);
    for (size_t i = 0; i + 1 < n; i++) ck_assert_int_eq(ids[i], 30);
    ck_assert_int_eq(ids[n - 1], (int)(len % 31) - 1);
    kopi__free(ids);
    free(text);
    drop(m);
}
END_TEST

/* Longer ones would make the search for them take as long at every byte of a text. */
START_TEST(special_tokens_have_a_length)
{
    static char text[258];
    const struct piece p[] = {{"<unk>", UNK}, {text, U}};
    kopi_error e = {0};
    struct kopi_tokenizer *t;
    memset(text, 'a', 257);
    struct kopi_gguf *g = open_source(&(struct source){"llama", PIECES(p)});
    ck_assert_int_eq(kopi__tokenizer_new(g, &t, &e), KOPI_E_MODEL);
    ck_assert_msg(strstr(e.text, "t.gguf: tokenizer.ggml.tokens: special token 1 has 257 bytes; at most 256"), "%s",
                  e.text);
    kopi__gguf_close(g);
    text[256] = 0;
    drop(load((struct source){"llama", PIECES(p)}));
}
END_TEST

/* Row 17, the vocabulary's side: no text spells a control or byte token, whatever pieces and rules there are. */
START_TEST(text_never_spells_a_control_token)
{
    static const struct piece p[] = {{"<unk>", UNK}, {"<s>", C}, {"</s>", C}, {"<s", N},   {"<", N},     {"s", N},
                                     {">", N},       {"<0", N},  {"<0x", N},  {"<0x4", N}, {"<0x41", N}, {"\x01", C},
                                     {"0", N},       {"x", N},   {"4", N},    {"1", N}};
    struct model m = load((struct source){"llama", PIECES(p)});
    EXPECT(m, "<s>", 0, "<s", ">");
    EXPECT(m, "<s>", KOPI__TOK_PARSE_SPECIAL, "<s>");
    EXPECT(m, "<0x41>", 0, "<0x41", ">");
    EXPECT(m, "A\x01", 0, "<0x41>", "<0x01>");
    drop(m);

    static const struct piece q[] = {{"<|>", C}, {"<|", N}};
    static const char *const rules[] = {"< |", "<| >"};
    m = load((struct source){"gpt2", PIECES(q), MERGES(rules)});
    EXPECT(m, "<|>", 0, "<|", ">");
    EXPECT(m, "a<|>", KOPI__TOK_PARSE_SPECIAL, "a", "<|>");
    drop(m);
}
END_TEST

/* Phi-3's special tokens take the white space behind them along, but for three. */
START_TEST(white_space_behind_special_tokens)
{
    static const struct piece p[] = {{"<unk>", UNK},       {"<s>", C}, {"<|user|>", C},
                                     {"<|endoftext|>", C}, {"h", N},   {SP, N}};
    struct model m = load((struct source){"llama", "microsoft Phi-3 mini", PIECES(p)});
    EXPECT(m, "<|user|>\n\t h<|endoftext|> h<|user|> ", KOPI__TOK_PARSE_SPECIAL, "<|user|>", "h", "<|endoftext|>", SP,
           "h", "<|user|>");
    EXPECT(m, "<|user|> <|user|>", KOPI__TOK_PARSE_SPECIAL, "<|user|>", "<|user|>");
    drop(m);
    m = load((struct source){"llama", "phi-4", PIECES(p)});
    EXPECT(m, "<|user|>\nh", KOPI__TOK_PARSE_SPECIAL, "<|user|>", "<0x0A>", "h");
    drop(m);
}
END_TEST

/* ---- ends of generation ------------------------------------------------------------------------------------------ */

static bool ends(struct model m, const char *text)
{
    return kopi__is_eog(m.t, kopi__token_find(m.t, text, strlen(text)));
}

START_TEST(ends_of_families)
{
    static const struct piece harmony[] = {{"<|return|>", C}, {"<|call|>", C}, {"<|end|>", C}};
    struct model m = load((struct source){"gpt2", PIECES(harmony)});
    ck_assert(ends(m, "<|return|>") && ends(m, "<|call|>"));
    ck_assert(!ends(m, "<|end|>")); /* only a channel of the answer */
    drop(m);
    static const struct piece phi[] = {
        {"<|end|>", C}, {"<|call|>", N}, {"<|return|>", N}, {"<|eot|>", U}, {"<|file_sep|>", C}};
    m = load((struct source){"gpt2", PIECES(phi)});
    ck_assert(ends(m, "<|end|>") && ends(m, "<|eot|>") && ends(m, "<|file_sep|>"));
    ck_assert(!ends(m, "<|call|>") && !ends(m, "<|return|>"));
    drop(m);
}
END_TEST

/* ---- back to text ------------------------------------------------------------------------------------------------ */

/* The added space goes with it also behind a BOS that isn't shown; at once and streamed alike. */
START_TEST(added_space_behind_a_hidden_bos)
{
    static const struct piece p[] = {{"<unk>", UNK}, {"<s>", C}, {"</s>", C}, {SP "h", N}, {SP, N}, {"h", N}};
    static const char *const texts[] = {"h", " h", "h h", "", " ", "\xc3\xa9"};
    struct model m = load((struct source){"llama", PIECES(p), .space_prefix = true});
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        size_t n, len;
        char *text;
        struct kopi_detok d = {0};
        struct kopi_buf b = KOPI_BUF_INIT;
        int32_t *ids = encode(m, texts[i], strlen(texts[i]), KOPI__TOK_ADD_SPECIAL, &n);
        ck_assert(n && ids[0] == 1);
        ck_assert_int_eq(kopi__detokenize(m.t, ids, n, false, &text, &len, NULL), KOPI_OK);
        ck_assert_str_eq(text, texts[i]);
        for (size_t k = 0; k < n; k++) ck_assert(kopi__detok_push(&d, m.t, ids[k], false, &b));
        ck_assert(kopi__detok_flush(&d, &b) && b.len == len && (!len || !memcmp(b.data, text, len)));
        kopi__buf_free(&b);
        kopi__free(text);
        kopi__free(ids);
    }
    drop(m);
}
END_TEST

/* ---- time, cancelling, memory ------------------------------------------------------------------------------------ */

static const struct piece spm_pieces[] = {{"<unk>", UNK}, {"<s>", C}, {"x", N},  {"xx", N},
                                          {"xxxx", N},    {SP, N},    {SP SP, N}};
static const struct piece bpe_pieces[] = {{"<s>", C}, {"xx", N}, {"xxxx", N}, {"xxxxxxxx", N}, {"--", N}};
static const char *const bpe_merges[] = {"x x", "xx xx", "xxxx xxxx", "- -"};

static struct model either(int spm)
{
    return spm ? load((struct source){"llama", PIECES(spm_pieces)})
               : load((struct source){"gpt2", PIECES(bpe_pieces), MERGES(bpe_merges)});
}

/* Row 21: 16 times the text takes about 16 times as long (20 with the logarithm); a quadratic loop would take 256
 * times. */
START_TEST(time_grows_with_the_text)
{
    static const char *const units[] = {"x", "-", " ", "\xe4\xb8\xad", "{\"x\":1,", "<s>", "xx "};
    struct model m = either(_i);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t len = strlen(units[u]), n;
        double best[2] = {1e9, 1e9};
        for (int big = 0; big < 2; big++)
            for (int round = 0; round < 3; round++) {
                size_t total = len * (big ? 131072 : 8192);
                char *text = malloc(total);
                for (size_t i = 0; i < total; i += len) memcpy(text + i, units[u], len);
                double start = cpu_seconds();
                int32_t *ids = encode(m, text, total, KOPI__TOK_PARSE_SPECIAL, &n);
                double s = cpu_seconds() - start;
                if (s < best[big]) best[big] = s;
                kopi__free(ids);
                free(text);
            }
        ck_assert_msg(best[1] < best[0] * 80 + 0.05, "\"%s\": %g s, then %g s for 16 times as much", units[u], best[0],
                      best[1]);
    }
    drop(m);
}
END_TEST

static int after_some(void *ctx)
{
    int *left = ctx;
    return (*left)-- <= 0;
}

START_TEST(cancelled_between_short_words)
{
    struct model m = either(_i);
    size_t len = 1 << 20, n;
    char *text = malloc(len);
    for (size_t i = 0; i < len; i++) text[i] = i % 3 ? 'x' : ' ';
    int32_t *ids;
    kopi_error e;
    int polls = 4;
    ck_assert_int_eq(kopi__tokenize(m.t, text, len, 0, &ids, &n, after_some, &polls, &e), KOPI_E_CANCELLED);
    ck_assert_int_eq(polls, -1);
    ck_assert_ptr_null(ids);
    free(text);
    drop(m);
}
END_TEST

/* Every allocation in turn fails: a clean refusal each time, until none is left to fail. */
START_TEST(short_of_memory)
{
    struct kopi_gguf *g = open_source(_i ? &(struct source){"llama", "phi-3", PIECES(spm_pieces)}
                                         : &(struct source){"gpt2", "phi-3", PIECES(bpe_pieces), MERGES(bpe_merges)});
    const struct kopi_segment seg[] = {{"<s>x xx\xff", 8, 1}, {"\xed\xa0\x80 <s>", 7, 0}};
    uint64_t fail = 1;
    for (bool done = false; !done; fail++) {
        struct kopi_tokenizer *t = NULL;
        int32_t *ids = NULL;
        char *text = NULL;
        size_t n = 0, len;
        ck_assert_uint_lt(fail, 1000);
        kopi__mem_fail_at(fail);
        kopi_status s = kopi__tokenizer_new(g, &t, NULL);
        if (s == KOPI_OK) s = kopi__tokenize_segments(t, seg, 2, KOPI__TOK_ADD_SPECIAL, &ids, &n, NULL, NULL, NULL);
        if (s == KOPI_OK) s = kopi__detokenize(t, ids, n, true, &text, &len, NULL);
        kopi__mem_fail_at(0);
        ck_assert(s == KOPI_OK || s == KOPI_E_NOMEM);
        ck_assert(s == KOPI_OK || !text);
        done = s == KOPI_OK;
        kopi__free(text);
        kopi__free(ids);
        kopi__tokenizer_free(t);
    }
    ck_assert_uint_gt(fail, 10);
    kopi__gguf_close(g);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tokenizer");
    tcase_add_test(t, families_split_as_published);
    tcase_add_test(t, longer_ones_are_cut_out_first);
    tcase_add_test(t, special_tokens_equal_the_definition);
    tcase_add_test(t, runs_of_nested_special_tokens);
    tcase_add_test(t, special_tokens_have_a_length);
    tcase_add_test(t, text_never_spells_a_control_token);
    tcase_add_test(t, white_space_behind_special_tokens);
    tcase_add_test(t, ends_of_families);
    tcase_add_test(t, added_space_behind_a_hidden_bos);
    tcase_add_loop_test(t, time_grows_with_the_text, 0, 2);
    tcase_add_loop_test(t, cancelled_between_short_words, 0, 2);
    tcase_add_loop_test(t, short_of_memory, 0, 2);
    tcase_set_timeout(t, 120);
    Suite *s = suite_create("tokenizer");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
