#include "config/schema.h"

#include "base/error.h"
#include "base/num.h"
#include "config/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOOL(dflt) KOPI_CONFIG_BOOL, 0, dflt, NULL, 0, 0, 0, 0
#define INT(dflt, words, lo, hi) KOPI_CONFIG_INT, 0, dflt, words, lo, hi, 0, 0
#define FLOAT(dflt, lo, hi) KOPI_CONFIG_FLOAT, 0, dflt, NULL, 0, 0, lo, hi
#define ENUM(dflt, words) KOPI_CONFIG_ENUM, 0, dflt, words, 0, 0, 0, 0
#define TEXT(kind, dflt, words) KOPI_CONFIG_##kind, 0, dflt, words, 0, 0, 0, 0

/* path, type(default, bounds), flags, name of the value, environment, help. Keys of one section stand together. */
static const kopi_config_key keys[] = {
    {"version", INT("1", NULL, 1, 1), NULL, NULL, NULL, "version of this file's format"},
    {"plugin_dirs", TEXT(PATHS, NULL, NULL), "--plugin-dir", "DIR", NULL,
     "directories searched for backends, before the installed one"},
    {"backend.name", TEXT(NAME, "cpu-threaded", NULL), "-b, --backend", "NAME", "KOPI_BACKEND",
     "backend that computes"},
    {"backend.path", TEXT(PATH, NULL, NULL), "--backend-path", "FILE", "KOPI_BACKEND_PATH",
     "plugin file, instead of a name that is searched"},
    {"backend.sha256", TEXT(SHA256, NULL, NULL), NULL, NULL, NULL, "refuse a plugin file with another SHA-256"},
    {"backend.threads", INT("auto", "auto", 1, 1024), "-t, --threads", "N", "KOPI_THREADS",
     "threads; auto: what affinity and the cgroup quota allow"},
    {"backend.fallback", ENUM("cpu", "cpu|none"), "--fallback", "NAME", "KOPI_FALLBACK",
     "who computes what the backend lacks"},
    {"backend.options.*.*", TEXT(SCALAR, NULL, NULL), NULL, NULL, NULL,
     "options of one backend; those of others are kept but not used"},
    {"determinism", ENUM("any", "exact|run|any"), "--determinism", "CLASS", "KOPI_DETERMINISM",
     "refuse a backend that promises less"},

    {"models[].path", TEXT(PATH, NULL, NULL), "-m, --model", "FILE", "KOPI_MODEL",
     "GGUF file; as --model also the id or an alias of a configured one"},
    {"models[].id", TEXT(STRING, NULL, NULL), NULL, NULL, NULL,
     "name for --model and for --model-draft; unset: the file's name without .gguf"},
    {"models[].sha256", TEXT(SHA256, NULL, NULL), NULL, NULL, NULL, "refuse a model file with another SHA-256"},
    {"models[].aliases", TEXT(STRINGS, NULL, NULL), "--alias", "NAME", "KOPI_ALIAS", "further names for --model"},
    {"models[].mmap", BOOL("true"), "--mmap", NULL, "KOPI_MMAP", "map the file instead of reading it"},
    {"models[].context.size", INT("auto", "auto", 0, 2147483647), "-c, --ctx-size", "N", "KOPI_CTX_SIZE",
     "tokens per sequence; auto: the model's own up to 8192; 0: the model's own"},
    {"models[].context.batch", INT("512", NULL, 1, 65536), "--batch-size", "N", "KOPI_BATCH_SIZE",
     "tokens of one step at most"},
    {"models[].context.parallel", INT("1", NULL, 1, 256), "-np, --parallel", "N", "KOPI_PARALLEL",
     "sequences at the same time"},
    {"models[].context.overflow", ENUM("stop", "error|stop"), "--overflow", "HOW", "KOPI_OVERFLOW",
     "when the context is full: end the answer, or fail"},
    {"models[].kv.type_k", ENUM("auto", "auto|f16|f32"), "-ctk, --cache-type-k", "TYPE", "KOPI_CACHE_TYPE_K",
     "type of the keys in the cache; auto: f16, but f32 where the backend computes from f32"},
    {"models[].kv.type_v", ENUM("auto", "auto|f16|f32"), "-ctv, --cache-type-v", "TYPE", "KOPI_CACHE_TYPE_V",
     "type of the values in the cache; auto as for the keys"},
    {"models[].template.source", TEXT(PATH, "model", "model|none"), "--chat-template-file", "FILE",
     "KOPI_CHAT_TEMPLATE_FILE", "chat template: the model's own, a file, or none"},
    {"models[].sampling.temperature", FLOAT("0.8", -1, 100), "--temp, --temperature", "T", "KOPI_TEMPERATURE",
     "randomness; 0 or less: always the likeliest token"},
    {"models[].sampling.top_k", INT("40", NULL, -1, 2147483647), "--top-k", "K", "KOPI_TOP_K",
     "sample from the K likeliest tokens; 0 or less: off"},
    {"models[].sampling.top_p", FLOAT("0.95", 0, 1), "--top-p", "P", "KOPI_TOP_P",
     "sample from the likeliest tokens of total probability P; 1: off"},
    {"models[].sampling.min_p", FLOAT("0.05", 0, 1), "--min-p", "P", "KOPI_MIN_P",
     "drop tokens below P times the likeliest one; 0: off"},
    {"models[].sampling.repeat_penalty", FLOAT("1", 0.01, 100), "--repeat-penalty", "X", "KOPI_REPEAT_PENALTY",
     "divide the logits of recent tokens; 1: off"},
    {"models[].sampling.repeat_last_n", INT("64", NULL, -1, 2147483647), "--repeat-last-n", "N", "KOPI_REPEAT_LAST_N",
     "tokens that the penalties look back; 0: none, -1: the context"},
    {"models[].sampling.presence_penalty", FLOAT("0", -100, 100), "--presence-penalty", "X", "KOPI_PRESENCE_PENALTY",
     "subtract from the logits of tokens that have appeared; 0: off"},
    {"models[].sampling.frequency_penalty", FLOAT("0", -100, 100), "--frequency-penalty", "X", "KOPI_FREQUENCY_PENALTY",
     "subtract once per appearance; 0: off"},
    {"models[].sampling.seed", INT("-1", NULL, -1, INT64_MAX), "-s, --seed", "N", "KOPI_SEED",
     "-1: a new one each time"},
    {"models[].speculation.type", ENUM("auto", "auto|none|ngram|draft"), "--spec-type", "TYPE", "KOPI_SPEC_TYPE",
     "guess tokens ahead, same output: from what was said before or by a draft model; auto: draft if there is one"},
    {"models[].speculation.draft_model", TEXT(PATH, NULL, NULL), "-md, --model-draft, --spec-draft-model", "FILE",
     "KOPI_MODEL_DRAFT", "small model of the same vocabulary: a GGUF file, or a configured model's id"},
    {"models[].speculation.max_tokens", INT("16", NULL, 1, 64), "--draft-max, --draft, --draft-n, --spec-draft-n-max",
     "N", "KOPI_DRAFT_MAX", "tokens guessed at a time, at most"},
    {"models[].speculation.ngram_min", INT("2", NULL, 1, 16), "--spec-ngram-min", "N", "KOPI_SPEC_NGRAM_MIN",
     "tokens that have to agree with an earlier place"},
    {"models[].speculation.ngram_max", INT("6", NULL, 1, 16), "--spec-ngram-max", "N", "KOPI_SPEC_NGRAM_MAX",
     "the place where most agree is taken, up to so many"},
    {"models[].speculation.adaptive", BOOL("true"), "--spec-adaptive", NULL, "KOPI_SPEC_ADAPTIVE",
     "guess only as many tokens as pay, by what came true and what steps cost"},
    {"models[].limits.max_tokens", INT("-1", NULL, -1, 2147483647), "-n, --predict, --n-predict", "N",
     "KOPI_MAX_TOKENS", "tokens of an answer at most; -1: until it ends"},

    {"log.level", ENUM("warn", "error|warn|info|debug"), "--log-level", "LEVEL", "KOPI_LOG_LEVEL",
     "least important lines shown"},
    {"log.format", ENUM("text", "text|jsonl"), "--log-format", "FORMAT", "KOPI_LOG_FORMAT", "form of the log lines"},
};
enum { N_KEYS = sizeof keys / sizeof *keys };

static const struct {
    const char *name, *path;
} shorts[] = {{"backend", "backend.name"}, {"model", "models[].path"}};
enum { N_SHORTS = sizeof shorts / sizeof *shorts };

const kopi_config_key *kopi_config_key_at(size_t i) { return i < N_KEYS ? &keys[i] : NULL; }

const char *kopi__schema_short(const char *path)
{
    for (size_t i = 0; i < N_SHORTS; i++)
        if (!strcmp(path, shorts[i].name)) return shorts[i].path;
    return NULL;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

/* The rest of `path` below the map `parent`, or NULL. */
static const char *below(const char *path, const char *parent)
{
    size_t n = strlen(parent);
    if (!n) return path;
    return !strncmp(path, parent, n) && path[n] == '.' ? path + n + 1 : NULL;
}

enum kopi__node kopi__schema_node(const char *path, const kopi_config_key **row)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < N_KEYS; i++) {
        if (!strcmp(keys[i].path, path)) {
            if (row) *row = &keys[i];
            return KOPI__NODE_KEY;
        }
        if (below(keys[i].path, path)) return KOPI__NODE_MAP;
        if (!strncmp(keys[i].path, path, n) && keys[i].path[n] == '[') return KOPI__NODE_LIST;
    }
    return KOPI__NODE_NONE;
}

/* True if `path` and everything below it is spelt in the table: the node's own name ends here. */
static bool node_exists(const char *path) { return kopi__schema_node(path, NULL) != KOPI__NODE_NONE; }

static bool join(const char *parent, const char *name, char out[KOPI__PATH_MAX])
{
    return snprintf(out, KOPI__PATH_MAX, "%s%s%s", parent, *parent ? "." : "", name) < KOPI__PATH_MAX;
}

bool kopi__schema_child(const char *parent, const char *name, char out[KOPI__PATH_MAX])
{
    static const char free_name[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    size_t n = strlen(name);
    if (!n || n > 64 || strspn(name, free_name) != n) return false;
    if (join(parent, name, out) && node_exists(out)) return true;
    return join(parent, "*", out) && node_exists(out);
}

/* ---- paths as users write them ----------------------------------------------------------------------------------- */

/* Reads "[3]" or "[]" at *s and moves behind it. */
static kopi_status read_index(const char **s, int *model, kopi_error *err)
{
    const char *end = **s == '[' ? strchr(*s, ']') : NULL;
    if (!end) return kopi__fail(err, KOPI_E_CONFIG, "models needs an index: models[0], or models[] for all");
    char digits[8];
    size_t n = (size_t)(end - *s) - 1;
    uint64_t v = 0;
    snprintf(digits, sizeof digits, "%.*s", (int)(n < sizeof digits ? n : 0), *s + 1);
    if (n && (!kopi__parse_u64(digits, &v) || v >= KOPI__MODELS_MAX))
        return kopi__fail(err, KOPI_E_CONFIG, "the index in models%.20s is not a number below %d", *s,
                          KOPI__MODELS_MAX);
    *model = n ? (int)v : KOPI__MODEL_ALL;
    *s = end + 1;
    return KOPI_OK;
}

/* One step down: the name at *s, and the index behind it where the node is a list. */
static kopi_status step(const char **s, char path[KOPI__PATH_MAX], int *model, kopi_error *err)
{
    char name[80], child[KOPI__PATH_MAX];
    size_t n = strcspn(*s, ".[");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), *s);
    if (!kopi__schema_child(path, name, child)) return kopi__schema_unknown(path, name, err);
    strcpy(path, child);
    *s += n;
    if (kopi__schema_node(path, NULL) == KOPI__NODE_LIST) {
        kopi_status status = read_index(s, model, err);
        if (status) return status;
        if (strlen(path) + 3 > KOPI__PATH_MAX) return kopi__fail(err, KOPI_E_CONFIG, "the path is too long");
        strcat(path, "[]");
    }
    if (**s == '.' && (*s)[1]) (*s)++;
    else if (**s) return kopi__fail(err, KOPI_E_CONFIG, "\"%.20s\" behind %s is not understood", *s, path);
    return KOPI_OK;
}

kopi_status kopi__schema_find(const char *concrete, const kopi_config_key **row, int *model, kopi_error *err)
{
    char path[KOPI__PATH_MAX] = "";
    *model = KOPI__MODEL_ALL;
    const char *s = kopi__schema_short(concrete);
    if (!s) s = concrete;
    do {
        kopi_status status = step(&s, path, model, err);
        if (status) return status;
        if (*s && kopi__schema_node(path, NULL) == KOPI__NODE_KEY)
            return kopi__fail(err, KOPI_E_CONFIG, "%s is a value and has no key \"%.40s\"", path, s);
    } while (*s);
    if (kopi__schema_node(path, row) != KOPI__NODE_KEY)
        return kopi__fail(err, KOPI_E_CONFIG, "%s is a section: name one of its keys", path);
    return KOPI_OK;
}

/* ---- flags ------------------------------------------------------------------------------------------------------- */

static bool has_flag(const char *flags, const char *flag)
{
    size_t n = strlen(flag);
    for (const char *p = flags; (p = strstr(p, flag)); p += n)
        if ((p == flags || p[-1] == ' ') && (!p[n] || p[n] == ',')) return true;
    return false;
}

const kopi_config_key *kopi_config_key_of_flag(const char *flag)
{
    char positive[80];
    if (flag[0] != '-' || !flag[1] || strchr(flag, ',') || strchr(flag, ' ')) return NULL;
    bool no = !strncmp(flag, "--no-", 5);
    snprintf(positive, sizeof positive, "--%s", no ? flag + 5 : "");
    for (size_t i = 0; i < N_KEYS; i++) {
        if (!keys[i].flags) continue;
        if (has_flag(keys[i].flags, flag)) return &keys[i];
        if (no && keys[i].type == KOPI_CONFIG_BOOL && has_flag(keys[i].flags, positive)) return &keys[i];
    }
    return NULL;
}

/* ---- messages ---------------------------------------------------------------------------------------------------- */

/* The key elsewhere in the table whose last name or flag is `name`, or NULL. */
static const kopi_config_key *misplaced(const char *name)
{
    char flag[80];
    snprintf(flag, sizeof flag, "--%s", name);
    for (char *p = flag; *p; p++)
        if (*p == '_') *p = '-';
    for (size_t i = 0; i < N_KEYS; i++) {
        const char *last = strrchr(keys[i].path, '.');
        if (!kopi__nearest_distance(last ? last + 1 : keys[i].path, name)) return &keys[i];
    }
    return kopi_config_key_of_flag(flag);
}

/* Calls for each distinct child of the map `parent`, short forms included. */
static void each_child(const char *parent, void (*fn)(void *ctx, const char *name), void *ctx)
{
    char name[64], last[64] = "";
    for (size_t i = 0; i < N_KEYS; i++) {
        const char *rest = below(keys[i].path, parent);
        if (!rest || *rest == '*') continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(rest, ".["), rest);
        if (!strcmp(name, last)) continue; /* keys of one section stand together */
        strcpy(last, name);
        fn(ctx, name);
    }
    if (!*parent) fn(ctx, "model");
}

struct known {
    struct kopi__nearest nearest;
    char list[400];
};

static void add_known(void *ctx, const char *name)
{
    struct known *k = ctx;
    size_t n = strlen(k->list);
    kopi__nearest_try(&k->nearest, name);
    snprintf(k->list + n, sizeof k->list - n, "%s%s", n ? ", " : "", name);
}

kopi_status kopi__schema_unknown(const char *parent, const char *name, kopi_error *err)
{
    struct known k = {.list = ""};
    kopi__nearest_init(&k.nearest, name);
    each_child(parent, add_known, &k);
    const char *dot = *parent ? "." : "";
    if (*k.nearest.best)
        return kopi__fail(err, KOPI_E_CONFIG, "unknown key \"%.60s\"; did you mean %s%s%s?", name, parent, dot,
                          k.nearest.best);
    const kopi_config_key *other = misplaced(name);
    if (other) return kopi__fail(err, KOPI_E_CONFIG, "unknown key \"%.60s\"; did you mean %s?", name, other->path);
    if (!*k.list)
        return kopi__fail(err, KOPI_E_CONFIG, "\"%.60s\" is not a name of letters, digits, _ and -, at most 64", name);
    return kopi__fail(err, KOPI_E_CONFIG, "unknown key \"%.60s\"; known here: %s", name, k.list);
}

bool kopi__key_is_list(const kopi_config_key *key)
{
    return key->type == KOPI_CONFIG_STRINGS || key->type == KOPI_CONFIG_PATHS;
}

bool kopi__key_has_word(const kopi_config_key *key, const char *word)
{
    size_t n = strlen(word);
    for (const char *w = key->words; w && *w; w += strcspn(w, "|"), w += *w == '|')
        if (n == strcspn(w, "|") && !strncmp(w, word, n)) return true;
    return false;
}

/* The words of a key with " or " before the last: "f16 or f32". */
static void list_words(const char *words, char *buf, size_t n)
{
    size_t at = 0;
    for (const char *w = words; *w && at < n; w += strcspn(w, "|"), w += *w == '|') {
        size_t len = strcspn(w, "|");
        const char *sep = w == words ? "" : w[len] ? ", " : " or ";
        at += (size_t)snprintf(buf + at, n - at, "%s%.*s", sep, (int)len, w);
    }
}

const char *kopi__key_wanted(const kopi_config_key *key, char *buf, size_t n)
{
    char words[120] = "", lo[40], hi[40];
    if (key->words) list_words(key->words, words, sizeof words);
    const char * or = key->words ? ", or " : "";
    switch (key->type) {
    case KOPI_CONFIG_BOOL: snprintf(buf, n, "true or false"); break;
    case KOPI_CONFIG_INT:
        if (key->imin == key->imax) snprintf(buf, n, "%lld", (long long)key->imin);
        else
            snprintf(buf, n, "a whole number from %lld to %lld%s%s", (long long)key->imin, (long long)key->imax, or,
                     words);
        break;
    case KOPI_CONFIG_FLOAT:
        snprintf(buf, n, "a number from %s to %s", kopi__format_f64(key->fmin, lo, sizeof lo),
                 kopi__format_f64(key->fmax, hi, sizeof hi));
        break;
    case KOPI_CONFIG_SIZE:
        snprintf(buf, n, "a size such as 512, 8KiB, 2MiB or 1GiB, from %lld to %lld bytes", (long long)key->imin,
                 (long long)key->imax);
        break;
    case KOPI_CONFIG_DURATION:
        snprintf(buf, n, "a duration such as 250ms, 30s, 10m or 2h, from %lldms to %lldms", (long long)key->imin,
                 (long long)key->imax);
        break;
    case KOPI_CONFIG_NAME: snprintf(buf, n, "a name of a-z, 0-9, _ and -, at most 32"); break;
    case KOPI_CONFIG_SHA256: snprintf(buf, n, "64 hexadecimal digits"); break;
    case KOPI_CONFIG_PATH: snprintf(buf, n, "%s%sa path", words, or); break;
    case KOPI_CONFIG_ENUM: snprintf(buf, n, "%s", words); break;
    case KOPI_CONFIG_STRINGS: snprintf(buf, n, "a list of texts"); break;
    case KOPI_CONFIG_PATHS: snprintf(buf, n, "a list of paths"); break;
    case KOPI_CONFIG_SCALAR: snprintf(buf, n, "one value"); break;
    default: snprintf(buf, n, "a text"); break;
    }
    return buf;
}
