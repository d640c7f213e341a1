/* The log of this process: which lines, in which form, and where to. Messages of errors go to stderr whatever is said
 * here. */
#include "cli.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

static const char *const names[] = {"error", "warn", "info", "debug"};
enum { N_NAMES = sizeof names / sizeof *names };

static FILE *out;

static void write_text(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    fprintf(out, "kopi: %s\n", text);
}

static void write_json(void *ctx, int level, const char *text)
{
    char at[32];
    time_t now = time(NULL);
    struct tm tm;
    (void)ctx;
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    json_t *message = json_string(text);
    json_t *line = json_pack("{s:s, s:s, s:o}", "time", at, "level", names[level], "message",
                             message ? message : json_string("(not UTF-8)"));
    if (line && !json_dumpf(line, out, JSON_COMPACT)) putc('\n', out);
    json_decref(line);
}

static int open_file(const char *path)
{
    out = stderr;
    if (!path) return 0;
    if (!(out = fopen(path, "ae"))) return cli_error(EXIT_RUN, "--log-file %s: %s", path, strerror(errno));
    setvbuf(out, NULL, _IOLBF, 0);
    return 0;
}

int cli_log_open(const char *path, int least)
{
    const char *level = NULL, *format = NULL;
    int n = KOPI_LOG_WARN;
    kopi_config_get(cli_config, "log.level", &level, NULL, NULL);
    kopi_config_get(cli_config, "log.format", &format, NULL, NULL);
    for (int i = 0; i < N_NAMES; i++)
        if (level && !strcmp(level, names[i])) n = i;
    if (least > n) n = least;
    if (cli_quiet) n = KOPI_LOG_ERROR;
    kopi_log_set(n, format && !strcmp(format, "jsonl") ? write_json : write_text, NULL);
    return open_file(path);
}
