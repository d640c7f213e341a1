#include "config_fixture.h"

#include <string.h>

kopi_error err;

kopi_config *fresh(void)
{
    kopi_config *c;
    ck_assert_int_eq(kopi_config_new(&c, &err), KOPI_OK);
    return c;
}

kopi_status load(kopi_config *c, const char *text)
{
    memset(&err, 0, sizeof err);
    return kopi__config_load_text(c, "f.yaml", "/A", text, strlen(text), &err);
}

kopi_config *loaded(const char *text)
{
    kopi_config *c = fresh();
    ck_assert_msg(!load(c, text), "%s: %s", text, err.text);
    return c;
}

void expect(const kopi_config *c, const char *path, const char *value, const char *origin)
{
    const char *v, *o;
    ck_assert_msg(!kopi_config_get(c, path, &v, &o, &err), "%s", err.text);
    ck_assert_pstr_eq(v, value);
    if (origin) ck_assert_str_eq(o, origin);
}

const char long_form[] = "version: 1\n"
                                "plugin_dirs: [/opt/acme, plugins]\n"
                                "backend:\n"
                                "  name: cpu-threaded\n"
                                "  threads: 3\n"
                                "  fallback: none\n"
                                "  options:\n"
                                "    cpu-threaded: {isa: avx2, \"n\": 1.5}\n"
                                "    acme: {speed: 9}\n"
                                "determinism: exact\n"
                                "models:\n"
                                "  - id: a\n"
                                "    path: m/a.gguf\n"
                                "    aliases: [default, \"x y\"]\n"
                                "    mmap: false\n"
                                "    context: {size: 8192, batch: 64, parallel: 4, overflow: error}\n"
                                "    kv: {type_k: f32, type_v: f16}\n"
                                "    template: {source: t.jinja}\n"
                                "    sampling: {temperature: 0.7, top_p: 1, top_k: 20, seed: 9223372036854775807}\n"
                                "    limits: {max_tokens: 4096}\n"
                                "  - path: /b.gguf\n"
                                "    template:\n"
                                "      source: none\n"
                                "    sampling:\n"
                                "log: {level: debug, format: jsonl}\n";
