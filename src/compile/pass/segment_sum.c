/* pass_segment_sum: what nets on graphs, sparse products and bags of embeddings sum,
 *
 *   scatter_add(sums, to, gather(rows, from) * weights)   =   segment_sum(sums, to, rows, from, weights)
 *
 * without a row for each edge in memory: there are many more of these than of the sums. */
#include "compile/pass/pass_priv.h"

#define LEAST_WIDTH 8        /* elements of a row; shorter ones are gathered by loops as fast */
#define LEAST_ELEMENTS 16384 /* of all messages */
#define MOST_EMPTY 8         /* rows for each message: they are counted */

/* Rows of a value along its dimension 0, which one index each names, as gathers and scatters have them: the
 * dimensions of what is on the other side are those of the indices, then those of a row. */
static bool names_rows(const Type *t, const Type *ids, const Type *other, const IndexDims *d) {
  int n = other->rank - (t->rank - 1);
  if (t->rank < 2 || d->n_map != 1 || d->map[0] != 0 || d->n_collapsed != 1 ||
      d->collapsed[0] != 0 || d->n_batch || d->n_offset != t->rank - 1 || ids->dtype != DT_I32 ||
      d->index_vector_dim < ids->rank - 1 || type_count(ids) > INT32_MAX || t->dims[0] > INT32_MAX)
    return false;
  for (int i = 0; i < d->n_offset; i++)
    if (d->offset[i] != n + i || other->dims[n + i] != t->dims[1 + i]) return false;
  return true;
}

static bool adds_rows(const Op *op) {
  if (op->n_operands != 3 || !scatter_adds(op)) return false;
  for (int i = 0; i < 3; i++)
    if (!type_is_static(op->operands[i]->type) || op->operands[i]->type->quant) return false;
  const Type *t = op_type(op), *u = op->operands[2]->type;
  if (t->rank > B_MAX_RANK || u->rank > B_MAX_RANK || (t->dtype != DT_F32 && t->dtype != DT_F64))
    return false;
  IndexDims d = b_scatter_dims(op);
  return names_rows(t, op->operands[1]->type, u, &d);
}

static bool gathers_rows(const Op *op) {
  if (!op || op->kind != OP_GATHER || op->operands[0]->type->quant) return false;
  IndexDims d = b_gather_dims(op);
  return names_rows(op->operands[0]->type, op->operands[1]->type, op_type(op), &d);
}

/* What v repeats along all dimensions but the first *n, at least `least` of them; NULL: it is not made so. */
static Value *repeated_last(const Value *v, int least, int *n) {
  const Op *op = v->def;
  const int64_t *map;
  if (!op || op->kind != OP_BROADCAST_IN_DIM) return NULL;
  int rank = op_ints(op, "broadcast_dimensions", &map);
  const Type *t = op->operands[0]->type, *wide = op_type(op);
  for (*n = 0; *n < rank && map[*n] == *n && t->dims[*n] == wide->dims[*n];) ++*n;
  for (int i = *n; i < rank; i++)
    if (t->dims[i] != 1) return NULL;
  return *n >= least ? op->operands[0] : NULL;
}

typedef struct Message {
  const Op *gather;
  Value *mask, *weights; /* NULL: none; mask: where it is not zeros */
} Message;

/* Gathered rows, or zeros in the place of some. */
static bool is_rows(const Value *v, int batch, Message *out) {
  const Op *op = v->def;
  int n;
  if (op && op->kind == OP_SELECT && value_is_zeros(op->operands[2])) {
    out->mask = repeated_last(op->operands[0], batch, &n);
    if (!out->mask || n != batch) return false;
    op = op->operands[1]->def;
  }
  out->gather = op;
  return gathers_rows(op);
}

static bool is_message(const Value *v, int batch, Message *out) {
  *out = (Message){0};
  if (is_rows(v, batch, out)) return true;
  const Op *op = v->def;
  int n;
  if (!op || op->kind != OP_MULTIPLY) return false;
  for (int k = 0; k < 2; k++) {
    *out = (Message){.weights = repeated_last(op->operands[1 - k], batch, &n)};
    if (out->weights && is_rows(op->operands[k], batch, out)) return true;
  }
  return false;
}

/* v as one of two dimensions, the first of n places. */
static Value *as_rows(Build *b, Value *v, int64_t n) {
  return b_reshape(b, v, 2, (int64_t[]){n, type_count(v->type) / n});
}

static Value *rewritten(Build *b, const Op *op) {
  if (!adds_rows(op)) return NULL;
  const Type *t = op_type(op), *u = op->operands[2]->type;
  int64_t count = type_count(u), ids = type_count(op->operands[1]->type);
  Message m;
  if (count < LEAST_ELEMENTS || count / ids < LEAST_WIDTH || t->dims[0] / MOST_EMPTY > ids ||
      region_uses(b->r, op->operands[2]) != 1 ||
      !is_message(op->operands[2], u->rank - (t->rank - 1), &m))
    return NULL;
  Value *rows = m.gather->operands[0], *from = b_reshape(b, m.gather->operands[1], 1, &ids);
  from = b_clamp(b, b_scalar_i64(b, DT_I32, 0), from,
                 b_scalar_i64(b, DT_I32, rows->type->dims[0] - 1));
  if (m.mask) {
    Value *none = b_full(b, from->type, -1);
    from = b_select(b, b_reshape(b, m.mask, 1, &ids), from, none);
  }
  Value *in[5] = {as_rows(b, op->operands[0], t->dims[0]), b_reshape(b, op->operands[1], 1, &ids),
                  as_rows(b, rows, rows->type->dims[0]), from};
  if (m.weights) in[4] = as_rows(b, m.weights, ids);
  Type *type = in[0]->type;
  Op *sums = b_op(b, OP_SEGMENT_SUM, m.weights ? 5 : 4, in, 1, &type, 0, NULL, 0, NULL);
  return b_reshape(b, &sums->results[0], t->rank, t->dims);
}

Err *pass_segment_sum(Module *m) {
  compile_rewrite(m, OP_SCATTER, rewritten);
  return NULL;
}
