/* Dense linear algebra: cholesky and triangular_solve over batches of matrices. Everything is
 * computed in double (pairs of doubles for complex types) by rows, and rounded once. Cubic cost, no
 * blocking.
 */
#include <math.h>

#include "interp/ewise_priv.h"

typedef struct Zd {
  double re, im;
} Zd;

static Zd get(const Tensor *t, int64_t i) {
  Cx v;
  load_z(t->dtype, t->data, i, 1, 1, &v);
  return (Zd){(double)v.re, (double)v.im};
}
static void put(Tensor *t, int64_t i, Zd v) {
  if (dtype_is_complex(t->dtype)) {
    Cx c = {(long double)v.re, (long double)v.im};
    store_z(t->dtype, t->data, i, 1, &c);
  } else {
    store_d(t->dtype, t->data, i, 1, &v.re);
  }
}
static Zd sub(Zd a, Zd b) { return (Zd){a.re - b.re, a.im - b.im}; }
static Zd mul(Zd a, Zd b) { return (Zd){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static Zd conj_of(Zd a) { return (Zd){a.re, -a.im}; }
static Zd quotient(Zd a, Zd b) {
  if (b.im == 0) return (Zd){a.re / b.re, a.im / b.re};
  Cx r = cx_div((Cx){(long double)a.re, (long double)a.im},
                (Cx){(long double)b.re, (long double)b.im});
  return (Zd){(double)r.re, (double)r.im};
}

/* x -= sum_k a[k] * b[k], b conjugated on request */
static Zd minus_dot(Zd x, const Zd *a, const Zd *b, int64_t n, bool real, bool conj_b) {
  if (real) {
    for (int64_t k = 0; k < n; k++) x.re -= a[k].re * b[k].re;
    return x;
  }
  for (int64_t k = 0; k < n; k++) x = sub(x, mul(a[k], conj_b ? conj_of(b[k]) : b[k]));
  return x;
}

/* Row by row: L[i][j] = (A[i][j] - L[i][:j] . conj(L[j][:j])) / L[j][j]. Reads the named triangle
 * only. A matrix that is not positive definite gives NaN in its whole result, as XLA does, and one with
 * NaN in it gives NaN in what depends on that; the other triangle of the result is zero. */
Err *sem_cholesky(Eval *e) {
  const Tensor *a = e->in[0];
  bool lower = op_bool(e->op, "lower", false), real = !dtype_is_complex(a->dtype), good = true;
  Tensor *out;
  if (a->rank < 2 || a->dims[a->rank - 1] != a->dims[a->rank - 2])
    return op_err(e->op, ERR_INVALID, "the operand is not a (batch of) square matrices");
  TRY(eval_out_dims(e, 0, a->rank, a->dims, &out));
  int64_t n = a->dims[a->rank - 1], size = n * n;
  if (!a->count) return NULL;
  Zd *l = xmalloc(sizeof *l * (size_t)size);
  for (int64_t base = 0; base < a->count; base += size) {
    good = true;
    for (int64_t i = 0; i < n; i++) {
      for (int64_t j = 0; j <= i; j++) {
        Zd v = lower ? get(a, base + i * n + j) : conj_of(get(a, base + j * n + i));
        v = minus_dot(v, l + i * n, l + j * n, j, real, true);
        if (i == j) {
          if (v.re <= 0) good = false;
          v = (Zd){sqrt(v.re), 0};
        } else {
          v = (Zd){v.re / l[j * n + j].re, v.im / l[j * n + j].re};
        }
        l[i * n + j] = v;
      }
    }
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        Zd v = {0, 0};
        if (lower && j <= i) v = l[i * n + j];
        if (!lower && j >= i) v = conj_of(l[j * n + i]);
        if (!good && (lower ? j <= i : j >= i)) v = (Zd){NAN, real ? 0 : NAN};
        put(out, base + i * n + j, v);
      }
  }
  free(l);
  return NULL;
}

/* op(A) X = B by substitution. X op(A) = B is solved as op(A)^T X^T = B^T. */
Err *sem_triangular_solve(Eval *e) {
  const Tensor *a = e->in[0], *b = e->in[1];
  bool left = op_bool(e->op, "left_side", false), lower = op_bool(e->op, "lower", false);
  bool unit = op_bool(e->op, "unit_diagonal", false), real = !dtype_is_complex(a->dtype);
  Str how = op_str(e->op, "transpose_a");
  bool adjoint = str_is(how, "ADJOINT"), trans = adjoint || str_is(how, "TRANSPOSE");
  Tensor *out;
  int last = b->rank - 1;
  bool fits = a->rank == b->rank && last >= 1 && a->dims[last] == a->dims[last - 1] &&
              a->dims[last] == b->dims[left ? last - 1 : last];
  for (int d = 0; fits && d < last - 1; d++) fits = a->dims[d] == b->dims[d];
  if (!fits) return op_err(e->op, ERR_INVALID, "the shapes of the two operands do not fit");
  TRY(eval_out_dims(e, 0, b->rank, b->dims, &out));
  if (!b->count) return NULL;
  int64_t n = a->dims[a->rank - 1], rows = b->dims[b->rank - 2], cols = b->dims[b->rank - 1];
  int64_t vectors = left ? cols : rows;
  bool flip = trans == left; /* is the matrix of the substitution the transpose of A? */
  bool forward = lower != flip;
  Zd *m = xmalloc(sizeof *m * (size_t)(n * n)), *x = xmalloc(sizeof *x * (size_t)n);
  for (int64_t batch = 0; batch < b->count / (rows * cols); batch++) {
    int64_t base_a = batch * n * n, base_b = batch * rows * cols;
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        int64_t r = flip ? j : i, c = flip ? i : j;
        Zd v = {0, 0};
        if (lower ? c <= r : c >= r) v = r == c && unit ? (Zd){1, 0} : get(a, base_a + r * n + c);
        m[i * n + j] = adjoint ? conj_of(v) : v;
      }
    for (int64_t k = 0; k < vectors; k++) {
      for (int64_t s = 0; s < n; s++) {
        int64_t i = forward ? s : n - 1 - s, at = base_b + (left ? i * cols + k : k * cols + i);
        Zd v = get(b, at);
        v = forward ? minus_dot(v, m + i * n, x, i, real, false)
                    : minus_dot(v, m + i * n + i + 1, x + i + 1, n - 1 - i, real, false);
        x[i] = quotient(v, m[i * n + i]);
        put(out, at, x[i]);
      }
    }
  }
  free(m);
  free(x);
  return NULL;
}
