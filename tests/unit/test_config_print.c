/* Unit tests of core/config: the texts that are made from the table of keys. */
#include "base/mem.h"
#include "config/config.h"
#include "config_fixture.h"
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int count_entry(void *ctx, const kopi_config_entry *e)
{
    char *list = ctx;
    if (e->from != KOPI_FROM_DEFAULT) sprintf(list + strlen(list), "%s=%s (%s)\n", e->path, e->value, e->origin);
    return !strcmp(e->path, "log.format") && !strcmp(e->value, "jsonl") ? 7 : 0;
}

START_TEST(each_entry)
{
    char list[4000] = "";
    kopi_config *c = loaded("models: [{path: a}, {path: b, mmap: false}]\n"
                            "backend: {options: {cpu: {x: 1}, cpu-threaded: {y: 2}}}\n");
    kopi_config_set(c, "backend.options.cpu.w", "3", &err);
    kopi_config_set(c, "backend.options.cpu.x", "4", &err);
    ck_assert_int_eq(kopi_config_each(c, count_entry, list), 0);
    ck_assert_str_eq(list, "backend.options.cpu-threaded.y=2 (f.yaml:2:52)\n"
                           "backend.options.cpu.w=3 (--set)\n"
                           "backend.options.cpu.x=4 (--set)\n"
                           "models[0].path=/A/a (f.yaml:1:17)\n"
                           "models[1].path=/A/b (f.yaml:1:28)\n"
                           "models[1].mmap=false (f.yaml:1:37)\n");
    kopi_config_set(c, "log.format", "jsonl", &err);
    ck_assert_int_eq(kopi_config_each(c, count_entry, list), 7);
    kopi_config_free(c);
}
END_TEST

struct compare {
    const kopi_config *other;
    size_t n;
};

static int same_entry(void *ctx, const kopi_config_entry *e)
{
    struct compare *cmp = ctx;
    expect(cmp->other, e->path, e->value, NULL);
    cmp->n++;
    return 0;
}

/* Every value of a is in b, and the other way round. */
static void same_values(const kopi_config *a, const kopi_config *b)
{
    struct compare ab = {b, 0}, ba = {a, 0};
    kopi_config_each(a, same_entry, &ab);
    kopi_config_each(b, same_entry, &ba);
    ck_assert_uint_eq(ab.n, ba.n);
    ck_assert_uint_gt(ab.n, 20);
}

START_TEST(print_reads_back)
{
    static const struct {
        const char *path, *value;
    } sets[] = {{"backend.options.cpu.a", "x: 1 # \"y\"\n\\\t- {z} ${HOME} $$"},
                {"backend.options.cpu.b", ""},
                {"backend.options.cpu.c", "null"},
                {"backend.options.cpu.d", "~"},
                {"backend.options.cpu.e", "-"},
                {"backend.options.cpu.f", "\xc3\xbc\xe2\x80\xa8\xf0\x9f\x98\x80\xef\xbb\xbf\x7f\x01"},
                {"backend.options.cpu.g", "---"},
                {"backend.options.cpu.h", " x "},
                {"backend.options.cpu.i", "1e-05"},
                {"backend.options.other.j", ".5"},
                {"models[0].sampling.temperature", ".5"},
                {"models[].sampling.top_p", "1e-05"},
                {"models[1].id", "a b: c"},
                {"plugin_dirs", "/a b:/c,d:/$e"},
                {"models[0].aliases", "~,null,#x"}};
    kopi_config *c = loaded(long_form), *d = fresh();
    char *text;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
        ck_assert_int_eq(kopi_config_set(c, sets[i].path, sets[i].value, &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_print(c, &text, &err), KOPI_OK);
    ck_assert_msg(!kopi__config_load_text(d, "printed", NULL, text, strlen(text), &err), "%s\n%s", err.text, text);
    same_values(c, d);
    ck_assert(strstr(text, "\n  threads: 3                            # f.yaml:5:12\n"));
    ck_assert(strstr(text, "\n  - path: /A/m/a.gguf                   # f.yaml:13:11\n    id: a "));
    kopi__free(text);
    kopi_config_free(d);
    kopi_config_free(c);
}
END_TEST

START_TEST(print_of_raw_bytes)
{
    kopi_config *c = fresh();
    char *text;
    ck_assert_int_eq(kopi_config_flag(c, "-m", "/a\xff\xc3", &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_print(c, &text, &err), KOPI_OK);
    ck_assert(strstr(text, "- path: \"/a\xef\xbf\xbd\xef\xbf\xbd\" "));
    kopi__free(text);
    kopi_config_free(c);
}
END_TEST

START_TEST(print_without_model)
{
    kopi_config *c = fresh(), *d = fresh();
    char *text;
    ck_assert_int_eq(kopi_config_print(c, &text, &err), KOPI_OK);
    ck_assert(strstr(text, "# No model is configured. One would get:\n# models:\n#   - mmap: true "));
    ck_assert_msg(!kopi__config_load_text(d, "printed", NULL, text, strlen(text), &err), "%s\n%s", err.text, text);
    same_values(c, d);
    kopi__free(text);
    kopi_config_free(c);
    kopi_config_free(d);
}
END_TEST

START_TEST(starter_file)
{
    kopi_config *c, *d = fresh();
    char *text;
    ck_assert_int_eq(kopi_config_starter(&text, &err), KOPI_OK);
    c = loaded(text);
    expect(c, "models[0].path", "/A/model.gguf", NULL);
    kopi_config_set(d, "model", "/A/model.gguf", &err);
    same_values(c, d);
    kopi_config_free(c);
    /* Any one key taken out of its comment is accepted, and is the default unless its line says that it is an example.
     */
    size_t keys = 0;
    for (char *p = text; (p = strstr(p, " # ")); p++) {
        if (strspn(p + 3, "abcdefghijklmnopqrstuvwxyz_0123456789") == 0 ||
            p[3 + strspn(p + 3, "abcdefghijklmnopqrstuvwxyz_0123456789")] != ':')
            continue;
        char *line = p;
        while (line > text && line[-1] != '\n') line--;
        if (strspn(line, " ") != (size_t)(p - line) + 1) continue;
        char *copy = strdup(text);
        memmove(copy + (p - text) + 1, copy + (p - text) + 3, strlen(copy + (p - text) + 3) + 1);
        c = fresh();
        kopi_status status = load(c, copy);
        ck_assert_msg(!status, "%s\n%s", err.text, copy);
        char *end = strchr(line, '\n'), *example = strstr(line, "# example: ");
        if (!example || example > end) same_values(c, d);
        kopi_config_free(c);
        free(copy);
        keys++;
    }
    ck_assert_uint_gt(keys, 20);
    kopi__free(text);
    kopi_config_free(d);
}
END_TEST

static json_t *at(json_t *root, const char *path)
{
    char copy[200], *rest = strcpy(copy, path), *name;
    while (root && (name = strsep(&rest, "/")))
        root = *name == '0' ? json_array_get(root, 0) : json_object_get(root, name);
    return root;
}

START_TEST(json_schema)
{
    char *text;
    ck_assert_int_eq(kopi_config_schema(&text, &err), KOPI_OK);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(root);
    ck_assert(json_is_false(at(root, "additionalProperties")));
    ck_assert_int_eq(
        json_integer_value(at(root, "properties/models/items/properties/context/properties/batch/default")), 512);
    ck_assert_int_eq(
        json_integer_value(at(root, "properties/models/items/properties/context/properties/size/anyOf/0/maximum")),
        2147483647);
    ck_assert_str_eq(json_string_value(at(root, "properties/models/items/required/0")), "path");
    ck_assert_str_eq(json_string_value(at(root, "properties/log/properties/level/anyOf/0/enum/0")), "error");
    ck_assert_ptr_nonnull(at(root, "properties/model"));
    ck_assert_ptr_nonnull(at(root, "properties/backend/anyOf/0/anyOf"));
    json_decref(root);
    kopi__free(text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("config_print");
    tcase_add_test(t, each_entry);
    tcase_add_test(t, print_reads_back);
    tcase_add_test(t, print_of_raw_bytes);
    tcase_add_test(t, print_without_model);
    tcase_add_test(t, starter_file);
    tcase_add_test(t, json_schema);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("config_print");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
