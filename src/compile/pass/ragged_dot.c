/* pass_ragged_dot: rows in groups, each of which meets a matrix of its own, as experts have them. JAX writes jax.lax.ragged_dot as
 * a product of all rows with all matrices, of zeros where the row is not the group's:
 *
 *   sum over g, k of select(start[g] <= m < end[g], x[m, k], 0) w[g, k, n]
 *
 * which becomes chlo.ragged_dot again, of x, w and end - start. So do its gradients, of which one sums over a group's rows. */
#include "compile/pass/pass_priv.h"

typedef struct Groups { /* of a value [groups, rows, k] */
  Value *x;             /* [rows, k] */
  Value *starts, *ends; /* [groups] */
} Groups;

/* What v repeats, of one dimension that becomes d; NULL: something else. */
static Value *repeated_along(const Value *v, int d) {
  const Op *op = v->def;
  const int64_t *map;
  if (!op || op->kind != OP_BROADCAST_IN_DIM) return NULL;
  return op_ints(op, "broadcast_dimensions", &map) == 1 && map[0] == d &&
                 b_dim(op->operands[0], 0) == v->type->dims[d]
             ? op->operands[0]
             : NULL;
}

static bool counts_rows(const Value *v) {
  return v->def && v->def->kind == OP_IOTA && op_int(v->def, "iota_dimension", 0) == 1;
}

static bool compares(const Value *v, const char *way) {
  return v->def && v->def->kind == OP_COMPARE &&
         str_is(op_str(v->def, "comparison_direction"), way);
}

/* start[g] <= row and row < end[g] */
static bool is_within(const Op *both, Groups *g) {
  if (!both || both->kind != OP_AND || !compares(both->operands[0], "LE") ||
      !compares(both->operands[1], "LT"))
    return false;
  const Op *from = both->operands[0]->def, *to = both->operands[1]->def;
  g->starts = repeated_along(from->operands[0], 0);
  g->ends = repeated_along(to->operands[1], 0);
  return g->starts && g->ends && counts_rows(from->operands[1]) && counts_rows(to->operands[0]);
}

static bool is_slice_from(const Value *v, const Value *of, int64_t n) {
  const Op *op = v->def;
  const int64_t *start;
  return op && op->kind == OP_SLICE && op->operands[0] == of &&
         op_ints(op, "start_indices", &start) == 1 && start[0] == 0 && b_dim(v, 0) == n &&
         b_dim(of, 0) == n + 1;
}

static bool is_zero(const Value *v) {
  const Op *op = v->def;
  return value_is_zeros(v) || (op && (op->kind == OP_SLICE || op->kind == OP_BROADCAST_IN_DIM) &&
                               is_zero(op->operands[0]));
}

/* A group begins where the one before it ends. */
static bool follow_each_other(const Groups *g) {
  const Op *op = g->starts->def;
  return op && op->kind == OP_CONCATENATE && op->n_operands == 2 &&
         b_dim(op->operands[0], 0) == 1 && is_zero(op->operands[0]) &&
         is_slice_from(op->operands[1], g->ends, b_dim(op->operands[1], 0));
}

static bool is_grouped(const Value *v, Groups *g) {
  const Op *op = v->def;
  const int64_t *map;
  if (!op || op->kind != OP_SELECT || b_rank(v) != 3 || b_dtype(v) != DT_F32 ||
      !type_is_static(v->type) || !is_zero(op->operands[2]) ||
      !is_within(op->operands[0]->def, g) || !follow_each_other(g))
    return false;
  op = op->operands[1]->def;
  if (!op || op->kind != OP_BROADCAST_IN_DIM || b_rank(op->operands[0]) != 2) return false;
  op_ints(op, "broadcast_dimensions", &map);
  g->x = op->operands[0];
  return map[0] == 1 && map[1] == 2 && b_dim(g->x, 0) == b_dim(v, 1) &&
         b_dim(g->x, 1) == b_dim(v, 2);
}

static NamedAttr numbers(Build *b, bool of_groups, int64_t contracted) {
  const int64_t none = 0, lhs = of_groups ? 0 : 1;
  NamedAttr lists[] = {b_ints(b, "lhs_batching_dimensions", 0, &none),
                       b_ints(b, "lhs_contracting_dimensions", 1, &lhs),
                       b_ints(b, "lhs_ragged_dimensions", 1, &none),
                       b_ints(b, "rhs_batching_dimensions", 0, &none),
                       b_ints(b, "rhs_contracting_dimensions", 1, &contracted),
                       b_ints(b, "rhs_group_dimensions", !of_groups, &none)};
  return (NamedAttr){STR("ragged_dot_dimension_numbers"), attr_dict(b->m, COUNT_OF(lists), lists)};
}

static Value *ragged(Build *b, const Groups *g, Value *y, bool of_groups, int64_t contracted,
                     Type *t) {
  Value *in[] = {g->x, y, b_sub(b, g->ends, g->starts)};
  NamedAttr a = numbers(b, of_groups, contracted);
  return b_op(b, OP_CHLO_RAGGED_DOT, 3, in, 1, &t, 1, &a, 0, NULL)->results;
}

/* Rows times their group's matrix: k and the groups are summed over. */
static Value *of_rows(Build *b, const Op *op, const DotDims *d, const Groups *g) {
  Value *w = op->operands[1];
  int k = d->lhs_contract[0] == 2 ? 0 : 1;
  if (d->n_batch || d->n_contract != 2 || b_rank(w) != 3 || d->lhs_contract[k] != 2 ||
      d->lhs_contract[!k] != 0 || d->rhs_contract[!k] != 0)
    return NULL;
  return ragged(b, g, w, false, d->rhs_contract[k], op_type(op));
}

/* A group's rows are summed over. */
static Value *of_groups(Build *b, const Op *op, const DotDims *d, const Groups *g,
                        const Groups *h) {
  if (d->n_batch != 1 || d->lhs_batch[0] != 0 || d->rhs_batch[0] != 0 || d->n_contract != 1 ||
      d->lhs_contract[0] != 1 || d->rhs_contract[0] != 1)
    return NULL;
  return ragged(b, g, h->x, true, 0, op_type(op));
}

static Value *rewritten(Build *b, const Op *op) {
  Groups g, h;
  if (op_type(op)->dtype != DT_F32 || op_attr(op, "lhs_precision_type") ||
      !is_grouped(op->operands[0], &g) || b_dtype(op->operands[1]) != DT_F32 ||
      !type_is_static(op->operands[1]->type))
    return NULL;
  DotDims d = b_dot_dims(op);
  if (!is_grouped(op->operands[1], &h)) return of_rows(b, op, &d, &g);
  return h.ends == g.ends ? of_groups(b, op, &d, &g, &h) : NULL;
}

static bool has_groups(const Region *r) {
  Groups g;
  for (const Op *op = r->first; op; op = op->next) {
    if (op->kind == OP_DOT_GENERAL && is_grouped(op->operands[0], &g)) return true;
    for (int i = 0; i < op->n_regions; i++)
      if (has_groups(op->regions[i])) return true;
  }
  return false;
}

/* Two groupings by the same sizes are one after common subexpressions are. */
Err *pass_ragged_dot(Module *m) {
  if (!has_groups(module_main(m)->body)) return NULL;
  TRY(pass_simplify(m));
  compile_rewrite(m, OP_DOT_GENERAL, rewritten);
  return NULL;
}
