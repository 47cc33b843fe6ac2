/* chlo.ragged_dot of f32: each group's rows are a product. Groups of few rows go side by side, their matrices read or written once, where
 * they are; the others one after the other, by gemm's kernels or, on hosts that have none, BLAS. */
#include <cblas.h>

#include "blas/blas.h"
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/kernel/kernel.h"

#define FEW 6         /* rows of a group that is not worth packing */
#define COLUMNS 512   /* of sums that stay in the first cache, */
#define BLOCK 512     /* and steps of k that are added up at a time */
#define AHEAD 16      /* a row's last vector is written whole */
#define TASK 131072.0 /* elements of matrices, wanted of a task */

/* x [m, k]. Rows: times [groups, k, n], or [groups, n, k] if turned, [m, n]. Groups: times [m, n], [groups, k, n]. */
typedef struct Ragged {
  int64_t m, k, n, groups;
  bool turned;
  const float *x, *y;
  float *out;
  int64_t *ends; /* of the groups' rows; each begins where the one before it ends */
} Ragged;

static int64_t begin_of(const Ragged *r, int64_t g) { return g ? r->ends[g - 1] : 0; }

static void put_zeros(float *x, int64_t n) { memset(x, 0, sizeof *x * (size_t)n); }

/* c[m, n] = a b, where one of the steps of each operand is 1. false: no memory. */
static bool multiply(int64_t m, int64_t n, int64_t k, const GemmArgs *x) {
  Gemm g;
  if (gemm_kernels()) {
    gemm_plan(&g, m, n, k, (GemmTypes){DT_F32, DT_F32, DT_F32}, 1, GEMM_SMALLER, x->b_col == 1);
    return gemm_run(&g, x, NULL, false);
  }
  blas_begin();
  cblas_sgemm(CblasRowMajor, x->a_k == 1 ? CblasNoTrans : CblasTrans,
              x->b_col == 1 ? CblasNoTrans : CblasTrans, (blasint)m, (blasint)n, (blasint)k, 1,
              x->a, (blasint)(x->a_k == 1 ? MAX(x->a_row, k) : x->a_k), x->b,
              (blasint)(x->b_col == 1 ? MAX(x->b_k, n) : x->b_col), 0, x->c, (blasint)n);
  return true;
}

/* ---- groups of few rows ---- */

static bool is_few(const Ragged *r, int64_t g) {
  const GemmKernels *kern = gemm_kernels();
  return kern && r->ends[g] - begin_of(r, g) <= FEW && r->k >= kern->lanes && r->n >= kern->lanes;
}

/* Columns [j, j + n) of a group's rows. */
static void few_columns(const Ragged *r, int64_t g, int64_t j, int64_t n) {
  enum { LD = COLUMNS + AHEAD };
  float sums[FEW * LD], part[FEW * LD];
  const GemmKernels *kern = gemm_kernels();
  int64_t from = begin_of(r, g), rows = r->ends[g] - from;
  bool far = r->groups * r->k * r->n * (int64_t)sizeof(float) > cpu_second_cache();
  for (int64_t p = 0; p < r->k; p += BLOCK) {
    int64_t k = MIN(BLOCK, r->k - p);
    float *to = p ? part : sums;
    const float *x = r->x + from * r->k + p, *y = r->y + g * r->k * r->n;
    for (int64_t i = 0; i < rows; i++) put_zeros(to + i * LD, n + AHEAD);
    if (r->turned) kern->dots[0](rows, x, r->k, y + j * r->k + p, r->k, n, k, to, LD, far);
    else kern->along[0](rows, x, r->k, y + p * r->n + j, r->n, n, k, to, LD, far);
    for (int64_t i = 0; p && i < rows; i++)
      for (int64_t c = 0; c < n; c++) sums[i * LD + c] += part[i * LD + c];
  }
  for (int64_t i = 0; i < rows; i++)
    memcpy(r->out + (from + i) * r->n + j, sums + i * LD, sizeof *sums * (size_t)n);
}

static void few_rows(void *arg, int64_t begin, int64_t end) {
  const Ragged *r = arg;
  for (int64_t g = begin; g < end; g++)
    for (int64_t j = 0; j < r->n && is_few(r, g) && r->ends[g] > begin_of(r, g); j += COLUMNS)
      few_columns(r, g, j, MIN(COLUMNS, r->n - j));
}

CLONES_FUSED
static void sum_few(int64_t rows, int64_t k, int64_t n, const float *x, const float *y,
                    float *restrict out) {
  for (int64_t i = 0; i < k; i++, out += n)
    for (int64_t t = 0; t < rows; t++) {
      float by = x[t * k + i];
      const float *row = y + t * n;
      for (int64_t j = 0; j < n; j++) out[j] = (t ? out[j] : 0) + by * row[j];
    }
}

static void few_sums(void *arg, int64_t begin, int64_t end) {
  const Ragged *r = arg;
  for (int64_t g = begin; g < end; g++) {
    int64_t from = begin_of(r, g), rows = r->ends[g] - from;
    float *out = r->out + g * r->k * r->n;
    if (!is_few(r, g)) continue;
    if (rows == 0) put_zeros(out, r->k * r->n);
    else sum_few(rows, r->k, r->n, r->x + from * r->k, r->y + from * r->n, out);
  }
}

static void all_few(Ragged *r, void (*fn)(void *arg, int64_t begin, int64_t end)) {
  cpu_parallel(r->groups, MAX(1, (int64_t)(TASK / ((double)r->k * (double)r->n))), fn, r);
}

/* ---- both ---- */

static bool multiply_rows(Ragged *r) {
  if (r->k == 0) put_zeros(r->out, r->m * r->n);
  all_few(r, few_rows);
  for (int64_t g = 0; g < r->groups; g++) {
    int64_t from = begin_of(r, g);
    if (is_few(r, g)) continue;
    GemmArgs x = {.a = r->x + from * r->k,
                  .a_row = r->k,
                  .a_k = 1,
                  .b = r->y + g * r->k * r->n,
                  .b_col = r->turned ? r->k : 1,
                  .b_k = r->turned ? 1 : r->n,
                  .c = r->out + from * r->n,
                  .c_row = r->n};
    if (r->k > 0 && r->ends[g] > from && !multiply(r->ends[g] - from, r->n, r->k, &x)) return false;
  }
  int64_t rest = r->ends[r->groups - 1]; /* rows of no group */
  put_zeros(r->out + rest * r->n, (r->m - rest) * r->n);
  return true;
}

static bool sum_groups(Ragged *r) {
  all_few(r, few_sums);
  for (int64_t g = 0; g < r->groups; g++) {
    if (is_few(r, g)) continue;
    int64_t from = begin_of(r, g), rows = r->ends[g] - from;
    float *out = r->out + g * r->k * r->n;
    GemmArgs x = {.a = r->x + from * r->k,
                  .a_row = 1,
                  .a_k = r->k,
                  .b = r->y + from * r->n,
                  .b_col = 1,
                  .b_k = r->n,
                  .c = out,
                  .c_row = r->n};
    if (rows == 0) put_zeros(out, r->k * r->n);
    else if (!multiply(r->k, r->n, rows, &x)) return false;
  }
  return true;
}

static const int64_t *list_of(const Op *op, const char *name, int *n) {
  const Attr *a = op_attr(op, "ragged_dot_dimension_numbers");
  const Attr *x = a && a->kind == AT_DICT ? attrs_get(a->dict, a->n, name) : NULL;
  *n = x && x->kind == AT_INTS ? x->n : 0;
  return *n ? x->ints : NULL;
}

static bool is_only(const Op *op, const char *name, int64_t least, int64_t most) {
  int n;
  const int64_t *v = list_of(op, name, &n);
  return n == 1 && v[0] >= least && v[0] <= most;
}

static bool sums_rows(const Op *op) { return is_only(op, "lhs_contracting_dimensions", 0, 0); }

static bool accepts(const Op *op) {
  const Type *x = op->operands[0]->type, *y = op->operands[1]->type, *sizes = op->operands[2]->type;
  if (x->dtype != DT_F32 || y->dtype != DT_F32 || op_type(op)->dtype != DT_F32 || x->rank != 2 ||
      sizes->rank != 1 || sizes->dims[0] < 1 || !is_only(op, "lhs_ragged_dimensions", 0, 0))
    return false;
  for (int i = 0; i < 2; i++)
    if (MAX(MAX(x->dims[i], y->dims[i]), y->dims[y->rank - 1]) > INT32_MAX) return false;
  if (sums_rows(op)) return y->rank == 2 && is_only(op, "rhs_contracting_dimensions", 0, 0);
  return y->rank == 3 && is_only(op, "lhs_contracting_dimensions", 1, 1) &&
         is_only(op, "rhs_group_dimensions", 0, 0) &&
         is_only(op, "rhs_contracting_dimensions", 1, 2);
}

static void find_ends(Ragged *r, DType t, const char *sizes) {
  int64_t end = 0, last = 0;
  for (int64_t g = 0; g < r->groups; g++) {
    end += elem_get_i64(t, sizes + g * dtype_bytes(t));
    r->ends[g] = last = MIN(r->m, MAX(last, end));
  }
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *x = op->operands[0]->type, *y = op->operands[1]->type;
  bool sums = sums_rows(op);
  Ragged r = {.m = x->dims[0],
              .k = x->dims[1],
              .groups = op->operands[2]->type->dims[0],
              .turned = is_only(op, "rhs_contracting_dimensions", 2, 2),
              .x = in[0],
              .y = in[1],
              .out = out[0]};
  r.n = y->dims[sums || r.turned ? 1 : 2];
  r.ends = xmalloc(sizeof *r.ends * (size_t)r.groups);
  find_ends(&r, op->operands[2]->type->dtype, in[2]);
  bool ok = type_count(op_type(op)) == 0 || (sums ? sum_groups(&r) : multiply_rows(&r));
  free(r.ends);
  return ok ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
}

static double flops(const Op *op) {
  const Type *x = op->operands[0]->type, *t = op_type(op);
  return 2.0 * (double)(x->dims[0] * x->dims[1]) * (double)t->dims[t->rank - 1];
}

const CpuKernel cpu_kernels_ragged[] = {
    {.name = "dot:ragged",
     .kind = OP_CHLO_RAGGED_DOT,
     .accepts = accepts,
     .run = run,
     .flops = flops},
    {0},
};
