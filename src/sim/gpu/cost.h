/* What cost.c, cost_loop.c, cost_product.c and cost_conv.c share. */
#ifndef WEFT_SIM_COST_GPU_H
#define WEFT_SIM_COST_GPU_H

#include "sim/hlo/linalg.h"
#include "sim/schedule/schedule.h"

/* What an SM makes of numbers of one type. */
typedef struct GpuUnit {
  double rate;                    /* FLOP/s that it reaches */
  double load;                    /* bytes/s on their way to it */
  double step_s;                  /* the shortest step */
  double fill_s, wave_s, split_s; /* once, for each wave, to add up shares of a sum */
  double sums;                    /* bytes/s at which these are added up */
  double even; /* of the last wave's idle time that is not lost: SMs share what is left
                                     (stream-K), and clocks rise while some idle */
  double heat,
      power;     /* slower by these shares in kernels, in programs that last: power is limited */
  double busy_s; /* of the whole program's products */
  bool matrix;
} GpuUnit;

/* What a product or convolution takes. */
typedef struct GpuProduct {
  double s;            /* its arithmetic */
  double overlap;      /* how well arithmetic and transfers overlap: an exponent */
  double stream;       /* of memory's bandwidth that its operands reach */
  double peak;         /* of the units that it runs on */
  double moved;        /* of its operands' and results' bytes */
  double beside_s;     /* kernels that pad or turn operands and results */
  double beside_bytes; /* what those move */
} GpuProduct;

/* FLOP/s of one device on numbers of that type; matrix: on matrix units. passes: see HConv. */
double gpu_peak(const Chip *c, DType a, int passes, bool *matrix);
GpuUnit gpu_unit(const Chip *c, DType dt, int passes, double *peak);
GpuProduct gpu_product_of(const Chip *c); /* nothing yet, moved once */
/* What products run on in the vendor's library; *product: its peak, overlap and stream. */
GpuUnit gpu_library(const Chip *c, DType dt, int passes, GpuProduct *product);
/* Seconds of all of it; data: of its operands and result at memory's full bandwidth. */
double gpu_product_time(const Chip *c, const GpuProduct *g, double data);
/* Seconds of a product of k terms of `size` bytes: the best over tiles and shares of the sum. */
double gpu_waves_s(const Chip *c, const GpuUnit *u, double batch, double m, double n, double k,
                   double size);
/* The same unit where rows are not aligned to 16 bytes, by the library's kernels for such. */
void gpu_unaligned(const Chip *c, GpuUnit *u);
GpuProduct gpu_product(const Schedule *p, const HNode *n);
GpuProduct gpu_conv(const Schedule *p, const HNode *n);
double gpu_winograd(const Chip *c,
                    const HNode *n); /* times less arithmetic by Winograd's algorithm; else 1 */
/* Seconds of a factorisation, solve or the like, beside the matrices' way from and to memory. */
double gpu_linalg_s(const Chip *c, const Linalg *a);

/* Seconds of the vector units for a kernel without products, bytes being what it moves at that
 * bandwidth; *after: of kernels that add up what its blocks have. */
double gpu_vector_s(const Schedule *p, const Kernel *k, double bytes, double bandwidth,
                    double *after);

/* Of an operation that XLA makes of several kernels, what these take beside the one; 0: of others. */
double gpu_made_s(const Schedule *p, const HNode *n, double bandwidth);
bool gpu_sorted(const HNode *n); /* a top-k that sorts whole rows */

#endif
