/* Which products a TPU does not give to its matrix unit: libtpu writes them as multiplications and sums of f32.
 * Asked of libtpu 0.0.51 for v2, v3, v4, v5e, v5p, v6e and TPU7x with some 300 shapes of f32 each
 * (docs/tpu-compiler.md).
 *
 *   nothing to add up                      a multiplication, everywhere
 *   two vectors                            everywhere
 *   a matrix and a vector                  up to v6e; of several side by side those with a dimension of one
 *                                          or without 64 rows and columns; on TPU7x several that lie in
 *                                          lanes side by side
 */
#include <math.h>

#include "compile/pass/numerics.h"
#include "ir/build.h"

#define WIDE \
  64 /* elements of one dimension: matrices side by side that are products with a vector each */

/* An operand by the roles of its dimensions: the products and the largest of each. */
typedef struct Side {
  const Type *t;
  char role[B_MAX_RANK]; /* 'b' batch, 'k' contracted, 'f' free */
  int64_t free, contracted, batch, most_free, most_contracted;
  bool has_one; /* a dimension of one */
} Side;

static void mark(Side *s, const Op *op, const char *attr, char role) {
  const int64_t *v;
  int n = op_ints(op, attr, &v);
  for (int i = 0; i < n; i++) s->role[v[i]] = role;
}

static Side side_of(const Op *op, int k) {
  Side s = {.t = op->operands[k]->type,
            .free = 1,
            .contracted = 1,
            .batch = 1,
            .most_free = 1,
            .most_contracted = 1};
  memset(s.role, 'f', sizeof s.role);
  if (op->kind == OP_DOT) {
    s.role[k ? 0 : s.t->rank - 1] = 'k';
  } else {
    mark(&s, op, k ? "rhs_batching_dimensions" : "lhs_batching_dimensions", 'b');
    mark(&s, op, k ? "rhs_contracting_dimensions" : "lhs_contracting_dimensions", 'k');
  }
  for (int i = 0; i < s.t->rank; i++) {
    int64_t n = s.t->dims[i];
    s.has_one |= n == 1;
    if (s.role[i] == 'b') s.batch *= n;
    else if (s.role[i] == 'k') s.contracted *= n, s.most_contracted = MAX(s.most_contracted, n);
    else s.free *= n, s.most_free = MAX(s.most_free, n);
  }
  return s;
}

/* The bytes of a tiled array by what is in lanes, 128 of them, and what in sublanes, 8 or fewer. */
static double padded(const Side *s, int lanes, int sublanes) {
  double size = 1;
  for (int i = 0; i < s->t->rank; i++) {
    int64_t n = s->t->dims[i];
    int64_t tile = i == lanes ? 128 : i != sublanes ? 1 : n > 4 ? 8 : n > 2 ? 4 : n;
    size *= (double)((n + tile - 1) / tile * tile);
  }
  return size;
}

/* Does a batch dimension in lanes take less memory than any other? */
static bool batch_in_lanes(const Side *s) {
  double batch = INFINITY, other = INFINITY;
  for (int lanes = 0; lanes < s->t->rank; lanes++)
    for (int sub = 0; sub < s->t->rank; sub++) {
      if (sub == lanes) continue;
      double *least = s->role[lanes] == 'b' ? &batch : &other;
      *least = fmin(*least, padded(s, lanes, sub));
    }
  return batch < other;
}

static bool is_pointwise(const Op *conv) {
  const ConvDims d = b_conv_dims(conv);
  const Type *k = conv->operands[1]->type;
  for (int i = 0; i < d.n; i++)
    if (k->dims[d.k_spatial[i]] != 1) return false;
  return k->dims[d.k_in] == 1 && k->dims[d.k_out] == d.feature_groups && d.batch_groups == 1;
}

bool product_is_on_vector_unit(const Op *op, bool vectors) {
  if (op->operands[0]->type->rank > B_MAX_RANK || op->operands[1]->type->rank > B_MAX_RANK ||
      !type_is_static(op->operands[0]->type) || !type_is_static(op->operands[1]->type))
    return false;
  if (op->kind == OP_CONVOLUTION) return is_pointwise(op);
  const Side a = side_of(op, 0), b = side_of(op, 1);
  if (a.contracted == 1 || (a.free == 1 && b.free == 1)) return true;
  if (a.free != 1 && b.free != 1) return false;
  const Side *matrix = a.free == 1 ? &b : &a;
  if (!vectors) return batch_in_lanes(matrix);
  bool wide = matrix->most_contracted >= WIDE && matrix->most_free >= WIDE;
  return matrix->batch == 1 || a.has_one || b.has_one || !wide;
}
