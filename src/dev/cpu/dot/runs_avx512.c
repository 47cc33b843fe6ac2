/* runs' kernels with AVX-512: 6 rows by 64 columns, 24 sums in 32 registers. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"

#define LANES 16
#define FN AVX512
#define V V16
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_ADD V16_ADD
#define V_FMA V16_FMA
#define M V16Mask
#define V_MASK V16_MASK
#define V_LOAD_MASK V16_LOAD_MASK
#define V_STORE_MASK V16_STORE_MASK
#include "dev/cpu/dot/runs_tile.h"

RUNS_OF(1)
RUNS_OF(2)
RUNS_OF(3)
RUNS_OF(4)

const RunsKernels runs_avx512 = {
    LANES, 4, {RUNS_LIST(1), RUNS_LIST(2), RUNS_LIST(3), RUNS_LIST(4)}};
#endif
