/* Sums of products over tables of places: product_priv.h. */
#include <complex.h>
#include <math.h>

#include "interp/product_priv.h"

#ifndef CMPLX /* clang without the C11 macros */
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))
#endif

typedef float complex c64;
typedef double complex c128;

size_t arith_bytes(Arith ar) {
  static const size_t bytes[] = {
      [AR_F32] = 4, [AR_F64] = 8, [AR_INT] = 8, [AR_C64] = 8, [AR_C128] = 16};
  return bytes[ar];
}

Arith arith_for(DType out, DType acc) {
  if (dtype_is_complex(out)) return out == DT_C64 ? AR_C64 : AR_C128;
  if (!dtype_is_float(out)) return AR_INT;
  return out == DT_F64 || acc == DT_F64 ? AR_F64 : AR_F32;
}

/* ---- elements into and out of the arithmetic ----------------------------------------------- */

static double round_as(DType as, double v) {
  if (as == DT_INVALID || as == DT_F64) return v;
  if (as == DT_F32) return (float)v;
  if (as == DT_TF32) {
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    if ((u & 0x7f800000u) != 0x7f800000u) u = (u + 0xfffu + ((u >> 13) & 1)) & ~0x1fffu;
    memcpy(&f, &u, 4);
    return f;
  }
  return float_decode(as, float_encode(as, v));
}

/* Component c of v: the first is v rounded, the next what is left, rounded, ... */
static double component(DType as, double v, int c) {
  double part = round_as(as, v);
  while (c-- > 0) {
    v -= part;
    part = round_as(as, v);
  }
  return part;
}

void arith_load(Arith ar, const Side *s, int64_t at, void *to, int64_t i) {
  const Tensor *t = s->t;
  const char *p = tensor_at(t, at);
  DType r = dtype_real_of(t->dtype);
  switch (ar) {
  case AR_F32:
  case AR_F64: {
    double v = t->dtype == DT_F32 ? *(const float *)p : elem_get_f64(t->dtype, p);
    if (s->as != DT_INVALID) v = component(s->as, v, s->part);
    if (ar == AR_F32) ((float *)to)[i] = (float)v;
    else ((double *)to)[i] = v;
    break;
  }
  case AR_INT: ((int64_t *)to)[i] = elem_get_i64(t->dtype, p); break;
  case AR_C64:
  case AR_C128: {
    double re = elem_get_f64(r, p),
           im = dtype_is_complex(t->dtype) ? elem_get_f64(r, p + dtype_bytes(r)) : 0;
    if (ar == AR_C64) ((c64 *)to)[i] = CMPLXF((float)re, (float)im);
    else ((c128 *)to)[i] = CMPLX(re, im);
    break;
  }
  }
}

static void store(Arith ar, const void *from, int64_t i, Tensor *t, int64_t at) {
  char *p = tensor_at(t, at);
  DType r = dtype_real_of(t->dtype);
  switch (ar) {
  case AR_F32: elem_set_f64(t->dtype, p, ((const float *)from)[i]); break;
  case AR_F64: elem_set_f64(t->dtype, p, ((const double *)from)[i]); break;
  case AR_INT: {
    int64_t v = ((const int64_t *)from)[i];
    elem_set_i64(t->dtype, p, t->dtype == DT_I1 ? v != 0 : v);
    break;
  }
  case AR_C64:
    elem_set_f64(r, p, crealf(((const c64 *)from)[i]));
    elem_set_f64(r, p + dtype_bytes(r), cimagf(((const c64 *)from)[i]));
    break;
  case AR_C128:
    elem_set_f64(r, p, creal(((const c128 *)from)[i]));
    elem_set_f64(r, p + dtype_bytes(r), cimag(((const c128 *)from)[i]));
    break;
  }
}

/* ---- the product of packed rows ------------------------------------------------------------ */

/* c[m,n] += a[m,k] * b[k,n], each sum in order of k. */
#define ROWS(T, MUL)                                          \
  for (int64_t i = 0; i < m; i++) {                           \
    T *restrict ci = (T *)c + i * n;                          \
    const T *ai = (const T *)a + i * k;                       \
    for (int64_t p = 0; p < k; p++) {                         \
      T x = ai[p];                                            \
      const T *restrict bp = (const T *)b + p * n;            \
      for (int64_t j = 0; j < n; j++) ci[j] += MUL(x, bp[j]); \
    }                                                         \
  }
#define TIMES(x, y) ((x) * (y))
#define TIMES_C64(x, y)                                 \
  CMPLXF(crealf(x) * crealf(y) - cimagf(x) * cimagf(y), \
         crealf(x) * cimagf(y) + cimagf(x) * crealf(y))
#define TIMES_C128(x, y) \
  CMPLX(creal(x) * creal(y) - cimag(x) * cimag(y), creal(x) * cimag(y) + cimag(x) * creal(y))

static void product(Arith ar, int64_t m, int64_t n, int64_t k, const void *a, const void *b,
                    void *c) {
  switch (ar) {
  case AR_F32: ROWS(float, TIMES) break;
  case AR_F64: ROWS(double, TIMES) break;
  case AR_INT: ROWS(uint64_t, TIMES) break;
  case AR_C64: ROWS(c64, TIMES_C64) break;
  case AR_C128: ROWS(c128, TIMES_C128) break;
  }
}

#define ROW_BLOCK 64

static void run_block(void *arg, int64_t block) {
  const Product *j = arg;
  int64_t first = block * ROW_BLOCK, m = MIN(ROW_BLOCK, j->m - first);
  size_t bytes = arith_bytes(j->ar);
  void *a = xmalloc(bytes * (size_t)(m * j->k)), *c = xcalloc((size_t)(m * j->n), bytes);
  for (int part = 0; part < j->n_parts; part++) {
    j->pack(j, part, first, m, a);
    product(j->ar, m, j->n, j->k, a, j->rhs[part], c);
  }
  for (int64_t i = 0; i < m; i++)
    for (int64_t n = 0; n < j->n; n++)
      store(j->ar, c, i * j->n + n, j->out, j->out_b + j->out_m[first + i] + j->out_n[n]);
  free(a);
  free(c);
}

void product_run(Product *j) { pool_run((j->m + ROW_BLOCK - 1) / ROW_BLOCK, run_block, j); }

/* ---- tables of places ---------------------------------------------------------------------- */

void group_add(Group *g, int64_t size, int64_t lhs, int64_t rhs, int64_t out) {
  assert(g->n < MAX_RANK * 2);
  g->size[g->n] = size, g->lhs[g->n] = lhs, g->rhs[g->n] = rhs, g->out[g->n] = out;
  g->n++;
}

int64_t *group_table(const Group *g, const int64_t *step, int64_t *count) {
  int64_t n = dims_count(g->n, g->size), index[MAX_RANK * 2] = {0};
  int64_t *t = xmalloc(sizeof *t * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    t[i] = index_linear(g->n, step, index);
    index_next(g->n, g->size, index);
  }
  *count = n;
  return t;
}
