/* Pooling over the last one to three dimensions (NCHW and the like): reduce_window and
 * select_and_scatter, a plane (volume) at a time, in f32; bf16 and f16 by f32 copies of a few planes. The reduction is separable: each input row once
 * along itself, then rows together. Steps along a row are no trouble to vectors once the row is
 * split into phases, the elements that leave the same remainder. What lies outside counts as the
 * initial value, which the padded copy of a row carries. Windows of channels-last data go to
 * k_window.c. */
#include <stdatomic.h>

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define LANES 16    /* rows of scratch are so many elements, or some times that */
#define MAX_SIZE 32 /* of a window along a dimension: running sums are other kernels' */
#define MAX_WINDOW 1024

typedef enum Along { DEPTH, ROW, COLUMN, DIMS } Along;

typedef struct Pool {
  int64_t planes, in[DIMS], out[DIMS], size[DIMS], step[DIMS], low[DIMS];
  OpKind kind; /* of the reduction; select_and_scatter: maximum or minimum */
  DType type;
} Pool;

static bool has_type(DType t) { return t == DT_F32 || t == DT_BF16 || t == DT_F16; }

static bool recognise(const Op *op, const Type *t, const Type *o, Pool *p) {
  const int64_t *size, *stride, *base, *dilate, *pad;
  int ns = op_ints(op, "window_dimensions", &size), nst = op_ints(op, "window_strides", &stride);
  int nb = op_ints(op, "base_dilations", &base), nd = op_ints(op, "window_dilations", &dilate),
      np = op_ints(op, "padding", &pad);
  int r = t->rank;
  if (ns != r || r < 1 || !has_type(t->dtype) || o->dtype != t->dtype || size[r - 1] < 2)
    return false;
  *p = (Pool){.planes = 1, .type = t->dtype};
  for (int d = 0; d < DIMS; d++) p->in[d] = p->out[d] = p->size[d] = p->step[d] = 1;
  bool spatial = false; /* the dimensions from here on */
  for (int i = 0; i < r; i++) {
    int64_t st = i < nst ? stride[i] : 1, lo = 2 * i < np ? pad[2 * i] : 0,
            hi = 2 * i + 1 < np ? pad[2 * i + 1] : 0;
    if ((i < nb && base[i] != 1) || (i < nd && dilate[i] != 1)) return false;
    spatial |= size[i] != 1 || st != 1 || lo || hi;
    int d = i - (r - DIMS);
    if (!spatial) {
      p->planes *= t->dims[i];
    } else if (d < 0 || size[i] > MAX_SIZE) {
      return false;
    } else {
      p->in[d] = t->dims[i], p->out[d] = o->dims[i], p->size[d] = size[i], p->step[d] = st;
      p->low[d] = lo;
    }
  }
  return p->size[DEPTH] * p->size[ROW] * p->size[COLUMN] <= MAX_WINDOW && type_count(t) > 0 &&
         type_count(o) > 0 && type_count(t) / p->planes < 1 << 28;
}

static int64_t whole(int64_t n) { return (n + LANES - 1) / LANES * LANES; }
static int64_t rows_of(const int64_t *dims) { return dims[DEPTH] * dims[ROW]; }

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MORE(a, b) ((((b) > (a)) | ((b) != (b))) ? (b) : (a))
#define LESS(a, b) ((((b) < (a)) | ((b) != (b))) ? (b) : (a))

/* out[j] = x[0][j] op x[1][j] op .. */
#define FOLD(name, F)                                                                      \
  CLONES static void fold_##name(const float *const *x, int64_t many, float *restrict out, \
                                 int64_t n) {                                              \
    const float *restrict a = x[0], *restrict b = many > 1 ? x[1] : NULL;                  \
    if (many == 1) {                                                                       \
      memcpy(out, a, sizeof(float) * (size_t)n);                                           \
      return;                                                                              \
    }                                                                                      \
    for (int64_t j = 0; j < n; j++) out[j] = F(a[j], b[j]);                                \
    int64_t q = 2;                                                                         \
    for (; q + 2 <= many; q += 2) {                                                        \
      a = x[q], b = x[q + 1];                                                              \
      for (int64_t j = 0; j < n; j++) {                                                    \
        float v = F(out[j], a[j]);                                                         \
        out[j] = F(v, b[j]);                                                               \
      }                                                                                    \
    }                                                                                      \
    a = x[q < many ? q : 0];                                                               \
    for (int64_t j = 0; j < n && q < many; j++) out[j] = F(out[j], a[j]);                  \
  }
FOLD(add, PLUS)
FOLD(mul, TIMES)
FOLD(max, MORE)
FOLD(min, LESS)

static void fold(OpKind kind, const float *const *x, int64_t many, float *out, int64_t n) {
  switch (kind) {
  case OP_ADD: fold_add(x, many, out, n); return;
  case OP_MULTIPLY: fold_mul(x, many, out, n); return;
  case OP_MAXIMUM: fold_max(x, many, out, n); return;
  default: fold_min(x, many, out, n); return;
  }
}

/* Phase r of x: elements r, r + step, .. of it, n of them, at out + r * apart. */
CLONES static void split(const float *restrict x, int64_t step, int64_t phases, int64_t n,
                         float *restrict out, int64_t apart) {
  if (step == 2 && phases == 2) {
    float *restrict odd = out + apart;
    for (int64_t j = 0; j < n; j++) out[j] = x[2 * j], odd[j] = x[2 * j + 1];
  } else if (step == 4 && phases == 4) {
    float *restrict p1 = out + apart, *restrict p2 = p1 + apart, *restrict p3 = p2 + apart;
    for (int64_t j = 0; j < n; j++)
      out[j] = x[4 * j], p1[j] = x[4 * j + 1], p2[j] = x[4 * j + 2], p3[j] = x[4 * j + 3];
  } else if (step == 3 && phases == 3) {
    float *restrict p1 = out + apart, *restrict p2 = p1 + apart;
    for (int64_t j = 0; j < n; j++) out[j] = x[3 * j], p1[j] = x[3 * j + 1], p2[j] = x[3 * j + 2];
  } else {
    for (int64_t r = 0; r < phases; r++)
      for (int64_t j = 0; j < n; j++) out[r * apart + j] = x[j * step + r];
  }
}

typedef struct Run {
  const Pool *p;
  const float *in, *src;
  float *out, init;
} Run;

/* ---- reduce_window ---- */

/* n results of the windows along x; a phase of x has so many elements that are read. */
static void along(const Pool *p, const float *x, int64_t phase, int64_t n, float *split_up,
                  float *out) {
  const float *from[MAX_WINDOW];
  int64_t step = p->step[COLUMN], size = p->size[COLUMN];
  if (step > 1) split(x, step, MIN(step, size), phase, split_up, phase);
  for (int64_t q = 0; q < size; q++)
    from[q] = step > 1 ? split_up + q % step * phase + q / step : x + q;
  fold(p->kind, from, size, out, n);
}

static void reduce_planes(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Pool *p = r->p;
  const int64_t *size = p->size, *step = p->step, w = p->in[COLUMN], ow = p->out[COLUMN],
                rows = rows_of(p->in), low = p->low[COLUMN];
  /* Without anything between their windows all rows are one. */
  bool together = low == 0 && w == ow * step[COLUMN] && size[COLUMN] <= step[COLUMN];
  int64_t n = whole(ow), phase = whole(n + (size[COLUMN] - 1) / step[COLUMN]),
          wide = phase * step[COLUMN], apart = together ? ow : n;
  float *line = cpu_scratch(sizeof(float) * (size_t)(wide + MAX(wide, rows * w) + (rows + 4) * n)),
        *start = line + wide, *none = start + n, *result = none + n, *sums = result + n,
        *split_up = sums + (rows + 1) * n;
  for (int64_t x = 0; x < wide; x++) line[x] = r->init;
  for (int64_t x = 0; x < n; x++) start[x] = r->init;
  along(p, line, phase, n, split_up, none);
  int64_t first = MAX(0, low), last = MAX(first, MIN(wide, w + low)); /* of the line: inside */
  for (int64_t plane = begin; plane < end; plane++) {
    const float *in = r->in + plane * rows * w;
    float *out = r->out + plane * rows_of(p->out) * ow;
    if (together) along(p, in, rows * ow, rows * ow, split_up, sums);
    for (int64_t y = 0; y < rows && !together; y++) {
      if (last > first)
        memcpy(line + first, in + y * w + first - low, sizeof(float) * (size_t)(last - first));
      along(p, line, phase, n, split_up, sums + y * apart);
    }
    for (int64_t i = 0; i < rows_of(p->out); i++, out += ow) {
      const float *from[MAX_WINDOW + 1];
      int64_t many = 0, z0 = i / p->out[ROW] * step[DEPTH] - p->low[DEPTH],
              y0 = i % p->out[ROW] * step[ROW] - p->low[ROW];
      from[many++] = start;
      for (int64_t z = z0; z < z0 + size[DEPTH]; z++)
        for (int64_t y = y0; y < y0 + size[ROW]; y++) {
          bool inside = z >= 0 && z < p->in[DEPTH] && y >= 0 && y < p->in[ROW];
          from[many++] = inside ? sums + (z * p->in[ROW] + y) * apart : none;
        }
      fold(p->kind, from, many, result, n);
      memcpy(out, result, sizeof(float) * (size_t)ow);
    }
  }
}

/* ---- select_and_scatter ---- */

/* best, at: the better of best and v, and which it is; of equal ones the first. */
#define PICK(name, KEEP)                                                               \
  CLONES static void pick_##name(float *restrict best, int32_t *restrict at,           \
                                 const float *restrict v, int32_t offset, int64_t n) { \
    for (int64_t j = 0; j < n; j++) {                                                  \
      float b = best[j], x = v[j];                                                     \
      int32_t a = at[j];                                                               \
      at[j] = b KEEP x ? a : offset;                                                   \
      best[j] = b KEEP x ? b : x;                                                      \
    }                                                                                  \
  }
PICK(max, >=)
PICK(min, <=)

CLONES static void fill(float *out, float x, int64_t n) {
  for (int64_t i = 0; i < n; i++) out[i] = x;
}

typedef struct Range {
  int64_t from, to;
} Range;

/* Of the input, along d, under result i. */
static Range under(const Pool *p, int d, int64_t i) {
  int64_t at = i * p->step[d] - p->low[d];
  return (Range){MAX(0, at), MIN(p->in[d], at + p->size[d])};
}

static void scatter_one(const Pool *p, const float *in, Range z, Range y, Range x, float src,
                        float *out) {
  if (z.from >= z.to || y.from >= y.to || x.from >= x.to) return;
  bool max = p->kind == OP_MAXIMUM;
  int64_t best_at = (z.from * p->in[ROW] + y.from) * p->in[COLUMN] + x.from;
  float best = in[best_at];
  for (int64_t k = z.from; k < z.to; k++)
    for (int64_t i = y.from; i < y.to; i++)
      for (int64_t j = x.from; j < x.to; j++) {
        int64_t at = (k * p->in[ROW] + i) * p->in[COLUMN] + j;
        bool keep = max ? best >= in[at] : best <= in[at];
        best_at = keep ? best_at : at;
        best = keep ? best : in[at];
      }
  out[best_at] += src;
}

static void scatter_planes(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Pool *p = r->p;
  const int64_t step = p->step[COLUMN], size = p->size[COLUMN], low = p->low[COLUMN],
                w = p->in[COLUMN], ow = p->out[COLUMN], rows = rows_of(p->in);
  int64_t j0 = MIN(ow, low > 0 ? (low + step - 1) / step : 0); /* windows in [j0, j1) are inside */
  int64_t j1 = w + low < size ? j0 : MAX(j0, MIN(ow, (w + low - size) / step + 1));
  int64_t n = whole(j1 - j0), phases = MIN(step, w),
          apart = whole((w + step - 1) / step) + n + LANES, row_step = phases * apart;
  float *split_up = cpu_scratch(sizeof(float) * (size_t)(rows * row_step + 2 * n)),
        *best = split_up + rows * row_step;
  int32_t *at = (int32_t *)(void *)(best + n);
  memset(split_up, 0, sizeof(float) * (size_t)(rows * row_step));
  for (int64_t plane = begin; plane < end; plane++) {
    const float *in = r->in + plane * rows * w, *src = r->src + plane * rows_of(p->out) * ow;
    float *out = r->out + plane * rows * w;
    fill(out, r->init, rows * w);
    for (int64_t y = 0; y < rows && n > 0; y++) {
      int64_t even = w / step;
      if (step == 1) memcpy(split_up + y * row_step, in + y * w, sizeof(float) * (size_t)w);
      else split(in + y * w, step, phases, even, split_up + y * row_step, apart);
      for (int64_t x = even * step; x < w; x++)
        split_up[y * row_step + x % step * apart + x / step] = in[y * w + x];
    }
    for (int64_t i = 0; i < rows_of(p->out); i++, src += ow) {
      Range z = under(p, DEPTH, i / p->out[ROW]), y = under(p, ROW, i % p->out[ROW]);
      for (int64_t j = 0; j < ow; j++) {
        if (j == j0) j = j1;
        if (j < ow) scatter_one(p, in, z, y, under(p, COLUMN, j), src[j], out);
      }
      if (n == 0 || z.from >= z.to || y.from >= y.to) continue;
      int64_t left = j0 * step - low; /* column of the first of them */
      bool fresh = true;
      for (int64_t k = z.from; k < z.to; k++)
        for (int64_t q = y.from; q < y.to; q++) {
          const float *row = split_up + (k * p->in[ROW] + q) * row_step;
          for (int64_t x = left; x < left + size; x++) {
            const float *v = row + x % step * apart + x / step;
            int32_t offset = (int32_t)((k * p->in[ROW] + q) * w + x);
            if (fresh) {
              memcpy(best, v, sizeof(float) * (size_t)n);
              for (int64_t j = 0; j < n; j++) at[j] = offset;
              fresh = false;
            } else if (p->kind == OP_MAXIMUM) {
              pick_max(best, at, v, offset, n);
            } else {
              pick_min(best, at, v, offset, n);
            }
          }
        }
      for (int64_t j = j0; j < j1; j++) out[at[j - j0] + (j - j0) * step] += src[j];
    }
  }
}

static int64_t planes_of(const Pool *p) {
  int64_t out = rows_of(p->out) * p->out[COLUMN];
  return MAX(1, 65536 / (rows_of(p->in) * p->in[COLUMN] + out * p->size[ROW] * p->size[DEPTH]));
}

/* ---- narrow types ---- */

typedef struct Narrow {
  Run run;
  DType type;
  const char *in, *src;
  char *out;
  void (*planes)(void *, int64_t, int64_t);
  atomic_bool failed;
} Narrow;

/* A few planes at a time, which stay in the cache. */
static void narrow_planes(void *arg, int64_t begin, int64_t end) {
  Narrow *n = arg;
  const Pool *p = n->run.p;
  int64_t large = rows_of(p->in) * p->in[COLUMN], small = rows_of(p->out) * p->out[COLUMN],
          results = n->src ? large : small, few = MIN(end - begin, MAX(1, 32768 / large));
  int64_t b = (int64_t)dtype_bytes(n->type);
  size_t bytes = sizeof(float) * (size_t)(few * (large + small + results));
  float *wide = cpu_block_alloc(bytes);
  if (!wide) {
    atomic_store(&n->failed, true);
    return;
  }
  Run r = n->run;
  float *src = wide + few * large, *out = src + few * small;
  r.in = wide, r.src = src, r.out = out;
  for (int64_t plane = begin; plane < end; plane += few) {
    int64_t many = MIN(few, end - plane);
    cpu_to_f32(n->type, n->in + plane * large * b, wide, many * large);
    if (n->src) cpu_to_f32(n->type, n->src + plane * small * b, src, many * small);
    n->planes(&r, 0, many);
    cpu_from_f32(n->type, out, n->out + plane * results * b, many * results);
  }
  cpu_block_free(wide, bytes);
}

static Err *run_planes(const Op *op, const Pool *p, void (*planes)(void *, int64_t, int64_t),
                       const void *in, const void *src, const void *init, void *out) {
  Run r = {.p = p, .in = in, .src = src, .out = out};
  if (p->type == DT_F32) {
    r.init = *(const float *)init;
    cpu_parallel(p->planes, planes_of(p), planes, &r);
    return NULL;
  }
  cpu_to_f32(p->type, init, &r.init, 1);
  Narrow n = {.run = r, .type = p->type, .in = in, .src = src, .out = out, .planes = planes};
  cpu_parallel(p->planes, planes_of(p), narrow_planes, &n);
  return atomic_load(&n.failed) ? op_err(op, ERR_EXHAUSTED, "no memory for f32 copies") : NULL;
}

static Err *run_reduce(void *state, const Op *op, void *const *in, void *const *out) {
  return run_planes(op, state, reduce_planes, in[0], NULL, in[1], out[0]);
}

static Err *run_scatter(void *state, const Op *op, void *const *in, void *const *out) {
  return run_planes(op, state, scatter_planes, in[0], in[1], in[2], out[0]);
}

static bool reduce_of(const Op *op, Pool *p) {
  if (op->n_operands != 2 || op->regions[0]->n_args != 2 ||
      !recognise(op, op->operands[0]->type, op_type(op), p) ||
      op->operands[1]->type->dtype != p->type || op->regions[0]->args[0]->type->dtype != p->type)
    return false;
  p->kind = cpu_region_binary(op->regions[0], NULL);
  return p->kind == OP_ADD || p->kind == OP_MULTIPLY || p->kind == OP_MAXIMUM ||
         p->kind == OP_MINIMUM;
}

static bool scatter_of(const Op *op, Pool *p) {
  if (!recognise(op, op->operands[0]->type, op->operands[1]->type, p) ||
      op->operands[2]->type->dtype != p->type)
    return false;
  bool max;
  if (cpu_region_binary(op->regions[1], NULL) != OP_ADD || !cpu_region_select(op->regions[0], &max))
    return false;
  p->kind = max ? OP_MAXIMUM : OP_MINIMUM;
  return true;
}

static bool accepts_reduce(const Op *op) {
  Pool p;
  return op->n_results == 1 && !cpu_window_is_running(op) && reduce_of(op, &p);
}

static bool accepts_scatter(const Op *op) {
  Pool p;
  return scatter_of(op, &p);
}

static Err *prepare(const Op *op, void **state) {
  Pool *p = xcalloc(1, sizeof *p);
  if (!(op->kind == OP_REDUCE_WINDOW ? reduce_of(op, p) : scatter_of(op, p))) {
    free(p);
    return op_err(op, ERR_INTERNAL, "the window is not what it was");
  }
  *state = p;
  return NULL;
}

const CpuKernel cpu_kernels_pool[] = {
    {.name = "pool:planes",
     .kind = OP_REDUCE_WINDOW,
     .accepts = accepts_reduce,
     .prepare = prepare,
     .run = run_reduce,
     .release = free},
    {.name = "unpool:planes",
     .kind = OP_SELECT_AND_SCATTER,
     .accepts = accepts_scatter,
     .prepare = prepare,
     .run = run_scatter,
     .release = free},
    {0},
};
