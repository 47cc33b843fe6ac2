/* dev/cpu/gemm: c[m, n] = sum_k a[m, k] b[k, n] in f32, for operands with any strides.
 *
 * The scheme is that of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication,
 * ACM TOMS 34, 2008): operands are copied into panels that the innermost kernel, mr rows by two
 * vectors of columns in registers, reads in order. The copy makes transposed operands as good as
 * straight ones and widens bf16 and f16 on the way.
 *
 * The operand with fewer elements is packed ahead, once, by all threads; the other one by each task
 * in groups that stay in the core's cache. A product is cut into tiles by size only, and k into
 * blocks that are added up in order: results do not depend on threads. */
#ifndef WEFT_DEV_CPU_GEMM_H
#define WEFT_DEV_CPU_GEMM_H

#include "base/base.h"

/* c[0 .. mr)[0 .. vectors) (+)= sum over k of a[k][mr] b[k][vectors] */
typedef void (*GemmKernelFn)(int64_t k, const float *a, const float *b, float *c, int64_t ldc,
                             bool add);
#define GEMM_MAX_MR 12
typedef struct GemmKernels {
  int mr, lanes;
  GemmKernelFn fn[GEMM_MAX_MR][2]; /* [rows - 1][vectors - 1] */
} GemmKernels;
extern const GemmKernels gemm_avx2, gemm_avx512;

/* The widest that this host can run (jit_vector_bits); NULL: none. */
const GemmKernels *gemm_kernels(void);

typedef struct Gemm {
  const GemmKernels *kern;
  int64_t m, n, k;
  DType in, out;            /* f32, bf16, f16 */
  int64_t kc;               /* block of k */
  int64_t panels;           /* of rows: */
  int64_t thin, thick;      /* thin rows each, the first `thick` panels one more */
  bool a_ahead;             /* which side is packed ahead */
  int64_t tile_m, tile_n;   /* panels, columns */
  int64_t tiles_m, tiles_n; /* tiles = tiles_m * tiles_n */
} Gemm;

typedef struct GemmArgs {
  const void *a, *b;                     /* element (i, p) of a at i * a_row + p * a_k, .. */
  int64_t a_row, a_k, b_col, b_k, c_row; /* elements */
  void *c;
} GemmArgs;

typedef enum GemmAhead { GEMM_SMALLER, GEMM_A, GEMM_B } GemmAhead; /* what is packed ahead */
/* batch: how many such products there are; with enough of them one is not cut. */
void gemm_plan(Gemm *g, int64_t m, int64_t n, int64_t k, DType in, DType out, int64_t batch,
               GemmAhead ahead);
int64_t gemm_ahead_floats(const Gemm *g); /* memory for the side packed ahead */
int64_t gemm_ahead_parts(const Gemm *g);  /* it is packed in so many independent parts */
void gemm_ahead(const Gemm *g, const GemmArgs *x, float *ahead, int64_t begin, int64_t end);
int64_t gemm_scratch_floats(const Gemm *g);
void gemm_tile(const Gemm *g, const GemmArgs *x, const float *ahead, int64_t tile, float *scratch);

/* Copies w rows or columns, `step` elements apart, of k elements, k_step apart, to out[k][width],
 * zero from w on; one of the steps may be anything. Nothing beyond out[k * width) is written. */
void gemm_pack(DType t, const void *in, int64_t step, int64_t k_step, int w, int width, int64_t k,
               float *out);

#endif
