/* Speed of the LINEAR kernels of plugins/cpu-threaded, one thread: prompts in G products/s beside the issue rate of the
 * level's multiply-add, one token in GB/s beside a pure read of the same memory, measured in turns in the same
 * run, in time of this thread.
 *   bench/kernels [TYPE[,TYPE...] [LEVEL [K [TOKENS]]]]      e.g.  bench/kernels q4_1,q5_0 avx2 1024 256 */
#include "plugins/cpu-threaded/linear.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { ROUNDS = 15, PROMPT_ROWS = 512 };
static const uint64_t stream_bytes = 256u << 20;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *memory(uint64_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) exit((perror("mmap"), 1));
    madvise(p, size, MADV_HUGEPAGE);
    return p;
}

typedef uint64_t v16 __attribute__((vector_size(16)));
static uint64_t pure_read(const void *p, uint64_t size)
{
    const v16 *v = p;
    v16 a = {0}, b = {0}, c = {0}, d = {0};
    for (uint64_t i = 0; i < size / sizeof *v; i += 4) {
        __builtin_prefetch(v + i + 256);
        a ^= v[i];
        b ^= v[i + 1];
        c ^= v[i + 2];
        d ^= v[i + 3];
    }
    a ^= b ^ c ^ d;
    return a[0] ^ a[1];
}

/* Multiply-adds of registers, nothing else: the ceiling of the prompt kernels. */
#if defined(__x86_64__)
#include <immintrin.h>
__attribute__((target("avx512f,avx512vnni"))) static double issue_avx512vnni(void)
{
    enum { N = 4000000 };
    __m512i a[12], w = _mm512_set1_epi8(1);
    for (int i = 0; i < 12; i++) a[i] = w;
    double t = now();
    for (int n = 0; n < N; n++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++) a[i] = _mm512_dpbusd_epi32(a[i], w, w);
        __asm__ volatile("");
    }
    t = now() - t;
    for (int i = 0; i < 12; i++) __asm__ volatile("" ::"v"(a[i]));
    return 64.0 * 12 * N / t;
}
__attribute__((target("avx2"))) static double issue_avx2(void)
{
    enum { N = 4000000 };
    __m256i a[12], w = _mm256_set1_epi8(1);
    for (int i = 0; i < 12; i++) a[i] = w;
    double t = now();
    for (int n = 0; n < N; n++) {
        _Pragma("GCC unroll 12") for (int i = 0; i < 12; i++)
        {
            __m256i x = w;
            __asm__ volatile("" : "+x"(x));
            a[i] = _mm256_add_epi16(a[i], _mm256_maddubs_epi16(w, x));
        }
    }
    t = now() - t;
    for (int i = 0; i < 12; i++) __asm__ volatile("" ::"x"(a[i]));
    return 32.0 * 12 * N / t;
}
#endif

static double issue(enum kt_level level)
{
#if defined(__x86_64__)
    if (level == KT_AVX512VNNI) return issue_avx512vnni();
    if (level == KT_AVX2) return issue_avx2();
#endif
    return level * 0.0;
}

/* Speeds of the rounds; the machine's own drift, so what is compared is measured in turns, and medians count. */
struct speeds {
    double v[ROUNDS];
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct speeds s)
{
    qsort(s.v, ROUNDS, sizeof *s.v, ascending);
    return s.v[ROUNDS / 2];
}

/* Median of a / b in percent. */
static double percent(struct speeds a, const struct speeds *b)
{
    for (int i = 0; i < ROUNDS; i++) a.v[i] = b->v[i] > 0 ? 100 * a.v[i] / b->v[i] : 0;
    return median(a);
}

struct inputs {
    uint8_t *file, *groups; /* a row's worth of file bytes over and over; repacked weights */
    float *x, *y;
    struct kt_act act;
    enum kt_level level;
};

/* n_tok tokens of act, from random numbers. */
static double set_tokens(struct inputs *in, const struct kt_linear *l, uint32_t k, uint32_t n_tok)
{
    in->act = (struct kt_act){l->act_dtype, k, n_tok, n_tok, in->act.data};
    double t = now();
    kt_quantize_find(l->act_dtype, in->level)(in->x, k, 0, n_tok, &in->act);
    return now() - t;
}

static void measure(struct inputs *in, const struct kt_linear *l, uint32_t k, uint32_t n_tok)
{
    uint64_t group = l->group_bytes(k);
    uint32_t n_groups = (uint32_t)(stream_bytes / group), rows = n_groups * KT_ROWS;
    double pack = now();
    for (uint32_t g = 0; g < n_groups; g++) l->repack(in->file, 0, KT_ROWS, k, in->groups + g * group);
    pack = now() - pack;

    struct speeds prompt, ceiling, quantize, token, read;
    for (int i = 0; i < ROUNDS; i++) {
        quantize.v[i] = (double)n_tok * k / set_tokens(in, l, k, n_tok) / 1e9;
        double t = now();
        l->run(in->groups, PROMPT_ROWS / KT_ROWS, PROMPT_ROWS, k, &in->act, 0, n_tok, NULL, in->y, PROMPT_ROWS);
        prompt.v[i] = (double)PROMPT_ROWS * k * n_tok / (now() - t) / 1e9;
        ceiling.v[i] = issue(in->level) / 1e9;
    }
    set_tokens(in, l, k, 1);
    for (int i = 0; i < ROUNDS; i++) {
        double t = now();
        l->run(in->groups, n_groups, rows, k, &in->act, 0, 1, NULL, in->y, rows);
        token.v[i] = (double)(n_groups * group) / (now() - t) / 1e9;
        t = now();
        __asm__ volatile("" ::"r"(pure_read(in->groups, n_groups * group)));
        read.v[i] = (double)(n_groups * group) / (now() - t) / 1e9;
    }
    printf("%-24s prompt %6.1f G products/s, %3.0f %% of %5.1f   one token %5.2f GB/s, %3.0f %% of %5.2f   quantize "
           "%5.2f, "
           "repack %5.2f G values/s\n",
           l->name, median(prompt), percent(prompt, &ceiling), median(ceiling), median(token), percent(token, &read),
           median(read), median(quantize), (double)rows * k / pack / 1e9);
    fflush(stdout);
}

/* `name` is one of the comma separated words of `list`. */
static int listed(const char *list, const char *name)
{
    for (const char *p = list; p; p = strchr(p, ','), p = p ? p + 1 : NULL)
        if (strncmp(p, name, strlen(name)) == 0 && (p[strlen(name)] == ',' || !p[strlen(name)])) return 1;
    return strcmp(list, "all") == 0;
}

int main(int argc, char **argv)
{
    const char *types = argc > 1 ? argv[1] : "all", *isa = argc > 2 ? argv[2] : "all";
    uint32_t k = argc > 3 ? (uint32_t)atoi(argv[3]) : 1024, n_tok = argc > 4 ? (uint32_t)atoi(argv[4]) : 256;
    if (!k || k % 256 || k > 1u << 16 || !n_tok || n_tok > 1u << 12)
        exit((fputs("K: a multiple of 256, TOKENS: 1 to 4096\n", stderr), 2));
    static const struct {
        const char *name;
        uint32_t dtype;
    } all[] = {{"q4_0", KOPI_DTYPE_Q4_0}, {"q4_1", KOPI_DTYPE_Q4_1}, {"q5_0", KOPI_DTYPE_Q5_0},
               {"q5_1", KOPI_DTYPE_Q5_1}, {"q8_0", KOPI_DTYPE_Q8_0}, {"iq4_nl", KOPI_DTYPE_IQ4_NL},
               {"q2_k", KOPI_DTYPE_Q2_K}, {"q3_k", KOPI_DTYPE_Q3_K}, {"q4_k", KOPI_DTYPE_Q4_K},
               {"q5_k", KOPI_DTYPE_Q5_K}, {"q6_k", KOPI_DTYPE_Q6_K}, {"f32", KOPI_DTYPE_F32},
               {"f16", KOPI_DTYPE_F16},   {"bf16", KOPI_DTYPE_BF16}};
    struct inputs in = {memory((uint64_t)k * 4),
                        memory(stream_bytes + (1 << 16)),
                        memory((uint64_t)k * n_tok * 4),
                        memory((stream_bytes / 256 + PROMPT_ROWS * n_tok) * 4 * 4),
                        {0},
                        KT_C};
    in.act.data = memory((uint64_t)k * n_tok * 4 + 4096);
    for (uint32_t i = 0; i < k * 4; i++) in.file[i] = (uint8_t)(0x20 + rand() % 16); /* as F16: normal numbers */
    for (uint32_t i = 0; i < k * n_tok; i++) in.x[i] = (float)(rand() % 2001 - 1000) / 500.0f;
    for (in.level = kt_level_detect();; in.level--) {
        for (size_t i = 0; listed(isa, kt_level_name(in.level)) && i < sizeof all / sizeof *all; i++)
            if (listed(types, all[i].name)) measure(&in, kt_linear_find(all[i].dtype, in.level), k, n_tok);
        if (in.level == KT_C) return 0;
    }
}
