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
#include "dev/cpu/dot/gemm_small.h"

/* clang-format off */
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6) KERNELS(7) KERNELS(8)
KERNELS(9) KERNELS(10) KERNELS(11) KERNELS(12)
TAKE(1) TAKE(2) TAKE(3) TAKE(4) TAKE(5) TAKE(6) TAKE(7) TAKE(8) TAKE(9) TAKE(10) TAKE(11) TAKE(12)

const GemmKernels gemm_avx512 = {.mr = MR, .lanes = LANES, .per = 1, .panel = SMALL_LIST,
  .few = FEW, .along = FEW_LIST(along), .dots = FEW_LIST(dots), .fn = {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(10)
  ROW(11) ROW(12)
}, .takes = DT_F32, .take = {
  TAKE_ROW(1) TAKE_ROW(2) TAKE_ROW(3) TAKE_ROW(4) TAKE_ROW(5) TAKE_ROW(6) TAKE_ROW(7) TAKE_ROW(8)
  TAKE_ROW(9) TAKE_ROW(10) TAKE_ROW(11) TAKE_ROW(12)
}};
/* clang-format on */
#endif
