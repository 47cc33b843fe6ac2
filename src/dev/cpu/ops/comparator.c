/* Recognising comparators: of elements of the operands, one pair or several in order of importance,
 * with or without JAX's detour that makes zeros equal and NaNs the largest. */
#include "dev/cpu/ops/sorting.h"

static bool constant(const Value *v, double *out) {
  if (!v->def || v->def->kind != OP_CONSTANT || v->type->kind != TY_TENSOR) return false;
  Attr *a = op_attr(v->def, "value");
  if (!a || a->kind != AT_TENSOR || a->tensor->count < 1 || !dtype_is_float(a->tensor->dtype))
    return false;
  *out = elem_get_f64(a->tensor->dtype, a->tensor->data);
  return true;
}

static bool is_compare(const Value *v, const char *direction) {
  return v->def && v->def->kind == OP_COMPARE &&
         str_is(op_str(v->def, "comparison_direction"), direction);
}

/* The element behind v: an argument of the comparator or its real or imaginary part, perhaps with
 * zeros and NaNs made one. */
static const Value *element(const Value *v, Key *k) {
  while (v->def && v->def->kind == OP_SELECT) {
    const Value *p = v->def->operands[0], *yes = v->def->operands[1], *no = v->def->operands[2];
    double c, zero;
    if (!constant(yes, &c)) return NULL;
    Key inner = {0};
    const Value *below = element(no, &inner);
    if (!below) return NULL;
    if (c != c && is_compare(p, "NE") && p->def->operands[0] == p->def->operands[1]) {
      Key x = {0};
      if (element(p->def->operands[0], &x) != below) return NULL;
      k->nans = true;
    } else if (c == 0 && !__builtin_signbit(c) && is_compare(p, "EQ") &&
               constant(p->def->operands[1], &zero) && zero == 0) {
      Key x = {0};
      if (element(p->def->operands[0], &x) != below) return NULL;
      k->zeros = true;
    } else {
      return NULL;
    }
    v = no;
  }
  return v;
}

static bool argument(const Region *r, const Value *v, Key *k, int *which) {
  v = element(v, k);
  if (!v) return false;
  k->type = v->type->dtype;
  k->part = PART_ALL;
  const Op *d = v->def;
  if (d && (d->kind == OP_REAL || d->kind == OP_IMAG)) {
    k->part = d->kind == OP_REAL ? PART_REAL : PART_IMAG;
    v = d->operands[0];
  }
  if (v->def || v->region != r) return false;
  k->operand = v->index / 2;
  *which = v->index % 2;
  return true;
}

/* A comparison of the same element of both sides. */
static bool comparison(const Region *r, const Op *c, Key *k) {
  Key other = {0};
  int a, b;
  *k = (Key){0};
  if (!argument(r, c->operands[0], k, &a) || !argument(r, c->operands[1], &other, &b)) return false;
  if (a == b || k->operand != other.operand || k->part != other.part || k->nans != other.nans ||
      k->zeros != other.zeros)
    return false;
  Str direction = op_str(c, "comparison_direction");
  bool less = str_is(direction, "LT"), greater = str_is(direction, "GT");
  k->down = greater != (a > b);
  if (dtype_is_float(k->type) && !str_is(op_str(c, "compare_type"), "TOTALORDER"))
    k->zeros = k->nans = true;
  k->bits = dtype_bits(k->type);
  return less || greater || str_is(direction, "EQ");
}

static bool less_than(const Region *r, const Value *v, Sort *s) {
  if (s->n_keys == MAX_KEYS || !v->def) return false;
  const Op *d = v->def;
  if (d->kind == OP_COMPARE) return !is_compare(v, "EQ") && comparison(r, d, &s->keys[s->n_keys++]);
  if (d->kind != OP_OR) return false;
  for (int i = 0; i < 2; i++) { /* first less, or first equal and the rest less */
    const Value *first = d->operands[i], *rest = d->operands[1 - i];
    if (!first->def || first->def->kind != OP_COMPARE || is_compare(first, "EQ") || !rest->def ||
        rest->def->kind != OP_AND)
      continue;
    for (int j = 0; j < 2; j++) {
      const Value *equal = rest->def->operands[j], *then = rest->def->operands[1 - j];
      Key k, e;
      if (!is_compare(equal, "EQ") || !comparison(r, first->def, &k) ||
          !comparison(r, equal->def, &e))
        continue;
      if (k.operand != e.operand || k.part != e.part || k.nans != e.nans || k.zeros != e.zeros)
        continue;
      int n = s->n_keys;
      s->keys[s->n_keys++] = k;
      if (less_than(r, then, s)) return true;
      s->n_keys = n;
    }
  }
  return false;
}

bool sort_recognise(const Op *op, Sort *s) {
  const Region *r = op->regions[0];
  const Type *t = op->operands[0]->type;
  *s = (Sort){.dim = (int)op_int(op, "dimension", -1)};
  if (s->dim < 0) s->dim += t->rank;
  if (s->dim < 0 || s->dim >= t->rank || r->n_args != 2 * op->n_operands ||
      r->last->n_operands != 1)
    return false;
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->type->quant || op->operands[i]->type->dtype != r->args[2 * i]->type->dtype)
      return false;
  if (!less_than(r, r->last->operands[0], s)) return false;
  for (int i = 0; i < s->n_keys; i++)
    if (s->keys[i].bits > 64 || dtype_is_complex(s->keys[i].type)) return false;
  s->n = t->dims[s->dim];
  s->inner = 1;
  for (int d = s->dim + 1; d < t->rank; d++) s->inner *= t->dims[d];
  int64_t count = type_count(t);
  s->rows = s->n ? count / s->n : 0;
  return s->n < INT32_MAX;
}
