/* A tiny model of tests/data cut at every 64 bytes: refused, or all of its tensors are there. */
#include "gguf/gguf.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const models[] = {"gemma3-Q4_0", "llama-gqa-Q4_K_M", "qwen2-untied-yarn-Q5_0"};

/* A copy that may be cut; returns its size. */
static long copy_of(const char *model, const char *to)
{
    char from[400];
    static char bytes[1 << 20];
    snprintf(from, sizeof from, "%s/%s.gguf", KOPI_TEST_DATA, model);
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    ck_assert_msg(in && out, "%s", from);
    size_t n = fread(bytes, 1, sizeof bytes, in);
    ck_assert_uint_gt(n, 100000);
    ck_assert_uint_lt(n, sizeof bytes);
    ck_assert_uint_eq(fwrite(bytes, 1, n, out), n);
    fclose(in);
    ck_assert_int_eq(fclose(out), 0);
    return (long)n;
}

/* Where the last tensor ends. */
static int64_t end_of_data(const struct kopi_gguf *g)
{
    int64_t end = 0;
    for (uint64_t i = 0; i < kopi__gguf_n_tensors(g); i++) {
        const struct kopi_gguf_tensor *t = kopi__gguf_tensor_at(g, i);
        if ((int64_t)(t->file_offset + t->size) > end) end = (int64_t)(t->file_offset + t->size);
    }
    return end;
}

START_TEST(every_64_bytes)
{
    char path[] = "/tmp/kopi-cut-XXXXXX";
    int fd = mkstemp(path), refused = 0;
    ck_assert_int_ge(fd, 0);
    close(fd);
    long size = copy_of(models[_i], path);
    for (long n = size; n >= 0; n = n == size ? (size - 1) / 64 * 64 : n - 64) {
        struct kopi_gguf *g = NULL;
        kopi_error e;
        ck_assert_int_eq(truncate(path, n), 0);
        kopi_status s = kopi__gguf_open(path, 0, NULL, 0, &g, &e);
        if (s == KOPI_OK) ck_assert_msg(end_of_data(g) <= n, "read at %ld of %ld bytes", n, size);
        else ck_assert_msg(s == KOPI_E_MODEL && e.text[0], "%ld of %ld bytes: %d %s", n, size, s, e.text);
        refused += s != KOPI_OK;
        kopi__gguf_close(g);
    }
    ck_assert_int_ge(refused, (int)(size / 64) - 2);
    unlink(path);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("truncation");
    tcase_add_loop_test(t, every_64_bytes, 0, sizeof models / sizeof *models);
    tcase_set_timeout(t, 120);
    Suite *s = suite_create("truncation");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
