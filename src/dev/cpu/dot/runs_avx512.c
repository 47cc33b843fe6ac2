/* runs' kernels with AVX-512: 6 rows by 64 columns, 24 sums in 32 registers. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"

#define LANES 16
#define AHEAD 8
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

TO_6(RUNS, 1)
TO_6(RUNS, 2)
TO_6(RUNS, 3)
TO_6(RUNS, 4)
PACKING(1)
PACKING(2)
PACKING(3)
PACKING(4)
TO_12(STEPS, 1)
TO_12(STEPS, 2)
TO_8(STEPS, 3)
TO_6(STEPS, 4)
TO_24(SUMS, 1)
TO_12(SUMS, 2)
TO_8(SUMS, 3)
TO_6(SUMS, 4)

const RunsKernels runs_avx512 = {
    LANES,
    4,
    24,
    {{TO_6(RUNS_NAME, 1)}, {TO_6(RUNS_NAME, 2)}, {TO_6(RUNS_NAME, 3)}, {TO_6(RUNS_NAME, 4)}},
    {packing_1, packing_2, packing_3, packing_4},
    {{TO_12(STEPS_NAME, 1)}, {TO_12(STEPS_NAME, 2)}, {TO_8(STEPS_NAME, 3)}, {TO_6(STEPS_NAME, 4)}},
    {{TO_24(SUMS_NAME, 1)}, {TO_12(SUMS_NAME, 2)}, {TO_8(SUMS_NAME, 3)}, {TO_6(SUMS_NAME, 4)}}};
#endif
