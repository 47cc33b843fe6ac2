/* Dense linear algebra on a GPU, as cuSOLVER and cuBLAS do it: panels of columns, each a chain of short steps that wait for each
 * other, then products that bring the rest of the matrix up to date at what the vector units reach in full precision. Reductions
 * to tridiagonal, bidiagonal and Hessenberg form read the rest of the matrix once for every column. Small matrices have a block
 * of threads each and run side by side; of large ones the library takes one after the other. */
#include <math.h>

#include "sim/gpu/cost.h"
#include "sim/hlo/linalg.h"

/* Seconds a column of a panel takes, and kernels that a column, or a panel, is made of. Set so that Cholesky, LU and QR of 4096 x
 * 4096 in f32 take on an A100 what published runs of cuSOLVER take, about 5, 11 and 17 ms (recalled). */
typedef struct Steps {
  double column_s, launches_column, launches_panel;
} Steps;
static const Steps steps[] = {
    [LINALG_CHOLESKY] = {0.6e-6, 0, 3}, [LINALG_SOLVE] = {0.15e-6, 0, 2},
    [LINALG_LU] = {1.5e-6, 0, 5},       [LINALG_QR] = {2.5e-6, 0, 5},
    [LINALG_Q] = {0.3e-6, 0, 4},        [LINALG_EIGH] = {1e-6, 6, 8},
    [LINALG_SVD] = {2e-6, 12, 8},       [LINALG_EIG] = {20e-6, 8, 8},
    [LINALG_REDUCE] = {1e-6, 6, 4},     [LINALG_BANDED] = {0.02e-6, 0, 1}};
#define PANEL 128      /* columns */
#define SMALL_STEP 0.4 /* of a column's time where all of the matrix lies in shared memory */
#define BESIDE 4       /* small matrices that an SM works on at once */

/* Does a block of threads hold one of the matrices? */
static bool small(const Chip *c, const Linalg *a) {
  double bytes = a->rows * (a->cols + a->right) * dtype_bits(a->type) / 8;
  return bytes <= chip_num(c, "smem_per_sm", 96 << 10) && a->kind != LINALG_EIG;
}

double gpu_linalg_s(const Chip *c, const Linalg *a) {
  bool matrix, wide = a->type == DT_F64 || a->type == DT_C128;
  double sms = chip_num(c, "sms", 80) / c->devices_per_chip;
  double launch = chip_num(c, "fit.launch", 2.5e-6), panels = ceil(a->chain / PANEL);
  double peak =
      wide ? gpu_peak(c, DT_F64, 1, &matrix) : chip_num(c, "peak_fp32", 1e12) / c->devices_per_chip;
  double arithmetic = a->flops / (peak * chip_num(c, "fit.fp32", 0.75));
  const Steps *s = &steps[a->kind];
  double memory = a->batch * a->streamed / (c->hbm_bandwidth * chip_num(c, "fit.stream", 0.85));
  if (small(c, a)) {
    double waves = ceil(a->batch / (sms * BESIDE));
    return arithmetic + waves * a->chain * s->column_s * SMALL_STEP + launch * s->launches_panel;
  }
  double column = s->column_s + s->launches_column * launch;
  return arithmetic + memory + a->batch * (a->chain * column + panels * s->launches_panel * launch);
}
