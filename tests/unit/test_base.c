/* Unit tests of core/base. */
#include "base/buf.h"
#include "base/error.h"
#include "base/fpstate.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/sha256.h"
#include "base/sys.h"
#include "base/team.h"
#include "base/utf8.h"
#include <check.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(error_is_one_line)
{
    kopi_error e;
    ck_assert_int_eq(kopi__fail(&e, KOPI_E_MODEL, "key %s", "a\nb\x1b[0m"), KOPI_E_MODEL);
    ck_assert_str_eq(e.text, "key a?b?[0m");
    ck_assert_int_eq(kopi__fail_prefix(&e, "f.gguf"), KOPI_E_MODEL);
    ck_assert_str_eq(e.text, "f.gguf: key a?b?[0m");
    ck_assert_int_eq(kopi__fail(NULL, KOPI_E_IO, "x"), KOPI_E_IO);
}
END_TEST

START_TEST(checked_sizes)
{
    uint64_t v;
    ck_assert(kopi__mul(1u << 31, 1u << 31, &v) && v == 1ull << 62);
    ck_assert(!kopi__mul(1ull << 32, 1ull << 32, &v));
    ck_assert(!kopi__add(UINT64_MAX, 1, &v));
    ck_assert(kopi__pad(33, 32, &v) && v == 64);
    ck_assert(!kopi__pad(UINT64_MAX - 3, 32, &v));
    ck_assert_ptr_null(kopi__realloc_array(NULL, SIZE_MAX / 2, 4));
}
END_TEST

START_TEST(allocation_fails_at_n)
{
    kopi__mem_fail_at(2);
    void *p = kopi__alloc(8);
    ck_assert_ptr_nonnull(p);
    ck_assert_ptr_null(kopi__alloc(8));
    ck_assert_ptr_null(kopi__calloc(1, 8));
    kopi__mem_fail_at(0);
    kopi__free(p);
    p = kopi__alloc_aligned(100, 64);
    ck_assert_uint_eq((uintptr_t)p % 64, 0);
    kopi__free(p);
}
END_TEST

/* The vectors of the paper's appendix and of the authors' list, key 00 01 .. 0f, message 00 01 .. */
START_TEST(siphash)
{
    static const uint64_t key[2] = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
    unsigned char m[15];
    for (unsigned i = 0; i < sizeof m; i++) m[i] = (unsigned char)i;
    ck_assert_uint_eq(kopi__siphash(m, 15, key), 0xa129ca6149be45e5u);
    ck_assert_uint_eq(kopi__siphash(m, 0, key), 0x726fdb47dd0e0e31u);
    ck_assert_uint_eq(kopi__hash(m, 15), kopi__hash(m, 15));
    ck_assert_uint_ne(kopi__hash(m, 15), kopi__hash(m, 14));
}
END_TEST

static int stop(void *ctx) { return *(int *)ctx; }

/* FIPS 180-2, appendix B.1 and B.3. */
START_TEST(sha256_of_files)
{
    char path[] = "/tmp/kopi-base-XXXXXX", hex[65];
    kopi_error e;
    int fd = mkstemp(path), yes = 1;
    ck_assert(fd >= 0 && write(fd, "abc", 3) == 3);
    ck_assert_int_eq(kopi__sha256_file(path, hex, NULL, NULL, &e), KOPI_OK);
    ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    char a[1000];
    memset(a, 'a', sizeof a);
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(write(fd, a, sizeof a), sizeof a);
    ck_assert_int_eq(kopi__sha256_file(path, hex, NULL, NULL, &e), KOPI_OK);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    ck_assert_int_eq(kopi__sha256_file(path, hex, stop, &yes, &e), KOPI_E_CANCELLED);
    close(fd);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(kopi__sha256_file(path, hex, NULL, NULL, &e), KOPI_E_IO);
    ck_assert_ptr_nonnull(strstr(e.text, "No such file or directory"));
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert_int_eq(kopi__sha256_file(path, hex, NULL, NULL, &e), KOPI_E_IO);
    ck_assert_ptr_nonnull(strstr(e.text, "is not a regular file"));
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

START_TEST(numbers)
{
    int64_t i;
    uint64_t u;
    double d;
    static const char *const bad_i[] = {"", "-", "+1", " 1", "1 ", "1x", "0x10", "9223372036854775808", "1e3", "2.5"};
    for (size_t k = 0; k < sizeof bad_i / sizeof *bad_i; k++)
        ck_assert_msg(!kopi__parse_i64(bad_i[k], &i), "%s", bad_i[k]);
    ck_assert(kopi__parse_i64("-9223372036854775808", &i) && i == INT64_MIN);
    ck_assert(kopi__parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
    ck_assert(!kopi__parse_u64("18446744073709551616", &u) && !kopi__parse_u64("-1", &u));
    static const char *const bad_f[] = {"",      ".",  "nan", "inf",    "1e999",   "1,5",
                                        "0x1p3", "1e", "--1", "1e-400", "0.1e-999"};
    for (size_t k = 0; k < sizeof bad_f / sizeof *bad_f; k++)
        ck_assert_msg(!kopi__parse_f64(bad_f[k], &d), "%s", bad_f[k]);
    ck_assert(kopi__parse_f64("-0.25e1", &d) && d == -2.5);
    ck_assert(kopi__parse_size("8KiB", &u) && u == 8192);
    ck_assert(kopi__parse_size("2MB", &u) && u == 2000000);
    ck_assert(!kopi__parse_size("99999999999GiB", &u) && !kopi__parse_size("1kib", &u) && !kopi__parse_size("KiB", &u));
    char b[64];
    ck_assert_str_eq(kopi__format_f32(0.1f, b, sizeof b), "0.1");
    ck_assert_str_eq(kopi__format_f64(0.1, b, sizeof b), "0.1");
    ck_assert_str_eq(kopi__format_f64(10000, b, sizeof b), "10000");
    ck_assert_str_eq(kopi__format_f64(1e20, b, sizeof b), "1e+20");
    ck_assert_str_eq(kopi__format_fixed(2.345678, 2, b, sizeof b), "2.35");
    ck_assert(kopi__parse_f64("0.0e-400", &d) && d == 0);
    ck_assert_str_eq(kopi__format_fixed(1.25e70, 4, b, sizeof b), "1.2500e+70");
    ck_assert_str_eq(kopi__format_bytes(397ull << 20, b, sizeof b), "397.0 MiB");
}
END_TEST

/* A decimal comma in the locale changes nothing. */
START_TEST(numbers_ignore_locale)
{
    char b[64];
    double d;
    if (!setlocale(LC_ALL, "de_DE.UTF-8")) setlocale(LC_ALL, "");
    ck_assert(kopi__parse_f64("1.5", &d) && d == 1.5);
    ck_assert_str_eq(kopi__format_f64(1.5, b, sizeof b), "1.5");
}
END_TEST

START_TEST(buffer_grows)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    for (int i = 0; i < 1000; i++) ck_assert(kopi__buf_fmt(&b, "%03d", i));
    ck_assert_uint_eq(b.len, 3000);
    ck_assert_int_eq(memcmp(b.data + 2997, "999", 4), 0);
    char *s = kopi__buf_take(&b);
    ck_assert_ptr_nonnull(s);
    kopi__free(s);
    ck_assert(!kopi__buf_reserve(&b, SIZE_MAX) && b.failed);
    ck_assert_ptr_null(kopi__buf_take(&b));
}
END_TEST

START_TEST(utf8)
{
    static const struct { const char *s; size_t n, want, tail;
    } t[] = {{"a", 1, 1, 0},
             {"\xc3\xa9", 2, 2, 0},
             {"\xe4\xb8\x80", 3, 3, 0},
             {"\xf0\x9f\x98\x80", 4, 4, 0},
             {"\xf0\x9f", 2, 0, 2},
             {"\xf0\x9f\x98", 3, 0, 3},
             {"\xc0\x80", 2, 0, 0},
             {"\xed\xa0\x80", 3, 0, 0},
             {"\xed\xa0", 2, 0, 0},
             {"\xf4\x90\x80\x80", 4, 0, 0},
             {"\xf4\x90", 2, 0, 0},
             {"\x80", 1, 0, 0},
             {"\xe0\x80\x80", 3, 0, 0},
             {"\xf5", 1, 0, 0},
             {"\xe4", 1, 0, 1},
             {"\xe4\xb8", 2, 0, 2}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        uint32_t cp = 0;
        ck_assert_msg(kopi__utf8_decode(t[i].s, t[i].n, &cp) == t[i].want, "case %zu", i);
        ck_assert_msg(kopi__utf8_incomplete_tail(t[i].s, t[i].n) == t[i].tail, "tail %zu", i);
    }
    for (uint32_t cp = 0; cp < 0x110000; cp += 37) {
        if (cp >= 0xd800 && cp < 0xe000) continue;
        char b[4];
        uint32_t back;
        size_t n = kopi__utf8_encode(cp, b);
        ck_assert(kopi__utf8_decode(b, n, &back) == n && back == cp);
    }
}
END_TEST

struct team_case { _Atomic int calls; _Atomic int order[64]; _Atomic int wrong; kopi_status fail_rank2; };

static kopi_status barrier_user(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    struct team_case *c = arg;
    c->calls++;
    for (int step = 0; step < 50; step++) {
        c->order[step]++;
        kopi_status s = kopi__team_barrier(team, KOPI_OK);
        if (s != KOPI_OK || c->order[step] != (int)nth) c->wrong++;
    }
    return ith == 2 ? c->fail_rank2 : KOPI_OK;
}
static kopi_status barrier_fails(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    (void)arg, (void)nth;
    return kopi__team_barrier(team, ith == 1 ? KOPI_E_RANGE : KOPI_OK);
}
static kopi_status nested(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    (void)ith, (void)nth, (void)team;
    return kopi__team_run(arg, barrier_user, NULL, 0);
}

START_TEST(team_runs_and_meets)
{
    for (unsigned n = 1; n <= 5; n++) {
        struct kopi_team_pool *t;
        ck_assert_int_eq(kopi__team_new(n, &t, NULL), KOPI_OK);
        ck_assert_uint_eq(kopi__team_size(t), n);
        for (int k = 0; k < 20; k++) {
            struct team_case c = {0};
            ck_assert_int_eq(kopi__team_run(t, barrier_user, &c, 0), KOPI_OK);
            ck_assert_int_eq(c.calls, (int)n);
            ck_assert_int_eq(c.wrong, 0);
        }
        struct team_case c = {.fail_rank2 = KOPI_E_IO};
        ck_assert_int_eq(kopi__team_run(t, barrier_user, &c, 0), n > 2 ? KOPI_E_IO : KOPI_OK);
        ck_assert_int_eq(kopi__team_run(t, barrier_fails, NULL, 0), n > 1 ? KOPI_E_RANGE : KOPI_OK);
        ck_assert_int_eq(kopi__team_run(t, nested, t, 0), KOPI_E_INVALID);
        struct team_case one = {0};
        ck_assert_int_eq(kopi__team_run(t, barrier_user, &one, 1), KOPI_OK);
        ck_assert_int_eq(one.calls, 1);
        kopi__team_free(t);
    }
    kopi_error e;
    struct kopi_team_pool *t;
    ck_assert_int_eq(kopi__team_new(0, &t, &e), KOPI_E_INVALID);
    ck_assert_int_eq(kopi__team_new(1000000, &t, &e), KOPI_E_INVALID);
}
END_TEST

#if defined(__x86_64__)
static kopi_status read_fp(void *arg, uint32_t ith, uint32_t nth, kopi_team *team)
{
    (void)nth, (void)team;
    ((uint64_t *)arg)[ith] = kopi__fp_get();
    return KOPI_OK;
}
/* A caller with denormals switched off still gets workers with the default state, and keeps its own. */
START_TEST(team_floating_point)
{
    struct kopi_team_pool *t;
    uint64_t seen[3] = {0}, odd = kopi__fp_default() | 0x8040;
    ck_assert_int_eq(kopi__team_new(3, &t, NULL), KOPI_OK);
    kopi__fp_set(odd);
    kopi_status s = kopi__team_run(t, read_fp, seen, 0);
    uint64_t after = kopi__fp_get();
    kopi__fp_set(kopi__fp_default());
    ck_assert_int_eq(s, KOPI_OK);
    ck_assert_uint_eq(after, odd);
    for (int i = 0; i < 3; i++) ck_assert_uint_eq(seen[i], kopi__fp_default());
    kopi__team_free(t);
}
END_TEST
#endif

START_TEST(system_limits)
{
    char why[128];
    unsigned n = kopi__default_threads(why, sizeof why);
    ck_assert_uint_ge(n, 1);
    ck_assert_uint_le(n, kopi__allowed_cpus());
    ck_assert(strstr(why, "allowed CPUs"));
    ck_assert_uint_gt(kopi__available_memory(), 1 << 20);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("base");
    tcase_add_test(t, error_is_one_line);
    tcase_add_test(t, checked_sizes);
    tcase_add_test(t, allocation_fails_at_n);
    tcase_add_test(t, siphash);
    tcase_add_test(t, sha256_of_files);
    tcase_add_test(t, numbers);
    tcase_add_test(t, numbers_ignore_locale);
    tcase_add_test(t, buffer_grows);
    tcase_add_test(t, utf8);
    tcase_add_test(t, team_runs_and_meets);
#if defined(__x86_64__)
    tcase_add_test(t, team_floating_point);
#endif
    tcase_add_test(t, system_limits);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("base");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
