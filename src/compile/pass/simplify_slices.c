/* Rules of pass_simplify for slices: a part of something moved is that part, moved. */
#include "compile/pass/pass_priv.h"

#define MOST_STRIDED \
  16 /* of a transpose's elements for one of the slice, where these are read apart */

typedef struct Cut {
  int64_t from[MAX_RANK], to[MAX_RANK], step[MAX_RANK];
} Cut;

static bool read_cut(const Op *op, Cut *c) {
  const int64_t *from, *to, *step;
  int n = op_ints(op, "start_indices", &from);
  if (n > MAX_RANK || op_ints(op, "limit_indices", &to) != n || op_ints(op, "strides", &step) != n)
    return false;
  for (int i = 0; i < n; i++) c->from[i] = from[i], c->to[i] = to[i], c->step[i] = step[i];
  return type_is_static(op->operands[0]->type);
}

static Value *make_cut(Simp *s, Op *at, Value *v, const Cut *c) {
  int64_t dims[MAX_RANK];
  int n = v->type->rank;
  for (int i = 0; i < n; i++) dims[i] = (c->to[i] - c->from[i] + c->step[i] - 1) / c->step[i];
  NamedAttr a[3] = {{STR("start_indices"), attr_ints(s->m, DT_I64, n, c->from)},
                    {STR("limit_indices"), attr_ints(s->m, DT_I64, n, c->to)},
                    {STR("strides"), attr_ints(s->m, DT_I64, n, c->step)}};
  return simp_op(s, at, OP_SLICE, 1, &v, type_tensor(s->m, v->type->dtype, n, dims), 3, a);
}

/* of a slice */
static bool of_slice(Simp *s, Op *op, const Op *in, Cut *c) {
  Cut first;
  if (!read_cut(in, &first)) return false;
  for (int i = 0; i < op_type(op)->rank; i++) {
    int64_t last = c->from[i] + (op_type(op)->dims[i] - 1) * c->step[i];
    c->to[i] = first.from[i] + last * first.step[i] + 1;
    c->from[i] = first.from[i] + c->from[i] * first.step[i];
    c->step[i] *= first.step[i];
  }
  return simp_done(s, op, make_cut(s, op, in->operands[0], c));
}

/* of one of the pieces side by side */
static bool of_piece(Simp *s, Op *op, const Op *in, Cut *c) {
  int64_t dim = op_int(in, "dimension", 0), at = 0;
  for (int k = 0; k < in->n_operands; k++) {
    int64_t size = in->operands[k]->type->dims[dim];
    if (c->from[dim] >= at && c->to[dim] <= at + size) {
      c->from[dim] -= at;
      c->to[dim] -= at;
      return simp_done(s, op, make_cut(s, op, in->operands[k], c));
    }
    at += size;
  }
  return false;
}

/* of a transpose, so few elements that their order does not change: transposing the whole is no help */
static bool of_transpose(Simp *s, Op *op, const Op *in, const Cut *c) {
  const int64_t *perm, *dims = op_type(op)->dims;
  int n = op_ints(in, "permutation", &perm);
  int64_t last = -1;
  Cut before;
  for (int i = 0; i < n; i++) {
    if (dims[i] > 1 && perm[i] < last) return false;
    if (dims[i] > 1) last = perm[i];
    before.from[perm[i]] = c->from[i];
    before.to[perm[i]] = c->to[i];
    before.step[perm[i]] = c->step[i];
  }
  if (type_count(op_type(in)) > MOST_STRIDED * type_count(op_type(op))) return false;
  Value *v = make_cut(s, op, in->operands[0], &before);
  return simp_done(s, op, simp_op(s, op, OP_RESHAPE, 1, &v, op_type(op), 0, NULL));
}

/* of a value spread: of one along each dimension of the slice */
static bool of_broadcast(Simp *s, Op *op, const Op *in, const Cut *c) {
  const int64_t *map;
  Value *v = in->operands[0];
  int n = op_ints(in, "broadcast_dimensions", &map);
  Cut part;
  bool whole = true;
  for (int i = 0; i < n; i++) {
    bool spread = v->type->dims[i] == 1;
    part.from[i] = spread ? 0 : c->from[map[i]];
    part.to[i] = spread ? 1 : c->to[map[i]];
    part.step[i] = spread ? 1 : c->step[map[i]];
    whole &= spread || op_type(op)->dims[map[i]] == v->type->dims[i];
  }
  if (!whole) v = make_cut(s, op, v, &part);
  NamedAttr a = {STR("broadcast_dimensions"), attr_ints(s->m, DT_I64, n, map)};
  return simp_done(s, op, simp_op(s, op, OP_BROADCAST_IN_DIM, 1, &v, op_type(op), 1, &a));
}

bool simp_slice(Simp *s, Op *op) {
  const Op *in = op->operands[0]->def;
  Cut c;
  if (!in || type_count(op_type(op)) == 0 || !read_cut(op, &c) || in->n_operands == 0 ||
      !type_is_static(in->operands[0]->type))
    return false;
  switch (in->kind) {
  case OP_SLICE: return of_slice(s, op, in, &c);
  case OP_CONCATENATE: return of_piece(s, op, in, &c);
  case OP_TRANSPOSE: return of_transpose(s, op, in, &c);
  case OP_BROADCAST_IN_DIM: return of_broadcast(s, op, in, &c);
  default: return false;
  }
}

bool simp_cutting_pad(Simp *s, Op *op) {
  const int64_t *lo, *hi, *between;
  int n = op_ints(op, "edge_padding_low", &lo);
  const Type *t = op->operands[0]->type;
  if (n > MAX_RANK || op_ints(op, "edge_padding_high", &hi) != n ||
      op_ints(op, "interior_padding", &between) != n || !type_is_static(t) ||
      type_count(op_type(op)) == 0)
    return false;
  Cut c;
  for (int i = 0; i < n; i++) {
    if (lo[i] > 0 || hi[i] > 0 || between[i]) return false;
    c.from[i] = -lo[i], c.to[i] = t->dims[i] + hi[i], c.step[i] = 1;
  }
  return simp_done(s, op, make_cut(s, op, op->operands[0], &c));
}
