/* cli/npy.h - a NumPy .npy file of float32 rows, written as they come. */
#ifndef KOPI_CLI_NPY_H
#define KOPI_CLI_NPY_H

#include "outfile.h"
#include <stdint.h>

struct npy { struct outfile out; };

/* All return 0 or an exit code after a message. */
int npy_open(struct npy *n, const char *path, uint64_t rows, uint64_t columns);
int npy_row(struct npy *n, const float *row, uint64_t columns);
int npy_close(struct npy *n, int failed); /* failed: drop what was written */

#endif
