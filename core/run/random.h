/* core/run/random.h - random numbers by key instead of by order: the number for (seed, position) depends on nothing
 * else, so neither the batch nor the path of a request can change it. [any] */
#ifndef KOPI_CORE_RUN_RANDOM_H
#define KOPI_CORE_RUN_RANDOM_H

#include <stdint.h>

/* Uniform in [0, 1), 53 bits. */
double kopi__random_at(int64_t seed, uint64_t position);

/* A seed from the system, in [0, 2^32): short enough to be typed again and exact in JSON. */
int64_t kopi__random_seed(void);

#endif
