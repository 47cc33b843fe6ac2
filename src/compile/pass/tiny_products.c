/* pass_tiny_products: products of which each is too small for a kernel become multiplications, which
 * fuse with what is around them:
 *
 *   outer products           one multiplication of what is broadcast
 *   dots, matrix by vector   a multiplication and a sum; of integers whatever their size
 *   small matrices           a sum of outer products, one for each term
 *
 * bf16 and f16 are multiplied and added in f32, as kernels do, and rounded once. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MANY 8           /* products from which on kernels take longer to call than to run */
#define MAX_VECTOR 65536 /* elements of a matrix that is multiplied by a vector, along its rows; */
#define MAX_ACROSS 16384 /* along its columns, of many */
#define MAX_MATRIX 4096  /* multiplications of two small matrices */
#define TERMS 8          /* of each result, written one by one; ... */
#define MORE_TERMS 16    /* when there are few results */
#define FEW_RESULTS 64
#define VECTOR_TERMS 4 /* of a matrix by a vector */

typedef struct Side { /* of a product: its operand, and dimensions of that */
  Value *x;
  const int64_t *batch, *contract;
  int64_t free[B_MAX_RANK], count; /* those left, their elements */
  int n_free;
} Side;

typedef struct Product {
  DotDims d;
  Side side[2];
  const Type *result;
  int64_t many, terms;
} Product;

static Side side_of(const DotDims *d, Value *x, const int64_t *batch, const int64_t *contract) {
  Side s = {.x = x, .batch = batch, .contract = contract, .count = 1};
  for (int i = 0; i < x->type->rank; i++) {
    bool taken = false;
    for (int k = 0; k < d->n_batch; k++) taken |= batch[k] == i;
    for (int k = 0; k < d->n_contract; k++) taken |= contract[k] == i;
    if (taken) continue;
    s.free[s.n_free++] = i;
    s.count *= x->type->dims[i];
  }
  return s;
}

/* A transposed operand as it was before. */
static void look_through(const DotDims *d, Side *s, int64_t *batch, int64_t *contract) {
  const Op *t = s->x->def;
  if (!t || t->kind != OP_TRANSPOSE) return;
  const int64_t *perm;
  op_ints(t, "permutation", &perm);
  s->x = t->operands[0];
  for (int i = 0; i < d->n_batch; i++) batch[i] = perm[batch[i]];
  for (int i = 0; i < d->n_contract; i++) contract[i] = perm[contract[i]];
  for (int i = 0; i < s->n_free; i++) s->free[i] = perm[s->free[i]];
}

static bool is_whole(DType t) { return dtype_is_int(t) && dtype_bits(t) >= 8; }
static bool is_half(DType t) { return t == DT_BF16 || t == DT_F16; }

static bool is_plain(DType l, DType r, DType o) {
  if (l != r) return false;
  if (is_half(l)) return o == l || o == DT_F32;
  return o == l && (o == DT_F32 || o == DT_F64 || is_whole(o));
}

static bool product_of(const Op *op, Product *p) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (!is_plain(l->dtype, r->dtype, o->dtype) || o->quant || !type_is_static(l) ||
      !type_is_static(r) || l->rank > B_MAX_RANK || r->rank > B_MAX_RANK ||
      o->rank > B_MAX_RANK - 2 || type_count(o) == 0 || op_attr(op, "accumulation_type") ||
      op_attr(op, "lhs_precision_type") || op_attr(op, "rhs_precision_type"))
    return false;
  *p = (Product){.d = b_dot_dims(op), .result = o, .many = 1, .terms = 1};
  p->side[0] = side_of(&p->d, op->operands[0], p->d.lhs_batch, p->d.lhs_contract);
  p->side[1] = side_of(&p->d, op->operands[1], p->d.rhs_batch, p->d.rhs_contract);
  for (int i = 0; i < p->d.n_batch; i++) p->many *= l->dims[p->d.lhs_batch[i]];
  for (int i = 0; i < p->d.n_contract; i++) p->terms *= l->dims[p->d.lhs_contract[i]];
  look_through(&p->d, &p->side[0], p->d.lhs_batch, p->d.lhs_contract);
  look_through(&p->d, &p->side[1], p->d.rhs_batch, p->d.rhs_contract);
  return p->terms > 0;
}

static Value *wide(Build *b, Value *x) {
  return is_half(x->type->dtype) ? b_convert(b, x, DT_F32) : x;
}

/* The operand in the arithmetic, without dimensions of one element: those that map[] has no place (-1) for. */
static Value *spread(Build *b, Value *x, const int *map, int rank, const int64_t *dims) {
  int64_t kept[B_MAX_RANK];
  int to[B_MAX_RANK], n = 0;
  x = wide(b, x);
  for (int i = 0; i < b_rank(x); i++)
    if (map[i] >= 0) kept[n] = b_dim(x, i), to[n++] = map[i];
  if (n != b_rank(x)) x = b_reshape(b, x, n, kept);
  return b_bcast(b, x, rank, dims, to);
}

/* Term number `term` of a side, spread over the results. */
static Value *term_of(Build *b, const Product *p, int number, int64_t term) {
  const Side *s = &p->side[number];
  Value *x = s->x;
  int map[B_MAX_RANK];
  for (int i = p->d.n_contract - 1; i >= 0; i--) {
    int64_t k = s->contract[i], size = b_dim(x, (int)k);
    if (size > 1) x = b_slice_dim(b, x, (int)k, term % size, term % size + 1);
    term /= size;
    map[k] = -1;
  }
  for (int i = 0; i < p->d.n_batch; i++) map[s->batch[i]] = i;
  int first = p->d.n_batch + (number ? p->side[0].n_free : 0);
  for (int i = 0; i < s->n_free; i++) map[s->free[i]] = first + i;
  return spread(b, x, map, p->result->rank, p->result->dims);
}

static Value *sum_of_terms(Build *b, const Product *p) {
  Value *sum = NULL;
  for (int64_t t = 0; t < p->terms; t++) {
    Value *y = b_mul(b, term_of(b, p, 0, t), term_of(b, p, 1, t));
    sum = sum ? b_add(b, sum, y) : y;
  }
  return sum;
}

/* The side with more elements as it is, times the other one, which has no free dimensions; added up
 * along the contracted ones. */
static Value *sum_of_products(Build *b, const Product *p) {
  int large = p->side[1].count > p->side[0].count;
  const Side *s = &p->side[large], *o = &p->side[!large];
  int map[B_MAX_RANK], perm[B_MAX_RANK], n_left = p->d.n_batch + s->n_free;
  for (int i = 0; i < o->n_free; i++) map[o->free[i]] = -1;
  for (int i = 0; i < p->d.n_batch; i++) map[o->batch[i]] = (int)s->batch[i];
  for (int i = 0; i < p->d.n_contract; i++) map[o->contract[i]] = (int)s->contract[i];
  for (int i = 0; i < n_left; i++) { /* of the result; where it is after the sum */
    int64_t at = i < p->d.n_batch ? s->batch[i] : s->free[i - p->d.n_batch];
    perm[i] = (int)at;
    for (int k = 0; k < p->d.n_contract; k++) perm[i] -= s->contract[k] < at;
  }
  Value *y = b_mul(b, wide(b, s->x), spread(b, o->x, map, b_rank(s->x), s->x->type->dims));
  y = b_transpose(b, b_reduce(b, OP_ADD, y, p->d.n_contract, s->contract), perm);
  return b_reshape(b, y, p->result->rank, p->result->dims);
}

/* NULL: a kernel is better. */
static Value *written_out(Build *b, const Product *p) {
  int64_t m = p->side[0].count, n = p->side[1].count;
  if (p->terms == 1) return sum_of_terms(b, p);
  bool vector = m == 1 || n == 1, many = p->many >= MANY;
  int64_t most = vector ? VECTOR_TERMS : m * n <= FEW_RESULTS ? MORE_TERMS : TERMS;
  /* Kernels of integers copy the matrix, which is as much work. */
  if (vector && p->many == 1 && is_whole(p->result->dtype)) return sum_of_products(b, p);
  if (m * n == 1) return many ? sum_of_products(b, p) : NULL;
  if (many && p->terms <= most && m * n * p->terms <= MAX_MATRIX) return sum_of_terms(b, p);
  if (vector && p->many == 1 && p->terms <= VECTOR_TERMS && m * n * p->terms > MAX_VECTOR)
    return sum_of_terms(b, p); /* as of the colours of images */
  bool along = true;
  const Side *s = &p->side[n > m];
  for (int i = 0; i < p->d.n_contract; i++)
    along &= s->contract[i] >= b_rank(s->x) - p->d.n_contract;
  /* Along columns the vector's elements are scalars, which are dear if it is fused. */
  bool small = m * n * p->terms <= (along ? MAX_VECTOR : many ? MAX_ACROSS : 0);
  return vector && small ? sum_of_products(b, p) : NULL;
}

static Value *rewritten(Build *b, const Op *op) {
  Product p;
  Value *y = product_of(op, &p) ? written_out(b, &p) : NULL;
  return y && y->type->dtype != p.result->dtype ? b_convert(b, y, p.result->dtype) : y;
}

Err *pass_tiny_products(Module *m) {
  compile_rewrite(m, OP_DOT_GENERAL, rewritten);
  return NULL;
}
