/* pass_groups: convolutions of groups with windows larger than what is left of the image, as the
 * gradients of each example's weights are (vmap of grad), become products with the groups as
 * batches:
 *
 *   result[place, g]   =   sum over the window of image[place + window, g] weights[window, g]
 *
 * The parts of the image that the places see stand side by side if they are small, so that it is one
 * product; otherwise there is one for each place. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

#define MOST_PLACES 128
#define SIDE_BY_SIDE (64 << 20) /* bytes */

typedef struct Conv {
  ConvDims d;
  const Type *l, *r, *o;
  int64_t places, groups;
} Conv;

static bool conv_of(const Op *op, Conv *c) {
  *c = (Conv){.l = op->operands[0]->type, .r = op->operands[1]->type, .o = op_type(op)};
  if (c->l->quant || c->r->quant || c->o->quant || c->l->dtype != c->r->dtype ||
      !type_is_static(c->l) || !type_is_static(c->r) || !type_is_static(c->o) ||
      c->l->rank + 3 > B_MAX_RANK || type_count(c->l) == 0 || type_count(c->o) == 0)
    return false;
  c->d = b_conv_dims(op);
  int64_t window = 1;
  c->places = 1;
  c->groups = c->d.feature_groups;
  for (int i = 0; i < c->d.n; i++) {
    if (c->d.lhs_dilation[i] != 1 || c->d.reversal[i]) return false;
    window *= c->r->dims[c->d.k_spatial[i]];
    c->places *= c->o->dims[c->d.out_spatial[i]];
  }
  int64_t features = c->r->dims[c->d.k_in] * c->r->dims[c->d.k_out] / c->groups;
  return c->groups > 1 && features > 1 && c->d.batch_groups == 1 && c->places <= MOST_PLACES &&
         2 * c->places <= window;
}

/* The image with its edges. */
static Value *padded(Build *b, const Conv *c, Value *x) {
  int64_t low[B_MAX_RANK] = {0}, high[B_MAX_RANK] = {0};
  bool any = false;
  for (int i = 0; i < c->d.n; i++) {
    low[c->d.in_spatial[i]] = c->d.padding[2 * i];
    high[c->d.in_spatial[i]] = c->d.padding[2 * i + 1];
    any |= c->d.padding[2 * i] || c->d.padding[2 * i + 1];
  }
  return any ? b_pad(b, x, b_scalar(b, x->type->dtype, 0), low, high, NULL) : x;
}

/* What place number `at` sees of it. */
static Value *seen(Build *b, const Conv *c, Value *x, int64_t at) {
  int64_t start[B_MAX_RANK] = {0}, limit[B_MAX_RANK], step[B_MAX_RANK];
  for (int i = 0; i < x->type->rank; i++) limit[i] = b_dim(x, i), step[i] = 1;
  for (int i = c->d.n - 1; i >= 0; i--) {
    int64_t k = c->d.in_spatial[i], size = c->o->dims[c->d.out_spatial[i]];
    start[k] = at % size * c->d.strides[i];
    at /= size;
    step[k] = c->d.rhs_dilation[i];
    limit[k] = start[k] + (c->r->dims[c->d.k_spatial[i]] - 1) * step[k] + 1;
  }
  return b_slice(b, x, start, limit, step);
}

/* [places, batch, ...] with its feature dimension divided into groups, times the weights:
 * [groups, places, batch, features of a group]. */
static Value *product(Build *b, const Conv *c, Value *x, Value *w, Attr *precision) {
  int64_t dims[B_MAX_RANK];
  int at = (int)c->d.in_feature + 1, n = b_rank(x); /* after the places */
  for (int i = 0; i < n; i++) dims[i + (i > at)] = b_dim(x, i);
  dims[at] = c->groups;
  dims[at + 1] = b_dim(x, at) / c->groups;
  x = b_reshape(b, x, n + 1, dims);
  int of = (int)c->d.k_out;
  for (int i = 0; i < b_rank(w); i++) dims[i + (i > of)] = b_dim(w, i);
  dims[of] = c->groups;
  dims[of + 1] = b_dim(w, of) / c->groups;
  w = b_reshape(b, w, b_rank(w) + 1, dims);
  DotDims d = {.n_batch = 1, .lhs_batch = {at}, .rhs_batch = {of}, .n_contract = c->d.n + 1};
  d.lhs_contract[0] = at + 1;
  d.rhs_contract[0] = c->d.k_in + (c->d.k_in > of);
  for (int i = 0; i < c->d.n; i++) {
    int64_t l = c->d.in_spatial[i] + 1, r = c->d.k_spatial[i];
    d.lhs_contract[i + 1] = l + (l > at);
    d.rhs_contract[i + 1] = r + (r > of);
  }
  return b_dot(b, x, w, &d, c->o->dtype, precision);
}

static Value *rewritten(Build *b, const Op *op) {
  Conv c;
  if (!conv_of(op, &c)) return NULL;
  Value *x = padded(b, &c, op->operands[0]), *parts[MOST_PLACES];
  int64_t dims[B_MAX_RANK], bytes = 0;
  Attr *precision = op_attr(op, "precision_config");
  for (int64_t p = 0; p < c.places; p++) {
    Value *v = seen(b, &c, x, p);
    dims[0] = 1;
    for (int i = 0; i < b_rank(v); i++) dims[i + 1] = b_dim(v, i);
    parts[p] = b_reshape(b, v, b_rank(v) + 1, dims);
    bytes += type_bytes(v->type);
  }
  Value *y;
  if (bytes <= SIDE_BY_SIDE) {
    y = product(b, &c, b_concat(b, (int)c.places, parts, 0), op->operands[1], precision);
  } else {
    for (int64_t p = 0; p < c.places; p++)
      parts[p] = product(b, &c, parts[p], op->operands[1], precision);
    y = b_concat(b, (int)c.places, parts, 1);
  }
  /* [groups, places.., batch, features] to the result's order, groups beside features */
  int perm[B_MAX_RANK], n = 0;
  dims[n++] = c.groups;
  for (int i = 0; i < c.d.n; i++) dims[n++] = c.o->dims[c.d.out_spatial[i]];
  dims[n++] = c.o->dims[c.d.out_batch];
  dims[n++] = c.o->dims[c.d.out_feature] / c.groups;
  y = b_reshape(b, y, n, dims);
  for (int i = 0, k = 0; i < c.o->rank; i++) {
    if (i == c.d.out_feature) perm[k++] = 0;
    int from = i == c.d.out_feature ? n - 1 : n - 2;
    for (int j = 0; j < c.d.n; j++)
      if (i == c.d.out_spatial[j]) from = j + 1;
    perm[k++] = from;
  }
  return b_reshape(b, b_transpose(b, y, perm), c.o->rank, c.o->dims);
}

Err *pass_groups(Module *m) {
  compile_rewrite(m, OP_CONVOLUTION, rewritten);
  return NULL;
}
