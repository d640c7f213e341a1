/* kopi inspect: what a model file holds, and the verdict whether and how kopi will run it. */
#include "commands.h"

#include "backend/assign.h"
#include "base/num.h"
#include "gguf/gguf.h"
#include "model/build.h"
#include "run/engine.h"
#include "text/chat.h"
#include "text/tokenizer.h"
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static bool tensors, json, check_only;

const struct cli_option cli_inspect_options[] = {
    {"--tensors", NULL, CLI_FLAG, &tensors, "list every tensor, as --json always does", 0, 0},
    {"--json", NULL, CLI_FLAG, &json, "everything as one JSON object; with --check: the verdict as one", 0, 0},
    {"--check", NULL, CLI_FLAG, &check_only, "only the verdict", 0, 0},
    {0},
};

enum { MAX_ELEMENTS = 6, MAX_TEXT = 200 }; /* of an array and of a string that are shown */

static const kopi_plugin *backend; /* whose types are known too, or NULL */

static bool all_types_known(const struct kopi_gguf *g)
{
    for (uint64_t i = 0; i < kopi__gguf_n_tensors(g); i++)
        if (!kopi__gguf_tensor_at(g, i)->block_bytes) return false;
    return true;
}

/* Where the backend is said: KOPI_FROM_DEFAULT if it is not. */
static int backend_from(void)
{
    const struct kopi__setting *name = kopi__config_find(cli_config, "backend.name", KOPI__MODEL_ALL);
    const struct kopi__setting *path = kopi__config_find(cli_config, "backend.path", KOPI__MODEL_ALL);
    return path && path->from > name->from ? path->from : name->from;
}

static kopi_status load_backend(kopi_error *e)
{
    kopi_engine *engine;
    const struct kopi_plugin_handle *p;
    kopi_status s = kopi_engine_new(cli_config, &engine, e);
    if (s != KOPI_OK) return s;
    s = kopi__engine_plugin(engine, NULL, &p, e);
    if (s == KOPI_OK) backend = &p->desc;
    kopi_engine_free(engine);
    return s;
}

/* A backend that is asked for here has to be there; one of the configuration is loaded only for a file with a type that
 * a backend brings. */
static kopi_status open_model(const char *path, struct kopi_gguf **g, kopi_error *e)
{
    kopi_status s = kopi__gguf_open(path, KOPI__GGUF_ANY_TYPE, NULL, 0, g, e);
    bool asked = backend_from() >= KOPI_FROM_SET;
    if (s != KOPI_OK || backend_from() == KOPI_FROM_DEFAULT || (!asked && all_types_known(*g))) return s;
    kopi__gguf_close(*g);
    s = load_backend(e);
    return s == KOPI_OK ? kopi__gguf_open(path, KOPI__GGUF_ANY_TYPE, backend->dtypes, backend->n_dtypes, g, e) : s;
}

/* Q4_0, the name that the backend gives to its own type, or the number. */
static const char *type_name(uint32_t id, char buf[24])
{
    for (uint32_t i = 0; backend && i < backend->n_dtypes; i++)
        if (backend->dtypes[i].id == id) return backend->dtypes[i].name;
    const char *name = kopi__dtype_name(id);
    snprintf(buf, 24, "0x%08x", id);
    return strcmp(name, "?") ? name : buf;
}

/* Opening once more, strictly, names the type that is missing. */
static kopi_status refuse_types(const struct kopi_gguf *g, kopi_error *e)
{
    struct kopi_gguf *strict;
    kopi_status s = kopi__gguf_open(kopi__gguf_path(g), 0, backend ? backend->dtypes : NULL,
                                    backend ? backend->n_dtypes : 0, &strict, e);
    if (s == KOPI_OK) kopi__gguf_close(strict);
    return s;
}

/* Whether the core can build a program for this file: the reason if not. */
static kopi_status verdict(const struct kopi_gguf *g, kopi_error *e)
{
    if (!all_types_known(g)) return refuse_types(g, e);
    struct kopi_decoder d;
    struct kopi__program *p;
    struct kopi_tokenizer *t = NULL;
    struct kopi_build b = {
        .n_ctx = 64, .max_tok = 1, .max_out = 1, .max_seq = 1, .kv_k = KOPI_DTYPE_F16, .kv_v = KOPI_DTYPE_F16};
    kopi_status s = kopi__decoder_read(g, &d, e);
    if (s == KOPI_OK) s = kopi__tokenizer_new(g, &t, e);
    kopi__tokenizer_free(t);
    if (s != KOPI_OK) return s;
    s = kopi__build(g, &d, &b, &p, e);
    if (s == KOPI_OK) kopi__program_free(p);
    return s;
}

static json_t *scalar(const struct kopi_gguf_kv *kv, uint64_t i)
{
    int64_t v;
    uint64_t u;
    double f;
    bool b;
    struct kopi_gguf_str s;
    if (kopi__gguf_get_bool(kv, i, &b)) return json_boolean(b);
    if (kopi__gguf_get_i64(kv, i, &v)) return json_integer(v);
    if (kopi__gguf_get_u64(kv, i, &u)) return json_real((double)u);
    if (kopi__gguf_get_f64(kv, i, &f)) {
        json_t *r = json_real(f);
        return r ? r : json_null(); /* NaN and infinity have no JSON form */
    }
    if (kopi__gguf_get_str(kv, i, &s)) {
        json_t *t = json_stringn(s.data, s.len);
        return t ? t : json_string("(not UTF-8)");
    }
    return json_null();
}

static json_t *value(const struct kopi_gguf_kv *kv)
{
    if (kv->type != KOPI_GGUF_ARRAY) return scalar(kv, 0);
    json_t *first = json_array();
    for (uint64_t i = 0; i < kv->n && i < MAX_ELEMENTS; i++) json_array_append_new(first, scalar(kv, i));
    return json_pack("{s:s, s:I, s:o}", "array_of", kopi__gguf_type_name(kv->elem_type), "length", (json_int_t)kv->n,
                     "first", first);
}

static json_t *tensor(const struct kopi_gguf_tensor *t)
{
    char type[24];
    json_t *bytes = t->block_bytes ? json_integer((json_int_t)t->size) : json_null();
    json_t *ne = json_array();
    for (uint32_t i = 0; i < t->n_dims; i++) json_array_append_new(ne, json_integer(t->ne[i]));
    return json_pack("{s:s, s:s, s:o, s:o, s:I}", "name", t->name, "type", type_name(t->dtype, type), "shape", ne,
                     "bytes", bytes, "offset", (json_int_t)t->file_offset);
}

static int print_verdict(const struct kopi_gguf *g, bool runs, const kopi_error *e)
{
    json_t *all =
        json_pack("{s:s, s:b, s:s*}", "file", kopi__gguf_path(g), "runs", runs, "reason", runs ? NULL : e->text);
    int code = cli_print_json(all, JSON_INDENT(2));
    json_decref(all);
    return code;
}

static int print_json(const struct kopi_gguf *g, bool runs, const kopi_error *e)
{
    json_t *meta = json_object(), *list = json_array();
    for (uint64_t i = 0; i < kopi__gguf_n_kv(g); i++) {
        const struct kopi_gguf_kv *kv = kopi__gguf_kv_at(g, i);
        json_t *v = value(kv);
        if (json_object_setn_new(meta, kv->key.data, kv->key.len, v))
            json_object_set_new(meta, "(key that is not UTF-8)", json_null());
    }
    for (uint64_t i = 0; i < kopi__gguf_n_tensors(g); i++)
        json_array_append_new(list, tensor(kopi__gguf_tensor_at(g, i)));
    json_t *all = json_pack("{s:s, s:i, s:I, s:b, s:s*, s:o, s:o}", "file", kopi__gguf_path(g), "version",
                            (int)kopi__gguf_version(g), "bytes", (json_int_t)kopi__gguf_file_size(g), "runs", runs,
                            "reason", runs ? NULL : e->text, "metadata", meta, "tensors", list);
    int code = cli_print_json(all, JSON_INDENT(2));
    json_decref(all);
    return code;
}

/* Text of a file on one line, control bytes and the backslash escaped, cut. */
static void print_text(const char *s, size_t n)
{
    size_t shown = n < MAX_TEXT ? n : MAX_TEXT;
    for (size_t i = 0; i < shown; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '\\' || c == '\n' || c == '\t') printf("\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : c);
        else if (c < 0x20 || c == 0x7f) printf("\\x%02x", c);
        else if (c == 0xc2 && i + 1 < shown && (unsigned char)s[i + 1] < 0xa0) /* U+0080 to U+009F */
            printf("\\x%02x", (unsigned char)s[++i]);
        else putchar(c);
    }
    if (shown < n) printf("... (%zu bytes)", n);
}

static void print_value(const struct kopi_gguf_kv *kv)
{
    char number[40];
    json_t *v = scalar(kv, 0);
    if (kv->type == KOPI_GGUF_ARRAY) {
        printf("%llu x %s", (unsigned long long)kv->n, kopi__gguf_type_name(kv->elem_type));
    } else if (json_is_string(v)) {
        print_text(json_string_value(v), json_string_length(v));
    } else if (kv->type == KOPI_GGUF_F32 || kv->type == KOPI_GGUF_F64) {
        fputs(kopi__gguf_number_text(kv, number, sizeof number), stdout);
    } else {
        char *text = json_dumps(v, JSON_ENCODE_ANY);
        printf("%s", text ? text : "?");
        free(text);
    }
    json_decref(v);
}

static const char *size_text(bool known, uint64_t bytes, char buf[40])
{
    return known ? kopi__format_bytes(bytes, buf, 40) : "unknown size";
}

static void print_tensors(const struct kopi_gguf *g)
{
    for (uint64_t i = 0; i < kopi__gguf_n_tensors(g); i++) {
        const struct kopi_gguf_tensor *t = kopi__gguf_tensor_at(g, i);
        char dims[96], bytes[40], type[24];
        printf("  %-32s %-6s %-20s %s\n", t->name, type_name(t->dtype, type),
               kopi__dims_text(t->ne, t->n_dims, dims, sizeof dims), size_text(t->block_bytes != 0, t->size, bytes));
    }
}

/* Types and how much of the file each takes. */
static void print_types(const struct kopi_gguf *g)
{
    uint64_t n = kopi__gguf_n_tensors(g);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t type = kopi__gguf_tensor_at(g, i)->dtype;
        uint64_t count = 0, bytes = 0;
        bool seen = false;
        for (uint64_t k = 0; k < i && !seen && i < 4096; k++) seen = kopi__gguf_tensor_at(g, k)->dtype == type;
        if (seen || i >= 4096) continue;
        for (uint64_t k = i; k < n; k++)
            if (kopi__gguf_tensor_at(g, k)->dtype == type) {
                count++;
                bytes += kopi__gguf_tensor_at(g, k)->size;
            }
        char text[40], name[24];
        printf("  %-6s %5llu tensors, %s\n", type_name(type, name), (unsigned long long)count,
               size_text(kopi__gguf_tensor_at(g, i)->block_bytes != 0, bytes, text));
    }
}

static void print_all(const struct kopi_gguf *g)
{
    char bytes[40];
    printf("%s: GGUF version %u, %s, %u file%s, %llu keys, %llu tensors\n", kopi__gguf_path(g), kopi__gguf_version(g),
           kopi__format_bytes(kopi__gguf_file_size(g), bytes, sizeof bytes), kopi__gguf_n_parts(g),
           kopi__gguf_n_parts(g) == 1 ? "" : "s", (unsigned long long)kopi__gguf_n_kv(g),
           (unsigned long long)kopi__gguf_n_tensors(g));
    for (uint64_t i = 0; i < kopi__gguf_n_kv(g); i++) {
        const struct kopi_gguf_kv *kv = kopi__gguf_kv_at(g, i);
        printf("  ");
        print_text(kv->key.data, kv->key.len);
        printf(" = ");
        print_value(kv);
        putchar('\n');
    }
    printf("tensors:\n");
    if (tensors)
        print_tensors(g);
    else
        print_types(g);
}

int cli_inspect(int n_args, char **args)
{
    kopi_error e, why;
    struct kopi_gguf *g;
    if (n_args != 1) return cli_error(EXIT_USAGE, "kopi inspect takes one FILE");
    if (cli_exclude("--check", check_only, "--tensors", tensors)) return EXIT_USAGE;
    if (open_model(args[0], &g, &e) != KOPI_OK) return cli_fail(&e);
    kopi_status s = verdict(g, &why);
    bool runs = s == KOPI_OK;
    int code = 0;
    if (s == KOPI_E_NOMEM) {
        code = cli_fail(&why);
    } else if (json) {
        code = check_only ? print_verdict(g, runs, &why) : print_json(g, runs, &why);
    } else {
        if (!check_only) print_all(g);
        printf("verdict: %s%s\n", runs ? "runs" : "does not run: ", runs ? "" : why.text);
    }
    kopi__gguf_close(g);
    return code ? code : check_only && !runs ? EXIT_MODEL : 0;
}
