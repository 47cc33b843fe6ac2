/* linalg: what factorisations, triangular solves, eigenvalues and custom calls have to do, from the operation alone: their
 * arithmetic and the steps in it that wait for each other. What that takes is each chip's (sim/gpu, sim/tpu). Private to src/sim. */
#ifndef WEFT_SIM_HLO_LINALG_H
#define WEFT_SIM_HLO_LINALG_H

#include "sim/hlo/hlo.h"

typedef enum LinalgKind {
  LINALG_CHOLESKY,
  LINALG_SOLVE,  /* by a triangular matrix */
  LINALG_LU,     /* with pivots */
  LINALG_QR,     /* Householder's reflectors */
  LINALG_Q,      /* the matrix that reflectors stand for, or its product with another */
  LINALG_EIGH,   /* of a symmetric matrix: made tridiagonal first */
  LINALG_SVD,    /* made bidiagonal first */
  LINALG_EIG,    /* of any square matrix: Hessenberg's form, then QR steps */
  LINALG_REDUCE, /* to that form alone */
  LINALG_BANDED, /* a tridiagonal solve */
} LinalgKind;

typedef struct Linalg {
  LinalgKind kind;
  DType type;
  double batch, rows, cols; /* matrices and their sides */
  double right;             /* columns of a solve's right side */
  double flops;             /* of all matrices; a complex multiplication and addition is four */
  double chain;             /* columns that are done one after the other, of one matrix */
  double streamed; /* bytes that products of a matrix with one vector read, of one matrix */
} Linalg;

/* False: the node is none of these. Custom calls are known by the names of LAPACK's routines in them (lapack_*, cusolver_*,
 * cublas_*, hipsolver_*) and by those that JAX has for TPUs. */
bool hlo_linalg(const HNode *n, Linalg *out);

/* What a custom call says of itself: Pallas' cost_estimate in backend_config. */
typedef struct CallCost {
  double flops, bytes, transcendentals;
} CallCost;
bool hlo_call_cost(const HNode *n, CallCost *out);
/* A custom call of which neither its name nor its text says what it does. */
bool hlo_unknown_call(const HNode *n);

#endif
