/* pass_masks: the sign of a rectified value is read off the result.
 *
 *   compare(x > 0) = compare(max(x, 0) > 0)
 *
 * The next layer keeps max(x, 0) for its own gradient; with this, x itself or a mask need not be
 * kept beside it. Not where x comes from a normalisation: its backward pass reads what x is
 * computed from anyway. */
#include <stdlib.h>

#include "compile/pass/pass_priv.h"

static bool is_zero(const Value *v) {
  const void *p = value_splat(v);
  return p && dtype_is_float(v->type->dtype) && elem_get_f64(v->type->dtype, p) == 0;
}

/* A sum of products and the like, nothing else element-wise: nobody needs it once x is there. */
static bool only_needed_here(const Value *x) {
  for (const Op *op = x->def; op; op = x->def) {
    if (op->kind == OP_RESHAPE) {
      x = op->operands[0];
    } else if (op->kind == OP_ADD) {
      bool a = op->operands[0]->def && op->operands[0]->def->kind == OP_BROADCAST_IN_DIM;
      bool b = op->operands[1]->def && op->operands[1]->def->kind == OP_BROADCAST_IN_DIM;
      if (!a && !b) return true;
      x = op->operands[a ? 1 : 0];
    } else {
      return op_info[op->kind].cls != OC_EWISE;
    }
  }
  return false;
}

static void walk(Region *r, Map *rectified) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_regions; i++) walk(op->regions[i], rectified);
    if (op->n_operands != 2) continue;
    Value *x = op->operands[0], *y = op->operands[1];
    Str key = {(const char *)&x, sizeof x};
    if (op->kind == OP_MAXIMUM && is_zero(y) && only_needed_here(x)) {
      map_set(rectified, key, &op->results[0]);
    } else if (op->kind == OP_COMPARE && is_zero(y) &&
               str_is(op_str(op, "comparison_direction"), "GT")) {
      Value *max = map_get(rectified, key);
      if (max && max->region == r) op->operands[0] = max;
    }
  }
}

Err *pass_masks(Module *m) {
  Map *rectified = map_new();
  walk(module_main(m)->body, rectified);
  map_free(rectified);
  return NULL;
}
