/* dot_general, dot, einsum, resampling by matrices, attention. */
#include <ctype.h>
#include <math.h>

#include "interp/product_priv.h"
#include "ir/build.h"

/* ---- algorithms ---------------------------------------------------------------------------- */

typedef struct Algorithm {
  DType lhs, rhs, acc;
  int n; /* pairs of components, in the order of addition */
  int l[MAX_PARTS], r[MAX_PARTS];
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
  int want = (int)op_int(op, "num_primitive_operations", 1), total = 0, order[MAX_PARTS][2];
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

typedef struct Tables {
  int64_t *lm, *lk, *rk, *rn, *om, *on;
  int64_t base; /* of the batch element in lhs */
} Tables;

static void pack_table(const Product *j, int part, int64_t first, int64_t count, void *a) {
  const Tables *t = j->arg;
  for (int64_t i = 0; i < count; i++)
    for (int64_t p = 0; p < j->k; p++)
      arith_load(j->ar, &j->lhs[part], t->base + t->lm[first + i] + t->lk[p], a, i * j->k + p);
}

static void contract(const Algorithm *al, const Tensor *lhs, const Tensor *rhs, Tensor *out,
                     const Group *b, const Group *m, const Group *n, const Group *k) {
  Tables t;
  int64_t nb, nm, nn, nk;
  int64_t *lb = group_table(b, b->lhs, &nb), *rb = group_table(b, b->rhs, &nb),
          *ob = group_table(b, b->out, &nb);
  t.lm = group_table(m, m->lhs, &nm), t.om = group_table(m, m->out, &nm);
  t.rn = group_table(n, n->rhs, &nn), t.on = group_table(n, n->out, &nn);
  t.lk = group_table(k, k->lhs, &nk), t.rk = group_table(k, k->rhs, &nk);
  Product j = {.ar = arith_for(out->dtype, al->acc),
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
    j.rhs[p] = xmalloc(arith_bytes(j.ar) * (size_t)(nk * nn));
  }
  for (int64_t i = 0; i < nb; i++) {
    for (int p = 0; p < al->n; p++) {
      Side s = {rhs, al->rhs, al->r[p]};
      for (int64_t x = 0; x < nk; x++)
        for (int64_t y = 0; y < nn; y++)
          arith_load(j.ar, &s, rb[i] + t.rk[x] + t.rn[y], j.rhs[p], x * nn + y);
    }
    t.base = lb[i];
    j.out_b = ob[i];
    product_run(&j);
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
typedef struct Letter {
  int64_t size, lhs, rhs, out; /* steps */
  bool in_l, in_r, in_out;
} Letter;

typedef struct Einsum {
  Letter letters[256];
  unsigned char order[2 * MAX_RANK]; /* of first appearance */
  int n_order, out_rank;
  unsigned char result[MAX_RANK]; /* a letter twice: the diagonal */
} Einsum;

static Err *einsum_operand(const Op *op, Einsum *s, unsigned char c, const Tensor *t, int d,
                           bool right) {
  Letter *x = &s->letters[c];
  if (!x->in_l && !x->in_r) s->order[s->n_order++] = c;
  else if (x->size != t->dims[d]) return op_err(op, ERR_INVALID, "dimension %c has two sizes", c);
  int64_t strides[MAX_RANK];
  dims_strides(t->rank, t->dims, strides);
  x->size = t->dims[d];
  *(right ? &x->in_r : &x->in_l) = true;
  *(right ? &x->rhs : &x->lhs) += strides[d];
  return NULL;
}

static Err *einsum_read(const Op *op, const Tensor *l, const Tensor *r, Einsum *s) {
  Str cfg = op_str(op, "einsum_config");
  enum { LEFT, RIGHT, RESULT } side = LEFT;
  int at[2] = {0};
  for (size_t i = 0; i < cfg.n; i++) {
    unsigned char c = (unsigned char)cfg.p[i];
    if (c == ' ') continue;
    if (c == ',' && side == LEFT) side = RIGHT;
    else if (c == '-' && side != RESULT && i + 1 < cfg.n && cfg.p[i + 1] == '>') side = RESULT, i++;
    else if (!isalpha(c)) return op_err(op, ERR_INVALID, "einsum_config \"%.*s\"", STR_ARG(cfg));
    else if (side == RESULT) {
      if (!s->letters[c].in_l && !s->letters[c].in_r)
        return op_err(op, ERR_INVALID, "no operand has dimension %c", c);
      if (s->out_rank == MAX_RANK)
        return op_err(op, ERR_INVALID, "einsum_config \"%.*s\"", STR_ARG(cfg));
      s->letters[c].in_out = true;
      s->result[s->out_rank++] = c;
    } else {
      const Tensor *t = side == LEFT ? l : r;
      if (!t || at[side] >= t->rank)
        return op_err(op, ERR_INVALID, "einsum_config does not fit the operands");
      TRY(einsum_operand(op, s, c, t, at[side], side == RIGHT));
      at[side]++;
    }
  }
  if (at[LEFT] != l->rank || at[RIGHT] != (r ? r->rank : 0))
    return op_err(op, ERR_INVALID, "einsum_config does not fit the operands");
  return NULL;
}

static Tensor *scalar_one(DType t) {
  Tensor *one = tensor_make(t, 0, NULL);
  DType real = dtype_real_of(t);
  memset(one->data, 0, tensor_bytes(one));
  if (dtype_is_float(real)) elem_set_f64(real, one->data, 1);
  else elem_set_i64(real, one->data, 1);
  return one;
}

/* r: NULL for unary_einsum, which is a product with one. */
static Err *einsum(Eval *e, const Tensor *l, const Tensor *r) {
  Einsum s = {0};
  TRY(einsum_read(e->op, l, r, &s));
  int64_t dims[MAX_RANK], os[MAX_RANK];
  for (int d = 0; d < s.out_rank; d++) dims[d] = s.letters[s.result[d]].size;
  dims_strides(s.out_rank, dims, os);
  for (int d = 0; d < s.out_rank; d++) s.letters[s.result[d]].out += os[d];
  Tensor *out;
  TRY(eval_out_dims(e, 0, s.out_rank, dims, &out));
  Group b = {0}, m = {0}, n = {0}, k = {0};
  for (int i = 0; i < s.n_order; i++) {
    const Letter *x = &s.letters[s.order[i]];
    Group *g = !x->in_out ? &k : x->in_l && x->in_r ? &b : x->in_l ? &m : &n;
    group_add(g, x->size, x->lhs, x->rhs, x->out);
  }
  Algorithm al = {.n = 1};
  Tensor *one = r ? NULL : scalar_one(out->dtype);
  contract(&al, l, r ? r : one, out, &b, &m, &n, &k);
  tensor_release(one);
  return NULL;
}

Err *sem_einsum(Eval *e) { return einsum(e, e->in[0], e->in[1]); }
Err *sem_unary_einsum(Eval *e) { return einsum(e, e->in[0], NULL); }

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

/* ---- attention: a row of scores at a time, in f64 -------------------------------------------- */

typedef struct Rows { /* of an attention's operands */
  AttentionDims of;
  const Tensor *q, *k, *v, *bias, *mask;
} Rows;

static Rows rows_of(const Eval *e) {
  AttentionDims d = b_attention_dims(e->op);
  return (Rows){.of = d,
                .q = e->in[0],
                .k = e->in[1],
                .v = e->in[2],
                .bias = d.bias ? e->in[d.bias] : NULL,
                .mask = d.mask ? e->in[d.mask] : NULL};
}

static double at(const Tensor *t, int64_t i) { return elem_get_f64(t->dtype, tensor_at(t, i)); }

/* Of what may have one place where the scores have many; row: among b, g and m. */
static double spread(const Rows *r, const Tensor *t, int64_t row, int64_t n) {
  int64_t b = row / r->of.m / r->of.g,
          place[] = {b / r->of.h, b % r->of.h, row / r->of.m % r->of.g, row % r->of.m, n}, i = 0;
  for (int d = 0; d < 5; d++) i = i * t->dims[d] + (t->dims[d] > 1 ? place[d] : 0);
  return at(t, i);
}

static double inner(const Tensor *x, int64_t i, const Tensor *y, int64_t j, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += at(x, i * n + k) * at(y, j * n + k);
  return sum;
}

static bool hides(const Rows *r, int64_t row, int64_t n) {
  return r->mask && spread(r, r->mask, row, n) == 0;
}

/* The weights of a row, its greatest score and the sum of the exponentials. */
static void weights(const Rows *r, int64_t row, double *p, double *most, double *sum) {
  const int64_t first = row / r->of.m / r->of.g * r->of.n;
  *most = -INFINITY;
  *sum = 0;
  for (int64_t n = 0; n < r->of.n; n++) {
    int64_t off = n - row % r->of.m;
    p[n] = r->of.scale * inner(r->q, row, r->k, first + n, r->of.d);
    if (r->bias) p[n] += spread(r, r->bias, row, n);
    if (hides(r, row, n)) p[n] = r->of.fill;
    if (off < r->of.lo || off >= r->of.hi) p[n] = -INFINITY;
    *most = p[n] > *most ? p[n] : *most;
  }
  if (*most == -INFINITY) *most = 0;
  for (int64_t n = 0; n < r->of.n; n++) *sum += p[n] = exp(p[n] - *most);
  for (int64_t n = 0; n < r->of.n; n++) p[n] /= *sum;
}

Err *sem_attention(Eval *e) {
  const Rows r = rows_of(e);
  Tensor *out, *stats;
  TRY(eval_out(e, 0, &out));
  TRY(eval_out(e, 1, &stats));
  double *p = xmalloc(sizeof *p * (size_t)(r.of.n + 1)), most, sum;
  for (int64_t row = 0; row < r.of.b * r.of.g * r.of.m; row++) {
    const int64_t first = row / r.of.m / r.of.g * r.of.n;
    weights(&r, row, p, &most, &sum);
    float *s = (float *)stats->data + row / r.of.m * 2 * r.of.m + row % r.of.m;
    s[0] = (float)most;
    s[r.of.m] = (float)(1 / sum);
    for (int64_t x = 0; x < r.of.e; x++) {
      double y = 0;
      for (int64_t n = 0; n < r.of.n; n++) y += p[n] * at(r.v, (first + n) * r.of.e + x);
      elem_set_f64(out->dtype, tensor_at(out, row * r.of.e + x), y);
    }
  }
  free(p);
  return NULL;
}

/* What a row adds to the gradients of keys and values, and its own query's. */
static void row_grad(const Rows *r, const Tensor *out, const Tensor *grad, int64_t row,
                     const double *p, double *dq, double *dk, double *dv) {
  const int64_t first = row / r->of.m / r->of.g * r->of.n;
  const double mean = inner(out, row, grad, row, r->of.e);
  for (int64_t n = 0; n < r->of.n; n++) {
    double ds = r->of.scale * p[n] * (inner(grad, row, r->v, first + n, r->of.e) - mean);
    if (hides(r, row, n)) ds = 0;
    for (int64_t x = 0; x < r->of.e; x++)
      dv[(first + n) * r->of.e + x] += p[n] * at(grad, row * r->of.e + x);
    for (int64_t x = 0; x < r->of.d; x++) {
      dq[row * r->of.d + x] += ds * at(r->k, (first + n) * r->of.d + x);
      dk[(first + n) * r->of.d + x] += ds * at(r->q, row * r->of.d + x);
    }
  }
}

Err *sem_attention_grad(Eval *e) {
  const Rows r = rows_of(e);
  Tensor *out[3];
  double *sums[3], *p = xmalloc(sizeof *p * (size_t)(r.of.n + 1)), most, sum;
  for (int i = 0; i < 3; i++) TRY(eval_out(e, i, &out[i]));
  for (int i = 0; i < 3; i++) sums[i] = xcalloc((size_t)out[i]->count + 1, sizeof(double));
  for (int64_t row = 0; row < r.of.b * r.of.g * r.of.m; row++) {
    weights(&r, row, p, &most, &sum);
    row_grad(&r, e->in[e->n_in - 3], e->in[e->n_in - 1], row, p, sums[0], sums[1], sums[2]);
  }
  for (int i = 0; i < 3; i++) {
    for (int64_t k = 0; k < out[i]->count; k++)
      elem_set_f64(out[i]->dtype, tensor_at(out[i], k), sums[i][k]);
    free(sums[i]);
  }
  free(p);
  return NULL;
}
