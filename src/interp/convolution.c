/* convolution and dynamic_conv: a product of the windows under each output position. */
#include "interp/product_priv.h"

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
static void pack_window(const Product *j, int part, int64_t first, int64_t count, void *a) {
  const Conv *c = j->arg;
  int64_t index[MAX_RANK], n_out = dims_count(c->n_spatial, c->out);
  size_t bytes = arith_bytes(j->ar);
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
        if (inside) at += x / c->lhs_dil[d] * c->in_step[d];
      }
      if (!inside) memset((char *)a + (size_t)to * bytes, 0, (size_t)c->features * bytes);
      else
        for (int64_t f = 0; f < c->features; f++)
          arith_load(j->ar, &j->lhs[part], at + f * c->in_feature_step, a, to + f);
    }
  }
}

/* The numbers of the dimensions in the three tensors. */
typedef struct Roles {
  const int64_t *in, *kernel, *out; /* spatial */
  int64_t in_batch, in_feature, kernel_in, kernel_out, out_batch, out_feature;
  int64_t feature_groups, batch_groups, groups;
} Roles;

static Err *roles_of(const Op *op, const Tensor *l, const Tensor *r, Roles *o, int *n_spatial) {
  int ns = *n_spatial = op_ints(op, "input_spatial_dimensions", &o->in);
  op_ints(op, "kernel_spatial_dimensions", &o->kernel);
  op_ints(op, "output_spatial_dimensions", &o->out);
  o->in_batch = op_int(op, "input_batch_dimension", 0);
  o->in_feature = op_int(op, "input_feature_dimension", 0);
  o->kernel_in = op_int(op, "kernel_input_feature_dimension", 0);
  o->kernel_out = op_int(op, "kernel_output_feature_dimension", 0);
  o->out_batch = op_int(op, "output_batch_dimension", 0);
  o->out_feature = op_int(op, "output_feature_dimension", 0);
  o->feature_groups = op_int(op, "feature_group_count", 1);
  o->batch_groups = op_int(op, "batch_group_count", 1);
  o->groups = MAX(o->feature_groups, o->batch_groups);
  if (l->rank != ns + 2 || r->rank != ns + 2)
    return op_err(op, ERR_INVALID, "ranks do not fit %d spatial dimensions", ns);
  if (o->feature_groups < 1 || o->batch_groups < 1 || l->dims[o->in_feature] % o->feature_groups ||
      l->dims[o->in_batch] % o->batch_groups || r->dims[o->kernel_out] % o->groups ||
      l->dims[o->in_feature] / o->feature_groups != r->dims[o->kernel_in])
    return op_err(op, ERR_INVALID, "groups do not divide the features or the batch");
  return NULL;
}

/* Sizes and steps of the window; pad has two numbers a spatial dimension. */
static Err *conv_of(const Op *op, const Roles *o, int ns, const Tensor *l, const Tensor *r,
                    const int64_t *pad, Conv *out) {
  int64_t ls[MAX_RANK], rs[MAX_RANK];
  dims_strides(l->rank, l->dims, ls);
  dims_strides(r->rank, r->dims, rs);
  Conv c = {.n_spatial = ns,
            .features = r->dims[o->kernel_in],
            .in_feature_step = ls[o->in_feature],
            .in_batch_step = ls[o->in_batch]};
  op_ints_or(op, "window_strides", ns, 1, c.stride);
  op_ints_or(op, "lhs_dilation", ns, 1, c.lhs_dil);
  op_ints_or(op, "rhs_dilation", ns, 1, c.rhs_dil);
  op_ints_or(op, "window_reversal", ns, 0, c.reversed);
  for (int d = 0; d < ns; d++) {
    c.in[d] = l->dims[o->in[d]], c.in_step[d] = ls[o->in[d]];
    c.window[d] = r->dims[o->kernel[d]], c.rhs_step[d] = rs[o->kernel[d]];
    c.low[d] = pad[2 * d];
    int64_t room, span;
    TRY(eval_padded(op, c.in[d], c.lhs_dil[d], pad[2 * d], pad[2 * d + 1], &room));
    TRY(eval_padded(op, c.window[d], c.rhs_dil[d], 0, 0, &span));
    c.out[d] = room < span || room <= 0 ? 0 : (room - span) / c.stride[d] + 1;
  }
  c.n_window = dims_count(ns, c.window);
  *out = c;
  return NULL;
}

/* The filters [first, first + n) as the right side: window places, then features, by filters. */
static void pack_filters(const Conv *c, const Roles *o, Arith ar, const Tensor *r, int64_t first,
                         int64_t n, void *to) {
  int64_t rs[MAX_RANK], w[MAX_RANK] = {0};
  dims_strides(r->rank, r->dims, rs);
  Side side = {.t = r};
  for (int64_t p = 0; p < c->n_window; p++, index_next(c->n_spatial, c->window, w)) {
    int64_t at = first * rs[o->kernel_out];
    for (int d = 0; d < c->n_spatial; d++)
      at += (c->reversed[d] ? c->window[d] - 1 - w[d] : w[d]) * c->rhs_step[d];
    for (int64_t f = 0; f < c->features; f++)
      for (int64_t y = 0; y < n; y++)
        arith_load(ar, &side, at + f * rs[o->kernel_in] + y * rs[o->kernel_out], to,
                   (p * c->features + f) * n + y);
  }
}

static Err *convolve(Eval *e, const int64_t *pad) {
  const Tensor *l = e->in[0], *r = e->in[1];
  Roles o;
  int ns;
  TRY(roles_of(e->op, l, r, &o, &ns));
  Conv c;
  TRY(conv_of(e->op, &o, ns, l, r, pad, &c));
  int64_t dims[MAX_RANK] = {0}, os[MAX_RANK];
  for (int d = 0; d < ns; d++) dims[o.out[d]] = c.out[d];
  dims[o.out_batch] = l->dims[o.in_batch] / o.batch_groups;
  dims[o.out_feature] = r->dims[o.kernel_out];
  Tensor *out;
  TRY(eval_out_dims(e, 0, ns + 2, dims, &out));
  if (!out->count) return NULL;
  dims_strides(out->rank, out->dims, os);
  int64_t per_group = r->dims[o.kernel_out] / o.groups;
  Group m = {0}, n = {0};
  group_add(&m, dims[o.out_batch], 0, 0, os[o.out_batch]);
  for (int d = 0; d < ns; d++) group_add(&m, c.out[d], 0, 0, os[o.out[d]]);
  group_add(&n, per_group, 0, 0, os[o.out_feature]);
  Product p = {.ar = arith_for(out->dtype, DT_INVALID),
               .k = c.n_window * c.features,
               .n_parts = 1,
               .pack = pack_window,
               .arg = &c,
               .out = out,
               .lhs = {{.t = l}}};
  int64_t *out_m = group_table(&m, m.out, &p.m), *out_n = group_table(&n, n.out, &p.n);
  p.out_m = out_m, p.out_n = out_n;
  p.rhs[0] = xmalloc(arith_bytes(p.ar) * (size_t)(p.k * p.n));
  int64_t group_step =
      o.batch_groups > 1 ? dims[o.out_batch] * c.in_batch_step : c.features * c.in_feature_step;
  for (int64_t g = 0; g < o.groups; g++) {
    pack_filters(&c, &o, p.ar, r, g * per_group, per_group, p.rhs[0]);
    c.base = g * group_step;
    p.out_b = g * per_group * os[o.out_feature];
    product_run(&p);
  }
  free(p.rhs[0]);
  free(out_m);
  free(out_n);
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
