/* conformance/cases.h - what is tested: per operation a function that makes up a program from a seed. */
#ifndef KOPI_CF_CASES_H
#define KOPI_CF_CASES_H

#include "program.h"
#include "values.h"

/* How LINEAR gets its x: through QUANTIZE of the same backend to the type that kopi_activation_dtype gives; quantized
 * like that already, by somebody else; or as F32. The values are the same. */
enum cf_x { CF_X_QUANTIZE, CF_X_QUANTIZED, CF_X_F32, CF_N_X };

struct cf_case {
    uint32_t dtype; /* of the weight, the KV cache or the quantized activation; 0 where there is none */
    enum cf_values values;
    struct cf_random random;
    uint32_t variant; /* counts the programs of a kind: what it can be is had by turns */
    bool large;       /* so much work that threads meet in it */
    enum cf_x x;      /* of LINEAR */
    char *name;       /* shapes are appended here */
    size_t name_size;
};

struct cf_kind {
    const char *name;
    void (*build)(struct cf_case *k, struct cf_program *c);
    const uint32_t *types; /* NULL: one case without a type */
    uint32_t n_types;
    float bound;       /* for devices that aren't exact: largest normalized mean squared error */
    uint32_t weight;   /* how often it is drawn in each round */
    const char *needs; /* tests of other kinds: /%W stands for the type, /%A for that of its activations; NULL: none */
};
const struct cf_kind *cf_kinds(uint32_t *n);
/* The test of a kind and type (0 where it has none): "ops/linear/q4_1", and the kinds that it needs. 96 bytes each. */
const char *cf_kind_test(const struct cf_kind *kind, uint32_t dtype, char *buf);
const char *cf_kind_needs(const struct cf_kind *kind, uint32_t dtype, char *buf);

/* A seed that carries the values and the variant with it, so that it names the program alone. */
uint64_t cf_seed(uint64_t random, enum cf_values v, uint32_t variant);
enum cf_values cf_seed_values(uint64_t seed);

/* One program out of all that are possible. */
struct cf_draw {
    const struct cf_kind *kind;
    uint32_t dtype;
    enum cf_values values;
    uint64_t seed;
    bool large; /* as in struct cf_case */
};
/* Builds it in the form that the instance claims (LINEAR: enum cf_x); false: in none, and
 * nothing is to be freed. name: 256 bytes and more. */
bool cf_build(const struct cf_draw *k, struct cf_instance *i, struct cf_program *c, char *name, size_t n);

#endif
