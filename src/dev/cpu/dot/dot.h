/* dev/cpu, private to products: what a dot_general computes, and the ways to compute it. */
#ifndef WEFT_DEV_CPU_DOT_H
#define WEFT_DEV_CPU_DOT_H

#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/gemm.h"
#include "ir/build.h"

/* BLAS: so many vectors times a matrix are as fast as memory without packing. */
#define DOT_FEW 3

typedef struct
    Pieces { /* an operand whose first contracted dimension does not flatten with the others: */
  bool fits; /* those and its free ones do */
  int64_t count, step, free_stride, k_stride;
} Pieces;

typedef struct Side {            /* of one operand: [batch][free][contracted] */
  int64_t free_stride, k_stride; /* of a copy, when not `direct` */
  bool direct;
  /* Of the copy: batch, free, contracted; where runs are along a free dimension that comes last. */
  int64_t dims[CPU_MAX_RANK], strides[CPU_MAX_RANK];
  int rank;
  Pieces pieces;
} Side;

typedef struct Few { /* rows times a matrix: */
  bool lhs;          /* the lhs has the rows */
  bool dots;         /* the matrix's runs are along k */
  bool packed;       /* rows are copied: widened, or made runs */
  bool pairs;        /* of bf16: gemm_pairs multiplies two elements as they lie */
  bool far;          /* all matrices are more than the second cache holds */
  int64_t few, big;
  int64_t columns, pieces; /* of the matrix, for a task; how many */
  int64_t part, parts;     /* of k */
} Few;

typedef struct SmallRows { /* of a task: panels of `thin` rows, the first `thick` one more */
  int64_t rows, panels, thin, thick;
} SmallRows;
typedef struct Small { /* products that are read where they are: */
  bool pack;           /* the rhs is copied: its columns are no runs, or far apart */
  int64_t b_k, b_step; /* of its rows; of panels of columns */
  int64_t wide;        /* columns of a panel */
  int64_t kc;          /* block of k */
  int64_t near;        /* panels of rows that go together */
  int64_t ask;         /* panels during which the next product's operands are asked for; 0: no */
  int64_t columns;     /* of a task */
  int64_t pieces;      /* tasks of a product: */
  SmallRows rows[2];   /* of all but the last one, of the last one */
} Small;

typedef struct Doubles { /* products of f64: rows and columns of a tile; how many tiles */
  int64_t rows, columns, tiles_m, tiles_n;
} Doubles;

typedef struct Blocks {     /* products whose rows are packed block by block: */
  int64_t kc;               /* block of k */
  int64_t panels, columns;  /* panels of rows, of columns: */
  int64_t tiles_m, tiles_n; /* divided among so many tiles, a task each */
} Blocks;

typedef struct Dot {
  DType in, rhs_in, out, math; /* in: of the lhs */
  int n_batch;
  int64_t batch_dims[CPU_MAX_RANK], lhs_batch[CPU_MAX_RANK], rhs_batch[CPU_MAX_RANK];
  int64_t b, m, n, k;
  Side lhs, rhs;
  bool crowded; /* among other products whose operands drive its own out of the second cache */
  int64_t tiles, tiles_m, tiles_n, tile_m, tile_n; /* for BLAS */
  Few few;
  Small small;
  Amx amx;
  Blocks blocks;
  Doubles doubles;
  Gemm gemm, prepacked[2]; /* prepacked: with the lhs, the rhs packed ahead */
} Dot;

/* Elements of the operands before those of product b. */
void dot_batch_at(const Dot *d, int64_t b, int64_t *lhs, int64_t *rhs);

/* Product b of the batch, of operands that are direct or were made so. */
GemmArgs dot_gemm_args(const Dot *d, const void *lhs, const void *rhs, void *out, int64_t b);

/* Both operands, copied where they are not direct. false: no memory. Freed in any case. */
typedef struct DotOperands {
  const void *at[2];
  void *own[2];
  size_t bytes[2];
} DotOperands;
bool dot_operands(const Dot *d, void *const *in, DotOperands *o);
void dot_operands_free(DotOperands *o);

/* Those of gemm.h: f32, bf16, f16, int8; operands with any strides. */
bool dot_gemm_plan(Dot *d);
Err *dot_gemm_run(void *state, const Op *op, void *const *in, void *const *out);
size_t dot_gemm_prepack_bytes(void *state, unsigned fixed);
Err *dot_gemm_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                            unsigned fixed, void *prepacked, bool fresh);

/* bf16 and int8 where the host has AMX; false: not for this one. */
bool dot_amx_plan(Dot *d);
Err *dot_amx_run(void *state, const Op *op, void *const *in, void *const *out);
size_t dot_amx_prepack_bytes(void *state, unsigned fixed);
Err *dot_amx_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                           unsigned fixed, void *prepacked, bool fresh);

/* f32, bf16 and f16 where one operand has few rows; false: not for this one. */
bool dot_few_plan(Dot *d);
/* Of a planned product in the caches, in nanoseconds of a host of 2023 (fitted to Zen 4, at either
 * width of vectors): to compare with other ways. */
double dot_few_cost(const Dot *d);
Err *dot_few_run(void *state, const Op *op, void *const *in, void *const *out);
size_t dot_few_prepack_bytes(void *state, unsigned fixed);
Err *dot_few_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                           unsigned fixed, void *prepacked, bool fresh);

/* int8 in quads where the lhs has few rows and the rhs runs along k; false: not for this one. */
bool dot_few_quads_plan(Dot *d);
Err *dot_few_quads_run(void *state, const Op *op, void *const *in, void *const *out);

/* f32 where both operands stay in the caches of a core; false: not for this one. */
bool dot_small_plan(Dot *d);
Err *dot_small_run(void *state, const Op *op, void *const *in, void *const *out);
size_t dot_small_prepack_bytes(void *state, unsigned fixed);
Err *dot_small_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                             unsigned fixed, void *prepacked, bool fresh);

/* bf16 in pairs, where the rhs stays in the caches of a core; false: not for this one. */
bool dot_pairs_plan(Dot *d);
Err *dot_pairs_run(void *state, const Op *op, void *const *in, void *const *out);

/* f32 where rows of the lhs are runs, read where they are; false: not for this one. */
bool dot_runs_plan(Dot *d);
Err *dot_runs_run(void *state, const Op *op, void *const *in, void *const *out);
size_t dot_runs_prepack_bytes(void *state, unsigned fixed);
Err *dot_runs_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                            unsigned fixed, void *prepacked, bool fresh);

/* f32 with many rows and columns, on big cores; false: not for this one. */
bool dot_blocks_plan(Dot *d);
Err *dot_blocks_run(void *state, const Op *op, void *const *in, void *const *out);

/* f64 with some rows and columns; false: not for this one. */
bool dot_f64_plan(Dot *d);
Err *dot_f64_run(void *state, const Op *op, void *const *in, void *const *out);

/* f32 with few results of many terms; false: not for this one. */
bool dot_long_plan(Dot *d);
Err *dot_long_run(void *state, const Op *op, void *const *in, void *const *out);

/* f32 whose terms lie in pieces, on big cores: gradients of weights where channels come before pixels;
 * false: not for this one. */
bool dot_pieces_plan(Dot *d);
Err *dot_pieces_run(void *state, const Op *op, void *const *in, void *const *out);

/* Integers and bools of any width. */
Err *dot_int_run(void *state, const Op *op, void *const *in, void *const *out);
bool dot_fits_int16(DType t); /* signed */

/* All floats by BLAS; operands whose rows or columns are runs. */
bool dot_blas_plan(Dot *d);
Err *dot_blas_run(void *state, const Op *op, void *const *in, void *const *out);

#endif
