/* fft of f32, f64 and their complex types: FFT_LANES lines at a time, the dimensions one after
 * another from the last. A real line of even length n is a complex one of n / 2 whose result is
 * taken apart. Lines that are long, or few and not short, are matrices: transforms of the columns,
 * roots of unity, transforms of the rows. */
#include <math.h>

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/fft.h"
#include "dev/cpu/kernel/kernel.h"

#define FEW_LINES 3
#define MATRIX_FEW 256    /* a line so long, of few, is a matrix */
#define MATRIX_LONG 32768 /* so long, always: FFT_LANES of them would leave the cache */
#define TASK_WORK 200000.0

typedef enum Form { COMPLEX, FROM_REAL, TO_REAL } Form;

/* Line i begins at (i / inner) * outer + i % inner, its elements are inner apart; in complex
 * numbers, or real ones where a real line is of odd length. */
typedef struct Lines {
  int64_t inner, outer;
} Lines;

typedef struct Axis { /* how the lines of one dimension are transformed */
  Form form;
  int64_t
      length; /* as the user has it; complex elements: half of it for real lines of even length */
  Fft *whole; /* NULL: as a matrix */
  Fft *columns, *rows;
  void *turn;    /* rows x columns roots of unity */
  double *untie; /* real lines of even length: the first length / 4 + 1 roots */
} Axis;

typedef struct Plan {
  bool wide, inverse;
  int n_axes;
  Axis axis[3]; /* the last dimension first */
} Plan;

typedef struct Job {
  const Fft *f;
  Form form;
  bool wide, inverse;
  int64_t length, count;
  Lines from, to;
  const void *in;
  void *out;
  double scale;
  const void *turn;
  const double *untie;
} Job;

static int64_t line_begin(const Lines *l, int64_t i) {
  return i / l->inner * l->outer + i % l->inner;
}

static bool side_by_side(const Lines *l, int64_t first, int lanes) {
  return lanes == FFT_LANES && first % l->inner + FFT_LANES <= l->inner;
}

#define T float
#define NAME(x) x##_f32
#include "dev/cpu/ops/fft_moves.h"
#undef T
#undef NAME
#define T double
#define NAME(x) x##_f64
#include "dev/cpu/ops/fft_moves.h"
#undef T
#undef NAME

static void some_lines(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  int64_t area = fft_area(j->f);
  if (j->wide) {
    double *x = cpu_scratch(sizeof *x * (size_t)(2 * area));
    for (int64_t i = begin; i < end; i++) lines_f64(j, i * FFT_LANES, x, x + area);
  } else {
    float *x = cpu_scratch(sizeof *x * (size_t)(2 * area));
    for (int64_t i = begin; i < end; i++) lines_f32(j, i * FFT_LANES, x, x + area);
  }
}

static void all_lines(Job *j) {
  double work = (double)fft_area(j->f) * (log2((double)fft_length(j->f)) + 4) * 4;
  cpu_parallel((j->count + FFT_LANES - 1) / FFT_LANES, MAX(1, (int64_t)(TASK_WORK / work)),
               some_lines, j);
}

/* One complex line as a matrix of n1 rows and n2 columns, x[i1 * n2 + i2]: result k1 + n1 * k2 is
 * element k2 of the transform of row k1, after that of the columns. */
static void one_matrix(const Axis *a, Job j, void *between) {
  int64_t n1 = fft_length(a->columns), n2 = fft_length(a->rows);
  Job columns = j, rows = j;
  columns.f = a->columns, rows.f = a->rows;
  columns.form = rows.form = COMPLEX;
  columns.count = n2, rows.count = n1;
  columns.from = columns.to = (Lines){n2, 0};
  rows.from = (Lines){1, n2}, rows.to = (Lines){n1, 0};
  columns.out = between, rows.in = between;
  columns.scale = 1;
  columns.turn = a->turn;
  all_lines(&columns);
  all_lines(&rows);
}

static void copy_line(size_t bytes, int64_t n, const char *in, int64_t in_step, char *out,
                      int64_t out_step) {
  for (int64_t k = 0; k < n; k++)
    memcpy(out + k * out_step * (int64_t)bytes, in + k * in_step * (int64_t)bytes, bytes);
}

/* Line by line. Lines in steps are copied to and from a dense one; so are those that are taken
 * apart or put together from halves. */
static void matrices(const Axis *a, const Job *all) {
  int64_t n = fft_length(a->columns) * fft_length(a->rows);
  size_t b = all->wide ? 16 : 8;
  char *dense = xmalloc(b * (size_t)(n + 1)), *between = xmalloc(b * (size_t)n);
  for (int64_t i = 0; i < all->count; i++) {
    Job j = *all;
    const char *in = (const char *)all->in + line_begin(&all->from, i) * (int64_t)b;
    char *out = (char *)all->out + line_begin(&all->to, i) * (int64_t)b;
    bool to_half = a->form == TO_REAL, dense_out = a->form == FROM_REAL || all->to.inner > 1;
    if (all->from.inner > 1 || to_half) {
      copy_line(b, n + to_half, in, all->from.inner, dense, 1);
      in = dense;
    }
    if (to_half && all->wide) {
      double *x = (double *)(void *)dense;
      x[1] = x[2 * n];
      tie_f64(n, a->untie, x, x + 1, 2, 1);
    } else if (to_half) {
      float *x = (float *)(void *)dense;
      x[1] = x[2 * n];
      tie_f32(n, a->untie, x, x + 1, 2, 1);
    }
    j.in = in;
    j.out = dense_out ? dense : out;
    one_matrix(a, j, between);
    if (a->form == FROM_REAL && all->wide) {
      double *x = (double *)(void *)dense;
      untie_f64(n, a->untie, x, x + 1, 2, 1);
      ends_f64(x, n, x[1]);
    } else if (a->form == FROM_REAL) {
      float *x = (float *)(void *)dense;
      untie_f32(n, a->untie, x, x + 1, 2, 1);
      ends_f32(x, n, x[1]);
    }
    if (dense_out) copy_line(b, n + (a->form == FROM_REAL), dense, 1, out, all->to.inner);
  }
  free(dense);
  free(between);
}

static void along(const Plan *p, const Axis *a, int64_t count, Lines from, const void *in, Lines to,
                  void *out) {
  Job j = {.f = a->whole,
           .form = a->form,
           .wide = p->wide,
           .inverse = p->inverse,
           .length = a->length,
           .count = count,
           .from = from,
           .to = to,
           .in = in,
           .out = out,
           .scale = p->inverse ? 1 / (double)a->length : 1,
           .untie = a->untie};
  if (a->whole) all_lines(&j);
  else matrices(a, &j);
}

/* ---- the kernel ---- */

static void *turns(int64_t n1, int64_t n2, bool wide) {
  enum { LOW = 1024 };
  int64_t n = n1 * n2, high = n / LOW + 1;
  double *r = xmalloc(sizeof *r * (size_t)(2 * (high + LOW)));
  for (int64_t k = 0; k < LOW; k++) fft_root(k, n, &r[2 * k], &r[2 * k + 1]);
  for (int64_t k = 0; k < high; k++) fft_root(k * LOW, n, &r[2 * (LOW + k)], &r[2 * (LOW + k) + 1]);
  char *w = xmalloc((wide ? 16u : 8u) * (size_t)n);
  for (int64_t i = 0; i < n1; i++)
    for (int64_t j = 0; j < n2; j++) {
      const double *a = &r[2 * (i * j % LOW)], *b = &r[2 * (LOW + i * j / LOW)];
      double re = a[0] * b[0] - a[1] * b[1], im = a[0] * b[1] + a[1] * b[0];
      int64_t at = 2 * (i * n2 + j);
      if (wide) ((double *)(void *)w)[at] = re, ((double *)(void *)w)[at + 1] = im;
      else ((float *)(void *)w)[at] = (float)re, ((float *)(void *)w)[at + 1] = (float)im;
    }
  free(r);
  return w;
}

static void plan_axis(Axis *a, Form form, int64_t length, int64_t count, bool wide) {
  bool half = form != COMPLEX && length % 2 == 0, odd = form != COMPLEX && length % 2;
  int64_t n = half ? length / 2 : length;
  a->form = form;
  a->length = length;
  bool matrix = !odd && (n >= MATRIX_LONG || (count <= FEW_LINES && n >= MATRIX_FEW));
  int64_t n1 = matrix ? fft_split(n) : 0;
  if (n1) {
    a->columns = fft_new(n1, wide);
    a->rows = fft_new(n / n1, wide);
    a->turn = turns(n1, n / n1, wide);
  } else {
    a->whole = fft_new(n, wide);
  }
  if (!half) return;
  a->untie = xmalloc(sizeof(double) * (size_t)(2 * (n / 2 + 1)));
  for (int64_t k = 0; k <= n / 2; k++) fft_root(k, length, &a->untie[2 * k], &a->untie[2 * k + 1]);
}

static Err *prepare(const Op *op, void **state) {
  Plan *p = xcalloc(1, sizeof *p);
  const Type *t = op->operands[0]->type, *o = op_type(op);
  Str type = op_str(op, "fft_type");
  const int64_t *length;
  Form form = str_is(type, "RFFT") ? FROM_REAL : str_is(type, "IRFFT") ? TO_REAL : COMPLEX;
  p->n_axes = op_ints(op, "fft_length", &length);
  p->inverse = str_is(type, "IFFT") || str_is(type, "IRFFT");
  p->wide = dtype_real_of(o->dtype) == DT_F64;
  const Type *narrow = form == FROM_REAL ? o : t; /* complex, as the other dimensions see it */
  for (int i = 0; i < p->n_axes && type_count(o); i++) {
    int64_t n = length[p->n_axes - 1 - i];
    plan_axis(&p->axis[i], i ? COMPLEX : form, n,
              type_count(narrow) / narrow->dims[narrow->rank - 1 - i], p->wide);
  }
  *state = p;
  return NULL;
}

static void release(void *state) {
  Plan *p = state;
  for (int i = 0; i < p->n_axes; i++) {
    Axis *a = &p->axis[i];
    fft_free(a->whole);
    fft_free(a->columns);
    fft_free(a->rows);
    free(a->turn);
    free(a->untie);
  }
  free(p);
}

/* The dimensions before the last one, from `in` (which may be `out`) to `out`. */
static void outer_axes(const Plan *p, const Type *t, const void *in, void *out) {
  int64_t inner = t->dims[t->rank - 1], count = type_count(t);
  for (int i = 1; i < p->n_axes; i++) {
    int64_t n = t->dims[t->rank - 1 - i];
    Lines l = {inner, inner * n};
    along(p, &p->axis[i], count / n, l, in, l, out);
    in = out;
    inner *= n;
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  const Plan *p = state;
  const Type *t = op->operands[0]->type, *o = op_type(op);
  if (type_count(o) == 0) return NULL;
  const Axis *last = &p->axis[0];
  int64_t from_n = t->dims[t->rank - 1], to_n = o->dims[o->rank - 1], rows = type_count(o) / to_n;
  bool even = last->length % 2 == 0;
  if (last->form == FROM_REAL && even) from_n /= 2; /* pairs as complex numbers */
  if (last->form == TO_REAL && even) to_n /= 2;
  const void *source = in[0];
  void *copy = NULL;
  if (last->form == TO_REAL && p->n_axes > 1) {
    copy = xmalloc((size_t)type_bytes(t));
    outer_axes(p, t, in[0], copy);
    source = copy;
  }
  along(p, last, rows, (Lines){1, from_n}, source, (Lines){1, to_n}, out[0]);
  if (last->form != TO_REAL) outer_axes(p, o, out[0], out[0]);
  free(copy);
  return NULL;
}

static bool accepts(const Op *op) {
  const Type *t = op->operands[0]->type, *o = op_type(op);
  DType r = dtype_real_of(t->dtype);
  const int64_t *length;
  int n = op_ints(op, "fft_length", &length);
  return (r == DT_F32 || r == DT_F64) && dtype_real_of(o->dtype) == r && n >= 1 && n <= 3 &&
         n <= t->rank && !t->quant;
}

static double flops(const Op *op) {
  const Type *t = op->operands[0]->type, *o = op_type(op);
  const int64_t *length;
  int n = op_ints(op, "fft_length", &length);
  double all = (double)MAX(type_count(t), type_count(o)), points = 1;
  for (int i = 0; i < n; i++) points *= (double)length[i];
  return 5 * all * log2(MAX(points, 2)) *
         (str_is(op_str(op, "fft_type"), "FFT") || str_is(op_str(op, "fft_type"), "IFFT") ? 1
                                                                                          : 0.5);
}

const CpuKernel cpu_kernels_fft[] = {
    {.name = "fft:lanes",
     .kind = OP_FFT,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .release = release,
     .flops = flops},
    {0},
};
