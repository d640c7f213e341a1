/* plugins/cpu-threaded/level.h - levels of the instruction set, chosen once at create and forced lower by the option
 * `isa`. */
#ifndef KT_LEVEL_H
#define KT_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

enum kt_level { KT_C = 0, KT_AVX2 = 1, KT_AVX512VNNI = 2, KT_N_LEVELS };

/* "c", "avx2", "avx512vnni" */
const char *kt_level_name(enum kt_level level);
/* The highest level that this processor has and the operating system saves the registers of. [any] */
enum kt_level kt_level_detect(void);
/* Option `isa`: NULL or "auto" is the level `have`; a name above `have` or an unknown one is refused: false, and the
 * reason in err. [any] */
bool kt_level_parse(const char *text, enum kt_level have, enum kt_level *out, char *err, size_t err_size);

#endif
