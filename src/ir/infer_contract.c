/* Products: dot, dot_general, einsum, convolution. The result's element type is the program's
 * choice (accumulation may be wider); its shape is checked. */
#include "ir/infer_priv.h"

static Err *precisions(Infer *f) {
  const Attr *a = op_attr(f->op, "precision_config");
  if (!a) return NULL;
  if (a->n != 0 && a->n != 2)
    FAIL(f, "precision_config has %d entries, but there are two operands", a->n);
  for (int i = 0; i < a->n; i++) {
    Str s = a->items[i]->kind == AT_ENUM ? a->items[i]->s : STR("");
    if (!str_is(s, "DEFAULT") && !str_is(s, "HIGH") && !str_is(s, "HIGHEST"))
      FAIL(f, "a precision is DEFAULT, HIGH or HIGHEST");
  }
  return NULL;
}

/* Element types: both float-like or both quantized, or a float lhs with a quantized rhs (hybrid).
 */
static Err *elements(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  const Type *a = in_type(f, 0), *b = in_type(f, 1), *r = res_type(f, 0);
  if (a->quant && !b->quant) FAIL(f, "a quantized lhs needs a quantized rhs");
  if (!a->quant && b->quant) {
    if (a->dtype != b->quant->expressed || r->quant || r->dtype != a->dtype)
      FAIL(f, "lhs and result have to be %s, which the rhs expresses",
           dtype_name(b->quant->expressed));
    return NULL;
  }
  if (a->quant) {
    if (!r->quant && r->dtype != a->quant->expressed)
      FAIL(f, "a product of quantized operands is quantized or %s",
           dtype_name(a->quant->expressed));
    if (r->quant && r->quant->expressed != a->quant->expressed)
      FAIL(f, "operands and result differ in expressed type");
    if (r->quant && r->quant->axis >= 0 && b->quant->axis < 0)
      FAIL(f, "the result is quantized per axis, the rhs is not");
    if (a->quant->storage != b->quant->storage || a->quant->expressed != b->quant->expressed)
      FAIL(f, "lhs and rhs differ in storage or expressed type");
    for (int i = 0; i < b->quant->n; i++)
      if (f->op->kind == OP_DOT_GENERAL && b->quant->zero_points[i])
        FAIL(f, "the zero points of the rhs have to be 0");
    if (a->quant->axis >= 0) FAIL(f, "the lhs cannot be quantized per axis");
    return NULL;
  }
  if (r->quant) FAIL(f, "the result is quantized, the operands are not");
  return NULL;
}

static void product_out(Infer *f, int rank, const int64_t *d) {
  const Type *r = res_type(f, 0);
  out_shape(f, 0, r->dtype, r->quant, rank, d);
}

static Err *algorithm(Infer *f) {
  static const char *const names[] = {"lhs_precision_type",          "rhs_precision_type",
                                      "accumulation_type",           "lhs_component_count",
                                      "rhs_component_count",         "num_primitive_operations",
                                      "allow_imprecise_accumulation"};
  int have = 0;
  if (op_attr(f->op, names[2]) && op_attr(f->op, "precision_config"))
    FAIL(f, "precision_config has to be DEFAULT when an algorithm is given");
  for (int i = 0; i < 7; i++) have += op_attr(f->op, names[i]) != NULL;
  if (!have) return NULL;
  if (have != 7) FAIL(f, "an algorithm has seven fields, %d are given", have);
  for (int i = 3; i < 6; i++)
    if (op_int(f->op, names[i], 0) < 1) FAIL(f, "%s has to be positive", names[i]);
  return NULL;
}

static Err *dot_general(Infer *f) {
  TRY(elements(f));
  TRY(precisions(f));
  TRY(algorithm(f));
  const Type *a = in_type(f, 0), *b = in_type(f, 1);
  const int64_t *ab, *bb, *ac, *bc;
  int nab, nbb, nac, nbc;
  TRY(dims_of(f, "lhs_batching_dimensions", a->rank, false, &ab, &nab));
  TRY(dims_of(f, "rhs_batching_dimensions", b->rank, false, &bb, &nbb));
  TRY(dims_of(f, "lhs_contracting_dimensions", a->rank, false, &ac, &nac));
  TRY(dims_of(f, "rhs_contracting_dimensions", b->rank, false, &bc, &nbc));
  if (nab != nbb) FAIL(f, "%d batching dimensions on the left, %d on the right", nab, nbb);
  if (nac != nbc) FAIL(f, "%d contracting dimensions on the left, %d on the right", nac, nbc);
  for (int i = 0; i < nab; i++) {
    if (b_has_dim(nac, ac, ab[i]))
      FAIL(f, "dimension %lld of lhs is batching and contracting", (long long)ab[i]);
    if (b_has_dim(nbc, bc, bb[i]))
      FAIL(f, "dimension %lld of rhs is batching and contracting", (long long)bb[i]);
    if (!dim_ok(a->dims[ab[i]], b->dims[bb[i]]))
      FAIL(f, "batching dimension %d is %lld on the left and %lld on the right", i,
           (long long)a->dims[ab[i]], (long long)b->dims[bb[i]]);
  }
  for (int i = 0; i < nac; i++)
    if (!dim_ok(a->dims[ac[i]], b->dims[bc[i]]))
      FAIL(f, "contracting dimension %d is %lld on the left and %lld on the right", i,
           (long long)a->dims[ac[i]], (long long)b->dims[bc[i]]);
  if (b->quant && b->quant->axis >= 0 && b_has_dim(nbc, bc, b->quant->axis))
    FAIL(f, "the rhs is quantized along a contracting dimension");
  int64_t *d = tmp_dims(f, a->rank + b->rank);
  int n = 0;
  for (int i = 0; i < nab; i++) d[n++] = dim_more(a->dims[ab[i]], b->dims[bb[i]]);
  for (int i = 0; i < a->rank; i++)
    if (!b_has_dim(nab, ab, i) && !b_has_dim(nac, ac, i)) d[n++] = a->dims[i];
  for (int i = 0; i < b->rank; i++)
    if (!b_has_dim(nbb, bb, i) && !b_has_dim(nbc, bc, i)) d[n++] = b->dims[i];
  product_out(f, n, d);
  return NULL;
}

static Err *dot(Infer *f) {
  TRY(elements(f));
  TRY(precisions(f));
  const Type *a = in_type(f, 0), *b = in_type(f, 1);
  if (a->rank < 1 || a->rank > 2 || b->rank < 1 || b->rank > 2)
    FAIL(f, "operands have to be vectors or matrices");
  if (!dim_ok(a->dims[a->rank - 1], b->dims[0]))
    FAIL(f, "contracting dimension is %lld on the left and %lld on the right",
         (long long)a->dims[a->rank - 1], (long long)b->dims[0]);
  int64_t d[2];
  int n = 0;
  if (a->rank == 2) d[n++] = a->dims[0];
  if (b->rank == 2) d[n++] = b->dims[1];
  product_out(f, n, d);
  return NULL;
}

static Err *einsum(Infer *f) {
  TRY(want_tensors(f, EANY));
  TRY(want_result_tensor(f, 0, EANY));
  out_declared(f, 0);
  return NULL;
}

/* One side of the dimension numbers: a permutation of 0 .. rank-1. */
static Err *conv_side(Infer *f, const char *side, const char *first, const char *second,
                      const char *spatial, int rank, int64_t *a, int64_t *b, const int64_t **s) {
  int n;
  *a = op_int(f->op, first, -1);
  *b = op_int(f->op, second, -1);
  TRY(dims_of(f, spatial, rank, false, s, &n));
  if (n != rank - 2) FAIL(f, "%s has %d dimensions, but %d spatial ones are given", side, rank, n);
  if (*a < 0 || *a >= rank || *b < 0 || *b >= rank || *a == *b || b_has_dim(n, *s, *a) ||
      b_has_dim(n, *s, *b))
    FAIL(f, "the dimension numbers of %s are not a permutation", side);
  return NULL;
}

static Err *conv_shape(Infer *f, const int64_t *padding) {
  const Type *x = in_type(f, 0), *k = in_type(f, 1);
  TRY(elements(f));
  TRY(precisions(f));
  if (!x->quant && !k->quant && x->dtype != k->dtype)
    FAIL(f, "operands have elements of %s and %s", dtype_name(x->dtype), dtype_name(k->dtype));
  int rank = x->rank, n = rank - 2;
  if (rank < 2 || k->rank != rank)
    FAIL(f, "operands have %d and %d dimensions; they need the same number, 2 or more", rank,
         k->rank);
  int64_t ib, ic, ki, ko, ob, oc;
  const int64_t *is, *ks, *os, *stride, *ld, *rd, *rev;
  TRY(conv_side(f, "the input", "input_batch_dimension", "input_feature_dimension",
                "input_spatial_dimensions", rank, &ib, &ic, &is));
  TRY(conv_side(f, "the kernel", "kernel_input_feature_dimension",
                "kernel_output_feature_dimension", "kernel_spatial_dimensions", rank, &ki, &ko,
                &ks));
  TRY(conv_side(f, "the output", "output_batch_dimension", "output_feature_dimension",
                "output_spatial_dimensions", rank, &ob, &oc, &os));
  TRY(window_ints(f, "window_strides", n, 1, &stride));
  TRY(window_ints(f, "lhs_dilation", n, 1, &ld));
  TRY(window_ints(f, "rhs_dilation", n, 1, &rd));
  TRY(window_ints(f, "window_reversal", n, 0, &rev));
  int64_t bg = op_int(f->op, "batch_group_count", 1), fg = op_int(f->op, "feature_group_count", 1);
  if (bg < 1 || fg < 1) FAIL(f, "group counts have to be positive");
  if (bg > 1 && fg > 1)
    FAIL(f, "only one of batch_group_count and feature_group_count may be above 1");
  int64_t batch = x->dims[ib], feature = x->dims[ic], kin = k->dims[ki], kout = k->dims[ko];
  if (batch >= 0 && batch % bg)
    FAIL(f, "batch size %lld is not a multiple of batch_group_count", (long long)batch);
  if (feature >= 0 && feature % fg)
    FAIL(f, "%lld input features are not a multiple of feature_group_count", (long long)feature);
  if (feature >= 0 && kin >= 0 && kin != feature / fg)
    FAIL(f, "the kernel takes %lld features, the input has %lld in each group", (long long)kin,
         (long long)(feature / fg));
  if (kout >= 0 && (kout % bg || kout % fg))
    FAIL(f, "%lld output features are not a multiple of the group count", (long long)kout);
  const Quant *rq = res_type(f, 0)->quant;
  if (rq && rq->axis >= 0 && rq->axis != oc)
    FAIL(f, "the result has to be quantized along its output features");
  if (k->quant && k->quant->axis >= 0 && k->quant->axis != ko)
    FAIL(f, "the kernel has to be quantized along its output features");
  int64_t *d = tmp_dims(f, rank);
  for (int i = 0; i < n; i++) {
    int64_t w = k->dims[ks[i]];
    if (w == 0) FAIL(f, "a window of size 0");
    TRY(window_dim(f, padding ? x->dims[is[i]] : DIM_DYNAMIC, padding ? padding[2 * i] : 0,
                   padding ? padding[2 * i + 1] : 0, ld[i], w < 0 ? DIM_DYNAMIC : w, rd[i],
                   stride[i], &d[os[i]]));
  }
  d[ob] = batch < 0 ? DIM_DYNAMIC : batch / bg;
  d[oc] = kout;
  product_out(f, rank, d);
  return NULL;
}

static Err *convolution(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EANY));
  const int64_t *padding;
  TRY(window_padding(f, MAX(in_type(f, 0)->rank - 2, 0), &padding));
  return conv_shape(f, padding);
}

Err *infer_dynamic_conv(Infer *f) {
  TRY(want_tensor(f, 0, EANY));
  TRY(want_tensor(f, 1, EANY));
  TRY(want_tensor(f, 2, EI));
  const Type *p = in_type(f, 2);
  if (p->rank != 2 || !dim_ok(p->dims[0], in_type(f, 0)->rank - 2) || !dim_ok(p->dims[1], 2))
    FAIL(f, "the padding has to be a matrix of %d x 2 integers", in_type(f, 0)->rank - 2);
  return conv_shape(f, NULL);
}

/* One list of chlo's dimension numbers: distinct dimensions below `limit`. */
static Err *ragged_list(Infer *f, const Attr *a, const char *name, int limit, const int64_t **v,
                        int *n) {
  const Attr *x = attrs_get(a->dict, a->n, name);
  *n = 0;
  if (!x) return NULL;
  if (x->kind != AT_INTS) FAIL(f, "%s is not a list of dimensions", name);
  *v = x->ints;
  *n = x->n;
  for (int i = 0; i < x->n; i++)
    if (x->ints[i] < 0 || x->ints[i] >= limit || b_has_dim(i, x->ints, x->ints[i]))
      FAIL(f, "%s: %lld is not a dimension or given twice", name, (long long)x->ints[i]);
  return NULL;
}

/* chlo.ragged_dot: a dot_general whose lhs has one ragged dimension, cut into groups of the sizes
 * of operand 2. What the group means follows from where the ragged dimension is: free, contracting
 * or batching. */
static Err *ragged_dot(Infer *f) {
  TRY(elements(f));
  TRY(want_tensor(f, 2, EI));
  TRY(precisions(f));
  const Attr *a = op_attr(f->op, "ragged_dot_dimension_numbers");
  if (!a || a->kind != AT_DICT) FAIL(f, "needs #chlo.ragged_dot<..> dimension numbers");
  const Type *l = in_type(f, 0), *r = in_type(f, 1), *g = in_type(f, 2);
  const int64_t *lb, *rb, *lc, *rc, *ragged, *group;
  int nlb, nrb, nlc, nrc, n_ragged, n_group;
  TRY(ragged_list(f, a, "lhs_batching_dimensions", l->rank, &lb, &nlb));
  TRY(ragged_list(f, a, "rhs_batching_dimensions", r->rank, &rb, &nrb));
  TRY(ragged_list(f, a, "lhs_contracting_dimensions", l->rank, &lc, &nlc));
  TRY(ragged_list(f, a, "rhs_contracting_dimensions", r->rank, &rc, &nrc));
  TRY(ragged_list(f, a, "lhs_ragged_dimensions", l->rank, &ragged, &n_ragged));
  TRY(ragged_list(f, a, "rhs_group_dimensions", r->rank, &group, &n_group));
  if (nlb != nrb || nlc != nrc)
    FAIL(f, "both sides need the same number of batching and contracting dimensions");
  for (int i = 0; i < nlb; i++)
    if (!dim_ok(l->dims[lb[i]], r->dims[rb[i]]) || b_has_dim(nlc, lc, lb[i]) ||
        b_has_dim(nrc, rc, rb[i]))
      FAIL(f, "batching dimension %d does not fit", i);
  for (int i = 0; i < nlc; i++)
    if (!dim_ok(l->dims[lc[i]], r->dims[rc[i]]))
      FAIL(f, "contracting dimension %d differs in size", i);
  if (n_ragged != 1) FAIL(f, "there has to be one ragged dimension, not %d", n_ragged);
  bool contracting = b_has_dim(nlc, lc, ragged[0]), batching = b_has_dim(nlb, lb, ragged[0]);
  if (n_group != !(contracting || batching))
    FAIL(f, "the rhs needs a group dimension exactly when the ragged dimension is neither batching "
            "nor contracting");
  if (n_group && (b_has_dim(nrb, rb, group[0]) || b_has_dim(nrc, rc, group[0])))
    FAIL(f, "the group dimension is batching or contracting too");
  if (g->rank < 1) FAIL(f, "the group sizes have to be a vector");
  int64_t n_groups = g->dims[g->rank - 1];
  if (n_group && !dim_ok(r->dims[group[0]], n_groups))
    FAIL(f, "%lld group sizes for %lld groups", (long long)n_groups, (long long)r->dims[group[0]]);
  int64_t *d = tmp_dims(f, l->rank + r->rank + 1);
  int n = 0;
  if (contracting) d[n++] = n_groups;
  for (int i = 0; i < nlb; i++) d[n++] = dim_more(l->dims[lb[i]], r->dims[rb[i]]);
  /* group sizes may differ along the dimensions outside of the ragged one: batching ones, then
   * those of its kind before it */
  int64_t prefix[64], n_prefix = 0;
  for (int i = 0; i < nlb && n_prefix < 64 && !(batching && lb[i] == ragged[0]); i++)
    prefix[n_prefix++] = l->dims[lb[i]];
  for (int i = 0; i < nlc && contracting && lc[i] != ragged[0] && n_prefix < 64; i++)
    prefix[n_prefix++] = l->dims[lc[i]];
  for (int i = 0; i < l->rank; i++) {
    if (b_has_dim(nlb, lb, i) || b_has_dim(nlc, lc, i)) continue;
    if (n_group && i < ragged[0] && n_prefix < 64) prefix[n_prefix++] = l->dims[i];
    d[n++] = l->dims[i];
  }
  if (g->rank > 1 && !dims_ok(g->rank - 1, g->dims, (int)n_prefix, prefix))
    FAIL(f, "the group sizes have to be a vector, or one for each place of the dimensions before "
            "the ragged one");
  for (int i = 0; i < r->rank; i++)
    if (!b_has_dim(nrb, rb, i) && !b_has_dim(nrc, rc, i) && !b_has_dim(n_group, group, i))
      d[n++] = r->dims[i];
  product_out(f, n, d);
  return NULL;
}

static Err *resample(Infer *f) {
  const Op *op = f->op;
  const int64_t *v;
  int n;
  TRY(ints_of(f, "dims", op->n_operands - 1, &v, &n));
  if (n < 1) FAIL(f, "needs a matrix");
  TRY(want_tensors(f, EF));
  const Type *x = in_type(f, 0);
  int64_t *d = tmp_dims(f, x->rank);
  for (int i = 0; i < x->rank; i++) d[i] = x->dims[i];
  for (int k = 0; k < n; k++) {
    const Type *w = in_type(f, k + 1);
    bool each = w->rank == 3;
    if (x->dtype != DT_F32 || w->dtype != DT_F32) FAIL(f, "operands are f32");
    if (v[k] < each || v[k] >= x->rank) FAIL(f, "dims names dimension %lld", (long long)v[k]);
    if ((!each && w->rank != 2) || w->dims[each] != d[v[k]] || (each && w->dims[0] != x->dims[0]))
      FAIL(f, "matrix %d does not fit dimension %lld", k, (long long)v[k]);
    d[v[k]] = w->dims[each + 1];
  }
  out_shape(f, 0, DT_F32, NULL, x->rank, d);
  return NULL;
}

/* Operands that both kinds of attention have; *n: how many there are. */
static Err *attention_operands(Infer *f, int more, int *n) {
  const Op *op = f->op;
  const bool biased = op_bool(op, "biased", false), masked = op_bool(op, "masked", false);
  *n = 3 + biased + masked;
  if (op->n_operands != *n + more) FAIL(f, "%d operands are wanted", *n + more);
  TRY(want_tensors(f, EF | EB));
  const Type *q = in_type(f, 0), *k = in_type(f, 1), *v = in_type(f, 2);
  if (q->rank != 5 || k->rank != 4 || v->rank != 4 || !dims_ok(2, q->dims, 2, k->dims) ||
      !dims_ok(3, k->dims, 3, v->dims) || q->dims[4] != k->dims[3])
    FAIL(f, "queries, keys and values do not agree");
  const int64_t whole[] = {q->dims[0], q->dims[1], q->dims[2], q->dims[3], k->dims[2]};
  for (int i = 3; i < *n; i++) {
    const Type *t = in_type(f, i);
    bool ok = t->rank == 5 && (t->dtype == DT_I1) == (masked && i == *n - 1);
    for (int d = 0; ok && d < 5; d++) ok = t->dims[d] == 1 || t->dims[d] == whole[d];
    if (!ok) FAIL(f, "operand %d does not fit the scores", i);
  }
  const int64_t *band;
  int ends = op_ints(op, "band", &band);
  if (ends != 0 && ends != 2) FAIL(f, "a band has two ends");
  return NULL;
}

static void attention_result(Infer *f, int64_t out[5], int64_t stats[5]) {
  const int64_t *q = in_type(f, 0)->dims;
  memcpy(out, (int64_t[]){q[0], q[1], q[2], q[3], in_type(f, 2)->dims[3]}, 5 * sizeof *q);
  memcpy(stats, (int64_t[]){q[0], q[1], q[2], 2, q[3]}, 5 * sizeof *q);
}

static Err *attention(Infer *f) {
  int n;
  int64_t out[5], stats[5];
  TRY(attention_operands(f, 0, &n));
  attention_result(f, out, stats);
  out_shape(f, 0, in_type(f, 2)->dtype, NULL, 5, out);
  out_shape(f, 1, DT_F32, NULL, 5, stats);
  return NULL;
}

static Err *attention_grad(Infer *f) {
  int n;
  int64_t out[5], stats[5];
  TRY(attention_operands(f, 3, &n));
  attention_result(f, out, stats);
  for (int i = 0; i < 3; i++) {
    const Type *t = in_type(f, n + i);
    if (!dims_ok(t->rank, t->dims, 5, i == 1 ? stats : out) ||
        t->dtype != (i == 1 ? DT_F32 : in_type(f, 2)->dtype))
      FAIL(f, "operand %d is not as the attention's", n + i);
    out_like(f, i, in_type(f, i));
  }
  return NULL;
}

InferFn infer_contract_fn(OpKind k) {
  static const InferRow rows[] = {
      {OP_DOT_GENERAL, dot_general},
      {OP_DOT, dot},
      {OP_EINSUM, einsum},
      {OP_UNARY_EINSUM, einsum},
      {OP_CONVOLUTION, convolution},
      {OP_CHLO_RAGGED_DOT, ragged_dot},
      {OP_RESAMPLE, resample},
      {OP_ATTENTION, attention},
      {OP_ATTENTION_GRAD, attention_grad},
  };
  return infer_find(rows, COUNT_OF(rows), k);
}
