#include "lines.h"

#include "base/log.h"
#include "cli.h"
#include "outfile.h"
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sigset_t unblocked; /* the mask outside lines_read */

static void pass_signal(void);

/* While a line is read signals come only where this waits for input: else one that comes just before a read() would be
 * lost in it. false and EINTR: interrupted. */
static bool wait_input(void)
{
    struct pollfd in = {STDIN_FILENO, POLLIN, 0};
    errno = EINTR;
    while (errno == EINTR && !cli_interrupted()) {
        if (ppoll(&in, 1, NULL, &unblocked) >= 0) return true;
        pass_signal();
    }
    return false;
}

#ifdef HAVE_LIBEDIT
#include <histedit.h>
#include <sys/stat.h>
#include <wchar.h>

enum { KEPT = 1000 }; /* lines of history */

static EditLine *editor;
static History *history_list;
static const char *prompt_text = "";
static char *history_path;

/* ---- signals at the prompt --------------------------------------------------------------------------------------- */

/* Signals that end, stop or continue kopi: the editor's terminal must not be left to others. */
static const int held[] = {SIGQUIT, SIGTSTP, SIGCONT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};
enum { N_HELD = sizeof held / sizeof *held };
static struct sigaction before[N_HELD];
static volatile sig_atomic_t came; /* one of them; 0: none */

static void on_signal(int sig) { came = sig; }

static void hold_signals(void)
{
    const struct sigaction mine = {.sa_handler = on_signal};
    for (int i = 0; i < N_HELD; i++) {
        sigaction(held[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN || held[i] == SIGCONT) sigaction(held[i], &mine, NULL);
    }
}

static void release_signals(void)
{
    for (int i = 0; i < N_HELD; i++) sigaction(held[i], &before[i], NULL);
}

/* Lets a signal that came do what it does by default. */
static void take_default(int sig)
{
    const struct sigaction dfl = {.sa_handler = SIG_DFL};
    struct sigaction mine;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, sig);
    sigaction(sig, &dfl, &mine);
    raise(sig);
    pthread_sigmask(SIG_UNBLOCK, &one, NULL);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    sigaction(sig, &mine, NULL);
}

/* The signal that ended a wait, with the terminal as it was before the editor. What was stopped goes on with SIGCONT,
 * which shows the line again: others wrote to the terminal. */
static void pass_signal(void)
{
    int sig = came, e = errno;
    came = 0;
    if (sig) el_set(editor, EL_PREP_TERM, 0);
    if (sig && sig != SIGCONT) take_default(sig);
    if (sig) el_set(editor, EL_PREP_TERM, 1);
    if (sig == SIGCONT) {
        putchar('\r');
        el_set(editor, EL_REFRESH);
    }
    errno = e;
}

/* ---- editing ----------------------------------------------------------------------------------------------------- */

static char *prompt(EditLine *el)
{
    (void)el;
    return (char *)(uintptr_t)prompt_text;
}

/* The next character; 0 at the end of input, -1 and errno on an interrupt. A byte that is not UTF-8 counts as a
 * character. */
static int get_char(EditLine *el, wchar_t *out)
{
    mbstate_t state = {0};
    (void)el;
    for (;;) {
        char byte;
        if (!wait_input()) return -1;
        ssize_t n = read(STDIN_FILENO, &byte, 1);
        if (n <= 0) return n < 0 && errno == EIO ? 0 : (int)n; /* EIO: the terminal is gone */
        size_t done = mbrtowc(out, &byte, 1, &state);
        if (done == (size_t)-2) continue;
        if (done == (size_t)-1) *out = (wchar_t)(unsigned char)byte;
        if (*out > 0x10ffff || (*out >= 0xd800 && *out < 0xe000)) *out = 0xfffd; /* what no UTF-8 text may hold */
        return 1;
    }
}

/* The folders that an absolute path goes through; what can't be made shows when the file is written. */
static void make_folders(char *path)
{
    for (char *slash = path; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

/* In ~/.local/state/kopi, which is made. NULL: no home, no history. */
static char *find_history(void)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *path = NULL;
    struct stat st;
    int n = state && state[0] == '/' ? asprintf(&path, "%s/kopi/history", state)
            : home && home[0] == '/' ? asprintf(&path, "%s/.local/state/kopi/history", home)
                                     : -1;
    if (n < 0) return NULL;
    make_folders(path);
    if (stat(path, &st) || S_ISREG(st.st_mode)) return path;
    free(path); /* a pipe would block, a device may have no end */
    return NULL;
}

/* What is there and can't be read is not ours, and isn't written either. */
static void load_history(void)
{
    HistEvent ev;
    struct stat st;
    history_path = find_history();
    if (!history_path || history(history_list, &ev, H_LOAD, history_path) >= 0) return;
    if (stat(history_path, &st) || !st.st_size) return;
    kopi__log(KOPI_LOG_WARN, "%s: is no history of libedit, so none is kept", history_path);
    free(history_path);
    history_path = NULL;
}

/* As a file that was asked for, so that a full disk takes no old line; for its owner alone. */
static void save_history(void)
{
    HistEvent ev;
    struct outfile file;
    int code = outfile_open(&file, history_path);
    if (!code) {
        fchmod(fileno(file.f), 0600);
        if (history(history_list, &ev, H_SAVE_FP, file.f) < 0) code = outfile_failed(&file);
    }
    outfile_close(&file, code);
}

void lines_open(void)
{
    HistEvent ev;
    if (!isatty(STDOUT_FILENO)) return; /* libedit would leave a terminal that doesn't echo */
    /* Characters of several bytes are edited as one; numbers stay as they are. */
    setlocale(LC_CTYPE, "C.UTF-8");
    history_list = history_init();
    editor = el_init("kopi", stdin, stdout, stderr);
    if (!editor || !history_list) {
        lines_close();
        return;
    }
    history(history_list, &ev, H_SETSIZE, KEPT);
    history(history_list, &ev, H_SETUNIQUE, 1);
    el_set(editor, EL_PROMPT, prompt);
    el_set(editor, EL_EDITOR, "emacs");
    el_set(editor, EL_SIGNAL, 0);
    el_set(editor, EL_GETCFN, get_char);
    el_set(editor, EL_HIST, history, history_list);
    el_source(editor, NULL); /* the user's ~/.editrc */
    load_history();
}

void lines_close(void)
{
    if (editor && history_path) save_history();
    if (editor) el_end(editor);
    if (history_list) history_end(history_list);
    free(history_path);
    editor = NULL;
    history_list = NULL;
    history_path = NULL;
}

static enum lines_status read_edited(const char *text, char **line)
{
    HistEvent ev;
    int n;
    prompt_text = text;
    hold_signals();
    errno = 0;
    /* Before the prompt: a Ctrl-D typed on sight of it is a key, not the end of a cooked line. */
    el_set(editor, EL_PREP_TERM, 1);
    const char *got = el_gets(editor, &n);
    bool interrupted = n < 0 && errno == EINTR;
    release_signals();
    if (!got || n <= 0) {
        el_reset(editor);
        if (interrupted) putchar('\n');
        return interrupted ? LINES_INTERRUPTED : LINES_END;
    }
    *line = strndup(got, strcspn(got, "\n"));
    if (!*line) return LINES_FAILED;
    if (**line) history(history_list, &ev, H_ENTER, *line);
    return LINES_OK;
}
#else
static void *const editor;
static const int held[] = {SIGCONT}; /* a line without editing needs nothing of it */
enum { N_HELD = 1 };
static void pass_signal(void) {}
void lines_open(void) {}
void lines_close(void) {}
static enum lines_status read_edited(const char *text, char **line)
{
    (void)text, (void)line;
    return LINES_FAILED;
}
#endif

/* Where the prompt is shown: what is redirected gets the answers alone. */
static FILE *screen(void) { return isatty(STDOUT_FILENO) ? stdout : stderr; }

static enum lines_status read_plain(const char *text, char **line)
{
    size_t cap = 0;
    *line = NULL;
    fputs(text, screen());
    fflush(screen());
    bool interrupted = !wait_input();
    ssize_t n = interrupted ? -1 : getline(line, &cap, stdin);
    if (n >= 0) {
        if (n && (*line)[n - 1] == '\n') (*line)[n - 1] = 0;
        return LINES_OK;
    }
    free(*line);
    *line = NULL;
    clearerr(stdin);
    if (interrupted) fputc('\n', screen());
    return interrupted ? LINES_INTERRUPTED : LINES_END;
}

enum lines_status lines_read(const char *text, char **line)
{
    sigset_t signals;
    sigemptyset(&signals);
    cli_add_signals(&signals);
    for (int i = 0; i < N_HELD && editor; i++) sigaddset(&signals, held[i]);
    pthread_sigmask(SIG_BLOCK, &signals, &unblocked);
    enum lines_status s = (editor ? read_edited : read_plain)(text, line);
    pthread_sigmask(SIG_SETMASK, &unblocked, NULL);
    return s;
}
