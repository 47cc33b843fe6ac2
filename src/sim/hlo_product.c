/* dot and convolution in one description: sizes, roles of dimensions, useful operations. */
#include "sim/hlo.h"

static bool in_list(const int64_t *v, int n, int64_t x) {
  for (int i = 0; i < n; i++)
    if (v[i] == x) return true;
  return false;
}

static int precision_passes(const Op *op, DType a, DType bt) {
  if (a != DT_F32 && bt != DT_F32) return 1;
  Attr *p = op_attr(op, "precision_config");
  int passes = 1;
  if (p && p->kind == AT_ARRAY)
    for (int i = 0; i < p->n; i++) {
      if (str_is(p->items[i]->s, "HIGHEST")) passes = MAX(passes, 6);
      if (str_is(p->items[i]->s, "HIGH")) passes = MAX(passes, 3);
    }
  return passes;
}

static char *roles(HGraph *g, int rank, char fill) {
  char *r = arena_alloc(g->arena, (size_t)rank + 1);
  memset(r, fill, (size_t)rank);
  r[rank] = 0;
  return r;
}

HConv *hlo_dot_info(Build *b, const Op *op, HNode *x, HNode *y) {
  const int64_t *lb, *rb, *lc, *rc;
  int nlb = op_ints(op, "lhs_batching_dimensions", &lb),
      nrb = op_ints(op, "rhs_batching_dimensions", &rb);
  int nlc = op_ints(op, "lhs_contracting_dimensions", &lc),
      nrc = op_ints(op, "rhs_contracting_dimensions", &rc);
  static const int64_t one_l[] = {1}, one_r[] = {0};
  if (op->kind == OP_DOT) {
    nlb = nrb = 0;
    nlc = nrc = 1;
    lc = one_l;
    rc = one_r;
    static const int64_t vec[] = {0};
    if (x->rank == 1) lc = vec;
  }
  HConv *c = ARENA_NEW(b->g->arena, HConv);
  c->batch = c->m = c->n = c->k = c->taps = c->groups = 1;
  char *lr = roles(b->g, x->rank, 'm'), *rr = roles(b->g, y->rank, 'n');
  for (int i = 0; i < x->rank; i++) {
    if (in_list(lb, nlb, i)) lr[i] = 'b', c->batch *= x->d[i];
    else if (in_list(lc, nlc, i)) lr[i] = 'k', c->k *= x->d[i];
    else c->m *= x->d[i];
  }
  for (int i = 0; i < y->rank; i++) {
    if (in_list(rb, nrb, i)) rr[i] = 'b';
    else if (in_list(rc, nrc, i)) rr[i] = 'k';
    else c->n *= y->d[i];
  }
  int out_rank = op_type(op)->rank;
  char *orl = roles(b->g, out_rank, 'n');
  int k = 0;
  for (int i = 0; i < nlb && k < out_rank; i++) orl[k++] = 'b';
  for (int i = 0; i < x->rank && k < out_rank; i++)
    if (lr[i] == 'm') orl[k++] = 'm';
  c->lhs = lr;
  c->rhs = rr;
  c->out = orl;
  c->passes = precision_passes(op, x->dt, y->dt);
  c->flops = 2 * c->batch * c->m * c->n * c->k;
  return c;
}

/* One side of a product that contracts nothing, spread over the result: its dimensions with role
 * `free` start at result dimension `at`, its batch dimensions are the first, in `batch` order. */
static HNode *spread_side(Build *b, const Op *op, HNode *x, const char *roles_of, char free, int at,
                          const char *batch) {
  const Type *t = op_type(op);
  const int64_t *order;
  int nb = op_ints(op, batch, &order), k = 0;
  int64_t kept[64], map[64];
  for (int i = 0; i < x->rank; i++) {
    if (roles_of[i] == 'k') continue; /* of size one */
    int to = roles_of[i] == free ? at++ : -1;
    for (int q = 0; q < nb && to < 0; q++)
      if (order[q] == i) to = q;
    kept[k] = x->d[i];
    map[k++] = to;
  }
  x = hlo_reshape(b, op, x, k, kept);
  if (x->dt != t->dtype) x = hlo_ewise(b, OP_CONVERT, op, t->dtype, k, kept, 1, &x);
  return hlo_bcast(b, op, x, t->rank, t->dims, map);
}

/* A product that contracts nothing is a multiplication. */
HNode *hlo_outer_product(Build *b, const Op *op, const HConv *c, HNode *x, HNode *y) {
  const Type *t = op_type(op);
  const int64_t *order;
  if (op->kind != OP_DOT_GENERAL || x->rank > 32 || y->rank > 32) return NULL;
  int at = op_ints(op, "lhs_batching_dimensions", &order);
  HNode *in[2];
  in[0] = spread_side(b, op, x, c->lhs, 'm', at, "lhs_batching_dimensions");
  for (int i = 0; i < x->rank; i++) at += c->lhs[i] == 'm';
  in[1] = spread_side(b, op, y, c->rhs, 'n', at, "rhs_batching_dimensions");
  return hlo_ewise(b, OP_MULTIPLY, op, t->dtype, t->rank, t->dims, 2, in);
}

HConv *hlo_conv_info(Build *b, const Op *op, HNode *x, HNode *y) {
  HConv *c = ARENA_NEW(b->g->arena, HConv);
  const Type *t = op_type(op);
  const int64_t *is, *ks, *os, *v;
  int ns = op_ints(op, "input_spatial_dimensions", &is);
  op_ints(op, "kernel_spatial_dimensions", &ks);
  op_ints(op, "output_spatial_dimensions", &os);
  int64_t ib = op_int(op, "input_batch_dimension", 0),
          inf = op_int(op, "input_feature_dimension", 1);
  int64_t kif = op_int(op, "kernel_input_feature_dimension", 0),
          kof = op_int(op, "kernel_output_feature_dimension", 1);
  int64_t ob = op_int(op, "output_batch_dimension", 0),
          of = op_int(op, "output_feature_dimension", 1);
  int64_t fg = op_int(op, "feature_group_count", 1), bg = op_int(op, "batch_group_count", 1);
  char *lr = roles(b->g, x->rank, 's'), *rr = roles(b->g, y->rank, 's'),
       *orl = roles(b->g, t->rank, 's');
  lr[ib] = 'm';
  lr[inf] = 'k';
  rr[kif] = 'k';
  rr[kof] = 'n';
  orl[ob] = 'm';
  orl[of] = 'n';
  c->lhs = lr;
  c->rhs = rr;
  c->out = orl;
  c->is_conv = true;
  c->groups = MAX(fg, bg);
  c->batch = 1;
  c->n = t->dims[of];
  c->k = y->d[kif];
  c->m = t->dims[ob];
  c->taps = 1;
  c->n_spatial = ns;
  c->window = arena_alloc(b->g->arena, sizeof(int64_t) * (size_t)(ns ? ns : 1) * 4);
  c->stride = c->window + ns;
  c->lhs_dil = c->stride + ns;
  c->rhs_dil = c->lhs_dil + ns;
  int nst = op_ints(op, "window_strides", &v);
  for (int i = 0; i < ns; i++) c->stride[i] = nst ? v[i] : 1;
  int nld = op_ints(op, "lhs_dilation", &v);
  for (int i = 0; i < ns; i++) c->lhs_dil[i] = nld ? v[i] : 1;
  int nrd = op_ints(op, "rhs_dilation", &v);
  for (int i = 0; i < ns; i++) c->rhs_dil[i] = nrd ? v[i] : 1;
  double useful =
      1; /* valid (output, tap) pairs per spatial dimension, padding and holes left out */
  const int64_t *pad;
  int npad = op_ints(op, "padding", &pad);
  for (int i = 0; i < ns; i++) {
    c->window[i] = y->d[ks[i]];
    c->taps *= y->d[ks[i]];
    c->m *= t->dims[os[i]];
    int64_t lo = npad ? pad[2 * i] : 0, in_n = x->d[is[i]], n_ok = 0;
    int64_t outs = t->dims[os[i]], win = c->window[i];
    if (outs * win <= 4000000) {
      for (int64_t o = 0; o < outs; o++)
        for (int64_t w = 0; w < win; w++) {
          int64_t p = o * c->stride[i] + w * c->rhs_dil[i] - lo;
          if (p >= 0 && p % c->lhs_dil[i] == 0 && p / c->lhs_dil[i] < in_n) n_ok++;
        }
      useful *= (double)n_ok;
    } else {
      useful *= (double)outs * (double)win;
    }
  }
  c->passes = precision_passes(op, x->dt, y->dt);
  c->flops = (int64_t)(2.0 * useful * (double)t->dims[ob] * (double)c->n * (double)c->k);
  return c;
}
