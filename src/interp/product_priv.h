/* What dot_general, einsum and convolution share: sums of products over tables of places.
 *
 * All of them are out[b,m,n] = sum over k of lhs[b,m,k] * rhs[b,n,k], where b, m, n, k stand for
 * groups of dimensions and an element's place is the sum of one table entry for each of its three
 * groups. Both sides are converted to the arithmetic in use (float, double, integers modulo 2^64,
 * complex), rounded to the operand's precision type if the algorithm has one, and multiplied row by
 * row; k runs in row-major order. The sum is rounded to the result type once.
 *
 *   arithmetic   f32 for f32 and everything narrower, f64, complex in its own precision, int64_t
 *   components   an algorithm such as BF16_BF16_F32_X3 splits an operand into a sum of rounded
 *                parts; the partial products are added to the same f32 sums, the smallest first
 */
#ifndef WEFT_INTERP_PRODUCT_PRIV_H
#define WEFT_INTERP_PRODUCT_PRIV_H

#include "interp/interp_priv.h"

typedef enum Arith { AR_F32, AR_F64, AR_INT, AR_C64, AR_C128 } Arith;

/* The arithmetic of a result of this type, sums held in `acc` (DT_INVALID: as usual). */
Arith arith_for(DType out, DType acc);
size_t arith_bytes(Arith ar);

typedef struct Side {
  const Tensor *t;
  DType as; /* DT_INVALID: as it is */
  int part; /* component */
} Side;

/* Element `at` of s becomes element i of `to`, in the arithmetic. */
void arith_load(Arith ar, const Side *s, int64_t at, void *to, int64_t i);

#define MAX_PARTS 9 /* three components a side */

/* One product: rows of the left side are packed block by block as they are needed. */
typedef struct Product {
  Arith ar;
  int64_t m, n, k;
  int n_parts; /* pairs of components; rows and right sides of each */
  Side lhs[MAX_PARTS];
  void *rhs[MAX_PARTS]; /* k x n, packed; the caller's */
  /* Rows [first, first + count) of the left side into a, count x k. */
  void (*pack)(const struct Product *p, int part, int64_t first, int64_t count, void *a);
  void *arg; /* of pack */
  Tensor *out;
  const int64_t *out_m, *out_n; /* places */
  int64_t out_b;
} Product;

void product_run(Product *p); /* on all threads */

/* Dimensions that belong together, with their steps in the three tensors (0 where they do not
 * occur). */
typedef struct Group {
  int n;
  int64_t size[MAX_RANK * 2], lhs[MAX_RANK * 2], rhs[MAX_RANK * 2], out[MAX_RANK * 2];
} Group;

void group_add(Group *g, int64_t size, int64_t lhs, int64_t rhs, int64_t out);

/* Places of all of the group's elements, in row-major order; `step` is one of its members. The
 * caller frees them. */
int64_t *group_table(const Group *g, const int64_t *step, int64_t *count);

#endif
