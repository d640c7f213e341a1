/* kopi/kopi.h - the application interface of libkopi: configuration, engine, model, cache, sampling, generation.
 *
 * Every fallible function returns KOPI_OK or a negative kopi_status and, on failure, fills the caller's error object with
 * one line of text (it may be NULL). Nothing is printed, nothing aborts. Strings are UTF-8. Thread rules are given per
 * object; "[any]" means that any thread may call at any time. */
#ifndef KOPI_KOPI_H
#define KOPI_KOPI_H

#include <kopi/abi.h>

KOPI_BEGIN_DECLS

/* ---- errors and log ---------------------------------------------------------------------------------------------- */

/* Owned by the caller, no clean-up needed. text is NUL-terminated, one line. */
typedef struct kopi_error {
    kopi_status code;
    char text[1020];
} kopi_error;

KOPI_EXPORT const char *kopi_version(void);                    /* "0.1.0" [any] */
KOPI_EXPORT const char *kopi_status_name(kopi_status status); /* "out of memory", ... [any] */

enum { KOPI_LOG_ERROR = 0, KOPI_LOG_WARN = 1, KOPI_LOG_INFO = 2, KOPI_LOG_DEBUG = 3 };
typedef void (*kopi_log_fn)(void *ctx, int level, const char *line);
/* Lines up to `level` go to fn (NULL: stderr). Default: KOPI_LOG_WARN to stderr. Set before other calls. */
KOPI_EXPORT void kopi_log_set(int level, kopi_log_fn fn, void *ctx);

/* ---- configuration ------------------------------------------------------------------------------------------------ */

/* Values of a fixed set of keys, each with its origin. A higher origin wins, whatever the order of the calls; of two
 * values of the same origin the later call wins. A refused file or value changes nothing. Errors: KOPI_E_CONFIG for
 * files and environment, KOPI_E_INVALID for set and flag, KOPI_E_NOMEM; the text is "file:line:col: key: message"
 * ("KOPI_X: key: ...", "--flag: key: ..."). One thread at a time while it is filled; reading is [any]. */
typedef struct kopi_config kopi_config;
enum {
    KOPI_FROM_DEFAULT = 0,
    KOPI_FROM_FILE = 1,
    KOPI_FROM_ENV = 2,
    KOPI_FROM_SET = 3,
    KOPI_FROM_FLAG = 4,
    KOPI_FROM_CHAT = 5 /* /set, after all the others */
};

/* How a key is written. */
enum {
    KOPI_CONFIG_BOOL = 0,     /* true, false; in flags and the environment also 1 0 yes no on off */
    KOPI_CONFIG_INT = 1,      /* decimal, imin..imax, or one of `words`, which stands for 0 */
    KOPI_CONFIG_FLOAT = 2,    /* decimal, fmin..fmax */
    KOPI_CONFIG_SIZE = 3,     /* 512, 8KiB, 2MiB, 1GiB, 8KB (1000); imin..imax bytes */
    KOPI_CONFIG_DURATION = 4, /* 250ms, 30s, 10m, 2h; imin..imax milliseconds */
    KOPI_CONFIG_STRING = 5,   /* not empty */
    KOPI_CONFIG_NAME = 6,     /* [a-z0-9_-]{1,32} */
    KOPI_CONFIG_SHA256 = 7,   /* 64 hexadecimal digits */
    KOPI_CONFIG_PATH = 8,     /* relative to the file it stands in; ~/ is $HOME; or one of `words` */
    KOPI_CONFIG_ENUM = 9,     /* one of `words` */
    KOPI_CONFIG_STRINGS = 10, /* list of strings; "a,b" in set and the environment; a flag adds one */
    KOPI_CONFIG_PATHS = 11,   /* list of paths; "a:b" in set and the environment; a flag adds one */
    KOPI_CONFIG_SCALAR = 12   /* any one value; the reader checks it (backend options) */
};

/* One key: the command line, the environment, the YAML schema and the starter file are all made from this table. */
typedef struct kopi_config_key {
    const char *path; /* "backend.threads", "models[].context.size", "backend.options.*.*" (* is a free name) */
    int type;         /* KOPI_CONFIG_... */
    int reserved;     /* 0 */
    const char *default_value; /* as written, or NULL: unset */
    const char *words;         /* "f16|f32", "auto", or NULL */
    int64_t imin, imax;
    double fmin, fmax;
    const char *flags; /* "-c, --ctx-size", or NULL; a BOOL takes no argument and has --no-X as well */
    const char *arg;   /* what --help calls the value: "N" */
    const char *env;   /* "KOPI_CTX_SIZE", or NULL */
    const char *help;  /* one short sentence, no full stop */
} kopi_config_key;
KOPI_EXPORT const kopi_config_key *kopi_config_key_at(size_t i); /* [any] NULL past the end */
/* The key of "-c", "--ctx-size" or "--no-mmap"; NULL if there is none. [any] */
KOPI_EXPORT const kopi_config_key *kopi_config_key_of_flag(const char *flag);

KOPI_EXPORT kopi_status kopi_config_new(kopi_config **out, kopi_error *err); /* all defaults */
KOPI_EXPORT void kopi_config_free(kopi_config *cfg);                         /* NULL allowed */

/* Reads a YAML 1.2 file. Of several files the later wins key by key; `models` is replaced as a whole. An empty file is
 * an error. */
KOPI_EXPORT kopi_status kopi_config_load(kopi_config *cfg, const char *path, kopi_error *err);
/* Reads /etc/kopi/config.yaml, then $XDG_CONFIG_HOME/kopi/config.yaml (or ~/.config/...); what is missing or empty is
 * passed over. */
KOPI_EXPORT kopi_status kopi_config_load_standard(kopi_config *cfg, kopi_error *err);
/* Reads the environment. A variable that is set but empty is an error; a KOPI_X that nobody reads, neither here nor in the
 * files read before, is logged. */
KOPI_EXPORT kopi_status kopi_config_load_env(kopi_config *cfg, kopi_error *err);
/* One value: "log.level", "models[0].context.size"; "models[].context.size" is for every model; also the short forms
 * "backend" and "model". */
KOPI_EXPORT kopi_status kopi_config_set(kopi_config *cfg, const char *path, const char *value, kopi_error *err);
/* One flag of the table as typed; value is NULL for a BOOL. Flags of models[] are for every model; --model names the
 * one model to use: the id of a configured one, or a file, which then takes the place of the configured models. */
KOPI_EXPORT kopi_status kopi_config_flag(kopi_config *cfg, const char *flag, const char *value, kopi_error *err);
/* Checks what concerns several keys: ids used twice, an index past the models, backend.name and .path at once. */
KOPI_EXPORT kopi_status kopi_config_check(const kopi_config *cfg, kopi_error *err);

/* A value in the form that kopi_config_set takes, and where it comes from ("default", "kopi.yaml:3:12", "KOPI_THREADS",
 * "--set", "--threads"); either pointer may be NULL. Valid until cfg is changed. *value is NULL if the key is unset.
 * KOPI_E_INVALID: no such key. */
KOPI_EXPORT kopi_status kopi_config_get(const kopi_config *cfg, const char *path, const char **value,
                                        const char **origin, kopi_error *err);
KOPI_EXPORT size_t kopi_config_models(const kopi_config *cfg); /* number of models */

typedef struct kopi_config_entry {
    const kopi_config_key *key;
    const char *path;           /* with the model's index and the names: "models[0].path" */
    const char *value, *origin; /* as kopi_config_get gives them */
    int from;                   /* KOPI_FROM_... */
    int reserved;               /* 0 */
} kopi_config_entry;
/* Calls fn for every value that is set, defaults included, in the table's order; non-zero stops and is returned. */
KOPI_EXPORT int kopi_config_each(const kopi_config *cfg, int (*fn)(void *ctx, const kopi_config_entry *entry),
                                 void *ctx);

/* Texts, NUL-terminated, freed with kopi_free.
 * print: the whole configuration as YAML, defaults included, each value with its origin behind it; it reads back as the
 * same values (apart from bytes that are not UTF-8, and paths of flags, which are relative to the working directory).
 * schema: JSON Schema 2020-12, for editors. starter: a small file to begin with, all other keys in comments. */
KOPI_EXPORT kopi_status kopi_config_print(const kopi_config *cfg, char **text, kopi_error *err);
KOPI_EXPORT kopi_status kopi_config_schema(char **text, kopi_error *err);
KOPI_EXPORT kopi_status kopi_config_starter(char **text, kopi_error *err);

/* ---- engine: the thread team and the plugin search of one process or one part of it ------------------------------- */

typedef struct kopi_engine kopi_engine;

/* Starts the thread team (backend.threads) and keeps cfg, which must outlive it. [one thread] */
KOPI_EXPORT kopi_status kopi_engine_new(const kopi_config *cfg, kopi_engine **out, kopi_error *err);
KOPI_EXPORT void kopi_engine_free(kopi_engine *engine); /* after its models; NULL allowed */
KOPI_EXPORT unsigned kopi_engine_threads(const kopi_engine *engine);

/* ---- model -------------------------------------------------------------------------------------------------------- */

typedef struct kopi_model kopi_model;

/* Told during long work: `what` ("load", "prefill"), done and total in units of it. Non-zero cancels (KOPI_E_CANCELLED). */
typedef int (*kopi_progress_fn)(void *ctx, const char *what, uint64_t done, uint64_t total);

/* Loads models[] entry `id` (NULL: the first) of the engine's configuration with the configured backend. A model belongs to one
 * thread at a time, except for functions marked [any]. Errors: KOPI_E_CONFIG, KOPI_E_MODEL, KOPI_E_BACKEND, KOPI_E_NOMEM (with
 * the need, the available memory and the option that lowers it), KOPI_E_IO. */
KOPI_EXPORT kopi_status kopi_model_load(kopi_engine *engine, const char *id, kopi_progress_fn progress, void *ctx,
                                        kopi_model **out, kopi_error *err);
KOPI_EXPORT void kopi_model_free(kopi_model *model); /* after its caches and schedulers; NULL allowed */
KOPI_EXPORT uint32_t kopi_model_vocab_size(const kopi_model *model);  /* [any] columns of a logits row */
KOPI_EXPORT uint32_t kopi_model_max_context(const kopi_model *model); /* [any] positions of a cache */
KOPI_EXPORT const char *kopi_model_id(const kopi_model *model);       /* [any] */
/* Makes the running call, or else the next one, on this model return KOPI_E_CANCELLED soon; kopi_generate and the scheduler end
 * their running answers as KOPI_FINISH_CANCELLED instead. Works once. Async-signal-safe. [any] */
KOPI_EXPORT void kopi_model_cancel(kopi_model *model);
/* Clears a pending kopi_model_cancel. */
KOPI_EXPORT void kopi_model_uncancel(kopi_model *model);

typedef struct kopi_backend_info {
    char name[64], device[64], detail[128], path[1024]; /* "cpu-threaded", "cpu", "avx2, 2 threads", the .so */
    uint32_t threads, exact;                            /* exact: 1 if it promises the bits of kopi/op.h */
    uint64_t weight_bytes, kv_bytes, work_bytes;        /* memory: imported weights, KV cache, working buffers */
} kopi_backend_info;
KOPI_EXPORT void kopi_backend_device(const kopi_model *model, kopi_backend_info *out); /* [any] */

/* ---- cache and forward: the plain use of a model ------------------------------------------------------------------ */

typedef struct kopi_cache kopi_cache;

/* An empty cache of the model's layers x context; pages are taken as it grows. */
KOPI_EXPORT kopi_status kopi_cache_new(kopi_model *model, kopi_cache **out, kopi_error *err);
KOPI_EXPORT void kopi_cache_free(kopi_cache *cache);               /* before its model; NULL allowed */
KOPI_EXPORT uint32_t kopi_cache_length(const kopi_cache *cache);   /* positions held */
/* Forgets all but the first n positions. KOPI_E_RANGE if n is past the length. */
KOPI_EXPORT kopi_status kopi_cache_truncate(kopi_cache *cache, uint32_t n, kopi_error *err);

/* Runs n new tokens (ids in [0, vocab_size), n >= 1) behind the cache's content and extends it by n. logits: NULL or
 * [n, vocab_size] F32, row i for the token after ids[i]. Any split of a prompt over calls gives the same bits. Past the
 * context: KOPI_E_RANGE, cache unchanged, as after every failure. */
KOPI_EXPORT kopi_status kopi_model_forward(kopi_model *model, kopi_cache *cache, const int32_t *ids, size_t n, float *logits,
                                           kopi_error *err);
/* The same with the logits of the last `n_rows` tokens only (0: none). [n_rows, vocab_size] */
KOPI_EXPORT kopi_status kopi_model_forward_last(kopi_model *model, kopi_cache *cache, const int32_t *ids, size_t n,
                                                size_t n_rows, float *logits, kopi_error *err);

/* ---- text --------------------------------------------------------------------------------------------------------- */

enum { KOPI_ADD_SPECIAL = 1, KOPI_PARSE_SPECIAL = 2 }; /* BOS / EOS as the model asks; <|...|> in the text become control ids */

/* [any] *ids is freed with kopi_free. text: any bytes. */
KOPI_EXPORT kopi_status kopi_tokenize(const kopi_model *model, const char *text, size_t len, unsigned flags, int32_t **ids,
                                      size_t *n, kopi_error *err);
/* [any] *text is freed with kopi_free, NUL-terminated behind *len bytes; special: render control tokens. */
KOPI_EXPORT kopi_status kopi_detokenize(const kopi_model *model, const int32_t *ids, size_t n, int special, char **text,
                                        size_t *len, kopi_error *err);
KOPI_EXPORT int kopi_token_is_eog(const kopi_model *model, int32_t id); /* [any] ends the answer */

typedef struct kopi_message {
    const char *role, *content; /* "system", "user", "assistant"; NUL-terminated */
} kopi_message;
KOPI_EXPORT int kopi_model_has_chat_template(const kopi_model *model); /* [any] */
/* Renders messages through the model's template, with the opening of the assistant's turn, and tokenizes it: content can
 * never become a control token. KOPI_E_UNSUPPORTED if the model has no template. [any] */
KOPI_EXPORT kopi_status kopi_chat_tokenize(const kopi_model *model, const kopi_message *messages, size_t n_messages,
                                           int32_t **ids, size_t *n, kopi_error *err);
KOPI_EXPORT void kopi_free(void *p); /* memory that kopi gave away; NULL allowed [any] */

/* ---- sampling ----------------------------------------------------------------------------------------------------- */

/* Names and defaults of the ecosystem; kopi_sampling_default fills them with the model's configured values. */
typedef struct kopi_sampling {
    uint32_t struct_size;
    int32_t top_k;            /* 40; 0: off */
    float temperature;        /* 0.8; <= 0: greedy */
    float top_p;              /* 0.95; 1: off */
    float min_p;              /* 0.05; 0: off */
    float repeat_penalty;     /* 1: off; positive logits divided, negative multiplied, once per distinct token */
    int32_t repeat_last_n;    /* 64; 0: off, -1: the whole context; prompt and answer count */
    float presence_penalty, frequency_penalty; /* 0: off */
    uint32_t reserved;        /* 0 */
    int64_t seed;             /* -1: random, and reported back */
} kopi_sampling;
KOPI_EXPORT void kopi_sampling_default(const kopi_model *model, kopi_sampling *out); /* model NULL: built-in defaults */

/* ---- generation --------------------------------------------------------------------------------------------------- */

enum {
    KOPI_FINISH_STOP = 0,     /* end-of-generation token or a stop string */
    KOPI_FINISH_LENGTH = 1,   /* n_predict reached, or the context is full and overflow is `stop` */
    KOPI_FINISH_CANCELLED = 2 /* kopi_model_cancel or the callback */
};

/* Deliverable text, never a part of a character. Non-zero stops the answer (KOPI_FINISH_CANCELLED). */
typedef int (*kopi_text_fn)(void *ctx, const char *utf8, size_t len);

typedef struct kopi_request {
    uint32_t struct_size;
    int32_t n_predict;        /* tokens at most; -1: until the end of the answer or the context. Never more than the configured
                                 limits.max_tokens. 0: only evaluates the prompt */
    const int32_t *ids;       /* prompt */
    size_t n_ids;             /* >= 1 */
    const char *const *stop;  /* stop strings: the answer ends before the earliest match */
    size_t n_stop;
    kopi_sampling sampling;
    int32_t ignore_eos, special; /* the answer goes on behind end tokens; control tokens appear in the text */
    kopi_text_fn on_text;     /* may be NULL */
    kopi_progress_fn progress; /* prefill; may be NULL */
    void *ctx;
} kopi_request;

typedef struct kopi_result {
    uint32_t finish, reserved;
    int64_t seed;             /* that was used */
    size_t n_prompt, n_cached, n_generated; /* tokens; cached: of the prompt, found in the cache */
    uint64_t prompt_ns, generate_ns;
    int32_t *ids;             /* generated tokens, the ending one included; freed by kopi_result_clear */
    char *text;               /* the whole answer, NUL-terminated; freed by kopi_result_clear */
    size_t text_len;
    size_t n_drafted, n_accepted; /* speculation: tokens guessed, and those of them that came true */
} kopi_result;
KOPI_EXPORT void kopi_result_clear(kopi_result *result);

/* One answer: the cache keeps the longest common prefix of its tokens and ids, and holds prompt and answer afterwards, but for the
 * last token, which nobody has evaluated yet. On failure the cache holds what was evaluated (after KOPI_E_NONFINITE nothing) and
 * *result what was generated. KOPI_E_INVALID: a field, token id or stop string is wrong; KOPI_E_RANGE: the prompt does not fit,
 * or the context is full and overflow is `error`. */
KOPI_EXPORT kopi_status kopi_generate(kopi_model *model, kopi_cache *cache, const kopi_request *request, kopi_result *result,
                                      kopi_error *err);

/* Several answers at once: the scheduler packs prefill chunks and decode tokens of all its requests into common steps. Each
 * request gets the same bits as alone. [one thread at a time] */
typedef struct kopi_scheduler kopi_scheduler;
KOPI_EXPORT kopi_status kopi_scheduler_new(kopi_model *model, kopi_scheduler **out, kopi_error *err); /* context.parallel slots */
KOPI_EXPORT void kopi_scheduler_free(kopi_scheduler *s);
/* Queues a request (copied, with its ids and stop strings). */
KOPI_EXPORT kopi_status kopi_scheduler_submit(kopi_scheduler *s, const kopi_request *request, uint64_t *id, kopi_error *err);
/* One step: tokens of as many requests as fit, first come, first served; a finished one leaves its cache behind, in which later
 * prompts find their prefix. *active (may be NULL): requests that are running or queued. A failed step fails the requests that
 * were in it, not the others; that shows in their results, not here. Callbacks are called from here and may only cancel. */
KOPI_EXPORT kopi_status kopi_scheduler_step(kopi_scheduler *s, size_t *active, kopi_error *err);
KOPI_EXPORT void kopi_scheduler_cancel(kopi_scheduler *s, uint64_t id); /* it ends as cancelled; an unknown id is ignored */
/* Takes the result of a finished request; KOPI_E_RANGE while it runs or if unknown. Returns the request's own status. */
KOPI_EXPORT kopi_status kopi_scheduler_result(kopi_scheduler *s, uint64_t id, kopi_result *result, kopi_error *err);

KOPI_END_DECLS

#endif
