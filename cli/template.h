/* cli/template.h - the files of examples/backend-demo, embedded by scripts/embed when kopi is built. */
#ifndef KOPI_CLI_TEMPLATE_H
#define KOPI_CLI_TEMPLATE_H

struct cli_template { const char *name, *text; }; /* "kopi-demo.c", its text */
/* Ends with name NULL; the word "demo" stands for the backend's name. */
extern const struct cli_template cli_template[];

#endif
