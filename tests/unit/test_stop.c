/* Unit tests of core/run/stop: what is delivered, held back and cut, for every way to cut the stream. */
#include "base/mem.h"
#include "run/stop.h"
#include <check.h>
#include <stdlib.h>
#include <string.h>

struct stop_case {
    const char *stops[4];
    const char *text, *want;
    bool matched;
};

static const struct stop_case cases[] = {
    {{"own fox"}, "The quick brown fox", "The quick br", true},
    {{"own fox"}, "The quick brown", "The quick brown", false},
    {{"own fox"}, "The quick brown fo", "The quick brown fo", false},
    {{"ab", "b"}, "aaab", "aa", true}, /* both complete at once: the longest */
    {{"b", "ab"}, "aaab", "aa", true},
    {{"aab"}, "aaab", "a", true}, /* a match that starts inside a failed one */
    {{"aab"}, "aaaa", "aaaa", false},
    {{"abcd", "bc"}, "abcd", "a", true}, /* the first to complete */
    {{"\n"}, "\nnever", "", true},
    {{"abab", "bb"}, "ababb", "", true},
    {{"abac"}, "ababac", "ab", true},
    {{"\xc3\xa9"}, "caf\xc3\xa9 noir", "caf", true},
    {{"\xc3\xa9"}, "caf\xc3\xa8 noir", "caf\xc3\xa8 noir", false},
    {{"\xe6\x97\xa5\xe6\x9c\xac"},
     "\xe6\x97\xa5\xe6\x9c\xaa\xe6\x97\xa5\xe6\x9c\xac",
     "\xe6\x97\xa5\xe6\x9c\xaa",
     true},
    {{NULL}, "everything", "everything", false},
};

static size_t count(const char *const *s)
{
    size_t n = 0;
    while (n < 4 && s[n]) n++;
    return n;
}

/* The longest tail of s that is a proper prefix of a stop string, by the definition. */
static size_t held_by_definition(const struct stop_case *c, const char *s, size_t n)
{
    for (size_t k = n; k > 0; k--)
        for (size_t i = 0; i < count(c->stops); i++)
            if (k < strlen(c->stops[i]) && !memcmp(s + n - k, c->stops[i], k)) return k;
    return 0;
}

/* Every piece size: the same text, and after each push exactly the held tail is missing. */
START_TEST(cuts_the_same_everywhere)
{
    const struct stop_case *c = &cases[_i];
    for (size_t piece = 1; piece <= strlen(c->text); piece++) {
        struct kopi_stop m;
        struct kopi_buf out = KOPI_BUF_INIT;
        bool matched = false;
        ck_assert_int_eq(kopi__stop_init(&m, c->stops, count(c->stops), NULL), KOPI_OK);
        for (size_t at = 0, n; at < strlen(c->text) && !matched; at += n) {
            n = strlen(c->text) - at < piece ? strlen(c->text) - at : piece;
            ck_assert(kopi__stop_push(&m, c->text + at, n, &out, &matched));
            if (!matched) ck_assert_uint_eq(out.len, at + n - held_by_definition(c, c->text, at + n));
        }
        ck_assert_int_eq(matched, c->matched);
        if (!matched) ck_assert(kopi__stop_flush(&m, &out));
        ck_assert_uint_eq(m.held.len, 0);
        ck_assert_uint_eq(out.len, strlen(c->want));
        ck_assert(!out.len || !memcmp(out.data, c->want, out.len));
        kopi__buf_free(&out);
        kopi__stop_free(&m);
    }
}
END_TEST

START_TEST(refuses_bad_stops)
{
    struct kopi_stop m;
    kopi_error e;
    ck_assert_int_eq(kopi__stop_init(&m, (const char *[]){"a", ""}, 2, &e), KOPI_E_INVALID);
    ck_assert_str_eq(e.text, "stop string 1 is empty");
    kopi__stop_free(&m);
    ck_assert_int_eq(kopi__stop_init(&m, (const char *[]){"\x98\x80"}, 1, &e), KOPI_E_INVALID);
    ck_assert_str_eq(e.text, "stop string 0 is not UTF-8");
    kopi__stop_free(&m);
    char *big = kopi__alloc(70000);
    memset(big, 'a', 69999);
    big[69999] = 0;
    ck_assert_int_eq(kopi__stop_init(&m, (const char *[]){big}, 1, &e), KOPI_E_INVALID);
    kopi__stop_free(&m);
    kopi__free(big);
}
END_TEST

/* A long stop of one letter against a long run of it: linear, not quadratic. */
START_TEST(linear_time)
{
    size_t n = 60000, total = 4000000;
    char *stop = kopi__alloc(n + 1), *text = kopi__alloc(1000);
    memset(stop, 'a', n);
    stop[n - 1] = 'b';
    stop[n] = 0;
    memset(text, 'a', 1000);
    struct kopi_stop m;
    struct kopi_buf out = KOPI_BUF_INIT;
    bool matched;
    ck_assert_int_eq(kopi__stop_init(&m, (const char *[]){stop}, 1, NULL), KOPI_OK);
    for (size_t i = 0; i < total; i += 1000) ck_assert(kopi__stop_push(&m, text, 1000, &out, &matched) && !matched);
    ck_assert_uint_eq(out.len, total - (n - 1));
    ck_assert(kopi__stop_push(&m, "b", 1, &out, &matched) && matched);
    ck_assert_uint_eq(out.len, total - (n - 1));
    kopi__buf_free(&out);
    kopi__stop_free(&m);
    kopi__free(stop);
    kopi__free(text);
}
END_TEST

START_TEST(out_of_memory)
{
    for (uint64_t n = 1;; n++) {
        struct kopi_stop m;
        struct kopi_buf out = KOPI_BUF_INIT;
        bool matched;
        kopi__mem_fail_at(n);
        kopi_status st = kopi__stop_init(&m, (const char *[]){"abc", "bd"}, 2, NULL);
        bool ok = st == KOPI_OK && kopi__stop_push(&m, "zzab", 4, &out, &matched) && kopi__stop_flush(&m, &out);
        kopi__mem_fail_at(0);
        kopi__stop_free(&m);
        kopi__buf_free(&out);
        if (ok) break;
        ck_assert(st == KOPI_OK || st == KOPI_E_NOMEM);
        ck_assert_uint_lt(n, 20);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stop");
    tcase_add_loop_test(t, cuts_the_same_everywhere, 0, sizeof cases / sizeof *cases);
    tcase_add_test(t, refuses_bad_stops);
    tcase_add_test(t, linear_time);
    tcase_add_test(t, out_of_memory);
    Suite *s = suite_create("stop");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
