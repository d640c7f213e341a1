/* kopi backends new NAME DIR: a copy of the example backend under a name of its own, ready to build. */
#include "commands.h"

#include "backend/search.h"
#include "base/buf.h"
#include "base/mem.h"
#include "template.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* Appends text with "demo" replaced. */
static void rename_in(struct kopi_buf *out, const char *text, const char *name)
{
    for (const char *at; (at = strstr(text, "demo")); text = at + 4) {
        kopi__buf_add(out, text, (size_t)(at - text));
        kopi__buf_add(out, name, strlen(name));
    }
    kopi__buf_add(out, text, strlen(text));
}

/* Only a new or an empty directory: nothing is ever overwritten. */
static int make_directory(const char *path)
{
    if (!mkdir(path, 0777)) return 0;
    if (errno != EEXIST) return cli_error(EXIT_RUN, "%s: %s", path, strerror(errno));
    DIR *d = opendir(path);
    if (!d) return cli_error(EXIT_RUN, "%s: %s", path, strerror(errno));
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n > 2 ? cli_error(EXIT_RUN, "%s: is not empty", path) : 0;
}

static int write_file(const char *path, const struct kopi_buf *text)
{
    FILE *f = fopen(path, "wxe");
    if (!f) return cli_error(EXIT_RUN, "%s: %s", path, strerror(errno));
    bool good = fwrite(text->data, 1, text->len, f) == text->len;
    good = !fclose(f) && good;
    return good ? 0 : cli_error(EXIT_RUN, "%s: cannot be written: %s", path, strerror(errno));
}

static int make_file(const struct cli_template *t, const char *name, const char *dir)
{
    struct kopi_buf path = KOPI_BUF_INIT, text = KOPI_BUF_INIT;
    kopi__buf_fmt(&path, "%s/", dir);
    rename_in(&path, t->name, name);
    rename_in(&text, t->text, name);
    int code = path.failed || text.failed ? cli_error(EXIT_RUN, "out of memory") : write_file(path.data, &text);
    if (!code) printf("%s\n", path.data);
    kopi__buf_free(&path);
    kopi__buf_free(&text);
    return code;
}

static const char *const own[] = {"cpu", "cpu-threaded"}; /* kopi's: a second one of that name would hide it */

int cli_backends_new(int n_args, char **args)
{
    if (n_args != 2) return cli_error(EXIT_USAGE, "kopi backends new needs a NAME and a DIR");
    const char *name = args[0], *dir = args[1];
    if (!kopi__plugin_name_ok(name))
        return cli_error(EXIT_USAGE, "the name of a backend is made of 1 to 32 of a-z 0-9 _ -");
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(name, own[i])) return cli_error(EXIT_USAGE, "%s is a backend of kopi; take another name", name);
    int code = make_directory(dir);
    for (const struct cli_template *t = cli_template; t->name && !code; t++) code = make_file(t, name, dir);
    if (!code && !cli_quiet)
        fprintf(stderr, "next: cd %s && autoreconf -fi && ./configure && make; then README.md\n", dir);
    return code;
}
