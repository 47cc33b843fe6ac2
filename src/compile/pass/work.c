#include "compile/pass/work.h"

static double elements(const Type *t) {
  return t->kind == TY_TENSOR && type_is_static(t) ? (double)type_count(t) : 0;
}

double op_contraction(const Op *op) {
  const Type *a = op->operands[0]->type, *b = op->operands[1]->type;
  double k = 1;
  const int64_t *dims;
  if (op->kind == OP_CONVOLUTION) { /* the kernel's elements over its output features */
    int64_t o = op_int(op, "kernel_output_feature_dimension", 0);
    return o >= 0 && o < b->rank && b->dims[o] > 0 ? elements(b) / (double)b->dims[o] : 0;
  }
  int n = op_ints(op, "lhs_contracting_dimensions", &dims);
  for (int i = 0; i < n; i++)
    if (dims[i] >= 0 && dims[i] < a->rank) k *= (double)a->dims[dims[i]];
  return k;
}

static double op_work(const Op *op) {
  double made = 0;
  OpClass c = op_info[op->kind].cls;
  for (int i = 0; i < op->n_results; i++) made += elements(op->results[i].type);
  if (c == OC_CONTRACT) made *= MAX(op_contraction(op), 1);
  for (int i = 0; i < op->n_operands && c == OC_REDUCE; i++)
    made += elements(op->operands[i]->type);
  return made;
}

double region_work(const Region *r, int processes) {
  double work = 0;
  for (const Op *op = r->first; op; op = op->next) {
    work += op_work(op);
    for (int i = 0; i < op->n_regions; i++)
      work += region_work(op->regions[i], 1) * (op->kind == OP_MANUAL_COMPUTATION ? processes : 1);
  }
  return work;
}
