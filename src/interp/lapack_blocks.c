/* QR and LU in blocks of columns, on the caller's threads: a block is factored, what follows from it
 * is done to the columns beside it in parts. OpenBLAS's LAPACK turns to blocks late (QR of 128
 * columns) and its threads would be a second pool. */
#include <stdlib.h>

#include "interp/lapack_priv.h"

typedef void (*Fortran)(void);
#define FOUR(name, s, d, c, z) \
  extern void s(void);         \
  extern void d(void);         \
  extern void c(void);         \
  extern void z(void);         \
  static const Fortran name[4] = {s, d, c, z};
FOUR(potrf, spotrf_, dpotrf_, cpotrf_, zpotrf_)
FOUR(getrf, sgetrf_, dgetrf_, cgetrf_, zgetrf_)
FOUR(laswp, slaswp_, dlaswp_, claswp_, zlaswp_)
FOUR(trsm, strsm_, dtrsm_, ctrsm_, ztrsm_)
FOUR(gemm, sgemm_, dgemm_, cgemm_, zgemm_)
FOUR(geqr2, sgeqr2_, dgeqr2_, cgeqr2_, zgeqr2_)
FOUR(org2r, sorg2r_, dorg2r_, cung2r_, zung2r_)
FOUR(larft, slarft_, dlarft_, clarft_, zlarft_)
FOUR(larfb, slarfb_, dlarfb_, clarfb_, zlarfb_)
#define P void *

enum { WIDEST = 64, PART = 96 }; /* columns of a block; of those beside it, to a part */

static char left = 'L', forward = 'F', columnwise = 'C', lower = 'L', unit = 'U', no = 'N';
static int one = 1;

static char *at(const LapackMatrix *a, int64_t i, int64_t j) {
  return (char *)a->data + (i + j * a->ld) * (int64_t)lapack_bytes(a->type);
}

/* ---- panels ----------------------------------------------------------------------------------- */

/* Into columns that follow each other, or out of them. */
static void copy_panel(const LapackMatrix *a, char *dense, bool back) {
  size_t bytes = lapack_bytes(a->type) * (size_t)a->rows;
  for (int64_t j = 0; j < a->cols; j++, dense += bytes)
    if (back) memcpy(at(a, 0, j), dense, bytes);
    else memcpy(dense, at(a, 0, j), bytes);
}

static bool panel_finite(const LapackMatrix *a) {
  for (int64_t j = 0; j < a->cols; j++)
    if (!lapack_finite(a->type, at(a, 0, j), a->rows)) return false;
  return true;
}

/* ---- QR --------------------------------------------------------------------------------------- */

typedef struct Reflect { /* columns from `first` on, by the reflectors of a block */
  const LapackMatrix *a;
  int64_t first;
  int row, rows, wide;
  char trans;
  void *t; /* the block's triangle */
} Reflect;

static void reflect(void *arg, int64_t begin, int64_t end) {
  Reflect *r = arg;
  const LapackMatrix *a = r->a;
  for (int64_t part = begin; part < end; part++) {
    int64_t j = r->first + part * PART;
    int cols = (int)MIN(PART, a->cols - j), ld = r->wide;
    void *work = xmalloc(lapack_bytes(a->type) * (size_t)(cols * r->wide));
    ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P, P, P))larfb[a->type])(
        &left, &r->trans, &forward, &columnwise, &r->rows, &cols, &r->wide, at(a, r->row, r->row),
        (void *)&a->ld, r->t, &ld, at(a, r->row, j), (void *)&a->ld, work, &cols);
    free(work);
  }
}

/* The columns right of a block of reflectors, which begins at (row, row). */
static void reflect_rest(Reflect *r, const void *tau, LapackParallel *parallel) {
  const LapackMatrix *a = r->a;
  int ld = r->wide;
  r->first = r->row + r->wide;
  if (r->first >= a->cols) return;
  ((void (*)(P, P, P, P, P, P, P, P, P))larft[a->type])(&forward, &columnwise, &r->rows, &r->wide,
                                                        at(a, r->row, r->row), (void *)&a->ld,
                                                        (void *)tau, r->t, &ld);
  parallel((a->cols - r->first + PART - 1) / PART, 1, reflect, r);
}

/* Narrow while the reflectors themselves are most of the work. */
static int block_width(int k) { return k < 256 ? 16 : k < 1024 ? 32 : WIDEST; }

/* kept: room for the panel */
static void reflect_panel(const LapackMatrix *a, void *tau, char *work, char *kept) {
  int info, rows = a->rows, cols = a->cols;
  copy_panel(a, kept, false);
  ((void (*)(P, P, P, P, P, P, P))geqr2[a->type])(&rows, &cols, a->data, (void *)&a->ld, tau, work,
                                                  &info);
  if (panel_finite(a) && lapack_finite(a->type, tau, MIN(rows, cols))) return;
  copy_panel(a, kept, true);
  lapack_plain_qr(a, tau);
}

void lapack_qr(const LapackMatrix *a, void *tau, LapackParallel *parallel) {
  int k = MIN(a->rows, a->cols), width = MIN(k, block_width(k));
  size_t bytes = lapack_bytes(a->type);
  char *work = xmalloc(bytes * (size_t)(width * (width + 1)));
  char *kept = xmalloc(bytes * (size_t)width * (size_t)a->rows + 1);
  Reflect r = {.a = a, .trans = a->type > 1 ? 'C' : 'T', .t = work + bytes * (size_t)width};
  for (r.row = 0; r.row < k; r.row += width) {
    char *t = (char *)tau + (size_t)r.row * bytes;
    r.wide = MIN(width, k - r.row);
    r.rows = a->rows - r.row;
    LapackMatrix panel = {a->type, r.rows, r.wide, a->ld, at(a, r.row, r.row)};
    reflect_panel(&panel, t, work, kept);
    reflect_rest(&r, t, parallel);
  }
  free(work);
  free(kept);
}

void lapack_q(const LapackMatrix *a, int k, const void *tau, LapackParallel *parallel) {
  int width = MAX(1, MIN(k, block_width(k))), info;
  size_t bytes = lapack_bytes(a->type);
  char *work = xmalloc(bytes * (size_t)(width * (width + 1)));
  Reflect r = {.a = a, .trans = 'N', .t = work + bytes * (size_t)width};
  int begin = k ? (k - 1) / width * width : 0;
  for (int64_t j = k; j < a->cols; j++) memset(at(a, 0, j), 0, bytes * (size_t)a->rows);
  for (int64_t j = k; j < MIN(a->rows, a->cols); j++) lapack_set_one(a->type, at(a, j, j));
  for (r.row = begin; r.row >= 0 && k; r.row -= width) {
    const char *t = (const char *)tau + (size_t)r.row * bytes;
    r.wide = MIN(width, k - r.row);
    r.rows = a->rows - r.row;
    reflect_rest(&r, t, parallel);
    LapackMatrix panel = {a->type, r.rows, r.wide, a->ld, at(a, r.row, r.row)};
    if (panel_finite(&panel) && lapack_finite(a->type, t, r.wide))
      ((void (*)(P, P, P, P, P, P, P, P))org2r[a->type])(&r.rows, &r.wide, &r.wide, panel.data,
                                                         (void *)&a->ld, (void *)t, work, &info);
    else lapack_plain_q(&panel, t);
    for (int64_t j = r.row; j < r.row + r.wide; j++) memset(at(a, 0, j), 0, bytes * (size_t)r.row);
  }
  free(work);
}

/* ---- LU --------------------------------------------------------------------------------------- */

/* As lapack_plain_lu. kept: room for the panel */
static int factor_panel(const LapackMatrix *a, int *pivots, char *kept) {
  int bad = 0;
  copy_panel(a, kept, false);
  ((void (*)(P, P, P, P, P, P))getrf[a->type])((void *)&a->rows, (void *)&a->cols, a->data,
                                               (void *)&a->ld, pivots, &bad);
  if (panel_finite(a)) return bad;
  copy_panel(a, kept, true);
  return lapack_plain_lu(a, pivots);
}

typedef struct Eliminate {
  const LapackMatrix *a;
  int row, wide;
  int *pivots;
} Eliminate;

/* Parts of the columns on both sides of a block: rows are exchanged, those on the right reduced. */
static void eliminate(void *arg, int64_t begin, int64_t end) {
  const Eliminate *e = arg;
  const LapackMatrix *a = e->a;
  P ld = (void *)&a->ld;
  static double plus[2] = {1, 0}, minus[2] = {-1, 0};
  static float plus_f[2] = {1, 0}, minus_f[2] = {-1, 0};
  bool wide_type = a->type % 2;
  void *add = wide_type ? (P)plus : (P)plus_f, *subtract = wide_type ? (P)minus : (P)minus_f;
  int first = e->row + 1, last = e->row + e->wide, wide = e->wide, below = a->rows - last;
  int64_t on_left = (e->row + PART - 1) / PART;
  for (int64_t part = begin; part < end; part++) {
    bool right = part >= on_left;
    int64_t j = right ? last + (part - on_left) * PART : part * PART;
    int cols = (int)MIN(PART, (right ? a->cols : e->row) - j);
    ((void (*)(P, P, P, P, P, P, P))laswp[a->type])(&cols, at(a, 0, j), ld, &first, &last,
                                                    e->pivots, &one);
    if (!right) continue;
    ((void (*)(P, P, P, P, P, P, P, P, P, P, P))trsm[a->type])(&left, &lower, &no, &unit, &wide,
                                                               &cols, add, at(a, e->row, e->row),
                                                               ld, at(a, e->row, j), ld);
    if (below > 0)
      ((void (*)(P, P, P, P, P, P, P, P, P, P, P, P, P))gemm[a->type])(
          &no, &no, &below, &cols, &wide, subtract, at(a, last, e->row), ld, at(a, e->row, j), ld,
          add, at(a, last, j), ld);
  }
}

void lapack_lu(const LapackMatrix *a, int *pivots, int *info, LapackParallel *parallel) {
  int k = MIN(a->rows, a->cols);
  int width = k < 384 ? k : WIDEST;
  Eliminate e = {.a = a, .pivots = pivots};
  char *kept = xmalloc(lapack_bytes(a->type) * (size_t)MAX(1, width) * (size_t)a->rows + 1);
  *info = 0;
  for (e.row = 0; e.row < k; e.row += width) {
    e.wide = MIN(width, k - e.row);
    LapackMatrix panel = {a->type, a->rows - e.row, e.wide, a->ld, at(a, e.row, e.row)};
    int bad = factor_panel(&panel, pivots + e.row, kept);
    if (bad && !*info) *info = bad + e.row;
    for (int i = 0; i < e.wide; i++) pivots[e.row + i] += e.row;
    int64_t right = a->cols - e.row - e.wide;
    parallel((e.row + PART - 1) / PART + (right + PART - 1) / PART, 1, eliminate, &e);
  }
  free(kept);
}

/* ---- Cholesky --------------------------------------------------------------------------------- */

int lapack_cholesky(int type, bool upper, int n, int ld, void *data) {
  LapackMatrix a = {type, n, n, ld, data};
  char uplo = upper ? 'U' : 'L';
  int info = 0;
  if (!panel_finite(&a)) return lapack_plain_cholesky(&a, upper);
  ((void (*)(P, P, P, P, P))potrf[type])(&uplo, &n, data, &ld, &info);
  return info;
}
