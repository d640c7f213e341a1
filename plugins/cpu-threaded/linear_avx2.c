/* The kernels of level avx2. */
#include "simd_avx2.h"

#include "linear_run.h"
#include "quantize_tile.h"

#include "linear_table.h"
