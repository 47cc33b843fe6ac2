/* Where slices, those whose place is computed as well, begin in what they are cut from. */
#include "dev/cpu/kernel/kernel.h"

int64_t cpu_window_offset(const Op *op, void *const *in, int first, const Type *whole,
                          const int64_t *window, const int64_t *strides) {
  int64_t off = 0;
  for (int i = 0; i < whole->rank; i++) {
    DType t = op->operands[first + i]->type->dtype;
    int64_t s = elem_get_i64(t, in[first + i]), top = whole->dims[i] - window[i];
    if (t == DT_U64 && s < 0) s = INT64_MAX;
    off += MAX(0, MIN(s, top)) * strides[i];
  }
  return off;
}

void *cpu_slice_start(const Op *op, void *const *in) {
  const Type *whole = op->operands[0]->type;
  int64_t s[CPU_MAX_RANK];
  cpu_strides(whole, s);
  int64_t b = dtype_bytes(op->operands[0]->type->dtype), off = 0;
  if (op->kind == OP_SLICE) {
    const int64_t *start;
    int n = op_ints(op, "start_indices", &start);
    for (int i = 0; i < n; i++) off += start[i] * s[i];
    return (char *)in[0] + off * b;
  }
  bool put = op->kind == OP_DYNAMIC_UPDATE_SLICE;
  const Type *part = put ? op->operands[1]->type : op_type(op);
  off = cpu_window_offset(op, in, put ? 2 : 1, whole, part->dims, s);
  return (char *)in[0] + off * b;
}
