/* core/base/log.h - log lines to stderr or to the application's callback. [any] */
#ifndef KOPI_CORE_BASE_LOG_H
#define KOPI_CORE_BASE_LOG_H

#include <kopi/kopi.h>

/* One line, no newline at the end. Level: KOPI_LOG_ERROR .. KOPI_LOG_DEBUG (kopi.h). Lines above the current level cost
 * one comparison. Control bytes are replaced as in kopi__fail. */
void kopi__log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
