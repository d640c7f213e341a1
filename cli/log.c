/* The log of this process: which lines, in which form, and where to. */
#include "cli.h"

#include "inputs.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char *const names[] = {"error", "warn", "info", "debug"};
enum { N_NAMES = sizeof names / sizeof *names };

static FILE *out;
static kopi_log_fn write_line;
static const char *file_name; /* NULL: stderr */
static int first_errno;       /* of the first line that could not be written */

static void note_failure(bool failed)
{
    if (failed && !first_errno) first_errno = errno;
}

static void write_text(void *ctx, int level, const char *text)
{
    (void)ctx, (void)level;
    if (out == stderr) cli_progress_end();
    note_failure(fprintf(out, "kopi: %s\n", text) < 0);
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
    note_failure(line && (json_dumpf(line, out, JSON_COMPACT) || putc('\n', out) == EOF));
    json_decref(line);
}

/* In the log's form; with a log file as text on stderr, too, where whoever typed the command looks. */
void cli_log_error(const char *text)
{
    if (!out || out != stderr) fprintf(stderr, "kopi: %s\n", text);
    if (out) write_line(NULL, KOPI_LOG_ERROR, text);
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
    int code = path ? cli_check_output(path) : 0;
    if (code) return code;
    FILE *file = path ? fopen(path, "ae") : stderr;
    if (!file) return cli_error(EXIT_RUN, "--log-file %s: %s", path, strerror(errno));
    if (path) setvbuf(file, NULL, _IOLBF, 0);
    file_name = path;
    out = file;
    write_line = format && !strcmp(format, "jsonl") ? write_json : write_text;
    kopi_log_set(n, write_line, NULL);
    return 0;
}

bool cli_log_is(const struct stat *of)
{
    struct stat st;
    return file_name && !fstat(fileno(out), &st) && cli_same_file(&st, of);
}

int cli_log_close(void)
{
    FILE *file = out;
    if (!file_name) return 0;
    out = stderr;
    kopi_log_set(KOPI_LOG_ERROR, write_text, NULL);
    note_failure(fclose(file) != 0);
    return first_errno ? cli_error(EXIT_RUN, "--log-file %s: %s", file_name, strerror(first_errno)) : 0;
}
