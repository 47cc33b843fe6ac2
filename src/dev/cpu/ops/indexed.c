/* Where the windows of gather and scatter lie.
 *
 * The window of an index vector is cut into runs: trailing dimensions that are dense both in the
 * operand and on the other side (result of a gather, updates of a scatter). The offsets of the runs
 * within a window are two tables; what is left for an index vector is the place of its window on
 * both sides. */
#include "dev/cpu/ops/indexed.h"

#include "dev/cpu/kernel/clones.h"

static bool listed(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

void walk_free(void *state) {
  Walk *w = state;
  if (!w) return;
  free(w->at_operand);
  free(w->at_other);
  free(w);
}

Walk *walk_new(const Op *op, bool scatter, const Type *operand, const Type *indices,
               const Type *other) {
  Walk *w = xcalloc(1, sizeof *w);
  const int64_t *offset, *collapsed, *ob, *ib, *map, *sizes;
  int n_offset = op_ints(op, scatter ? "update_window_dims" : "offset_dims", &offset);
  int n_collapsed =
      op_ints(op, scatter ? "inserted_window_dims" : "collapsed_slice_dims", &collapsed);
  int n_ob = op_ints(op, scatter ? "input_batching_dims" : "operand_batching_dims", &ob);
  int n_ib =
      op_ints(op, scatter ? "scatter_indices_batching_dims" : "start_indices_batching_dims", &ib);
  int n_map = op_ints(op, scatter ? "scatter_dims_to_operand_dims" : "start_index_map", &map);
  int n_sizes = scatter ? 0 : op_ints(op, "slice_sizes", &sizes);
  int64_t ivd = op_int(op, "index_vector_dim", 0), istep[CPU_MAX_RANK], ostep[CPU_MAX_RANK];
  cpu_strides(operand, w->step);
  cpu_strides(indices, istep);
  cpu_strides(other, ostep);
  w->rank = operand->rank;
  w->type = operand->dtype, w->index = indices->dtype;
  w->n_vec = n_map;
  w->vec_step = ivd < indices->rank ? istep[ivd] : 0;
  for (int i = 0; i < n_map; i++) w->to_operand[i] = map[i];
  w->n = 1;
  for (int d = 0; d < indices->rank; d++) {
    if (d == ivd) continue;
    int b = w->n_batch++;
    w->batching[b] = -1;
    for (int i = 0; i < n_ib; i++)
      if (ib[i] == d) w->batching[b] = ob[i];
    w->batch[b] = indices->dims[d];
    w->batch_step[b] = istep[d];
    w->n *= indices->dims[d];
  }
  int64_t other_of[CPU_MAX_RANK]; /* operand dimension -> step of its window on the other side, 0
                                     when collapsed */
  int k = 0;
  for (int d = 0; d < w->rank; d++) {
    w->dims[d] = operand->dims[d];
    w->window[d] = d < n_sizes ? sizes[d] : 1;
    other_of[d] = 0;
    if (listed(collapsed, n_collapsed, d) || listed(ob, n_ob, d)) continue;
    if (scatter) w->window[d] = other->dims[offset[k]];
    other_of[d] = ostep[offset[k++]];
  }
  int64_t least_batch = 0;
  for (int d = 0, b = 0; d < other->rank; d++)
    if (!listed(offset, n_offset, d)) {
      w->other_step[b++] = ostep[d];
      if (other->dims[d] > 1) least_batch = ostep[d];
    }
  int kept = 0; /* batch dimensions of more than one */
  for (int b = 0; b < w->n_batch; b++) {
    if (w->batch[b] == 1) continue;
    w->batch[kept] = w->batch[b], w->batching[kept] = w->batching[b];
    w->batch_step[kept] = w->batch_step[b], w->other_step[kept++] = w->other_step[b];
  }
  w->n_batch = kept;
  w->aligned = true;
  for (int i = 0; i < n_map; i++) w->aligned &= w->window[map[i]] == 1;
  /* the runs */
  w->run = w->n_runs = 1;
  int last = w->rank - 1;
  for (; last >= 0; last--) {
    if (w->window[last] == 1) continue;
    if (w->step[last] != w->run || other_of[last] != w->run) break;
    w->run *= w->window[last];
  }
  for (int d = 0; d <= last; d++) w->n_runs *= w->window[d];
  w->at_operand = xmalloc(sizeof(int64_t) * (size_t)(w->n_runs + 1));
  w->at_other = xmalloc(sizeof(int64_t) * (size_t)(w->n_runs + 1));
  int64_t c[CPU_MAX_RANK] = {0}, from = 0, to = 0;
  for (int64_t i = 0; i < w->n_runs; i++) {
    w->at_operand[i] = from;
    w->at_other[i] = to;
    for (int d = last; d >= 0; d--) {
      from += w->step[d], to += other_of[d];
      if (++c[d] < w->window[d]) break;
      from -= c[d] * w->step[d], to -= c[d] * other_of[d];
      c[d] = 0;
    }
  }
  int64_t least_window = 0;
  for (int d = 0; d <= last; d++)
    if (w->window[d] > 1) least_window = other_of[d];
  w->window_first = least_window > least_batch;
  return w;
}

static inline int64_t index_at(DType t, const char *p, int64_t i) {
  switch (t) {
  case DT_I32: return ((const int32_t *)(const void *)p)[i];
  case DT_U32: return ((const uint32_t *)(const void *)p)[i];
  case DT_I64: return ((const int64_t *)(const void *)p)[i];
  case DT_U64: {
    uint64_t v = ((const uint64_t *)(const void *)p)[i];
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
  }
  default: return elem_get_i64(t, p + i * dtype_bytes(t));
  }
}

/* n windows along the innermost batch dimension: index vectors are `at_step` apart from `at` on, their
 * windows on the other side from `other` on; in the operand the batch selects a place, too. */
typedef struct Row {
  int64_t n, at, at_step, other, other_step, selected, selected_step;
} Row;

#define WINDOWS_BODY(GET)                                                                  \
  for (int64_t i = 0; i < r->n; i++) {                                                     \
    int64_t base = r->selected + i * r->selected_step;                                     \
    bool inside = true;                                                                    \
    for (int k = 0; k < n_vec; k++) {                                                      \
      int64_t j = r->at + i * r->at_step + k * w->vec_step, v = GET, d = w->to_operand[k], \
              most = w->dims[d] - w->window[d];                                            \
      if (clamp) v = v > most ? most : v, v = v < 0 ? 0 : v;                               \
      else inside &= v >= 0 && v <= most;                                                  \
      base += inside ? v * w->step[d] : 0;                                                 \
    }                                                                                      \
    from[i] = inside ? base : -1;                                                          \
    to[i] = r->other + i * r->other_step;                                                  \
  }
#define INLINE static inline __attribute__((always_inline))
INLINE void windows_i32(const Walk *w, const int32_t *x, int n_vec, bool clamp, const Row *r,
                        int64_t *from, int64_t *to) {
  WINDOWS_BODY(x[j])
}

static void windows_row(const Walk *w, const char *indices, bool clamp, const Row *r, int64_t *from,
                        int64_t *to) {
  const int32_t *x = (const int32_t *)(const void *)indices;
  int n_vec = w->n_vec;
  if (w->index == DT_I32 && n_vec == 1) windows_i32(w, x, 1, clamp, r, from, to);
  else if (w->index == DT_I32 && n_vec == 2) windows_i32(w, x, 2, clamp, r, from, to);
  else if (w->index == DT_I32) windows_i32(w, x, n_vec, clamp, r, from, to);
  else WINDOWS_BODY(index_at(w->index, indices, j))
}

void walk_windows(const Walk *w, const char *indices, bool clamp, int64_t begin, int64_t end,
                  int64_t *from, int64_t *to) {
  int64_t c[CPU_MAX_RANK], rest = begin;
  for (int b = w->n_batch - 1; b >= 0; b--) {
    c[b] = rest % w->batch[b];
    rest /= w->batch[b];
  }
  int last = w->n_batch - 1;
  for (int64_t i = begin; i < end;) {
    Row r = {.n = last < 0 ? 1 : MIN(end - i, w->batch[last] - c[last])};
    for (int b = 0; b <= last; b++) {
      int64_t place = w->batching[b] >= 0 ? w->step[w->batching[b]] : 0;
      r.at_step = w->batch_step[b], r.other_step = w->other_step[b], r.selected_step = place;
      r.at += c[b] * r.at_step, r.other += c[b] * r.other_step, r.selected += c[b] * place;
    }
    windows_row(w, indices, clamp, &r, from + (i - begin), to + (i - begin));
    i += r.n;
    if (last >= 0) c[last] = 0;
    for (int b = last - 1; b >= 0 && ++c[b] == w->batch[b]; b--) c[b] = 0;
  }
}

bool walk_is_simple(const Walk *w) {
  bool known = w->index == DT_I32 || w->index == DT_U32 || w->index == DT_I64;
  if (w->n_runs != 1 || w->n_vec < 1 || w->n_vec > 2 || !known) return false;
  int64_t count = 1, vectors = 1;
  for (int d = 0; d < w->rank; d++) count *= w->dims[d];
  for (int b = w->n_batch - 1; b >= 0; b--) {
    bool dense = w->batch_step[b] == vectors * w->n_vec && w->other_step[b] == vectors * w->run;
    if (w->batch[b] > 1 && !dense) return false;
    vectors *= w->batch[b];
  }
  return count <= INT32_MAX && (w->n_vec == 1 || w->vec_step == 1);
}

/* Indices as 32-bit numbers; those that are too large for that are outside of every operand. */
CLONES static void narrow_i64(const int64_t *x, int64_t n, int32_t *to) {
  for (int64_t i = 0; i < n; i++)
    to[i] = x[i] > INT32_MAX ? INT32_MAX : x[i] < -1 ? -1 : (int32_t)x[i];
}
CLONES static void narrow_u32(const uint32_t *x, int64_t n, int32_t *to) {
  for (int64_t i = 0; i < n; i++) to[i] = x[i] > INT32_MAX ? INT32_MAX : (int32_t)x[i];
}

CLONES static void simple_one(const int32_t *x, int32_t top, int32_t step, bool clamp, int64_t n,
                              int32_t *at) {
  if (clamp)
    for (int64_t i = 0; i < n; i++) {
      int32_t v = x[i] > top ? top : x[i];
      at[i] = (v < 0 ? 0 : v) * step;
    }
  else
    for (int64_t i = 0; i < n; i++)
      at[i] = (uint32_t)x[i] > (uint32_t)top ? -1 : (int32_t)((uint32_t)x[i] * (uint32_t)step);
}

CLONES static void simple_two(const int32_t *x, const int32_t *top, const int32_t *step, bool clamp,
                              int64_t n, int32_t *at) {
  const int32_t t0 = top[0], t1 = top[1], s0 = step[0], s1 = step[1];
  for (int64_t i = 0; i < n; i++) {
    int32_t a = x[2 * i], b = x[2 * i + 1];
    if (clamp) {
      a = a > t0 ? t0 : a, b = b > t1 ? t1 : b;
      a = a < 0 ? 0 : a, b = b < 0 ? 0 : b;
    }
    bool in = (uint32_t)a <= (uint32_t)t0 && (uint32_t)b <= (uint32_t)t1;
    int32_t v = (int32_t)((uint32_t)a * (uint32_t)s0 + (uint32_t)b * (uint32_t)s1);
    at[i] = in ? v : -1;
  }
}

/* What the batch selects in the operand is added: row by row of the innermost batch dimension. */
CLONES static void add_batch(int32_t first, int32_t step, int64_t n, int32_t *at) {
  for (int64_t i = 0; i < n; i++) at[i] += at[i] < 0 ? 0 : first + (int32_t)i * step;
}

static void add_batches(const Walk *w, int64_t begin, int64_t end, int32_t *at) {
  int last = w->n_batch - 1;
  for (int64_t i = begin, n; i < end; i += n) {
    int64_t c = i % w->batch[last], rest = i / w->batch[last], first = 0;
    n = MIN(end - i, w->batch[last] - c);
    for (int b = last - 1; b >= 0; b--) {
      if (w->batching[b] >= 0) first += rest % w->batch[b] * w->step[w->batching[b]];
      rest /= w->batch[b];
    }
    int64_t step = w->batching[last] >= 0 ? w->step[w->batching[last]] : 0;
    add_batch((int32_t)(first + c * step), (int32_t)step, n, at + (i - begin));
  }
}

void walk_simple(const Walk *w, const char *indices, bool clamp, int64_t begin, int64_t end,
                 int32_t *at) {
  int32_t top[2], step[2], narrow[2 * SIMPLE_BATCH];
  int64_t first = begin * w->n_vec, n = (end - begin) * w->n_vec;
  const int32_t *x = narrow;
  assert(n <= COUNT_OF(narrow));
  if (w->index == DT_I64) narrow_i64((const int64_t *)(const void *)indices + first, n, narrow);
  else if (w->index == DT_U32)
    narrow_u32((const uint32_t *)(const void *)indices + first, n, narrow);
  else x = (const int32_t *)(const void *)indices + first;
  for (int k = 0; k < w->n_vec; k++) {
    int64_t d = w->to_operand[k];
    top[k] = (int32_t)(w->dims[d] - w->window[d]), step[k] = (int32_t)w->step[d];
  }
  if (w->n_vec == 1) simple_one(x, top[0], step[0], clamp, end - begin, at);
  else simple_two(x, top, step, clamp, end - begin, at);
  bool batching = false;
  for (int b = 0; b < w->n_batch; b++) batching |= w->batching[b] >= 0;
  if (batching) add_batches(w, begin, end, at);
}

typedef struct Copy {
  const char *in;
  char *out;
} Copy;

static void copy(void *arg, int64_t begin, int64_t end) {
  const Copy *c = arg;
  memcpy(c->out + begin, c->in + begin, (size_t)(end - begin));
}

void copy_sums(const Op *op, void *const *in, void *const *out) {
  const Type *t = op_type(op);
  Copy c = {in[0], out[0]};
  if (c.in != c.out) cpu_parallel(type_count(t) * dtype_bytes(t->dtype), 1 << 20, copy, &c);
}
