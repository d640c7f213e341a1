/* Unit tests of core/config. "Row n" is a row of the list of failures that users of local runtimes reported. */
#include "base/log.h"
#include "base/mem.h"
#include "config/config.h"
#include "config/expand.h"
#include "config/nearest.h"
#include "config/value.h"
#include "config/yaml.h"
#include "config_fixture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The text is refused with a message that has `part` in it. */
static void refused(const char *text, const char *part)
{
    kopi_config *c = fresh();
    kopi_status status = load(c, text);
    ck_assert_msg(status == KOPI_E_CONFIG, "accepted: %s", text);
    ck_assert_int_eq(err.code, KOPI_E_CONFIG);
    ck_assert_msg(strstr(err.text, part), "for <%s>\n  got    %s\n  wanted %s", text, err.text, part);
    ck_assert_str_eq("cpu-threaded", kopi__config_str(c, "backend.name", KOPI__MODEL_ALL)); /* unchanged */
    ck_assert_uint_eq(kopi_config_models(c), 0);
    kopi_config_free(c);
}

START_TEST(defaults)
{
    kopi_config *c = fresh();
    expect(c, "backend.threads", "auto", "default");
    expect(c, "backend.path", NULL, "unset");
    expect(c, "models[0].sampling.temperature", "0.8", "default");
    ck_assert_int_eq(kopi__config_int(c, "backend.threads", -1), 0);
    ck_assert_int_eq(kopi__config_int(c, "models[].context.batch", 0), 512);
    ck_assert_int_eq(kopi__config_int(c, "models[].sampling.seed", 0), -1);
    ck_assert(kopi__config_bool(c, "models[].mmap", 3));
    ck_assert(kopi__config_float(c, "models[].sampling.top_p", 0) == 0.95);
    ck_assert_ptr_null(kopi__config_str(c, "models[].path", 0));
    ck_assert_ptr_null(kopi__config_list(c, "plugin_dirs", -1));
    ck_assert_int_eq(kopi_config_check(c, &err), KOPI_OK);
    kopi_config_free(c);
}
END_TEST

START_TEST(short_forms)
{
    kopi_config *c = loaded("backend: cpu\nmodel: m.gguf\n");
    expect(c, "backend.name", "cpu", "f.yaml:1:10");
    expect(c, "backend", "cpu", NULL);
    expect(c, "models[0].path", "/A/m.gguf", "f.yaml:2:8");
    ck_assert_uint_eq(kopi_config_models(c), 1);
    size_t len;
    const char *id = kopi__config_model_id(c, 0, &len);
    ck_assert_uint_eq(len, 1);
    ck_assert_int_eq(*id, 'm');
    ck_assert_int_eq(kopi__config_model(c, "m"), 0);
    ck_assert_int_eq(kopi__config_model(c, "m.gguf"), -1);
    ck_assert_int_eq(kopi__config_model(c, NULL), 0);
    ck_assert_int_eq(kopi_config_check(c, &err), KOPI_OK);
    kopi_config_free(c);
}
END_TEST

START_TEST(whole_form)
{
    kopi_config *c = loaded(long_form);
    const char *const *dirs = kopi__config_list(c, "plugin_dirs", -1);
    ck_assert_str_eq(dirs[0], "/opt/acme");
    ck_assert_str_eq(dirs[1], "/A/plugins");
    ck_assert_ptr_null(dirs[2]);
    expect(c, "plugin_dirs", "/opt/acme:/A/plugins", "f.yaml:2:14");
    expect(c, "models[0].aliases", "default,x y", NULL);
    ck_assert_int_eq(kopi__config_int(c, "backend.threads", -1), 3);
    ck_assert_str_eq(kopi__config_option(c, "cpu-threaded", "isa")->text, "avx2");
    ck_assert_str_eq(kopi__config_option(c, "cpu-threaded", "n")->where, "f.yaml:8:36");
    ck_assert_ptr_null(kopi__config_option(c, "cpu", "isa"));
    size_t at = 0;
    const char *key;
    ck_assert_str_eq(kopi__config_next_option(c, "acme", &at, &key)->text, "9");
    ck_assert_str_eq(key, "speed");
    ck_assert_ptr_null(kopi__config_next_option(c, "acme", &at, &key));
    ck_assert_uint_eq(kopi_config_models(c), 2);
    ck_assert(!kopi__config_bool(c, "models[].mmap", 0));
    ck_assert(kopi__config_bool(c, "models[].mmap", 1));
    ck_assert_int_eq(kopi__config_int(c, "models[].sampling.seed", 0), INT64_MAX);
    ck_assert_int_eq(kopi__config_int(c, "models[].sampling.seed", 1), -1);
    ck_assert(kopi__config_float(c, "models[].sampling.top_p", 0) == 1.0);
    expect(c, "models[0].template.source", "/A/t.jinja", NULL);
    expect(c, "models[1].template.source", "none", NULL);
    expect(c, "models[1].path", "/b.gguf", NULL);
    ck_assert_int_eq(kopi__config_model(c, "x y"), 0);
    ck_assert_int_eq(kopi__config_model(c, "b"), 1);
    ck_assert_int_eq(kopi_config_check(c, &err), KOPI_OK);
    kopi_status status =
        kopi__config_fail(&err, kopi__config_option(c, "acme", "speed"), "acme has no option %s", "speed");
    ck_assert_int_eq(status, KOPI_E_CONFIG);
    ck_assert_str_eq(err.text, "f.yaml:9:19: backend.options.acme.speed: acme has no option speed");
    kopi_config_free(c);
}
END_TEST

/* Row 67: nothing that is misspelt, misplaced or of a wrong type is passed over. */
static const struct {
    const char *text, *part;
} wrong[] = {
    {"backend: {thread: 4}", "f.yaml:1:11: backend: unknown key \"thread\"; did you mean backend.threads?"},
    {"backend: cpu\nmodle: x", "f.yaml:2:1: unknown key \"modle\"; did you mean model?"},
    {"threads: 4", "f.yaml:1:1: unknown key \"threads\"; did you mean backend.threads?"},
    {"models:\n- path: x\n  top_k: 4",
     "f.yaml:3:3: models[0]: unknown key \"top_k\"; did you mean models[].sampling.top_k?"},
    {"models: [{path: x, context: {num-ctx: 4}}]",
     "unknown key \"num-ctx\"; known here: size, batch, parallel, overflow"},
    {"models: [{path: x, ctx-size: 4}]", "did you mean models[].context.size?"},
    {"models: [{path: x, Type-K: f16}]", "did you mean models[].kv.type_k?"},
    {"models: [{path: x, sampling: {tempreature: 1}}]", "did you mean models[].sampling.temperature?"},
    {"log: {enable: false}", "log: unknown key \"enable\"; known here: level, format"},
    {"- a", "f.yaml:1:1: the file has to be a map of keys, not a list"},
    {"just text", "the file has to be a map of keys"},
    {"", "there is no value in it"},
    {"# only\n# comments\n", "there is no value in it"},
    {"---\n...\n", "there is no value in it"},
    {"backend: {threads: [1]}", "f.yaml:1:20: backend.threads: one value is wanted, not a list"},
    {"backend: {threads: {a: 1}}", "backend.threads: one value is wanted, not a map"},
    {"backend: {threads: 2.5}", "backend.threads: \"2.5\" given; wanted: a whole number from 1 to 1024, or auto"},
    {"backend: {threads: 8x}", "\"8x\" given"},
    {"models: [{path: x, context: {size: 1e3}}]",
     "models[0].context.size: \"1e3\" given; wanted: a whole number from 0 to 2147483647"},
    {"backend: [cpu]", "one value is wanted, not a list"},
    {"backend:\n  options: 3", "backend.options: this is a section"},
    {"models: x.gguf", "models: a list of models is wanted"},
    {"models: {path: x}", "models: a list of models is wanted"},
    {"models: [x.gguf]", "models[0]: a model is a map"},
    {"models: [[x.gguf]]", "models[0]: a list inside a list"},
    {"model: [x]", "one value is wanted, not a list"},
    {"model: {path: x}", "with more keys write models"},
    {"model: x\nmodels: []", "f.yaml:2:1: models: model and models at once"},
    {"models: [{path: x}]\nmodel: y", "model and models at once"},
    {"models:\n  - path: x\n  - id: y\n", "f.yaml:3:5: models[1]: path is missing"},
    {"models: [{path: x, aliases: y}]", "models[0].aliases: a list is wanted"},
    {"models: [{path: x, aliases: [[y]]}]", "a list inside a list"},
    {"models: [{path: x, aliases: [{a: y}]}]", "one value is wanted, not a map"},
    {"models: [{path: x, aliases: [~]}]", "models[0].aliases[0]: no value is given"},
    {"models: [{path: x, aliases: [\"\"]}]", "item 1 of the list is empty"},
    {"log: {level: info, level: info}", "f.yaml:1:20: log.level: the key is written twice"},
    {"log: {level: info}\nlog: {format: text}", "f.yaml:2:1: log: the key is written twice"},
    {"backend: {options: {cpu: {a: 1, a: 2}}}", "backend.options.cpu.a: the key is written twice"},
    {"backend: {options: {\"a b\": {}}}", "is not a name of letters"},
    {"backend: {options: {cpu: {a: [1]}}}", "one value is wanted"},
    {"backend: {name: CPU}", "\"CPU\" given; wanted: a name of a-z"},
    {"backend: {name: ../x}", "wanted: a name"},
    {"backend: {sha256: 12}", "wanted: 64 hexadecimal digits"},
    {"determinism: exakt", "wanted: exact, run or any"},
    {"version: 2", "\"2\" given; wanted: 1"},
    {"? [a]\n: 1", "a key has to be a plain name"},
    {"a\\0: 1", "unknown key"},
    {"\"log\\0\": 1", "zero byte"},
    {"model: \"a\\0b\"", "zero byte"},
    {"backend: {threads: 0}", "wanted: a whole number from 1"}, /* row 66 */
    {"backend: {threads: -1}", "wanted: a whole number from 1"},
    {"backend: {threads: 1000000}", "wanted: a whole number from 1"},
    {"models: [{path: x, context: {size: -1}}]", "from 0 to 2147483647, or auto"}, /* row 33 */
    {"models: [{path: x, context: {size: 99999999999}}]", "from 0 to 2147483647, or auto"},
    {"models: [{path: x, limits: {max_tokens: 2147483648}}]", "from -1 to 2147483647"},
    {"backend: {threads: 99999999999999999999}", "wanted"},
    {"backend: {threads: \"4\"}", "\"4\" in quotes is text"},
    {"models: [{path: x, mmap: \"true\"}]", "\"true\" in quotes is text; wanted: true or false"},
    {"models: [{path: x, mmap: yes}]", "\"yes\" given; wanted: true or false"}, /* row 71 */
    {"models: [{path: x, mmap: on}]", "true or false"},
    {"models: [{path: x, mmap: 1}]", "true or false"},
    {"models: [{path: x, mmap: True}]", "true or false"},
    {"models: [{path: x, no-mmap: 1}]", "unknown key \"no-mmap\"; did you mean models[].mmap?"},
    {"models: [{path: x, sampling: {seed: 1_000}}]", "\"1_000\" given; wanted: a whole number"},
    {"models: [{path: x, sampling: {seed: 010}}]", "\"010\" has a leading zero"},
    {"models: [{path: x, sampling: {seed: 0o17}}]", "\"0o17\" given"},
    {"models: [{path: x, sampling: {seed: 0x10}}]", "\"0x10\" given"},
    {"models: [{path: x, sampling: {seed: 1:30}}]", "\"1:30\" given"},
    {"models: [{path: x, sampling: {temperature: .nan}}]", "\".nan\" given; wanted: a number from -1 to 100"},
    {"models: [{path: x, sampling: {temperature: .inf}}]", "\".inf\" given"},
    {"models: [{path: x, sampling: {temperature: nan}}]", "\"nan\" given"},
    {"models: [{path: x, sampling: {temperature: ~}}]", "this is YAML's null"},
    {"models: [{path: x, sampling: {top_p: 1.01}}]", "a number from 0 to 1"},
    {"models: [{path: ~}]", "models[0].path: no value is given (this is YAML's null"},
    {"models: [{path: }]", "models[0].path: no value is given; wanted"},
    {"model:", "model: no value is given"},
    {"model: \"\"", "the value is empty"},
    {"backend: null", "no value is given (this is YAML's null"},
    {"y: 1", "unknown key \"y\"; known here: version, plugin_dirs, backend, determinism, models, log, model"},
    {"log:\n\tlevel: info", "f.yaml:2:1: a tab in the indentation"},
    {"log:\n  level: info\n  \tformat: text", "f.yaml:3:3: a tab in the indentation"},
    {"model: b: c", "f.yaml:1:9: not YAML: mapping values are not allowed"},
    {"log: {level: info", "not YAML: did not find expected ',' or '}'"},
    {"log: \"abc", "not YAML"},
    {"log: {level: info}\n---\nlog: {level: info}", "f.yaml:2:1: a second document"},
    {"%YAML 1.1\n---\nlog: {level: info}", "only %YAML 1.2"},
    {"log: {level: !!str info}", "f.yaml:1:14: log.level: tags"},
    {"!x\nlog: {level: info}", "tags"},
    {"model: a\xff", "f.yaml:1:9: the file is not UTF-8 here"},
    {"log: {level: info}\nmodel: a\x01", "f.yaml:2:9: a control character"},
    {"model: ~bob/x", "only ~/ is understood"},
};

START_TEST(wrong_files) { refused(wrong[_i].text, wrong[_i].part); }
END_TEST

/* Row 68: aliases, depth and size. */
START_TEST(bombs)
{
    refused("model: &a x\n", "f.yaml:1:8: model: anchors");
    refused("log: &a [*a]", "log: anchors");
    refused("model: *x", "aliases");
    refused("<<: *x", "unknown key \"<<\"");
    refused("<<: {log: 1}", "unknown key \"<<\"");
    refused("a: &a [l,l,l]\nb: &b [*a,*a,*a]", "unknown key \"a\"");
    size_t n = 100000;
    char *deep = malloc(n + 8);
    memset(deep, '[', n);
    deep[n] = 0;
    refused(deep, "the file has to be a map");
    memset(deep, '{', n);
    refused(deep, "a key has to be a plain name");
    free(deep);
    n = 50u << 20;
    char *big = malloc(n + 1);
    memset(big, 'x', n);
    memcpy(big, "model: ", 7);
    big[n] = 0;
    refused(big, "larger than 1048576 bytes");
    big[100000] = 0;
    refused(big, "the value is longer than 65536 bytes");
    free(big);
    char many[8192] = "models: [";
    for (int i = 0; i < 65; i++) strcat(many, "{path: x},");
    refused(strcat(many, "]"), "too many items (64 at most)");
    char keys[8192] = "backend: {options: {cpu: {";
    for (int i = 0; i < 65; i++) sprintf(keys + strlen(keys), "k%d: 1,", i);
    refused(strcat(keys, "}}}"), "too many keys (64 at most)");
    char long_key[3000];
    sprintf(long_key, "%01000d: 1", 7); /* YAML keys end at 1024 */
    refused(long_key, "unknown key \"0000");
    sprintf(long_key, "backend: {options: {%0200d: {}}}", 7);
    refused(long_key, "is not a name of letters");
}
END_TEST

/* Row 69. */
START_TEST(references)
{
    unsetenv("NOPE");
    setenv("EMPTY", "", 1);
    setenv("N", "3", 1);
    setenv("SELF", "${SELF}", 1);
    setenv("EVIL", "x: 1 # y\nlog: {level: debug}", 1);
    refused("model: ${NOPE}", "f.yaml:1:8: model: the environment variable NOPE is not set; ${NOPE:-default}");
    refused("backend: {options: {cpu: {api_key: \"${NOPE}\"}}}",
            "backend.options.cpu.api_key: the environment variable NOPE");
    refused("model: ${EMPTY}", "the value is empty");
    refused("backend: {threads: \"${EMPTY}\"}", "backend.threads: the value is empty; wanted: a whole number");
    refused("model: ${NOPE:-${HOME}}", "a default takes no other variable");
    refused("model: ${N", "is not ${VAR}");
    refused("model: ${}", "is not ${VAR}");
    refused("model: ${1}", "is not ${VAR}");
    refused("model: ${N:+x}", "is not ${VAR}");
    refused("model: ${N-x}", "is not ${VAR}");
    refused("\"${N}\": 1", "unknown key");
    kopi_config *c = loaded(
        "backend:\n  threads: ${N}\n  options:\n    cpu: {a: \"${EVIL}\", b: \"${SELF}\", c: $$N$N, d: \"$${N}\",\n"
        "          e: \"${NOPE:-d: e}\", f: \"${EMPTY:-}\", g: \"$\", h: \"a${N}b${N}\"}\n");
    ck_assert_int_eq(kopi__config_int(c, "backend.threads", -1), 3);
    expect(c, "backend.options.cpu.a", "x: 1 # y\nlog: {level: debug}", NULL);
    expect(c, "log.level", "warn", "default");
    expect(c, "backend.options.cpu.b", "${SELF}", NULL);
    expect(c, "backend.options.cpu.c", "$N$N", NULL);
    expect(c, "backend.options.cpu.d", "${N}", NULL);
    expect(c, "backend.options.cpu.e", "d: e", NULL);
    expect(c, "backend.options.cpu.f", "", NULL);
    expect(c, "backend.options.cpu.g", "$", NULL);
    expect(c, "backend.options.cpu.h", "a3b3", NULL);
    kopi_config_free(c);
    c = loaded("backend: {threads: \"${N}\"}");
    ck_assert_int_eq(kopi__config_int(c, "backend.threads", -1), 3);
    kopi_config_free(c);
    char *huge = malloc(70001);
    memset(huge, 'x', 70000);
    huge[70000] = 0;
    setenv("HUGE_VALUE", huge, 1);
    free(huge);
    refused("model: ${HUGE_VALUE}", "longer than 65536");
}
END_TEST

/* Row 70: config in /A. */
START_TEST(paths)
{
    static const struct {
        const char *in, *out;
    } rows[] = {{"m/x.gguf", "/A/m/x.gguf"},
                {"./m/x.gguf", "/A/./m/x.gguf"},
                {"../A/m/x.gguf", "/A/../A/m/x.gguf"},
                {"/m/x.gguf", "/m/x.gguf"},
                {"m/a b.gguf", "/A/m/a b.gguf"},
                {"m/x/", "/A/m/x/"},
                {"~/x.gguf", "/home/u/x.gguf"},
                {"./~x", "/A/./~x"},
                {"no", "/A/no"},
                {"012", "/A/012"},
                {"\"~\"", "/home/u"},
                {"1:30", "/A/1:30"},
                {"1_000", "/A/1_000"},
                {"0x10", "/A/0x10"},
                {".inf", "/A/.inf"},
                {"true", "/A/true"},
                {"gr\xc3\xbc\xc3\x9f.gguf", "/A/gr\xc3\xbc\xc3\x9f.gguf"},
                {"\"null\"", "/A/null"}};
    setenv("HOME", "/home/u", 1);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[200];
        snprintf(text, sizeof text, "model: %s\n", rows[i].in);
        kopi_config *c = loaded(text);
        expect(c, "models[0].path", rows[i].out, NULL);
        kopi_config_free(c);
    }
    unsetenv("HOME");
    refused("model: ~/x", "HOME is not set");
    kopi_config *c = fresh(); /* bytes that are not UTF-8 come by flag */
    ck_assert_int_eq(kopi_config_flag(c, "-m", "m/\xff.gguf", &err), KOPI_OK);
    expect(c, "model", "m/\xff.gguf", "-m");
    kopi_config_free(c);
}
END_TEST

/* Row 71: BOM, CRLF, names that other YAML versions take for booleans. */
START_TEST(byte_details)
{
    kopi_config *c = loaded("\xef\xbb\xbf"
                            "backend: cpu\r\nmodels:\r\n  - id: no\r\n    path: x.gguf\r\n    aliases: [y, 012, "
                            "~x]\r\nlog:\r\n  level: info\r\n");
    expect(c, "backend.name", "cpu", "f.yaml:1:10");
    expect(c, "models[0].id", "no", "f.yaml:3:9");
    expect(c, "models[0].path", "/A/x.gguf", NULL);
    expect(c, "models[0].aliases", "y,012,~x", NULL);
    expect(c, "log.level", "info", "f.yaml:7:10");
    kopi_config_free(c);
    c = loaded("# a\n\n---\nlog:   # c\n    level: 'info' # d\n    # e\n...\n");
    expect(c, "log.level", "info", "f.yaml:5:12");
    kopi_config_free(c);
    c = loaded("log:\nversion: 1\nbackend:\nmodels: []\n"); /* sections that are all comments */
    expect(c, "version", "1", "f.yaml:2:10");
    kopi_config_free(c);
    refused("\xef\xbb\xbf\xef\xbb\xbflog: {level: info}", "f.yaml:1:1: a byte order mark");
}
END_TEST

/* flag > --set > environment > later file > earlier file > default, whatever the order of the calls. */
START_TEST(precedence)
{
    kopi_config *c = fresh();
    const char *const path = "models[0].context.size";
    setenv("KOPI_CTX_SIZE", "30", 1);
    ck_assert_int_eq(load(c, "models: [{path: a, context: {size: 10}, mmap: false}]\nlog: {level: info}"), KOPI_OK);
    expect(c, path, "10", NULL);
    ck_assert_int_eq(load(c, "models: [{path: a, context: {size: 20}}]"), KOPI_OK);
    expect(c, path, "20", NULL);
    expect(c, "models[0].mmap", "true", "default"); /* models are replaced as a whole */
    expect(c, "log.level", "info", NULL);           /* the rest key by key */
    ck_assert_int_eq(kopi_config_flag(c, "-c", "50", &err), KOPI_OK);
    expect(c, path, "50", "-c");
    ck_assert_int_eq(kopi_config_set(c, path, "40", &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_load_env(c, &err), KOPI_OK);
    expect(c, path, "50", "-c");
    ck_assert_int_eq(kopi_config_flag(c, "--ctx-size", "60", &err), KOPI_OK);
    expect(c, path, "60", "--ctx-size");
    ck_assert_int_eq(kopi__config_find_upto(c, "models[].context.size", 0, KOPI_FROM_SET)->i, 40);
    ck_assert_int_eq(kopi__config_find_upto(c, "models[].context.size", 0, KOPI_FROM_ENV)->i, 30);
    ck_assert_int_eq(kopi__config_find_upto(c, "models[].context.size", 0, KOPI_FROM_FILE)->i, 20);
    ck_assert_int_eq(kopi__config_find_upto(c, "models[].context.size", 0, KOPI_FROM_DEFAULT)->i, 0);
    kopi_config_free(c);
}
END_TEST

START_TEST(environment)
{
    static const struct {
        const char *text;
        int value;
    } bools[] = {{"1", 1},  {"0", 0},   {"true", 1},   {"false", 0}, {"yes", 1}, {"no", 0},
                 {"on", 1}, {"off", 0}, {"maybe", -1}, {"", -1},     {"2", -1}};
    kopi_config *c = fresh();
    for (size_t i = 0; i < sizeof bools / sizeof *bools; i++) {
        setenv("KOPI_MMAP", bools[i].text, 1);
        kopi_status status = kopi_config_load_env(c, &err);
        ck_assert_int_eq(status, bools[i].value < 0 ? KOPI_E_CONFIG : KOPI_OK);
        if (!status) ck_assert_int_eq(kopi__config_bool(c, "models[].mmap", 0), bools[i].value);
    }
    ck_assert_str_eq(err.text, "KOPI_MMAP: models[].mmap: \"2\" given; wanted: true or false");
    setenv("KOPI_MMAP", "off", 1);
    setenv("KOPI_THREADS", "", 1);
    ck_assert_int_eq(kopi_config_load_env(c, &err), KOPI_E_CONFIG);
    ck_assert_str_eq(err.text,
                     "KOPI_THREADS: backend.threads: the variable is set but empty; unset it or give it a value");
    setenv("KOPI_THREADS", "2", 1);
    setenv("KOPI_ALIAS", "a,b", 1);
    ck_assert_int_eq(kopi_config_load_env(c, &err), KOPI_OK);
    expect(c, "models[0].mmap", "false", "KOPI_MMAP");
    expect(c, "models[0].aliases", "a,b", "KOPI_ALIAS");
    ck_assert_str_eq(kopi__config_list(c, "models[].aliases", 0)[1], "b");
    kopi_config_free(c);
}
END_TEST

static char logged[200];
static void keep_log(void *ctx, int level, const char *line)
{
    (void)ctx;
    snprintf(logged, sizeof logged, "%d %s", level, line);
}

START_TEST(unread_variables)
{
    static const struct { const char *name, *says; } rows[] = {
        {"KOPI_THREDS", "did you mean KOPI_THREADS?"},
        {"KOPI_TEMP", "did you mean KOPI_TEMPERATURE?"},       /* --temp */
        {"KOPI_N_PREDICT", "did you mean KOPI_MAX_TOKENS?"},   /* --n-predict */
        {"KOPI_BATCH", "did you mean KOPI_BATCH_SIZE?"},       /* context.batch */
        {"KOPI_PLUGIN_PATHS", "did you mean KOPI_PLUGIN_PATH?"},
        {"KOPI_CONFIG", "kopi config init names those that are"},
        {"KOPI_HOME_OF_MODELS", "kopi config init names those that are"},
    };
    char line[200];
    setenv("KOPI_MY_PLUGINS", "/p", 1);
    kopi_config *c = loaded("model: ${KOPI_MY_MODEL:-x}\nplugin_dirs: [\"${KOPI_MY_PLUGINS}/a\"]\n");
    kopi_log_set(KOPI_LOG_WARN, keep_log, NULL);
    setenv("KOPI_PLUGIN_PATH", "/", 1);
    setenv("KOPI_SEED", "1", 1);
    setenv("KOPI_MY_MODEL", "1", 1);
    ck_assert_int_eq(kopi_config_load_env(c, &err), KOPI_OK);
    ck_assert_str_eq(logged, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        setenv(rows[i].name, "1", 1);
        ck_assert_int_eq(kopi_config_load_env(c, &err), KOPI_OK);
        snprintf(line, sizeof line, "1 the environment variable %s is not read; %s", rows[i].name, rows[i].says);
        ck_assert_str_eq(logged, line);
        unsetenv(rows[i].name);
    }
    kopi_config_free(c);
}
END_TEST

START_TEST(flags_and_set)
{
    static const struct {
        const char *flag, *value, *text;
    } bad_flags[] = {
        {"--threads", "0", "--threads: backend.threads: \"0\" given; wanted: a whole number from 1 to 1024, or auto"},
        {"-c", "-1", "-c: models[].context.size: \"-1\" given; wanted: a whole number from 0 to 2147483647, or auto"},
        {"-c", "",
         "-c: models[].context.size: the value is empty; wanted: a whole number from 0 to 2147483647, or auto"},
        {"-c", NULL, "-c: a value is missing"},
        {"--no-mmap", "1", "--no-mmap: takes no value"},
        {"--bogus", "1", "--bogus: no such flag"},
        {"--no-threads", NULL, "--no-threads: no such flag"},
        {"-", NULL, "-: no such flag"},
        {"--", NULL, "--: no such flag"},
        {"-c, --ctx-size", "1", "-c, --ctx-size: no such flag"},
        {"ctx-size", "1", "ctx-size: no such flag"},
        {"--ctx", "1", "--ctx: no such flag"}};
    static const struct {
        const char *path, *value, *text;
    } bad_sets[] = {
        {"backend.thread", "1", "--set: backend.thread: unknown key \"thread\"; did you mean backend.threads?"},
        {"", "1", "--set: : unknown key \"\""},
        {"log", "1", "--set: log: log is a section: name one of its keys"},
        {"log.level.x", "1", "log.level is a value and has no key \"x\""},
        {"log.", "1", "not understood"},
        {"log..level", "1", "unknown key \"\""},
        {"log[0].level", "1", "not understood"},
        {"models", "1", "models needs an index"},
        {"models.path", "1", "models needs an index"},
        {"models[64].path", "1", "not a number below 64"},
        {"models[-1].path", "1", "not a number below 64"},
        {"models[99999999999].path", "1", "not a number below 64"},
        {"models[0]path", "1", "not understood"},
        {"models[0", "1", "models needs an index"},
        {"models[0]", "1", "models[] is a section"},
        {"models[0].context.size", "x", "--set: models[0].context.size: \"x\" given"},
        {"backend.options.cpu.a b", "x", "is not a name"}};
    kopi_config *c = fresh();
    for (size_t i = 0; i < sizeof bad_flags / sizeof *bad_flags; i++) {
        ck_assert_int_eq(kopi_config_flag(c, bad_flags[i].flag, bad_flags[i].value, &err), KOPI_E_INVALID);
        ck_assert_str_eq(err.text, bad_flags[i].text);
    }
    for (size_t i = 0; i < sizeof bad_sets / sizeof *bad_sets; i++) {
        ck_assert_int_eq(kopi_config_set(c, bad_sets[i].path, bad_sets[i].value, &err), KOPI_E_INVALID);
        ck_assert_msg(strstr(err.text, bad_sets[i].text), "%s: %s", bad_sets[i].path, err.text);
    }
    ck_assert_int_eq(kopi_config_flag(c, "--no-mmap", NULL, &err), KOPI_OK);
    expect(c, "models[0].mmap", "false", "--no-mmap");
    ck_assert_int_eq(kopi_config_flag(c, "--mmap", NULL, &err), KOPI_OK);
    expect(c, "models[0].mmap", "true", "--mmap");
    ck_assert_int_eq(kopi_config_flag(c, "-ctk", "f32", &err), KOPI_OK);
    expect(c, "models[0].kv.type_k", "f32", "-ctk");
    ck_assert_int_eq(kopi_config_flag(c, "--plugin-dir", "/a:b", &err), KOPI_OK); /* one flag, one folder */
    ck_assert_int_eq(kopi_config_flag(c, "--plugin-dir", "/c", &err), KOPI_OK);
    ck_assert_str_eq(kopi__config_list(c, "plugin_dirs", -1)[0], "/a:b");
    ck_assert_str_eq(kopi__config_list(c, "plugin_dirs", -1)[1], "/c");
    ck_assert_ptr_null(kopi__config_list(c, "plugin_dirs", -1)[2]);
    for (int i = 2; i < 64; i++) ck_assert_int_eq(kopi_config_flag(c, "--plugin-dir", "/d", &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_flag(c, "--plugin-dir", "/d", &err), KOPI_E_INVALID);
    ck_assert_int_eq(kopi_config_set(c, "backend.options.cpu.isa", "c", &err), KOPI_OK);
    expect(c, "backend.options.cpu.isa", "c", "--set");
    ck_assert_int_eq(kopi_config_get(c, "log.levle", NULL, NULL, &err), KOPI_E_INVALID);
    ck_assert_int_eq(err.code, KOPI_E_INVALID);
    ck_assert_str_eq(err.text, "log.levle: unknown key \"levle\"; did you mean log.level?");
    ck_assert_int_eq(kopi_config_get(c, "log", NULL, NULL, NULL), KOPI_E_INVALID);
    char many[200] = "a";
    for (int i = 1; i < 65; i++) strcat(many, ",a");
    ck_assert_int_eq(kopi_config_set(c, "models[].aliases", many, &err), KOPI_E_INVALID);
    ck_assert_str_eq(err.text, "--set: models[].aliases: more than 64 items");
    many[strlen(many) - 2] = 0;
    ck_assert_int_eq(kopi_config_set(c, "models[].aliases", many, &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_set(c, "log.level", "info", NULL), KOPI_OK);
    ck_assert_int_eq(kopi_config_set(c, "log.level", "x", NULL), KOPI_E_INVALID);
    kopi_config_free(c);
}
END_TEST

/* --model: the id of a configured model, or a file in place of all of them. */
START_TEST(choosing_a_model)
{
    const char *text =
        "models:\n- {id: a, path: a1, context: {size: 10}}\n- {path: b.gguf, aliases: [z], context: {size: 20}}\n";
    kopi_config *c = loaded(text);
    ck_assert_int_eq(kopi_config_flag(c, "--temp", "0", &err), KOPI_OK); /* for every model */
    ck_assert(kopi__config_float(c, "models[].sampling.temperature", 1) == 0);
    ck_assert_int_eq(kopi_config_flag(c, "-m", "b", &err), KOPI_OK);
    ck_assert_uint_eq(kopi_config_models(c), 1);
    expect(c, "models[0].path", "/A/b.gguf", NULL);
    expect(c, "models[0].context.size", "20", NULL);
    ck_assert_int_eq(kopi_config_flag(c, "-m", "z", &err), KOPI_OK);
    expect(c, "models[0].path", "/A/b.gguf", NULL);
    ck_assert_int_eq(kopi_config_flag(c, "-m", "a", &err), KOPI_OK);
    expect(c, "models[0].context.size", "10", NULL);
    /* --set counts as the file does, whichever is chosen. */
    ck_assert_int_eq(kopi_config_set(c, "models[1].context.batch", "11", &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_check(c, &err), KOPI_OK);
    expect(c, "models[0].context.batch", "512", "default");
    ck_assert_int_eq(kopi_config_flag(c, "-m", "z", &err), KOPI_OK);
    expect(c, "models[0].context.batch", "11", "--set");
    ck_assert_int_eq(kopi_config_set(c, "models[0].context.batch", "12", &err), KOPI_OK);
    expect(c, "models[0].context.batch", "11", "--set");
    ck_assert_int_eq(kopi_config_set(c, "models[2].context.batch", "13", &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_check(c, &err), KOPI_E_INVALID);
    ck_assert_str_eq(err.text, "--set: models[2].context.batch: the index is too large: there are 2 models");
    kopi_config_free(c);
    c = loaded(text);
    ck_assert_int_eq(kopi_config_flag(c, "--temp", "0", &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_flag(c, "-m", "./a", &err), KOPI_OK);
    expect(c, "models[0].path", "./a", "-m");
    expect(c, "models[0].id", NULL, NULL);
    expect(c, "models[0].context.size", "auto", "default");
    expect(c, "models[0].sampling.temperature", "0", "--temp");
    ck_assert_int_eq(kopi_config_set(c, "models[0].context.size", "7", &err), KOPI_OK);
    expect(c, "models[0].context.size", "7", "--set");
    ck_assert_int_eq(kopi_config_check(c, &err), KOPI_OK);
    ck_assert_int_eq(kopi_config_get(c, "models[1].path", NULL, NULL, &err), KOPI_E_INVALID);
    kopi_config_free(c);
}
END_TEST

START_TEST(checks_over_keys)
{
    static const struct {
        const char *text, *set, *value, *flag, *part;
        kopi_status status;
    } rows[] = {
        {"models: [{id: a, path: x}, {id: a, path: y}]", NULL, NULL, NULL,
         "f.yaml:1:33: models[1].id: models 0 and 1 are both called \"a\"",
         KOPI_E_CONFIG},
        {"models: [{path: x/m.gguf}, {path: y/m.gguf}]", NULL, NULL, NULL,
         "models[1].path: models 0 and 1 are both called \"m\"",
         KOPI_E_CONFIG},
        {"models: [{path: x, aliases: [q]}, {id: q, path: y}]", NULL, NULL, NULL, "both called \"q\"", KOPI_E_CONFIG},
        {"backend: {name: cpu, path: x.so}", NULL, NULL, NULL, "backend.path: backend.name (f.yaml:1:17) is given too",
         KOPI_E_CONFIG},
        {"model: x", "models[1].context.size", "9", "q", "there is 1 model, the file that --model names",
         KOPI_E_INVALID},
        {"model: x", "models[3].path", "y", NULL, "models[1].path: a model needs a path", KOPI_E_INVALID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kopi_config *c = loaded(rows[i].text);
        if (rows[i].set) ck_assert_int_eq(kopi_config_set(c, rows[i].set, rows[i].value, &err), KOPI_OK);
        if (rows[i].flag) ck_assert_int_eq(kopi_config_flag(c, "-m", rows[i].flag, &err), KOPI_OK);
        ck_assert_int_eq(kopi_config_check(c, &err), rows[i].status);
        ck_assert_msg(strstr(err.text, rows[i].part), "%s", err.text);
        kopi_config_free(c);
    }
    const char *name, *path;
    kopi_config *c = loaded("backend: {path: x.so}"); /* the higher origin counts */
    ck_assert_int_eq(kopi__config_backend(c, &name, &path, &err), KOPI_OK);
    ck_assert_ptr_null(name);
    ck_assert_str_eq(path, "/A/x.so");
    ck_assert_int_eq(kopi_config_flag(c, "-b", "cpu", &err), KOPI_OK);
    ck_assert_int_eq(kopi__config_backend(c, &name, &path, &err), KOPI_OK);
    ck_assert_str_eq(name, "cpu");
    ck_assert_ptr_null(path);
    kopi_config_free(c);
}
END_TEST

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
}

START_TEST(files)
{
    char dir[] = "/tmp/kopi-config-XXXXXX", path[200], want[200];
    kopi_config *c = fresh();
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ck_assert_int_eq(chdir(dir), 0);
    ck_assert(!mkdir("A", 0700) && !mkdir("A/kopi", 0700) && !mkdir("B", 0700));
    write_file("A/kopi/config.yaml", "model: m/x.gguf\nlog: {level: info}\n");
    write_file("A/empty.yaml", "");
    ck_assert_int_eq(chdir("B"), 0);
    ck_assert_int_eq(kopi_config_load(c, "../A/kopi/config.yaml", &err), KOPI_OK);
    snprintf(want, sizeof want, "%s/B/../A/kopi/m/x.gguf", dir);
    expect(c, "models[0].path", want, "../A/kopi/config.yaml:1:8");
    ck_assert_int_eq(chdir("../A/kopi"), 0);
    ck_assert_int_eq(kopi_config_load(c, "config.yaml", &err), KOPI_OK);
    snprintf(want, sizeof want, "%s/A/kopi/m/x.gguf", dir);
    expect(c, "models[0].path", want, "config.yaml:1:8");
    ck_assert_int_eq(kopi_config_load(c, "../empty.yaml", &err), KOPI_E_CONFIG);
    ck_assert_str_eq(err.text, "../empty.yaml: there is no value in it");
    ck_assert_int_eq(kopi_config_load(c, "..", &err), KOPI_E_CONFIG);
    ck_assert_str_eq(err.text, "..: is a directory");
    ck_assert_int_eq(mkfifo("fifo", 0600), 0); /* nobody writes: no waiting */
    ck_assert_int_eq(kopi_config_load(c, "fifo", &err), KOPI_E_CONFIG);
    ck_assert_str_eq(err.text, "fifo: there is no value in it");
    ck_assert_int_eq(unlink("fifo"), 0);
    ck_assert_int_eq(chmod("config.yaml", 0000), 0);
    if (geteuid()) { /* root may read all */
        ck_assert_int_eq(kopi_config_load(c, "config.yaml", &err), KOPI_E_CONFIG);
        ck_assert_str_eq(err.text, "config.yaml: cannot be opened: Permission denied");
    }
    ck_assert_int_eq(chmod("config.yaml", 0600), 0);
    ck_assert_int_eq(kopi_config_load(c, "nope.yaml", &err), KOPI_E_CONFIG);
    ck_assert_str_eq(err.text, "nope.yaml: cannot be opened: No such file or directory");
    kopi_config_free(c);
    c = fresh();
    snprintf(path, sizeof path, "%s/A", dir);
    setenv("XDG_CONFIG_HOME", path, 1);
    ck_assert_int_eq(kopi_config_load_standard(c, &err), KOPI_OK);
    expect(c, "log.level", "info", NULL);
    kopi_config_free(c);
    c = fresh();
    setenv("XDG_CONFIG_HOME", "A", 1); /* relative: does not count */
    setenv("HOME", path, 1);
    ck_assert(!chdir(dir) && !mkdir("A/.config", 0700) && !rename("A/kopi", "A/.config/kopi"));
    ck_assert_int_eq(kopi_config_load_standard(c, &err), KOPI_OK);
    expect(c, "log.level", "info", NULL);
    ck_assert(!rename("A/.config/kopi", "A/kopi") && !rmdir("A/.config"));
    unsetenv("HOME");
    ck_assert_int_eq(kopi_config_load_standard(c, &err), KOPI_OK);
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    ck_assert_int_eq(kopi_config_load_standard(c, &err), KOPI_OK);
    kopi_config_free(c);
    ck_assert(!chdir("/") && !unlink(strcat(strcpy(path, dir), "/A/kopi/config.yaml")));
    ck_assert(!unlink(strcat(strcpy(path, dir), "/A/empty.yaml")) && !rmdir(strcat(strcpy(path, dir), "/A/kopi")));
    ck_assert(!rmdir(strcat(strcpy(path, dir), "/A")) && !rmdir(strcat(strcpy(path, dir), "/B")) && !rmdir(dir));
}
END_TEST

/* Sizes and durations have no key yet: the server's keys will use them. */
START_TEST(value_types)
{
    static const kopi_config_key size = {.path = "s", .type = KOPI_CONFIG_SIZE, .imin = 0, .imax = 1ll << 40};
    static const kopi_config_key duration = {.path = "d", .type = KOPI_CONFIG_DURATION, .imin = 1, .imax = 86400000};
    static const struct {
        const kopi_config_key *key;
        const char *text;
        int64_t value;
    } rows[] = {{&size, "512", 512},
                {&size, "8KiB", 8192},
                {&size, "1GiB", 1 << 30},
                {&size, "8KB", 8000},
                {&size, "2TiB", -1},
                {&size, "-1", -1},
                {&size, "", -1},
                {&size, "1.5GiB", -1},
                {&size, "9999GiB", -1},
                {&duration, "250ms", 250},
                {&duration, "30s", 30000},
                {&duration, "10m", 600000},
                {&duration, "2h", 7200000},
                {&duration, "30", -1},
                {&duration, "25h", -1},
                {&duration, "0s", -1},
                {&duration, "s", -1},
                {&duration, "999999999999999h", -1},
                {&duration, "1 s", -1},
                {&duration, "1d", -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kopi__setting s = {.key = rows[i].key};
        kopi_status status = kopi__value_parse(&s, &(struct kopi__raw){.texts = &rows[i].text, .n = 1}, &err);
        ck_assert_msg(status == (rows[i].value < 0 ? KOPI_E_CONFIG : KOPI_OK), "%s", rows[i].text);
        if (!status) ck_assert_int_eq(s.i, rows[i].value);
        kopi__setting_clear(&s);
    }
}
END_TEST

START_TEST(nearest_names)
{
    ck_assert_uint_eq(kopi__nearest_distance("threads", "threads"), 0);
    ck_assert_uint_eq(kopi__nearest_distance("Top-K", "top_k"), 0);
    ck_assert_uint_eq(kopi__nearest_distance("", "abc"), 3);
    ck_assert_uint_eq(kopi__nearest_distance("abc", ""), 3);
    ck_assert_uint_eq(kopi__nearest_distance("modle", "model"), 1);
    ck_assert_uint_eq(kopi__nearest_distance("kitten", "sitting"), 3);
    ck_assert_uint_eq(kopi__nearest_distance("ca", "abc"), 3);
    char a[70];
    memset(a, 'a', 65);
    a[65] = 0;
    ck_assert_uint_eq(kopi__nearest_distance(a, a), 1000);
    a[64] = 0;
    ck_assert_uint_eq(kopi__nearest_distance(a, a), 0);
    ck_assert_uint_eq(kopi__nearest_distance(a, ""), 64);
}
END_TEST

/* What the rest of the code relies on. */
START_TEST(table_is_sound)
{
    const kopi_config_key *a, *b;
    char wanted[200];
    for (size_t i = 0; (a = kopi_config_key_at(i)); i++) {
        ck_assert(a->help && *a->help && a->help[strlen(a->help) - 1] != '.');
        ck_assert(strlen(kopi__key_wanted(a, wanted, sizeof wanted)) > 0);
        if (a->env) ck_assert_int_eq(strncmp(a->env, "KOPI_", 5), 0);
        ck_assert(a->type != KOPI_CONFIG_ENUM || (a->words && a->default_value));
        ck_assert(!a->flags || a->type == KOPI_CONFIG_BOOL || a->arg);
        for (size_t k = i + 1; (b = kopi_config_key_at(k)); k++) {
            ck_assert_str_ne(a->path, b->path);
            if (a->env && b->env) ck_assert_str_ne(a->env, b->env);
        }
        char flags[100] = "", *rest = flags, *flag;
        if (a->flags) strcpy(flags, a->flags);
        while ((flag = strsep(&rest, ", "))) /* each flag belongs to this key alone */
            if (*flag) ck_assert_ptr_eq(kopi_config_key_of_flag(flag), a);
    }
}
END_TEST

/* The whole use of a configuration: KOPI_OK, or KOPI_E_NOMEM from any step. */
static kopi_status use_all(void)
{
    kopi_config *c = NULL;
    kopi_status status = kopi_config_new(&c, &err);
    if (status) return status;
    status = load(c, long_form);
    if (!status) status = kopi_config_load(c, "/proc/self/fd/0/none", NULL) == KOPI_E_NOMEM ? KOPI_E_NOMEM : KOPI_OK;
    if (!status) status = kopi_config_load_env(c, &err);
    if (!status) status = kopi_config_set(c, "backend.options.cpu.isa", "c", &err);
    if (!status) status = kopi_config_set(c, "plugin_dirs", "/x:/y", &err);
    if (!status) status = kopi_config_flag(c, "--plugin-dir", "/p", &err);
    if (!status) status = kopi_config_flag(c, "--plugin-dir", "/q", &err);
    if (!status) status = kopi_config_flag(c, "-c", "100", &err);
    if (!status) status = kopi_config_check(c, &err);
    char *text[3] = {NULL, NULL, NULL};
    if (!status) status = kopi_config_print(c, &text[0], &err);
    if (!status) status = kopi_config_starter(&text[1], &err);
    if (!status) status = kopi_config_schema(&text[2], &err);
    for (int i = 0; i < 3; i++) kopi__free(text[i]);
    kopi_config_free(c);
    return status;
}

START_TEST(every_allocation_fails)
{
    setenv("KOPI_ALIAS", "q,r", 1);
    setenv("KOPI_MODEL", "b", 1);
    uint64_t n = 1;
    for (;; n++) {
        kopi__mem_fail_at(n);
        kopi_status status = use_all();
        kopi__mem_fail_at(0);
        if (!status) break;
        ck_assert_msg(status == KOPI_E_NOMEM, "allocation %d: %s", (int)n, err.text);
        ck_assert_int_eq(err.code, KOPI_E_NOMEM);
    }
    ck_assert_uint_gt(n, 150);
}
END_TEST

/* What the build tells its test scripts is none of the configuration's. */
static void clear_environment(void)
{
    static const char *const names[] = {"KOPI_SOURCE", "KOPI_BUILD", "KOPI_PLUGINS", "KOPI_SANITIZED", "KOPI_CC",
                                        "KOPI_NO_SIMDE", "KOPI_SHARED", "KOPI_LIBDIR", "KOPI_TEST_GOLDEN"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
}

int main(void)
{
    clear_environment();
    TCase *t = tcase_create("config");
    tcase_add_test(t, defaults);
    tcase_add_test(t, short_forms);
    tcase_add_test(t, whole_form);
    tcase_add_loop_test(t, wrong_files, 0, sizeof wrong / sizeof *wrong);
    tcase_add_test(t, bombs);
    tcase_add_test(t, references);
    tcase_add_test(t, paths);
    tcase_add_test(t, byte_details);
    tcase_add_test(t, precedence);
    tcase_add_test(t, environment);
    tcase_add_test(t, unread_variables);
    tcase_add_test(t, flags_and_set);
    tcase_add_test(t, choosing_a_model);
    tcase_add_test(t, checks_over_keys);
    tcase_add_test(t, files);
    tcase_add_test(t, value_types);
    tcase_add_test(t, nearest_names);
    tcase_add_test(t, table_is_sound);
    tcase_add_test(t, every_allocation_fails);
    tcase_set_timeout(t, 60);
    Suite *s = suite_create("config");
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
