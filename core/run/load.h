/* core/run/load.h - a second model beside a loaded one, for speculation. [one thread] */
#ifndef KOPI_CORE_RUN_LOAD_H
#define KOPI_CORE_RUN_LOAD_H

#include "run/model.h"

/* Loads `name`, a GGUF file or else a configured model, on the backend of `target` and with its context, batch and
 * sequences. It stops when `target` is cancelled. Errors as kopi_model_load. */
kopi_status kopi__load_draft(const kopi_model *target, const char *name, kopi_progress_fn progress, void *ctx,
                             kopi_model **out, kopi_error *err);

/* Path and SHA-256 (or NULL) of that name. */
void kopi__draft_file(const kopi_config *cfg, const char *name, const char **path, const char **sha256);

#endif
