/* Convolutions of a few groups of features. The compiler gives the groups a dimension of their own,
 * along which no position reaches another, and joins them with the features afterwards by a copy that
 * puts them beside each other. Gradients of filters have both operands stored so. */
#include <stdlib.h>

#include "ir/build.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

#define FILLS 128 /* features a group from which on it stays as it is */
#define SUBLANES 8
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

/* The spatial dimensions of a convolution and one more, the groups: each position of it sees one of the
 * image's, between which are holes. */
static void spread_groups(HGraph *g, HConv *c, int64_t groups) {
  int s = c->n_spatial;
  int64_t *all = arena_alloc(g->arena, sizeof(int64_t) * (size_t)(s + 1) * 4),
          more[] = {groups, groups - 1, groups, 1};
  const int64_t *had[] = {c->window, c->stride, c->lhs_dil, c->rhs_dil};
  for (int i = 0; i < 4; i++) {
    memcpy(all + i * (s + 1), had[i], sizeof(int64_t) * (size_t)s);
    all[i * (s + 1) + s] = more[i];
  }
  c->window = all;
  c->stride = all + (s + 1);
  c->lhs_dil = all + 2 * (s + 1);
  c->rhs_dil = all + 3 * (s + 1);
  c->n_spatial++;
  c->taps *= groups;
}

/* Images in lanes, features in sublanes (or the other way round), then the groups and the positions. */
static void lie_by_images(HGraph *g, HNode *n, const char *roles, int64_t group, bool lanes) {
  int order[64], k = 0;
  int64_t image = (int64_t)(strchr(roles, 'm') - roles), feature = 0;
  while (feature < n->rank && (roles[feature] == 'm' || roles[feature] == 's')) feature++;
  order[k++] = (int)(lanes ? image : feature);
  order[k++] = (int)(lanes ? feature : image);
  order[k++] = (int)group;
  for (int i = n->rank - 1; i >= 0; i--)
    if (i != image && i != feature && i != group) order[k++] = i;
  tpu_lie(g, n, order);
}

/* A copy of x that is stored in that order. */
static HNode *copied(HGraph *g, const HNode *n, HNode *x, const int *order) {
  HNode *y = hlo_node(g, n->comp, H_EWISE, OP_COPY, n->src, x->dt, x->rank, x->d, 1, &x);
  tpu_lie(g, y, order);
  return y;
}

/* What n rows come to in the lowest tile that holds them. */
static int64_t tile_rows(int64_t n) { return n <= 2 ? 2 : n <= 4 ? 4 : up(n, SUBLANES); }

static double padded(int64_t n, int64_t of) { return (double)up(n, of) / (double)n; }

/* An order in which dimension `at` can be taken apart without a move, as it lies outside of tiles: what
 * pads least of images or the last dimension in lanes, and of the others in sublanes. */
static void order_to_split(const HNode *x, int64_t image, int64_t at, int *order) {
  int last = x->rank - 1, k = 0;
  while (last == image || last == at) last--;
  bool lanes = padded(x->d[image], 128) < padded(x->d[last], 128);
  order[k++] = lanes ? (int)image : last;
  int rows = lanes ? last : (int)image;
  for (int i = last - 1; i >= 0; i--)
    if (i != image && i != at && padded(x->d[i], 8) < padded(x->d[rows], 8)) rows = i;
  order[k++] = rows;
  order[k++] = (int)at;
  for (int i = x->rank - 1; i >= 0; i--)
    if (i != order[0] && i != order[1] && i != at) order[k++] = i;
}

/* The image by groups: a copy that can be taken apart, and if its images do not lie in lanes then, one
 * that lies as the product has it. */
static HNode *image_by_groups(HGraph *g, HNode *n, const ConvDims *d, const HConv *to) {
  int64_t at = d->in_feature;
  int order[64], split[64];
  order_to_split(n->in[0], d->in_batch, at, order);
  for (int i = 0, k = 0; i < n->rank; i++) {
    if (order[i] == at) split[k++] = (int)at + 1;
    split[k++] = order[i] + (order[i] > at);
  }
  HNode *x = taken_apart(g, n, copied(g, n, n->in[0], order), at, n->conv->groups);
  tpu_lie(g, x, split);
  x->view = true;
  if (order[0] == d->in_batch) return x;
  x = hlo_node(g, n->comp, H_EWISE, OP_COPY, n->src, x->dt, x->rank, x->d, 1, &x);
  lie_by_images(g, x, to->lhs, at, tile_rows(n->in[0]->d[d->in_batch]) > tile_rows(n->conv->k));
  return x;
}

/* What comes out without the dimension of one: the memory of it, stored. */
static void joined_as_it_lies(HGraph *g, HNode *n, const HNode *m, int64_t out) {
  int order[64], k = 0;
  for (int i = 0; i < m->rank; i++)
    if (m->lies[i] != out + 1) order[k++] = m->lies[i] - (m->lies[i] > out + 1);
  tpu_lie(g, n, order);
  n->view = true;
}

/* Several features in a group and one that comes out, as towards the image of a depthwise convolution
 * with several results each: the groups are spread out along a dimension of their own, and each position
 * of it is a product of its own. Images lie in lanes, but where eight of them fill a tile's sublanes. */
static void one_of_each_group(HGraph *g, HNode *n) {
  const HConv *c = n->conv;
  ConvDims d = b_conv_dims(n->src);
  int64_t groups = c->groups, out = d.out_feature, size[64];
  HConv *to = arena_dup(g->arena, c, sizeof *c);
  to->groups = to->n = 1;
  to->groups_apart = true;
  to->m *= groups;
  to->lhs = apart_roles(g, c->lhs, d.in_feature);
  to->rhs = apart_roles(g, c->rhs, d.k_out);
  to->out = apart_roles(g, c->out, out);
  spread_groups(g, to, groups);
  HNode *in[2] = {image_by_groups(g, n, &d, to), taken_apart(g, n, n->in[1], d.k_out, groups)};
  for (int i = 0; i < n->rank; i++) size[i + (i > out)] = n->d[i];
  size[out + 1] = 1;
  HNode *m = hlo_node(g, n->comp, H_CONV, n->op, n->src, n->dt, n->rank + 1, size, 2, in);
  m->conv = to;
  bool lanes = n->d[d.out_batch] != SUBLANES;
  lie_by_images(g, m, to->out, out, lanes);
  m->part = true;
  if (lanes) joined_as_it_lies(g, n, m, out);
  n->kind = H_RESHAPE;
  n->op = OP_RESHAPE;
  n->conv = NULL;
  n->n_in = 1;
  n->in = arena_dup(g->arena, &m, sizeof m);
}

void tpu_split_groups(HGraph *g, HNode *n) {
  const HConv *c = n->conv;
  if (c->groups > 1 && c->groups == c->n && c->k > 1 && c->taps > 1 && n->src && !n->part &&
      b_conv_dims(n->src).batch_groups == 1) {
    one_of_each_group(g, n);
    return;
  }
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
