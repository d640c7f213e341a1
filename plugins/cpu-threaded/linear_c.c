/* The kernels of level c. */
#include "simd_c.h"

#include "linear_run.h"
#include "quantize_tile.h"

#include "linear_table.h"
