/* core/gguf/value.h - the types of metadata values. [any] */
#ifndef KOPI_CORE_GGUF_VALUE_H
#define KOPI_CORE_GGUF_VALUE_H

#include <stdint.h>

/* Bytes of one value of a scalar type; 0 for strings, arrays and unknown types. */
uint32_t kopi__gguf_type_size(uint32_t type);

#endif
