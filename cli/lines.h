/* cli/lines.h - lines from a terminal: with editing and a history where libedit is there, plainly where it isn't. One
 * thread. */
#ifndef KOPI_CLI_LINES_H
#define KOPI_CLI_LINES_H

enum lines_status {
    LINES_OK,
    LINES_END /* Ctrl-D */,
    LINES_INTERRUPTED /* Ctrl-C: the line is dropped */,
    LINES_FAILED
};

void lines_open(void);  /* reads the history: $XDG_STATE_HOME/kopi/history, by default ~/.local/state/kopi/history */
void lines_close(void); /* writes it */

/* One line without its newline, freed by free(). */
enum lines_status lines_read(const char *prompt, char **line);

#endif
