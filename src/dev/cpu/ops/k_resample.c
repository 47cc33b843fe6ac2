/* weft.resample: sums of near places, a row at a time. Which places have a weight is looked up in the
 * matrices at every run; where an element of the operand is not finite all places count, as in the
 * product that it stands for.
 *
 * Two dimensions side by side are done together, a row along itself and rows together: first where
 * there are fewer rows. Others one after the other, those that become smaller first. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/ops/resample.h"

#define TASK_ELEMENTS 65536

typedef struct Step { /* along one dimension, or two side by side */
  int rows, row;      /* matrices: of rows together, -1: none; along a row */
} Step;

typedef struct Matrix {
  int64_t dim, n, m, images; /* images: as many matrices, for each place of dimension 0; 1: one */
  const float *w;
  Band *bands; /* [images] */
  int32_t *ends;
} Matrix;

typedef struct Run {
  const ResampleRows *code;
  const Matrix *rows, *row; /* NULL: as they are */
  Vectors *vectors;         /* [row->images], for places of few elements; NULL */
  const float *x, *x_end;
  float *out;
  int64_t n, m, in, to, inner; /* rows of an image; elements of them before and after; of a place */
  int64_t images;              /* so many for each of dimension 0 */
} Run;

/* ---- weights ---- */

/* Does every place have a weight? */
CLONES static bool find_ends(const float *restrict w, int64_t n, int64_t m, int32_t *restrict low,
                             int32_t *restrict high) {
  for (int64_t j = 0; j < m; j++) low[j] = (int32_t)n, high[j] = 0;
  bool all = true;
  for (int64_t i = 0; i < n; i++) {
    int32_t any = 0;
    for (int64_t j = 0; j < m; j++) {
      bool some = w[i * m + j] != 0;
      low[j] = some && low[j] > i ? (int32_t)i : low[j];
      high[j] = some ? (int32_t)i + 1 : high[j];
      any |= some;
    }
    all &= any;
  }
  return all;
}

typedef struct Look {
  Matrix *m;
  bool all;
} Look;

static void look_at(void *arg, int64_t begin, int64_t end) {
  const Look *l = arg;
  const Matrix *x = l->m;
  for (int64_t k = begin; k < end; k++) {
    Band *b = &x->bands[k];
    *b = (Band){x->w + k * x->n * x->m,       x->n, x->m, 0, x->ends + 2 * k * x->m,
                x->ends + (2 * k + 1) * x->m, true};
    if (!l->all) b->covers = find_ends(b->w, b->n, b->m, b->low, b->high);
    for (int64_t j = 0; j < b->m; j++) {
      if (l->all) b->low[j] = 0, b->high[j] = (int32_t)b->n;
      if (b->high[j] == 0) b->low[j] = 0;
      b->most = MAX(b->most, b->high[j] - b->low[j]);
    }
  }
}

static void vectors_of(Vectors *v, const Band *b, int64_t inner, int64_t lanes) {
  *v = (Vectors){inner, (b->m * inner + lanes - 1) / lanes, b->m * inner, NULL, NULL, NULL, NULL,
                 NULL};
  v->low = xmalloc(sizeof *v->low * (size_t)(v->count * (2 + lanes)));
  v->high = v->low + v->count;
  v->index = v->high + v->count;
  v->at = xmalloc(sizeof *v->at * (size_t)v->count);
  int64_t total = 0;
  for (int64_t q = 0; q < v->count; q++) {
    int64_t last = MIN((q + 1) * lanes, v->elements) - 1;
    int32_t low = INT32_MAX, high = 0;
    for (int64_t j = q * lanes / inner; j <= last / inner; j++) {
      if (b->low[j] < b->high[j]) low = MIN(low, b->low[j]);
      high = MAX(high, b->high[j]);
    }
    v->low[q] = MIN(low, high);
    v->high[q] = high;
    v->at[q] = total;
    total += high - v->low[q];
  }
  v->w = xmalloc(sizeof *v->w * (size_t)MAX(total * lanes, 1));
  for (int64_t q = 0; q < v->count; q++)
    for (int64_t l = 0; l < lanes; l++) {
      int64_t p = q * lanes + l;
      v->index[p] = (int32_t)(p % inner);
      float *w = v->w + v->at[q] * lanes + l;
      for (int64_t i = v->low[q]; i < v->high[q]; i++, w += lanes)
        *w = p < v->elements ? b->w[i * b->m + p / inner] : 0;
    }
}

/* ---- rows ---- */

/* Image `image` begins at x. copy: a row and a vector, for the last row. */
static void along(const Run *r, int64_t image, const float *row, float *copy, float *out) {
  int64_t k = r->row->images > 1 ? image / r->images : 0;
  if (!r->vectors) {
    r->code->places(&r->row->bands[k], row, r->inner, out);
    return;
  }
  if (row != copy && row + r->in + r->code->lanes > r->x_end && row >= r->x && row < r->x_end)
    row = memcpy(copy, row, sizeof *row * (size_t)r->in);
  r->code->vectors(&r->vectors[k], row, out);
}

/* Rows of the result, by the matrix of rows; along themselves before or after. */
static void some_rows(void *arg, int64_t begin, int64_t end) {
  const Run *r = arg;
  int64_t lanes = r->code->lanes, most = 0;
  for (int64_t k = 0; r->rows && k < r->rows->images; k++) most = MAX(most, r->rows->bands[k].most);
  bool first = r->row && r->rows && r->n <= r->m; /* along a row, before rows are added up */
  /* Floats in pairs: places and addresses, which come after them, are aligned. */
  int64_t one = (r->in + lanes + 1) / 2 * 2, all = first ? (most * r->to + 1) / 2 * 2 : 0;
  float *copy = cpu_scratch(sizeof *copy * (size_t)(one + all) +
                            (sizeof(float *) + sizeof(int64_t)) * (size_t)most),
        *kept = copy + one;
  const float **from = (const float **)(void *)(kept + all);
  int64_t *is = (int64_t *)(void *)(from + most); /* the row that place k of kept holds */
  for (int64_t k = 0; k < most; k++) is[k] = -1;
  for (int64_t at = begin; at < end; at++) {
    int64_t image = at / r->m, j = at % r->m;
    const float *x = r->x + image * r->n * r->in;
    float *out = r->out + at * r->to;
    if (!r->rows) {
      along(r, image, x + j * r->in, copy, out);
      continue;
    }
    const Band *b = &r->rows->bands[r->rows->images > 1 ? image / r->images : 0];
    int64_t low = b->low[j], n = b->high[j] - low;
    for (int64_t k = 0; k < n; k++) {
      from[k] = x + (low + k) * r->in;
      if (!first) continue;
      int64_t number = image * r->n + low + k, place = (low + k) % most;
      float *row = kept + place * r->to;
      if (is[place] != number) along(r, image, from[k], copy, row);
      is[place] = number;
      from[k] = row;
    }
    const float *w = b->w + low * b->m + j;
    if (first || !r->row) {
      r->code->sum(from, w, b->m, n, r->to, out);
    } else {
      r->code->sum(from, w, b->m, n, r->in, copy);
      along(r, image, copy, copy, out);
    }
  }
}

/* One step from x to out; dims are the operand's before, and the result's after. */
static void run_step(const Step *s, const Matrix *all, int rank, int64_t *dims, const float *x,
                     float *out) {
  const Matrix *rows = s->rows < 0 ? NULL : &all[s->rows], *row = &all[s->row];
  Run r = {.code = resample_rows(), .rows = rows, .row = row, .x = x, .out = out, .inner = 1};
  int64_t outer = 1;
  for (int i = 0; i < (rows ? rows : row)->dim; i++) outer *= dims[i];
  for (int64_t i = row->dim + 1; i < rank; i++) r.inner *= dims[i];
  if (!rows && r.inner >= r.code->lanes) { /* places are rows */
    rows = r.rows = row;
    row = r.row = NULL;
  }
  r.n = rows ? rows->n : 1, r.m = rows ? rows->m : 1;
  r.in = (row ? row->n : 1) * r.inner, r.to = (row ? row->m : 1) * r.inner;
  r.images = MAX(1, outer / MAX(1, dims[0]));
  r.x_end = x + outer * r.n * r.in;
  if (row && r.inner < r.code->lanes) {
    r.vectors = xmalloc(sizeof *r.vectors * (size_t)row->images);
    for (int64_t k = 0; k < row->images; k++)
      vectors_of(&r.vectors[k], &row->bands[k], r.inner, r.code->lanes);
  }
  int64_t grain = MAX(1, TASK_ELEMENTS / MAX(1, r.to));
  cpu_parallel(outer * r.m, grain, some_rows, &r);
  for (int64_t k = 0; r.vectors && k < row->images; k++) {
    free(r.vectors[k].low);
    free(r.vectors[k].at);
    free(r.vectors[k].w);
  }
  free(r.vectors);
  if (rows) dims[rows->dim] = rows->m;
  if (row) dims[row->dim] = row->m;
}

/* ---- steps ---- */

static int later_first(const void *a, const void *b) {
  const Matrix *x = a, *y = b;
  return (x->dim < y->dim) - (x->dim > y->dim);
}

/* What a step makes of one element. */
static double growth(const Step *s, const Matrix *all) {
  double g = (double)all[s->row].m / (double)all[s->row].n;
  return s->rows < 0 ? g : g * (double)all[s->rows].m / (double)all[s->rows].n;
}

/* Of n matrices, from the last dimension on. */
static int find_steps(const Matrix *all, int n, Step *steps) {
  int count = 0;
  for (int k = 0; k < n; k++) {
    Step s = {-1, k};
    if (k + 1 < n && all[k + 1].dim == all[k].dim - 1) s.rows = ++k;
    int at = count++;
    for (; at > 0 && growth(&steps[at - 1], all) > growth(&s, all); at--) steps[at] = steps[at - 1];
    steps[at] = s;
  }
  return count;
}

/* Elements there are after a step. */
static int64_t count_after(const Step *s, const Matrix *all, int rank, const int64_t *dims) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) {
    const Matrix *rows = s->rows < 0 ? NULL : &all[s->rows];
    n *= i == all[s->row].dim ? all[s->row].m : rows && i == rows->dim ? rows->m : dims[i];
  }
  return n;
}

/* Of n matrices, with their bands; all: every place counts. */
static Err *run_steps(const Op *op, Matrix *all, int n, bool every, const float *in, float *out) {
  const Type *t = op->operands[0]->type;
  int64_t dims[CPU_MAX_RANK];
  Step *steps = xmalloc(sizeof *steps * (size_t)n);
  for (int i = 0; i < t->rank; i++) dims[i] = t->dims[i];
  for (int k = 0; k < n; k++)
    cpu_parallel(all[k].images, MAX(1, 262144 / MAX(1, all[k].n * all[k].m)), look_at,
                 &(Look){&all[k], every});
  int count = find_steps(all, n, steps);
  float *from = NULL;
  size_t from_bytes = 0;
  Err *e = NULL;
  for (int k = 0; k < count && !e; k++) {
    size_t bytes = sizeof(float) * (size_t)count_after(&steps[k], all, t->rank, dims);
    float *to = k == count - 1 ? out : cpu_block_alloc(bytes);
    if (to) run_step(&steps[k], all, t->rank, dims, from ? from : in, to);
    else e = op_err(op, ERR_EXHAUSTED, "no memory for %zu bytes between two steps", bytes);
    if (from) cpu_block_free(from, from_bytes);
    from = to;
    from_bytes = bytes;
  }
  free(steps);
  return e;
}

static Err *run_resample(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const int64_t *at;
  int n = op_ints(op, "dims", &at);
  int64_t n_in = type_count(op->operands[0]->type), n_out = type_count(op_type(op));
  if (n_out == 0) return NULL;
  Matrix *all = xmalloc(sizeof *all * (size_t)n);
  for (int k = 0; k < n; k++) {
    const Type *w = op->operands[k + 1]->type;
    Matrix *m = &all[k];
    *m = (Matrix){at[k],
                  w->dims[w->rank - 2],
                  w->dims[w->rank - 1],
                  w->rank == 3 ? w->dims[0] : 1,
                  in[k + 1],
                  NULL,
                  NULL};
    m->bands = xmalloc(sizeof *m->bands * (size_t)m->images);
    m->ends = xmalloc(sizeof *m->ends * 2 * (size_t)(m->images * m->m));
  }
  qsort(all, (size_t)n, sizeof *all, later_first);
  Err *e = run_steps(op, all, n, false, in[0], out[0]);
  /* What every place counts for is not finite where one of them is not. */
  bool covers = n_out < n_in;
  for (int k = 0; k < n; k++)
    for (int64_t i = 0; i < all[k].images; i++) covers &= all[k].bands[i].covers;
  if (!e && !(covers ? cpu_finite(DT_F32, out[0], n_out) : cpu_finite(DT_F32, in[0], n_in)))
    e = run_steps(op, all, n, true, in[0], out[0]);
  for (int k = 0; k < n; k++) {
    free(all[k].bands);
    free(all[k].ends);
  }
  free(all);
  return e;
}

static double resample_flops(const Op *op) { return 4 * (double)type_count(op_type(op)); }

const CpuKernel cpu_kernels_resample[] = {
    {"resample:f32", OP_RESAMPLE, .run = run_resample, .flops = resample_flops},
    {0},
};
