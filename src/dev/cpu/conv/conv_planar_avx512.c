/* conv_planar's inner loops with AVX-512. */
#if defined(__x86_64__)
#include <stdbool.h>

#include "dev/cpu/kernel/avx512.h"
#include "dev/cpu/conv/conv_planar.h"

#define LANES 16
#define V V16
#define FN AVX512
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_FMA V16_FMA
#define V_SUM V16_SUM
#define GROUP_1 8
#define GROUP_2 6
#define GROUP_3 4
#define GROUP_4 4
#include "dev/cpu/conv/conv_planar_tile.h"

const PlanarKernels planar_avx512 = {LANES, results, weights};
#endif
