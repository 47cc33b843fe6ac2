/* pass_unseen: the first value of a stack that a loop fills from end to end is not made. JAX's scan begins with
 * stacks of zeros for its results and residuals; all of their parts are put before anybody reads them. The plan
 * copies nothing there, but the zeros were still written, into memory of their own. A constant that
 * nobody reads takes neither. */
#include "compile/pass/pass_priv.h"

bool loop_hides_stack(const Op *loop, const Op *put) {
  const Region *cond = loop->regions[0], *body = loop->regions[1];
  const Value *stack = put->operands[0];
  return stack->region == body && !stack->def &&
         body->last->operands[stack->index] == &put->results[0] && region_uses(body, stack) == 1 &&
         region_uses(body, &put->results[0]) == 1 &&
         region_uses(cond, cond->args[stack->index]) == 0;
}

bool loop_puts_all(const Op *loop, int k) {
  const Op *put = loop->regions[1]->last->operands[k]->def;
  if (!put || put->kind != OP_DYNAMIC_UPDATE_SLICE || put->parent != loop->regions[1] ||
      put->operands[0] != loop->regions[1]->args[k] || !loop_hides_stack(loop, put))
    return false;
  const Type *whole = put->operands[0]->type, *part = put->operands[1]->type;
  for (int i = 1; i < part->rank; i++)
    if (part->dims[i] != whole->dims[i]) return false;
  return part->rank > 0 && part->dims[0] == 1 &&
         loop_visits_all(loop, put->operands[2], whole->dims[0]);
}

static void remove_unread(const Region *main, Op *op) {
  for (int i = 0; i < op->n_results; i++)
    if (region_uses(main, &op->results[i])) return;
  if (!op_is_pure(op) || op->n_regions) return;
  op_remove(op);
  for (int i = 0; i < op->n_operands; i++)
    if (op->operands[i]->def) remove_unread(main, op->operands[i]->def);
}

static void begin_as_nothing(Module *m, Op *loop, int k) {
  static const char zero[16] = {0};
  Value *was = loop->operands[k];
  Type *t = was->type;
  Tensor *none;
  if (value_constant(was) || t->quant) return;
  Err *e = tensor_splat(t->dtype, t->rank, t->dims, zero, &none);
  if (e) { /* of no size that a run has memory for */
    err_free(e);
    return;
  }
  NamedAttr value = {STR("value"), attr_tensor(m, none, NULL)};
  Op *c = op_new(m, OP_CONSTANT, 0, NULL, 1, &t, 1, &value, 0, NULL);
  op_insert_before(loop, c);
  loop->operands[k] = &c->results[0];
  if (was->def) remove_unread(module_main(m)->body, was->def);
}

static void walk(Module *m, Region *r) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i]);
    for (int k = 0; op->kind == OP_WHILE && k < op->n_operands; k++)
      if (op->operands[k]->type->kind == TY_TENSOR && loop_puts_all(op, k))
        begin_as_nothing(m, op, k);
  }
}

Err *pass_unseen(Module *m) {
  walk(m, module_main(m)->body);
  return NULL;
}
