/* Kernels that move elements: transpose, slice, reverse, broadcast, concatenate, pad,
 * dynamic_slice, dynamic_update_slice; and the strided gather they share. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/ops/turns.h"

/* ---- strided gather ---- */

typedef struct Permute {
  size_t bytes;
  int rank;
  int64_t dims[CPU_MAX_RANK], strides[CPU_MAX_RANK];
  int tile; /* the dimension that is contiguous in the input, when it is not the last: tiles of it
               and the last; -1 */
  int64_t inner; /* elements below the outermost dimension */
  int block;     /* the dimensions from here on are a small block, dense in the input, too; -1 */
  int64_t size;  /* its elements */
  uint8_t from[TURN_BLOCK];
  const char *in;
  char *out;
} Permute;

#define LINE 64 /* elements: whole squares for each thread (turns.c) */

#define ROW(T)                                              \
  case sizeof(T): {                                         \
    const T *s = (const T *)src;                            \
    T *d = (T *)dst;                                        \
    if (stride == 0)                                        \
      for (int64_t i = 0; i < n; i++) d[i] = s[0];          \
    else if (stride == -1)                                  \
      for (int64_t i = 0; i < n; i++) d[i] = s[-i];         \
    else if (stride == 2)                                   \
      for (int64_t i = 0; i < n; i++) d[i] = s[2 * i];      \
    else                                                    \
      for (int64_t i = 0; i < n; i++) d[i] = s[i * stride]; \
    return;                                                 \
  }

CLONES static void copy_row(size_t bytes, int64_t n, int64_t stride, const char *src, char *dst) {
  if (stride == 1) {
    size_t all = (size_t)n * bytes, at = 0;
    if (all > 512) {
      memcpy(dst, src, all);
      return;
    }
    for (; at + 32 <= all; at += 32) memcpy(dst + at, src + at, 32); /* without a call */
    for (; at + 4 <= all; at += 4) memcpy(dst + at, src + at, 4);
    for (; at < all; at++) dst[at] = src[at];
    return;
  }
  switch (bytes) {
    ROW(uint8_t)
    ROW(uint16_t)
    ROW(uint32_t)
    ROW(uint64_t)
  default:
    for (int64_t i = 0; i < n; i++)
      memcpy(dst + (size_t)i * bytes, src + i * stride * (int64_t)bytes, bytes);
  }
}

/* Dimensions k .. rank - 1; out dense. Skips the tiled dimension, which the innermost call handles.
 */
static void walk(const Permute *p, int k, const char *in, char *out, const int64_t *out_strides) {
  int last = p->rank - 1;
  int64_t b = (int64_t)p->bytes;
  if (k + 1 == p->block) {
    turn_blocks(p->bytes, p->dims[k], p->size, p->from, p->strides[k], in, out);
    return;
  }
  if (k == p->tile) {
    walk(p, k + 1, in, out, out_strides);
    return;
  }
  if (k == last) {
    if (p->tile < 0) copy_row(p->bytes, p->dims[k], p->strides[k], in, out);
    else
      turn_plane(p->bytes, p->dims[p->tile], p->dims[last], out_strides[p->tile], p->strides[last],
                 in, out);
    return;
  }
  for (int64_t i = 0; i < p->dims[k]; i++)
    walk(p, k + 1, in + i * p->strides[k] * b, out + i * out_strides[k] * b, out_strides);
}

static void permute_range(void *arg, int64_t begin, int64_t end) {
  Permute p = *(const Permute *)arg;
  int64_t os[CPU_MAX_RANK], s = 1;
  for (int k = p.rank - 1; k >= 0; k--) {
    os[k] = s;
    s *= p.dims[k];
  }
  p.in += begin * p.strides[0] * (int64_t)p.bytes;
  p.out += begin * os[0] * (int64_t)p.bytes;
  p.dims[0] = end - begin;
  walk(&p, 0, p.in, p.out, os);
}

/* The bytes of a gather of one run, -1: there are more. */
static int64_t one_run(size_t bytes, int rank, const int64_t *dims, const int64_t *strides) {
  int64_t run = 1;
  for (int i = rank - 1; i >= 0; i--) {
    if (dims[i] == 1) continue;
    if (strides[i] != run) return -1;
    run *= dims[i];
  }
  return run * (int64_t)bytes;
}

/* Do the innermost dimensions cut both sides into the same small blocks? */
static void find_blocks(Permute *p) {
  int64_t size = 1;
  p->block = -1;
  for (int k = p->rank - 1; k > 0 && (size *= p->dims[k]) <= TURN_BLOCK; k--) {
    int64_t most = 0;
    bool forward = true;
    for (int i = k; i < p->rank; i++) {
      most += p->strides[i] * (p->dims[i] - 1);
      forward &= p->strides[i] > 0;
    }
    if (!forward || most != size - 1 || k == p->rank - 1) continue;
    bool seen[TURN_BLOCK] = {0}, dense = true;
    for (int64_t j = 0; j < size; j++) {
      int64_t rest = j, at = 0;
      for (int i = p->rank - 1; i >= k; rest /= p->dims[i--])
        at += rest % p->dims[i] * p->strides[i];
      dense &= !seen[at];
      seen[at] = true;
      p->from[j] = (uint8_t)at;
    }
    if (!dense || p->dims[k - 1] < 4) continue;
    p->block = k;
    p->size = size;
    return;
  }
}

void cpu_permute(size_t bytes, int rank, const int64_t *dims, const int64_t *strides,
                 const void *in, void *out) {
  int64_t run = one_run(bytes, rank, dims, strides);
  if (run >= 0 && run < 1 << 20) {
    memcpy(out, in, (size_t)run);
    return;
  }
  Permute p = {.bytes = bytes, .tile = -1, .in = in, .out = out};
  int64_t total = 1;
  for (int i = 0; i < rank; i++) {
    total *= dims[i];
    if (dims[i] == 1) continue;
    int k = p.rank;
    if (k && p.strides[k - 1] == strides[i] * dims[i]) { /* one run */
      p.dims[k - 1] *= dims[i];
      p.strides[k - 1] = strides[i];
      continue;
    }
    p.dims[k] = dims[i];
    p.strides[k] = strides[i];
    p.rank++;
  }
  if (total == 0) return;
  if (p.strides[p.rank - 1] != 1 && p.strides[p.rank - 1] != 0)
    for (int k = 0; k < p.rank - 1; k++)
      if (p.strides[k] == 1) p.tile = k;
  find_blocks(&p);
  if (p.block > 0) p.tile = -1;
  p.inner = total / p.dims[0];
  int64_t grain = MAX(1, 65536 / MAX(1, p.inner));
  if (p.tile == 0) grain = (grain + LINE - 1) / LINE * LINE;
  cpu_parallel(p.dims[0], total < 65536 ? p.dims[0] : grain, permute_range, &p);
}

/* ---- kernels ---- */

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

/* n pieces of `bytes` bytes, in_step and out_step bytes apart. */
#define PIECES(T)                                                                            \
  case sizeof(T):                                                                            \
    for (int64_t i = 0; i < n; i++) memcpy(out + i * out_step, in + i * in_step, sizeof(T)); \
    return;

static void copy_pieces(size_t bytes, int64_t n, const char *in, int64_t in_step, char *out,
                        int64_t out_step) {
  switch (bytes) {
    PIECES(uint8_t)
    PIECES(uint16_t)
    PIECES(uint32_t)
    PIECES(uint64_t)
  default:
    for (int64_t i = 0; i < n; i++) memcpy(out + i * out_step, in + i * in_step, bytes);
  }
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
      copy_pieces((size_t)part, end - begin, (const char *)c->in[k] + begin * part, part,
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
    copy_pieces(bytes, dims[0], in, is[0] * b, out, os[0] * b);
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

/* Start indices, clamped so that the window stays inside; the element offset. */
static int64_t start_of(const Op *op, void *const *in, int first, const Type *whole,
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
  int64_t b = (int64_t)elem_bytes(op->operands[0]), off = 0;
  if (op->kind == OP_SLICE) {
    const int64_t *start;
    int n = op_ints(op, "start_indices", &start);
    for (int i = 0; i < n; i++) off += start[i] * s[i];
    return (char *)in[0] + off * b;
  }
  bool put = op->kind == OP_DYNAMIC_UPDATE_SLICE;
  const Type *part = put ? op->operands[1]->type : op_type(op);
  off = start_of(op, in, put ? 2 : 1, whole, part->dims, s);
  return (char *)in[0] + off * b;
}

static Err *run_dynamic_slice(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *from = op->operands[0]->type, *to = op_type(op);
  int64_t s[CPU_MAX_RANK];
  cpu_strides(from, s);
  int64_t off = start_of(op, in, 1, from, to->dims, s);
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
  int64_t off = start_of(op, in, 2, whole, part->dims, s);
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
