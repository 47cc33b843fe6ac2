/* Products: dot_general, dot, einsum, convolution.
 *
 * All of them are out[b,m,n] = sum over k of lhs[b,m,k] * rhs[b,n,k], where b, m, n, k stand for
 * groups of dimensions and an element's place is the sum of one table entry for each of its three
 * groups. Both sides are converted to the arithmetic in use (float, double, integers modulo 2^64,
 * complex), rounded to the operand's precision type if the algorithm has one, and multiplied row by
 * row; k runs in row-major order. The sum is rounded to the result type once.
 *
 *   arithmetic   f32 for f32 and everything narrower, f64, complex in its own precision, int64_t
 *   components   an algorithm such as BF16_BF16_F32_X3 splits an operand into a sum of rounded
 * parts; the partial products are added to the same f32 sums, the smallest first
 */
#include <complex.h>
#include <math.h>

#include "interp/interp_priv.h"

#ifndef CMPLX /* clang without the C11 macros */
#define CMPLX(x, y) __builtin_complex((double)(x), (double)(y))
#define CMPLXF(x, y) __builtin_complex((float)(x), (float)(y))
#endif

typedef float complex c64;
typedef double complex c128;
typedef enum Arith { AR_F32, AR_F64, AR_INT, AR_C64, AR_C128 } Arith;
static const size_t arith_bytes[] = {4, 8, 8, 8, 16};

static Arith arith_for(DType out, DType acc) {
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

typedef struct Side {
  const Tensor *t;
  DType as; /* DT_INVALID: as it is */
  int part; /* component */
} Side;

static void load(Arith ar, const Side *s, int64_t at, void *to, int64_t i) {
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

/* One product: rows of the left side are packed block by block as they are needed. */
typedef struct Job {
  Arith ar;
  int64_t m, n, k;
  int n_parts; /* pairs of components; rows and right sides of each */
  Side lhs[9];
  void *rhs[9]; /* k x n, packed */
  void (*pack)(const struct Job *j, int part, int64_t first, int64_t count, void *a);
  void *arg;
  Tensor *out;
  const int64_t *out_m, *out_n; /* places */
  int64_t out_b;
} Job;

#define ROW_BLOCK 64

static void job_block(void *arg, int64_t block) {
  const Job *j = arg;
  int64_t first = block * ROW_BLOCK, m = MIN(ROW_BLOCK, j->m - first);
  size_t bytes = arith_bytes[j->ar];
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

static void job_run(Job *j) { pool_run((j->m + ROW_BLOCK - 1) / ROW_BLOCK, job_block, j); }

/* ---- algorithms ---------------------------------------------------------------------------- */

typedef struct Algorithm {
  DType lhs, rhs, acc;
  int n; /* pairs of components, in the order of addition */
  int l[9], r[9];
} Algorithm;

static DType type_attr(const Op *op, const char *name) {
  const Attr *a = op_attr(op, name);
  return a && a->type ? a->type->dtype : DT_INVALID;
}

static Err *algorithm_of(const Op *op, Algorithm *al) {
  *al = (Algorithm){.lhs = type_attr(op, "lhs_precision_type"),
                    .rhs = type_attr(op, "rhs_precision_type"),
                    .acc = type_attr(op, "accumulation_type"),
                    .n = 1};
  int nl = (int)op_int(op, "lhs_component_count", 1),
      nr = (int)op_int(op, "rhs_component_count", 1);
  int want = (int)op_int(op, "num_primitive_operations", 1), total = 0, order[9][2];
  if (want > 1 && nl == 1 && nr == 1)
    nl = nr = want <= 4 ? 2 : 3; /* JAX names only the number of products: X3, X6, X9 */
  if (nl < 1 || nr < 1 || nl > 3 || nr > 3 || want < 1 || want > nl * nr)
    return op_err(op, ERR_UNIMPLEMENTED, "an algorithm of %d x %d components and %d products", nl,
                  nr, want);
  for (int sum = 0; sum <= nl + nr - 2; sum++)
    for (int i = 0; i < nl; i++)
      if (sum - i >= 0 && sum - i < nr) {
        order[total][0] = i;
        order[total++][1] = sum - i;
      }
  al->n = want;
  for (int i = 0; i < want; i++) { /* the largest products are added last */
    al->l[i] = order[want - 1 - i][0];
    al->r[i] = order[want - 1 - i][1];
  }
  return NULL;
}

/* ---- contraction by tables ----------------------------------------------------------------- */

/* Dimensions that belong together, with their steps in the three tensors (0 where they do not
 * occur). */
typedef struct Group {
  int n;
  int64_t size[MAX_RANK * 2], lhs[MAX_RANK * 2], rhs[MAX_RANK * 2], out[MAX_RANK * 2];
} Group;

static void group_add(Group *g, int64_t size, int64_t lhs, int64_t rhs, int64_t out) {
  assert(g->n < MAX_RANK * 2);
  g->size[g->n] = size, g->lhs[g->n] = lhs, g->rhs[g->n] = rhs, g->out[g->n] = out;
  g->n++;
}

static int64_t *table(const Group *g, const int64_t *step, int64_t *count) {
  int64_t n = dims_count(g->n, g->size), index[MAX_RANK * 2] = {0};
  int64_t *t = xmalloc(sizeof *t * (size_t)n);
  for (int64_t i = 0; i < n; i++) {
    t[i] = index_linear(g->n, step, index);
    index_next(g->n, g->size, index);
  }
  *count = n;
  return t;
}

typedef struct Tables {
  int64_t *lm, *lk, *rk, *rn, *om, *on;
  int64_t base; /* of the batch element in lhs */
} Tables;

static void pack_table(const Job *j, int part, int64_t first, int64_t count, void *a) {
  const Tables *t = j->arg;
  for (int64_t i = 0; i < count; i++)
    for (int64_t p = 0; p < j->k; p++)
      load(j->ar, &j->lhs[part], t->base + t->lm[first + i] + t->lk[p], a, i * j->k + p);
}

static void contract(const Algorithm *al, const Tensor *lhs, const Tensor *rhs, Tensor *out,
                     const Group *b, const Group *m, const Group *n, const Group *k) {
  Tables t;
  int64_t nb, nm, nn, nk;
  int64_t *lb = table(b, b->lhs, &nb), *rb = table(b, b->rhs, &nb), *ob = table(b, b->out, &nb);
  t.lm = table(m, m->lhs, &nm), t.om = table(m, m->out, &nm);
  t.rn = table(n, n->rhs, &nn), t.on = table(n, n->out, &nn);
  t.lk = table(k, k->lhs, &nk), t.rk = table(k, k->rhs, &nk);
  Job j = {.ar = arith_for(out->dtype, al->acc),
           .m = nm,
           .n = nn,
           .k = nk,
           .n_parts = al->n,
           .pack = pack_table,
           .arg = &t,
           .out = out,
           .out_m = t.om,
           .out_n = t.on};
  for (int p = 0; p < al->n; p++) {
    j.lhs[p] = (Side){lhs, al->lhs, al->l[p]};
    j.rhs[p] = xmalloc(arith_bytes[j.ar] * (size_t)(nk * nn));
  }
  for (int64_t i = 0; i < nb; i++) {
    for (int p = 0; p < al->n; p++) {
      Side s = {rhs, al->rhs, al->r[p]};
      for (int64_t x = 0; x < nk; x++)
        for (int64_t y = 0; y < nn; y++)
          load(j.ar, &s, rb[i] + t.rk[x] + t.rn[y], j.rhs[p], x * nn + y);
    }
    t.base = lb[i];
    j.out_b = ob[i];
    job_run(&j);
  }
  for (int p = 0; p < al->n; p++) free(j.rhs[p]);
  int64_t *all[] = {lb, rb, ob, t.lm, t.om, t.rn, t.on, t.lk, t.rk};
  for (int i = 0; i < COUNT_OF(all); i++) free(all[i]);
}

static bool listed(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static Err *dot_with(Eval *e, int nb, const int64_t *lb, const int64_t *rb, int nc,
                     const int64_t *lc, const int64_t *rc) {
  const Tensor *l = e->in[0], *r = e->in[1];
  Algorithm al;
  TRY(algorithm_of(e->op, &al));
  int64_t ls[MAX_RANK], rs[MAX_RANK], dims[2 * MAX_RANK], os[2 * MAX_RANK];
  int rank = 0;
  dims_strides(l->rank, l->dims, ls);
  dims_strides(r->rank, r->dims, rs);
  for (int i = 0; i < nb; i++) {
    if (l->dims[lb[i]] != r->dims[rb[i]])
      return op_err(e->op, ERR_INVALID, "batching dimensions differ");
    dims[rank++] = l->dims[lb[i]];
  }
  for (int i = 0; i < nc; i++)
    if (l->dims[lc[i]] != r->dims[rc[i]])
      return op_err(e->op, ERR_INVALID, "contracting dimensions differ");
  for (int d = 0; d < l->rank; d++)
    if (!listed(lb, nb, d) && !listed(lc, nc, d)) dims[rank++] = l->dims[d];
  for (int d = 0; d < r->rank; d++)
    if (!listed(rb, nb, d) && !listed(rc, nc, d)) dims[rank++] = r->dims[d];
  Tensor *out;
  TRY(eval_out_dims(e, 0, rank, dims, &out));
  dims_strides(rank, dims, os);
  Group b = {0}, m = {0}, n = {0}, k = {0};
  int o = 0;
  for (int i = 0; i < nb; i++) group_add(&b, dims[o], ls[lb[i]], rs[rb[i]], os[o]), o++;
  for (int d = 0; d < l->rank; d++)
    if (!listed(lb, nb, d) && !listed(lc, nc, d)) group_add(&m, dims[o], ls[d], 0, os[o]), o++;
  for (int d = 0; d < r->rank; d++)
    if (!listed(rb, nb, d) && !listed(rc, nc, d)) group_add(&n, dims[o], 0, rs[d], os[o]), o++;
  for (int i = 0; i < nc; i++) group_add(&k, l->dims[lc[i]], ls[lc[i]], rs[rc[i]], 0);
  contract(&al, l, r, out, &b, &m, &n, &k);
  return NULL;
}

Err *sem_dot_general(Eval *e) {
  const int64_t *lb, *rb, *lc, *rc;
  int nb = op_ints(e->op, "lhs_batching_dimensions", &lb),
      nb2 = op_ints(e->op, "rhs_batching_dimensions", &rb);
  int nc = op_ints(e->op, "lhs_contracting_dimensions", &lc),
      nc2 = op_ints(e->op, "rhs_contracting_dimensions", &rc);
  if (nb != nb2 || nc != nc2)
    return op_err(e->op, ERR_INVALID, "dimension lists of different lengths");
  return dot_with(e, nb, lb, rb, nc, lc, rc);
}

Err *sem_dot(Eval *e) {
  int64_t lc = e->in[0]->rank - 1, rc = 0;
  if (lc < 0 || e->in[1]->rank < 1) return op_err(e->op, ERR_INVALID, "dot of a scalar");
  return dot_with(e, 0, NULL, NULL, 1, &lc, &rc);
}

/* "ab,bc->ac": every letter is a dimension. A letter that the result lacks is summed over. */
static Err *einsum(Eval *e, const Tensor *l, const Tensor *r) {
  Str cfg = op_str(e->op, "einsum_config");
  struct {
    int64_t size, lhs, rhs, out;
    bool in_l, in_r, in_out;
  } letters[256] = {0};
  char order[3 * MAX_RANK];
  int side = 0, at[3] = {0}, n_order = 0, out_rank = 0;
  int64_t ls[MAX_RANK], rs[MAX_RANK], dims[MAX_RANK], os[MAX_RANK];
  dims_strides(l->rank, l->dims, ls);
  if (r) dims_strides(r->rank, r->dims, rs);
  for (size_t i = 0; i < cfg.n; i++) {
    unsigned char c = (unsigned char)cfg.p[i];
    if (c == ' ') continue;
    if (c == ',') {
      side = 1;
      continue;
    }
    if (c == '-') {
      side = 2;
      i++;
      continue;
    }
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const Tensor *t = side == 0 ? l : r;
    if (!letter || at[side] >= MAX_RANK || (side < 2 && (!t || at[side] >= t->rank)))
      return op_err(e->op, ERR_UNIMPLEMENTED, "einsum_config \"%.*s\"", STR_ARG(cfg));
    int d = at[side]++;
    if (side < 2) {
      if ((letters[c].in_l || letters[c].in_r) && letters[c].size != t->dims[d])
        return op_err(e->op, ERR_INVALID, "dimension %c has two sizes", c);
      if (!letters[c].in_l && !letters[c].in_r) order[n_order++] = (char)c;
      letters[c].size = t->dims[d];
      if (side == 0) letters[c].in_l = true, letters[c].lhs += ls[d];
      else letters[c].in_r = true, letters[c].rhs += rs[d];
    } else {
      if (!letters[c].in_l && !letters[c].in_r)
        return op_err(e->op, ERR_INVALID, "no operand has dimension %c", c);
      dims[out_rank++] = letters[c].size;
    }
  }
  if (at[0] != l->rank || (r && at[1] != r->rank))
    return op_err(e->op, ERR_INVALID, "einsum_config does not fit");
  dims_strides(out_rank, dims, os);
  const char *tail = memchr(cfg.p, '>', cfg.n);
  for (int d = 0; tail && ++tail < cfg.p + cfg.n;) {
    if (*tail == ' ') continue;
    letters[(unsigned char)*tail].in_out = true;
    letters[(unsigned char)*tail].out += os[d++];
  }
  Tensor *out;
  TRY(eval_out_dims(e, 0, out_rank, dims, &out));
  Group b = {0}, m = {0}, n = {0}, k = {0};
  for (int i = 0; i < n_order; i++) {
    unsigned char c = (unsigned char)order[i];
    Group *g = !letters[c].in_out                   ? &k
               : letters[c].in_l && letters[c].in_r ? &b
               : letters[c].in_l                    ? &m
                                                    : &n;
    group_add(g, letters[c].size, letters[c].lhs, letters[c].rhs, letters[c].out);
  }
  Algorithm al = {.n = 1};
  Tensor *one = NULL;
  if (!r) {
    one = tensor_make(out->dtype, 0, NULL);
    DType real = dtype_real_of(out->dtype);
    memset(one->data, 0, tensor_bytes(one));
    if (dtype_is_float(real)) elem_set_f64(real, one->data, 1);
    else elem_set_i64(real, one->data, 1);
  }
  contract(&al, l, r ? r : one, out, &b, &m, &n, &k);
  tensor_release(one);
  return NULL;
}

Err *sem_einsum(Eval *e) { return einsum(e, e->in[0], e->in[1]); }
Err *sem_unary_einsum(Eval *e) { return einsum(e, e->in[0], NULL); }

/* ---- convolution --------------------------------------------------------------------------- */

typedef struct Conv {
  int n_spatial;
  int64_t in[MAX_RANK], out[MAX_RANK], window[MAX_RANK]; /* spatial sizes */
  int64_t in_step[MAX_RANK], rhs_step[MAX_RANK], out_step[MAX_RANK];
  int64_t stride[MAX_RANK], low[MAX_RANK], lhs_dil[MAX_RANK], rhs_dil[MAX_RANK], reversed[MAX_RANK];
  int64_t in_feature_step, in_batch_step, features; /* of a group */
  int64_t n_window;
  int64_t base; /* of the group in the input */
} Conv;

/* Rows of the left side: the window under each output position, all features of the group; zero
 * outside. */
static void pack_window(const Job *j, int part, int64_t first, int64_t count, void *a) {
  const Conv *c = j->arg;
  int64_t index[MAX_RANK], n_out = dims_count(c->n_spatial, c->out);
  size_t bytes = arith_bytes[j->ar];
  for (int64_t i = 0; i < count; i++) {
    int64_t row = first + i, batch = row / n_out;
    index_of(row % n_out, c->n_spatial, c->out, index);
    int64_t w[MAX_RANK] = {0};
    for (int64_t p = 0; p < c->n_window; p++, index_next(c->n_spatial, c->window, w)) {
      int64_t at = c->base + batch * c->in_batch_step, to = i * j->k + p * c->features;
      bool inside = true;
      for (int d = 0; d < c->n_spatial && inside; d++) {
        int64_t x = index[d] * c->stride[d] + w[d] * c->rhs_dil[d] - c->low[d];
        inside = x >= 0 && x % c->lhs_dil[d] == 0 && x / c->lhs_dil[d] < c->in[d];
        at += x / c->lhs_dil[d] * c->in_step[d];
      }
      if (!inside) memset((char *)a + (size_t)to * bytes, 0, (size_t)c->features * bytes);
      else
        for (int64_t f = 0; f < c->features; f++)
          load(j->ar, &j->lhs[part], at + f * c->in_feature_step, a, to + f);
    }
  }
}

static Err *convolve(Eval *e, const int64_t *pad) {
  const Op *op = e->op;
  const Tensor *l = e->in[0], *r = e->in[1];
  const int64_t *isd, *ksd, *osd;
  int ns = op_ints(op, "input_spatial_dimensions", &isd);
  op_ints(op, "kernel_spatial_dimensions", &ksd);
  op_ints(op, "output_spatial_dimensions", &osd);
  int64_t ib = op_int(op, "input_batch_dimension", 0),
          inf = op_int(op, "input_feature_dimension", 0);
  int64_t kif = op_int(op, "kernel_input_feature_dimension", 0),
          kof = op_int(op, "kernel_output_feature_dimension", 0);
  int64_t obd = op_int(op, "output_batch_dimension", 0),
          ofd = op_int(op, "output_feature_dimension", 0);
  int64_t fg = op_int(op, "feature_group_count", 1), bg = op_int(op, "batch_group_count", 1),
          groups = MAX(fg, bg);
  int64_t dims[MAX_RANK] = {0}, ls[MAX_RANK], rs[MAX_RANK], os[MAX_RANK];
  if (l->rank != ns + 2 || r->rank != ns + 2)
    return op_err(op, ERR_INVALID, "ranks do not fit %d spatial dimensions", ns);
  if (fg < 1 || bg < 1 || l->dims[inf] % fg || l->dims[ib] % bg || r->dims[kof] % groups ||
      l->dims[inf] / fg != r->dims[kif])
    return op_err(op, ERR_INVALID, "groups do not divide the features or the batch");
  dims_strides(l->rank, l->dims, ls);
  dims_strides(r->rank, r->dims, rs);
  Conv c = {.n_spatial = ns,
            .features = r->dims[kif],
            .in_feature_step = ls[inf],
            .in_batch_step = ls[ib]};
  op_ints_or(op, "window_strides", ns, 1, c.stride);
  op_ints_or(op, "lhs_dilation", ns, 1, c.lhs_dil);
  op_ints_or(op, "rhs_dilation", ns, 1, c.rhs_dil);
  op_ints_or(op, "window_reversal", ns, 0, c.reversed);
  for (int d = 0; d < ns; d++) {
    c.in[d] = l->dims[isd[d]], c.in_step[d] = ls[isd[d]];
    c.window[d] = r->dims[ksd[d]], c.rhs_step[d] = rs[ksd[d]];
    c.low[d] = pad[2 * d];
    int64_t wide = c.in[d] ? (c.in[d] - 1) * c.lhs_dil[d] + 1 : 0,
            room = pad[2 * d] + wide + pad[2 * d + 1];
    int64_t span = c.window[d] ? (c.window[d] - 1) * c.rhs_dil[d] + 1 : 0;
    dims[osd[d]] = c.out[d] = room < span || room <= 0 ? 0 : (room - span) / c.stride[d] + 1;
  }
  dims[obd] = l->dims[ib] / bg;
  dims[ofd] = r->dims[kof];
  Tensor *out;
  TRY(eval_out_dims(e, 0, ns + 2, dims, &out));
  if (!out->count) return NULL;
  dims_strides(out->rank, out->dims, os);
  c.n_window = dims_count(ns, c.window);
  Group m = {0}, n = {0};
  group_add(&m, dims[obd], 0, 0, os[obd]);
  for (int d = 0; d < ns; d++) group_add(&m, c.out[d], 0, 0, os[osd[d]]);
  int64_t per_group = r->dims[kof] / groups;
  group_add(&n, per_group, 0, 0, os[ofd]);
  Algorithm al = {.n = 1};
  Job j = {.ar = arith_for(out->dtype, DT_INVALID),
           .k = c.n_window * c.features,
           .n_parts = 1,
           .pack = pack_window,
           .arg = &c,
           .out = out,
           .lhs = {{l, al.lhs, 0}}};
  j.out_m = table(&m, m.out, &j.m);
  j.out_n = table(&n, n.out, &j.n);
  j.rhs[0] = xmalloc(arith_bytes[j.ar] * (size_t)(j.k * j.n));
  Side right = {r, al.rhs, 0};
  for (int64_t g = 0; g < groups; g++) {
    int64_t w[MAX_RANK] = {0};
    for (int64_t p = 0; p < c.n_window; p++, index_next(ns, c.window, w)) {
      int64_t at = g * per_group * rs[kof];
      for (int d = 0; d < ns; d++)
        at += (c.reversed[d] ? c.window[d] - 1 - w[d] : w[d]) * c.rhs_step[d];
      for (int64_t f = 0; f < c.features; f++)
        for (int64_t y = 0; y < per_group; y++)
          load(j.ar, &right, at + f * rs[kif] + y * rs[kof], j.rhs[0],
               (p * c.features + f) * j.n + y);
    }
    c.base = bg > 1 ? g * (l->dims[ib] / bg) * ls[ib] : g * c.features * ls[inf];
    j.out_b = g * per_group * os[ofd];
    job_run(&j);
  }
  free(j.rhs[0]);
  free((void *)j.out_m);
  free((void *)j.out_n);
  return NULL;
}

Err *sem_convolution(Eval *e) {
  int64_t pad[2 * MAX_RANK];
  op_ints_or(e->op, "padding", 2 * e->in[0]->rank, 0, pad);
  return convolve(e, pad);
}

Err *sem_dynamic_conv(Eval *e) {
  int64_t pad[2 * MAX_RANK] = {0};
  const Tensor *p = e->in[2];
  for (int64_t i = 0; i < p->count && i < 2 * MAX_RANK; i++)
    pad[i] = elem_get_i64(p->dtype, tensor_at(p, i));
  return convolve(e, pad);
}

/* Dimension by dimension, in the order of the attribute. */
Err *sem_resample(Eval *e) {
  const Tensor *x = e->in[0];
  const int64_t *at;
  int n = op_ints(e->op, "dims", &at);
  int64_t dims[MAX_RANK];
  memcpy(dims, x->dims, sizeof *dims * (size_t)x->rank);
  float *now = xmalloc(sizeof *now * (size_t)MAX(x->count, 1));
  memcpy(now, x->data, sizeof *now * (size_t)x->count);
  for (int k = 0; k < n; k++) {
    const Tensor *w = e->in[k + 1];
    int64_t d = at[k], in = dims[d], to = w->dims[w->rank - 1], outer = 1, inner = 1;
    for (int i = 0; i < x->rank; i++) *(i < d ? &outer : &inner) *= i == d ? 1 : dims[i];
    float *next = xmalloc(sizeof *next * (size_t)MAX(outer * to * inner, 1));
    for (int64_t o = 0; o < outer; o++) {
      const float *m = (const float *)w->data;
      if (w->rank == 3) m += o / (outer / w->dims[0]) * in * to;
      for (int64_t j = 0; j < to * inner; j++) {
        float sum = 0;
        for (int64_t i = 0; i < in; i++)
          sum += m[i * to + j / inner] * now[(o * in + i) * inner + j % inner];
        next[o * to * inner + j] = sum;
      }
    }
    free(now);
    now = next;
    dims[d] = to;
  }
  Tensor *out;
  Err *err = eval_out_dims(e, 0, x->rank, dims, &out);
  if (!err) memcpy(out->data, now, sizeof *now * (size_t)out->count);
  free(now);
  return err;
}
