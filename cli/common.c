#include "cli.h"

#include "base/buf.h"
#include "base/num.h"
#include "config/config.h"
#include "outfile.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- messages ---------------------------------------------------------------------------------------------------- */

int cli_error(int code, const char *fmt, ...)
{
    char text[1200];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (char *p = text; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f) *p = '?';
    cli_progress_end();
    cli_log_error(text);
    return code;
}

int cli_fail(const kopi_error *err)
{
    static const struct { kopi_status status; int code;
    } codes[] = {{KOPI_E_INVALID, EXIT_USAGE},      {KOPI_E_CONFIG, EXIT_CONFIG},   {KOPI_E_MODEL, EXIT_MODEL},
                 {KOPI_E_IO, EXIT_MODEL},           {KOPI_E_BACKEND, EXIT_BACKEND}, {KOPI_E_ABI, EXIT_BACKEND},
                 {KOPI_E_DEVICE_LOST, EXIT_BACKEND}};
    if (err->code == KOPI_E_CANCELLED && cli_interrupted()) return cli_error(EXIT_INTERRUPTED, "interrupted");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (err->code == codes[i].status) return cli_error(codes[i].code, "%s", err->text);
    return cli_error(EXIT_RUN, "%s", err->text);
}

/* ---- Ctrl-C ------------------------------------------------------------------------------------------------------ */

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { N_SIGNALS = sizeof signals / sizeof *signals };
static _Atomic int interrupts, terminated;
static _Atomic(kopi_model *) running;

static void on_interrupt(int sig)
{
    if (sig != SIGINT) atomic_store(&terminated, 1);
    if (atomic_fetch_add(&interrupts, 1) > 0) {
        outfile_abandon();
        _exit(EXIT_INTERRUPTED);
    }
    kopi_model *m = atomic_load(&running);
    if (m) kopi_model_cancel(m);
}

void cli_catch_interrupt(void)
{
    struct sigaction a = {.sa_handler = on_interrupt}, old;
    cli_add_signals(&a.sa_mask);
    for (int i = 0; i < N_SIGNALS; i++) {
        bool nohup = signals[i] == SIGHUP && !sigaction(SIGHUP, NULL, &old) && old.sa_handler == SIG_IGN;
        if (!nohup) sigaction(signals[i], &a, NULL);
    }
}

void cli_add_signals(sigset_t *set)
{
    for (int i = 0; i < N_SIGNALS; i++) sigaddset(set, signals[i]);
}

void cli_cancel_on_interrupt(kopi_model *model)
{
    atomic_store(&running, model);
    if (model && interrupts) kopi_model_cancel(model);
}

bool cli_interrupted(void) { return atomic_load(&interrupts) > 0; }
bool cli_terminated(void) { return atomic_load(&terminated); }
bool cli_reset_interrupt(void) { return atomic_exchange(&interrupts, 0) > 0; }

/* ---- progress ---------------------------------------------------------------------------------------------------- */

static bool line_open;

int cli_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
    static int shown = -1;
    (void)ctx;
    int percent = total ? (int)(done * 100 / total) : 0;
    if (!cli_quiet && !cli_no_progress && percent != shown && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%s %d %%", what, percent);
        fflush(stderr);
        line_open = true;
        shown = percent;
        if (done >= total) cli_progress_end();
    }
    return cli_interrupted();
}

void cli_progress_end(void)
{
    if (line_open) fputs("\r\033[K", stderr);
    line_open = false;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static int output_failed(int e)
{
    clearerr(stdout);
    if (e == EPIPE) return EXIT_RUN; /* the reader has gone: nothing to tell it */
    return cli_error(EXIT_RUN, "writing the output: %s", strerror(e));
}

int cli_write(const void *bytes, size_t n) { return fwrite(bytes, 1, n, stdout) == n ? 0 : output_failed(errno); }

int cli_print_json(const json_t *all, size_t flags)
{
    bool bad = !all || json_dumpf(all, stdout, flags | JSON_REAL_PRECISION(9)) || putchar('\n') == EOF;
    return bad ? cli_error(EXIT_RUN, "the JSON could not be written") : 0;
}

int cli_finish_output(void) { return fflush(stdout) == 0 && !ferror(stdout) ? 0 : output_failed(errno); }

bool cli_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

enum { MOST_TEXT = 1 << 30 }; /* bytes that are read as one text; /dev/zero has no end */

char *cli_read_file(const char *path, size_t *n)
{
    bool in = !strcmp(path, "-");
    FILE *f = in ? stdin : fopen(path, "re");
    struct kopi_buf b = KOPI_BUF_INIT;
    static char chunk[1 << 16];
    if (!f) {
        cli_error(EXIT_RUN, "%s: %s", path, strerror(errno));
        return NULL;
    }
    errno = 0;
    for (size_t k; b.len <= MOST_TEXT && !cli_interrupted() && (k = fread(chunk, 1, sizeof chunk, f)) > 0 &&
                   kopi__buf_add(&b, chunk, k);) {}
    int failed = ferror(f) ? errno : b.len > MOST_TEXT ? EFBIG : cli_interrupted() ? EINTR : 0;
    if (!in) fclose(f);
    *n = b.len;
    char *text = kopi__buf_take(&b);
    if (failed || !text) {
        cli_error(EXIT_RUN, "%s: %s", in ? "standard input" : path, failed ? strerror(failed) : "out of memory");
        free(text);
        return NULL;
    }
    return text;
}

char *cli_read_prompt(const char *text, const char *file, size_t *n)
{
    if (!text) return cli_read_file(file ? file : "-", n);
    char *copy = strdup(text);
    if (!copy) cli_error(EXIT_RUN, "out of memory");
    *n = strlen(text);
    return copy;
}

/* ---- models ------------------------------------------------------------------------------------------------------ */

const char *cli_no_template(void)
{
    const char *source = kopi__config_str(cli_config, "models[].template.source", 0);
    return strcmp(source, "none") ? "the model has no chat template"
                                  : "the chat template is turned off (template.source: none)";
}

int cli_need_context(int64_t positions)
{
    char text[24];
    kopi_error e;
    const struct kopi__setting *set = kopi__config_find(cli_config, "models[].context.size", 0);
    if (set && set->from != KOPI_FROM_DEFAULT) return 0;
    snprintf(text, sizeof text, "%lld", (long long)positions);
    return kopi_config_set(cli_config, "models[].context.size", text, &e) == KOPI_OK ? 0 : cli_fail(&e);
}

int cli_check_context(const kopi_model *model, int64_t positions)
{
    uint32_t ctx = kopi_model_max_context(model);
    if (positions <= ctx) return 0;
    return cli_error(EXIT_USAGE, "a test needs %lld positions, the context has %u; raise --ctx-size",
                     (long long)positions, ctx);
}

int cli_load(kopi_engine **engine, kopi_model **model)
{
    kopi_error e;
    *model = NULL;
    kopi_status s = kopi_engine_new(cli_config, engine, &e);
    if (s == KOPI_OK) s = kopi_model_load(*engine, NULL, cli_progress, NULL, model, &e);
    cli_progress_end();
    if (s != KOPI_OK) {
        int code = cli_fail(&e);
        kopi_engine_free(*engine);
        *engine = NULL;
        return code;
    }
    cli_cancel_on_interrupt(*model);
    return 0;
}

void cli_unload(kopi_engine *engine, kopi_model *model)
{
    cli_cancel_on_interrupt(NULL);
    kopi_model_free(model);
    kopi_engine_free(engine);
}

const char *cli_model_path(void)
{
    const char *path = kopi__config_str(cli_config, "models[].path", 0);
    if (!path) cli_error(EXIT_CONFIG, "no model is given; use --model FILE");
    return path;
}

/* The end of the separator at p, which stands between two ids: blanks, with at most one comma among them. */
static const char *skip_separator(const char *p)
{
    static const char blanks[] = " \t\r\n";
    p += strspn(p, blanks);
    if (*p == ',') p++;
    return p + strspn(p, blanks);
}

int32_t *cli_parse_ids(const char *text, size_t *n)
{
    const char *p = text + strspn(text, " \t\r\n");
    char one[24];
    int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
    if (!ids) cli_error(EXIT_RUN, "out of memory");
    bool comma = false; /* before p, so that an id has to follow */
    for (*n = 0; ids && (*p || comma);) {
        size_t len = strcspn(p, ", \t\r\n");
        int64_t v;
        snprintf(one, sizeof one, "%.*s", (int)(len < sizeof one ? len : 0), p);
        if (!kopi__parse_i64(one, &v) || v < 0 || v > INT32_MAX) {
            if (len) cli_error(EXIT_USAGE, "\"%.*s\" is not a token id", (int)(len < 40 ? len : 40), p);
            else cli_error(EXIT_USAGE, "an id is missing beside a comma");
            free(ids);
            return NULL;
        }
        ids[(*n)++] = (int32_t)v;
        const char *end = skip_separator(p + len);
        comma = memchr(p + len, ',', (size_t)(end - p) - len) != NULL;
        p = end;
    }
    return ids;
}

int cli_exclude(const char *a, bool has_a, const char *b, bool has_b)
{
    return has_a && has_b ? cli_error(EXIT_USAGE, "%s and %s exclude each other", a, b) : 0;
}
