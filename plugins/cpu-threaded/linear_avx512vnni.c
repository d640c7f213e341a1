/* The kernels of level avx512vnni. */
#include "simd_avx512vnni.h"

#include "linear_run.h"
#include "quantize_tile.h"

#include "linear_table.h"
