/* pass_narrow: what is computed of narrower elements and then transposed is computed of them transposed:
 *
 *   transpose((convert(bytes) - mean) * scale)   =   (convert(transpose(bytes)) - mean') * scale'
 *
 * Images read as bytes and wanted as planes of floats are such: a quarter of the memory is moved, and
 * the arithmetic fuses with what follows. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MOST_DEPTH 16
#define LEAST_ELEMENTS 4096
#define SMALL 8 /* times smaller than the result: what is spread costs nothing */

typedef struct Tree {
  Build *b;
  const Type *whole;
  int perm[B_MAX_RANK];
  Value *leaf;   /* the one array of its elements */
  Value *turned; /* that, transposed */
} Tree;

static bool is_spread(const Tree *t, const Value *v) {
  return v->def && v->def->kind == OP_BROADCAST_IN_DIM &&
         type_count(v->def->operands[0]->type) * SMALL <= type_count(t->whole);
}

static bool is_inner(const Tree *t, const Value *v, int depth) {
  const Op *op = v->def;
  if (!op || op->parent != t->b->r || op_info[op->kind].cls != OC_EWISE || op->n_results != 1 ||
      op->n_regions || op->n_operands < 1 || op->n_operands > 4 || depth == MOST_DEPTH ||
      region_uses(t->b->r, v) != 1)
    return false;
  for (int i = 0; i < op->n_operands; i++) {
    const Type *in = op->operands[i]->type;
    if (!type_is_static(in) || in->quant || in->rank != t->whole->rank) return false;
  }
  return true;
}

/* Is v element-wise arithmetic on one array of narrower elements, and on what is spread? */
static bool looks_down(Tree *t, Value *v, int depth) {
  if (value_splat(v) || is_spread(t, v)) return true;
  if (is_inner(t, v, depth)) {
    bool all = true;
    for (int i = 0; all && i < v->def->n_operands; i++)
      all = looks_down(t, v->def->operands[i], depth + 1);
    return all;
  }
  if (t->leaf && t->leaf != v) return false;
  t->leaf = v;
  return dtype_bits(v->type->dtype) < dtype_bits(t->whole->dtype);
}

static Value *turned(Tree *t, Value *v) {
  Build *b = t->b;
  int rank = t->whole->rank;
  int64_t dims[B_MAX_RANK];
  int map[B_MAX_RANK], where[B_MAX_RANK];
  for (int i = 0; i < rank; i++) dims[i] = b_dim(v, t->perm[i]), where[t->perm[i]] = i;
  Type *type = b_type(b, b_dtype(v), rank, dims);
  const void *splat = value_splat(v);
  if (splat) return b_bcast_scalar(b, b_const(b, b_type(b, b_dtype(v), 0, NULL), splat), type);
  const Op *op = v->def;
  if (is_spread(t, v)) {
    const int64_t *to;
    int n = op_ints(op, "broadcast_dimensions", &to);
    for (int i = 0; i < n; i++) map[i] = where[to[i]];
    return b_bcast(b, op->operands[0], rank, dims, map);
  }
  if (v == t->leaf) {
    if (!t->turned) t->turned = b_transpose(b, v, t->perm);
    return t->turned;
  }
  Value *in[4];
  for (int i = 0; i < op->n_operands; i++) in[i] = turned(t, op->operands[i]);
  return &b_op(b, op->kind, op->n_operands, in, 1, &type, op->n_attrs, op->attrs, 0, NULL)
              ->results[0];
}

static Value *rewritten(Build *b, const Op *op) {
  Tree t = {.b = b, .whole = op->operands[0]->type};
  const Type *type = t.whole;
  if (!type_is_static(type) || type->quant || type->rank > B_MAX_RANK ||
      type_count(type) < LEAST_ELEMENTS || !is_inner(&t, op->operands[0], 0) ||
      !looks_down(&t, op->operands[0], 0) || !t.leaf)
    return NULL;
  const int64_t *perm;
  int n = op_ints(op, "permutation", &perm);
  for (int i = 0; i < n; i++) t.perm[i] = (int)perm[i];
  return turned(&t, op->operands[0]);
}

Err *pass_narrow(Module *m) {
  return compile_rewrite(m, OP_TRANSPOSE, rewritten) ? pass_simplify(m) : NULL;
}
