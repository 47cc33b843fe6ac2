/* Products of which one operand stays in a core's second cache, or near: neither is packed but a rhs
 * whose columns are no runs. Tasks are whole products, or pieces of the rows or columns of one. */
#include "dev/cpu/dot/dot.h"

#define NEAR_FLOATS 4096    /* of the lhs: with a panel of the rhs in the first one */
#define RESULT_FLOATS 16384 /* written column by column: longer rows one panel at a time */
#define SPAN 32768          /* floats that a rhs may span and not be copied; half of it, ... */
#define DENSE 262144        /* with AVX-512 of one whose rows follow one another, with */
#define SHORT_K_512 64      /* so few of them, or times */
#define FEW_ROWS 48         /* or, in whole vectors, */
#define MORE_ROWS 512
#define DENSE_FEW 1048576 /* times */
#define FEWER_ROWS 32
#define ALIAS 256        /* where rows are multiples of so many: they share cache lines */
#define ALIAS_LHS 1024   /* all of them the same ones */
#define PACK_ROWS 128    /* of a task that copies its rhs */
#define BATCH 16         /* products that are tasks enough */
#define ASK_FLOATS 12288 /* so large operands are asked for during the product before */
#define BLOCK 512        /* of k */
#define MANY_ROWS 128    /* by */
#define MANY_COLUMNS 256 /* results, of */
#define MANY_TERMS 9     /* or more, so there are no `shorts`: dot:gemm asks for them sooner */
#define GRAIN 2.5e5      /* multiplications of a task; */
#define TASKS 16         /* or so many of a product, by columns */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

static SmallRows rows_of(int64_t rows, int64_t panel) {
  int64_t panels = parts_of(rows, panel);
  return (SmallRows){rows, panels, rows / panels, rows % panels};
}

/* As dot_few_cost, of a product. */
static double cost(const Dot *d, int64_t panel) {
  const Small *s = &d->small;
  double lanes = (double)gemm_kernels()->lanes, m = (double)d->m, n = (double)d->n,
         k = (double)d->k, vectors = (double)parts_of(d->n, gemm_kernels()->lanes) * lanes,
         panels = (double)(parts_of(d->m, panel) * parts_of(d->n, s->wide));
  return 0.5 * panels * k + m * vectors * (0.02 * k + 0.05) + (s->pack ? 0.1 * n * k : 0);
}

/* NULL: none for this k, or these columns. */
static const GemmShort *shorts(const Dot *d, int64_t columns) {
  if (d->k > GEMM_SHORT_K) return NULL;
  const GemmShort *fn = &gemm_kernels()->shorts[d->k - 1];
  return columns > fn->columns ? fn : NULL;
}

/* Floats that a rhs may span and not be copied. With rows enough a copy is worth more than it takes;
 * with AVX-512 a rhs is read half as often, and that is worth less; with `shorts` once. */
static int64_t span_of(const Dot *d) {
  int64_t lanes = gemm_kernels()->lanes, alias = d->rhs.k_stride % ALIAS == 0;
  bool wide = lanes >= 16, whole = d->n % lanes == 0 && d->lhs.free_stride % ALIAS_LHS,
       few = d->k <= SHORT_K_512 || d->m <= FEW_ROWS || (whole && d->m <= MORE_ROWS);
  if (d->rhs.k_stride == d->n && shorts(d, d->n)) return INT64_MAX;
  if (d->rhs.k_stride == d->n && wide && d->m <= FEWER_ROWS && !cpu_big_core()) return DENSE_FEW;
  if (d->rhs.k_stride == d->n && wide && few) return DENSE;
  return alias ? SPAN / 2 : SPAN;
}

/* Sums stay in registers here, dot:few's pass through them; but the matrix is read at random. */
static bool is_faster_than_few(const Dot *d) {
  return cpu_big_core() && d->few.lhs && d->few.few > 1 && !d->few.dots && !d->few.far;
}

/* On hosts where results that are not in the second cache come from far. */
static bool waits_for_results(const Dot *d) {
  return cpu_big_core() && d->m >= MANY_ROWS && d->n >= MANY_COLUMNS && d->k >= MANY_TERMS &&
         2 * d->m * d->n * (int64_t)sizeof(float) >= cpu_second_cache();
}

bool dot_small_plan(Dot *d) {
  const GemmKernels *kern = gemm_kernels();
  Small *s = &d->small;
  if (!kern || d->in != DT_F32 || d->out != DT_F32 || d->b * d->m * d->n * d->k == 0) return false;
  if (!d->lhs.direct || !d->rhs.direct || waits_for_results(d)) return false;
  s->wide = d->n > kern->lanes ? 2 * kern->lanes : kern->lanes;
  int64_t panel = s->wide == kern->lanes ? GEMM_MAX_MR : kern->mr, span = span_of(d);
  s->pack = d->rhs.free_stride != 1 || (d->m > panel && d->k * d->rhs.k_stride > span);
  if (d->n * d->k > (s->pack ? SPAN / 2 : MAX(SPAN, span))) return false;
  /* A lhs with runs along its rows: each panel reads a part of k lines. */
  if (d->lhs.k_stride != 1 && d->m * d->k > SPAN && (d->n > s->wide || d->k > BLOCK / 2))
    return false;
  /* Those that cut k too are first where it is long. */
  bool few = dot_few_plan(d) && !is_faster_than_few(d);
  if (d->n * d->k > SPAN && (few || dot_long_plan(d))) return false;
  if (few && dot_few_cost(d) < cost(d, panel)) return false;
  s->b_k = s->pack ? s->wide : d->rhs.k_stride;
  s->b_step = s->pack ? s->wide * d->k : s->wide;
  s->kc = parts_of(d->k, parts_of(d->k, BLOCK));
  s->near = MAX(1, MIN(NEAR_FLOATS / s->kc, RESULT_FLOATS / d->n) / panel);
  int64_t want = MAX(s->pack ? PACK_ROWS : 1, (int64_t)(GRAIN / (double)(d->n * d->k))),
          rows = s->pack && d->b >= BATCH ? d->m : MIN(d->m, parts_of(want, panel) * panel);
  s->columns = d->n;
  if (!s->pack && d->b < BATCH && d->n > d->m) { /* tasks by columns */
    int64_t least = MAX(d->n / TASKS, (int64_t)(GRAIN / (double)(d->m * d->k)));
    s->columns = MIN(d->n, (least / s->wide + 1) * s->wide);
    rows = d->m;
  }
  s->pieces = parts_of(d->m, rows) * parts_of(d->n, s->columns);
  s->rows[0] = rows_of(rows, panel);
  s->rows[1] = rows_of(d->m - (parts_of(d->m, rows) - 1) * rows, panel);
  s->ask = (d->m + d->n) * d->k < ASK_FLOATS
               ? 0
               : s->rows[1].panels * parts_of(s->columns, s->wide) * parts_of(d->k, s->kc);
  return true;
}

typedef struct Call {
  const Dot *d;
  const float *lhs, *rhs;
  float *out;
  float *prepacked; /* the copy of the rhs; NULL: each task makes its own */
} Call;

/* Blocks of columns whose part of the rhs stays in the first cache, row by row: writing the results is
 * most of the work. */
static void short_product(const Dot *d, const GemmShort *fn, int64_t rows, int64_t columns,
                          const float *a, const float *b, float *c) {
  const Small *s = &d->small;
  GemmAt at = {.a_row = d->lhs.free_stride,
               .a_k = d->lhs.k_stride,
               .b_k = s->b_k,
               .c_row = d->n,
               .asks = cpu_big_core()};
  int64_t step = NEAR_FLOATS / d->k / s->wide * s->wide;
  for (int64_t j = 0; j < columns; j += step)
    for (int64_t i = 0, n; i < rows; i += n) {
      n = rows - i >= fn->rows ? fn->rows : 1;
      (n > 1 ? fn->all : fn->one)(&at, s->b_step, a + i * at.a_row, b + j / s->wide * s->b_step,
                                  c + i * d->n + j, MIN(step, columns - j));
    }
}

/* Rows of one product, so many columns of them. Where all columns end within a vector, whole ones are
 * written: what comes after them, the beginning of the next rows, is written later. */
static void product(const Dot *d, const SmallRows *rows, int64_t columns, const float *a,
                    const float *b, float *c, GemmComing next[2]) {
  const Small *s = &d->small;
  const GemmKernels *kern = gemm_kernels();
  GemmAt at = {.a_row = d->lhs.free_stride,
               .a_k = d->lhs.k_stride,
               .b_k = s->b_k,
               .c_row = d->n,
               .c_end = columns < d->n ? NULL : c + rows->rows * d->n};
  int64_t end = (columns - 1) / s->wide * s->wide;
  for (int64_t p = 0; p < d->k; p += s->kc) {
    int64_t k = MIN(s->kc, d->k - p), row = 0;
    for (int64_t i0 = 0; i0 < rows->panels; i0 += s->near) {
      int64_t i1 = MIN(i0 + s->near, rows->panels), first = row;
      for (int64_t j = end, w = columns - end; j >= 0; j -= s->wide, w = s->wide) {
        const GemmPanelFn *fn = kern->panel[w > kern->lanes];
        const float *x = a + first * at.a_row, *y = b + j / s->wide * s->b_step;
        float *z = c + first * d->n + j;
        row = first;
        for (int64_t i = i0, n; i < i1; i++) {
          n = rows->thin + (i < rows->thick);
          gemm_ask(&next[0]);
          gemm_ask(&next[1]);
          fn[n - 1](&at, k, x, y, z, w, p > 0);
          x += n * at.a_row;
          z += n * d->n;
          row += n;
        }
      }
    }
    a += s->kc * at.a_k;
    b += s->kc * at.b_k;
    at.c_end = NULL;
  }
}

static void pack(const Dot *d, const float *rhs, float *copy) {
  const Small *s = &d->small;
  int64_t step = d->rhs.free_stride, k_step = d->rhs.k_stride, whole = d->n / s->wide,
          left = d->n % s->wide;
  if (whole)
    gemm_pack(DT_F32, rhs, step, k_step, (int)s->wide, (int)s->wide, d->k, whole, s->b_step, copy);
  if (left)
    gemm_pack(DT_F32, rhs + whole * s->wide * step, step, k_step, (int)left, (int)s->wide, d->k, 1,
              s->b_step, copy + whole * s->b_step);
}

static size_t copy_bytes(const Dot *d) {
  const Small *s = &d->small;
  return s->pack ? sizeof(float) * (size_t)(parts_of(d->n, s->wide) * s->b_step) : 0;
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Small *s = &d->small;
  float *copy = c->prepacked ? c->prepacked : s->pack ? cpu_scratch(copy_bytes(d)) : NULL;
  const float *packed = c->prepacked ? c->rhs : NULL;
  int64_t b = begin / s->pieces, piece = begin % s->pieces, lo, ro;
  for (int64_t t = begin; t < end; t++) {
    dot_batch_at(d, b, &lo, &ro);
    const float *rhs = c->rhs + ro;
    if (s->pack && packed != rhs) pack(d, rhs, copy);
    packed = rhs;
    bool by_columns = s->columns < d->n;
    int64_t row = by_columns ? 0 : piece * s->rows[0].rows, j = by_columns ? piece * s->columns : 0;
    bool last = piece == s->pieces - 1;
    GemmComing next[2] = {0};
    if (s->ask && last && b + 1 < d->b) {
      const Side *l = &d->lhs, *r = &d->rhs;
      int64_t l1, r1;
      dot_batch_at(d, b + 1, &l1, &r1);
      next[0] = gemm_coming(DT_F32, c->lhs + l1, d->m, l->free_stride, d->k, l->k_stride, s->ask);
      next[1] = gemm_coming(DT_F32, c->rhs + r1, d->n, r->free_stride, d->k, r->k_stride, s->ask);
    }
    int64_t columns = MIN(s->columns, d->n - j);
    const float *x = c->lhs + lo + row * d->lhs.free_stride, *y = s->pack ? copy : rhs + j;
    float *z = c->out + (b * d->m + row) * d->n + j;
    const GemmShort *fn = shorts(d, columns);
    if (fn) short_product(d, fn, s->rows[last].rows, columns, x, y, z);
    else product(d, &s->rows[last], columns, x, y, z, next);
    piece = last ? 0 : piece + 1;
    b += last;
  }
}

static Err *run_as(const Dot *d, void *const *in, void *const *out, float *prepacked) {
  const Small *s = &d->small;
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0], .prepacked = prepacked};
  double each = (double)s->rows[0].rows * (double)s->columns * (double)d->k;
  cpu_parallel(d->b * s->pieces, (int64_t)(GRAIN / each) + 1, tasks, &c);
  return NULL;
}

Err *dot_small_run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)op;
  return run_as(state, in, out, NULL);
}

/* A rhs that stays the same is copied once a loop. */
size_t dot_small_prepack_bytes(void *state, unsigned fixed) {
  const Dot *d = state;
  return d->b == 1 && fixed & 2 ? copy_bytes(d) : 0;
}

Err *dot_small_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                             unsigned fixed, void *prepacked, bool fresh) {
  (void)op;
  (void)fixed;
  if (fresh) pack(state, in[1], prepacked);
  return run_as(state, in, out, prepacked);
}
