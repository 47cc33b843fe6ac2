/* dev/cpu/runs: products of f32 whose rows are read where they are: c[i, j] = sum over r, p of
 * from[r][i][p] * b[r, p, j]. A row is `runs` runs of k elements that may lie anywhere, such as the
 * pixels under a window, and its results too. The columns, few beside the rows, are packed once (or
 * once a thread, where they stay in its cache), into panels that the innermost kernel, six rows by
 * some vectors in registers, reads in order: nothing else is copied. Tiles follow from the sizes,
 * blocks of the runs are added up in order: results do not depend on threads. */
#ifndef WEFT_DEV_CPU_RUNS_H
#define WEFT_DEV_CPU_RUNS_H

#include "base/base.h"

#define RUNS_ROWS 6
#define RUNS_VECTORS 4

/* Rows [0, mr) of vectors [0, nv) of columns, the last one of `last` columns; from[r * pitch + i] +
 * p0 is run r of row i, to[i] + column its results. */
typedef struct RunsBlock {
  int64_t runs, pitch, p0, k, column, last;
  const float *zeros; /* runs that are here in all rows are passed over; NULL: there are none */
  bool add;
  bool ask;       /* for the next RUNS_ROWS rows, line by line */
  int64_t b_step; /* packing kernels read columns where they are, a term so many after the other, */
  float *to_pack; /* and write them here, as all others read them */
} RunsBlock;
typedef void (*RunsFn)(const RunsBlock *x, const float *const *from, const float *b,
                       float *const *to);

/* Rows that are a step apart, [0, mr) of them: element e of row i at from[at[e] + i * step], its
 * results at to[i * to_step]. */
typedef struct RunsSteps {
  int64_t elements, step, to_step, last;
  const int64_t *at;
} RunsSteps;
typedef void (*RunsStepsFn)(const RunsSteps *x, const float *from, const float *b, float *to);

/* The other way round, gradients of the columns: w[e][j] += sum over r, p of x[r * x_row + p * x_step
 * + e] * y[r * y_row + p * y_step + j], for ne elements e and nv vectors of j, the last one of `last`
 * columns (w has room for a whole one). */
typedef struct RunsSums {
  int64_t rows, x_row, y_row, places, x_step, y_step, w_step, last;
} RunsSums;
typedef void (*RunsSumsFn)(const RunsSums *s, const float *x, const float *y, float *w);

#define RUNS_MOST 24 /* sums in registers; half as many with AVX2 */
#define RUNS_STEPS 12

typedef struct RunsKernels {
  int lanes, vectors, most;                    /* most: sums in registers */
  RunsFn fn[RUNS_VECTORS][RUNS_ROWS];          /* [nv - 1][mr - 1] */
  RunsFn packing[RUNS_VECTORS];                /* [nv - 1], RUNS_ROWS rows of one run */
  RunsStepsFn steps[RUNS_VECTORS][RUNS_STEPS]; /* [nv - 1][mr - 1], nv * mr <= most */
  RunsSumsFn sums[RUNS_VECTORS][RUNS_MOST];    /* [nv - 1][ne - 1], nv * ne <= most */
} RunsKernels;
extern const RunsKernels runs_avx2, runs_avx512;

/* For products of n columns: the widest that this host can run and that are not mostly empty. NULL:
 * none. */
const RunsKernels *runs_kernels(int64_t n);

typedef struct Runs {
  int64_t m, n, runs, k;
  int64_t
      groups; /* products of the same rows: group g has elements g * k on of each run, results g * n on */
  /* Run r of row `row` + i to from[r * pitch + i], where its results begin to to[i], for i < count. */
  void (*rows)(const void *of, int64_t row, int64_t count, int64_t pitch, const float **from,
               float **to);
  const float *(*columns)(const void *of, int64_t group, int64_t run); /* element (r, 0, 0) of b */
  const void *of;
  const float *zeros; /* a run of zeros that stands in for what a row lacks; NULL: nothing does */
  int64_t b_k, b_col;
} Runs;

int64_t runs_floats(const Runs *x); /* of packed columns */
/* All of it, on the pool. prepacked: memory for packed columns, NULL: of our own; fresh: it is not filled
 * yet. false: no memory. */
bool runs_run(const Runs *x, float *prepacked, bool fresh);

#endif
