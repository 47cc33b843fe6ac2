/* kernels: what single kernels take on one chip, each shape asked of sim once. Private to src/plan. */
#ifndef WEFT_PLAN_KERNELS_H
#define WEFT_PLAN_KERNELS_H

#include "chip/chip.h"

typedef struct PlanKernels PlanKernels;
/* power_w, bandwidth: of a variant of the chip; 0: its own. */
PlanKernels *plan_kernels_new(const Chip *chip, double power_w, double bandwidth);
void plan_kernels_free(PlanKernels *k);

/* Seconds of `count` products C[m,n] = A[m,k] B[k,n] in one kernel, bare: without its launch. */
double plan_product_s(PlanKernels *k, DType type, double count, double m, double n, double depth);

typedef struct KernelAttention {
  double heads, kv_heads; /* sequences times heads */
  double queries, keys;   /* of each */
  double dim, value_dim;
  double seen; /* keys that a query sees on average */
  bool unfused;
  double year; /* of the software; 0: today's */
  int ring;    /* ways that queries and keys are cut over */
  DType type;
} KernelAttention;
/* Seconds of attention in one kernel; *backward: of its gradient, which computes the scores again. */
double plan_attention_s(PlanKernels *k, const KernelAttention *a, double *backward);

/* Of the speed that libraries of that year reach, by what later ones do; year 0: 1. */
double plan_library_share(const Chip *chip, double year);

/* Seconds of a kernel that moves so many bytes. */
double plan_pass_s(const PlanKernels *k, double bytes);

#endif
