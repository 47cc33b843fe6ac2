/* conv_lanes' inner loops with AVX-512. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"
#include "dev/cpu/conv/conv_lanes.h"

#define PLACES 8
#define TAPS 12
#include "dev/cpu/conv/conv_lanes_tile.h"

const LanesKernels lanes_avx512 = {results, weights};
#endif
