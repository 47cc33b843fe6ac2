/* Products by BLAS, one thread a call: the pool divides batches and large products into tiles, by
 * size only. On hosts without AVX2 bf16 and f16 come here: they are widened and rounded once. */
#include <cblas.h>

#include "blas/blas.h"
#include "dev/cpu/dot/dot.h"
#include "dev/cpu/dot/f64.h"

#define TILE_FLOPS 1e8 /* a tile of a large product: half a millisecond */
#define MAX_TILES 64
#define TILE_BYTES 1e6 /* of the matrix in a product with few vectors */
#define MIN_SIDE 128
#define MIN_RUN 1024 /* of a matrix that is read run by run for a single vector */
#define INNER 8192   /* elements of two vectors multiplied at a time */

static const float one_c[2] = {1, 0}, zero_c[2] = {0, 0};
static const double one_z[2] = {1, 0}, zero_z[2] = {0, 0};

/* Length of a tile when n is cut into *tiles, in whole vectors; *tiles becomes what that needs. */
static int64_t tile_size(int64_t n, int64_t *tiles) {
  int64_t t = MAX(1, (n + *tiles - 1) / *tiles);
  if (*tiles > 1) t = (t + 15) / 16 * 16;
  *tiles = MAX(1, (n + t - 1) / t);
  return t;
}

bool dot_blas_plan(Dot *d) {
  blas_begin();
  double want = 2.0 * (double)d->m * (double)d->n * (double)d->k / TILE_FLOPS;
  if (d->m <= DOT_FEW || d->n <= DOT_FEW)
    want = (double)(MAX(d->m, d->n) * d->k) * (double)dtype_bytes(d->math) / TILE_BYTES;
  bool runs = (d->m == 1 && d->rhs.free_stride == 1) || (d->n == 1 && d->lhs.free_stride == 1);
  int64_t least = runs ? MIN_RUN : MIN_SIDE;
  d->tiles_m = d->tiles_n = 1;
  while (d->tiles_m * d->tiles_n < MIN(want, MAX_TILES)) { /* halve the longer side of a tile */
    int64_t m = d->m / d->tiles_m, n = d->n / d->tiles_n;
    if (MAX(m, n) < 2 * least) break;
    *(m >= n ? &d->tiles_m : &d->tiles_n) *= 2;
  }
  d->tile_m = tile_size(d->m, &d->tiles_m);
  d->tile_n = tile_size(d->n, &d->tiles_n);
  d->tiles = d->tiles_m * d->tiles_n;
  return true;
}

typedef struct Call {
  const Dot *d;
  const char *lhs, *rhs;
  char *out;
} Call;

/* Transposition flag and leading dimension of a [rows, cols] view with two strides, one of which is
 * 1 (or has one element). */
static CBLAS_TRANSPOSE blas_view(int64_t rows, int64_t cols, int64_t rs, int64_t cs, blasint *ld) {
  if (cs == 1 || cols == 1) {
    *ld = (blasint)MAX(rs, MAX(cols, 1));
    if (rows > 1 || cs == 1) return CblasNoTrans;
  }
  *ld = (blasint)MAX(cs, MAX(rows, 1));
  return CblasTrans;
}

/* y = A x, or x A: a matrix of rows by columns in memory, ld apart, is read where it is. */
static void vector(DType t, bool turned, int64_t rows, int64_t columns, const void *matrix,
                   blasint ld, const void *x, int64_t x_step, void *y, int64_t y_step) {
  CBLAS_TRANSPOSE trans = turned ? CblasTrans : CblasNoTrans;
  blasint m = (blasint)rows, n = (blasint)columns, ix = (blasint)MAX(x_step, 1),
          iy = (blasint)y_step;
  switch (t) {
  case DT_F32: cblas_sgemv(CblasRowMajor, trans, m, n, 1, matrix, ld, x, ix, 0, y, iy); break;
  case DT_F64:
    if (ix == 1 && iy == 1) (turned ? f64_along : f64_dots)(rows, columns, matrix, ld, x, y);
    else cblas_dgemv(CblasRowMajor, trans, m, n, 1, matrix, ld, x, ix, 0, y, iy);
    break;
  case DT_C64:
    cblas_cgemv(CblasRowMajor, trans, m, n, one_c, matrix, ld, x, ix, zero_c, y, iy);
    break;
  default: cblas_zgemv(CblasRowMajor, trans, m, n, one_z, matrix, ld, x, ix, zero_z, y, iy); break;
  }
}

static void product(const Dot *d, const char *lhs, const char *rhs, char *out, int64_t m0,
                    int64_t m, int64_t n0, int64_t n) {
  int64_t e = dtype_bytes(d->math);
  lhs += m0 * d->lhs.free_stride * e;
  rhs += n0 * d->rhs.free_stride * e;
  out += (m0 * d->n + n0) * e;
  blasint lda, ldb, ldc = (blasint)MAX(d->n, 1);
  CBLAS_TRANSPOSE ta = blas_view(m, d->k, d->lhs.free_stride, d->lhs.k_stride, &lda);
  CBLAS_TRANSPOSE tb = blas_view(d->k, n, d->rhs.k_stride, d->rhs.free_stride, &ldb);
  blasint M = (blasint)m, N = (blasint)n, K = (blasint)d->k;
  if (d->math == DT_F32 && d->m == 1 && d->n == 1) { /* in parts: a long sum in f32 loses digits */
    double sum = 0;
    for (int64_t k = 0; k < d->k; k += INNER)
      sum += cblas_sdot((blasint)MIN(INNER, d->k - k), (const float *)lhs + k * d->lhs.k_stride,
                        (blasint)d->lhs.k_stride, (const float *)rhs + k * d->rhs.k_stride,
                        (blasint)d->rhs.k_stride);
    *(float *)out = (float)sum;
    return;
  }
  /* Row by row the rhs is read where it is, column by column the lhs. */
  int64_t few = d->math == DT_F32 ? DOT_FEW : 1;
  if (d->m <= few) {
    bool straight = tb == CblasNoTrans;
    for (int64_t i = 0; i < m; i++)
      vector(d->math, straight, straight ? K : N, straight ? N : K, rhs, ldb,
             lhs + i * d->lhs.free_stride * e, d->lhs.k_stride, out + i * d->n * e, 1);
    return;
  }
  if (d->n <= few) {
    bool straight = ta == CblasNoTrans;
    for (int64_t j = 0; j < n; j++)
      vector(d->math, !straight, straight ? M : K, straight ? K : M, lhs, lda,
             rhs + j * d->rhs.free_stride * e, d->rhs.k_stride, out + j * e, ldc);
    return;
  }
  switch (d->math) {
  case DT_F32:
    cblas_sgemm(CblasRowMajor, ta, tb, M, N, K, 1, (const float *)lhs, lda, (const float *)rhs, ldb,
                0, (float *)out, ldc);
    break;
  case DT_F64:
    cblas_dgemm(CblasRowMajor, ta, tb, M, N, K, 1, (const double *)lhs, lda, (const double *)rhs,
                ldb, 0, (double *)out, ldc);
    break;
  case DT_C64:
    cblas_cgemm(CblasRowMajor, ta, tb, M, N, K, one_c, lhs, lda, rhs, ldb, zero_c, out, ldc);
    break;
  default:
    cblas_zgemm(CblasRowMajor, ta, tb, M, N, K, one_z, lhs, lda, rhs, ldb, zero_z, out, ldc);
    break;
  }
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t e = dtype_bytes(d->math);
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / d->tiles, tile = t % d->tiles, lo, ro;
    dot_batch_at(d, b, &lo, &ro);
    int64_t m0 = tile / d->tiles_n * d->tile_m, n0 = tile % d->tiles_n * d->tile_n;
    product(d, c->lhs + lo * e, c->rhs + ro * e, c->out + b * d->m * d->n * e, m0,
            MIN(d->tile_m, d->m - m0), n0, MIN(d->tile_n, d->n - n0));
  }
}

Err *dot_blas_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  int64_t total = d->b * d->m * d->n;
  if (total == 0) return NULL;
  if (d->k == 0) {
    memset(out[0], 0, (size_t)type_bytes(op_type(op)));
    return NULL;
  }
  Call c = {d, in[0], in[1], out[0]};
  void *own[5] = {NULL};
  size_t e = (size_t)dtype_bytes(d->in);
  for (int i = 0; i < 2; i++) {
    const Side *s = i ? &d->rhs : &d->lhs;
    const char **p = i ? &c.rhs : &c.lhs;
    int64_t n = type_count(op->operands[i]->type);
    if (!s->direct) {
      own[2 * i] = aligned_alloc(64, ((size_t)n * e + 127) & ~(size_t)63);
      if (!own[2 * i]) goto memory;
      cpu_permute(e, s->rank, s->dims, s->strides, *p, own[2 * i]);
      *p = own[2 * i];
    }
    if (d->math != d->in) {
      own[2 * i + 1] = aligned_alloc(64, ((size_t)n * 4 + 127) & ~(size_t)63);
      if (!own[2 * i + 1]) goto memory;
      cpu_widen(d->in, *p, own[2 * i + 1], n);
      *p = own[2 * i + 1];
    }
  }
  if (d->out != d->math) {
    own[4] = aligned_alloc(64, ((size_t)total * 4 + 127) & ~(size_t)63);
    if (!own[4]) goto memory;
    c.out = own[4];
  }
  double flops = 2.0 * (double)d->m * (double)d->n * (double)d->k;
  int64_t grain = MAX(1, (int64_t)(5e5 / (flops / (double)d->tiles + 1)));
  if (flops * (double)d->b < 2e5) grain = d->b * d->tiles;
  cpu_parallel(d->b * d->tiles, grain, tasks, &c);
  if (d->out != d->math) cpu_narrow(d->out, own[4], out[0], total);
  for (int i = 0; i < 5; i++) free(own[i]);
  return NULL;
memory:
  for (int i = 0; i < 5; i++) free(own[i]);
  return op_err(op, ERR_EXHAUSTED, "no memory for packed operands");
}
