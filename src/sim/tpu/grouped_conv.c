/* Convolutions of a few groups of features. The compiler gives the groups a dimension of their own,
 * along which no position reaches another, and joins them with the features afterwards by a copy that
 * puts them beside each other. Gradients of filters have both operands stored so. */
#include <stdlib.h>

#include "ir/build.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

#define FILLS 128 /* features a group from which on it stays as it is */
#define NARROW 32 /* with fewer a row of the image lies in lanes, not they */

/* x with dimension `at` taken apart into groups and what is in one. */
static HNode *taken_apart(HGraph *g, const HNode *n, HNode *x, int64_t at, int64_t groups) {
  int64_t d[64];
  for (int i = 0; i < x->rank; i++) d[i + (i > at)] = x->d[i];
  d[at] = groups;
  d[at + 1] = x->d[at] / groups;
  return hlo_node(g, n->comp, H_RESHAPE, OP_RESHAPE, n->src, x->dt, x->rank + 1, d, 1, &x);
}

/* Roles of an array that was taken apart so: the groups are one more spatial dimension. */
static const char *apart_roles(HGraph *g, const char *roles, int64_t at) {
  size_t n = strlen(roles);
  char *r = arena_alloc(g->arena, n + 2);
  memcpy(r, roles, (size_t)at);
  r[at] = 's';
  memcpy(r + at + 1, roles + at, n - (size_t)at + 1);
  return r;
}

static int64_t up(int64_t n, int64_t of) { return (n + of - 1) / of * of; }

/* Do images pad a tile less in its lanes than the features of a group do? */
static bool images_in_lanes(int64_t images, int64_t features) {
  return up(images, 128) * up(features, 8) < up(features, 128) * up(images, 8);
}

void tpu_split_groups(HGraph *g, HNode *n) {
  const HConv *c = n->conv;
  if (c->groups < 2 || c->groups >= c->n || c->k < 2 || !n->src || n->part ||
      c->n / c->groups >= FILLS)
    return;
  ConvDims d = b_conv_dims(n->src);
  int64_t groups = c->groups, lhs = d.batch_groups > 1 ? d.in_batch : d.in_feature,
          out = d.out_feature, size[64];
  HNode *in[2] = {n->in[0], n->in[1]};
  if (in[0]->rank != d.n + 2 || in[1]->rank != d.n + 2 || n->rank != d.n + 2 ||
      in[0]->d[lhs] % groups || in[1]->d[d.k_out] % groups || n->d[out] % groups)
    return;
  in[0] = taken_apart(g, n, in[0], lhs, groups);
  in[1] = taken_apart(g, n, in[1], d.k_out, groups);
  for (int i = 0; i < 2 && d.batch_groups > 1; i++) in[i]->apart = true;
  for (int i = 0; i < n->rank; i++) size[i + (i > out)] = n->d[i];
  size[out] = groups;
  size[out + 1] = n->d[out] / groups;
  HNode *m = hlo_node(g, n->comp, H_CONV, n->op, n->src, n->dt, n->rank + 1, size, 2, in);
  m->conv = arena_dup(g->arena, c, sizeof *c);
  m->conv->groups = 1;
  m->conv->m *= groups;
  m->conv->n /= groups;
  m->conv->lhs = apart_roles(g, c->lhs, lhs);
  m->conv->rhs = apart_roles(g, c->rhs, d.k_out);
  m->conv->out = apart_roles(g, c->out, out);
  bool filters = d.batch_groups > 1;
  if (!filters) in[0]->apart = images_in_lanes(n->in[0]->d[d.in_batch], c->k);
  m->apart = m->part = true;
  if (!filters && images_in_lanes(n->d[d.out_batch], c->n / groups)) {
    n->part = true; /* joined as they lie */
  } else {
    int64_t last = d.n ? d.out_spatial[d.n - 1] : 0;
    m = hlo_node(g, n->comp, H_EWISE, OP_COPY, n->src, n->dt, n->rank + 1, size, 1, &m);
    m->rows = 1 + (int)(d.n && c->n / groups < NARROW ? last + (last > out) : out);
    m->apart = m->part = true;
  }
  n->kind = H_RESHAPE; /* of what is beside each other */
  n->op = OP_RESHAPE;
  n->conv = NULL;
  n->n_in = 1;
  n->in = arena_dup(g->arena, &m, sizeof m);
}

bool tpu_scale_channels(HGraph *g, HNode *n) {
  const HConv *c = n->conv;
  HNode *image = n->in[0], *factors = n->in[1];
  if (c->taps != 1 || c->k != 1 || c->groups != c->n || c->groups < 2 || n->part || !n->src ||
      !hlo_same_shape(image, n->rank, n->d) || image->dt != n->dt)
    return false;
  ConvDims d = b_conv_dims(n->src);
  int64_t channel = d.out_feature;
  if (channel != d.in_feature) return false;
  factors = hlo_node(g, n->comp, H_RESHAPE, OP_RESHAPE, n->src, factors->dt, 1, &n->d[channel], 1,
                     &factors);
  factors = hlo_node(g, n->comp, H_BCAST, OP_BROADCAST_IN_DIM, n->src, factors->dt, n->rank, n->d,
                     1, &factors);
  factors->n_dims = 1;
  factors->dims = hlo_ints(g, &channel, 1);
  n->conv = NULL;
  n->kind = H_EWISE;
  n->op = OP_MULTIPLY;
  n->in = arena_dup(g->arena, (HNode *[]){image, factors}, 2 * sizeof *n->in);
  return true;
}
