/* cholesky: many small matrices one in each lane (small_linalg.h), a large one of f32 block after block of its columns, whose products with
 * what is known already are gemm's, others by LAPACK, the matrices of a batch divided by the pool. A row-major matrix is the column-major
 * transpose of itself, so calls of LAPACK say the other triangle; a Hermitian one's transpose has the transposed factor. */
#include <cblas.h>
#include <math.h>

#include "blas/blas.h"
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/ops/small_linalg.h"
#include "interp/lapack.h"

#define BLOCK 128     /* columns */
#define LEAST 384     /* side; below LAPACK is as fast, */
#define LEAST_256 640 /* with vectors of 256 bits */
#define SIDES 64      /* rows of a block, or columns, that a task solves */

typedef struct Chol {
  DType t;
  int64_t n;
  bool lower;
  const char *in;
  char *out;
  int64_t at, size; /* the block */
} Chol;

static Chol chol_of(const Op *op, void *const *in, void *const *out) {
  const Type *t = op_type(op);
  return (Chol){.t = t->dtype,
                .n = t->dims[t->rank - 1],
                .lower = op_bool(op, "lower", false),
                .in = in[0],
                .out = out[0]};
}

static int64_t matrices(const Op *op) {
  const Type *t = op_type(op);
  return type_count(t) / MAX(1, t->dims[t->rank - 1] * t->dims[t->rank - 1]);
}

/* Rows [begin, end): the named triangle of `in`; zeros in the other. */
static void take_triangle(void *arg, int64_t begin, int64_t end) {
  const Chol *c = arg;
  int64_t b = dtype_bytes(c->t), row = c->n * b;
  for (int64_t i = begin; i < end; i++) {
    int64_t lo = c->lower ? 0 : i, hi = c->lower ? i + 1 : c->n;
    char *a = c->out + i * row;
    memset(a, 0, (size_t)(lo * b));
    if (c->out != c->in) memcpy(a + lo * b, c->in + i * row + lo * b, (size_t)((hi - lo) * b));
    memset(a + hi * b, 0, (size_t)((c->n - hi) * b));
  }
}

/* What has no factor becomes NaN. */
static void check(const Chol *c, bool good) {
  int64_t b = dtype_bytes(c->t);
  DType r = dtype_real_of(c->t);
  for (int64_t i = 0; i < c->n && good; i++)
    good = !(elem_get_f64(r, c->out + (i * c->n + i) * b) <= 0);
  for (int64_t i = 0; i < c->n && !good; i++)
    for (int64_t j = c->lower ? 0 : i; j < (c->lower ? i + 1 : c->n); j++) {
      char *p = c->out + (i * c->n + j) * b;
      elem_set_f64(r, p, NAN);
      if (dtype_is_complex(c->t)) elem_set_f64(r, p + b / 2, NAN);
    }
}

static bool lapack(const Chol *c) {
  bool wide = dtype_real_of(c->t) == DT_F64;
  int n = (int)c->n;
  return lapack_cholesky(2 * dtype_is_complex(c->t) + wide, c->lower, n, n, c->out) == 0;
}

/* ---- by blocks ---- */

static float *block_at(const Chol *c, int64_t i, int64_t j) {
  return (float *)(void *)c->out + i * c->n + j;
}

/* The block and what is below it (of an upper triangle: right of it) less the product of what is known of these rows and of
 * the block's own, of which `minus` gets -1 times. false: no memory. */
static bool subtract(const Chol *c, float *minus) {
  int64_t n = c->n, at = c->at, size = c->size, rest = n - at;
  GemmArgs x = {.add = true, .c = block_at(c, at, at), .c_row = n};
  Gemm g;
  for (int64_t i = 0, rows = c->lower ? size : at, cols = c->lower ? at : size; i < rows; i++)
    for (int64_t j = 0; j < cols; j++)
      minus[i * cols + j] = c->lower ? -*block_at(c, at + i, j) : -*block_at(c, i, at + j);
  if (c->lower) {
    x.a = block_at(c, at, 0), x.a_row = n, x.a_k = 1;
    x.b = minus, x.b_col = at, x.b_k = 1;
  } else {
    x.a = minus, x.a_row = 1, x.a_k = size;
    x.b = block_at(c, 0, at), x.b_col = 1, x.b_k = n;
  }
  gemm_plan(&g, c->lower ? rest : size, c->lower ? size : rest, at,
            (GemmTypes){DT_F32, DT_F32, DT_F32}, 1, GEMM_SMALLER, x.b_col == 1);
  return gemm_run(&g, &x, NULL, false);
}

static void solve_beside(void *arg, int64_t begin, int64_t end) {
  const Chol *c = arg;
  int64_t n = c->n, after = c->at + c->size, first = after + begin * SIDES,
          sides = MIN(after + end * SIDES, n) - first;
  cblas_strsm(CblasRowMajor, c->lower ? CblasRight : CblasLeft, c->lower ? CblasLower : CblasUpper,
              CblasTrans, CblasNonUnit, (blasint)(c->lower ? sides : c->size),
              (blasint)(c->lower ? c->size : sides), 1, block_at(c, c->at, c->at), (blasint)n,
              c->lower ? block_at(c, first, c->at) : block_at(c, c->at, first), (blasint)n);
}

static void clear_other_triangle(const Chol *c) {
  for (int64_t i = 0; i < c->size; i++) {
    int64_t from = c->lower ? i + 1 : 0, to = c->lower ? c->size : i;
    memset(block_at(c, c->at + i, c->at + from), 0, sizeof(float) * (size_t)(to - from));
  }
}

/* false: no memory */
static bool factor_blocks(Chol *c, float *minus, bool *good) {
  for (c->at = 0; c->at < c->n && *good; c->at += BLOCK) {
    c->size = MIN(BLOCK, c->n - c->at);
    if (c->at && !subtract(c, minus)) return false;
    *good = lapack_cholesky(0, c->lower, (int)c->size, (int)c->n, block_at(c, c->at, c->at)) == 0;
    clear_other_triangle(c);
    int64_t beside = c->n - c->at - c->size;
    if (*good) cpu_parallel((beside + SIDES - 1) / SIDES, 1, solve_beside, c);
  }
  return true;
}

static Err *run_blocks(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Chol c = chol_of(op, in, out);
  int64_t elements = c.n * c.n, size = elements * dtype_bytes(c.t);
  size_t bytes = sizeof(float) * (size_t)(BLOCK * c.n);
  float *minus = cpu_block_alloc(bytes);
  bool ok = minus != NULL;
  for (int64_t i = 0; i < matrices(op) && ok; i++, c.in += size, c.out += size) {
    bool good = true;
    cpu_parallel(c.n, MAX(1, 100000 / c.n), take_triangle, &c);
    if (cpu_finite(c.t, c.out, elements)) ok = factor_blocks(&c, minus, &good);
    else good = lapack(&c);
    check(&c, good);
  }
  cpu_block_free(minus, bytes);
  return ok ? NULL : op_err(op, ERR_EXHAUSTED, "no memory for the factor of a matrix");
}

/* ---- others ---- */

static Err *prepare(const Op *op, void **state) {
  (void)op;
  blas_begin();
  *state = NULL;
  return NULL;
}

static void factor(void *arg, int64_t begin, int64_t end) {
  const Chol *all = arg;
  for (int64_t k = begin, size = all->n * all->n * dtype_bytes(all->t); k < end; k++) {
    Chol c = *all;
    c.in += k * size, c.out += k * size;
    take_triangle(&c, 0, c.n);
    check(&c, lapack(&c));
  }
}

static Err *run_lapack(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Chol c = chol_of(op, in, out);
  cpu_parallel(matrices(op), MAX(1, 1000000 / (c.n * c.n * c.n / 3 + 100)), factor, &c);
  return NULL;
}

static Err *run_small(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Chol c = chol_of(op, in, out);
  small_cholesky(c.t, c.lower, matrices(op), c.n, in[0], out[0]);
  return NULL;
}

static bool accepts(const Op *op) {
  const Type *t = op->operands[0]->type;
  DType d = t->dtype;
  return (d == DT_F32 || d == DT_F64 || d == DT_C64 || d == DT_C128) && t->rank >= 2 &&
         t->dims[t->rank - 1] == t->dims[t->rank - 2] && t->dims[t->rank - 1] < INT32_MAX &&
         op_type(op)->dtype == d;
}

static bool accepts_small(const Op *op) {
  const Type *t = op_type(op);
  int64_t n = t->rank ? t->dims[t->rank - 1] : 0;
  return accepts(op) && n && small_suits(t->dtype, matrices(op), n, n);
}

static bool accepts_blocks(const Op *op) {
  const Type *t = op_type(op);
  const GemmKernels *kern = gemm_kernels();
  return accepts(op) && t->dtype == DT_F32 && kern &&
         t->dims[t->rank - 1] >= (kern->lanes > 8 ? LEAST : LEAST_256);
}

static double flops(const Op *op) {
  const Type *t = op_type(op);
  return (double)type_count(t) * (double)t->dims[t->rank - 1] / 3;
}

#define CHOLESKY .kind = OP_CHOLESKY, .in_place = 1, .flops = flops
const CpuKernel cpu_kernels_cholesky[] = {
    {.name = "cholesky:small", .accepts = accepts_small, .run = run_small, CHOLESKY},
    {.name = "cholesky:blocks",
     .accepts = accepts_blocks,
     .prepare = prepare,
     .run = run_blocks,
     CHOLESKY},
    {.name = "cholesky:lapack",
     .accepts = accepts,
     .prepare = prepare,
     .run = run_lapack,
     CHOLESKY},
    {0},
};
