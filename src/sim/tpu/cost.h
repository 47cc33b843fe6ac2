/* tpu: the parts of the cost model of TPUs. Private to src/sim/cost. */
#ifndef WEFT_SIM_COST_TPU_H
#define WEFT_SIM_COST_TPU_H

#include "sim/hlo/linalg.h"
#include "sim/schedule/schedule.h"

/* cost_parts.c */
int tpu_width(const HValue *v);
double tpu_wide(const HValue *v);
double tpu_base_bytes(const HValue *v);
double tpu_read_cost(const CostParams *params, const Rates *at, HValue *v);
double tpu_pack_cost(const Rates *at, const HValue *v);
double tpu_write_cost(const CostParams *params, const Rates *at, const HValue *v);
double tpu_vector_work(const CostParams *params, const Kernel *k, double *before);
double tpu_turned_rows(const Kernel *k);
double tpu_spread_rows(const Kernel *k);
bool tpu_written_into(const Kernel *k, const HValue *v);
double tpu_written_part(const HNode *r);
double tpu_packed_twice(const CostParams *params, const Rates *at, const Kernel *k);
/* tiling.c */
typedef struct ProductShape { /* a product in the terms of the params */
  double m, n, k, batch;      /* rows/8, lanes/128, contracted lanes/128, products */
  double passes;              /* of the array over the operands' digits */
  double k_splits;            /* most parts that k may be cut into */
  double base;                /* cycles to start; less when nothing comes from HBM */
  double wait;                /* cycles in each window, for transfers beyond the first */
  double la, lb, le, wo;      /* cycles to move: lhs, rhs, epilogue inputs, results */
  double ba, bb, be, bo;      /* bytes in VMEM windows of the same */
  double share;               /* of the array's time that adding takes where arrays share columns */
  double load;      /* cycles to load a tile of weights: the least that streaming past it takes */
  double vin;       /* cycles to make operands of what is read */
  double vector;    /* cycles of the vector unit on the result, and beside the array on operands */
  double sums;      /* of it, to add up what tiles of weights make, where it does anything else */
  double out_tiles; /* of the sums, in f32 */
  double
      whole_parts; /* parts of k up to which no pixels are cut apart: of the batch; 0: k has none */
  double wide[2],
      halo[2]; /* pixels of an image that are contracted, by sides, and those that a part takes more */
  bool image_right; /* the image is the right operand */
  bool halves;      /* columns of 128 fill half of an array of 256 */
} ProductShape;
/* Cycles of the kernel in the windows that serve it best; how many they are, and the cycles in which
 * they compute. */
double tpu_tiling(const CostParams *params, const ProductShape *s, double *array, int *windows);
/* cost_linalg.c: cycles of a factorisation, solve or the like, beside the matrices' way from and to memory */
double tpu_linalg_cycles(const Chip *chip, const CostParams *params, const Linalg *a);
/* cost_product.c */
void tpu_product(Schedule *p, Kernel *k);
/* cost_scan.c */
void tpu_scan(Schedule *p, Kernel *k);
/* cost_loop.c */
void tpu_loop(Schedule *p, Kernel *k);
void tpu_update(Schedule *p, Kernel *k);

#endif
