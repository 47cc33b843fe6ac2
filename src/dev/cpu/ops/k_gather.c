/* gather by runs of memory (indexed.h). Places that follow one another, as the frames of a signal do,
 * are joined to longer ones when the indices are read. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/indexed.h"

#define BATCH 256  /* index vectors at a time */
#define STRETCH 16 /* runs, on average, that are worth joining */

typedef struct Gather {
  const Walk *w;
  const char *indices, *in;
  char *out;
  int64_t *from, *to; /* of all index vectors, or */
  int64_t *length, n; /* of n stretches: elements; NULL: not joined */
} Gather;

#define COPIES(T)                                          \
  case sizeof(T): {                                        \
    const T *s = (const T *)(const void *)in;              \
    T *d = (T *)(void *)out;                               \
    for (int64_t i = 0; i < n; i++) d[to[i]] = s[from[i]]; \
    return;                                                \
  }

/* Runs of N to 2 N bytes: the first N and the last. */
#define ENDS(N)                                         \
  if (bytes >= (N) && bytes <= 2 * (N)) {               \
    const size_t last = bytes - (N);                    \
    for (int64_t i = 0; i < n; i++) {                   \
      const char *s = in + (size_t)from[i] * unit;      \
      char *d = out + (size_t)to[i] * unit, a[N], b[N]; \
      memcpy(a, s, N), memcpy(b, s + last, N);          \
      memcpy(d, a, N), memcpy(d + last, b, N);          \
    }                                                   \
    return;                                             \
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
  ENDS(2)
  ENDS(4)
  ENDS(8)
  ENDS(16)
  ENDS(32)
  for (int64_t i = 0; i < n; i++)
    memcpy(out + (size_t)to[i] * unit, in + (size_t)from[i] * unit, bytes);
}

static void gather_vectors(void *arg, int64_t begin, int64_t end) {
  const Gather *r = arg;
  const Walk *w = r->w;
  size_t unit = (size_t)dtype_bytes(w->type), bytes = unit * (size_t)w->run;
  int64_t from[BATCH], to[BATCH];
  for (int64_t i = begin; i < end; i += BATCH) {
    int64_t n = MIN(BATCH, end - i);
    walk_windows(w, r->indices, true, i, i + n, from, to);
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
  const Gather *r = arg;
  walk_windows(r->w, r->indices, true, begin, end, r->from + begin, r->to + begin);
}

/* Index vectors whose runs follow one another on both sides become stretches, in place. */
static void join_windows(Gather *r) {
  const int64_t run = r->w->run, n = r->w->n;
  int64_t breaks = 0;
  for (int64_t i = 1; i < n; i++)
    breaks += (r->from[i] != r->from[i - 1] + run) | (r->to[i] != r->to[i - 1] + run);
  if (breaks * STRETCH > n) return;
  r->length = r->to + n;
  for (int64_t i = 0; i < n; i++) {
    const int64_t last = r->n - 1;
    if (i && r->from[i] == r->from[last] + r->length[last] &&
        r->to[i] == r->to[last] + r->length[last]) {
      r->length[last] += run;
      continue;
    }
    r->from[r->n] = r->from[i];
    r->to[r->n] = r->to[i];
    r->length[r->n++] = run;
  }
}

static void gather_runs(void *arg, int64_t begin,
                        int64_t end) { /* of the runs of a window, all index vectors */
  const Gather *r = arg;
  const Walk *w = r->w;
  size_t unit = (size_t)dtype_bytes(w->type), bytes = unit * (size_t)w->run;
  for (int64_t k = begin; k < end; k++) {
    const char *in = r->in + (size_t)w->at_operand[k] * unit;
    char *out = r->out + (size_t)w->at_other[k] * unit;
    if (!r->length) copy_runs(unit, bytes, w->n, r->from, r->to, in, out);
    for (int64_t i = 0; i < r->n; i++)
      memcpy(out + (size_t)r->to[i] * unit, in + (size_t)r->from[i] * unit,
             (size_t)r->length[i] * unit);
  }
}

/* Rows of `run` bytes, in the order of the index vectors. */
#define ROWS(N)                                                                           \
  case N:                                                                                 \
    for (int64_t k = 0; k < n; k++) memcpy(out + k * (N), in + (int64_t)at[k] * unit, N); \
    return;

/* The same of single elements. */
#define ELEMENTS(T)                                  \
  case sizeof(T): {                                  \
    const T *s = (const T *)(const void *)in;        \
    T *d = (T *)(void *)out;                         \
    for (int64_t k = 0; k < n; k++) d[k] = s[at[k]]; \
    return;                                          \
  }

CLONES static void gather_rows(int64_t unit, int64_t run, int64_t n, const int32_t *at,
                               const char *in, char *out) {
  if (unit == run) switch (run) {
      ELEMENTS(uint8_t)
      ELEMENTS(uint16_t)
      ELEMENTS(uint32_t)
      ELEMENTS(uint64_t)
    default: break;
    }
  switch (run) {
    ROWS(1)
    ROWS(2)
    ROWS(4)
    ROWS(8)
    ROWS(12)
    ROWS(16)
    ROWS(32)
    ROWS(64)
    ROWS(128)
  default:
    for (int64_t k = 0; k < n; k++) memcpy(out + k * run, in + (int64_t)at[k] * unit, (size_t)run);
  }
}

CLONES static int64_t count_breaks(const int32_t *at, int64_t n, int32_t run) {
  int32_t breaks = 0;
  for (int64_t k = 1; k < n; k++) breaks += at[k] != at[k - 1] + run;
  return breaks;
}

/* The same where most runs follow the one before. */
static void gather_stretches(int64_t unit, int64_t run, int64_t n, const int32_t *at,
                             const char *in, char *out) {
  for (int64_t k = 0, next; k < n; k = next) {
    for (next = k + 1; next < n && (at[next] - at[next - 1]) * unit == run;) next++;
    memcpy(out + k * run, in + (int64_t)at[k] * unit, (size_t)((next - k) * run));
  }
}

static void gather_simple(void *arg, int64_t begin, int64_t end) {
  const Gather *r = arg;
  int32_t at[SIMPLE_BATCH];
  int64_t unit = dtype_bytes(r->w->type), run = unit * r->w->run;
  for (int64_t i = begin; i < end; i += SIMPLE_BATCH) {
    int64_t n = MIN(SIMPLE_BATCH, end - i);
    walk_simple(r->w, r->indices, true, i, i + n, at);
    bool stretches = n > STRETCH && count_breaks(at, n, (int32_t)r->w->run) * STRETCH <= n;
    (stretches ? gather_stretches : gather_rows)(unit, run, n, at, r->in, r->out + i * run);
  }
}

static Err *prepare(const Op *op, void **state) {
  *state = walk_new(op, false, op->operands[0]->type, op->operands[1]->type, op_type(op));
  return NULL;
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Walk *w = state;
  if (type_count(op_type(op)) == 0) return NULL;
  Gather r = {.w = w, .indices = in[1], .in = in[0], .out = out[0]};
  if (walk_is_simple(w)) {
    cpu_parallel(w->n, MAX(1, 200000 / (4 + w->run * dtype_bytes(w->type) / 8)), gather_simple, &r);
    return NULL;
  }
  int64_t cost = 16 + w->run * dtype_bytes(w->type) / 8;
  if (w->n_runs == 1 || !w->window_first) {
    cpu_parallel(w->n, MAX(1, 200000 / (cost * w->n_runs)), gather_vectors, &r);
    return NULL;
  }
  r.from = xmalloc(sizeof(int64_t) * 3 * (size_t)w->n);
  r.to = r.from + w->n;
  cpu_parallel(w->n, 16384, find_windows, &r);
  join_windows(&r);
  cpu_parallel(w->n_runs, MAX(1, 200000 / (cost * w->n)), gather_runs, &r);
  free(r.from);
  return NULL;
}

static bool accepts(const Op *op) {
  const Type *t = op->operands[0]->type, *o = op_type(op);
  const int64_t *sizes;
  int n = op_ints(op, "slice_sizes", &sizes);
  for (int i = 0; i < n; i++)
    if (sizes[i] > t->dims[i]) return false; /* the reference explains */
  return !t->quant && !o->quant && t->dtype == o->dtype && t->dtype != DT_TOKEN;
}

const CpuKernel cpu_kernels_gather[] = {
    {.name = "gather",
     .kind = OP_GATHER,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = walk_free},
    {0},
};
