/* conformance/drive.h - an instance runs a program: kernel by kernel, or by its plan. */
#ifndef KOPI_CF_DRIVE_H
#define KOPI_CF_DRIVE_H

#include "program.h"

/* How the tokens are cut into runs. */
enum cf_split { CF_WHOLE, CF_ONE_BY_ONE, CF_UNEVEN };

/* Does the instance claim every operation of the segment? */
bool cf_takes(struct cf_instance *i, const struct cf_program *c);
/* Name of the code that runs the last operation of the segment; "" if it isn't told. */
const char *cf_code(struct cf_instance *i, const struct cf_program *c);

/* Runs the segment over all tokens; nth: workers of a kernel (a plan uses the instance's team). Fills c->out and
 * c->kv_rows. The text names what went wrong: a status, memory written that was not to be, an input changed. */
kopi_status cf_drive(struct cf_instance *i, struct cf_program *c, uint32_t nth, enum cf_split split, char *text,
                     size_t n);

#endif
