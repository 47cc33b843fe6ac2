/* Dense linear algebra on a TPU, as XLA expands it: blocks of 128 columns, inside a block a loop over its columns whose rounds are a
 * few vector kernels each, then products in full precision (six passes of bf16) that bring the rest up to date. A triangular solve
 * inverts all its diagonal blocks side by side and then goes from block to block. All matrices of a batch go through a loop
 * together. Eigenvalues and singular values are found by polar decompositions (QDWH: Nakatsukasa and Higham 2013), which are
 * products and factorisations and more of them than the textbook counts. */
#include <math.h>

#include "sim/hlo/linalg.h"
#include "sim/tpu/cost.h"

#define BLOCK 128 /* columns */
#define PASSES 6  /* of the array: HIGHEST */

typedef struct Expansion {
  double kernels_column; /* rounds of the inner loops, and kernels in each */
  double kernels_block;  /* products between blocks */
  double more;           /* operations, times those of the textbook */
} Expansion;
static const Expansion expansions[] = {
    [LINALG_CHOLESKY] = {4, 3, 1}, [LINALG_SOLVE] = {2, 2, 1},  [LINALG_LU] = {5, 3, 1},
    [LINALG_QR] = {6, 4, 1.5},     [LINALG_Q] = {1, 4, 1.5},    [LINALG_EIGH] = {40, 30, 3},
    [LINALG_SVD] = {40, 30, 3},    [LINALG_EIG] = {200, 30, 2}, [LINALG_REDUCE] = {8, 4, 1},
    [LINALG_BANDED] = {2, 0, 1}};

double tpu_linalg_cycles(const Chip *chip, const CostParams *params, const Linalg *a) {
  const Expansion *e = &expansions[a->kind];
  double blocks = ceil(a->chain / BLOCK);
  double columns = a->kind == LINALG_SOLVE ? MIN(a->chain, BLOCK) : a->chain;
  double wide = dtype_bits(a->type) > (dtype_is_complex(a->type) ? 64 : 32) ? 4 : 1;
  double passes = hlo_bits(a->type) <= 16 ? 1 : PASSES * wide;
  double products = e->more * a->flops * passes / chip->peak_flops * params->clock;
  double vector = a->batch * a->chain * MIN(a->chain, BLOCK) * a->rows / 1024 * params->lvpu;
  double streamed = a->batch * a->streamed / chip->hbm_bandwidth * params->clock;
  if (a->kind == LINALG_SOLVE || a->kind == LINALG_BANDED) vector = 0;
  return columns * e->kernels_column * params->lbase + blocks * e->kernels_block * params->base +
         products + vector + streamed;
}
