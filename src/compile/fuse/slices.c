/* Slices that are read where they lie: one run of the whole, begun where kernels like it, and read by
 * steps that take an address. */
#include <stdlib.h>

#include "compile/fuse/fuse.h"
#include "compile/pass/query.h"

#define LEAST_VIEW 1024 /* bytes; fewer are copied as fast as addresses are changed */
#define VIEW_ALIGN 64

/* Are the part's elements one run? *unit: bytes of a row of the dimension that it is cut in. */
static bool is_run(const Type *whole, const Type *part, int64_t *unit) {
  int k = 0, rank = part->rank;
  while (k < rank && part->dims[k] == 1) k++;
  for (int i = k + 1; i < rank; i++)
    if (part->dims[i] != whole->dims[i]) return false;
  *unit = dtype_bytes(part->dtype);
  for (int i = MAX(k, 1); i < rank; i++)
    if (i > k || part->dims[i] == whole->dims[i]) *unit *= whole->dims[i];
  return dtype_bits(part->dtype) >= 8 && type_bytes(part) >= LEAST_VIEW;
}

bool slice_is_aligned_run(const Type *whole, const Type *part) {
  int64_t unit;
  return is_run(whole, part, &unit) && unit % VIEW_ALIGN == 0;
}

bool value_is_read_by_steps(const Region *r, const Value *v) {
  for (const Op *x = r->first; x; x = x->next) {
    for (int i = 0; i < x->n_operands; i++) {
      if (x->operands[i] != v) continue;
      bool one_step = x != r->last && !x->n_regions && op_info[x->kind].cls != OC_COLLECTIVE;
      if (!one_step || (op_is_alias(x) && !value_is_read_by_steps(r, &x->results[0]))) return false;
    }
    Value **cap;
    int n = x->n_regions ? op_captures(x, &cap) : 0;
    bool inside = false;
    for (int i = 0; i < n; i++) inside |= cap[i] == v;
    if (x->n_regions) free(cap);
    if (inside) return false;
  }
  return true;
}

/* One run that begins where kernels like it. */
static bool is_aligned_slice(const Op *op) {
  const Type *whole = op->operands[0]->type;
  const int64_t *start, *step;
  int n = op_ints(op, "start_indices", &start), m = op_ints(op, "strides", &step);
  for (int i = 0; i < m; i++)
    if (step[i] != 1) return false;
  int64_t offset = 0, unit = dtype_bytes(whole->dtype), row;
  for (int i = n - 1; i >= 0; i--) {
    offset += start[i] * unit;
    unit *= whole->dims[i];
  }
  return offset % VIEW_ALIGN == 0 && is_run(whole, op_type(op), &row);
}

bool op_is_part_of_argument(const Op *op) {
  return op->kind == OP_SLICE && !op->parent->parent && !op->operands[0]->def &&
         op->operands[0]->region == op->parent && type_is_static(op->operands[0]->type) &&
         is_aligned_slice(op) && value_is_read_by_steps(op->parent, &op->results[0]);
}
