/* gemm's kernels with AVX-512: 12 rows by 32 columns, 24 sums in 32 registers. */
#if defined(__x86_64__)
#include "dev/cpu/kernel/avx512.h"

#define LANES 16
#define MR 12
#define V V16
#define FN AVX512
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_ADD V16_ADD
#define V_FMA V16_FMA
#define V_TAKE(p, far, j) V_LOAD((const float *)(const void *)(p) + (j)*LANES)
#define V_BF16 V16_BF16
#define V_F16 V16_F16
#define V_SUM V16_SUM
#define V_SUM4 V16_SUM4
#define V_LAST V16_LAST
#define FEW 4
#define M V16Mask
#define V_MASK V16_MASK
#define V_LOAD_MASK V16_LOAD_MASK
#define V_STORE_MASK V16_STORE_MASK
#include "dev/cpu/dot/gemm_tile.h"
#include "dev/cpu/dot/gemm_few.h"
#define SHORT_REGS 24
#include "dev/cpu/dot/gemm_small.h"

/* clang-format off */
TO_12(KERNELS) TO_12(TAKE)

const GemmKernels gemm_avx512 = {.mr = MR, .lanes = LANES, .per = 1, .fn = {TO_12(ROW)},
  .takes = DT_F32, .take = {TO_12(TAKE_ROW)}, .panel = SMALL_LIST,
  .shorts = SHORT_LIST, .few = FEW,
  .along = FEW_LIST(along), .dots = FEW_LIST(dots)};
/* clang-format on */
#endif
