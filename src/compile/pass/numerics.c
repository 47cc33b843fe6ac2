/* Rounding is written as stablehlo.reduce_precision, which no pass may remove. A part split: hi =
 * round(x), lo = x - hi, and again for the third part; subtraction of nearby numbers is exact, so
 * nothing is lost but the tail.
 *
 * An infinity or NaN is in the largest part alone and meets only the other's largest part: with a zero beside it, in
 * products of smaller parts, infinity would be NaN. What rounds up to infinity is cut instead. */
#include "compile/pass/numerics.h"

typedef struct Rewriter {
  Module *m;
  Op *at; /* new ops go before it */
} Rewriter;

static Value *emit(Rewriter *w, OpKind kind, int n, Value *const *operands, Type *type, int n_attrs,
                   const NamedAttr *attrs) {
  Op *op = op_new(w->m, kind, n, operands, 1, &type, n_attrs, attrs, 0, NULL);
  op->loc = w->at->loc;
  op->line = w->at->line;
  op->col = w->at->col;
  op_insert_before(w->at, op);
  return &op->results[0];
}

static Value *round_to(Rewriter *w, Value *x, int mantissa_bits) {
  NamedAttr attrs[2] = {{STR("exponent_bits"), attr_int(w->m, DT_I32, 8)},
                        {STR("mantissa_bits"), attr_int(w->m, DT_I32, mantissa_bits)}};
  return emit(w, OP_REDUCE_PRECISION, 1, &x, x->type, 2, attrs);
}

static Value *binary(Rewriter *w, OpKind kind, Value *a, Value *b) {
  Value *operands[2] = {a, b};
  return emit(w, kind, 2, operands, a->type, 0, NULL);
}

static Value *all(Rewriter *w, const Type *like, float v) {
  Tensor *one = tensor_make(DT_F32, 0, NULL);
  *(float *)one->data = v;
  NamedAttr value = {STR("value"), attr_tensor(w->m, one, NULL)},
            none = {STR("broadcast_dimensions"), attr_ints(w->m, DT_I64, 0, NULL)};
  Value *c = emit(w, OP_CONSTANT, 0, NULL, type_tensor(w->m, DT_F32, 0, NULL), 1, &value);
  return emit(w, OP_BROADCAST_IN_DIM, 1, &c, (Type *)(uintptr_t)like, 1, &none);
}

static Value *select(Rewriter *w, Value *pred, Value *yes, Value *no) {
  Value *in[3] = {pred, yes, no};
  return emit(w, OP_SELECT, 3, in, yes->type, 0, NULL);
}

/* parts[0] + parts[1] + ... = x up to the last part's rounding, where x is finite; elsewhere all are 0. *whole is
 * the first, or what x is instead of a number. */
static void split(Rewriter *w, Value *x, int n, Value **parts, Value **whole) {
  const float most = 0x1.FEp127f; /* of bf16 */
  if (n == 1) {
    *whole = parts[0] = round_to(w, x, 7);
    return;
  }
  Type *flags = type_tensor(w->m, DT_I1, x->type->rank, x->type->dims);
  Value *finite = emit(w, OP_IS_FINITE, 1, &x, flags, 0, NULL), *was = x;
  x = select(w, finite, x, all(w, x->type, 0));
  for (int i = 0; i < n; i++) {
    parts[i] = round_to(w, x, 7);
    if (i == 0)
      parts[0] = binary(w, OP_MAXIMUM, binary(w, OP_MINIMUM, parts[0], all(w, x->type, most)),
                        all(w, x->type, -most));
    if (i + 1 < n) x = binary(w, OP_SUBTRACT, x, parts[i]);
  }
  *whole = select(w, finite, parts[0], was);
}

static bool f32_product(const Op *op) {
  if (op->kind != OP_DOT && op->kind != OP_DOT_GENERAL && op->kind != OP_CONVOLUTION) return false;
  return op->operands[0]->type->dtype == DT_F32 && op->operands[1]->type->dtype == DT_F32 &&
         op_type(op)->dtype == DT_F32 && !op->operands[0]->type->quant &&
         !op->operands[1]->type->quant;
}

static DType type_attr(const Op *op, const char *name) {
  const Attr *a = op_attr(op, name);
  return a && a->type ? a->type->dtype : DT_INVALID;
}

/* The same of a product whose algorithm asks for several ones of bf16. */
static int algorithm_level(const Op *op) {
  if (!f32_product(op) || type_attr(op, "lhs_precision_type") != DT_BF16 ||
      type_attr(op, "rhs_precision_type") != DT_BF16 ||
      type_attr(op, "accumulation_type") != DT_F32)
    return -1;
  int64_t products = op_int(op, "num_primitive_operations", 1);
  return products == 3 ? 1 : products == 6 ? 2 : -1;
}

int numerics_level(const Op *op, Numerics policy) {
  bool bf16 = policy == NUM_BF16_PASSES || policy == NUM_BF16_MATVEC;
  if (!f32_product(op) || op_attr(op, "lhs_precision_type") || policy == NUM_F32 ||
      (bf16 && product_is_on_vector_unit(op, policy == NUM_BF16_PASSES)))
    return -1;
  const Attr *a = op_attr(op, "precision_config");
  int level = 0;
  for (int i = 0; a && a->kind == AT_ARRAY && i < a->n; i++)
    level = MAX(level, str_is(a->items[i]->s, "HIGHEST") ? 2
                       : str_is(a->items[i]->s, "HIGH")  ? 1
                                                         : 0);
  return level;
}

static void drop_algorithm(Module *m, Op *op) {
  static const char *const names[] = {"lhs_precision_type",          "rhs_precision_type",
                                      "accumulation_type",           "lhs_component_count",
                                      "rhs_component_count",         "num_primitive_operations",
                                      "allow_imprecise_accumulation"};
  for (int i = 0; i < COUNT_OF(names); i++) op_set_attr(m, op, str_from(names[i]), NULL);
}

static void bf16_passes(Rewriter *w, Op *op, int level) {
  Value *x[3], *y[3], *whole[2];
  int parts = level + 1;
  split(w, op->operands[0], parts, x, &whole[0]);
  split(w, op->operands[1], parts, y, &whole[1]);
  /* smallest products first; those below the last part's weight are not computed */
  Value *sum = NULL;
  for (int order = parts - 1; order > 0; order--)
    for (int i = 0; i <= order; i++) {
      Value *operands[2] = {x[i], y[order - i]};
      Value *product = emit(w, op->kind, 2, operands, op_type(op), op->n_attrs, op->attrs);
      sum = sum ? binary(w, OP_ADD, sum, product) : product;
    }
  op->operands[0] = whole[0];
  op->operands[1] = whole[1];
  if (!sum) return;
  /* the op itself is the largest product; what used it now uses the sum */
  Func *f = op->parent->func;
  Op *total = op_new(w->m, OP_ADD, 2, (Value *[]){sum, &op->results[0]}, 1, &op->results[0].type, 0,
                     NULL, 0, NULL);
  total->loc = op->loc;
  value_replace_all(f, &op->results[0], &total->results[0]);
  op_insert_before(op->next, total); /* after op: every region ends in a terminator */
}

static void rewrite(Module *m, Region *r, Numerics policy) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) rewrite(m, op->regions[i], policy);
    Rewriter w = {m, op};
    int level = algorithm_level(op);
    if (level >= 0) {
      drop_algorithm(m, op);
      bf16_passes(&w, op, level);
      continue;
    }
    level = numerics_level(op, policy);
    if (level < 0) continue;
    if (policy != NUM_TF32) {
      bf16_passes(&w, op, level);
    } else if (level < 2) {
      op->operands[0] = round_to(&w, op->operands[0], 10);
      op->operands[1] = round_to(&w, op->operands[1], 10);
    }
  }
}

void pass_numerics(Module *m, Numerics policy) {
  if (policy == NUM_F32) return;
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) rewrite(m, m->funcs.v[i]->body, policy);
}
