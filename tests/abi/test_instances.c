/* One file gives one handle, whatever it is called; instances of one backend, and of different backends, live in one
 * process and run at the same time, each with the bits that it has alone. */
#include "backend/plugin.h"
#include "base/mem.h"
#include "tests/support/load.h"
#include "tests/support/tinygguf.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEMO BUILD "/tests/abi/.libs/kopi-demo.so"
enum { VOCAB = 96, N = 48 };

static const struct kopi_plugin_handle *load(const char *path)
{
    const struct kopi_plugin_search s = {.path = path};
    const struct kopi_plugin_handle *h;
    kopi_error e;
    if (kopi__plugin_load(&s, &h, &e) != KOPI_OK) ck_abort_msg("%s", e.text);
    return h;
}

START_TEST(one_handle_per_file)
{
    char dir[512], copy[640], hard[640], soft[640], command[2048];
    tiny_path(dir, "");
    snprintf(copy, sizeof copy, "%skopi-copy.so", dir);
    snprintf(hard, sizeof hard, "%skopi-hard.so", dir);
    snprintf(soft, sizeof soft, "%skopi-soft.so", dir);
    snprintf(command, sizeof command, "cp '%s' '%s'", DEMO, copy);
    ck_assert_int_eq(system(command), 0);
    ck_assert_int_eq(link(copy, hard), 0);
    ck_assert_int_eq(symlink(copy, soft), 0);
    const struct kopi_plugin_handle *a = load(DEMO), *b = load(copy);
    ck_assert_ptr_eq(a, load(DEMO));
    ck_assert_ptr_ne(a, b);
    ck_assert_ptr_eq(b, load(hard));
    ck_assert_ptr_eq(b, load(soft));
    ck_assert_str_eq(b->desc.name, "demo");
    ck_assert_int_eq(unlink(copy) | unlink(hard) | unlink(soft), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

/* One model on one backend in a thread of its own: the prompt at once, then token by token, again and again. */
struct job {
    const char *backend, *path;
    const float *want; /* NULL: fill `have` */
    float have[N * VOCAB];
    int rounds;
    pthread_barrier_t *start;
    kopi_engine *shared; /* NULL: an engine, and so a team, of its own */
    struct tiny_loaded l;
};

static const char *const settings[] = {"plugin_dirs=" BUILD "/.libs:" BUILD "/tests/abi/.libs", "backend.fallback=cpu",
                                       "backend.threads=2", "models[].context.size=64", NULL};

static void forward(struct job *j, int chunk)
{
    kopi_cache *c;
    kopi_error e;
    int32_t ids[N];
    for (int i = 0; i < N; i++) ids[i] = (i * 37 + i * i) % VOCAB;
    ck_assert_int_eq(kopi_cache_new(j->l.model, &c, NULL), KOPI_OK);
    for (int i = 0; i < N; i += chunk)
        if (kopi_model_forward(j->l.model, c, ids + i, (size_t)chunk, j->have + i * VOCAB, &e) != KOPI_OK)
            ck_abort_msg("%s", e.text);
    kopi_cache_free(c);
}

static void *work(void *arg)
{
    struct job *j = arg;
    tiny_load(&j->l, j->path, j->backend, settings);
    if (j->start) pthread_barrier_wait(j->start);
    for (int r = 0; r < j->rounds; r++) {
        memset(j->have, 0, sizeof j->have);
        forward(j, r % 2 ? N : 1 + r % 3);
        if (j->want) ck_assert_mem_eq(j->have, j->want, sizeof j->have);
    }
    tiny_unload(&j->l);
    return NULL;
}

static void run_pair(const char *backend_a, const char *backend_b)
{
    static const struct tiny_llama c = {
        .n_vocab = VOCAB, .n_embd = 64, .n_ff = 96, .context = 64, .dtype = KOPI_DTYPE_Q8_0};
    char path[2][512];
    static struct job alone[2], job[2];
    const char *backend[] = {backend_a, backend_b};
    pthread_barrier_t start;
    pthread_t thread[2];
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++) {
        struct tiny_llama mine = c;
        mine.seed = (uint64_t)i + 1;
        tiny_path(path[i], "tiny.gguf");
        tiny_llama_model(path[i], &mine);
        alone[i] = (struct job){.backend = "cpu", .path = path[i], .rounds = 1};
        work(&alone[i]);
        job[i] =
            (struct job){.backend = backend[i], .path = path[i], .want = alone[i].have, .rounds = 12, .start = &start};
    }
    ck_assert(memcmp(alone[0].have, alone[1].have, sizeof alone[0].have) != 0);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(pthread_create(&thread[i], NULL, work, &job[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&start);
    for (int i = 0; i < 2; i++) tiny_remove(path[i]);
}

START_TEST(two_instances_of_one_backend) { run_pair(tiny_backends[_i], tiny_backends[_i]); }
END_TEST
START_TEST(two_instances_of_a_kernels_only_backend) { run_pair("demo", "demo"); }
END_TEST
START_TEST(two_backends_at_once) { run_pair(tiny_backends[_i], "demo"); }
END_TEST

/* Both models on one engine: its one team serves them by turns. */
static void *on_shared_engine(void *arg)
{
    struct job *j = arg;
    kopi_error e;
    if (kopi_model_load(j->shared, j->path, NULL, NULL, &j->l.model, &e) != KOPI_OK) ck_abort_msg("%s", e.text);
    for (int r = 0; r < j->rounds; r++) {
        forward(j, r % 2 ? N : 2);
        ck_assert_mem_eq(j->have, j->want, sizeof j->have);
    }
    kopi_model_free(j->l.model);
    return NULL;
}

START_TEST(two_models_of_one_engine)
{
    static const struct tiny_llama c = {
        .n_vocab = VOCAB, .n_embd = 64, .n_ff = 96, .context = 64, .dtype = KOPI_DTYPE_Q8_0, .seed = 5};
    char path[512];
    static struct job alone, job[2];
    struct tiny_loaded l;
    pthread_t thread[2];
    tiny_path(path, "tiny.gguf");
    tiny_llama_model(path, &c);
    alone = (struct job){.backend = "cpu", .path = path, .rounds = 1};
    work(&alone);
    tiny_load(&l, path, "demo", settings);
    for (int i = 0; i < 2; i++) {
        job[i] = (struct job){.path = NULL, .want = alone.have, .rounds = 10, .shared = l.engine};
        ck_assert_int_eq(pthread_create(&thread[i], NULL, on_shared_engine, &job[i]), 0);
    }
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    tiny_unload(&l);
    tiny_remove(path);
}
END_TEST

/* ---- a host of the first minimum --------------------------------------------------------------------------------- */

/* What the first hosts of this ABI offer: everything up to `option`. Behind it lies a page that may not be read. */
enum { HOST_MINIMUM = KOPI_END_OF(kopi_host, option) };
static kopi_status (*real_create)(const kopi_host *host, uint32_t device, void **be);
static kopi_status (*real_device)(const kopi_host *host, uint32_t index, kopi_device *out);
static int cut_creates;

static const kopi_host *cut_host(const kopi_host *host)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(two, MAP_FAILED);
    ck_assert_int_eq(mprotect(two + page, page, PROT_NONE), 0);
    kopi_host *cut = (kopi_host *)(void *)(two + page - HOST_MINIMUM);
    memcpy(cut, host, HOST_MINIMUM);
    cut->struct_size = HOST_MINIMUM;
    return cut; /* lives as long as the test */
}

static kopi_status cut_create(const kopi_host *host, uint32_t device, void **be)
{
    cut_creates++;
    return real_create(cut_host(host), device, be);
}

static kopi_status cut_device(const kopi_host *host, uint32_t index, kopi_device *out)
{
    return real_device(cut_host(host), index, out);
}

/* The loader knows the file by its inode, so the change in the handle reaches the model that is loaded afterwards. */
START_TEST(a_host_of_the_first_minimum)
{
    static const struct tiny_llama c = {
        .n_vocab = VOCAB, .n_embd = 64, .n_ff = 96, .context = 64, .dtype = KOPI_DTYPE_Q8_0, .seed = 7};
    static struct job alone, job;
    char path[512], plugin[512];
    tiny_path(path, "tiny.gguf");
    tiny_llama_model(path, &c);
    alone = (struct job){.backend = tiny_backends[_i], .path = path, .rounds = 1};
    work(&alone);
    snprintf(plugin, sizeof plugin, BUILD "/.libs/kopi-%s.so", tiny_backends[_i]);
    struct kopi_plugin_handle *h = (struct kopi_plugin_handle *)(uintptr_t)load(plugin);
    real_create = h->ops.create;
    real_device = h->desc.device;
    h->ops.create = cut_create;
    h->desc.device = cut_device;
    job = (struct job){.backend = tiny_backends[_i], .path = path, .want = alone.have, .rounds = 4};
    work(&job);
    ck_assert_int_eq(cut_creates, 1);
    tiny_remove(path);
}
END_TEST

/* ---- what a backend that takes the program is told --------------------------------------------------------------- */

static kopi_backend_ops real;
static uint32_t ids_seen[8];
static int n_seen, n_prepared, n_freed;

static struct kopi_plugin_handle *threaded(void)
{
    struct kopi_plugin_handle *h = (struct kopi_plugin_handle *)(uintptr_t)load(BUILD "/.libs/kopi-cpu-threaded.so");
    real = h->ops;
    return h;
}

static const char *model_file(char *path, uint64_t seed)
{
    const struct tiny_llama c = {
        .n_vocab = VOCAB, .n_embd = 64, .n_ff = 96, .context = 64, .dtype = KOPI_DTYPE_Q8_0, .seed = seed};
    tiny_path(path, "tiny.gguf");
    tiny_llama_model(path, &c);
    return path;
}

static kopi_status watch_execute(void *be, void *plan, const kopi_run *run)
{
    for (uint32_t i = 0; i < run->n_seq && n_seen < 8; i++) ids_seen[n_seen++] = kopi_seq_at(run, i)->id;
    return real.execute(be, plan, run);
}

/* Each sequence stands first in its step, so only a name of its own tells them apart. */
START_TEST(a_sequence_keeps_its_id)
{
    char path[512];
    struct tiny_loaded l;
    kopi_cache *c[2];
    const int32_t ids[] = {1, 2, 3};
    static const char *const two[] = {"models[].context.size=64", "models[].context.parallel=2", NULL};
    threaded()->ops.execute = watch_execute;
    tiny_load(&l, model_file(path, 3), "cpu-threaded", two);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(kopi_cache_new(l.model, &c[i], NULL), KOPI_OK);
    kopi_error e;
    for (int i = 0; i < 4; i++)
        if (kopi_model_forward(l.model, c[i % 2], ids, 3, NULL, &e) != KOPI_OK) ck_abort_msg("%s", e.text);
    ck_assert_int_eq(kopi_cache_truncate(c[0], 1, NULL), KOPI_OK);
    ck_assert_int_eq(kopi_model_forward(l.model, c[0], ids, 3, NULL, NULL), KOPI_OK);
    ck_assert_int_eq(n_seen, 5);
    ck_assert_uint_ne(ids_seen[0], ids_seen[1]);
    ck_assert_uint_eq(ids_seen[2], ids_seen[0]);
    ck_assert_uint_eq(ids_seen[3], ids_seen[1]);
    ck_assert_uint_eq(ids_seen[4], ids_seen[0]);
    kopi_cache_free(c[0]); /* its id is not given to the next one */
    ck_assert_int_eq(kopi_cache_new(l.model, &c[0], NULL), KOPI_OK);
    ck_assert_int_eq(kopi_model_forward(l.model, c[0], ids, 3, NULL, NULL), KOPI_OK);
    ck_assert_uint_ne(ids_seen[5], ids_seen[0]);
    ck_assert_uint_ne(ids_seen[5], ids_seen[1]);
    for (int i = 0; i < 2; i++) kopi_cache_free(c[i]);
    tiny_unload(&l);
    tiny_remove(path);
}
END_TEST

/* As plugins do it: the plan is given out early, and freed again where something after that fails. */
static kopi_status failing_prepare(void *be, const kopi_program *p, uint32_t first, uint32_t n, void **plan)
{
    kopi_status s = real.prepare(be, p, first, n, plan);
    if (s == KOPI_OK) real.plan_free(be, *plan);
    n_prepared++;
    return KOPI_E_NOMEM;
}
static void count_free(void *be, void *plan)
{
    (void)be, (void)plan;
    n_freed++;
}

START_TEST(a_failed_prepare_leaves_no_plan)
{
    char path[512];
    struct tiny_loaded l;
    kopi_error e;
    struct kopi_plugin_handle *h = threaded();
    h->ops.prepare = failing_prepare;
    h->ops.plan_free = count_free;
    ck_assert_int_eq(tiny_try(&l, model_file(path, 4), "cpu-threaded", settings, &e), KOPI_E_NOMEM);
    ck_assert_ptr_nonnull(strstr(e.text, "backend cpu-threaded: prepare"));
    ck_assert_int_eq(n_prepared, 1);
    ck_assert_int_eq(n_freed, 0);
    tiny_unload(&l);
    tiny_remove(path);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("instances");
    TCase *t = tcase_create("instances");
    int n = 0;
    while (tiny_backends[n]) n++;
    tcase_set_timeout(t, 120);
    tcase_add_test(t, one_handle_per_file);
    tcase_add_loop_test(t, two_instances_of_one_backend, 0, n);
    tcase_add_test(t, two_instances_of_a_kernels_only_backend);
    tcase_add_loop_test(t, two_backends_at_once, 0, n);
    tcase_add_test(t, two_models_of_one_engine);
    tcase_add_loop_test(t, a_host_of_the_first_minimum, 0, n);
    tcase_add_test(t, a_sequence_keeps_its_id);
    tcase_add_test(t, a_failed_prepare_leaves_no_plan);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
