/* dot and convolution in one description: sizes, roles of dimensions, useful operations. */
#include "ir/build.h"
#include "sim/hlo/hlo.h"

static bool of_f32(DType t) { return t == DT_F32 || t == DT_C64; }

static int precision_passes(const Op *op, DType a, DType bt) {
  if (!of_f32(a) && !of_f32(bt)) return 1;
  Attr *p = op_attr(op, "precision_config");
  int passes = 1;
  if (p && p->kind == AT_ARRAY)
    for (int i = 0; i < p->n; i++) {
      if (str_is(p->items[i]->s, "HIGHEST")) passes = MAX(passes, 6);
      if (str_is(p->items[i]->s, "HIGH")) passes = MAX(passes, 3);
    }
  return passes;
}

/* Products of real numbers that one of complex ones takes at least, as XLA expands it on a TPU; cuBLAS takes four. */
static int real_products(DType t) { return dtype_is_complex(t) ? 3 : 1; }

static char *roles(HGraph *g, int rank, char fill) {
  char *r = arena_alloc(g->arena, (size_t)rank + 1);
  memset(r, fill, (size_t)rank);
  r[rank] = 0;
  return r;
}

HConv *hlo_dot_info(Maker *b, const Op *op, HNode *x, HNode *y) {
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
    if (b_has_dim(nlb, lb, i)) lr[i] = 'b', c->batch *= x->d[i];
    else if (b_has_dim(nlc, lc, i)) lr[i] = 'k', c->k *= x->d[i];
    else c->m *= x->d[i];
  }
  for (int i = 0; i < y->rank; i++) {
    if (b_has_dim(nrb, rb, i)) rr[i] = 'b';
    else if (b_has_dim(nrc, rc, i)) rr[i] = 'k';
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
  c->cut_to_one = op_attr(op, ATTR_CUT_TO_ONE) != NULL;
  c->flops = 2 * c->batch * c->m * c->n * c->k * real_products(x->dt);
  return c;
}

/* One side of a product that contracts nothing, spread over the result: its dimensions with role
 * `free` start at result dimension `at`, its batch dimensions are the first, in `batch` order. */
static HNode *spread_side(Maker *b, const Op *op, HNode *x, const char *roles_of, char free, int at,
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
HNode *hlo_outer_product(Maker *b, const Op *op, const HConv *c, HNode *x, HNode *y) {
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

HConv *hlo_conv_info(Maker *b, const Op *op, HNode *x, HNode *y) {
  HConv *c = ARENA_NEW(b->g->arena, HConv);
  const Type *t = op_type(op);
  const ConvDims d = b_conv_dims(op);
  int ns = d.n;
  char *lr = roles(b->g, x->rank, 's'), *rr = roles(b->g, y->rank, 's'),
       *orl = roles(b->g, t->rank, 's');
  lr[d.in_batch] = 'm';
  lr[d.in_feature] = 'k';
  rr[d.k_in] = 'k';
  rr[d.k_out] = 'n';
  orl[d.out_batch] = 'm';
  orl[d.out_feature] = 'n';
  c->lhs = lr;
  c->rhs = rr;
  c->out = orl;
  c->is_conv = true;
  c->groups = MAX(d.feature_groups, d.batch_groups);
  c->batch = 1;
  c->n = t->dims[d.out_feature];
  c->k = y->d[d.k_in];
  c->m = t->dims[d.out_batch];
  c->taps = 1;
  c->n_spatial = ns;
  c->window = arena_alloc(b->g->arena, sizeof(int64_t) * (size_t)(ns ? ns : 1) * 4);
  c->stride = c->window + ns;
  c->lhs_dil = c->stride + ns;
  c->rhs_dil = c->lhs_dil + ns;
  for (int i = 0; i < ns; i++) {
    c->stride[i] = d.strides[i];
    c->lhs_dil[i] = d.lhs_dilation[i];
    c->rhs_dil[i] = d.rhs_dilation[i];
  }
  double useful =
      1; /* valid (output, tap) pairs per spatial dimension, padding and holes left out */
  for (int i = 0; i < ns; i++) {
    c->window[i] = y->d[d.k_spatial[i]];
    c->taps *= y->d[d.k_spatial[i]];
    c->m *= t->dims[d.out_spatial[i]];
    int64_t lo = d.padding[2 * i], in_n = x->d[d.in_spatial[i]], n_ok = 0;
    int64_t outs = t->dims[d.out_spatial[i]], win = c->window[i];
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
  c->flops = (int64_t)(2.0 * useful * (double)t->dims[d.out_batch] * (double)c->n * (double)c->k *
                       real_products(x->dt));
  return c;
}
