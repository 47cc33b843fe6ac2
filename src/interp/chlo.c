/* chlo operations that are not element-wise: top_k and ragged_dot. */
#include "interp/ewise_priv.h"

/* ---- top_k ----------------------------------------------------------------------------------- */

typedef struct Entry {
  int64_t key, index;
} Entry;

/* Larger keys for larger elements; floats in total order (NaN above infinity), as XLA sorts them.
 */
static int64_t sort_key(DType t, const void *p, int64_t at) {
  if (dtype_is_float(t)) {
    uint64_t u = load_bits(t, p, at), sign = (uint64_t)1 << (dtype_bits(t) - 1);
    return u & sign ? -(int64_t)(u & (sign - 1)) - 1 : (int64_t)u;
  }
  int64_t v;
  load_i(t, p, at, 1, 1, &v);
  return t == DT_U64 ? v ^ INT64_MIN : v;
}

static int larger_first(const void *pa, const void *pb) {
  const Entry *a = pa, *b = pb;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}
static int smaller_first(const void *pa, const void *pb) {
  const Entry *a = pa, *b = pb;
  if (a->key != b->key) return a->key < b->key ? -1 : 1;
  return a->index < b->index ? -1 : a->index > b->index;
}

/* The k largest (smallest) along dimension dim, ties by lower index. values and indices have k
 * there. */
void top_k_along(const Tensor *in, int dim, int64_t k, bool largest, Tensor *values,
                 Tensor *indices) {
  int64_t n = in->dims[dim], inner = 1;
  for (int d = dim + 1; d < in->rank; d++) inner *= in->dims[d];
  int64_t lines = n ? in->count / n : 0;
  Entry *row = xmalloc(sizeof *row * (size_t)MAX(n, 1));
  for (int64_t line = 0; line < lines; line++) {
    int64_t outer = line / inner, base = outer * n * inner + line % inner;
    for (int64_t i = 0; i < n; i++)
      row[i] = (Entry){sort_key(in->dtype, in->data, base + i * inner), i};
    qsort(row, (size_t)n, sizeof *row, largest ? larger_first : smaller_first);
    for (int64_t j = 0; j < k; j++) {
      int64_t to = outer * k * inner + j * inner + line % inner;
      elem_copy(values, to, in, base + row[j].index * inner);
      store_i(indices->dtype, indices->data, to, 1, &row[j].index);
    }
  }
  free(row);
}

Err *sem_chlo_top_k(Eval *e) {
  const Tensor *in = e->in[0];
  int64_t k = op_int(e->op, "k", 0), dims[MAX_RANK];
  if (in->rank < 1 || k < 0 || k > in->dims[in->rank - 1])
    return op_err(e->op, ERR_INVALID, "k = %lld does not fit the last dimension", (long long)k);
  if (dtype_is_complex(in->dtype))
    return op_err(e->op, ERR_INVALID, "complex numbers have no order");
  memcpy(dims, in->dims, sizeof *dims * (size_t)in->rank);
  dims[in->rank - 1] = k;
  Tensor *values, *indices;
  TRY(eval_out_dims(e, 0, in->rank, dims, &values));
  TRY(eval_out_dims(e, 1, in->rank, dims, &indices));
  if (values->count) top_k_along(in, in->rank - 1, k, true, values, indices);
  return NULL;
}

/* ---- ragged_dot ------------------------------------------------------------------------------ */

typedef struct Dims {
  int n;
  int64_t v[MAX_RANK];
} Dims;

/* One list of ragged_dot_dimension_numbers, from a dictionary or from the text `name = [1, 2]`. */
static Dims ragged_list(const Attr *a, const char *name) {
  Dims r = {0};
  if (a && a->kind == AT_DICT) {
    const Attr *x = attrs_get(a->dict, a->n, name);
    for (int i = 0; x && x->kind == AT_INTS && i < x->n && i < MAX_RANK; i++)
      r.v[r.n++] = x->ints[i];
    for (int i = 0; x && x->kind == AT_ARRAY && i < x->n && i < MAX_RANK; i++)
      r.v[r.n++] = x->items[i]->i;
  } else if (a && (a->kind == AT_OPAQUE || a->kind == AT_STRING)) {
    char *text = xstrndup(a->s.p, a->s.n);
    char *p = strstr(text, name);
    p = p ? strchr(p, '[') : NULL;
    while (p && *p && *p != ']' && r.n < MAX_RANK) {
      char *end;
      p++;
      int64_t v = strtoll(p, &end, 10);
      if (end == p) break;
      r.v[r.n++] = v;
      p = end;
      while (*p == ' ') p++;
    }
    free(text);
  }
  return r;
}

static int find(const Dims *d, int64_t v) {
  for (int i = 0; i < d->n; i++)
    if (d->v[i] == v) return i;
  return -1;
}

typedef struct Ragged {
  const Tensor *lhs, *rhs, *sizes;
  Dims lb, rb, lc, rc, lhs_free, rhs_free;
  int64_t ragged, group; /* ragged dimension of lhs; group dimension of rhs or -1 */
  bool contracting;      /* the ragged dimension is */
  int64_t n_groups, n_k;
  int64_t ls[MAX_RANK], rs[MAX_RANK], k_dims[MAX_RANK]; /* strides; contracted sizes */
  int rank;
  int64_t dims[MAX_RANK * 2]; /* of the result */
} Ragged;

/* Where the sum of one result begins. */
typedef struct RaggedStart {
  int64_t lhs, rhs, batch;
  int64_t group; /* -1: a row behind the last group, its result is 0 */
} RaggedStart;

/* Number of the group that position `at` of the ragged dimension falls in; -1: behind the last. */
static int64_t group_of(const Ragged *r, int64_t batch, int64_t at) {
  int64_t base = r->sizes->rank > 1 ? batch * r->n_groups : 0, end = 0;
  for (int64_t g = 0; g < r->n_groups; g++) {
    int64_t v;
    load_i(r->sizes->dtype, r->sizes->data, base + g, 1, 1, &v);
    end += v;
    if (at < end) return g;
  }
  return -1;
}

static Err *ragged_read(Eval *e, Ragged *r) {
  const Attr *a = op_attr(e->op, "ragged_dot_dimension_numbers");
  *r = (Ragged){.lhs = e->in[0], .rhs = e->in[1], .sizes = e->in[2]};
  r->lb = ragged_list(a, "lhs_batching_dimensions");
  r->rb = ragged_list(a, "rhs_batching_dimensions");
  r->lc = ragged_list(a, "lhs_contracting_dimensions");
  r->rc = ragged_list(a, "rhs_contracting_dimensions");
  Dims lr = ragged_list(a, "lhs_ragged_dimensions"), rg = ragged_list(a, "rhs_group_dimensions");
  if (lr.n != 1 || rg.n > 1 || r->lc.n != r->rc.n || r->lb.n != r->rb.n)
    return op_err(e->op, ERR_INVALID, "dimension numbers do not fit together");
  r->ragged = lr.v[0];
  r->group = rg.n ? rg.v[0] : -1;
  r->contracting = find(&r->lc, r->ragged) >= 0;
  r->n_groups = r->sizes->rank ? r->sizes->dims[r->sizes->rank - 1] : 1;
  int64_t n_batch = 1;
  for (int i = 0; i < r->lb.n; i++) n_batch *= r->lhs->dims[r->lb.v[i]];
  if (r->sizes->rank > 1 && r->sizes->count != n_batch * r->n_groups)
    return op_err(e->op, ERR_UNIMPLEMENTED,
                  "group sizes for each row outside of the ragged dimension");
  for (int d = 0; d < r->lhs->rank; d++)
    if (find(&r->lb, d) < 0 && find(&r->lc, d) < 0) r->lhs_free.v[r->lhs_free.n++] = d;
  for (int d = 0; d < r->rhs->rank; d++)
    if (find(&r->rb, d) < 0 && find(&r->rc, d) < 0 && d != r->group)
      r->rhs_free.v[r->rhs_free.n++] = d;
  if (r->contracting) r->dims[r->rank++] = r->n_groups;
  for (int i = 0; i < r->lb.n; i++) r->dims[r->rank++] = r->lhs->dims[r->lb.v[i]];
  for (int i = 0; i < r->lhs_free.n; i++) r->dims[r->rank++] = r->lhs->dims[r->lhs_free.v[i]];
  for (int i = 0; i < r->rhs_free.n; i++) r->dims[r->rank++] = r->rhs->dims[r->rhs_free.v[i]];
  for (int i = 0; i < r->lc.n; i++) r->k_dims[i] = r->lhs->dims[r->lc.v[i]];
  r->n_k = dims_count(r->lc.n, r->k_dims);
  dims_strides(r->lhs->rank, r->lhs->dims, r->ls);
  dims_strides(r->rhs->rank, r->rhs->dims, r->rs);
  return NULL;
}

/* at: indices of the result. */
static RaggedStart ragged_start(const Ragged *r, const int64_t *at) {
  RaggedStart s = {.group = r->contracting ? *at++ : 0};
  int64_t place = 0;
  for (int i = 0; i < r->lb.n; i++) {
    s.batch = s.batch * r->lhs->dims[r->lb.v[i]] + at[i];
    s.lhs += at[i] * r->ls[r->lb.v[i]], s.rhs += at[i] * r->rs[r->rb.v[i]];
    if (r->lb.v[i] == r->ragged) place = at[i];
  }
  at += r->lb.n;
  for (int i = 0; i < r->lhs_free.n; i++) {
    s.lhs += at[i] * r->ls[r->lhs_free.v[i]];
    if (r->lhs_free.v[i] == r->ragged) place = at[i];
  }
  at += r->lhs_free.n;
  for (int i = 0; i < r->rhs_free.n; i++) s.rhs += at[i] * r->rs[r->rhs_free.v[i]];
  if (r->group >= 0) {
    s.group = group_of(r, s.batch, place);
    s.rhs += MAX(s.group, 0) * r->rs[r->group];
  }
  return s;
}

/* The products that one result sums, in whole numbers or in complex ones. */
static void ragged_sum(const Ragged *r, RaggedStart s, bool integer, Cx *sum, int64_t *isum) {
  *sum = (Cx){0, 0};
  *isum = 0;
  if (s.group < 0) return;
  for (int64_t k = 0, at[MAX_RANK] = {0}; k < r->n_k; k++) {
    index_of(k, r->lc.n, r->k_dims, at);
    int64_t x = s.lhs, y = s.rhs;
    bool mine = true;
    for (int i = 0; i < r->lc.n; i++) {
      x += at[i] * r->ls[r->lc.v[i]], y += at[i] * r->rs[r->rc.v[i]];
      if (r->contracting && r->lc.v[i] == r->ragged) mine = group_of(r, s.batch, at[i]) == s.group;
    }
    if (!mine) continue;
    if (integer) {
      int64_t u, v;
      load_i(r->lhs->dtype, r->lhs->data, x, 1, 1, &u);
      load_i(r->rhs->dtype, r->rhs->data, y, 1, 1, &v);
      *isum = (int64_t)((uint64_t)*isum + (uint64_t)u * (uint64_t)v);
    } else {
      Cx u, v;
      load_z(r->lhs->dtype, r->lhs->data, x, 1, 1, &u);
      load_z(r->rhs->dtype, r->rhs->data, y, 1, 1, &v);
      Cx p = cx_mul(u, v);
      sum->re += p.re, sum->im += p.im;
    }
  }
}

/* Modes by the kind of the ragged dimension of lhs:
 *   free         [b,m,k] [g,b,k,n] [b,g] -> [b,m,n]    rows of different groups meet different rhs
 *   contracting  [b,m,k] [b,k,n] [b,g] -> [g,b,m,n]    each group sums its own part of k
 *   batch        [b,m,k] [b,k,n] [g] -> [b,m,n] */
Err *sem_chlo_ragged_dot(Eval *e) {
  Ragged r;
  Tensor *out;
  TRY(ragged_read(e, &r));
  TRY(eval_out_dims(e, 0, r.rank, r.dims, &out));
  bool complex = dtype_is_complex(out->dtype), integer = !complex && !dtype_is_float(out->dtype);
  for (int64_t o = 0, at[MAX_RANK * 2]; o < out->count; o++) {
    index_of(o, r.rank, r.dims, at);
    Cx sum;
    int64_t isum;
    ragged_sum(&r, ragged_start(&r, at), integer, &sum, &isum);
    double d = (double)sum.re;
    if (integer) store_i(out->dtype, out->data, o, 1, &isum);
    else if (complex) store_z(out->dtype, out->data, o, 1, &sum);
    else store_d(out->dtype, out->data, o, 1, &d);
  }
  return NULL;
}
