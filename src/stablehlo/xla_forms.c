#include "stablehlo/xla_forms.h"

#include "ir/build.h"

/* ---- donation ---- */

/* The number in a list of one; `none` for an empty list; -1: something else. */
static int64_t only_int(const Attr *a, int64_t none) {
  if (!a) return -1;
  if (a->kind == AT_INTS) return a->n > 1 ? -1 : a->n ? a->ints[0] : none;
  if (a->kind == AT_TENSOR && a->dtype == DT_I64 && a->tensor->count < 2)
    return a->tensor->count ? *(const int64_t *)tensor_at(a->tensor, 0) : none;
  return a->kind == AT_ARRAY && a->n == 0 ? none : -1;
}

/* {output_index = [j], alias = {parameter_number = i, parameter_index = [], kind = ...}} */
static void read_alias(Func *f, const Attr *entry) {
  if (entry->kind != AT_DICT) return;
  const Attr *alias = attrs_get(entry->dict, entry->n, "alias");
  if (!alias || alias->kind != AT_DICT) return;
  const Attr *number = attrs_get(alias->dict, alias->n, "parameter_number");
  int64_t result = only_int(attrs_get(entry->dict, entry->n, "output_index"), 0);
  bool whole = only_int(attrs_get(alias->dict, alias->n, "parameter_index"), 0) == 0;
  if (!number || number->kind != AT_INT || !whole) return;
  int64_t arg = number->i;
  if (arg < 0 || arg >= f->type->n_elems || result < 0 || result >= f->type->n_results) return;
  if (f->type->elems[arg] != f->type->results[result]) return;
  if (attrs_get(f->arg_attrs[arg], f->n_arg_attrs[arg], "tf.aliasing_output")) return;
  b_arg_attr(f, (int)arg, "tf.aliasing_output", attr_int(f->module, DT_I32, result));
}

static void read_aliases(Module *m) {
  const Attr *list = attrs_get(m->attrs, m->n_attrs, "mhlo.input_output_alias");
  Func *f = module_main(m);
  if (!list || list->kind != AT_ARRAY || !f) return;
  for (int i = 0; i < list->n; i++) read_alias(f, list->items[i]);
}

/* ---- tuples ---- */

static bool makes_tuple(const Op *op) {
  if (op->kind != OP_CUSTOM_CALL || op->n_results != 1 || op->n_regions) return false;
  const Type *t = op_type(op);
  if (t->kind != TY_TUPLE || !t->n_elems) return false;
  for (int i = 0; i < t->n_elems; i++)
    if (t->elems[i]->kind == TY_TUPLE) return false;
  return true;
}

/* The call with a result for each element; the op itself becomes a tuple of them, for whoever uses it. */
static void flatten_call(Module *m, Op *op) {
  Type *t = op_type(op);
  Op *call = op_new(m, op->kind, op->n_operands, op->operands, t->n_elems, t->elems, op->n_attrs,
                    op->attrs, 0, NULL);
  call->loc = op->loc, call->line = op->line, call->col = op->col;
  op_insert_before(op, call);
  op->kind = OP_TUPLE;
  op->n_attrs = 0;
  op->n_operands = t->n_elems;
  op->operands = ARENA_ARRAY(m->arena, Value *, t->n_elems);
  for (int i = 0; i < t->n_elems; i++) op->operands[i] = &call->results[i];
}

/* The element that the op takes out of a tuple made in this function; NULL: none. */
static Value *taken(const Op *op) {
  if (!op || op->kind != OP_GET_TUPLE_ELEMENT || op->n_operands != 1 || op->n_results != 1)
    return NULL;
  const Op *tuple = op->operands[0]->def;
  int64_t i = op_int(op, "index", -1);
  if (!tuple || tuple->kind != OP_TUPLE || i < 0 || i >= tuple->n_operands) return NULL;
  return tuple->operands[i]->type == op_type(op) ? tuple->operands[i] : NULL;
}

/* In the order of the program: what an op uses has been seen before. */
static void flatten_calls(Module *m, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_operands; i++) {
      Value *v = taken(op->operands[i]->def);
      if (v) op->operands[i] = v;
    }
    for (int i = 0; i < op->n_regions; i++) flatten_calls(m, op->regions[i]);
    if (makes_tuple(op)) flatten_call(m, op);
    else if (taken(op)) op_remove(op);
  }
}

static Err *find_tuple(Op *op, void *found) {
  if (makes_tuple(op)) *(bool *)found = true;
  return NULL;
}

void xla_forms_read(Module *m) {
  read_aliases(m);
  for (int i = 0; i < m->funcs.n; i++) {
    Region *body = m->funcs.v[i]->body;
    bool found = false;
    if (body) err_free(ir_walk(body, find_tuple, &found));
    if (found) flatten_calls(m, body);
  }
}
