#include "base/hash.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

static uint64_t rotl(uint64_t x, int n) { return x << n | x >> (64 - n); }

static void rounds(uint64_t v[4], int n)
{
    while (n--) {
        v[0] += v[1], v[2] += v[3];
        v[1] = rotl(v[1], 13) ^ v[0], v[3] = rotl(v[3], 16) ^ v[2];
        v[0] = rotl(v[0], 32);
        v[2] += v[1], v[0] += v[3];
        v[1] = rotl(v[1], 17) ^ v[2], v[3] = rotl(v[3], 21) ^ v[0];
        v[2] = rotl(v[2], 32);
    }
}

static void absorb(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

/* The n <= 8 bytes at p as a little-endian number. */
static uint64_t word_at(const uint8_t *p, size_t n)
{
    uint64_t w = 0;
    memcpy(&w, p, n);
    return le64toh(w);
}

uint64_t kopi__siphash(const void *bytes, size_t n, const uint64_t key[2])
{
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du, key[0] ^ 0x6c7967656e657261u,
                     key[1] ^ 0x7465646279746573u};
    const uint8_t *p = bytes;
    size_t left = n;
    for (; left >= 8; p += 8, left -= 8) absorb(v, word_at(p, 8));
    absorb(v, (uint64_t)n << 56 | (left ? word_at(p, left) : 0));
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

static uint64_t process_key[2];

static void draw_key(void)
{
    if (getrandom(process_key, sizeof process_key, 0) == (ssize_t)sizeof process_key) return;
    struct timespec t; /* no such system call: addresses and time are better than a constant */
    clock_gettime(CLOCK_MONOTONIC, &t);
    process_key[0] = (uint64_t)t.tv_nsec ^ (uint64_t)(uintptr_t)&t << 20;
    process_key[1] = (uint64_t)t.tv_sec ^ (uint64_t)(uintptr_t)process_key << 20;
}

uint64_t kopi__hash(const void *bytes, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_key);
    return kopi__siphash(bytes, n, process_key);
}
