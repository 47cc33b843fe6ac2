/* Collectives that only move values: a member's result is boxes of the members' operands, side by side. Each is
 * copied from where it is to where it goes, in runs that lie together in both. */
#include "dev/cpu/cpu_priv.h"

#include "dev/meet.h"

#define GRAIN_BYTES 65536 /* of a task */

typedef struct Box { /* a part of one dense array that becomes a part of another */
  char *to;
  const char *from;
  int rank;
  int64_t dims[CPU_MAX_RANK], to_step[CPU_MAX_RANK], from_step[CPU_MAX_RANK]; /* in bytes */
  int64_t run; /* bytes that lie together */
} Box;

/* The last dimensions of the box as one run, as far as both arrays have them so. */
static void join_runs(Box *b) {
  while (b->rank && b->to_step[b->rank - 1] == b->run && b->from_step[b->rank - 1] == b->run)
    b->run *= b->dims[--b->rank];
}

static void steps_of(const Type *t, int64_t *steps) {
  int64_t step = dtype_bytes(t->dtype);
  for (int d = t->rank - 1; d >= 0; d--) steps[d] = step, step *= t->dims[d];
}

static void copy_runs(void *arg, int64_t begin, int64_t end) {
  const Box *b = arg;
  for (int64_t i = begin; i < end; i++) {
    int64_t rest = i, to = 0, from = 0;
    for (int d = b->rank - 1; d >= 0; d--) {
      int64_t at = rest % b->dims[d];
      rest /= b->dims[d];
      to += at * b->to_step[d];
      from += at * b->from_step[d];
    }
    memcpy(b->to + to, b->from + from, (size_t)b->run);
  }
}

static void copy_box(Box *b) {
  join_runs(b);
  int64_t runs = 1;
  for (int d = 0; d < b->rank; d++) runs *= b->dims[d];
  if (!b->run || !runs) return;
  if (runs == 1 && b->run > 2 * GRAIN_BYTES) { /* one run, by several */
    b->rank = 1;
    b->dims[0] = runs = b->run / GRAIN_BYTES;
    b->to_step[0] = b->from_step[0] = GRAIN_BYTES;
    int64_t done = runs * GRAIN_BYTES, rest = b->run - done;
    if (rest) memcpy(b->to + done, b->from + done, (size_t)rest);
    b->run = GRAIN_BYTES;
  }
  cpu_parallel(runs, MAX(GRAIN_BYTES / b->run, 1), copy_runs, b);
}

/* The box of `source` that begins at from_at along from_dim, to where to_at is along to_dim of `result`. */
static void move(const Type *source, const void *from, int from_dim, int64_t from_at,
                 const Type *result, void *to, int to_dim, int64_t to_at, const int64_t *dims) {
  Box b = {.rank = source->rank, .run = dtype_bytes(source->dtype)};
  memcpy(b.dims, dims, sizeof *dims * (size_t)b.rank);
  steps_of(source, b.from_step);
  steps_of(result, b.to_step);
  b.from = (const char *)from + (b.rank ? from_at * b.from_step[from_dim] : 0);
  b.to = (char *)to + (b.rank ? to_at * b.to_step[to_dim] : 0);
  copy_box(&b);
}

/* Has another member the same room for its result? Then it is filled already. */
static bool is_filled(void *const *out, int k) {
  for (int i = 0; i < k; i++)
    if (out[i] == out[k]) return true;
  return !out[k];
}

static void gather(const Type *t, const Type *r, int dim, int n, void *const *in,
                   void *const *out) {
  for (int k = 0; k < n; k++)
    for (int j = 0; j < n && !is_filled(out, k); j++)
      move(t, in[j], dim, 0, r, out[k], dim, j * t->dims[dim], t->dims);
}

static void exchange(const Op *op, const Type *t, const Type *r, int n, void *const *in,
                     void *const *out) {
  int split = (int)op_int(op, "split_dimension", 0),
      concat = (int)op_int(op, "concat_dimension", 0);
  int64_t dims[CPU_MAX_RANK];
  memcpy(dims, t->dims, sizeof *dims * (size_t)t->rank);
  dims[split] /= n;
  for (int k = 0; k < n; k++)
    for (int j = 0; j < n && !is_filled(out, k); j++)
      move(t, in[j], split, k * dims[split], r, out[k], concat, j * dims[concat], dims);
}

static bool is_dim(int64_t d, const Type *t) { return d >= 0 && d < t->rank; }

/* Are these the shapes that the operation makes of n members' operands? */
static bool fits(const Op *op, const Type *t, const Type *r, int n) {
  if (t->kind != TY_TENSOR || t->rank != r->rank || t->rank > CPU_MAX_RANK || t->dtype != r->dtype)
    return false;
  bool gathers = op->kind == OP_ALL_GATHER;
  int64_t less = gathers ? -1 : op_int(op, "split_dimension", -1),
          more = op_int(op, gathers ? "all_gather_dim" : "concat_dimension", -1);
  if (!is_dim(more, t) || (!gathers && (!is_dim(less, t) || t->dims[less] % n))) return false;
  for (int d = 0; d < t->rank; d++)
    if (r->dims[d] != t->dims[d] / (d == less ? n : 1) * (d == more ? n : 1)) return false;
  return true;
}

bool coll_move(const Op *op, int n, void *const *in, void *const *out) {
  if (op->kind != OP_ALL_GATHER && op->kind != OP_ALL_TO_ALL) return false;
  for (int i = 0; i < op->n_operands; i++)
    if (!fits(op, op->operands[i]->type, op->results[i].type, n)) return false;
  for (int i = 0; i < op->n_operands; i++) {
    const Type *t = op->operands[i]->type, *r = op->results[i].type;
    if (op->kind == OP_ALL_TO_ALL) exchange(op, t, r, n, in + i * n, out + i * n);
    else gather(t, r, (int)op_int(op, "all_gather_dim", 0), n, in + i * n, out + i * n);
  }
  return true;
}
