/* Gradient rules of reductions, windows and products.
 *
 * Both gradients of a convolution are convolutions (the forms that JAX lowers to, so that
 * compilers recognise them):
 *   input   ct, dilated by the strides, with the kernel turned round and its features swapped
 *   kernel  the input with ct as kernel: batch and features trade places, strides and dilations too
 * Padding follows from the sizes; groups move from features to batch and back.
 */
#include "compile/grad/grad_priv.h"

#define IN(i) (op->operands[i])
#define Y (&op->results[0])
#define CT grad_cot(g, Y)

/* x of the reduced rank back to the shape of `like`; dims: those reduced away. */
static Value *spread(Build *b, Value *x, const Type *like, int n, const int64_t *dims) {
  int map[B_MAX_RANK], k = 0;
  for (int i = 0; i < like->rank; i++) {
    bool gone = false;
    for (int j = 0; j < n; j++) gone |= dims[j] == i;
    if (!gone) map[k++] = i;
  }
  return b_bcast_like(b, x, like, map);
}

Err *vjp_reduce(Grad *g, Op *op) {
  Build *b = g->b;
  if (op->n_operands != 2)
    return op_err(op, ERR_UNIMPLEMENTED, "gradient of a reduction of several tensors");
  Value *x = IN(0), *ct = CT;
  const int64_t *dims;
  int n = op_ints(op, "dimensions", &dims);
  OpKind kind = grad_combiner(op->regions[0]);
  if (kind == OP_ADD) {
    grad_add(g, x, spread(b, ct, x->type, n, dims));
    if (grad_active(g, IN(1))) grad_add(g, IN(1), b_reduce_all(b, OP_ADD, ct));
    return NULL;
  }
  if (grad_active(g, IN(1)))
    return op_err(op, ERR_UNIMPLEMENTED, "gradient of a reduction's initial value");
  if (kind == OP_MAXIMUM ||
      kind == OP_MINIMUM) { /* equal shares among those that reach the extreme */
    Value *hit = b_convert(b, b_compare(b, "EQ", x, spread(b, Y, x->type, n, dims)), b_dtype(x));
    Value *share = b_div(b, ct, b_reduce(b, OP_ADD, hit, n, dims));
    grad_add(g, x, b_mul(b, hit, spread(b, share, x->type, n, dims)));
    return NULL;
  }
  if (kind == OP_MULTIPLY) { /* product of the others: of those before and those after, in row-major
                                order */
    for (int i = n - 1; i >= 0; i--)
      if (n != 1)
        return op_err(op, ERR_UNIMPLEMENTED, "gradient of a product over several dimensions");
    int d = (int)dims[0], r = b_rank(x);
    int64_t size = b_dim(x, d), win[B_MAX_RANK], before[2 * B_MAX_RANK] = {0},
            after[2 * B_MAX_RANK] = {0};
    for (int i = 0; i < r; i++) win[i] = i == d ? size : 1;
    before[2 * d] = size;
    after[2 * d + 1] = size;
    Window w = {.size = win, .padding = before}, v = {.size = win, .padding = after};
    Value *lo = b_slice_dim(b, b_reduce_window(b, OP_MULTIPLY, x, &w), d, 0, size);
    Value *hi = b_slice_dim(b, b_reduce_window(b, OP_MULTIPLY, x, &v), d, 1, size + 1);
    grad_add(g, x, b_mul(b, spread(b, ct, x->type, n, dims), b_mul(b, lo, hi)));
    return NULL;
  }
  return op_err(op, ERR_UNIMPLEMENTED,
                "gradient of a reduction that is not a sum, product, maximum or minimum");
}

/* Padding that makes the transposed window operation give back `in` elements (one dimension). */
static void vjp_lhs_padding(int64_t in, int64_t window, int64_t stride, int64_t out, int64_t pad_lo,
                            int64_t base, int64_t dilation, int64_t *lo, int64_t *hi) {
  int64_t in_d = in ? (in - 1) * base + 1 : 0, win_d = window ? (window - 1) * dilation + 1 : 0;
  int64_t out_d = out ? (out - 1) * stride + 1 : 0;
  *lo = win_d - pad_lo - 1;
  *hi = in_d + win_d - 1 - out_d - *lo;
}

static void window_attr(const Op *op, const char *name, int n, int64_t dflt, int64_t *out) {
  const int64_t *v;
  int k = op_ints(op, name, &v);
  for (int i = 0; i < n; i++) out[i] = i < k ? v[i] : dflt;
}

Err *vjp_reduce_window(Grad *g, Op *op) {
  Build *b = g->b;
  if (op->n_operands != 2)
    return op_err(op, ERR_UNIMPLEMENTED, "gradient of a window reduction of several tensors");
  Value *x = IN(0), *ct = CT;
  int r = b_rank(x);
  int64_t size[B_MAX_RANK], stride[B_MAX_RANK], base[B_MAX_RANK], dil[B_MAX_RANK],
      pad[2 * B_MAX_RANK];
  window_attr(op, "window_dimensions", r, 1, size);
  window_attr(op, "window_strides", r, 1, stride);
  window_attr(op, "base_dilations", r, 1, base);
  window_attr(op, "window_dilations", r, 1, dil);
  window_attr(op, "padding", 2 * r, 0, pad);
  OpKind kind = grad_combiner(op->regions[0]);
  if (kind == OP_ADD) {
    int64_t lo[B_MAX_RANK], hi[B_MAX_RANK], interior[B_MAX_RANK];
    for (int i = 0; i < r; i++) {
      vjp_lhs_padding(b_dim(x, i), size[i], stride[i], b_dim(Y, i), pad[2 * i], base[i], dil[i],
                      &lo[i], &hi[i]);
      interior[i] = stride[i] - 1;
    }
    Value *p = b_pad(b, ct, b_scalar(b, b_dtype(x), 0), lo, hi, interior);
    Window w = {.size = size, .strides = base, .dilation = dil};
    grad_add(g, x, b_reduce_window(b, OP_ADD, p, &w));
    return NULL;
  }
  if (kind != OP_MAXIMUM)
    return op_err(op, ERR_UNIMPLEMENTED,
                  "gradient of a window reduction that is no sum or maximum");
  for (int i = 0; i < r; i++)
    if (base[i] != 1 || dil[i] != 1)
      return op_err(op, ERR_UNIMPLEMENTED, "gradient of a dilated max pooling");
  Window w = {.size = size, .strides = stride, .padding = pad};
  grad_add(g, x, b_select_and_scatter(b, x, ct, &w));
  return NULL;
}

Err *vjp_batch_norm_training(Grad *g, Op *op) {
  Build *b = g->b;
  if (!CT || grad_cot(g, &op->results[1]) || grad_cot(g, &op->results[2]))
    return op_err(op, ERR_UNIMPLEMENTED, "gradient through the batch statistics");
  Value *v[] = {IN(0), IN(1), &op->results[1], &op->results[2], CT};
  Type *t[] = {IN(0)->type, IN(1)->type, IN(2)->type};
  Op *d = b_op(b, OP_BATCH_NORM_GRAD, 5, v, 3, t, op->n_attrs, op->attrs, 0, NULL);
  for (int i = 0; i < 3; i++) grad_add(g, IN(i), &d->results[i]);
  return NULL;
}

/* ---- products -------------------------------------------------------------------------------- */

static bool listed(int n, const int64_t *v, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

/* The product `r` is a gradient of `of`; the name says where the cotangent is. */
static void mark_f8(Build *b, const Op *of, Value *r, const char *name) {
  if (op_attr(of, GRAD_F8)) op_set_attr(b->m, r->def, str_from(name), attr_unit(b->m));
}

/* Cotangent of one side. ct's dimensions are batch, free dimensions of the left, free dimensions
 * of the right. mine: the side wanted; `other` is contracted with ct over other's free
 * dimensions. */
static Value *dot_side(Build *b, Value *ct, Value *mine, Value *other, const DotDims *d, bool left,
                       const Op *of) {
  const int64_t *mb = left ? d->lhs_batch : d->rhs_batch, *ob = left ? d->rhs_batch : d->lhs_batch;
  const int64_t *mc = left ? d->lhs_contract : d->rhs_contract,
                *oc = left ? d->rhs_contract : d->lhs_contract;
  int nb = d->n_batch, nc = d->n_contract;
  int my_free = b_rank(mine) - nb - nc, other_free = b_rank(other) - nb - nc;
  DotDims t = {.n_batch = nb, .n_contract = other_free};
  int k = 0;
  for (int i = 0; i < b_rank(other); i++)
    if (!listed(nb, ob, i) && !listed(nc, oc, i)) t.rhs_contract[k++] = i;
  for (int i = 0; i < other_free; i++) t.lhs_contract[i] = nb + (left ? my_free : 0) + i;
  for (int i = 0; i < nb; i++) t.lhs_batch[i] = i, t.rhs_batch[i] = ob[i];
  Value *r = b_dot(b, ct, other, &t, b_dtype(mine), op_attr(of, "precision_config"));
  mark_f8(b, of, r, GRAD_F8_COTANGENT_LEFT);
  /* r: batch, my free dimensions, other's contracted dimensions in ascending order */
  int perm[B_MAX_RANK], place = nb;
  for (int i = 0; i < nb; i++) perm[mb[i]] = i;
  for (int i = 0; i < b_rank(mine); i++)
    if (!listed(nb, mb, i) && !listed(nc, mc, i)) perm[i] = place++;
  for (int od = 0; od < b_rank(other); od++)
    for (int c = 0; c < nc; c++)
      if (oc[c] == od) perm[mc[c]] = place++;
  return b_transpose(b, r, perm);
}

Err *vjp_dot(Grad *g, Op *op) {
  DotDims d = b_dot_dims(op);
  for (int side = 0; side < 2; side++) {
    Value *mine = IN(side), *other = IN(1 - side);
    if (!grad_active(g, mine)) continue;
    Value *ct = b_convert(g->b, CT, b_dtype(other));
    grad_add(g, mine, dot_side(g->b, ct, mine, other, &d, side == 0, op));
  }
  return NULL;
}

/* Splits `axis` into (groups, rest) and moves `groups` to stand before dimension `to` of the old
 * numbering, merged into it. */
static Value *move_groups(Build *b, Value *x, int axis, int to, int64_t groups) {
  int64_t dims[B_MAX_RANK] = {0}, merged[B_MAX_RANK];
  int perm[B_MAX_RANK], r = b_rank(x), k = 0;
  for (int i = 0; i < r; i++) {
    if (i == axis) dims[k++] = groups;
    dims[k++] = i == axis ? b_dim(x, i) / groups : b_dim(x, i);
  }
  Value *s = b_reshape(b, x, r + 1, dims);
  k = 0;
  for (int i = 0; i < r; i++) {
    if (i == to) perm[k++] = axis;
    perm[k++] = i < axis ? i : i + 1;
    merged[i] = i == to ? groups * dims[i < axis ? i : i + 1] : dims[i < axis ? i : i + 1];
  }
  return b_reshape(b, b_transpose(b, s, perm), r, merged);
}

static Value *conv_input_grad(Build *b, const ConvDims *d, Value *x, Value *k, Value *ct,
                              const Op *of) {
  ConvDims t = *d;
  int64_t groups = d->feature_groups > 1 ? d->feature_groups : d->batch_groups;
  if (groups > 1) k = move_groups(b, k, (int)d->k_out, (int)d->k_in, groups);
  t.in_batch = d->out_batch, t.in_feature = d->out_feature;
  t.k_in = d->k_out, t.k_out = d->k_in;
  t.out_batch = d->in_batch, t.out_feature = d->in_feature;
  t.feature_groups = groups;
  t.batch_groups = 1;
  for (int i = 0; i < d->n; i++) {
    t.in_spatial[i] = d->out_spatial[i];
    t.out_spatial[i] = d->in_spatial[i];
    t.strides[i] = d->lhs_dilation[i];
    t.lhs_dilation[i] = d->strides[i];
    vjp_lhs_padding(b_dim(x, (int)d->in_spatial[i]), b_dim(k, (int)d->k_spatial[i]), d->strides[i],
                    b_dim(ct, (int)d->out_spatial[i]), d->padding[2 * i], d->lhs_dilation[i],
                    d->rhs_dilation[i], &t.padding[2 * i], &t.padding[2 * i + 1]);
  }
  k = b_reverse(b, k, d->n, d->k_spatial);
  Value *r = b_conv(b, ct, k, &t, b_dtype(x), op_attr(of, "precision_config"));
  mark_f8(b, of, r, GRAD_F8_COTANGENT_LEFT);
  if (d->batch_groups > 1)
    r = move_groups(b, r, (int)d->in_feature, (int)d->in_batch, d->batch_groups);
  return r;
}

static Value *conv_kernel_grad(Build *b, const ConvDims *d, Value *x, Value *k, Value *ct,
                               const Op *of) {
  ConvDims t = *d;
  t.in_batch = d->in_feature, t.in_feature = d->in_batch;
  t.k_in = d->out_batch, t.k_out = d->out_feature;
  t.out_batch = d->k_in, t.out_feature = d->k_out;
  t.feature_groups = d->batch_groups;
  t.batch_groups = d->feature_groups;
  for (int i = 0; i < d->n; i++) {
    t.k_spatial[i] = d->out_spatial[i];
    t.out_spatial[i] = d->k_spatial[i];
    t.strides[i] = d->rhs_dilation[i];
    t.rhs_dilation[i] = d->strides[i];
    int64_t in = b_dim(x, (int)d->in_spatial[i]), win = b_dim(k, (int)d->k_spatial[i]);
    int64_t out = b_dim(ct, (int)d->out_spatial[i]);
    int64_t in_d = in ? (in - 1) * d->lhs_dilation[i] + 1 : 0,
            win_d = win ? (win - 1) * d->rhs_dilation[i] + 1 : 0;
    int64_t out_d = out ? (out - 1) * d->strides[i] + 1 : 0;
    t.padding[2 * i] = d->padding[2 * i];
    t.padding[2 * i + 1] = out_d - in_d + win_d - d->padding[2 * i] - 1;
  }
  Value *r = b_conv(b, x, ct, &t, b_dtype(k), op_attr(of, "precision_config"));
  mark_f8(b, of, r, GRAD_F8_COTANGENT_RIGHT);
  return r;
}

Err *vjp_convolution(Grad *g, Op *op) {
  Build *b = g->b;
  ConvDims d = b_conv_dims(op);
  if (d.feature_groups > 1 && d.batch_groups > 1)
    return op_err(op, ERR_UNIMPLEMENTED, "gradient of a convolution with feature and batch groups");
  Value *x = IN(0), *k = IN(1), *ct = CT;
  /* a reversed window is a reversed kernel */
  int64_t turned[B_MAX_RANK];
  int n_turned = 0;
  for (int i = 0; i < d.n; i++) {
    if (d.reversal[i]) turned[n_turned++] = d.k_spatial[i];
    d.reversal[i] = false;
  }
  Value *kr = b_reverse(b, k, n_turned, turned);
  if (grad_active(g, x))
    grad_add(g, x, conv_input_grad(b, &d, x, kr, b_convert(b, ct, b_dtype(k)), op));
  if (grad_active(g, k)) {
    Value *r = conv_kernel_grad(b, &d, x, kr, b_convert(b, ct, b_dtype(x)), op);
    grad_add(g, k, b_reverse(b, r, n_turned, turned));
  }
  return NULL;
}
