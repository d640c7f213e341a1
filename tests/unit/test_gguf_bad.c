/* Malformed GGUF files: each is refused with a message that names the fault. The bytes lie in a block of exactly their
 * size, so that a sanitizer sees a read past the end. */
#include "gguf/reader.h"
#include "gguf_build.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/sys.h"

static const uint64_t four[] = {4};

static kopi_status open_bytes(const void *bytes, size_t n, struct kopi_gguf **g, kopi_error *e)
{
    void *exact = malloc(n ? n : 1);
    ck_assert_ptr_nonnull(exact);
    memcpy(exact, bytes, n);
    uint64_t before = kopi__now_ns();
    kopi_status st = kopi__gguf_open_memory(exact, n, "f.gguf", g, e);
    ck_assert_uint_lt(kopi__now_ns() - before, 1000000000);
    if (st == KOPI_OK) {
        kopi__gguf_close(*g);
    } else {
        ck_assert_ptr_null(*g);
        ck_assert_int_eq(st, e->code);
    }
    free(exact);
    return st;
}

/* Frees b. */
static void refused(struct kopi_buf *b, const char *text)
{
    struct kopi_gguf *g;
    kopi_error e;
    kopi_status st = open_bytes(b->data ? b->data : "", b->len, &g, &e);
    ck_assert_msg(st == KOPI_E_MODEL, "accepted (%d), expected: %s", st, text);
    ck_assert_msg(!strncmp(e.text, "f.gguf: ", 8) && strstr(e.text, text), "\"%s\" instead of \"%s\"", e.text, text);
    kopi__buf_free(b);
}

static void accepted(struct kopi_buf *b)
{
    struct kopi_gguf *g;
    kopi_error e = {0};
    ck_assert_msg(open_bytes(b->data, b->len, &g, &e) == KOPI_OK, "%s", e.text);
    kopi__buf_free(b);
}

/* One tensor of that shape, type and offset, with n bytes of data. */
static struct kopi_buf with_tensor(const char *name, uint32_t n_dims, const uint64_t *dims, uint32_t dtype,
                                   uint64_t offset, size_t n)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 1, 0);
    gguf_tensor(&b, name, n_dims, dims, dtype, offset);
    gguf_pad(&b, 32);
    gguf_zero(&b, n);
    return b;
}

static void tensor_refused(uint32_t n_dims, const uint64_t *dims, uint32_t dtype, uint64_t offset, const char *text)
{
    struct kopi_buf b = with_tensor("t", n_dims, dims, dtype, offset, 64);
    refused(&b, text);
}

/* Header for n_kv keys, the first of that type; its value follows. */
static struct kopi_buf with_key(uint64_t n_kv, uint32_t type)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 0, n_kv);
    gguf_key(&b, "k", type);
    return b;
}

START_TEST(good_control)
{
    struct kopi_buf b = with_tensor("t", 1, four, KOPI_DTYPE_F32, 0, 16);
    accepted(&b);
    gguf_header(&b, 2, 0, 1);
    gguf_kv_str(&b, "general.architecture", "llama");
    accepted(&b);
}
END_TEST

static void alignment(uint32_t value, const char *text)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 1, 1);
    gguf_kv_u32(&b, "general.alignment", value);
    gguf_tensor(&b, "t", 1, four, KOPI_DTYPE_F32, 0);
    gguf_pad(&b, 64);
    gguf_zero(&b, 32);
    if (text)
        refused(&b, text);
    else
        accepted(&b);
}

START_TEST(bad_alignment)
{
    static const uint32_t wrong[] = {0, 1, 3, 4, 33, 1u << 21, 0x80000000u, 0xffffffffu};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[64];
        snprintf(text, sizeof text, "\"general.alignment\" is %u, it must be a power of two from 8", wrong[i]);
        alignment(wrong[i], text);
    }
    alignment(8, NULL);
    alignment(64, NULL);
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 0, 1);
    gguf_kv_str(&b, "general.alignment", "32");
    refused(&b, "\"general.alignment\" is not a natural number (its type is string)");
    gguf_header(&b, 3, 0, 1);
    gguf_key(&b, "general.alignment", KOPI_GGUF_U64);
    gguf_u64(&b, 32);
    refused(&b, "\"general.alignment\" has type u64, it must be u32");
    gguf_header(&b, 3, 0, 1);
    gguf_array(&b, "general.alignment", KOPI_GGUF_U32, 1);
    gguf_u32(&b, 32);
    refused(&b, "its type is array");
    gguf_header(&b, 3, 0, 2);
    gguf_kv_u32(&b, "general.alignment", 32);
    gguf_kv_u32(&b, "general.alignment", 64);
    refused(&b, "\"general.alignment\" appears twice");
}
END_TEST

START_TEST(bad_shapes)
{
    static const uint64_t zero_last[] = {1, 0}, zero[] = {0}, ones[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1},
                          minus[] = {UINT64_MAX};
    static const uint64_t wraps[] = {1ull << 32, 1ull << 32}, q4[] = {33}, k[] = {128, 2};
    tensor_refused(2, zero_last, 0, 0, "dimension 1 of tensor \"t\" is 0");
    tensor_refused(1, zero, 0, 0, "dimension 0 of tensor \"t\" is 0");
    tensor_refused(0, zero, 0, 0, "has 0 dimensions");
    tensor_refused(5, ones, 0, 0, "has 5 dimensions, it must have 1 to 4");
    tensor_refused(9, ones, 0, 0, "has 9 dimensions");
    tensor_refused(1, minus, 0, 0, "dimension 0 of tensor \"t\" is -1");
    tensor_refused(2, wraps, 0, 0, "does not fit in 64 bits");
    tensor_refused(1, q4, KOPI_DTYPE_Q4_0, 0, "rows of 33 values, Q4_0 needs a multiple of 32");
    tensor_refused(2, k, KOPI_DTYPE_Q6_K, 0, "rows of 128 values, Q6_K needs a multiple of 256");
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 1, 0);
    gguf_str(&b, "t");
    gguf_u32(&b, UINT32_MAX);
    gguf_zero(&b, 64);
    refused(&b, "has 4294967295 dimensions");
}
END_TEST

START_TEST(size_that_pads_to_zero)
{
    static const uint64_t a[] = {64}, wraps[] = {4, (1u << 30) - 1, (1u << 30) + 1}; /* 2^64 - 16 bytes */
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 2, 0);
    gguf_tensor(&b, "a", 1, a, KOPI_DTYPE_F32, 0);
    gguf_tensor(&b, "b", 3, wraps, KOPI_DTYPE_F32, 256);
    gguf_pad(&b, 32);
    gguf_zero(&b, 256);
    refused(&b, "of the 18446744073709551600 bytes of tensor \"b\" are missing");
}
END_TEST

START_TEST(bad_places)
{
    static const uint64_t eight[] = {8};
    tensor_refused(1, four, 0, UINT64_MAX - 31,
                   "begins at offset 18446744073709551584 of the data, past its end at 64");
    tensor_refused(1, four, 0, 4096, "begins at offset 4096 of the data, past its end at 64");
    tensor_refused(1, four, 0, 1, "is at offset 1, not a multiple of the alignment 32");
    struct kopi_buf b = with_tensor("t", 1, four, KOPI_DTYPE_F32, 0, 15);
    refused(&b, "1 of the 16 bytes of tensor \"t\" are missing");
    gguf_header(&b, 3, 1, 0);
    gguf_tensor(&b, "t", 1, four, KOPI_DTYPE_F32, 0);
    refused(&b, "16 of the 16 bytes of tensor \"t\" are missing");
    static const uint64_t offsets[][2] = {{0, 0}, {32, 0}, {0, 32}};
    for (int i = 0; i < 3; i++) {
        gguf_header(&b, 3, 2, 0);
        gguf_tensor(&b, "a", 1, eight, KOPI_DTYPE_F64, offsets[i][0]); /* 64 bytes */
        gguf_tensor(&b, "b", 1, eight, KOPI_DTYPE_F64, offsets[i][1]);
        gguf_pad(&b, 32);
        gguf_zero(&b, 128);
        refused(&b, "overlap at byte");
    }
}
END_TEST

START_TEST(bad_lengths)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 0, 1);
    gguf_u64(&b, UINT64_MAX);
    gguf_zero(&b, 32);
    refused(&b, "key 1 of 1 runs past the end");
    b = with_key(1, KOPI_GGUF_STRING);
    gguf_u64(&b, 1ull << 63);
    refused(&b, "the value of key \"k\" (1 x string) runs past the end");
    static const struct { uint32_t type; uint64_t n; } arrays[] = {
        {KOPI_GGUF_U32, UINT64_MAX / 64}, {KOPI_GGUF_F64, (1ull << 61) + 1}, {KOPI_GGUF_STRING, UINT64_MAX},
        {KOPI_GGUF_STRING, 2},            {KOPI_GGUF_BOOL, 1ull << 63},      {KOPI_GGUF_U8, 9},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        gguf_header(&b, 3, 0, 1);
        gguf_array(&b, "k", arrays[i].type, arrays[i].n);
        gguf_zero(&b, 8);
        refused(&b, "runs past the end");
    }
    b = with_key(1, KOPI_GGUF_U64);
    gguf_zero(&b, 7);
    refused(&b, "the value of key \"k\" (1 x u64) runs past the end");
}
END_TEST

START_TEST(bad_value_types)
{
    struct kopi_buf b = with_key(1, KOPI_GGUF_ARRAY);
    for (int i = 0; i < 20000; i++) {
        gguf_u32(&b, KOPI_GGUF_ARRAY);
        gguf_u64(&b, 1);
    }
    refused(&b, "key \"k\" is an array of arrays");
    gguf_header(&b, 3, 0, 2);
    gguf_array(&b, "k", 13, 2); /* before a key that is needed */
    gguf_zero(&b, 8);
    gguf_kv_str(&b, "general.architecture", "llama");
    refused(&b, "key \"k\" has the unknown value type 13");
    b = with_key(1, 255);
    gguf_zero(&b, 8);
    refused(&b, "key \"k\" has the unknown value type 255");
    b = with_key(1, KOPI_GGUF_BOOL);
    ck_assert(kopi__buf_char(&b, 2));
    refused(&b, "key \"k\" holds the bool 2");
    gguf_header(&b, 3, 0, 1);
    gguf_array(&b, "k", KOPI_GGUF_BOOL, 3);
    ck_assert(kopi__buf_add(&b, "\0\1\377", 3));
    refused(&b, "key \"k\" holds the bool 255");
}
END_TEST

START_TEST(bad_counts)
{
    static const uint64_t n[][2] = {{0, 1ull << 63}, {1ull << 60, 0}, {UINT64_MAX, 0}, {0, UINT64_MAX}};
    struct kopi_buf b = KOPI_BUF_INIT;
    for (int i = 0; i < 4; i++) {
        gguf_header(&b, 3, n[i][0], n[i][1]);
        refused(&b, "more than its 0 bytes can hold");
    }
    gguf_header(&b, 3, 0, 3); /* three are possible by size, one is there */
    gguf_kv_str(&b, "general.architecture", "llama");
    refused(&b, "key 2 of 3 runs past the end");
    gguf_header(&b, 3, 2, 0);
    gguf_tensor(&b, "t", 1, four, 0, 0);
    gguf_pad(&b, 32);
    gguf_zero(&b, 32); /* zeros taken as the second entry */
    refused(&b, "tensor 2 has an empty name");
}
END_TEST

START_TEST(duplicates)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 0, 2);
    gguf_kv_str(&b, "general.architecture", "llama");
    gguf_kv_str(&b, "general.architecture", "qwen2");
    refused(&b, "key \"general.architecture\" appears twice");
    gguf_header(&b, 3, 2, 0);
    gguf_tensor(&b, "t", 1, four, 0, 0);
    gguf_tensor(&b, "t", 1, four, 0, 32);
    gguf_pad(&b, 32);
    gguf_zero(&b, 64);
    refused(&b, "tensor \"t\" appears twice");
}
END_TEST

/* A hundred thousand keys, the last one twice: no comparison of all pairs. */
START_TEST(duplicate_among_many)
{
    enum { N = 100000 };
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 0, N);
    for (int i = 0; i < N; i++) {
        char key[32];
        snprintf(key, sizeof key, "key.%d", i == N - 1 ? 0 : i);
        gguf_kv_u32(&b, key, 1);
    }
    refused(&b, "key \"key.0\" appears twice");
}
END_TEST

START_TEST(bad_names)
{
    char name[65];
    memset(name, 'n', 64);
    name[64] = 0;
    struct kopi_buf b = with_tensor(name, 1, four, 0, 0, 32);
    refused(&b, "has 64 bytes, at most 63 are allowed");
    b = with_tensor(name + 1, 1, four, 0, 0, 32);
    accepted(&b);
    b = with_tensor("", 1, four, 0, 0, 32);
    refused(&b, "tensor 1 has an empty name");
    gguf_header(&b, 3, 1, 0);
    gguf_bytes(&b, "a\0b", 3);
    gguf_zero(&b, 64);
    refused(&b, "the name of tensor 1 (\"a\"...) contains a zero byte");
    gguf_header(&b, 3, 0, 1);
    gguf_kv_u32(&b, "", 1);
    refused(&b, "key 1 is empty");
    gguf_header(&b, 3, 0, 1);
    gguf_bytes(&b, "a\0b", 3);
    gguf_zero(&b, 64);
    refused(&b, "key 1 (\"a\"...) contains a zero byte");
    gguf_header(&b, 3, 0, 1);
    gguf_u64(&b, 65536);
    gguf_zero(&b, 70000);
    refused(&b, "key 1 has 65536 bytes, at most 65535");
    gguf_header(&b, 3, 0, 2);
    gguf_kv_u32(&b, "a\nb\x1b[31m", 1);
    gguf_kv_u32(&b, "a\nb\x1b[31m", 1);
    refused(&b, "key \"a?b?[31m\" appears twice");
}
END_TEST

START_TEST(bad_headers)
{
    static const struct { const char *bytes; size_t n; const char *text; } cases[] = {
        {"", 0, "is empty"},
        {"G", 1, "ends inside the header, after 1 bytes"},
        {"GGU", 3, "ends inside the header, after 3 bytes"},
        {"GGUF", 4, "ends inside the header, after 4 bytes"},
        {"GGUF\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 23, "ends inside the header, after 23 bytes"},
        {"GGUF\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "other byte order (GGUF version 3, big-endian)"},
        {"FUGG\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "other byte order"},
        {"GGUF\1\0\0\0\0\0\0\0\0\0\0\0", 16, "version 1 is not supported, only 2 and 3"},
        {"GGUF\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "version 0 is not supported"},
        {"GGUF\x63\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24, "version 99 is not supported"},
        {"tjgg\3\0\0\0", 8, "GGJT"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, "Git LFS pointer"},
        {"<!DOCTYPE html>", 15, "web page"},
        {"\x7f" "ELF\2\1\1", 7, "is not a GGUF file: it begins with the bytes 7f 45 4c 46"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct kopi_buf b = KOPI_BUF_INIT;
        ck_assert(kopi__buf_add(&b, cases[i].bytes, cases[i].n));
        refused(&b, cases[i].text);
    }
}
END_TEST

START_TEST(bad_tensor_types)
{
    static const uint64_t row[] = {256};
    static const struct { uint32_t type; const char *text; } cases[] = {
        {4, "type 4 (Q4_2), which was removed"},   {5, "type 5 (Q4_3), which was removed"},
        {31, "type 31 (Q4_0_4_4), which was removed"}, {38, "type 38 (IQ4_NL_8_8), which was removed"},
        {1000, "type 1000, which neither"},        {KOPI_DTYPE_A8_32, "type 2147483649, which neither"},
        {UINT32_MAX, "type 4294967295, which neither"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) tensor_refused(1, row, cases[i].type, 0, cases[i].text);
}
END_TEST

/* A file with something of each kind. */
static struct kopi_buf full(void)
{
    static const uint64_t a[] = {32, 3}, c[] = {7};
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 3, 5);
    gguf_kv_str(&b, "general.architecture", "llama");
    gguf_kv_u32(&b, "general.alignment", 64);
    gguf_array(&b, "tokens", KOPI_GGUF_STRING, 3);
    gguf_str(&b, "a");
    gguf_str(&b, "");
    gguf_bytes(&b, "\0\377", 2);
    gguf_array(&b, "empty", KOPI_GGUF_F32, 0);
    gguf_array(&b, "bits", KOPI_GGUF_BOOL, 2);
    ck_assert(kopi__buf_add(&b, "\0\1", 2));
    gguf_tensor(&b, "a", 2, a, KOPI_DTYPE_Q8_0, 64); /* 102 bytes */
    gguf_tensor(&b, "b", 1, four, KOPI_DTYPE_F32, 0);
    gguf_tensor(&b, "c", 1, c, KOPI_DTYPE_I8, 192);
    gguf_pad(&b, 64);
    gguf_zero(&b, 192 + 7);
    return b;
}

START_TEST(every_truncation)
{
    struct kopi_buf b = full(), copy = full();
    accepted(&copy);
    for (size_t n = 0; n < b.len; n++) {
        struct kopi_gguf *g;
        kopi_error e;
        ck_assert_msg(open_bytes(b.data, n, &g, &e) == KOPI_E_MODEL, "accepted at %zu of %zu bytes", n, b.len);
    }
    kopi__buf_free(&b);
}
END_TEST

/* Each byte of the directory set to four values: read or refused, and nothing touched outside. */
START_TEST(every_byte_changed)
{
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0xff};
    struct kopi_buf b = full();
    int refusals = 0;
    for (size_t i = 0; i < b.len - 199; i++)
        for (size_t k = 0; k < sizeof values; k++) {
            struct kopi_gguf *g;
            kopi_error e;
            char was = b.data[i];
            b.data[i] = (char)values[k];
            kopi_status st = open_bytes(b.data, b.len, &g, &e);
            ck_assert_msg(st == KOPI_OK || st == KOPI_E_MODEL, "%s", e.text);
            refusals += st != KOPI_OK;
            b.data[i] = was;
        }
    ck_assert_int_gt(refusals, 500);
    kopi__buf_free(&b);
}
END_TEST

START_TEST(memory_runs_out)
{
    struct kopi_buf b = full();
    struct kopi_gguf *g;
    kopi_error e;
    kopi_status st = KOPI_E_NOMEM;
    int n = 0;
    while (st != KOPI_OK && n < 100) {
        kopi__mem_fail_at((uint64_t)++n);
        st = kopi__gguf_open_memory(b.data, b.len, "f.gguf", &g, &e);
        kopi__mem_fail_at(0);
        ck_assert(st == KOPI_OK || (st == KOPI_E_NOMEM && !g));
    }
    ck_assert_int_eq(st, KOPI_OK);
    ck_assert_int_gt(n, 8);
    kopi__gguf_close(g);
    kopi__buf_free(&b);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("bad");
    tcase_add_test(t, good_control);
    tcase_add_test(t, bad_alignment);
    tcase_add_test(t, bad_shapes);
    tcase_add_test(t, size_that_pads_to_zero);
    tcase_add_test(t, bad_places);
    tcase_add_test(t, bad_lengths);
    tcase_add_test(t, bad_value_types);
    tcase_add_test(t, bad_counts);
    tcase_add_test(t, duplicates);
    tcase_add_test(t, duplicate_among_many);
    tcase_add_test(t, bad_names);
    tcase_add_test(t, bad_headers);
    tcase_add_test(t, bad_tensor_types);
    tcase_add_test(t, every_truncation);
    tcase_add_test(t, every_byte_changed);
    tcase_add_test(t, memory_runs_out);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("gguf-bad");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
