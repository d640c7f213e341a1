/* kopi/abi.h - versions, status codes and size macros of kopi's C interfaces.
 * Self-contained; C99 and C++17. Everything here is append-only: see docs/abi-changelog.md. */
#ifndef KOPI_ABI_H
#define KOPI_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define KOPI_BEGIN_DECLS extern "C" {
#define KOPI_END_DECLS }
#else
#define KOPI_BEGIN_DECLS
#define KOPI_END_DECLS
#endif

#define KOPI_EXPORT __attribute__((visibility("default")))

/* The backend ABI is 0.9: while the major is 0 in spirit, host and plugin minors must match exactly (the refusal
 * names both). With 1.0 the rule becomes "min_host_minor of the plugin <= minor of the host". */
#define KOPI_ABI_MINOR 9u
#define KOPI_ABI_VERSION_STRING "0.9"

/* Field f of *p was filled by the giver: p->struct_size says how many bytes the giver knew. */
#define KOPI_HAS(p, f) ((p)->struct_size >= (size_t)((const char *)(&(p)->f + 1) - (const char *)(p)))
/* End offset of field f: the size of a struct of type T that stops after f. */
#define KOPI_END_OF(T, f) (offsetof(T, f) + sizeof(((T *)0)->f))

/* Result of every fallible call: KOPI_OK or one of the negative codes. Numbers are fixed for ever. */
typedef int32_t kopi_status;
enum {
    KOPI_OK = 0,
    KOPI_E_UNSUPPORTED = -1,  /* the callee does not do this (may fall back) */
    KOPI_E_NOMEM = -2,        /* memory could not be had */
    KOPI_E_INVALID = -3,      /* an argument is wrong: a usage error */
    KOPI_E_CANCELLED = -4,    /* the caller asked to stop */
    KOPI_E_DEVICE_LOST = -5,  /* the backend is dead, the process is not */
    KOPI_E_IO = -6,           /* a read or write failed */
    KOPI_E_ABI = -7,          /* a plugin and the host do not fit */
    KOPI_E_INTERNAL = -8,     /* a bug in the callee */
    KOPI_E_RANGE = -9,        /* past the end: context full, no such device */
    KOPI_E_NONFINITE = -10,   /* a logit is NaN or infinite */
    KOPI_E_CONFIG = -11,      /* the configuration is wrong */
    KOPI_E_MODEL = -12,       /* the model file is wrong or not supported */
    KOPI_E_BACKEND = -13      /* the backend cannot be found, loaded or used */
};

#endif
