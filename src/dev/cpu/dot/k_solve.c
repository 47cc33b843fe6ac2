/* Large triangular_solve of f32, block after block of the triangle: what the solved blocks add to one is a product by gemm's kernels,
 * which are faster than BLAS's; the block itself is solved by BLAS. */
#include <cblas.h>

#include "blas/blas.h"
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define BLOCK 128
#define LEAST 256 /* side of a triangle; below BLAS is as fast */
#define SIDES 64  /* right-hand sides: as many at least, and of a task */

typedef struct Solve {
  bool left, lower, unit, turned;
  int64_t n, rows, cols;
  const float *a, *minus; /* the triangle, and -1 times it */
  float *x;               /* [rows][cols] */
  int64_t from, to;       /* the block */
} Solve;

static void negate(void *arg, int64_t begin, int64_t end) { /* rows */
  const Solve *s = arg;
  float *to = (float *)s->minus;
  for (int64_t i = begin * s->n; i < end * s->n; i++) to[i] = -s->a[i];
}

/* The block of right-hand sides [begin, end) * SIDES. */
static void solve_block(void *arg, int64_t begin, int64_t end) {
  const Solve *s = arg;
  int64_t first = begin * SIDES, last = MIN(end * SIDES, s->left ? s->cols : s->rows),
          size = s->to - s->from;
  float *x = s->x + (s->left ? s->from * s->cols + first : first * s->cols + s->from);
  int64_t m = s->left ? size : last - first, n = s->left ? last - first : size;
  cblas_strsm(CblasRowMajor, s->left ? CblasLeft : CblasRight, s->lower ? CblasLower : CblasUpper,
              s->turned ? CblasTrans : CblasNoTrans, s->unit ? CblasUnit : CblasNonUnit, (blasint)m,
              (blasint)n, 1, s->a + s->from * (s->n + 1), (blasint)s->n, x, (blasint)s->cols);
}

/* The block less its products with what is solved already, [from, to). false: no memory. */
static bool subtract(const Solve *s, int64_t from, int64_t to) {
  int64_t row = s->turned ? 1 : s->n, col = s->turned ? s->n : 1, size = s->to - s->from,
          ld = s->cols;
  GemmArgs x = {.add = true, .c_row = ld};
  Gemm g;
  if (s->left) {
    x.a = s->minus + s->from * row + from * col, x.a_row = row, x.a_k = col;
    x.b = s->x + from * ld, x.b_k = ld, x.b_col = 1;
    x.c = s->x + s->from * ld;
  } else {
    x.a = s->x + from, x.a_row = ld, x.a_k = 1;
    x.b = s->minus + from * row + s->from * col, x.b_k = row, x.b_col = col;
    x.c = s->x + s->from;
  }
  gemm_plan(&g, s->left ? size : s->rows, s->left ? s->cols : size, to - from,
            (GemmTypes){DT_F32, DT_F32, DT_F32}, 1, GEMM_SMALLER, x.b_col == 1);
  return gemm_run(&g, &x, NULL, false);
}

static bool solve(Solve *s) {
  int64_t n = s->n, sides = s->left ? s->cols : s->rows;
  bool forwards = s->left == (s->lower != s->turned);
  cpu_parallel(n, MAX(1, 100000 / n), negate, s);
  for (int64_t at = 0; at < n; at += BLOCK) {
    int64_t size = MIN(BLOCK, n - at);
    s->from = forwards ? at : n - at - size, s->to = s->from + size;
    if (at && !subtract(s, forwards ? 0 : s->to, forwards ? s->from : n)) return false;
    cpu_parallel((sides + SIDES - 1) / SIDES, 1, solve_block, s);
  }
  return true;
}

static Err *prepare(const Op *op, void **state) {
  (void)op;
  blas_begin();
  *state = NULL;
  return NULL;
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op);
  if (out[0] != in[1]) memcpy(out[0], in[1], (size_t)type_bytes(t));
  Solve s = {.left = op_bool(op, "left_side", false),
             .lower = op_bool(op, "lower", false),
             .unit = op_bool(op, "unit_diagonal", false),
             .turned = !str_is(op_str(op, "transpose_a"), "NO_TRANSPOSE"),
             .rows = t->dims[t->rank - 2],
             .cols = t->dims[t->rank - 1]};
  s.n = s.left ? s.rows : s.cols;
  size_t bytes = sizeof(float) * (size_t)(s.n * s.n);
  float *minus = cpu_block_alloc(bytes);
  s.minus = minus;
  bool ok = minus != NULL;
  for (int64_t i = 0, count = type_count(t) / (s.rows * s.cols); ok && i < count; i++) {
    s.a = (const float *)in[0] + i * s.n * s.n;
    s.x = (float *)out[0] + i * s.rows * s.cols;
    ok = solve(&s);
  }
  cpu_block_free(minus, bytes);
  return ok ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for the solution of a triangular system");
}

static bool accepts(const Op *op) {
  const Type *a = op->operands[0]->type, *t = op_type(op);
  if (a->dtype != DT_F32 || t->dtype != DT_F32 || t->rank < 2 || type_count(t) == 0 ||
      type_count(a) >= INT32_MAX || type_count(t) >= INT32_MAX || !gemm_kernels())
    return false;
  bool left = op_bool(op, "left_side", false);
  return t->dims[t->rank - (left ? 2 : 1)] >= LEAST && t->dims[t->rank - (left ? 1 : 2)] >= SIDES;
}

static double flops(const Op *op) {
  const Type *t = op_type(op);
  return (double)type_count(t) *
         (double)t->dims[t->rank - (op_bool(op, "left_side", false) ? 2 : 1)];
}

const CpuKernel cpu_kernels_solve[] = {
    {.name = "triangular_solve:blocks",
     .kind = OP_TRIANGULAR_SOLVE,
     .accepts = accepts,
     .prepare = prepare,
     .run = run,
     .in_place = 2,
     .flops = flops},
    {0},
};
