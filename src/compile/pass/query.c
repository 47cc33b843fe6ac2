/* What passes and plans ask of a program. */
#include "compile/pass/query.h"

#include <math.h>

Tensor *value_constant(const Value *v) {
  if (!v->def || v->def->kind != OP_CONSTANT) return NULL;
  Attr *a = op_attr(v->def, "value");
  return a && a->kind == AT_TENSOR ? a->tensor : NULL;
}

const void *value_splat(const Value *v) {
  for (;;) {
    const Op *op = v->def;
    if (!op) return NULL;
    if (op->kind == OP_CONSTANT) {
      Tensor *t = value_constant(v);
      if (!t || !t->data || t->count == 0 || t->dtype == DT_TOKEN) return NULL;
      size_t b = (size_t)dtype_bytes(t->dtype);
      if (b == 0) return NULL;
      return t->splat || (t->count <= SPLAT_MAX && tensor_is_splat(t)) ? t->data : NULL;
    }
    if (op->kind != OP_BROADCAST_IN_DIM && op->kind != OP_RESHAPE && op->kind != OP_BROADCAST)
      return NULL;
    v = op->operands[0];
  }
}

Op *value_def(const Value *v, OpKind kind) {
  return v->def && v->def->kind == kind ? v->def : NULL;
}

bool value_is_float(const Value *v, double x) {
  const void *p = value_splat(v);
  if (!p || !dtype_is_float(v->type->dtype)) return false;
  double got = elem_get_f64(v->type->dtype, p);
  return got == x && (x != 0 || signbit(got) == signbit(x));
}

bool value_is_int(const Value *v, int64_t x) {
  const void *p = value_splat(v);
  DTypeClass c = dtype_class(v->type->dtype);
  return p && (c == DC_SINT || c == DC_UINT || c == DC_BOOL) &&
         elem_get_i64(v->type->dtype, p) == x;
}

int64_t gather_run(const Op *gather) {
  const Type *t = gather->operands[0]->type;
  const int64_t *sizes;
  int64_t run = 1;
  for (int i = op_ints(gather, "slice_sizes", &sizes) - 1; i >= 0; i--) {
    run *= sizes[i];
    if (sizes[i] < t->dims[i]) break;
  }
  return run;
}

bool value_int(const Value *v, int64_t *out) {
  const void *p = v->type->kind == TY_TENSOR && v->type->rank == 0 ? value_splat(v) : NULL;
  if (!p || !dtype_is_int(v->type->dtype)) return false;
  *out = elem_get_i64(v->type->dtype, p);
  return true;
}

bool op_is_pure(const Op *op) {
  switch (op_info[op->kind].cls) {
  case OC_CONSTANT:
  case OC_EWISE:
  case OC_MOVE:
  case OC_INDEX:
  case OC_REDUCE:
  case OC_CONTRACT:
  case OC_SORT:
  case OC_LINALG: break;
  case OC_CONTROL:
    if (op->kind == OP_RETURN) return true;
    return op->kind != OP_CALL && op->kind != OP_COMPOSITE && op->kind != OP_MANUAL_COMPUTATION &&
           op->n_regions > 0 && region_is_pure(op->regions[0]) &&
           (op->n_regions < 2 || region_is_pure(op->regions[1]));
  case OC_RNG: return op->kind == OP_RNG_BIT_GENERATOR;
  case OC_COLLECTIVE: return op->kind == OP_PARTITION_ID || op->kind == OP_REPLICA_ID;
  case OC_DYNAMIC: return true;
  default:
    return op->kind == OP_TUPLE || op->kind == OP_GET_TUPLE_ELEMENT || op->kind == OP_RESHARD ||
           op->kind == OP_SHARDING_CONSTRAINT;
  }
  for (int i = 0; i < op->n_regions; i++)
    if (!region_is_pure(op->regions[i])) return false;
  return true;
}

bool region_is_pure(const Region *r) {
  for (const Op *op = r->first; op; op = op->next)
    if (!op_is_pure(op)) return false;
  return true;
}

int region_uses(const Region *r, const Value *v) {
  int n = 0;
  for (const Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) n += op->operands[i] == v;
    for (int i = 0; i < op->n_regions; i++) n += region_uses(op->regions[i], v);
  }
  return n;
}

bool op_is_alias(const Op *op) {
  switch (op->kind) {
  case OP_RESHAPE:
  case OP_COPY: return true;
  case OP_OPTIMIZATION_BARRIER: return true;
  case OP_BITCAST_CONVERT: return op->operands[0]->type->rank == op_type(op)->rank;
  case OP_CUSTOM_CALL:
    return str_is(op_str(op, "call_target_name"), "Sharding") && op->n_operands == 1 &&
           op->n_results == 1;
  case OP_SHARDING_CONSTRAINT:
  case OP_RESHARD:
  case OP_PROPAGATION_BARRIER: return true;
  default: return false;
  }
}

bool op_is_heavy(const Op *op) {
  return op_cost[op->kind].dear || op_info[op->kind].cls == OC_REDUCE;
}

double op_loop_work(const Op *op) {
  const OpCost *c = &op_cost[op->kind];
  bool wide = c->loop && op_type(op)->dtype == DT_F64;
  return MAX(wide ? c->loop_f64 : c->loop, 1);
}

typedef VEC(Value *) Values;

static void captures(const Op *op, const Region *r, Values *out) {
  for (const Op *x = r->first; x; x = x->next) {
    for (int i = 0; i < x->n_operands; i++) {
      Value *v = x->operands[i];
      const Region *at = v->region;
      bool inside = false;
      for (const Region *up = at; up && !inside; up = up->parent ? up->parent->parent : NULL)
        for (int k = 0; k < op->n_regions; k++) inside |= op->regions[k] == up;
      if (inside) continue;
      bool have = false;
      for (int k = 0; k < out->n; k++) have |= out->v[k] == v;
      if (!have) *vec_push(out) = v;
    }
    for (int i = 0; i < x->n_regions; i++) captures(op, x->regions[i], out);
  }
}

int op_captures(const Op *op, Value ***out) {
  Values v = {0};
  for (int i = 0; i < op->n_regions; i++) captures(op, op->regions[i], &v);
  *out = v.v;
  return v.n;
}

static bool compares(const Op *op, int64_t a, int64_t b) {
  Str d = op_str(op, "comparison_direction");
  if (str_is(d, "LT")) return a < b;
  if (str_is(d, "LE")) return a <= b;
  if (str_is(d, "GT")) return a > b;
  if (str_is(d, "GE")) return a >= b;
  return str_is(d, "NE") ? a != b : a == b;
}

int loop_trip_count(const Op *loop, int most, int *counter, int64_t *first, int64_t *by) {
  const Region *cond = loop->regions[0], *body = loop->regions[1];
  const Op *cmp = cond->last->operands[0]->def;
  int64_t limit, at;
  if (!cmp || cmp->kind != OP_COMPARE || !value_int(cmp->operands[1], &limit)) return -1;
  const Value *var = cmp->operands[0];
  if (var->def || var->region != cond || !dtype_is_signed(var->type->dtype)) return -1;
  int k = var->index;
  const Op *add = body->last->operands[k]->def;
  if (!value_int(loop->operands[k], &at) || !add || add->kind != OP_ADD) return -1;
  const Value *arg = body->args[k];
  const Value *step = add->operands[0] == arg ? add->operands[1] : add->operands[0];
  if ((add->operands[0] != arg && add->operands[1] != arg) || !value_int(step, by) || *by == 0)
    return -1;
  *counter = k;
  *first = at;
  int n = 0;
  for (; compares(cmp, at, limit); n++) {
    if (n == most || at > INT32_MAX || at < INT32_MIN || *by > INT32_MAX || *by < INT32_MIN)
      return -1;
    at += *by;
  }
  return n;
}
