#include "run/random.h"

#include "base/sys.h"
#include <sys/random.h>
#include <unistd.h>

/* The finalizer of SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t mix(uint64_t z)
{
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double kopi__random_at(int64_t seed, uint64_t position)
{
    return (double)(mix(mix((uint64_t)seed) ^ position) >> 11) * 0x1p-53;
}

int64_t kopi__random_seed(void)
{
    uint32_t seed;
    /* Without system randomness (a sandbox that forbids the call) the clock is unpredictable enough for sampling. */
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint32_t)mix(kopi__now_ns() ^ (uint64_t)getpid() << 32);
    return seed;
}
