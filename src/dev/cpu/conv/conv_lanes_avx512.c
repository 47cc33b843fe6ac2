/* conv_lanes' inner loops with AVX-512. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"
#include "dev/cpu/conv/conv_lanes.h"

#define PLACES 8
#define TAPS 12
#include "dev/cpu/conv/conv_lanes_tile.h"

#define S V16
#define S_LANES 16
#define S_ZERO V16_ZERO
#define S_LOAD V16_LOAD
#define S_FMA V16_FMA
#define S_STORE V16_STORE
#define S_STORE_BF16 V16_STORE_BF16
#include "dev/cpu/conv/conv_lanes_slide.h"

const LanesKernels lanes_avx512 = {results, slide, weights};
#endif
