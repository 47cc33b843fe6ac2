/* Kernels that move elements: transpose, slice, reverse, broadcast, concatenate, pad,
 * dynamic_slice, dynamic_update_slice. Most are a strided gather (permute.c). */
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/turns.h"

static size_t elem_bytes(const Value *v) { return (size_t)dtype_bytes(v->type->dtype); }

static Err *run_transpose(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *perm;
  int64_t s[CPU_MAX_RANK], strides[CPU_MAX_RANK];
  op_ints(op, "permutation", &perm);
  cpu_strides(from, s);
  for (int i = 0; i < to->rank; i++) strides[i] = s[perm[i]];
  cpu_permute(elem_bytes(op->operands[0]), to->rank, to->dims, strides, in[0], out[0]);
  return NULL;
}

static Err *run_broadcast(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *map;
  int64_t s[CPU_MAX_RANK], strides[CPU_MAX_RANK] = {0};
  op_ints(op, "broadcast_dimensions", &map);
  cpu_strides(from, s);
  for (int i = 0; i < from->rank; i++)
    if (from->dims[i] != 1) strides[map[i]] = s[i];
  cpu_permute(elem_bytes(op->operands[0]), to->rank, to->dims, strides, in[0], out[0]);
  return NULL;
}

static Err *run_slice(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *start, *step;
  int64_t s[CPU_MAX_RANK], strides[CPU_MAX_RANK], off = 0;
  op_ints(op, "start_indices", &start);
  op_ints(op, "strides", &step);
  cpu_strides(from, s);
  for (int i = 0; i < to->rank; i++) {
    off += start[i] * s[i];
    strides[i] = s[i] * step[i];
  }
  size_t b = elem_bytes(op->operands[0]);
  cpu_permute(b, to->rank, to->dims, strides, (const char *)in[0] + off * (int64_t)b, out[0]);
  return NULL;
}

static Err *run_reverse(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *to = op_type(op);
  const int64_t *dims;
  int64_t s[CPU_MAX_RANK], off = 0;
  int n = op_ints(op, "dimensions", &dims);
  cpu_strides(to, s);
  if (type_count(to) == 0) return NULL;
  for (int i = 0; i < n; i++) {
    off += (to->dims[dims[i]] - 1) * s[dims[i]];
    s[dims[i]] = -s[dims[i]];
  }
  size_t b = elem_bytes(op->operands[0]);
  cpu_permute(b, to->rank, to->dims, s, (const char *)in[0] + off * (int64_t)b, out[0]);
  return NULL;
}

typedef struct Concat {
  const Op *op;
  void *const *in;
  char *out;
  int64_t row, inner, dim; /* bytes of a row of the result, of one place along the dimension */
} Concat;

/* Rows of operand i go to their place in each outer row of the result. */
static void concat_rows(void *arg, int64_t begin, int64_t end) {
  const Concat *c = arg;
  int64_t off = 0;
  for (int k = 0; k < c->op->n_operands; k++) {
    int64_t part = c->inner * c->op->operands[k]->type->dims[c->dim];
    if (part)
      cpu_copy_rows(part, end - begin, (const char *)c->in[k] + begin * part, part,
                    c->out + begin * c->row + off, c->row);
    off += part;
  }
}

static Err *run_concatenate(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *to = op_type(op);
  int64_t dim = op_int(op, "dimension", 0), outer = 1, inner = (int64_t)elem_bytes(&op->results[0]);
  for (int i = 0; i < to->rank; i++) *(i < dim ? &outer : &inner) *= i == dim ? 1 : to->dims[i];
  Concat c = {op, in, out[0], inner * to->dims[dim], inner, dim};
  cpu_parallel(outer, MAX(1, 262144 / MAX(1, c.row)), concat_rows, &c);
  return NULL;
}

/* Copies a box of `dims` elements between two strided arrays. */
static void copy_box(size_t bytes, int rank, const int64_t *dims, const char *in, const int64_t *is,
                     char *out, const int64_t *os) {
  for (int i = 0; i < rank; i++)
    if (dims[i] == 0) return;
  int64_t b = (int64_t)bytes;
  if (rank == 0) {
    memcpy(out, in, bytes);
  } else if (rank == 1 && is[0] == 1 && os[0] == 1) {
    memcpy(out, in, (size_t)dims[0] * bytes);
  } else if (rank == 1) {
    cpu_copy_rows(b, dims[0], in, is[0] * b, out, os[0] * b);
  } else if (rank == 2 && is[1] == 1 && os[1] == 1) {
    cpu_copy_rows(dims[1] * b, dims[0], in, is[0] * b, out, os[0] * b);
  } else {
    for (int64_t i = 0; i < dims[0]; i++)
      copy_box(bytes, rank - 1, dims + 1, in + i * is[0] * b, is + 1, out + i * os[0] * b, os + 1);
  }
}

static Err *run_pad(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *from = op->operands[0]->type, *to = op_type(op);
  const int64_t *lo, *step;
  op_ints(op, "edge_padding_low", &lo);
  op_ints(op, "interior_padding", &step);
  size_t b = elem_bytes(&op->results[0]);
  int64_t zero[CPU_MAX_RANK] = {0}, fs[CPU_MAX_RANK], ts[CPU_MAX_RANK], dims[CPU_MAX_RANK],
          from_off = 0, to_off = 0;
  cpu_permute(b, to->rank, to->dims, zero, in[1], out[0]);
  cpu_strides(from, fs);
  cpu_strides(to, ts);
  for (int i = 0; i < to->rank; i++) {
    int64_t gap = step[i] + 1, first = lo[i] < 0 ? (-lo[i] + gap - 1) / gap
                                                 : 0; /* elements cut off by negative padding */
    int64_t room = to->dims[i] - 1 - lo[i], last = room < 0 ? -1 : room / gap;
    dims[i] = MIN(from->dims[i] - 1, last) - first + 1;
    if (dims[i] <= 0) return NULL;
    from_off += first * fs[i];
    to_off += (lo[i] + first * gap) * ts[i];
    ts[i] *= gap;
  }
  copy_box(b, to->rank, dims, (const char *)in[0] + from_off * (int64_t)b, fs,
           (char *)out[0] + to_off * (int64_t)b, ts);
  return NULL;
}

static Err *run_dynamic_slice(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *from = op->operands[0]->type, *to = op_type(op);
  int64_t s[CPU_MAX_RANK];
  cpu_strides(from, s);
  int64_t off = cpu_window_offset(op, in, 1, from, to->dims, s);
  size_t b = elem_bytes(&op->results[0]);
  cpu_permute(b, to->rank, to->dims, s, (const char *)in[0] + off * (int64_t)b, out[0]);
  return NULL;
}

static Err *run_dynamic_update_slice(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *whole = op_type(op), *part = op->operands[1]->type;
  int64_t s[CPU_MAX_RANK], ps[CPU_MAX_RANK];
  size_t b = elem_bytes(&op->results[0]);
  if (in[0] != out[0] && type_count(whole)) {
    int64_t n = (int64_t)((size_t)type_count(whole)), one = 1;
    cpu_permute(b, 1, &n, &one, in[0], out[0]);
  }
  cpu_strides(whole, s);
  cpu_strides(part, ps);
  int64_t off = cpu_window_offset(op, in, 2, whole, part->dims, s);
  copy_box(b, part->rank, part->dims, in[1], ps, (char *)out[0] + off * (int64_t)b, s);
  return NULL;
}

static Err *run_copy(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  for (int i = 0; i < op->n_results; i++)
    if (op->results[i].type->kind == TY_TENSOR && in[i] != out[i])
      memcpy(out[i], in[i], (size_t)type_bytes(op->results[i].type));
  return NULL;
}

const CpuKernel cpu_kernels_move[] = {
    {.name = "transpose", .kind = OP_TRANSPOSE, .run = run_transpose},
    {.name = "broadcast", .kind = OP_BROADCAST_IN_DIM, .run = run_broadcast},
    {.name = "slice", .kind = OP_SLICE, .run = run_slice},
    {.name = "reverse", .kind = OP_REVERSE, .run = run_reverse},
    {.name = "concatenate", .kind = OP_CONCATENATE, .run = run_concatenate},
    {.name = "pad", .kind = OP_PAD, .run = run_pad},
    {.name = "dynamic_slice", .kind = OP_DYNAMIC_SLICE, .run = run_dynamic_slice},
    {.name = "dynamic_update_slice",
     .kind = OP_DYNAMIC_UPDATE_SLICE,
     .run = run_dynamic_update_slice,
     .in_place = 1},
    {.name = "copy", .kind = OP_COPY, .run = run_copy},
    {.name = "copy", .kind = OP_RESHAPE, .run = run_copy},
    {0},
};
