/* gemm's kernels for pairs of bf16, with AVX512_BF16: each step of k multiplies two elements. Panels
 * hold pairs where the others hold floats; these kernels are those of gemm_tile.h else. */
#if defined(__x86_64__)
#include "dev/cpu/avx512.h"

#define LANES 16
#define MR 12
#define V V16
#define FN AVX512_BF16
#define V_ZERO V16_ZERO
#define V_SET V16_SET
#define V_LOAD V16_LOAD
#define V_STORE V16_STORE
#define V_ADD V16_ADD
#define V_FMA V16_FMA_PAIRS
#include "dev/cpu/gemm_tile.h"

/* clang-format off */
KERNELS(1) KERNELS(2) KERNELS(3) KERNELS(4) KERNELS(5) KERNELS(6) KERNELS(7) KERNELS(8)
KERNELS(9) KERNELS(10) KERNELS(11) KERNELS(12)

const GemmKernels gemm_avx512_bf16 = {.mr = MR, .lanes = LANES, .fn = {
  ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7) ROW(8) ROW(9) ROW(10)
  ROW(11) ROW(12)
}};
/* clang-format on */
#endif
