/* core/config/write.h - YAML lines in block style, from paths in the order of the table. [any] */
#ifndef KOPI_CORE_CONFIG_WRITE_H
#define KOPI_CORE_CONFIG_WRITE_H

#include "base/buf.h"
#include "config/schema.h"

struct kopi__yaml_writer {
    struct kopi_buf buf;
    char last[KOPI__PATH_MAX]; /* path of the line before */
    const char *prefix;        /* before every line: "" or "# " */
};

/* One line "key: value  # comment", after the lines that open the sections of path. value is YAML already. off: the
 * line itself is a comment (its sections are not). Memory shortage shows in buf.failed. */
void kopi__yaml_line(struct kopi__yaml_writer *w, const char *path, const char *value, const char *comment, bool off);

/* A value as YAML that reads back as the same text: plain where that is safe, else in double quotes, '$' doubled. */
void kopi__yaml_scalar(struct kopi_buf *out, const char *text);

#endif
