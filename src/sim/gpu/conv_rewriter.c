/* Convolutions as XLA hands them to cuDNN, before anything is fused.
 *
 * A filter is read, and its gradient written, with the result's features outside and the argument's inside of the
 * window; programs have it otherwise, so that it is turned. The image is padded the same on both sides: else an
 * array with its edge is made first, or, of a gradient, a larger result and its part cut out. cuDNN has three
 * functions: forwards, the gradient of the image (the filter turned around, perhaps places between the image's) and
 * the gradient of the filter; what is neither is computed forwards, with what lies between places written out. */
#include "ir/build.h"
#include "sim/gpu/gpu.h"
#include "sim/gpu/rewrite.h"

GpuConv gpu_conv_way(const HNode *n) {
  const HConv *v = n->conv;
  if (gpu_weight_gradient(n)) return GPU_CONV_FILTER;
  bool between = false;
  for (int i = 0; i < v->n_spatial; i++) {
    if (v->stride[i] > 1 || v->rhs_dil[i] > 1) return GPU_CONV_FORWARD;
    between |= v->lhs_dil[i] > 1;
  }
  bool turned = v->taps == 1 ? between : gpu_backwards(n);
  return turned && v->groups == 1 ? GPU_CONV_IMAGE : GPU_CONV_FORWARD;
}

/* ---- orders ---------------------------------------------------------------------------------- */

HNode *gpu_transposed(Expand *x, HNode *of, const HNode *n, const int64_t *perm) {
  int64_t d[64];
  for (int i = 0; i < x->made.n; i++) {
    HNode *t = x->made.v[i];
    if (t->kind == H_TRANSPOSE && t->in[0] == of &&
        !memcmp(t->dims, perm, sizeof *perm * (size_t)of->rank))
      return t;
  }
  for (int i = 0; i < of->rank; i++) d[i] = of->d[perm[i]];
  HNode *t = hlo_node(x->g, x->c, H_TRANSPOSE, OP_TRANSPOSE, n->src, of->dt, of->rank, d, 1, &of);
  t->n_dims = of->rank;
  t->dims = hlo_ints(x->g, perm, of->rank);
  *vec_push(&x->made) = t;
  return t;
}

/* Dimensions by their roles, as listed; false: so they lie already. */
static bool by_roles(const HNode *v, const char *roles, const char *order, int64_t *perm) {
  int w = 0;
  int64_t last = -1;
  bool moves = false;
  for (; *order; order++)
    for (int i = 0; i < v->rank; i++)
      if (roles[i] == *order) perm[w++] = i;
  for (int i = 0; i < w; i++) {
    if (v->d[perm[i]] == 1) continue;
    moves |= perm[i] < last;
    last = perm[i];
  }
  return moves && w == v->rank;
}

static char *permuted(Expand *x, const char *roles, const int64_t *perm, int rank) {
  char *r = arena_alloc(x->g->arena, (size_t)rank + 1);
  for (int i = 0; i < rank; i++) r[i] = roles[perm[i]];
  r[rank] = 0;
  return r;
}

static void turn_operand(Expand *x, HNode *n, int side, const char *order) {
  int64_t perm[64];
  const char **roles = side ? &n->conv->rhs : &n->conv->lhs;
  if (!by_roles(n->in[side], *roles, order, perm)) return;
  *roles = permuted(x, *roles, perm, n->in[side]->rank);
  n->in[side] = gpu_transposed(x, n->in[side], n, perm);
}

/* n as a new node of that size; n itself then becomes what is made of it. */
static HNode *moved_out(Expand *x, HNode *n, const int64_t *d, HKind kind, OpKind op) {
  HNode *w = hlo_node(x->g, x->c, H_CONV, n->op, n->src, n->dt, n->rank, d, 2, n->in);
  w->conv = n->conv;
  n->kind = kind;
  n->op = op;
  n->conv = NULL;
  n->n_in = 1;
  n->in[0] = w;
  return w;
}

static void turn_result(Expand *x, HNode *n, const char *order) {
  int64_t perm[64], back[64], d[64];
  if (!by_roles(n, n->conv->out, order, perm)) return;
  for (int i = 0; i < n->rank; i++) d[i] = n->d[perm[i]], back[perm[i]] = i;
  n->conv->out = permuted(x, n->conv->out, perm, n->rank);
  moved_out(x, n, d, H_TRANSPOSE, OP_TRANSPOSE);
  n->n_dims = n->rank;
  n->dims = hlo_ints(x->g, back, n->rank);
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* Of one side of the image: what the forward convolution pads before and at least after it, and what it may pad
 * more without another result. */
typedef struct Edge {
  int64_t lo, hi, more;
} Edge;

static Edge edge_of(const HNode *n, GpuConv way, const ConvDims *d, int i) {
  const HConv *v = n->conv;
  int64_t lo = d->padding[2 * i], hi = d->padding[2 * i + 1];
  if (way == GPU_CONV_FORWARD) return (Edge){lo, hi, 0};
  if (way == GPU_CONV_FILTER) return (Edge){lo, hi, v->rhs_dil[i] - 1};
  int64_t small = n->in[0]->d[d->in_spatial[i]], large = n->d[d->out_spatial[i]];
  Edge e = {.lo = v->window[i] - 1 - lo, .more = v->lhs_dil[i] - 1};
  e.hi = (small - 1) * v->lhs_dil[i] + v->window[i] - large - e.lo;
  return e;
}

static bool even(const Edge *e) { return e->lo >= e->hi && e->lo <= e->hi + e->more && e->lo >= 0; }

static HNode *padded(Expand *x, HNode *v, const HNode *n, const int64_t *lo, const int64_t *hi,
                     const int64_t *between) {
  int64_t d[64];
  size_t bytes = sizeof *lo * (size_t)v->rank;
  for (int i = 0; i < x->made.n; i++) {
    HNode *t = x->made.v[i];
    if (t->kind == H_PAD && t->in[0] == v && !memcmp(t->lo, lo, bytes) &&
        !memcmp(t->hi, hi, bytes) && !memcmp(t->step, between, bytes))
      return t;
  }
  for (int i = 0; i < v->rank; i++)
    d[i] = lo[i] + hi[i] + v->d[i] + between[i] * MAX(0, v->d[i] - 1);
  HNode *zero = hlo_node(x->g, x->c, H_CONST, OP_CONSTANT, n->src, v->dt, 0, NULL, 0, NULL);
  zero->splat = true;
  HNode *t =
      hlo_node(x->g, x->c, H_PAD, OP_PAD, n->src, v->dt, v->rank, d, 2, (HNode *[]){v, zero});
  t->lo = hlo_ints(x->g, lo, v->rank);
  t->hi = hlo_ints(x->g, hi, v->rank);
  t->step = hlo_ints(x->g, between, v->rank);
  *vec_push(&x->made) = t;
  return t;
}

static void pad_image(Expand *x, HNode *n, GpuConv way, const ConvDims *d) {
  int64_t lo[64] = {0}, hi[64] = {0}, between[64] = {0};
  bool uneven = false;
  for (int i = 0; i < d->n; i++) {
    Edge e = edge_of(n, way, d, i);
    int64_t at = d->in_spatial[i], apart = n->conv->lhs_dil[i] - 1;
    uneven |= !even(&e) || apart > 0;
    lo[at] = e.lo, hi[at] = e.hi, between[at] = apart;
  }
  if (uneven) n->in[0] = padded(x, n->in[0], n, lo, hi, between);
}

static void cut_image(Expand *x, HNode *n, const ConvDims *d) {
  int64_t lo[64] = {0}, hi[64], step[64], size[64];
  bool uneven = false;
  for (int i = 0; i < n->rank; i++) size[i] = hi[i] = n->d[i], step[i] = 1;
  for (int i = 0; i < d->n; i++) {
    Edge e = edge_of(n, GPU_CONV_IMAGE, d, i);
    int64_t at = d->out_spatial[i], least = MIN(e.lo, e.hi);
    if (even(&e)) continue;
    uneven = true;
    lo[at] = e.lo - MAX(0, least);
    hi[at] = lo[at] + n->d[at];
    size[at] = n->d[at] + e.lo + e.hi - 2 * MAX(0, least);
    if (lo[at] < 0 || size[at] < hi[at]) return;
  }
  if (!uneven) return;
  moved_out(x, n, size, H_SLICE, OP_SLICE);
  n->lo = hlo_ints(x->g, lo, n->rank);
  n->hi = hlo_ints(x->g, hi, n->rank);
  n->step = hlo_ints(x->g, step, n->rank);
}

/* Is the dimension of that role outermost? */
static bool outermost(const HNode *v, const char *roles, char role) {
  for (int i = 0; i < v->rank; i++)
    if (v->d[i] > 1) return roles[i] == role;
  return true;
}

void gpu_expand_conv(Expand *x, HNode *n) {
  if (!n->src || n->src->kind != OP_CONVOLUTION || n->rank > 64) return;
  const ConvDims d = b_conv_dims(n->src);
  GpuConv way = gpu_conv_way(n);
  n->conv = arena_dup(x->g->arena, n->conv, sizeof *n->conv);
  bool image = outermost(n->in[0], n->conv->lhs, 'm'); /* no gradient of a filter */
  bool apart = false;
  for (int i = 0; i < n->conv->n_spatial; i++) apart |= n->conv->lhs_dil[i] > 1;
  /* with places between in such a gradient the window is the image: cuDNN leaves them out itself */
  if (way != GPU_CONV_IMAGE && (image || !apart)) pad_image(x, n, way, &d);
  if (way == GPU_CONV_FILTER) {
    turn_result(x, n, "nsm");
    return;
  }
  turn_operand(x, n, 1, way == GPU_CONV_IMAGE ? "ksn" : "nsk");
  /* images lie as the program has them, or as their makers are told to write them */
  if (!image) turn_operand(x, n, 0, "msk");
  if (way == GPU_CONV_IMAGE) cut_image(x, n, &d);
  else if (!outermost(n, n->conv->out, 'm')) turn_result(x, n, "msn");
}
