/* cli/outfile.h - a file that the user asked for. A regular one appears under its name only when it is complete, and
 * nothing of an older one is lost before that; it keeps the older one's permissions, and one that may not be written is
 * refused. Symbolic links are followed, and stay. Devices, pipes and what /proc leads to, such as /dev/stdout, are
 * written directly. "-" is standard output. */
#ifndef KOPI_CLI_OUTFILE_H
#define KOPI_CLI_OUTFILE_H

#include <stdio.h>

struct outfile { FILE *f; char *path, *target, *temp; };

/* All return 0 or an exit code after a message. */
int outfile_open(struct outfile *o, const char *path);
int outfile_failed(const struct outfile *o);      /* says why the last write failed, by errno */
int outfile_close(struct outfile *o, int failed); /* failed: drop what was written. Also after a failed open */

/* Removes what is being written, before an _exit. Async-signal-safe. */
void outfile_abandon(void);

#endif
