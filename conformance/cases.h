/* conformance/cases.h - what is tested: per operation a function that makes up a program from a seed. */
#ifndef KOPI_CF_CASES_H
#define KOPI_CF_CASES_H

#include "program.h"
#include "values.h"

struct cf_case {
    uint32_t dtype; /* of the weight, the KV cache or the quantized activation; 0 where there is none */
    enum cf_values values;
    struct cf_random random;
    bool quantize; /* LINEAR: x goes through QUANTIZE to the type that kopi_activation_dtype gives */
    char *name;    /* shapes are appended here */
    size_t name_size;
};

struct cf_kind {
    const char *name;
    void (*build)(struct cf_case *k, struct cf_program *c);
    const uint32_t *types; /* NULL: one case without a type */
    uint32_t n_types;
    float bound;     /* for devices that aren't exact: largest normalized mean squared error */
    uint32_t weight; /* how often it is drawn in each round */
};
const struct cf_kind *cf_kinds(uint32_t *n);

#endif
