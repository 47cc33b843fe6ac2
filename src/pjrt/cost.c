/* Operations and bytes of a program on one of its devices, counted from its ops, for devices that
 * have no cost model of their own. Counts as XLA's cost analysis does: a multiply and an add are two,
 * transcendental functions are counted apart, a loop's body counts once (the number of rounds is not
 * known before the run). */
#include "pjrt/pjrt_priv.h"

#include "compile/pass/work.h"

static double count_of(const Value *v) {
  return v->type->kind == TY_TENSOR && type_is_static(v->type) ? (double)type_count(v->type) : 0;
}

/* share: of what the op does, one device's; a region of manual computation is one device's already. */
static void add_region(const Region *r, DevCost *c, double share, int depth);

static void add_op(const Op *op, DevCost *c, double share, int depth) {
  double n = op->n_results ? share * count_of(&op->results[0]) : 0;
  switch (op_info[op->kind].cls) {
  case OC_EWISE:
    if (op->kind == OP_CONVERT || op->kind == OP_SELECT || op->kind == OP_BITCAST_CONVERT) break;
    if (op_cost[op->kind].transcendental) c->transcendentals += n;
    else c->flops += n;
    break;
  case OC_CONTRACT: c->flops += 2 * n * op_contraction(op); break;
  case OC_REDUCE: /* the region once for each element that goes in */
    if (op->n_operands) c->flops += share * count_of(op->operands[0]);
    return;
  case OC_CONTROL:
    if (op->kind == OP_CALL && depth < IR_MAX_DEPTH && op->parent && op->parent->func) {
      const Func *f = module_func(op->parent->func->module, op_str(op, "callee"));
      if (f && f->body) add_region(f->body, c, share, depth + 1);
    }
    break;
  default: break;
  }
  if (op->kind == OP_MANUAL_COMPUTATION) share = 1;
  for (int i = 0; i < op->n_regions; i++) add_region(op->regions[i], c, share, depth + 1);
}

static void add_region(const Region *r, DevCost *c, double share, int depth) {
  for (const Op *op = r->first; op; op = op->next) add_op(op, c, share, depth);
}

void program_cost(const DevProgram *p, DevCost *out) {
  *out = (DevCost){0, 0, 0, -1};
  add_region(p->given_main->body, out, 1.0 / MAX(p->opts.partitions, 1), 0);
  for (int i = 0; i < p->n_args; i++) out->bytes_accessed += (double)dev_argument_bytes(p, i);
  for (int j = 0; j < p->n_results; j++) out->bytes_accessed += (double)dev_result_bytes(p, j);
}
