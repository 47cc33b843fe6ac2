/* Linear algebra that JAX's portable and TPU lowerings ask for by custom calls:
 *   Qr(a) -> packed, taus
 *       Householder QR as LAPACK's geqrf packs it: R above, reflectors below the diagonal
 *   ProductOfElementaryHouseholderReflectors(packed, taus) -> Q
 *       as LAPACK's orgqr / ungqr
 *   LuDecomposition(a) -> lu, pivots, permutation
 *       partial pivoting, row by row
 *   Eigh(a) -> vectors, values
 *       cyclic Jacobi on the Hermitian matrix of one triangle; values ascending
 * Leading dimensions are a batch. Everything in (complex) double, rounded once.
 */
#include <math.h>

#include "interp/ewise_priv.h"

typedef struct Zd {
  double re, im;
} Zd;

static Zd mul(Zd a, Zd b) { return (Zd){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static Zd sub(Zd a, Zd b) { return (Zd){a.re - b.re, a.im - b.im}; }
static Zd add(Zd a, Zd b) { return (Zd){a.re + b.re, a.im + b.im}; }
static Zd scale(Zd a, double s) { return (Zd){a.re * s, a.im * s}; }
static Zd conj_of(Zd a) { return (Zd){a.re, -a.im}; }
static double abs2(Zd a) { return a.re * a.re + a.im * a.im; }
static Zd quotient(Zd a, Zd b) {
  if (b.im == 0) return scale(a, 1 / b.re);
  double d = abs2(b);
  return scale(mul(a, conj_of(b)), 1 / d);
}

static void load(const Tensor *t, int64_t at, int64_t n, Zd *to) {
  for (int64_t i = 0; i < n; i++) {
    Cx v;
    load_z(t->dtype, t->data, at + i, 1, 1, &v);
    to[i] = (Zd){(double)v.re, (double)v.im};
  }
}
static void store(Tensor *t, int64_t at, int64_t n, const Zd *from) {
  for (int64_t i = 0; i < n; i++) {
    if (dtype_is_complex(t->dtype)) {
      Cx v = {(long double)from[i].re, (long double)from[i].im};
      store_z(t->dtype, t->data, at + i, 1, &v);
    } else {
      store_d(t->dtype, t->data, at + i, 1, &from[i].re);
    }
  }
}

static Err *matrix_shape(const Op *op, const Tensor *a, int64_t *m, int64_t *n, int64_t *batches) {
  if (a->rank < 2 || !(dtype_is_float(a->dtype) || dtype_is_complex(a->dtype)))
    return op_err(op, ERR_INVALID, "the operand is not a (batch of) floating-point matrices");
  *m = a->dims[a->rank - 2];
  *n = a->dims[a->rank - 1];
  *batches = *m && *n ? a->count / (*m * *n) : 0;
  return NULL;
}

static Err *wrong_results(const Op *op, int n) {
  return op_err(op, ERR_INVALID, "must have %d results", n);
}

/* A tensor with the batch dimensions of a and then tail[0..n). */
static Err *batched(const Tensor *a, DType dtype, int n, const int64_t *tail, Tensor **out) {
  int64_t dims[MAX_RANK + 2];
  memcpy(dims, a->dims, sizeof *dims * (size_t)(a->rank - 2));
  for (int i = 0; i < n; i++) dims[a->rank - 2 + i] = tail[i];
  return tensor_new(dtype, a->rank - 2 + n, dims, out);
}

/* ---- QR -------------------------------------------------------------------------------------- */

/* Rows k.. of columns from..n of x become (I - tau v v^H) x; v = (1, packed[k+1..][k]). */
static void reflect(const Zd *v, int64_t v_cols, int64_t k, Zd tau, Zd *x, int64_t m, int64_t n,
                    int64_t from) {
  for (int64_t j = from; j < n; j++) {
    Zd s = x[k * n + j];
    for (int64_t i = k + 1; i < m; i++) s = add(s, mul(conj_of(v[i * v_cols + k]), x[i * n + j]));
    s = mul(s, tau);
    x[k * n + j] = sub(x[k * n + j], s);
    for (int64_t i = k + 1; i < m; i++) x[i * n + j] = sub(x[i * n + j], mul(v[i * v_cols + k], s));
  }
}

static void qr(Zd *a, int64_t m, int64_t n, Zd *taus) {
  for (int64_t k = 0; k < MIN(m, n); k++) {
    double below = 0;
    for (int64_t i = k + 1; i < m; i++) below += abs2(a[i * n + k]);
    Zd alpha = a[k * n + k];
    taus[k] = (Zd){0, 0};
    if (below == 0 && alpha.im == 0) continue;
    double beta = -copysign(sqrt(abs2(alpha) + below), alpha.re);
    taus[k] = (Zd){(beta - alpha.re) / beta, -alpha.im / beta};
    Zd inv = quotient((Zd){1, 0}, (Zd){alpha.re - beta, alpha.im});
    for (int64_t i = k + 1; i < m; i++) a[i * n + k] = mul(a[i * n + k], inv);
    a[k * n + k] = (Zd){beta, 0};
    reflect(a, n, k, conj_of(taus[k]), a, m, n, k + 1);
  }
}

Err *custom_qr(const Op *op, Tensor *const *in, Tensor **results) {
  const Tensor *a = in[0];
  int64_t m, n, batches;
  TRY(matrix_shape(op, a, &m, &n, &batches));
  if (op->n_results != 2) return wrong_results(op, 2);
  int64_t k = MIN(m, n);
  TRY(tensor_new(a->dtype, a->rank, a->dims, &results[0]));
  TRY(batched(a, a->dtype, 1, &k, &results[1]));
  Zd *x = xmalloc(sizeof *x * (size_t)(m * n)), *taus = xmalloc(sizeof *taus * (size_t)MAX(k, 1));
  for (int64_t b = 0; b < batches; b++) {
    load(a, b * m * n, m * n, x);
    qr(x, m, n, taus);
    store(results[0], b * m * n, m * n, x);
    store(results[1], b * k, k, taus);
  }
  free(x);
  free(taus);
  return NULL;
}

Err *custom_householder_product(const Op *op, Tensor *const *in, Tensor **results) {
  const Tensor *a = in[0], *t = in[1];
  int64_t m, n, batches;
  TRY(matrix_shape(op, a, &m, &n, &batches));
  if (op->n_operands != 2 || t->rank != a->rank - 1 || m < n || t->dims[t->rank - 1] > n)
    return op_err(op, ERR_INVALID, "needs (m x n matrices with m >= n, at most n factors)");
  int64_t k = t->dims[t->rank - 1];
  TRY(tensor_new(a->dtype, a->rank, a->dims, &results[0]));
  Zd *v = xmalloc(sizeof *v * (size_t)(m * n)), *q = xmalloc(sizeof *q * (size_t)(m * n));
  Zd *taus = xmalloc(sizeof *taus * (size_t)MAX(k, 1));
  for (int64_t b = 0; b < batches; b++) {
    load(a, b * m * n, m * n, v);
    load(t, b * k, k, taus);
    for (int64_t i = 0; i < m * n; i++) q[i] = (Zd){i / n == i % n, 0};
    for (int64_t i = k - 1; i >= 0; i--) reflect(v, n, i, taus[i], q, m, n, 0);
    store(results[0], b * m * n, m * n, q);
  }
  free(v);
  free(q);
  free(taus);
  return NULL;
}

/* ---- LU -------------------------------------------------------------------------------------- */

Err *custom_lu(const Op *op, Tensor *const *in, Tensor **results) {
  const Tensor *a = in[0];
  int64_t m, n, batches;
  TRY(matrix_shape(op, a, &m, &n, &batches));
  if (op->n_results != 3) return wrong_results(op, 3);
  int64_t k = MIN(m, n);
  TRY(tensor_new(a->dtype, a->rank, a->dims, &results[0]));
  TRY(batched(a, DT_I32, 1, &k, &results[1]));
  TRY(batched(a, DT_I32, 1, &m, &results[2]));
  Zd *x = xmalloc(sizeof *x * (size_t)(m * n));
  for (int64_t b = 0; b < batches; b++) {
    int32_t *pivots = (int32_t *)results[1]->data + b * k,
            *perm = (int32_t *)results[2]->data + b * m;
    load(a, b * m * n, m * n, x);
    for (int64_t i = 0; i < m; i++) perm[i] = (int32_t)i;
    for (int64_t c = 0; c < k; c++) {
      int64_t p = c;
      for (int64_t i = c + 1; i < m; i++)
        if (abs2(x[i * n + c]) > abs2(x[p * n + c])) p = i;
      pivots[c] = (int32_t)p;
      if (p != c) {
        int32_t swap = perm[c];
        perm[c] = perm[p];
        perm[p] = swap;
        for (int64_t j = 0; j < n; j++) {
          Zd v = x[c * n + j];
          x[c * n + j] = x[p * n + j];
          x[p * n + j] = v;
        }
      }
      if (abs2(x[c * n + c]) == 0) continue; /* singular: the column is zero already */
      for (int64_t i = c + 1; i < m; i++) {
        Zd f = quotient(x[i * n + c], x[c * n + c]);
        x[i * n + c] = f;
        for (int64_t j = c + 1; j < n; j++) x[i * n + j] = sub(x[i * n + j], mul(f, x[c * n + j]));
      }
    }
    store(results[0], b * m * n, m * n, x);
  }
  free(x);
  return NULL;
}

/* ---- eigenvalues of Hermitian matrices ------------------------------------------------------- */

/* Zeroes a[p][q] by a rotation of columns and rows p and q. */
static void rotate(Zd *a, Zd *v, int64_t n, int64_t p, int64_t q) {
  Zd pq = a[p * n + q];
  double size = sqrt(abs2(pq));
  if (size == 0) return;
  double tau = (a[q * n + q].re - a[p * n + p].re) / (2 * size);
  double t = copysign(1, tau) / (fabs(tau) + hypot(1, tau)), c = 1 / hypot(1, t);
  Zd s = scale(pq, t * c / size); /* sine times the phase */
  Zd *both[2] = {a, v};
  for (int w = 0; w < 2; w++)
    for (int64_t i = 0; i < n; i++) {
      Zd x = both[w][i * n + p], y = both[w][i * n + q];
      both[w][i * n + p] = sub(scale(x, c), mul(conj_of(s), y));
      both[w][i * n + q] = add(mul(s, x), scale(y, c));
    }
  for (int64_t j = 0; j < n; j++) {
    Zd x = a[p * n + j], y = a[q * n + j];
    a[p * n + j] = sub(scale(x, c), mul(s, y));
    a[q * n + j] = add(mul(conj_of(s), x), scale(y, c));
  }
  a[p * n + q] = a[q * n + p] = (Zd){0, 0};
}

/* Of a matrix that is not finite: NaN. */
static void jacobi(Zd *a, Zd *v, int64_t n) {
  bool finite = true;
  for (int64_t i = 0; i < n * n; i++) finite &= isfinite(a[i].re) && isfinite(a[i].im);
  for (int64_t i = 0; i < n * n; i++) v[i] = (Zd){i / n == i % n, 0};
  for (int64_t i = 0; i < n * n && !finite; i++) a[i] = v[i] = (Zd){NAN, NAN};
  if (!finite) return;
  for (int sweep = 0; sweep < 60; sweep++) {
    double off = 0, all = 0;
    for (int64_t i = 0; i < n * n; i++) {
      all += abs2(a[i]);
      if (i / n != i % n) off += abs2(a[i]);
    }
    if (!(off > all * 1e-34)) return;
    for (int64_t p = 0; p < n; p++)
      for (int64_t q = p + 1; q < n; q++) rotate(a, v, n, p, q);
  }
}

/* The text of the configuration starts with 1 for the lower triangle, as XLA's
 * "lower,sort,iterations,tolerance". */
static bool wants_lower(const Op *op) {
  const Attr *c = op_attr(op, "backend_config");
  if (c && c->kind == AT_STRING && c->s.n) return c->s.p[0] != '0';
  const Attr *l = c && c->kind == AT_DICT ? attrs_get(c->dict, c->n, "lower") : NULL;
  return !l || l->i;
}

Err *custom_eigh(const Op *op, Tensor *const *in, Tensor **results) {
  const Tensor *a = in[0];
  int64_t m, n, batches;
  TRY(matrix_shape(op, a, &m, &n, &batches));
  if (m != n) return op_err(op, ERR_INVALID, "the matrices are not square");
  if (op->n_results != 2) return wrong_results(op, 2);
  bool lower = wants_lower(op);
  TRY(tensor_new(a->dtype, a->rank, a->dims, &results[0]));
  TRY(batched(a, dtype_real_of(a->dtype), 1, &n, &results[1]));
  Zd *x = xmalloc(sizeof *x * (size_t)(n * n)), *v = xmalloc(sizeof *v * (size_t)(n * n));
  int64_t *order = xmalloc(sizeof *order * (size_t)MAX(n, 1));
  for (int64_t b = 0; b < batches; b++) {
    load(a, b * n * n, n * n, x);
    for (int64_t i = 0; i < n; i++) {
      x[i * n + i].im = 0;
      for (int64_t j = 0; j < i; j++) {
        if (lower) x[j * n + i] = conj_of(x[i * n + j]);
        else x[i * n + j] = conj_of(x[j * n + i]);
      }
    }
    jacobi(x, v, n);
    for (int64_t i = 0; i < n; i++) { /* insertion sort of the values */
      int64_t j = i;
      for (; j > 0 && x[order[j - 1] * n + order[j - 1]].re > x[i * n + i].re; j--)
        order[j] = order[j - 1];
      order[j] = i;
    }
    for (int64_t j = 0; j < n; j++) {
      store(results[1], b * n + j, 1, &x[order[j] * n + order[j]]);
      for (int64_t i = 0; i < n; i++)
        store(results[0], b * n * n + i * n + j, 1, &v[i * n + order[j]]);
    }
  }
  free(x);
  free(v);
  free(order);
  return NULL;
}
