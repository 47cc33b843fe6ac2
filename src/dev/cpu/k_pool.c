/* Pooling over the last one or two dimensions (NCHW and the like), f32: reduce_window and
 * select_and_scatter, a plane at a time. The reduction is separable: each input row once along
 * itself, then rows together as vectors. What lies outside counts as the initial value, which the
 * padded copy of a row carries. Windows of channels-last data go to k_window.c. */
#include "dev/cpu/kernel.h"

#include "dev/cpu/clones.h"

typedef struct Pool {
  int64_t planes, h, w, oh, ow, kh, kw, sh, sw, top, left;
  OpKind kind; /* of the reduction; select_and_scatter: maximum or minimum */
} Pool;

static bool recognise(const Op *op, const Type *t, const Type *o, Pool *p) {
  const int64_t *size, *stride, *base, *dilate, *pad;
  int ns = op_ints(op, "window_dimensions", &size), nst = op_ints(op, "window_strides", &stride);
  int nb = op_ints(op, "base_dilations", &base), nd = op_ints(op, "window_dilations", &dilate),
      np = op_ints(op, "padding", &pad);
  int r = t->rank;
  if (ns != r || r < 1 || t->dtype != DT_F32 || o->dtype != DT_F32 || size[r - 1] < 2) return false;
  *p = (Pool){.planes = 1, .h = 1, .oh = 1, .kh = 1, .sh = 1};
  for (int i = 0; i < r; i++) {
    int64_t st = i < nst ? stride[i] : 1, lo = 2 * i < np ? pad[2 * i] : 0,
            hi = 2 * i + 1 < np ? pad[2 * i + 1] : 0;
    if ((i < nb && base[i] != 1) || (i < nd && dilate[i] != 1)) return false;
    if (i < r - 2) {
      if (size[i] != 1 || st != 1 || lo || hi) return false;
      p->planes *= t->dims[i];
    } else if (i == r - 2) {
      p->h = t->dims[i], p->oh = o->dims[i], p->kh = size[i], p->sh = st, p->top = lo;
    } else {
      p->w = t->dims[i], p->ow = o->dims[i], p->kw = size[i], p->sw = st, p->left = lo;
    }
  }
  return p->kw <= 32 && p->kh <= 32 && p->w < 1 << 20 && type_count(t) > 0 && type_count(o) > 0;
}

#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define MORE(a, b) ((b) > (a) || (b) != (b) ? (b) : (a))
#define LESS(a, b) ((b) < (a) || (b) != (b) ? (b) : (a))

/* along: out[j] = x[j * s] op .. op x[j * s + k - 1].  join: a[j] = a[j] op b[j]. */
#define ROWS(name, F)                                                                      \
  CLONES static void along_##name(const float *restrict x, float *restrict out, int64_t n, \
                                  int64_t k, int64_t s) {                                  \
    if (s == 1) {                                                                          \
      for (int64_t j = 0; j < n; j++) out[j] = x[j];                                       \
      for (int64_t q = 1; q < k; q++)                                                      \
        for (int64_t j = 0; j < n; j++) out[j] = F(out[j], x[j + q]);                      \
    } else if (s == 2 && k == 2) {                                                         \
      for (int64_t j = 0; j < n; j++) out[j] = F(x[2 * j], x[2 * j + 1]);                  \
    } else {                                                                               \
      for (int64_t j = 0; j < n; j++) {                                                    \
        float a = x[j * s];                                                                \
        for (int64_t q = 1; q < k; q++) a = F(a, x[j * s + q]);                            \
        out[j] = a;                                                                        \
      }                                                                                    \
    }                                                                                      \
  }                                                                                        \
  CLONES static void join_##name(float *restrict a, const float *restrict b, int64_t n) {  \
    for (int64_t j = 0; j < n; j++) a[j] = F(a[j], b[j]);                                  \
  }
ROWS(add, PLUS)
ROWS(mul, TIMES)
ROWS(max, MORE)
ROWS(min, LESS)

static void along(OpKind kind, const float *x, float *out, int64_t n, int64_t k, int64_t s) {
  switch (kind) {
  case OP_ADD: along_add(x, out, n, k, s); return;
  case OP_MULTIPLY: along_mul(x, out, n, k, s); return;
  case OP_MAXIMUM: along_max(x, out, n, k, s); return;
  default: along_min(x, out, n, k, s); return;
  }
}

static void join(OpKind kind, float *a, const float *b, int64_t n) {
  switch (kind) {
  case OP_ADD: join_add(a, b, n); return;
  case OP_MULTIPLY: join_mul(a, b, n); return;
  case OP_MAXIMUM: join_max(a, b, n); return;
  default: join_min(a, b, n); return;
  }
}

typedef struct Run {
  const Pool *p;
  const float *in, *src;
  float *out, init;
} Run;

static void reduce_planes(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Pool *p = r->p;
  int64_t wide = (p->ow - 1) * p->sw + p->kw;
  float *row = cpu_scratch(sizeof(float) * (size_t)(wide + (p->h + 1) * p->ow)), *rows = row + wide,
        *none = rows + p->h * p->ow;
  for (int64_t x = 0; x < wide; x++) row[x] = r->init;
  along(p->kind, row, none, p->ow, p->kw, p->sw);
  int64_t first = MAX(0, p->left),
          last = MAX(first, MIN(wide, p->w + p->left)); /* of the row that is inside */
  bool whole = first == 0 && last == wide;
  for (int64_t plane = begin; plane < end; plane++) {
    const float *in = r->in + plane * p->h * p->w - p->left;
    float *out = r->out + plane * p->oh * p->ow;
    for (int64_t y = 0; y < p->h; y++, in += p->w) {
      if (!whole && last > first)
        memcpy(row + first, in + first, sizeof(float) * (size_t)(last - first));
      along(p->kind, whole ? in : row, rows + y * p->ow, p->ow, p->kw, p->sw);
    }
    for (int64_t i = 0; i < p->oh; i++, out += p->ow) {
      for (int64_t j = 0; j < p->ow; j++) out[j] = r->init;
      for (int64_t q = 0; q < p->kh; q++) {
        int64_t y = i * p->sh + q - p->top;
        join(p->kind, out, y >= 0 && y < p->h ? rows + y * p->ow : none, p->ow);
      }
    }
  }
}

static void scatter_planes(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  const Pool *p = r->p;
  bool max = p->kind == OP_MAXIMUM;
  for (int64_t plane = begin; plane < end; plane++) {
    const float *in = r->in + plane * p->h * p->w, *src = r->src + plane * p->oh * p->ow;
    float *out = r->out + plane * p->h * p->w;
    for (int64_t i = 0; i < p->h * p->w; i++) out[i] = r->init;
    for (int64_t i = 0; i < p->oh; i++) {
      int64_t y0 = MAX(0, i * p->sh - p->top), y1 = MIN(p->h, i * p->sh - p->top + p->kh);
      for (int64_t j = 0; j < p->ow; j++) {
        int64_t x0 = MAX(0, j * p->sw - p->left), x1 = MIN(p->w, j * p->sw - p->left + p->kw);
        if (y0 >= y1 || x0 >= x1) continue;
        int64_t best_at = y0 * p->w + x0;
        float best = in[best_at];
        for (int64_t y = y0; y < y1; y++)
          for (int64_t x = x0; x < x1; x++) {
            float v = in[y * p->w + x];
            bool keep = max ? best >= v : best <= v;
            best_at = keep ? best_at : y * p->w + x;
            best = keep ? best : v;
          }
        out[best_at] += src[i * p->ow + j];
      }
    }
  }
}

static int64_t planes_of(const Pool *p) {
  return MAX(1, 65536 / (p->h * p->w + p->oh * p->ow * p->kh));
}

static Err *run_reduce(void *state, const Op *op, void *const *in, void *const *out) {
  (void)op;
  const Pool *p = state;
  Run r = {.p = p, .in = in[0], .out = out[0], .init = *(const float *)in[1]};
  cpu_parallel(p->planes, planes_of(p), reduce_planes, &r);
  return NULL;
}

static Err *run_scatter(void *state, const Op *op, void *const *in, void *const *out) {
  (void)op;
  const Pool *p = state;
  Run r = {.p = p, .in = in[0], .src = in[1], .out = out[0], .init = *(const float *)in[2]};
  cpu_parallel(p->planes, planes_of(p), scatter_planes, &r);
  return NULL;
}

static bool reduce_of(const Op *op, Pool *p) {
  if (op->n_operands != 2 || op->operands[1]->type->dtype != DT_F32 ||
      op->regions[0]->n_args != 2 || op->regions[0]->args[0]->type->dtype != DT_F32 ||
      !recognise(op, op->operands[0]->type, op_type(op), p))
    return false;
  p->kind = cpu_region_binary(op->regions[0], NULL);
  return p->kind == OP_ADD || p->kind == OP_MULTIPLY || p->kind == OP_MAXIMUM ||
         p->kind == OP_MINIMUM;
}

static bool scatter_of(const Op *op, Pool *p) {
  if (op->operands[2]->type->dtype != DT_F32 ||
      !recognise(op, op->operands[0]->type, op->operands[1]->type, p))
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
