/* gather and scatter by runs of memory.
 *
 * The window of an index vector is cut into runs: trailing dimensions that are dense both in the
 * operand and on the other side (result of a gather, updates of a scatter). The offsets of the runs
 * within a window are two tables; what is left for an index vector is the place of its window on
 * both sides.
 *
 * A scatter whose windows are either equal or disjoint (every indexed dimension has window size 1:
 * rows, single elements) divides the operand's places into parts: the updates are put in order of
 * the parts, those of a part stay in the order they have, so the sums do not depend on the number
 * of threads. */
#include "dev/cpu/clones.h"
#include "dev/cpu/kernel.h"

typedef struct Walk {
  int rank, n_vec, n_batch;
  int64_t dims[CPU_MAX_RANK], step[CPU_MAX_RANK],
      window[CPU_MAX_RANK]; /* operand; window size 1 where collapsed */
  int64_t vec_step, to_operand[CPU_MAX_RANK];
  int64_t batch[CPU_MAX_RANK], batch_step[CPU_MAX_RANK],
      other_step[CPU_MAX_RANK];   /* of the indices' batch dimensions */
  int64_t batching[CPU_MAX_RANK]; /* the operand dimension that a batch dimension selects, -1 */
  int64_t n, run, n_runs;         /* index vectors; elements of a run; runs of a window */
  int64_t *at_operand, *at_other; /* runs within a window */
  bool aligned;                   /* windows are equal or disjoint */
  bool window_first; /* on the other side the window's runs are further apart than the index vectors
                      */
  DType index, type;
  OpKind combine; /* scatter; OP_RETURN: replace */
} Walk;

static bool listed(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static void walk_free(void *state) {
  Walk *w = state;
  if (!w) return;
  free(w->at_operand);
  free(w->at_other);
  free(w);
}

static Walk *walk_new(const Op *op, bool scatter, const Type *operand, const Type *indices,
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

/* Where index vectors begin .. end - 1 have their windows. clamp: moved into the operand; else
 * from[i] is -1 when the window is not inside as a whole. */
static void windows(const Walk *w, const char *indices, bool clamp, int64_t begin, int64_t end,
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

#define BATCH 256   /* index vectors at a time */
#define MAX_PARTS 8 /* of the operand of a scatter */
#define SMALL_WINDOW 64

typedef struct Run {
  const Walk *w;
  const char *indices;
  const char *in;
  char *out;
  int64_t *from, *to;           /* of all index vectors */
  int64_t first[MAX_PARTS + 1]; /* scatter: of the windows in each part of the operand */
} Run;

/* ---- gather ---- */

#define COPIES(T)                                          \
  case sizeof(T): {                                        \
    const T *s = (const T *)(const void *)in;              \
    T *d = (T *)(void *)out;                               \
    for (int64_t i = 0; i < n; i++) d[to[i]] = s[from[i]]; \
    return;                                                \
  }

/* n runs of `bytes` bytes, at offsets in units of `unit` bytes. */
static void copy_runs(size_t unit, size_t bytes, int64_t n, const int64_t *from, const int64_t *to,
                      const char *in, char *out) {
  if (unit == bytes) switch (bytes) {
      COPIES(uint8_t)
      COPIES(uint16_t)
      COPIES(uint32_t)
      COPIES(uint64_t)
    default: break;
    }
  for (int64_t i = 0; i < n; i++)
    memcpy(out + (size_t)to[i] * unit, in + (size_t)from[i] * unit, bytes);
}

static void gather_vectors(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Walk *w = r->w;
  size_t unit = (size_t)dtype_bytes(w->type), bytes = unit * (size_t)w->run;
  int64_t from[BATCH], to[BATCH];
  for (int64_t i = begin; i < end; i += BATCH) {
    int64_t n = MIN(BATCH, end - i);
    windows(w, r->indices, true, i, i + n, from, to);
    if (w->n_runs == 1) {
      copy_runs(unit, bytes, n, from, to, r->in, r->out);
      continue;
    }
    for (int64_t k = 0; k < n; k++)
      copy_runs(unit, bytes, w->n_runs, w->at_operand, w->at_other, r->in + (size_t)from[k] * unit,
                r->out + (size_t)to[k] * unit);
  }
}

static void find_windows(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  windows(r->w, r->indices, r->w->combine == OP_UNKNOWN, begin, end, r->from + begin,
          r->to + begin);
}

static void gather_runs(void *arg, int64_t begin,
                        int64_t end) { /* of the runs of a window, all index vectors */
  const Run *r = arg;
  const Walk *w = r->w;
  size_t unit = (size_t)dtype_bytes(w->type), bytes = unit * (size_t)w->run;
  for (int64_t k = begin; k < end; k++)
    copy_runs(unit, bytes, w->n, r->from, r->to, r->in + (size_t)w->at_operand[k] * unit,
              r->out + (size_t)w->at_other[k] * unit);
}

static Err *prepare_gather(const Op *op, void **state) {
  *state = walk_new(op, false, op->operands[0]->type, op->operands[1]->type, op_type(op));
  return NULL;
}

static Err *run_gather(void *state, const Op *op, void *const *in, void *const *out) {
  const Walk *w = state;
  if (type_count(op_type(op)) == 0) return NULL;
  Run r = {.w = w, .indices = in[1], .in = in[0], .out = out[0]};
  int64_t cost = 16 + w->run * dtype_bytes(w->type) / 8;
  if (w->n_runs == 1 || !w->window_first) {
    cpu_parallel(w->n, MAX(1, 200000 / (cost * w->n_runs)), gather_vectors, &r);
    return NULL;
  }
  r.from = xmalloc(sizeof(int64_t) * 2 * (size_t)w->n);
  r.to = r.from + w->n;
  cpu_parallel(w->n, 16384, find_windows, &r);
  cpu_parallel(w->n_runs, MAX(1, 200000 / (cost * w->n)), gather_runs, &r);
  free(r.from);
  return NULL;
}

static bool accepts_gather(const Op *op) {
  const Type *t = op->operands[0]->type, *o = op_type(op);
  const int64_t *sizes;
  int n = op_ints(op, "slice_sizes", &sizes);
  for (int i = 0; i < n; i++)
    if (sizes[i] > t->dims[i]) return false; /* the reference explains */
  return !t->quant && !o->quant && t->dtype == o->dtype && t->dtype != DT_TOKEN;
}

/* ---- scatter ---- */

#define EACH(T, expr)                          \
  do {                                         \
    T *d = (T *)(void *)dst;                   \
    const T *s = (const T *)(const void *)src; \
    for (int64_t i = 0; i < n; i++) {          \
      T a = d[i], b = s[i];                    \
      d[i] = (expr);                           \
    }                                          \
  } while (0)
#define INTS(T)                                    \
  switch (kind) {                                  \
  case OP_ADD: EACH(T, (T)(a + b)); return;        \
  case OP_MULTIPLY: EACH(T, (T)(a * b)); return;   \
  case OP_MAXIMUM: EACH(T, a > b ? a : b); return; \
  case OP_MINIMUM: EACH(T, a < b ? a : b); return; \
  case OP_AND: EACH(T, (T)(a & b)); return;        \
  case OP_OR: EACH(T, (T)(a | b)); return;         \
  default: return;                                 \
  }
/* NaN wins; of two zeros the positive one is the larger. */
#define LARGER(a, b)                                          \
  ((a) != (a)                                           ? (a) \
   : (b) != (b)                                         ? (b) \
   : (a) > (b) || ((a) == (b) && !__builtin_signbit(a)) ? (a) \
                                                        : (b))
#define SMALLER(a, b)                                        \
  ((a) != (a)                                          ? (a) \
   : (b) != (b)                                        ? (b) \
   : (a) < (b) || ((a) == (b) && __builtin_signbit(a)) ? (a) \
                                                       : (b))
#define FLOATS(T)                                  \
  switch (kind) {                                  \
  case OP_ADD: EACH(T, a + b); return;             \
  case OP_MULTIPLY: EACH(T, a *b); return;         \
  case OP_MAXIMUM: EACH(T, LARGER(a, b)); return;  \
  case OP_MINIMUM: EACH(T, SMALLER(a, b)); return; \
  default: return;                                 \
  }

static void combine(OpKind kind, DType t, char *dst, const char *src, int64_t n) {
  if (kind == OP_RETURN) {
    memcpy(dst, src, (size_t)(n * dtype_bytes(t)));
    return;
  }
  switch (t) {
  case DT_F32: FLOATS(float)
  case DT_F64: FLOATS(double)
  case DT_I32:
    if (kind == OP_MAXIMUM) EACH(int32_t, a > b ? a : b);
    if (kind == OP_MINIMUM) EACH(int32_t, a < b ? a : b);
    if (kind == OP_MAXIMUM || kind == OP_MINIMUM) return;
    INTS(uint32_t)
  case DT_I64:
    if (kind == OP_MAXIMUM) EACH(int64_t, a > b ? a : b);
    if (kind == OP_MINIMUM) EACH(int64_t, a < b ? a : b);
    if (kind == OP_MAXIMUM || kind == OP_MINIMUM) return;
    INTS(uint64_t)
  case DT_U8: INTS(uint8_t)
  case DT_U16: INTS(uint16_t)
  case DT_U32: INTS(uint32_t)
  case DT_U64: INTS(uint64_t)
  case DT_C64:
    n *= 2;
    EACH(float, a + b);
    return;
  case DT_C128:
    n *= 2;
    EACH(double, a + b);
    return;
  default: break;
  }
  /* bf16, f16: rounded after each */
  for (int64_t at = 0; at < n; at += 64) {
    int64_t m = MIN(64, n - at);
    float x[64], y[64];
    cpu_to_f32(t, dst + 2 * at, x, m);
    cpu_to_f32(t, src + 2 * at, y, m);
    for (int64_t i = 0; i < m; i++) {
      float a = x[i], b = y[i];
      x[i] = kind == OP_ADD        ? a + b
             : kind == OP_MULTIPLY ? a * b
             : kind == OP_MAXIMUM  ? LARGER(a, b)
                                   : SMALLER(a, b);
    }
    cpu_from_f32(t, x, dst + 2 * at, m);
  }
}

/* dst[from[i] + k] = combination with src[to[i] + k], k < run, in order of i: what is common, in
 * vectors. */
typedef void Apply(int64_t n, const int64_t *from, const int64_t *to, int64_t run, void *dst,
                   const void *src);
#define APPLY(name, T, expr)                                                              \
  CLONES static void name(int64_t n, const int64_t *from, const int64_t *to, int64_t run, \
                          void *dst, const void *src) {                                   \
    for (int64_t i = 0; i < n; i++) {                                                     \
      T *d = (T *)dst + from[i];                                                          \
      const T *s = (const T *)src + to[i];                                                \
      _Pragma("GCC ivdep") for (int64_t k = 0; k < run; k++) {                            \
        T a = d[k], b = s[k];                                                             \
        d[k] = (expr);                                                                    \
      }                                                                                   \
    }                                                                                     \
  }                                                                                       \
  static void name##_one(int64_t n, const int64_t *from, const int64_t *to, int64_t run,  \
                         void *dst, const void *src) {                                    \
    (void)run;                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                     \
      T a = ((T *)dst)[from[i]], b = ((const T *)src)[to[i]];                             \
      ((T *)dst)[from[i]] = (expr);                                                       \
    }                                                                                     \
  }
APPLY(add_f32, float, a + b)
APPLY(add_f64, double, a + b)
APPLY(add_i32, uint32_t, a + b)
APPLY(add_i64, uint64_t, a + b)
APPLY(max_f32, float, LARGER(a, b))
APPLY(min_f32, float, SMALLER(a, b))

#define ROW(kind, t, name)        \
  {                               \
    kind, t, { name, name##_one } \
  }
static const struct {
  OpKind kind;
  DType t;
  Apply *how[2]; /* runs, runs of one element */
} applies[] = {
    ROW(OP_ADD, DT_F32, add_f32),     ROW(OP_ADD, DT_F64, add_f64),
    ROW(OP_ADD, DT_I32, add_i32),     ROW(OP_ADD, DT_U32, add_i32),
    ROW(OP_ADD, DT_I64, add_i64),     ROW(OP_ADD, DT_U64, add_i64),
    ROW(OP_MAXIMUM, DT_F32, max_f32), ROW(OP_MINIMUM, DT_F32, min_f32),
};

static void apply(const Walk *w, int64_t n, const int64_t *from, const int64_t *to, char *dst,
                  const char *src) {
  for (int i = 0; i < COUNT_OF(applies); i++)
    if (applies[i].kind == w->combine && applies[i].t == w->type) {
      applies[i].how[w->run == 1](n, from, to, w->run, dst, src);
      return;
    }
  int64_t b = dtype_bytes(w->type);
  for (int64_t i = 0; i < n; i++)
    combine(w->combine, w->type, dst + from[i] * b, src + to[i] * b, w->run);
}

static OpKind body_kind(const Region *r) {
  if (r->n_args == 2 && r->first == r->last && r->last->n_operands == 1 &&
      r->last->operands[0] == r->args[1])
    return OP_RETURN;
  return cpu_region_binary(r, NULL);
}

static bool accepts_scatter(const Op *op) {
  if (op->n_operands != 3 || op->n_results != 1) return false;
  const Type *t = op->operands[0]->type, *u = op->operands[2]->type;
  const Region *body = op->regions[0];
  if (t->quant || u->quant || u->dtype != t->dtype || op_type(op)->dtype != t->dtype) return false;
  if (body->n_args != 2 || body->args[0]->type->dtype != t->dtype ||
      body->args[1]->type->dtype != t->dtype)
    return false;
  OpKind k = body_kind(body);
  DType d = t->dtype;
  bool wide_int =
      d == DT_I32 || d == DT_I64 || d == DT_U8 || d == DT_U16 || d == DT_U32 || d == DT_U64;
  bool is_float = d == DT_F32 || d == DT_F64 || d == DT_BF16 || d == DT_F16;
  switch (k) {
  case OP_RETURN: return true;
  case OP_ADD: return wide_int || is_float || d == DT_C64 || d == DT_C128;
  case OP_MULTIPLY: return wide_int || is_float;
  case OP_MAXIMUM:
  case OP_MINIMUM: return is_float || wide_int;
  case OP_AND:
  case OP_OR: return wide_int;
  default: return false;
  }
}

static Err *prepare_scatter(const Op *op, void **state) {
  Walk *w = walk_new(op, true, op->operands[0]->type, op->operands[1]->type, op->operands[2]->type);
  w->combine = body_kind(op->regions[0]);
  *state = w;
  return NULL;
}

/* The windows of parts begin .. end - 1 of the operand, in order. */
static void scatter_parts(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Walk *w = r->w;
  int64_t b = dtype_bytes(w->type), first = r->first[begin], n = r->first[end] - first;
  const int64_t *from = r->from + first, *to = r->to + first;
  if (w->n_runs == 1) {
    apply(w, n, from, to, r->out, r->in);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    apply(w, w->n_runs, w->at_operand, w->at_other, r->out + from[i] * b, r->in + to[i] * b);
}

/* Leaves out the windows that are not inside the operand: XLA drops them whole, too. */
static int64_t keep_inside(int64_t n, int64_t *from, int64_t *to) {
  int64_t kept = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t f = from[i], t = to[i];
    from[kept] = f, to[kept] = t;
    kept += f >= 0;
  }
  return kept;
}

/* Puts n windows in order of the parts, of `size` elements, of the operand that they lie in; those
 * of a part stay in their order. part[i]: room for n. */
static void sort_windows(Run *r, int parts, int64_t size, int64_t n, const int64_t *from,
                         const int64_t *to, uint8_t *part) {
  int64_t next[MAX_PARTS] = {0};
  double scale = 1 / (double)size; /* equal windows are of one part however it is rounded */
  for (int64_t i = 0; i < n; i++) {
    part[i] = (uint8_t)MIN(parts - 1, (int)((double)from[i] * scale));
    next[part[i]]++;
  }
  for (int64_t k = 0, at = 0; k < parts; k++) {
    int64_t count = next[k];
    r->first[k] = next[k] = at;
    at += count;
  }
  for (int64_t i = 0; i < n; i++) {
    int64_t at = next[part[i]]++;
    r->from[at] = from[i], r->to[at] = to[i];
  }
}

typedef struct Copy {
  const char *in;
  char *out;
} Copy;

static void copy(void *arg, int64_t begin, int64_t end) {
  const Copy *c = arg;
  memcpy(c->out + begin, c->in + begin, (size_t)(end - begin));
}

static Err *run_scatter(void *state, const Op *op, void *const *in, void *const *out) {
  const Walk *w = state;
  int64_t count = type_count(op_type(op));
  if (count == 0) return NULL;
  if (out[0] != in[0]) {
    Copy c = {in[0], out[0]};
    cpu_parallel(count * dtype_bytes(w->type), 1 << 20, copy, &c);
  }
  if (type_count(op->operands[2]->type) == 0) return NULL;
  /* putting the windows in order costs as much as some dozen elements of each */
  int64_t elements = w->run * w->n_runs, work = w->n * (4 * w->n_runs + elements / 4);
  bool divide = w->aligned && elements >= SMALL_WINDOW;
  int parts = divide ? (int)MAX(1, MIN(MAX_PARTS, work / 50000)) : 1;
  size_t n = (size_t)w->n;
  int64_t *places = xmalloc(n * (parts > 1 ? 4 * sizeof *places + 1 : 2 * sizeof *places));
  Run r = {.w = w, .indices = in[1], .in = in[2], .out = out[0], .from = places, .to = places + n};
  cpu_parallel(w->n, 16384, find_windows, &r);
  r.first[parts] = keep_inside(w->n, r.from, r.to);
  if (parts > 1) {
    r.from += 2 * n, r.to += 2 * n;
    sort_windows(&r, parts, (count + parts - 1) / parts, r.first[parts], places, places + n,
                 (uint8_t *)(places + 4 * n));
  }
  cpu_parallel(parts, 1, scatter_parts, &r);
  free(places);
  return NULL;
}

const CpuKernel cpu_kernels_index[] = {
    {.name = "gather",
     .kind = OP_GATHER,
     .accepts = accepts_gather,
     .prepare = prepare_gather,
     .run = run_gather,
     .release = walk_free},
    {.name = "scatter",
     .kind = OP_SCATTER,
     .accepts = accepts_scatter,
     .prepare = prepare_scatter,
     .run = run_scatter,
     .release = walk_free,
     .in_place = 1},
    {0},
};
