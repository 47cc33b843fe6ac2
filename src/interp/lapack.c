/* lapack: the custom calls by which JAX's CPU lowering asks for dense linear algebra
 * ("lapack_ssyevd_ffi" and so on), done by the LAPACK inside OpenBLAS. One row of `routines` for
 * each; the letter after "lapack_" is the element type.
 *
 * Values here are logical row-major tensors, whatever layouts the call asks for: matrices are
 * transposed into a column-major scratch and back. Leading dimensions are a batch, done in parts. A
 * routine that fails, and iterative ones when they meet NaN or infinity, report info != 0, from
 * which JAX makes NaNs.
 */
#include <math.h>
#include <stdlib.h>

#include "blas/blas.h"
#include "interp/lapack_priv.h"

typedef void (*Fortran)(void); /* every argument is a pointer; cast at the call */

#define FOUR(s, d, c, z) \
  extern void s(void);   \
  extern void d(void);   \
  extern void c(void);   \
  extern void z(void);
FOUR(sgeqp3_, dgeqp3_, cgeqp3_, zgeqp3_)
FOUR(sormqr_, dormqr_, cunmqr_, zunmqr_)
FOUR(sgesdd_, dgesdd_, cgesdd_, zgesdd_)
FOUR(sgesvd_, dgesvd_, cgesvd_, zgesvd_)
FOUR(ssyevd_, dsyevd_, cheevd_, zheevd_)
FOUR(ssytrd_, dsytrd_, chetrd_, zhetrd_)
FOUR(sgeev_, dgeev_, cgeev_, zgeev_)
FOUR(sgees_, dgees_, cgees_, zgees_)
FOUR(sgehrd_, dgehrd_, cgehrd_, zgehrd_)
FOUR(sgtsv_, dgtsv_, cgtsv_, zgtsv_)
FOUR(strsm_, dtrsm_, ctrsm_, ztrsm_)

/* ---- one call's view of its operands and results --------------------------------------------- */

typedef struct Call {
  const Op *op;
  Tensor *const *in, *const *out;
  const LapackHow *how;
  Fortran fn;
  DType t;  /* element type of the matrices */
  int type; /* the same, from 0: f32, f64, c64, c128 */
  size_t elem;
  bool cplx;
  int64_t batch;      /* matrices */
  int64_t begin, end; /* those of this part */
  int m, n;           /* of operand 0 */
  int routine;
  VEC(void *) scratch;
} Call;

static const Attr *config(const Op *op, const char *name) {
  const Attr *a = op_attr(op, "mhlo.backend_config");
  if (!a) a = op_attr(op, "backend_config");
  return a && a->kind == AT_DICT ? attrs_get(a->dict, a->n, name) : NULL;
}

char lapack_letter(const Op *op, const char *name, char dflt) {
  const Attr *a = config(op, name);
  return a && a->kind == AT_INT ? (char)a->i : dflt;
}

static char letter(const Call *c, const char *name, char dflt) {
  return lapack_letter(c->op, name, dflt);
}

static bool flag(const Call *c, const char *name) {
  const Attr *a = config(c->op, name);
  return a && (a->kind == AT_BOOL || a->kind == AT_INT) && a->i;
}

static void *scratch(Call *c, int64_t bytes) {
  void *p = xmalloc((size_t)MAX(bytes, 16));
  *vec_push(&c->scratch) = p;
  return p;
}

/* Columns apart, for matrices of so many rows: columns a power of two apart meet in the cache. */
static int apart(const Call *c, int rows) {
  int line = (int)(64 / c->elem);
  return rows >= 64 && (size_t)rows * c->elem % 512 == 0 ? rows + line : MAX(rows, 1);
}

static int64_t area(const Call *c, int rows, int cols) {
  return (int64_t)apart(c, rows) * cols * (int64_t)c->elem;
}

/* Part b of a tensor that is divided among the batch. */
static void *item(const Call *c, Tensor *t, int64_t b) {
  return (char *)t->data + (size_t)(t->count / c->batch * b) * (size_t)dtype_bytes(t->dtype);
}

static void take_matrix(const Call *c, void *dst, Tensor *t, int64_t b) {
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  c->how->turn(c->elem, cols, rows, apart(c, (int)rows), cols, item(c, t, b), dst);
}

static void give_matrix(const Call *c, Tensor *t, int64_t b, const void *src) {
  int64_t rows = t->dims[t->rank - 2], cols = t->dims[t->rank - 1];
  c->how->turn(c->elem, rows, cols, cols, apart(c, (int)rows), src, item(c, t, b));
}

static void blank(const Call *c, int result, int64_t b) {
  Tensor *t = c->out[result];
  memset(item(c, t, b), 0, tensor_bytes(t) / (size_t)c->batch);
}

/* Of a matrix that is not finite: info, all other results zero. */
static void refuse(const Call *c, int info, int64_t b) {
  for (int i = 0; i < c->op->n_results; i++) blank(c, i, b);
  *(int *)item(c, c->out[info], b) = -4;
}

static bool all_finite(const Call *c, Tensor *t, int64_t b) {
  return lapack_finite(c->type, item(c, t, b), t->count / c->batch);
}

static int work_size(const Call *c,
                     const void *query) { /* the first element of WORK after a query */
  double v = c->t == DT_F64 || c->t == DT_C128 ? *(const double *)query : *(const float *)query;
  return v >= 1 && v < 2147483000.0 ? (int)(v * 1.001) + 1 : 1;
}

#define P void *
static char up = 'U', no = 'N'; /* Fortran takes addresses */

/* ---- factorizations -------------------------------------------------------------------------- */

/* in: a; out: a, info */
static void potrf(Call *c) {
  void *a = scratch(c, area(c, c->n, c->n));
  char uplo = letter(c, "uplo", 'L');
  for (int64_t b = c->begin; b < c->end; b++) {
    int ld = apart(c, c->n), *info = item(c, c->out[1], b);
    take_matrix(c, a, c->in[0], b);
    *info = lapack_cholesky(c->type, uplo == 'U', c->n, ld, a);
    give_matrix(c, c->out[0], b, a);
  }
}

/* Operand 0 in columns, for the functions of lapack_blocks.c. */
static LapackMatrix in_columns(Call *c) {
  return (LapackMatrix){.type = c->type,
                        .rows = c->m,
                        .cols = c->n,
                        .ld = apart(c, c->m),
                        .data = scratch(c, area(c, c->m, c->n))};
}

/* in: a; out: a, pivots, info */
static void getrf(Call *c) {
  LapackMatrix a = in_columns(c);
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a.data, c->in[0], b);
    lapack_lu(&a, item(c, c->out[1], b), item(c, c->out[2], b), c->how->parallel);
    give_matrix(c, c->out[0], b, a.data);
  }
}

/* in: a; out: a, tau */
static void geqrf(Call *c) {
  LapackMatrix a = in_columns(c);
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a.data, c->in[0], b);
    lapack_qr(&a, item(c, c->out[1], b), c->how->parallel);
    give_matrix(c, c->out[0], b, a.data);
  }
}

/* in: a, jpvt; out: a, jpvt, tau */
static void geqp3(Call *c) {
  void *a = scratch(c, area(c, c->m, c->n));
  int ld = apart(c, c->m), info, lwork = (c->n + 1) * 64;
  void *work = scratch(c, lwork * (int64_t)c->elem), *rwork = scratch(c, (int64_t)c->n * 2 * 8);
  for (int64_t b = c->begin; b < c->end; b++) {
    int *jpvt = item(c, c->out[1], b);
    take_matrix(c, a, c->in[0], b);
    memcpy(jpvt, item(c, c->in[1], b), sizeof(int) * (size_t)c->n);
    void *tau = item(c, c->out[2], b);
    if (c->cplx)
      ((void (*)(P, P, P, P, P, P, P, P, P, P))c->fn)(&c->m, &c->n, a, &ld, jpvt, tau, work, &lwork,
                                                      rwork, &info);
    else
      ((void (*)(P, P, P, P, P, P, P, P, P))c->fn)(&c->m, &c->n, a, &ld, jpvt, tau, work, &lwork,
                                                   &info);
    give_matrix(c, c->out[0], b, a);
  }
}

/* in: a, tau; out: a */
static void orgqr(Call *c) {
  LapackMatrix a = in_columns(c);
  int k = (int)c->in[1]->dims[c->in[1]->rank - 1];
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a.data, c->in[0], b);
    lapack_q(&a, k, item(c, c->in[1], b), c->how->parallel);
    give_matrix(c, c->out[0], b, a.data);
  }
}

/* in: a, tau, c; out: c */
static void ormqr(Call *c) {
  Tensor *x = c->in[2];
  int m = (int)x->dims[x->rank - 2], n = (int)x->dims[x->rank - 1],
      k = (int)c->in[1]->dims[c->in[1]->rank - 1];
  void *a = scratch(c, area(c, c->m, c->n)), *v = scratch(c, area(c, m, n));
  char side = flag(c, "left") ? 'L' : 'R', trans = !flag(c, "transpose") ? 'N'
                                                   : c->cplx             ? 'C'
                                                                         : 'T';
  int lda = apart(c, c->m), ldc = apart(c, m), info, lwork = MAX(m, n) * 64 + 64 * 65;
  void *work = scratch(c, lwork * (int64_t)c->elem);
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a, c->in[0], b);
    take_matrix(c, v, x, b);
    ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
        &side, &trans, &m, &n, &k, a, &lda, item(c, c->in[1], b), v, &ldc, work, &lwork, &info);
    give_matrix(c, c->out[0], b, v);
  }
}

/* in: a; out: a, tau, info */
static void gehrd(Call *c) {
  void *a = scratch(c, area(c, c->n, c->n));
  const Attr *low = config(c->op, "low"), *high = config(c->op, "high");
  int lo = low ? (int)low->i : 1, hi = high ? (int)high->i : c->n, ld = apart(c, c->n),
      lwork = c->n * 64 + 64 * 65;
  void *work = scratch(c, lwork * (int64_t)c->elem);
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a, c->in[0], b);
    ((void (*)(P, P, P, P, P, P, P, P, P))c->fn)(&c->n, &lo, &hi, a, &ld, item(c, c->out[1], b),
                                                 work, &lwork, item(c, c->out[2], b));
    give_matrix(c, c->out[0], b, a);
  }
}

/* in: a; out: a, d, e, tau, info */
static void sytrd(Call *c) {
  void *a = scratch(c, area(c, c->n, c->n));
  char uplo = letter(c, "uplo", 'L');
  int ld = apart(c, c->n), lwork = c->n * 64;
  void *work = scratch(c, lwork * (int64_t)c->elem);
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a, c->in[0], b);
    ((void (*)(P, P, P, P, P, P, P, P, P, P))c->fn)(&uplo, &c->n, a, &ld, item(c, c->out[1], b),
                                                    item(c, c->out[2], b), item(c, c->out[3], b),
                                                    work, &lwork, item(c, c->out[4], b));
    give_matrix(c, c->out[0], b, a);
  }
}

/* ---- eigenvalues, singular values ------------------------------------------------------------ */

/* in: a; out: a (vectors), w, info */
static void syevd(Call *c) {
  int n = c->n, ld = apart(c, n), q = -1, liwork = 1, lrwork = 1;
  void *a = scratch(c, area(c, n, n));
  char mode = letter(c, "mode", 'V'), uplo = letter(c, "uplo", 'L');
  char size[16] = {0}, rsize[16] = {0};
  int lwork = 1, none;
  void *work = NULL, *rwork = NULL, *iwork = NULL;
  for (int64_t b = c->begin - 1; b < c->end; b++) { /* the first turn asks for the work space */
    bool query = b < c->begin;
    int *info = query ? &none : item(c, c->out[2], b);
    void *w = query ? size : item(c, c->out[1], b);
    if (!query) {
      take_matrix(c, a, c->in[0], b);
      if (!all_finite(c, c->in[0], b)) {
        refuse(c, 2, b);
        continue;
      }
    }
    if (c->cplx)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &uplo, &n, a, &ld, w, query ? size : work, query ? &q : &lwork,
          query ? rsize : rwork, query ? &q : &lrwork, query ? &liwork : iwork,
          query ? &q : &liwork, info);
    else
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &uplo, &n, a, &ld, w, query ? size : work, query ? &q : &lwork,
          query ? &liwork : iwork, query ? &q : &liwork, info);
    if (query) {
      lwork = work_size(c, size);
      if (c->cplx) lrwork = work_size(c, rsize);
      work = scratch(c, lwork * (int64_t)c->elem);
      rwork = scratch(c, lrwork * (int64_t)8);
      iwork = scratch(c, MAX(liwork, 1) * (int64_t)sizeof(int));
    } else {
      give_matrix(c, c->out[0], b, a);
    }
  }
}

/* in: a; out: a, s, u, vt, info */
static void svd(Call *c, bool divide) {
  int m = c->m, n = c->n, k = MIN(m, n), lda = apart(c, m), q = -1, lwork = 1, none;
  char mode = letter(c, "mode", 'A');
  /* columns of u, rows of vt: fits_together has seen that the results have them */
  int left = mode == 'N' ? 1 : mode == 'S' ? k : m, right = mode == 'N' ? 1 : mode == 'S' ? k : n;
  int ldu = apart(c, m), ldv = apart(c, right);
  size_t real = c->cplx ? c->elem / 2 : c->elem;
  int64_t mx = MAX(m, n), mn = k;
  int64_t lrwork = divide ? MAX(5 * mn * mn + 5 * mn, 2 * mx * mn + 2 * mn * mn + mn) : 5 * mn;
  void *a = scratch(c, area(c, m, n)), *u = scratch(c, area(c, m, left)),
       *v = scratch(c, area(c, right, n)), *iwork = scratch(c, 8 * mn * (int64_t)sizeof(int));
  void *rwork = scratch(c, c->cplx ? lrwork * (int64_t)real : 16), *work = NULL;
  char size[16] = {0};
  for (int64_t b = c->begin - 1; b < c->end; b++) {
    bool query = b < c->begin;
    int *info = query ? &none : item(c, c->out[4], b);
    void *s = query ? scratch(c, mn * (int64_t)real) : item(c, c->out[1], b);
    if (!query) {
      take_matrix(c, a, c->in[0], b);
      if (!all_finite(c, c->in[0], b)) {
        refuse(c, 4, b);
        continue;
      }
    }
    void *w = query ? (void *)size : work;
    int *lw = query ? &q : &lwork;
    if (divide && c->cplx)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &m, &n, a, &lda, s, u, &ldu, v, &ldv, w, lw, rwork, iwork, info);
    else if (divide)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &m, &n, a, &lda, s, u, &ldu, v, &ldv, w, lw, iwork, info);
    else if (c->cplx)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &mode, &m, &n, a, &lda, s, u, &ldu, v, &ldv, w, lw, rwork, info);
    else
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(&mode, &mode, &m, &n, a, &lda, s,
                                                                  u, &ldu, v, &ldv, w, lw, info);
    if (query) {
      lwork = work_size(c, size);
      work = scratch(c, lwork * (int64_t)c->elem);
      continue;
    }
    give_matrix(c, c->out[0], b, a);
    if (mode == 'N') {
      blank(c, 2, b);
      blank(c, 3, b);
      continue;
    }
    give_matrix(c, c->out[2], b, u);
    give_matrix(c, c->out[3], b, v);
  }
}
static void gesdd(Call *c) { svd(c, true); }
static void gesvd(Call *c) { svd(c, false); }

/* LAPACK packs a conjugate pair as (real part, imaginary part) in two neighbouring columns. */
static void unpack_vectors(const Call *c, Tensor *t, int64_t b, const void *packed,
                           const void *wi) {
  int n = c->n;
  int64_t ld = apart(c, n);
  bool wide = c->t == DT_F64;
#define AT(p, i) (wide ? ((const double *)(p))[i] : (double)((const float *)(p))[i])
  for (int j = 0; j < n; j++) {
    double im = AT(wi, j);
    int first = im < 0 && j > 0 ? j - 1 : j;
    for (int i = 0; i < n; i++) {
      double re = AT(packed, first * ld + i), part = 0;
      if (im != 0 && first + 1 < n) part = AT(packed, (first + 1) * ld + i);
      if (im < 0) part = -part;
      int64_t at = 2 * ((int64_t)i * n + j);
      if (wide) ((double *)item(c, t, b))[at] = re, ((double *)item(c, t, b))[at + 1] = part;
      else ((float *)item(c, t, b))[at] = (float)re, ((float *)item(c, t, b))[at + 1] = (float)part;
    }
  }
#undef AT
}

/* in: a; out: real wr, wi, vl, vr, info; complex w, vl, vr, info */
static void geev(Call *c) {
  int n = c->n, ld = apart(c, n), q = -1, lwork = 1, none, base = c->cplx ? 1 : 2;
  char left = letter(c, "compute_left", 'N'), right = letter(c, "compute_right", 'V'),
       size[16] = {0};
  int64_t bytes = area(c, n, n);
  void *a = scratch(c, bytes), *vl = scratch(c, bytes), *vr = scratch(c, bytes), *work = NULL;
  void *rwork = scratch(c, 2 * (int64_t)n * (int64_t)c->elem),
       *spare = scratch(c, 2 * (int64_t)n * (int64_t)c->elem);
  for (int64_t b = c->begin - 1; b < c->end; b++) {
    bool query = b < c->begin;
    int *info = query ? &none : item(c, c->out[base + 2], b);
    void *wr = query ? spare : item(c, c->out[0], b),
         *wi = query || c->cplx ? spare : item(c, c->out[1], b);
    if (!query) {
      take_matrix(c, a, c->in[0], b);
      if (!all_finite(c, c->in[0], b)) {
        refuse(c, base + 2, b);
        continue;
      }
    }
    void *w = query ? (void *)size : work;
    int *lw = query ? &q : &lwork;
    if (c->cplx)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(&left, &right, &n, a, &ld, wr, vl,
                                                                  &ld, vr, &ld, w, lw, rwork, info);
    else
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(&left, &right, &n, a, &ld, wr, wi,
                                                                  vl, &ld, vr, &ld, w, lw, info);
    if (query) {
      lwork = work_size(c, size);
      work = scratch(c, lwork * (int64_t)c->elem);
    } else if (c->cplx) {
      if (left == 'V') give_matrix(c, c->out[1], b, vl);
      else blank(c, 1, b);
      if (right == 'V') give_matrix(c, c->out[2], b, vr);
      else blank(c, 2, b);
    } else {
      if (left == 'V') unpack_vectors(c, c->out[2], b, vl, wi);
      else blank(c, 2, b);
      if (right == 'V') unpack_vectors(c, c->out[3], b, vr, wi);
      else blank(c, 3, b);
    }
  }
}

/* in: a; out: a, vs, real wr, wi or complex w, sdim, info */
static void gees(Call *c) {
  int n = c->n, ld = apart(c, n), q = -1, lwork = 1, none, sdim, base = c->cplx ? 3 : 4;
  char mode = letter(c, "mode", 'V'), sort = no, size[16] = {0};
  int64_t bytes = area(c, n, n);
  void *a = scratch(c, bytes), *vs = scratch(c, bytes), *work = NULL;
  void *rwork = scratch(c, (int64_t)n * (int64_t)c->elem),
       *bwork = scratch(c, (int64_t)n * (int64_t)sizeof(int));
  void *spare = scratch(c, (int64_t)n * (int64_t)c->elem);
  for (int64_t b = c->begin - 1; b < c->end; b++) {
    bool query = b < c->begin;
    int *info = query ? &none : item(c, c->out[base + 1], b),
        *sd = query ? &sdim : item(c, c->out[base], b);
    void *w1 = query ? spare : item(c, c->out[2], b),
         *w2 = query || c->cplx ? spare : item(c, c->out[3], b);
    if (!query) {
      take_matrix(c, a, c->in[0], b);
      if (!all_finite(c, c->in[0], b)) {
        refuse(c, base + 1, b);
        continue;
      }
    }
    void *w = query ? (void *)size : work;
    int *lw = query ? &q : &lwork;
    if (c->cplx)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &sort, NULL, &n, a, &ld, sd, w1, vs, &ld, w, lw, rwork, bwork, info);
    else
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P))c->fn)(
          &mode, &sort, NULL, &n, a, &ld, sd, w1, w2, vs, &ld, w, lw, bwork, info);
    if (query) {
      lwork = work_size(c, size);
      work = scratch(c, lwork * (int64_t)c->elem);
      continue;
    }
    give_matrix(c, c->out[0], b, a);
    if (mode == 'V') give_matrix(c, c->out[1], b, vs);
    else blank(c, 1, b);
  }
}

/* ---- solving --------------------------------------------------------------------------------- */

/* in: dl, d, du, b; out: dl, d, du, b, info. dl[0] and du[n - 1] are not used. */
static void gtsv(Call *c) {
  Tensor *x = c->in[3];
  int n = (int)x->dims[x->rank - 2], rhs = (int)x->dims[x->rank - 1], ld = apart(c, n);
  void *v = scratch(c, area(c, n, rhs));
  for (int64_t b = c->begin; b < c->end; b++) {
    for (int i = 0; i < 3; i++)
      memcpy(item(c, c->out[i], b), item(c, c->in[i], b), (size_t)n * c->elem);
    take_matrix(c, v, x, b);
    ((void (*)(P, P, P, P, P, P, P, P))c->fn)(&n, &rhs, (char *)item(c, c->out[0], b) + c->elem,
                                              item(c, c->out[1], b), item(c, c->out[2], b), v, &ld,
                                              item(c, c->out[4], b));
    give_matrix(c, c->out[3], b, v);
  }
}

/* in: a, b; out: b */
static void trsm(Call *c) {
  Tensor *x = c->in[1];
  int m = (int)x->dims[x->rank - 2], n = (int)x->dims[x->rank - 1], lda = apart(c, c->n),
      ldb = apart(c, m);
  char side = letter(c, "side", 'L'), uplo = letter(c, "uplo", up), diag = letter(c, "diag", no);
  char trans = letter(c, "trans_x", no);
  double one[2] = {1, 0};
  float one_f[2] = {1, 0};
  bool wide = c->t == DT_F64 || c->t == DT_C128;
  void *a = scratch(c, area(c, c->n, c->n)), *v = scratch(c, area(c, m, n));
  for (int64_t b = c->begin; b < c->end; b++) {
    take_matrix(c, a, c->in[0], b);
    take_matrix(c, v, x, b);
    ((void (*)(P, P, P, P, P, P, P, P, P, P, P))c->fn)(
        &side, &uplo, &trans, &diag, &m, &n, wide ? (void *)one : (void *)one_f, a, &lda, v, &ldb);
    give_matrix(c, c->out[0], b, v);
  }
}

/* ---- the table ------------------------------------------------------------------------------- */

#define ALL(name) \
  { s##name##_, d##name##_, c##name##_, z##name##_ }
/* Shapes, one word for each operand and result: an element type (T the routine's, R its real one, C its complex one, I i32,
 * ? anything) and the dimensions after the batch: m x n is the matrix, k = min(m, n), l = n - 1, t at most k, a and b free.
 * The svd's u and vt depend on the mode and are checked by hand. */
static const struct {
  const char *name; /* between "lapack_" + type and "_ffi" */
  void (*run)(Call *c);
  const char *in, *out, *out_complex; /* out_complex NULL: as out */
  Fortran fn[4];                      /* NULL: lapack_blocks.c knows */
} routines[] = {
    {"potrf", potrf, "Tnn", "Tnn I", NULL, {0}},
    {"getrf", getrf, "Tmn", "Tmn Ik I", NULL, {0}},
    {"geqrf", geqrf, "Tmn", "Tmn Tk", NULL, {0}},
    {"geqp3", geqp3, "Tmn In", "Tmn In Tk", NULL, ALL(geqp3)},
    {"orgqr", orgqr, "Tmn Tt", "Tmn", NULL, {0}},
    {"ungqr", orgqr, "Tmn Tt", "Tmn", NULL, {0}},
    {"ormqr", ormqr, "Tmn Tt Tab", "Tab", NULL, {sormqr_, dormqr_, cunmqr_, zunmqr_}},
    {"unmqr", ormqr, "Tmn Tt Tab", "Tab", NULL, {sormqr_, dormqr_, cunmqr_, zunmqr_}},
    {"gesdd", gesdd, "Tmn", "Tmn Rk T?? T?? I", NULL, ALL(gesdd)},
    {"gesvd", gesvd, "Tmn", "Tmn Rk T?? T?? I", NULL, ALL(gesvd)},
    {"syevd", syevd, "Tnn", "Tnn Rn I", NULL, {ssyevd_, dsyevd_, cheevd_, zheevd_}},
    {"heevd", syevd, "Tnn", "Tnn Rn I", NULL, {ssyevd_, dsyevd_, cheevd_, zheevd_}},
    {"sytrd", sytrd, "Tnn", "Tnn Rn Rl Tl I", NULL, {ssytrd_, dsytrd_, chetrd_, zhetrd_}},
    {"hetrd", sytrd, "Tnn", "Tnn Rn Rl Tl I", NULL, {ssytrd_, dsytrd_, chetrd_, zhetrd_}},
    {"geev", geev, "Tnn", "Rn Rn Cnn Cnn I", "Tn Cnn Cnn I", ALL(geev)},
    {"gees", gees, "Tnn", "Tnn Tnn Rn Rn I I", "Tnn Tnn Tn I I", ALL(gees)},
    {"gehrd", gehrd, "Tnn", "Tnn Tl I", NULL, ALL(gehrd)},
    {"gtsv", gtsv, "Tm Tm Tm Tmn", "Tm Tm Tm Tmn I", NULL, ALL(gtsv)},
    {"trsm", trsm, "Tnn Tab", "Tab", NULL, ALL(trsm)},
};

typedef struct Check {
  const Call *c;
  const Tensor *matrix;
  int64_t a, b, t; /* -1: not met yet */
} Check;

/* Does a value fit the word at *spec? Moves *spec behind it. */
static bool fits(Check *k, const char **spec, DType dtype, int rank, const int64_t *dims) {
  const char *s = *spec;
  DType want = *s == 'I' ? DT_I32 : *s == 'R' ? dtype_real_of(k->c->t) : k->c->t;
  if (*s == 'C') want = dtype_real_of(k->c->t) == DT_F64 ? DT_C128 : DT_C64;
  int n_batch = k->matrix->rank - 2, n = (int)strcspn(s + 1, " ");
  *spec = s + 1 + n + (s[1 + n] == ' ');
  if (dtype != want || rank != n_batch + n) return false;
  for (int i = 0; i < n_batch; i++)
    if (dims[i] != k->matrix->dims[i]) return false;
  for (int i = 0; i < n; i++) {
    int64_t d = dims[n_batch + i], small = MIN(k->c->m, k->c->n);
    int64_t *named = s[1 + i] == 'a'   ? &k->a
                     : s[1 + i] == 'b' ? &k->b
                     : s[1 + i] == 't' ? &k->t
                                       : NULL;
    if (d > INT32_MAX / 8) return false;
    if (named && *named < 0) *named = d;
    bool good = named             ? d == *named && (s[1 + i] != 't' || d <= small)
                : s[1 + i] == 'm' ? d == k->c->m
                : s[1 + i] == 'n' ? d == k->c->n
                : s[1 + i] == 'k' ? d == small
                : s[1 + i] == 'l' ? d == MAX(k->c->n - 1, 0)
                                  : true;
    if (!good) return false;
  }
  return true;
}

static int words(const char *s) {
  int n = 1;
  for (; *s; s++) n += *s == ' ';
  return n;
}

static int routine_of(Str target, int *type) {
  static const char letters[] = "sdcz";
  if (!str_starts(target, "lapack_") || !str_ends(target, "_ffi") || target.n < 13) return -1;
  const char *at = memchr(letters, target.p[7], 4);
  Str name = {target.p + 8, target.n - 12};
  for (int i = 0; at && i < COUNT_OF(routines); i++)
    if (str_is(name, routines[i].name)) {
      *type = (int)(at - letters);
      return i;
    }
  return -1;
}

/* What no word says: u and vt by the svd's mode, the free matrix by the side it stands on. */
static bool fits_together(const Call *c, const Check *k) {
  if (routines[c->routine].run == gesdd || routines[c->routine].run == gesvd) {
    const Type *u = c->op->results[2].type, *v = c->op->results[3].type;
    int64_t small = MIN(c->m, c->n);
    const int64_t *du = u->dims + u->rank - 2, *dv = v->dims + v->rank - 2;
    char mode = letter(c, "mode", 'A');
    if (mode == 'A') return du[0] == c->m && du[1] == c->m && dv[0] == c->n && dv[1] == c->n;
    if (mode == 'S') return du[0] == c->m && du[1] == small && dv[0] == small && dv[1] == c->n;
    return mode == 'N';
  }
  if (routines[c->routine].run == trsm)
    return (letter(c, "side", 'L') == 'L' ? k->a : k->b) == c->n;
  if (routines[c->routine].run == ormqr) return (flag(c, "left") ? k->a : k->b) == c->m;
  return true;
}

static Err *check(const Op *op, Tensor *const *in, Call *c) {
  static const DType types[4] = {DT_F32, DT_F64, DT_C64, DT_C128};
  int type = 0, r = routine_of(op_str(op, "call_target_name"), &type);
  if (r < 0) return op_err(op, ERR_INTERNAL, "not a LAPACK routine");
  bool cplx = type > 1;
  const char *spec_in = routines[r].in;
  const char *spec_out =
      cplx && routines[r].out_complex ? routines[r].out_complex : routines[r].out;
  if (op->n_operands != words(spec_in) || op->n_results != words(spec_out))
    return op_err(op, ERR_INVALID, "%d operands and %d results expected", words(spec_in),
                  words(spec_out));
  const Tensor *matrix = in[routines[r].run == gtsv ? 3 : 0];
  if (matrix->rank < 2) return op_err(op, ERR_INVALID, "a matrix expected");
  for (int i = matrix->rank - 2; i < matrix->rank; i++)
    if (matrix->dims[i] > INT32_MAX / 8)
      return op_err(op, ERR_INVALID, "the matrix is too large for LAPACK");
  *c = (Call){.op = op,
              .in = in,
              .fn = routines[r].fn[type],
              .t = types[type],
              .type = type,
              .cplx = cplx,
              .routine = r,
              .elem = (size_t)dtype_bytes(types[type]),
              .m = (int)matrix->dims[matrix->rank - 2],
              .n = (int)matrix->dims[matrix->rank - 1],
              .batch = 1};
  for (int i = 0; i < matrix->rank - 2; i++) c->batch *= matrix->dims[i];
  Check k = {c, matrix, -1, -1, -1};
  for (int i = 0; i < op->n_operands; i++)
    if (!fits(&k, &spec_in, in[i]->dtype, in[i]->rank, in[i]->dims))
      return op_err(op, ERR_INVALID, "operand %d does not have the routine's shape", i);
  for (int i = 0; i < op->n_results; i++) {
    const Type *t = op->results[i].type;
    if (t->kind != TY_TENSOR || !type_is_static(t) ||
        !fits(&k, &spec_out, t->dtype, t->rank, t->dims))
      return op_err(op, ERR_INVALID, "result %d does not have the routine's shape", i);
  }
  return fits_together(c, &k) ? NULL : op_err(op, ERR_INVALID, "the shapes do not fit together");
}

static void some_matrices(void *arg, int64_t begin, int64_t end) {
  Call c = *(const Call *)arg;
  c.begin = begin, c.end = end;
  routines[c.routine].run(&c);
  for (int i = 0; i < c.scratch.n; i++) free(c.scratch.v[i]);
  vec_free(&c.scratch);
}

Err *lapack_into(const Op *op, Tensor *const *in, Tensor *const *out, const LapackHow *how) {
  Call c;
  TRY(check(op, in, &c));
  c.out = out;
  c.how = how;
  blas_begin();
  double work = (double)c.m * c.n * MIN(c.m, c.n);
  if (c.batch && c.m && c.n)
    how->parallel(c.batch, (int64_t)(1e5 / (work + 500)) + 1, some_matrices, &c);
  else
    for (int i = 0; i < op->n_results; i++) memset(out[i]->data, 0, tensor_bytes(out[i]));
  return NULL;
}

static void one_part(int64_t n, int64_t grain, void (*fn)(void *, int64_t, int64_t), void *arg) {
  (void)grain;
  fn(arg, 0, n);
}

static void plainly(size_t bytes, int64_t na, int64_t nb, int64_t da, int64_t sb, const char *src,
                    char *dst) {
  for (int64_t a = 0; a < na; a++)
    for (int64_t b = 0; b < nb; b++)
      memcpy(dst + (size_t)(a * da + b) * bytes, src + (size_t)(a + b * sb) * bytes, bytes);
}

static Err *lapack_call(const Op *op, Tensor *const *in, Tensor **results) {
  static const LapackHow how = {plainly, one_part};
  Call c;
  TRY(check(op, in, &c));
  for (int i = 0; i < op->n_results; i++) {
    const Type *t = op->results[i].type;
    TRY(tensor_new(t->dtype, t->rank, t->dims, &results[i]));
  }
  return lapack_into(op, in, results, &how);
}

bool lapack_knows(Str target) {
  int type;
  return routine_of(target, &type) >= 0;
}

CustomCallFn lapack_find(Str target) { return lapack_knows(target) ? lapack_call : NULL; }
