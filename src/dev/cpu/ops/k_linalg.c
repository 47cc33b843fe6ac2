/* triangular_solve and LU: many small matrices one in each lane (small_linalg.h), others by LAPACK and BLAS (single-threaded), the matrices of a batch
 * divided by the pool. f32, f64 and complex; a row-major matrix is the column-major transpose of
 * itself, so the calls say the other triangle. One large triangular_solve divides its right-hand
 * sides, by size only. */
#include <cblas.h>
#include <math.h>
#include <stdio.h>

#include "blas/blas.h"
#include "dev/cpu/ops/small_eigen.h"
#include "dev/cpu/ops/small_linalg.h"
#include "dev/cpu/kernel/turns.h"
#include "interp/lapack.h"

static Err *prepare(const Op *op, void **state) {
  (void)op;
  blas_begin();
  *state = NULL;
  return NULL;
}

static bool blas_type(DType t) { return t == DT_F32 || t == DT_F64 || t == DT_C64 || t == DT_C128; }

/* ---- triangular_solve ---- */

typedef struct Solve {
  DType t;
  bool left, lower, unit;
  CBLAS_TRANSPOSE how;
  int64_t n, rows, cols, pieces, piece; /* of right-hand sides */
  const char *a;
  char *x;
} Solve;

static void solve(void *arg, int64_t begin, int64_t end) {
  const Solve *s = arg;
  int64_t b = dtype_bytes(s->t);
  for (int64_t k = begin; k < end; k++) {
    int64_t batch = k / s->pieces, first = k % s->pieces * s->piece,
            sides = MIN(s->piece, (s->left ? s->cols : s->rows) - first);
    const char *a = s->a + batch * s->n * s->n * b;
    char *x = s->x + (batch * s->rows * s->cols + (s->left ? first : first * s->cols)) * b;
    int m = (int)(s->left ? s->rows : sides), n = (int)(s->left ? sides : s->cols), lda = (int)s->n,
        ldx = (int)s->cols;
    CBLAS_SIDE side = s->left ? CblasLeft : CblasRight;
    CBLAS_UPLO uplo = s->lower ? CblasLower : CblasUpper;
    CBLAS_DIAG diag = s->unit ? CblasUnit : CblasNonUnit;
    static const float one_c[2] = {1, 0};
    static const double one_z[2] = {1, 0};
    switch (s->t) {
    case DT_F32:
      cblas_strsm(CblasRowMajor, side, uplo, s->how, diag, m, n, 1, (const float *)(const void *)a,
                  lda, (float *)(void *)x, ldx);
      break;
    case DT_F64:
      cblas_dtrsm(CblasRowMajor, side, uplo, s->how, diag, m, n, 1, (const double *)(const void *)a,
                  lda, (double *)(void *)x, ldx);
      break;
    case DT_C64:
      cblas_ctrsm(CblasRowMajor, side, uplo, s->how, diag, m, n, one_c, a, lda, x, ldx);
      break;
    default:
      cblas_ztrsm(CblasRowMajor, side, uplo, s->how, diag, m, n, one_z, a, lda, x, ldx);
      break;
    }
  }
}

static Err *run_solve(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op);
  int64_t count = type_count(t);
  if (count == 0) return NULL;
  if (out[0] != in[1]) memcpy(out[0], in[1], (size_t)type_bytes(t));
  Str how = op_str(op, "transpose_a");
  Solve s = {.t = t->dtype,
             .left = op_bool(op, "left_side", false),
             .lower = op_bool(op, "lower", false),
             .unit = op_bool(op, "unit_diagonal", false),
             .how = str_is(how, "ADJOINT")     ? CblasConjTrans
                    : str_is(how, "TRANSPOSE") ? CblasTrans
                                               : CblasNoTrans,
             .rows = t->dims[t->rank - 2],
             .cols = t->dims[t->rank - 1],
             .a = in[0],
             .x = out[0]};
  s.n = s.left ? s.rows : s.cols;
  if (small_suits(t->dtype, count / (s.rows * s.cols), s.n, s.left ? s.cols : s.rows)) {
    SmallSolve small = {s.left, s.lower, s.unit, s.how != CblasNoTrans, count / (s.rows * s.cols),
                        s.rows, s.cols};
    small_solve(t->dtype, &small, in[0], out[0]);
    return NULL;
  }
  int64_t sides = s.left ? s.cols : s.rows;
  double work = (double)s.n * (double)s.n; /* of a right-hand side */
  s.pieces = MAX(1, MIN(MIN(16, sides / 32), (int64_t)(work * (double)sides / 1e7)));
  s.piece = (sides + s.pieces - 1) / s.pieces;
  s.pieces = (sides + s.piece - 1) / s.piece;
  cpu_parallel(count / (s.rows * s.cols) * s.pieces,
               MAX(1, (int64_t)(1e6 / (work * (double)s.piece + 100))), solve, &s);
  return NULL;
}

static bool accepts_solve(const Op *op) {
  const Type *a = op->operands[0]->type, *t = op_type(op);
  return blas_type(t->dtype) && a->dtype == t->dtype && t->rank >= 2 && type_count(a) < INT32_MAX &&
         type_count(t) < INT32_MAX;
}

static double flops_solve(const Op *op) {
  const Type *t = op_type(op);
  return (double)type_count(t) *
         (double)(op_bool(op, "left_side", false) ? t->dims[t->rank - 2] : t->dims[t->rank - 1]);
}

/* ---- LU and QR of many small matrices ---- */

static Err *run_lu(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op);
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  small_lu(t->dtype, type_count(t) / (rows * cols), rows, cols, in[0], out[0], out[1], out[2]);
  return NULL;
}

static Err *run_qr(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op);
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  small_qr(t->dtype, type_count(t) / (rows * cols), rows, cols, in[0], out[0], out[1]);
  return NULL;
}

static Err *run_q(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op), *tau = op->operands[1]->type;
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  small_q(t->dtype, type_count(t) / (rows * cols), rows, cols, tau->dims[tau->rank - 1], in[0],
          in[1], out[0]);
  return NULL;
}

/* Is it a call of a routine, of a batch of real matrices? */
static bool is_batch_call(const Op *op, const char *routine, int n_operands, int n_results) {
  Str name = op_str(op, "call_target_name");
  char s[32], d[32];
  snprintf(s, sizeof s, "lapack_s%s_ffi", routine);
  snprintf(d, sizeof d, "lapack_d%s_ffi", routine);
  DType want = str_is(name, s) ? DT_F32 : str_is(name, d) ? DT_F64 : DT_I1;
  if (want == DT_I1 || op->n_operands != n_operands || op->n_results != n_results) return false;
  const Type *t = op->operands[0]->type;
  return type_is_static(t) && t->dtype == want && t->rank >= 3 && type_count(t) > 0 &&
         op_type(op)->dtype == want && type_count(op_type(op)) == type_count(t);
}

static bool is_small_call(const Op *op, const char *routine, int n_operands, int n_results) {
  if (!is_batch_call(op, routine, n_operands, n_results)) return false;
  const Type *t = op->operands[0]->type;
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  return small_suits(t->dtype, type_count(t) / (rows * cols), rows, cols);
}

/* Are they `each` elements of every matrix? */
static bool is_vector(const Op *op, const Type *v, DType dtype, int64_t each) {
  const Type *t = op->operands[0]->type;
  int64_t batch = type_count(t) / (t->dims[t->rank - 2] * t->dims[t->rank - 1]);
  return v->kind == TY_TENSOR && type_is_static(v) && v->dtype == dtype &&
         type_count(v) == batch * each;
}

static int64_t least_side(const Op *op) {
  const Type *t = op->operands[0]->type;
  return MIN(t->dims[t->rank - 2], t->dims[t->rank - 1]);
}

static bool accepts_lu(const Op *op) {
  return is_small_call(op, "getrf", 1, 3) &&
         is_vector(op, op->results[1].type, DT_I32, least_side(op)) &&
         is_vector(op, op->results[2].type, DT_I32, 1);
}

static bool accepts_qr(const Op *op) {
  return is_small_call(op, "geqrf", 1, 2) &&
         is_vector(op, op->results[1].type, op_type(op)->dtype, least_side(op));
}

static bool accepts_q(const Op *op) {
  if (!is_small_call(op, "orgqr", 2, 1)) return false;
  const Type *t = op->operands[0]->type, *tau = op->operands[1]->type;
  int64_t cols = t->dims[t->rank - 1], each = tau->rank > 0 ? tau->dims[tau->rank - 1] : 0;
  return t->dims[t->rank - 2] >= cols && each <= cols && each > 0 &&
         is_vector(op, tau, t->dtype, each);
}

/* ---- eigenvalues and singular values of many small matrices ---- */

typedef struct Batch {
  DType t;
  int64_t count, rows, cols;
} Batch;

static Batch batch_of(const Op *op) {
  const Type *t = op->operands[0]->type;
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  return (Batch){t->dtype, type_count(t) / (rows * cols), rows, cols};
}

static Err *run_eigh(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Batch b = batch_of(op);
  bool vectors = lapack_letter(op, "mode", 'V') == 'V';
  if (!vectors) memset(out[0], 0, (size_t)type_bytes(op_type(op)));
  small_eigh(b.t, lapack_letter(op, "uplo", 'L') == 'L', b.count, b.rows, in[0],
             vectors ? out[0] : NULL, out[1], out[2]);
  return NULL;
}

static Err *run_svd(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  Batch b = batch_of(op);
  bool vectors = lapack_letter(op, "mode", 'A') != 'N';
  memset(out[0], 0, (size_t)type_bytes(op_type(op)));
  for (int i = 2; i < 4 && !vectors; i++)
    memset(out[i], 0, (size_t)type_bytes(op->results[i].type));
  small_svd(b.t, b.count, b.rows, b.cols, in[0], out[1], vectors ? out[2] : NULL,
            vectors ? out[3] : NULL, out[4]);
  return NULL;
}

static bool accepts_eigh(const Op *op) {
  if (!is_batch_call(op, "syevd", 1, 3)) return false;
  Batch b = batch_of(op);
  return b.rows == b.cols &&
         small_eigen_suits(b.t, b.count, b.rows, b.cols, lapack_letter(op, "mode", 'V') == 'V') &&
         is_vector(op, op->results[1].type, b.t, b.rows) &&
         is_vector(op, op->results[2].type, DT_I32, 1);
}

static bool accepts_svd(const Op *op) {
  if (!is_batch_call(op, "gesdd", 1, 5)) return false;
  Batch b = batch_of(op);
  int64_t k = MIN(b.rows, b.cols);
  char mode = lapack_letter(op, "mode", 'A');
  if (mode == 'A' && b.rows != b.cols) return false; /* wants more vectors than there are values */
  return small_eigen_suits(b.t, b.count, b.rows, b.cols, mode != 'N') &&
         is_vector(op, op->results[1].type, b.t, k) &&
         (mode == 'N' || (is_vector(op, op->results[2].type, b.t, b.rows * k) &&
                          is_vector(op, op->results[3].type, b.t, b.cols * k))) &&
         is_vector(op, op->results[4].type, DT_I32, 1);
}

/* ---- LAPACK's other routines, as JAX calls them ---- */

static Tensor *wrap(const Type *t, void *data) {
  return tensor_wrap(t->dtype, t->rank, t->dims, data, NULL, NULL);
}

static Err *run_lapack(void *state, const Op *op, void *const *in, void *const *out) {
  static const LapackHow how = {turn_plane, cpu_parallel};
  enum { MOST = 8 };
  Tensor *t[2 * MOST];
  (void)state;
  int n = op->n_operands, m = op->n_results;
  if (n > MOST || m > MOST) return op_err(op, ERR_INVALID, "too many operands or results");
  for (int i = 0; i < n; i++) t[i] = wrap(op->operands[i]->type, in[i]);
  for (int i = 0; i < m; i++) t[n + i] = wrap(op->results[i].type, out[i]);
  Err *e = lapack_into(op, t, t + n, &how);
  for (int i = 0; i < n + m; i++) tensor_release(t[i]);
  return e;
}

static bool accepts_lapack(const Op *op) {
  if (!lapack_knows(op_str(op, "call_target_name"))) return false;
  for (int i = 0; i < op->n_operands + op->n_results; i++) {
    const Type *t =
        i < op->n_operands ? op->operands[i]->type : op->results[i - op->n_operands].type;
    if (t->kind != TY_TENSOR || !type_is_static(t) || t->quant) return false;
  }
  return true;
}

const CpuKernel cpu_kernels_linalg[] = {
    {.name = "lu:small", .kind = OP_CUSTOM_CALL, .accepts = accepts_lu, .run = run_lu},
    {.name = "qr:small", .kind = OP_CUSTOM_CALL, .accepts = accepts_qr, .run = run_qr},
    {.name = "q:small", .kind = OP_CUSTOM_CALL, .accepts = accepts_q, .run = run_q},
    {.name = "eigh:small", .kind = OP_CUSTOM_CALL, .accepts = accepts_eigh, .run = run_eigh},
    {.name = "svd:small", .kind = OP_CUSTOM_CALL, .accepts = accepts_svd, .run = run_svd},
    {.name = "triangular_solve:blas",
     .kind = OP_TRIANGULAR_SOLVE,
     .accepts = accepts_solve,
     .prepare = prepare,
     .run = run_solve,
     .in_place = 2,
     .flops = flops_solve},
    {.name = "lapack",
     .kind = OP_CUSTOM_CALL,
     .accepts = accepts_lapack,
     .prepare = prepare,
     .run = run_lapack},
    {0},
};
