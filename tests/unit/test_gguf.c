/* Reading of right GGUF files: values, tensors, split models, kinds of files that cannot be read, files that shrink. */
#include "base/error.h"
#include "gguf/reader.h"
#include "gguf_build.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[256]; /* of the running test */

static void make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/kopi-gguf-XXXXXX", tmp ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
    char cmd[300];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(cmd), 0);
}

static const char *in_dir(const char *name)
{
    static char paths[4][400];
    static unsigned turn;
    char *p = paths[turn++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", dir, name);
    return p;
}

static struct kopi_gguf *open_ok(const char *path, unsigned flags)
{
    struct kopi_gguf *g;
    kopi_error e = {0};
    ck_assert_msg(kopi__gguf_open(path, flags, NULL, 0, &g, &e) == KOPI_OK, "%s", e.text);
    return g;
}

static void open_fails(const char *path, kopi_status status, const char *text)
{
    for (unsigned flags = 0; flags <= KOPI__GGUF_NO_MMAP; flags++) {
        struct kopi_gguf *g;
        kopi_error e = {0};
        ck_assert_int_eq(kopi__gguf_open(path, flags, NULL, 0, &g, &e), status);
        ck_assert_ptr_null(g);
        ck_assert_msg(strstr(e.text, text) != NULL, "\"%s\" instead of \"%s\"", e.text, text);
    }
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* One value of each scalar type, as `x.TYPE`. */
static void write_scalars(const char *path)
{
    static const struct { const char *key; uint32_t type; uint8_t bytes[8]; size_t n; } rows[] = {
        {"x.u8", KOPI_GGUF_U8, {200}, 1},
        {"x.i8", KOPI_GGUF_I8, {0x80}, 1},
        {"x.u16", KOPI_GGUF_U16, {0xff, 0xff}, 2},
        {"x.i16", KOPI_GGUF_I16, {0xfe, 0xff}, 2},
        {"x.u32", KOPI_GGUF_U32, {0xff, 0xff, 0xff, 0xff}, 4},
        {"x.i32", KOPI_GGUF_I32, {0, 0, 0, 0x80}, 4},
        {"x.f32", KOPI_GGUF_F32, {0, 0, 0x20, 0xc0}, 4},
        {"x.bool", KOPI_GGUF_BOOL, {1}, 1},
        {"x.u64", KOPI_GGUF_U64, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8},
        {"x.i64", KOPI_GGUF_I64, {0, 0, 0, 0, 0, 0, 0, 0x80}, 8},
        {"x.f64", KOPI_GGUF_F64, {0, 0, 0, 0, 0, 0, 0xf8, 0x3f}, 8},
    };
    enum { N = sizeof rows / sizeof *rows };
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 2, 0, N);
    for (size_t i = 0; i < N; i++) {
        gguf_key(&b, rows[i].key, rows[i].type);
        ck_assert(kopi__buf_add(&b, rows[i].bytes, rows[i].n));
    }
    gguf_write(&b, path);
    kopi__buf_free(&b);
}

START_TEST(scalars)
{
    static const struct { const char *key, *type; bool u, i; uint64_t uv; int64_t iv; double fv; } want[] = {
        {"x.u8", "u8", true, true, 200, 200, 200},
        {"x.i8", "i8", false, true, 0, -128, -128},
        {"x.u16", "u16", true, true, 65535, 65535, 65535},
        {"x.i16", "i16", false, true, 0, -2, -2},
        {"x.u32", "u32", true, true, 4294967295u, 4294967295, 4294967295.0},
        {"x.i32", "i32", false, true, 0, INT32_MIN, -2147483648.0},
        {"x.u64", "u64", true, false, UINT64_MAX, 0, 18446744073709551616.0},
        {"x.i64", "i64", false, true, 0, INT64_MIN, -9223372036854775808.0},
        {"x.f32", "f32", false, false, 0, 0, -2.5},
        {"x.f64", "f64", false, false, 0, 0, 1.5},
    };
    write_scalars(in_dir("v.gguf"));
    struct kopi_gguf *g = open_ok(in_dir("v.gguf"), 0);
    ck_assert_uint_eq(kopi__gguf_version(g), 2);
    ck_assert_uint_eq(kopi__gguf_n_kv(g), 11);
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        const struct kopi_gguf_kv *kv = kopi__gguf_find(g, want[k].key);
        ck_assert_ptr_nonnull(kv);
        ck_assert_str_eq(kopi__gguf_type_name(kv->type), want[k].type);
        uint64_t u = 0;
        int64_t i = 0;
        double f = 0;
        bool b;
        struct kopi_gguf_str s;
        ck_assert(kopi__gguf_get_u64(kv, 0, &u) == want[k].u && u == want[k].uv);
        ck_assert(kopi__gguf_get_i64(kv, 0, &i) == want[k].i && i == want[k].iv);
        ck_assert(kopi__gguf_get_f64(kv, 0, &f) && f == want[k].fv);
        ck_assert(!kopi__gguf_get_u64(kv, 1, &u) && !kopi__gguf_get_f64(kv, 1, &f));
        ck_assert(!kopi__gguf_get_bool(kv, 0, &b) && !kopi__gguf_get_str(kv, 0, &s));
    }
    const struct kopi_gguf_kv *kv = kopi__gguf_find(g, "x.bool");
    bool b = false;
    uint64_t u;
    double f;
    ck_assert(kopi__gguf_get_bool(kv, 0, &b) && b);
    ck_assert(!kopi__gguf_get_u64(kv, 0, &u) && !kopi__gguf_get_f64(kv, 0, &f));
    ck_assert_ptr_null(kopi__gguf_find(g, "x.u128"));
    ck_assert_str_eq(kopi__gguf_type_name(99), "?");
    kopi__gguf_close(g);
}
END_TEST

START_TEST(arrays_and_strings)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 0, 4);
    gguf_array(&b, "tokens", KOPI_GGUF_STRING, 3);
    gguf_str(&b, "ab");
    gguf_str(&b, "");
    gguf_bytes(&b, "\0\377", 2);
    gguf_array(&b, "kinds", KOPI_GGUF_I16, 3);
    gguf_u16(&b, 1);
    gguf_u16(&b, 0xffff);
    gguf_u16(&b, 3);
    gguf_array(&b, "none", KOPI_GGUF_STRING, 0);
    gguf_kv_str(&b, "name", "kopi");
    struct kopi_gguf *g;
    ck_assert_int_eq(kopi__gguf_open_memory(b.data, b.len, "m", &g, NULL), KOPI_OK);
    const struct kopi_gguf_kv *kv = kopi__gguf_find(g, "tokens");
    struct kopi_gguf_iter it = kopi__gguf_strings(kv);
    struct kopi_gguf_str s;
    ck_assert(kv->type == KOPI_GGUF_ARRAY && kv->elem_type == KOPI_GGUF_STRING && kv->n == 3 && kv->value_size == 28);
    ck_assert(kopi__gguf_next(&it, &s) && s.len == 2 && !memcmp(s.data, "ab", 2));
    ck_assert(kopi__gguf_next(&it, &s) && s.len == 0);
    ck_assert(kopi__gguf_next(&it, &s) && s.len == 2 && !memcmp(s.data, "\0\377", 2));
    ck_assert(!kopi__gguf_next(&it, &s));
    ck_assert(kopi__gguf_get_str(kv, 2, &s) && s.len == 2);
    ck_assert(kopi__gguf_get_str(kv, 0, &s) && !memcmp(s.data, "ab", 2));
    ck_assert(!kopi__gguf_get_str(kv, 3, &s));
    int64_t v = 0;
    kv = kopi__gguf_find(g, "kinds");
    ck_assert(kopi__gguf_get_i64(kv, 1, &v) && v == -1);
    ck_assert(kopi__gguf_get_i64(kv, 2, &v) && v == 3);
    ck_assert(!kopi__gguf_get_i64(kv, 3, &v));
    ck_assert(!kopi__gguf_get_str(kopi__gguf_find(g, "none"), 0, &s));
    ck_assert(kopi__gguf_get_str(kopi__gguf_find(g, "name"), 0, &s) && s.len == 4 && !memcmp(s.data, "kopi", 4));
    ck_assert_ptr_eq(kopi__gguf_kv_at(g, 3), kopi__gguf_find(g, "name"));
    kopi__gguf_close(g);
    kopi__buf_free(&b);
}
END_TEST

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

/* 102 bytes of Q8_0 whose byte i is i, then a vector of F32, then 64 KiB of I8. */
static void write_tensors(const char *path)
{
    uint8_t q[102], zeros[65536] = {0};
    for (int i = 0; i < 102; i++) q[i] = (uint8_t)i;
    float v[4] = {1, 2, 3, 4};
    struct tiny *t = tiny_new();
    tiny_str(t, "general.architecture", "test");
    tiny_tensor(t, "q", KOPI_DTYPE_Q8_0, (int64_t[]){32, 3}, 2, q, sizeof q);
    tiny_tensor(t, "v", KOPI_DTYPE_F32, (int64_t[]){4}, 1, v, sizeof v);
    tiny_tensor(t, "big", KOPI_DTYPE_I8, (int64_t[]){64, 32, 16, 2}, 4, zeros, sizeof zeros);
    tiny_write(t, path);
    tiny_free(t);
}

START_TEST(tensors)
{
    unsigned flags = (unsigned)_i;
    write_tensors(in_dir("t.gguf"));
    struct kopi_gguf *g = open_ok(in_dir("t.gguf"), flags);
    struct stat st;
    ck_assert_int_eq(stat(in_dir("t.gguf"), &st), 0);
    ck_assert(kopi__gguf_is_mapped(g) == !flags);
    ck_assert_uint_eq(kopi__gguf_file_size(g), (uint64_t)st.st_size);
    ck_assert_str_eq(kopi__gguf_path(g), in_dir("t.gguf"));
    ck_assert(kopi__gguf_n_tensors(g) == 3 && kopi__gguf_n_parts(g) == 1 && kopi__gguf_alignment(g) == 32);
    const struct kopi_gguf_tensor *q = kopi__gguf_tensor(g, "q"), *v = kopi__gguf_tensor(g, "v"),
                                  *big = kopi__gguf_tensor(g, "big");
    ck_assert(q == kopi__gguf_tensor_at(g, 0) && v == kopi__gguf_tensor_at(g, 1));
    ck_assert(q->n_dims == 2 && q->ne[0] == 32 && q->ne[1] == 3 && q->ne[2] == 1 && q->ne[3] == 1 && q->size == 102);
    ck_assert(!strcmp(q->name, "q") && q->dtype == KOPI_DTYPE_Q8_0 && q->part == 0);
    for (int i = 0; i < 102; i++) ck_assert_uint_eq(q->data[i], i);
    ck_assert_uint_eq((uintptr_t)v->data % 32, 0);
    ck_assert_uint_eq(v->file_offset, q->file_offset + 128);
    ck_assert(((const float *)(const void *)v->data)[3] == 4.0f);
    ck_assert_ptr_null(kopi__gguf_tensor(g, "w"));
    kopi__gguf_willneed(g);
    kopi__gguf_drop(g, big, big->data, big->size); /* only its own whole pages */
    kopi__gguf_drop(g, q, q->data, q->size);
    ck_assert(((const float *)(const void *)v->data)[3] == 4.0f && q->data[101] == 101);
    kopi__gguf_close(g);
    kopi__gguf_close(NULL);
}
END_TEST

/* A type that only a plugin knows. */
START_TEST(plugin_types)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 1, 0);
    gguf_tensor(&b, "t", 2, (const uint64_t[]){48, 2}, KOPI_DTYPE_VENDOR_FIRST + 5, 0);
    gguf_pad(&b, 32);
    gguf_zero(&b, 6 * 10);
    const char *path = in_dir("p.gguf");
    gguf_write(&b, path);
    kopi__buf_free(&b);
    open_fails(
        path, KOPI_E_MODEL,
        "tensor \"t\" has type 1073741829 (0x40000005), a type that a backend brings: choose that backend (-b NAME)");
    kopi_dtype_info types[2] = {{sizeof types[0], KOPI_DTYPE_VENDOR_FIRST, "ACME_1", 8, 1, NULL},
                                {sizeof types[0], KOPI_DTYPE_VENDOR_FIRST + 5, "ACME_Q3", 16, 10, NULL}};
    struct kopi_gguf *g;
    kopi_error e;
    ck_assert_int_eq(kopi__gguf_open(path, 0, types, 2, &g, &e), KOPI_OK);
    ck_assert_uint_eq(kopi__gguf_tensor(g, "t")->size, 60);
    kopi__gguf_close(g);
    types[1].block_len = 32;
    ck_assert_int_eq(kopi__gguf_open(path, 0, types, 2, &g, &e), KOPI_E_MODEL);
    ck_assert_ptr_nonnull(strstr(e.text, "rows of 48 values, ACME_Q3 needs a multiple of 32"));
}
END_TEST

/* ---- split models ------------------------------------------------------------------------------------------------ */

/* What a part says of itself; the ints are -1 where the key is left out. */
struct part { int no, count, tensors; const char *key, *tensor; uint32_t alignment; };

static void write_part(const char *name, const struct part *p)
{
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_header(&b, 3, 1, (uint64_t)((p->no >= 0) + (p->count >= 0) + (p->tensors >= 0) + !!p->key + !!p->alignment));
    if (p->no >= 0) {
        gguf_key(&b, "split.no", KOPI_GGUF_U16);
        gguf_u16(&b, (uint16_t)p->no);
    }
    if (p->count >= 0) {
        gguf_key(&b, "split.count", KOPI_GGUF_U16);
        gguf_u16(&b, (uint16_t)p->count);
    }
    if (p->tensors >= 0) {
        gguf_key(&b, "split.tensors.count", KOPI_GGUF_I32);
        gguf_u32(&b, (uint32_t)p->tensors);
    }
    if (p->key) gguf_kv_str(&b, p->key, "v");
    if (p->alignment) gguf_kv_u32(&b, "general.alignment", p->alignment);
    gguf_tensor(&b, p->tensor, 1, (const uint64_t[]){4}, KOPI_DTYPE_F32, 0);
    gguf_pad(&b, p->alignment ? p->alignment : 32);
    gguf_u32(&b, (uint32_t)p->no);
    gguf_zero(&b, 12);
    gguf_write(&b, in_dir(name));
    kopi__buf_free(&b);
}

static const char *const names[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
static const struct part good[3] = {{0, 3, 3, "general.architecture", "a", 0},
                                    {1, 3, 3, "extra", "b", 64},
                                    {2, 3, -1, NULL, "c", 0}};

/* The good parts with part i replaced by p. */
static void write_split(int i, const struct part *p)
{
    for (int k = 0; k < 3; k++) write_part(names[k], k == i ? p : &good[k]);
}

START_TEST(split_model)
{
    write_split(-1, NULL);
    uint64_t size = 0;
    for (int i = 0; i < 3; i++) {
        struct stat st;
        ck_assert_int_eq(stat(in_dir(names[i]), &st), 0);
        size += (uint64_t)st.st_size;
    }
    for (int i = 0; i < 3; i++) { /* any part opens all */
        struct kopi_gguf *g = open_ok(in_dir(names[i]), i == 1 ? KOPI__GGUF_NO_MMAP : 0);
        ck_assert(kopi__gguf_n_parts(g) == 3 && kopi__gguf_n_tensors(g) == 3 && kopi__gguf_alignment(g) == 32);
        ck_assert_str_eq(kopi__gguf_path(g), in_dir(names[0]));
        ck_assert_uint_eq(kopi__gguf_file_size(g), size);
        ck_assert_uint_eq(kopi__gguf_n_kv(g), 5); /* split.* of the first part only */
        ck_assert_ptr_nonnull(kopi__gguf_find(g, "extra"));
        for (uint32_t k = 0; k < 3; k++) {
            const struct kopi_gguf_tensor *t = kopi__gguf_tensor(g, good[k].tensor);
            ck_assert(t == kopi__gguf_tensor_at(g, k) && t->part == k && !strcmp(t->name, good[k].tensor));
            ck_assert_uint_eq(t->data[0], k);
        }
        kopi__gguf_close(g);
    }
}
END_TEST

START_TEST(split_refused)
{
    static const struct { int i; struct part p; const char *text; } cases[] = {
        {1, {2, 3, 3, NULL, "b", 0}, "is part 2 by its name, but key \"split.no\" is 2 (counted from 0)"},
        {1, {1, 4, 3, NULL, "b", 0}, "is one of 3 parts by its name, but key \"split.count\" is 4"},
        {1, {1, -1, 3, NULL, "b", 0}, "key \"split.count\" is missing"},
        {2, {-1, 3, 3, NULL, "c", 0}, "key \"split.no\" is missing"},
        {0, {0, 3, -1, NULL, "a", 0}, "key \"split.tensors.count\" is missing"},
        {1, {1, 3, 4, NULL, "b", 0}, "key \"split.tensors.count\" is 4, the first part has 3"},
        {1, {1, 3, 3, "general.architecture", "b", 0}, "key \"general.architecture\" is already in"},
        {2, {2, 3, 3, NULL, "a", 0}, "tensor \"a\" is already in"},
        {1, {1, 3, 3, NULL, "b", 3}, "\"general.alignment\" is 3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_split(cases[i].i, &cases[i].p);
        open_fails(in_dir(names[0]), KOPI_E_MODEL, cases[i].text);
        open_fails(in_dir(names[0]), KOPI_E_MODEL, names[cases[i].i]);
    }
    struct part wrong_total[2] = {{0, 2, 3, NULL, "a", 0}, {1, 2, -1, NULL, "b", 0}};
    write_part("n-00001-of-00002.gguf", &wrong_total[0]);
    write_part("n-00002-of-00002.gguf", &wrong_total[1]);
    open_fails(in_dir("n-00002-of-00002.gguf"), KOPI_E_MODEL,
               "\"split.tensors.count\" is 3, but the 2 parts hold 2 tensors");
}
END_TEST

START_TEST(split_names)
{
    write_split(-1, NULL);
    ck_assert_int_eq(unlink(in_dir(names[1])), 0);
    open_fails(in_dir(names[2]), KOPI_E_IO, "part 2 of 3: ");
    open_fails(in_dir(names[2]), KOPI_E_IO, "m-00002-of-00003.gguf: cannot be opened: No such file or directory");
    write_part("part.gguf", &good[1]);
    open_fails(in_dir("part.gguf"), KOPI_E_MODEL,
               "is part 2 of 3 of a split model and has to be named ...-00002-of-00003.gguf");
    write_part("m-00004-of-00003.gguf", &good[1]); /* no part's name */
    open_fails(in_dir("m-00004-of-00003.gguf"), KOPI_E_MODEL, "has to be named");
    open_fails(in_dir("m-00001-of-05000.gguf"), KOPI_E_MODEL, "is one of 5000 parts by its name, at most 4096");
    struct part single = {0, 1, 1, NULL, "a", 0}, plain = {-1, -1, -1, NULL, "a", 0};
    write_part("s-00001-of-00001.gguf", &single);
    write_part("p-00001-of-00001.gguf", &plain);
    kopi__gguf_close(open_ok(in_dir("s-00001-of-00001.gguf"), 0));
    kopi__gguf_close(open_ok(in_dir("p-00001-of-00001.gguf"), 0));
}
END_TEST

/* ---- files ------------------------------------------------------------------------------------------------------- */

START_TEST(unreadable_files)
{
    write_tensors(in_dir("t.gguf"));
    open_fails(in_dir("none.gguf"), KOPI_E_IO, "none.gguf: cannot be opened: No such file or directory");
    open_fails(dir, KOPI_E_IO, "is a directory, not a GGUF file");
    ck_assert_int_eq(mkfifo(in_dir("fifo"), 0600), 0);
    open_fails(in_dir("fifo"), KOPI_E_IO, "is not a regular file"); /* and does not wait for a writer */
    open_fails("/dev/null", KOPI_E_IO, "is not a regular file");
    struct kopi_buf b = KOPI_BUF_INIT;
    gguf_write(&b, in_dir("empty.gguf"));
    open_fails(in_dir("empty.gguf"), KOPI_E_MODEL, "empty.gguf: is empty");
    ck_assert(kopi__buf_char(&b, 'G'));
    gguf_write(&b, in_dir("one.gguf"));
    open_fails(in_dir("one.gguf"), KOPI_E_MODEL, "ends inside the header, after 1 bytes");
    kopi__buf_free(&b);
    ck_assert_int_eq(chmod(dir, 0755), 0);
    ck_assert_int_eq(chmod(in_dir("t.gguf"), 0), 0);
    if (!geteuid()) ck_assert_int_eq(seteuid(65534), 0); /* root reads everything */
    open_fails(in_dir("t.gguf"), KOPI_E_IO, "t.gguf: cannot be opened: Permission denied");
    if (!getuid()) ck_assert_int_eq(seteuid(0), 0);
}
END_TEST

START_TEST(truncated_files)
{
    write_tensors(in_dir("t.gguf"));
    struct stat st;
    ck_assert_int_eq(stat(in_dir("t.gguf"), &st), 0);
    for (off_t n = st.st_size - 64; n > 0; n -= 64) {
        ck_assert_int_eq(truncate(in_dir("t.gguf"), n), 0);
        open_fails(in_dir("t.gguf"), KOPI_E_MODEL, in_dir("t.gguf"));
    }
}
END_TEST

/* Opens the file, cuts it and reads what is gone. */
static void read_lost(const char *path, bool guard)
{
    if (guard) kopi__gguf_guard_sigbus(NULL);
    struct kopi_gguf *g = open_ok(path, 0);
    const struct kopi_gguf_tensor *t = kopi__gguf_tensor(g, "big");
    if (truncate(path, 4096)) _exit(10);
    volatile uint8_t v = t->data[t->size - 1];
    (void)v;
    _exit(11);
}

static int run_lost(bool guard, char *text, size_t n)
{
    int ends[2], status;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (!pid) {
        dup2(ends[1], STDERR_FILENO);
        read_lost(in_dir("t.gguf"), guard);
    }
    close(ends[1]);
    size_t len = 0;
    ssize_t k;
    while (len < n - 1 && (k = read(ends[0], text + len, n - 1 - len)) > 0) len += (size_t)k;
    text[len] = 0;
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

START_TEST(file_shrinks_while_mapped)
{
    char text[4096];
    write_tensors(in_dir("t.gguf"));
    int status = run_lost(true, text, sizeof text);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 4, "status %x: %s", (unsigned)status, text);
    char want[600];
    snprintf(want, sizeof want, "kopi: %s: the file was truncated or lost while it was in use\n", in_dir("t.gguf"));
    ck_assert_str_eq(text, want);
    write_tensors(in_dir("t.gguf"));
    status = run_lost(false, text, sizeof text); /* the library itself installs nothing */
    ck_assert(!WIFEXITED(status) || WEXITSTATUS(status) != 4);
}
END_TEST

/* A SIGBUS that is not ours keeps its default action. */
START_TEST(other_sigbus)
{
    signal(SIGBUS, SIG_DFL); /* a sanitizer has its own */
    kopi__gguf_guard_sigbus(NULL);
    kopi__gguf_guard_sigbus(NULL);
    write_tensors(in_dir("t.gguf"));
    kopi__gguf_close(open_ok(in_dir("t.gguf"), 0));
    kill(getpid(), SIGBUS);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("gguf");
    tcase_add_checked_fixture(t, make_dir, remove_dir);
    tcase_add_test(t, scalars);
    tcase_add_test(t, arrays_and_strings);
    tcase_add_loop_test(t, tensors, 0, 2);
    tcase_add_test(t, plugin_types);
    tcase_add_test(t, split_model);
    tcase_add_test(t, split_refused);
    tcase_add_test(t, split_names);
    tcase_add_test(t, unreadable_files);
    tcase_add_test(t, truncated_files);
    tcase_add_test(t, file_shrinks_while_mapped);
    tcase_set_timeout(t, 60);
    TCase *sig = tcase_create("signal");
    tcase_add_unchecked_fixture(sig, make_dir, remove_dir);
    tcase_add_test_raise_signal(sig, other_sigbus, SIGBUS);
    Suite *s = suite_create("gguf");
    suite_add_tcase(s, t);
    suite_add_tcase(s, sig);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
