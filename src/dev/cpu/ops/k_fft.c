/* fft of f32, f64 and their complex types: the dimensions one after another from the last, lines side
 * by side in vectors or, where they are dense and long, each by itself (fft.h). A real line of even length n is a complex one of n / 2 whose result is
 * taken apart. FftLines that are long, or few and not short, are matrices: transforms of the columns,
 * roots of unity, transforms of the rows; those whose length has no two divisors for that are
 * convolved with a chirp (Bluestein), by transforms of a longer line that has. */
#include <math.h>

#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/fft.h"
#include "dev/cpu/kernel/kernel.h"

#define FEW_LINES 3
#define MATRIX_FEW 256    /* a line so long, of few, is a matrix */
#define MATRIX_LONG 32768 /* so long, always: the lines of a vector would leave the cache */
#define ROW_LONG 16384    /* complex elements of a line by itself */
#define TASK_WORK 200000.0

typedef struct Axis { /* how the lines of one dimension are transformed */
  FftForm form;
  int64_t length; /* as the user has it */
  int64_t n;      /* complex elements: half of it for real lines of even length */
  FftRow *row;    /* each line by itself; or */
  Fft *whole;     /* as many as a vector has lanes; or as a matrix: */
  Fft *columns, *rows;
  void *turn;           /* rows x columns roots of unity */
  void *chirp, *filter; /* the matrix is of the convolution; else NULL */
  void *untie;          /* real lines of even length */
} Axis;

typedef struct Plan {
  bool wide, inverse;
  int n_axes;
  Axis axis[3]; /* the last dimension first */
} Plan;

static int64_t line_begin(const FftLines *l, int64_t i) {
  return i / l->inner * l->outer + i % l->inner;
}

#define T float
#define WIDE false
#define NAME(x) x##_f32
#include "dev/cpu/ops/fft_moves.h"
#undef T
#undef WIDE
#undef NAME
#define T double
#define WIDE true
#define NAME(x) x##_f64
#include "dev/cpu/ops/fft_moves.h"
#undef T
#undef WIDE
#undef NAME

static void some_lines(void *arg, int64_t begin, int64_t end) {
  const FftJob *j = arg;
  const FftCode *code = fft_code();
  size_t area = (size_t)(j->row ? fft_row_area(j->row) : fft_area(j->f)) *
                (j->wide ? sizeof(double) : sizeof(float));
  char *x = cpu_scratch(2 * area);
  for (int64_t i = begin; i < end; i++)
    if (j->row) code->row[j->wide](j, i, x, x + area);
    else code->lines[j->wide](j, i * fft_lanes(j->wide), x, x + area);
}

static void all_lines(FftJob *j) {
  int64_t side = j->row ? 1 : fft_lanes(j->wide);
  double work = j->row ? (double)fft_row_area(j->row) : (double)fft_area(j->f);
  work *= (log2(work / (double)side) + 4) * 2;
  cpu_parallel((j->count + side - 1) / side, MAX(1, (int64_t)(TASK_WORK / work)), some_lines, j);
}

/* One complex line as a matrix of n1 rows and n2 columns, x[i1 * n2 + i2]: result k1 + n1 * k2 is
 * element k2 of the transform of row k1, after that of the columns. */
static void one_matrix(const Axis *a, FftJob j, void *between) {
  int64_t n1 = a->columns->n, n2 = a->rows->n;
  FftJob columns = j, rows = j;
  columns.f = a->columns, rows.f = a->rows;
  columns.form = rows.form = FFT_COMPLEX;
  columns.count = n2, rows.count = n1;
  columns.from = columns.to = (FftLines){n2, 0};
  rows.from = (FftLines){1, n2}, rows.to = (FftLines){n1, 0};
  columns.out = between, rows.in = between;
  columns.scale = 1;
  columns.turn = a->turn;
  all_lines(&columns);
  all_lines(&rows);
}

static int64_t matrix_size(const Axis *a) { return a->columns->n * a->rows->n; }

/* n numbers of x times those of w and scale, to y; turn_x, turn_y: their parts stand the other way
 * round. */
static void times(bool wide, int64_t n, const void *w, const void *x, bool turn_x, void *y,
                  bool turn_y, double scale) {
  if (wide) times_f64(n, w, x, turn_x, y, turn_y, scale);
  else times_f32(n, w, x, turn_x, y, turn_y, (float)scale);
}

/* x c, convolved with the conjugates of c, times c, where c_k = e^(-pi i k^2 / n). The filter is the
 * transform of the conjugates. room: three times the matrix. */
static void one_chirped(const Axis *a, FftJob j, char *room) {
  int64_t m = matrix_size(a);
  size_t b = j.wide ? 16 : 8;
  char *x = room, *y = room + b * (size_t)m, *between = y + b * (size_t)m;
  FftJob back = j;
  times(j.wide, a->n, a->chirp, j.in, j.inverse, x, false, 1);
  memset(x + b * (size_t)a->n, 0, b * (size_t)(m - a->n));
  back.in = x, back.out = y, back.scale = 1, back.inverse = false;
  one_matrix(a, back, between);
  times(j.wide, m, a->filter, y, false, y, false, 1);
  back.in = y, back.out = x, back.inverse = true;
  one_matrix(a, back, between);
  times(j.wide, a->n, a->chirp, x, false, j.out, j.inverse, j.scale);
}

/* Line by line. Those that are not dense complex numbers before and after are copied. */
static void matrices(const Axis *a, const FftJob *all) {
  bool odd = a->form != FFT_COMPLEX && a->length % 2;
  bool dense_in = all->from.inner > 1 || a->form == FFT_TO_REAL || odd,
       dense_out = all->to.inner > 1 || a->form == FFT_FROM_REAL || odd;
  size_t b = all->wide ? 16 : 8;
  char *dense = xmalloc(b * (size_t)(a->n + 1)),
       *room = xmalloc(b * (size_t)(matrix_size(a) * (a->chirp ? 3 : 1)));
  for (int64_t i = 0; i < all->count; i++) {
    FftJob j = *all;
    int64_t from = line_begin(&all->from, i), to = line_begin(&all->to, i);
    j.in = dense_in ? dense : (const char *)all->in + from * (int64_t)b;
    j.out = dense_out ? dense : (char *)all->out + to * (int64_t)b;
    if (dense_in && all->wide) line_in_f64(a, all, from, (double *)(void *)dense);
    else if (dense_in) line_in_f32(a, all, from, (float *)(void *)dense);
    if (a->chirp) one_chirped(a, j, room);
    else one_matrix(a, j, room);
    if (dense_out && all->wide) line_out_f64(a, all, to, (double *)(void *)dense);
    else if (dense_out) line_out_f32(a, all, to, (float *)(void *)dense);
  }
  free(dense);
  free(room);
}

static void along(const Plan *p, const Axis *a, int64_t count, FftLines from, const void *in,
                  FftLines to, void *out) {
  FftJob j = {.f = a->whole,
              .row = a->row,
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
  if (a->whole || a->row) all_lines(&j);
  else matrices(a, &j);
}

/* ---- the kernel ---- */

/* All roots of unity of one order, as products of few. */
enum { LOW = 1024 };
typedef struct Roots {
  int64_t n;
  double *r;
} Roots;

static Roots roots_of(int64_t n) {
  int64_t high = n / LOW + 1;
  double *r = xmalloc(sizeof *r * (size_t)(2 * (high + LOW)));
  for (int64_t k = 0; k < LOW; k++) fft_root(k, n, &r[2 * k], &r[2 * k + 1]);
  for (int64_t k = 0; k < high; k++) fft_root(k * LOW, n, &r[2 * (LOW + k)], &r[2 * (LOW + k) + 1]);
  return (Roots){n, r};
}

static void root(const Roots *t, int64_t k, double *re, double *im) { /* 0 <= k < n */
  const double *a = &t->r[2 * (k % LOW)], *b = &t->r[2 * (LOW + k / LOW)];
  *re = a[0] * b[0] - a[1] * b[1];
  *im = a[0] * b[1] + a[1] * b[0];
}

static void put(void *w, bool wide, int64_t at, double re, double im) {
  if (wide) ((double *)w)[2 * at] = re, ((double *)w)[2 * at + 1] = im;
  else ((float *)w)[2 * at] = (float)re, ((float *)w)[2 * at + 1] = (float)im;
}

static void *turns(int64_t n1, int64_t n2, bool wide) {
  Roots t = roots_of(n1 * n2);
  void *w = xmalloc((wide ? 16u : 8u) * (size_t)(n1 * n2));
  double re, im;
  for (int64_t i = 0; i < n1; i++)
    for (int64_t j = 0; j < n2; j++) {
      root(&t, i * j, &re, &im);
      put(w, wide, i * n2 + j, re, im);
    }
  free(t.r);
  return w;
}

static void plan_matrix(Axis *a, int64_t n1, int64_t n2, bool wide) {
  a->columns = fft_new(n1, wide);
  a->rows = fft_new(n2, wide);
  a->turn = turns(n1, n2, wide);
}

static void release_axis(Axis *a) {
  fft_row_free(a->row);
  fft_free(a->whole);
  fft_free(a->columns);
  fft_free(a->rows);
  free(a->turn);
  free(a->chirp);
  free(a->filter);
  free(a->untie);
}

static void plan_chirp(Axis *a, bool wide) {
  int64_t n = a->n, m = fft_convolution(n), n1 = fft_split(m);
  Axis exact = {0};
  plan_matrix(a, n1, m / n1, wide);
  plan_matrix(&exact, n1, m / n1, true);
  size_t all = sizeof(double) * (size_t)(2 * m);
  double *x = xcalloc(1, all), *y = xmalloc(all), *between = xmalloc(all), re, im;
  a->chirp = xmalloc((wide ? 16u : 8u) * (size_t)n);
  a->filter = xmalloc((wide ? 16u : 8u) * (size_t)m);
  Roots t = roots_of(2 * n);
  for (int64_t k = 0; k < n; k++) {
    root(&t, (int64_t)((unsigned __int128)k * (uint64_t)k % (uint64_t)(2 * n)), &re, &im);
    put(a->chirp, wide, k, re, im);
    put(x, true, k, re, -im);
    if (k) put(x, true, m - k, re, -im);
  }
  one_matrix(&exact, (FftJob){.wide = true, .in = x, .out = y, .scale = 1}, between);
  for (int64_t k = 0; k < m; k++)
    put(a->filter, wide, k, y[2 * k] / (double)m, y[2 * k + 1] / (double)m);
  free(t.r);
  free(x), free(y), free(between);
  release_axis(&exact);
}

/* Is a dense line of n complex elements transformed by itself? Of many short ones a vector is full,
 * too, when they lie side by side. */
static bool goes_alone(int64_t n, int64_t count, int64_t lanes) {
  int64_t m = n / lanes, groups = (m + lanes - 1) / lanes * lanes; /* of the first pass */
  return n % lanes == 0 && m > 1 && n <= ROW_LONG &&
         (count < lanes / 2 || (m >= lanes && groups * 9 <= m * 10));
}

/* dense: the elements of a line lie one after another. */
static void plan_axis(Axis *a, FftForm form, int64_t length, int64_t count, bool dense, bool wide) {
  bool half = form != FFT_COMPLEX && length % 2 == 0;
  int64_t n = half ? length / 2 : length, n1 = fft_split(n);
  a->form = form;
  a->length = length;
  a->n = n;
  if (half) a->untie = fft_untie_table(n, wide);
  if (dense && (half || form == FFT_COMPLEX) && goes_alone(n, count, fft_lanes(wide)))
    a->row = fft_row_new(n, wide);
  else if (n < MATRIX_LONG && (count > FEW_LINES || n < MATRIX_FEW)) a->whole = fft_new(n, wide);
  else if (n1) plan_matrix(a, n1, n / n1, wide);
  else plan_chirp(a, wide);
}

static Err *prepare(const Op *op, void **state) {
  Plan *p = xcalloc(1, sizeof *p);
  const Type *t = op->operands[0]->type, *o = op_type(op);
  Str type = op_str(op, "fft_type");
  const int64_t *length;
  FftForm form = str_is(type, "RFFT")    ? FFT_FROM_REAL
                 : str_is(type, "IRFFT") ? FFT_TO_REAL
                                         : FFT_COMPLEX;
  p->n_axes = op_ints(op, "fft_length", &length);
  p->inverse = str_is(type, "IFFT") || str_is(type, "IRFFT");
  p->wide = dtype_real_of(o->dtype) == DT_F64;
  const Type *narrow = form == FFT_FROM_REAL ? o : t; /* complex, as the other dimensions see it */
  for (int i = 0; i < p->n_axes && type_count(o); i++) {
    int64_t n = length[p->n_axes - 1 - i];
    plan_axis(&p->axis[i], i ? FFT_COMPLEX : form, n,
              type_count(narrow) / narrow->dims[narrow->rank - 1 - i], i == 0, p->wide);
  }
  *state = p;
  return NULL;
}

static void release(void *state) {
  Plan *p = state;
  for (int i = 0; i < p->n_axes; i++) release_axis(&p->axis[i]);
  free(p);
}

/* The dimensions before the last one, from `in` (which may be `out`) to `out`. */
static void outer_axes(const Plan *p, const Type *t, const void *in, void *out) {
  int64_t inner = t->dims[t->rank - 1], count = type_count(t);
  for (int i = 1; i < p->n_axes; i++) {
    int64_t n = t->dims[t->rank - 1 - i];
    FftLines l = {inner, inner * n};
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
  if (last->form == FFT_FROM_REAL && even) from_n /= 2; /* pairs as complex numbers */
  if (last->form == FFT_TO_REAL && even) to_n /= 2;
  const void *source = in[0];
  void *copy = NULL;
  if (last->form == FFT_TO_REAL && p->n_axes > 1) {
    copy = xmalloc((size_t)type_bytes(t));
    outer_axes(p, t, in[0], copy);
    source = copy;
  }
  along(p, last, rows, (FftLines){1, from_n}, source, (FftLines){1, to_n}, out[0]);
  if (last->form != FFT_TO_REAL) outer_axes(p, o, out[0], out[0]);
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
