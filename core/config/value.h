/* core/config/value.h - one value of a key: its text, what it means, and where it stands. [any] */
#ifndef KOPI_CORE_CONFIG_VALUE_H
#define KOPI_CORE_CONFIG_VALUE_H

#include <kopi/kopi.h>
#include <stdbool.h>

struct kopi__setting {
    const kopi_config_key *key;
    int model;          /* index, or KOPI__MODEL_ALL */
    int from;           /* KOPI_FROM_... */
    char *name;         /* "backend.options.cpu.isa" for a key with free names, else NULL */
    char *text;         /* canonical: what kopi_config_set takes */
    char *where;        /* "kopi.yaml:3:12", "KOPI_THREADS", "--set", "--threads"; NULL: default */
    const char **items; /* lists: NULL-terminated, one allocation */
    bool b;
    int64_t i; /* INT, SIZE (bytes), DURATION (ms); a word stands for 0 */
    double f;
};

/* Frees what s owns, not s. */
void kopi__setting_clear(struct kopi__setting *s);

/* The raw form of a value and how much is allowed in it. */
struct kopi__raw {
    const char *const *texts; /* n of them; exactly one unless the key is a list */
    size_t n;
    const char *dir; /* what relative paths are relative to, or NULL */
    bool loose_bool; /* 1 0 yes no on off too */
};

/* Fills text, items and the typed value of *s from raw for s->key. On failure *s owns nothing new and err->text is
 * the message alone: the caller puts where and key before it. KOPI_E_CONFIG, KOPI_E_NOMEM. */
kopi_status kopi__value_parse(struct kopi__setting *s, const struct kopi__raw *raw, kopi_error *err);

#endif
