/* core/text/jinja/json.h - JSON to values. [one thread] */
#ifndef KOPI_CORE_TEXT_JINJA_JSON_H
#define KOPI_CORE_TEXT_JINJA_JSON_H

#include "text/jinja/value.h"
#include <jansson.h>

/* All strings and scalars get the origin. False: stored in j, or the arena stopped. */
bool kopi__jfrom_jansson(struct kopi_jinja *j, const json_t *json, uint8_t origin, struct kopi_jval *out);

#endif
