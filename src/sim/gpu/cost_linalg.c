/* Dense linear algebra on a GPU, as cuSOLVER and cuBLAS do it: panels of columns, each a chain of short steps that wait for each
 * other, then products that bring the rest of the matrix up to date at what the vector units reach in full precision. Reductions
 * to tridiagonal, bidiagonal and Hessenberg form read the rest of the matrix once for every column. Small matrices have a block
 * of threads each and run side by side; of large ones the library takes one after the other. */
#include <math.h>

#include "sim/gpu/cost.h"
#include "sim/gpu/gpu.h"
#include "sim/hlo/linalg.h"

/* What a column of a panel takes beside memory and arithmetic, and kernels that a column, or a panel, is made of. */
typedef struct Steps {
  const char *column_s;
  double launches_column, launches_panel;
} Steps;
static const Steps steps[] = {[LINALG_CHOLESKY] = {"fit.column_cholesky", 0, 3},
                              [LINALG_SOLVE] = {"fit.column_solve", 0, 2},
                              [LINALG_LU] = {"fit.column_lu", 0, 5},
                              [LINALG_QR] = {"fit.column_qr", 0, 5},
                              [LINALG_Q] = {"fit.column_q", 0, 4},
                              [LINALG_EIGH] = {"fit.column_eigh", 6, 8},
                              [LINALG_SVD] = {"fit.column_svd", 12, 8},
                              [LINALG_EIG] = {"fit.column_eig", 8, 8},
                              [LINALG_REDUCE] = {"fit.column_reduce", 6, 4},
                              [LINALG_BANDED] = {"fit.column_banded", 0, 1}};
#define PANEL 128 /* columns */
#define BESIDE 4  /* small matrices that an SM works on at once */

/* Does a block of threads hold one of the matrices? */
static bool small(const Chip *c, const Linalg *a) {
  double bytes = a->rows * (a->cols + a->right) * dtype_bits(a->type) / 8;
  return bytes <= chip_num(c, "smem_per_sm", 96 << 10) && a->kind != LINALG_EIG;
}

double gpu_linalg_s(const Chip *c, const Linalg *a) {
  bool matrix, wide = a->type == DT_F64 || a->type == DT_C128;
  double sms = chip_num(c, "sms", 80) / c->devices_per_chip;
  double launch = gpu_rate(c, "fit.launch"), panels = ceil(a->chain / PANEL);
  double peak =
      wide ? gpu_peak(c, DT_F64, 1, &matrix) : chip_num(c, "peak_fp32", 1e12) / c->devices_per_chip;
  double arithmetic = a->flops / (peak * gpu_rate(c, "fit.fp32"));
  const Steps *s = &steps[a->kind];
  double column = gpu_rate(c, s->column_s);
  double memory = a->batch * a->streamed / (c->hbm_bandwidth * gpu_rate(c, "fit.stream"));
  if (small(c, a)) {
    double waves = ceil(a->batch / (sms * BESIDE));
    return arithmetic + waves * a->chain * column * gpu_rate(c, "fit.column_small") +
           launch * s->launches_panel;
  }
  column += s->launches_column * launch;
  return arithmetic + memory + a->batch * (a->chain * column + panels * s->launches_panel * launch);
}
