/* Rule of pass_simplify for gathers: elements of one dimension at places that are constants are slices side by side, which fuse and
 * of which parts are taken. */
#include "compile/pass/pass_priv.h"

#define MOST_PIECES 4

static bool is_alone(const Op *op, const char *name, int64_t d) {
  const int64_t *v;
  return op_ints(op, name, &v) == 1 && v[0] == d;
}

/* The dimension whose elements are taken, whole otherwise, and that the result has them along; -1: another kind. */
static int dimension_of(const Op *op) {
  const Type *from = op->operands[0]->type, *at = op->operands[1]->type, *to = op_type(op);
  const int64_t *v;
  if (op_ints(op, "start_index_map", &v) != 1) return -1;
  int d = (int)v[0];
  if (op_ints(op, "operand_batching_dims", &v) > 0) return -1;
  int64_t vector = op_int(op, "index_vector_dim", 0);
  if (!is_alone(op, "collapsed_slice_dims", d) || to->rank != from->rank || from->rank > B_MAX_RANK)
    return -1;
  if (at->rank != (vector < at->rank ? 2 : 1)) return -1;
  int n = op_ints(op, "slice_sizes", &v);
  for (int i = 0; i < n; i++)
    if (v[i] != (i == d ? 1 : from->dims[i])) return -1;
  n = op_ints(op, "offset_dims", &v);
  for (int i = 0; i < n; i++)
    if (v[i] != i + (i >= d)) return -1;
  return d;
}

Value *gather_as_slices(Build *b, const Op *op) {
  Value *x = op->operands[0], *pieces[MOST_PIECES];
  const Type *from = x->type;
  const Tensor *at = value_constant(op->operands[1]);
  if (!at || !at->data || at->count == 0 || at->count > SPLAT_MAX || !type_is_static(from))
    return NULL;
  int d = dimension_of(op), n = 0;
  if (d < 0 || from->dims[d] == 0) return NULL;
  int64_t first[MOST_PIECES], end[MOST_PIECES], one = dtype_bytes(at->dtype);
  for (int64_t i = 0; i < at->count; i++) {
    int64_t k = elem_get_i64(at->dtype, (const char *)at->data + (at->splat ? 0 : i * one));
    k = MAX(0, MIN(k, from->dims[d] - 1)); /* as a gather has it */
    if (n && end[n - 1] == k) {
      end[n - 1]++;
      continue;
    }
    if (n == MOST_PIECES) return NULL;
    first[n] = k, end[n++] = k + 1;
  }
  for (int i = 0; i < n; i++) pieces[i] = b_slice_dim(b, x, d, first[i], end[i]);
  return n == 1 ? pieces[0] : b_concat(b, n, pieces, d);
}
