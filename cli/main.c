/* kopi: one binary, one file per subcommand. */
#include "cli.h"

#include "gguf/gguf.h"
#include "outfile.h"
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int unknown_command(const char *name)
{
    return cli_error(EXIT_USAGE, "there is no command \"%.60s\"; see kopi help", name);
}

/* A closed standard descriptor must not become that of the next file opened: messages would be written into it. It is
 * held open the wrong way round, so that reading and writing fail as before. */
static void hold_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0) return;
}

/* JSON is built in many small steps, and one that fails would leave something out. */
static void *json_memory(size_t size)
{
    void *p = malloc(size);
    if (!p && size) exit(cli_error(EXIT_RUN, "out of memory"));
    return p;
}

int main(int argc, char **argv)
{
    json_set_alloc_funcs(json_memory, free);
    hold_standard_descriptors();
    setlocale(LC_ALL, ""); /* numbers are read and written without it; the terminal's character set counts */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a write past the limit of file sizes fails with EFBIG */
    kopi__gguf_guard_sigbus(outfile_abandon);
    cli_catch_interrupt();
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    if (!strcmp(name, "help") && argc > 2) {
        bool itself = !strcmp(argv[2], "--help") || !strcmp(argv[2], "-h");
        const struct cli_command *about =
            itself ? cli_command(name, 0, NULL) : cli_command(argv[2], argc - 3, argv + 3);
        if (!about) return unknown_command(argv[2]);
        int used = 3 + (strchr(about->name, ' ') != NULL);
        if (argc > used) return cli_error(EXIT_USAGE, "kopi help %s takes no \"%.60s\"", about->name, argv[used]);
        cli_help(about);
        return cli_finish_output();
    }
    const struct cli_command *c = cli_command(name, argc > 2 ? argc - 2 : 0, argv + 2);
    if (!c) return unknown_command(name);
    char **args = calloc((size_t)argc + 1, sizeof *args);
    int n_args = 0;
    if (!args) return cli_error(EXIT_RUN, "out of memory");
    int code = cli_parse(c, argc - 2, argv + 2, args, &n_args);
    if (!code) code = c->run(n_args, args);
    if (code == -1) code = 0; /* --help was printed */
    int out = cli_finish_output(), log = cli_log_close();
    if (code == EXIT_RUN && cli_interrupted()) code = EXIT_INTERRUPTED; /* opening or reading a pipe */
    free(args);
    kopi_config_free(cli_config);
    return code ? code : out ? out : log;
}
