/* pass_rng_rounding: random numbers of bf16 and f16 have their type's digits after every operation, where other
 * arithmetic keeps those of f32 until it is stored (docs/numerics.md):
 *
 *   -log(-log(bits as bf16))
 *
 * The same key gives the same numbers then, in whichever kernel they are drawn, as it does op by op and on
 * XLA:CPU: a sampled token does not depend on what it was fused with. Drawn is what is computed of an
 * integer's bits and of constants alone. */
#include "compile/pass/pass_priv.h"

static bool is_narrow(const Value *v) {
  return v->type->dtype == DT_BF16 || v->type->dtype == DT_F16;
}

static bool is_real(const Value *v) { return dtype_is_float(v->type->dtype); }

static bool op_reads(const Op *op, const Value *v) {
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i] == v) return true;
  return false;
}

/* A product of f16 and the sum it goes to are rounded once, as by one instruction. */
static bool is_fused(const Op *op) {
  const Value *v = &op->results[0];
  if (op->kind != OP_MULTIPLY || v->type->dtype != DT_F16 || region_uses(v->region, v) != 1)
    return false;
  const Op *by = op->next;
  while (by && !op_reads(by, v)) by = by->next;
  return by && by->kind == OP_ADD;
}

/* Has what it computes more digits than its operands? */
static bool adds_digits(const Op *op) {
  if (is_fused(op)) return false;
  switch (op->kind) {
  case OP_BITCAST_CONVERT:
  case OP_CONVERT:
  case OP_COPY:
  case OP_SELECT:
  case OP_CLAMP:
  case OP_MAXIMUM:
  case OP_MINIMUM:
  case OP_ABS:
  case OP_NEGATE:
  case OP_REDUCE_PRECISION: return false;
  default: return op_info[op->kind].cls == OC_EWISE;
  }
}

typedef struct RngRounding {
  Module *m;
  Map *read_as; /* what is drawn -> that with its type's digits */
  bool any;
} RngRounding;

static Value *read_as(const RngRounding *d, const Value *v) {
  return d->any ? map_get(d->read_as, (Str){(const char *)&v, sizeof v}) : NULL;
}

/* Its operands are replaced already: what is drawn stands for itself, too. */
static bool is_drawn(const RngRounding *d, const Op *op) {
  if (op->n_results != 1 || op->n_regions || !is_real(&op->results[0])) return false;
  OpClass cls = op_info[op->kind].cls;
  if (op->kind == OP_BITCAST_CONVERT) return dtype_is_int(op->operands[0]->type->dtype);
  if (cls != OC_EWISE && cls != OC_MOVE) return false;
  bool any = false;
  for (int i = 0; i < op->n_operands; i++) {
    const Value *v = op->operands[i];
    bool is = read_as(d, v) != NULL;
    if (is_real(v) && !is && !value_splat(v)) return false;
    any |= is;
  }
  return any;
}

static void add(RngRounding *d, Value *v, Value *as) {
  map_set(d->read_as, (Str){(const char *)&v, sizeof v}, as);
  d->any = true;
}

static void round_result(RngRounding *d, Op *op) {
  Value *v = &op->results[0];
  bool bf16 = v->type->dtype == DT_BF16;
  NamedAttr bits[] = {{STR("exponent_bits"), attr_int(d->m, DT_I32, bf16 ? 8 : 5)},
                      {STR("mantissa_bits"), attr_int(d->m, DT_I32, bf16 ? 7 : 10)}};
  Build b = {d->m, v->region, op->loc};
  Op *end = b.r->last, *after = op->next;
  Value *as = b_op(&b, OP_REDUCE_PRECISION, 1, &v, 1, &v->type, 2, bits, 0, NULL)->results;
  compile_move_built(end, after);
  add(d, v, as);
  add(d, as, as);
}

static void walk(RngRounding *d, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_operands; i++) {
      Value *as = read_as(d, op->operands[i]);
      if (as) op->operands[i] = as;
    }
    for (int i = 0; i < op->n_regions; i++) walk(d, op->regions[i]);
    if (!is_drawn(d, op)) continue;
    if (is_narrow(&op->results[0]) && adds_digits(op)) round_result(d, op);
    else add(d, &op->results[0], &op->results[0]);
  }
}

Err *pass_rng_rounding(Module *m) {
  RngRounding d = {.m = m, .read_as = map_new()};
  walk(&d, module_main(m)->body);
  map_free(d.read_as);
  return NULL;
}
