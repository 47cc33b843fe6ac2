/* Space moved into the batch. A batch of a few images would leave most rows of a tile empty, so the
 * compiler for TPUs cuts their last spatial dimension into parts that become images of their own: in a
 * convolution first, then in whatever can work on the parts as well, which hands them on. Where
 * something cannot, the image is put together again. The order matters: the convolutions are visited as
 * a walk from the results meets them, and each goes on through its readers, the nearest first. Linear
 * in the graph. The rules are those of XLA's space-to-batch conversion, which libtpu runs. */
#include <stdlib.h>

#include "sim/tpu/space_to_batch.h"
#include "sim/tpu/tpu.h"

#define FAR 10 /* operations between a convolution and a pooling that its parts must suit */

typedef struct Batch {
  HGraph *g;
  Maker make;
  int known;   /* nodes with smaller numbers were there before */
  Cut **cut;   /* by number: its parts stand for it */
  HNode **now; /* by number: this stands for it, in the same shape */
  bool *seen;  /* by number: convolutions that were visited */
  double limit;
  VEC(HNode *) waiting; /* convolutions that may yet find their operands cut */
} Batch;

static Cut *cut_of(const Batch *b, const HNode *n) {
  return n->id < b->known ? b->cut[n->id] : NULL;
}
static bool done(const Batch *b, const HNode *n) { return b->cut[n->id] || b->now[n->id]; }
static int64_t part_of(const Cut *c) { return c->now->d[c->to[c->space]]; }

static Cut *cut_new(Batch *b, const HNode *n, const Cut *like) {
  Cut *c = ARENA_NEW(b->g->arena, Cut);
  if (like) *c = *like;
  return b->cut[n->id] = c;
}

/* Is it a convolution that can start or go on with its image in parts? */
static bool suits(const Batch *b, const HNode *n) {
  if (n->kind != H_CONV || !n->conv->is_conv || n->rank > CUT_RANK || n->rank < 3 || !n->src ||
      n->in[0]->rank != n->rank || n->in[1]->kind == H_REVERSE ||
      (n->conv->groups > 1 && n->conv->k > 1))
    return false;
  ConvDims d = b_conv_dims(n->src);
  Reach w = batch_window(n, &d);
  int last = d.n - 1;
  if (d.batch_groups != 1 ||
      (w.filter > 1 && n->in[1]->d[d.k_spatial[last]] >= n->d[d.out_spatial[last]]))
    return false;
  if (w.image > 1) {
    bool lies = w.low == 0 ? w.kernel == 1 : w.low == w.image - 1 || w.low == w.image;
    if (w.stride != 1 || !lies || (w.low == w.image && w.size < 3 * SPLITS)) return false;
  }
  return n->in[0]->d[d.in_batch] <= b->limit && w.halo <= (w.size + SPLITS - 1) / SPLITS;
}

/* The pooling that a convolution's result comes to, through what keeps its shape. */
static const HNode *pooled(const HNode *n, int depth) {
  for (int i = 0; i < n->n_users && depth > 0; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_RWIN || u->kind == H_SELSCAT) return u;
    if (u->kind == H_CONV || u->kind == H_PAD || u->kind == H_TRANSPOSE) continue;
    const HNode *p = pooled(u, depth - 1);
    if (p) return p;
  }
  return NULL;
}

/* ---- what works on parts ---------------------------------------------------------------------- */

/* Does it repeat the same for all elements of the dimension that is cut? */
static bool repeats(const HNode *n, const Cut *like) {
  if (n->kind == H_CONST) return n->splat;
  if (n->kind != H_BCAST) return false;
  for (int i = 0; i < n->n_dims; i++)
    if (n->dims[i] == like->space) return false;
  return true;
}

static bool same_lie(const Cut *a, const Cut *c, const HNode *n) {
  if (a->batch != c->batch || a->space != c->space) return false;
  for (int i = 0; i < n->rank; i++)
    if (a->to[i] != c->to[i]) return false;
  return true;
}

/* The cut operand that the others follow: the one with the longest parts. NULL when not all operands
 * are there. */
static const Cut *ewise_lead(const Batch *b, const HNode *n, const Cut *by) {
  const Cut *lead = by;
  if (n->op == OP_UNKNOWN || n->op == OP_COPY || n->rank > CUT_RANK) return NULL;
  for (int i = 0; i < n->n_in; i++) {
    const HNode *x = n->in[i];
    const Cut *c = cut_of(b, x);
    if (!hlo_same_shape(x, n->rank, n->d)) return NULL;
    if (!c && !repeats(x, by)) return NULL;
    if (!c) continue;
    if (!same_lie(c, by, n)) return NULL;
    if (part_of(c) > part_of(lead)) lead = c;
  }
  for (int i = 0; i < n->n_in; i++) {
    const Cut *c = cut_of(b, n->in[i]);
    if (c && part_of(c) != part_of(lead) && n->n_in != 2 && n->op != OP_SELECT) return NULL;
  }
  return lead;
}

/* A broadcast, or a constant, in the shape of parts. */
static HNode *repeated(Batch *b, HNode *x, const Cut *like) {
  Maker *m = &b->make;
  const HNode *now = like->now;
  if (x->kind == H_CONST) return hlo_const(m, x->src, x->dt, now->rank, now->d, x->value);
  int64_t map[CUT_RANK], d[CUT_RANK];
  int at = like->to[like->batch];
  bool batch = false; /* varies over the images */
  memcpy(d, now->d, sizeof *d * (size_t)now->rank);
  for (int i = 0; i < x->n_dims; i++) {
    map[i] = like->to[x->dims[i]];
    batch |= x->dims[i] == like->batch;
  }
  if (batch) d[at] /= SPLITS, d[at + 1] *= SPLITS;
  HNode *n = hlo_bcast(m, x->src, x->in[0], now->rank, d, map);
  if (batch) n->apart = true; /* its parts are views of it */
  return batch ? hlo_reshape(m, x->src, n, now->rank, now->d) : n;
}

static bool ewise(Batch *b, HNode *n, const Cut *by) {
  const Cut *lead = ewise_lead(b, n, by);
  if (!lead) return false;
  HNode **in = ARENA_ARRAY(b->g->arena, HNode *, n->n_in + 1);
  bool spread = false; /* takes in what is repeated for each image: nobody reads that twice */
  for (int i = 0; i < n->n_in; i++) {
    const Cut *c = cut_of(b, n->in[i]);
    if (!c) in[i] = repeated(b, n->in[i], lead), spread |= in[i]->kind == H_RESHAPE;
    else if (part_of(c) == part_of(lead)) in[i] = c->now;
    else in[i] = halo_resize(&b->make, n->src, c->now, c->to[c->batch], part_of(lead));
  }
  Cut *out = cut_new(b, n, lead);
  out->now = hlo_ewise(&b->make, n->op, n->src, n->dt, lead->now->rank, lead->now->d, n->n_in, in);
  out->now->apart |= spread && n->n_users > 1;
  return true;
}

/* Concatenations, slices and padding along other dimensions. */
static bool moved(Batch *b, HNode *n, const Cut *by) {
  int r = n->rank, at = by->to[by->batch];
  int64_t d[CUT_RANK];
  if (r > CUT_RANK) return false;
  bool concat = n->kind == H_CONCAT, reverse = n->kind == H_REVERSE;
  HNode **in = ARENA_ARRAY(b->g->arena, HNode *, n->n_in + 1);
  for (int i = 0; i < n->n_in; i++) {
    const Cut *c = cut_of(b, n->in[i]);
    in[i] = c ? c->now : n->in[i];
    if (i == 0 || concat)
      if (!c || !same_lie(c, by, n) || part_of(c) != part_of(by)) return false;
  }
  int sides[2] = {by->batch, by->space};
  for (int i = 0; i < 2; i++) {
    int s = sides[i];
    if (concat && n->index == s) return false;
    for (int k = 0; reverse && k < n->n_dims; k++)
      if (n->dims[k] == s) return false;
    if ((n->kind == H_SLICE || n->kind == H_PAD) && n->d[s] != n->in[0]->d[s]) return false;
    if (n->kind == H_PAD && (n->lo[s] || n->hi[s])) return false;
  }
  for (int i = 0; i < r; i++) d[by->to[i]] = n->d[i];
  d[at] = by->now->d[at];
  d[at + 1] = by->now->d[at + 1];
  Cut *out = cut_new(b, n, by);
  HNode *m = hlo_node(b->g, b->make.comp, n->kind, n->op, n->src, n->dt, r, d, n->n_in, in);
  out->now = m;
  if (concat) m->index = by->to[n->index];
  if (reverse) {
    m->n_dims = n->n_dims;
    m->dims = hlo_ints(b->g, n->dims, n->n_dims);
    for (int k = 0; k < n->n_dims; k++) m->dims[k] = by->to[n->dims[k]];
  }
  if (!concat && !reverse) {
    m->lo = hlo_ints(b->g, d, r);
    m->hi = hlo_ints(b->g, d, r);
    m->step = hlo_ints(b->g, d, r);
    for (int i = 0; i < r; i++) {
      bool side = n->kind == H_SLICE && (i == by->batch || i == by->space);
      m->lo[by->to[i]] = n->lo[i];
      m->hi[by->to[i]] = side ? d[by->to[i]] : n->hi[i];
      m->step[by->to[i]] = n->step[i];
    }
  }
  return true;
}

/* Over all images and all of the dimension that is cut: what lies beyond their ends is left out. */
static bool reduced(Batch *b, HNode *n, const Cut *by) {
  const HNode *init = n->n_in == 2 ? n->in[1] : NULL;
  int both = 0;
  for (int i = 0; i < n->n_dims; i++) both += n->dims[i] == by->batch || n->dims[i] == by->space;
  if (both != 2 || !init || init->kind != H_CONST || !init->splat || n->n_results != 1)
    return false;
  HNode *in[2] = {
      halo_valid(&b->make, n->src, by->now, by->to[by->batch], n->in[0]->d[by->space], init->value),
      n->in[1]};
  HNode *m = hlo_node(b->g, b->make.comp, n->kind, n->op, n->src, n->dt, n->rank, n->d, 2, in);
  m->n_dims = n->n_dims;
  m->dims = hlo_ints(b->g, n->dims, n->n_dims);
  for (int i = 0; i < n->n_dims; i++) m->dims[i] = by->to[n->dims[i]];
  b->now[n->id] = m;
  return true;
}

static bool conv_follows(const Batch *b, const HNode *n, const Cut *by) {
  if (!suits(b, n) || cut_of(b, n->in[0]) != by) return false;
  ConvDims d = b_conv_dims(n->src);
  Reach w = batch_window(n, &d);
  bool reaches = w.low <= w.halo; /* no further than the part before */
  return reaches && by->batch == d.in_batch && by->space == d.in_spatial[d.n - 1];
}

static bool filter_gradient(Batch *b, HNode *n) {
  if (n->kind != H_CONV || !n->conv->is_conv || !n->src || n->rank >= CUT_RANK ||
      n->in[0]->rank != n->rank || n->in[1]->rank != n->rank ||
      !batch_filter_fits(n, cut_of(b, n->in[0]), cut_of(b, n->in[1])))
    return false;
  b->now[n->id] = batch_filter(&b->make, n, cut_of(b, n->in[0]), cut_of(b, n->in[1]));
  return true;
}

/* Makes n of the parts of its operand; false when it cannot (yet). */
static bool follow(Batch *b, HNode *n, HNode *operand) {
  Cut *by = b->cut[operand->id];
  if (n->comp != b->make.comp || n->id >= b->known || done(b, n)) return false;
  switch (n->kind) {
  case H_EWISE: return ewise(b, n, by);
  case H_CONCAT:
  case H_SLICE:
  case H_PAD:
  case H_REVERSE: return moved(b, n, by);
  case H_REDUCE: return n->in[0] == operand && reduced(b, n, by);
  case H_CONV:
    if (n->in[0] == operand && conv_follows(b, n, by)) {
      b->seen[n->id] = true;
      batch_conv(&b->make, n, by, cut_new(b, n, NULL));
      return true;
    }
    if (suits(b, n)) return false;
    *vec_push(&b->waiting) = n;
    return filter_gradient(b, n);
  default: return false;
  }
}

/* ---- the pass --------------------------------------------------------------------------------- */

static void start(Batch *b, HNode *conv) {
  b->seen[conv->id] = true;
  ConvDims d = b_conv_dims(conv->src);
  Reach w = batch_window(conv, &d);
  if (w.size < 2 * SPLITS) return;
  const HNode *p = pooled(conv, FAR);
  bool same = p && p->n_results == 1 && p->rank == conv->rank && p->step;
  batch_start_conv(&b->make, conv, same ? p->step[d.out_spatial[d.n - 1]] : 1,
                   cut_new(b, conv, NULL));
  VEC(HNode *) queue = {0};
  *vec_push(&queue) = conv;
  for (int i = 0; i < queue.n; i++) {
    HNode *x = queue.v[i];
    for (int u = 0; u < x->n_users; u++) {
      HNode *n = x->users[u];
      if (follow(b, n, x) && b->cut[n->id]) *vec_push(&queue) = n;
    }
  }
  vec_free(&queue);
}

/* The image again, as everybody else knows it. */
static HNode *put_together(Batch *b, HNode *n) {
  const Cut *c = b->cut[n->id];
  if (b->now[n->id]) return b->now[n->id];
  int64_t from[CUT_RANK];
  HNode *x = halo_join(&b->make, n->src, c->now, c->to[c->batch], n->d[c->space]);
  for (int i = 0; i < n->rank; i++) from[i] = c->to[i];
  return b->now[n->id] = hlo_transpose(&b->make, n->src, x, from);
}

static HNode *stands_for(Batch *b, HNode *n) {
  if (n->id >= b->known) return n;
  return b->cut[n->id] ? put_together(b, n) : b->now[n->id] ? b->now[n->id] : n;
}

static void move_space(Batch *b, HComp *c) {
  b->make.comp = c;
  unsigned char *mark = calloc((size_t)b->known + 1, 1);
  HNode **order = NULL;
  int n = 0, cap = 0;
  for (int i = 0; i < c->outputs.n; i++)
    if (c->outputs.v[i]->comp == c) hlo_in_order(c->outputs.v[i], mark, c, &order, &n, &cap);
  free(mark);
  b->waiting.n = 0;
  for (int i = 0; i < n; i++)
    if (!b->seen[order[i]->id] && suits(b, order[i])) start(b, order[i]);
  free(order);
  for (int i = 0; i < b->waiting.n; i++)
    if (!done(b, b->waiting.v[i])) filter_gradient(b, b->waiting.v[i]);
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *x = c->nodes.v[i];
    if (x->id < b->known && done(b, x)) continue;
    for (int k = 0; k < x->n_in; k++) x->in[k] = stands_for(b, x->in[k]);
    for (int k = 0; k < x->n_after; k++) x->after[k] = stands_for(b, x->after[k]);
  }
  for (int i = 0; i < c->outputs.n; i++) c->outputs.v[i] = stands_for(b, c->outputs.v[i]);
}

/* New nodes stand at the end of their computation: operands come first again. */
static void sort_nodes(const Batch *b, HComp *c) {
  unsigned char *mark = calloc((size_t)b->g->n_nodes + 1, 1);
  HNode **order = NULL;
  int n = 0, cap = 0;
  for (int i = 0; i < c->nodes.n; i++)
    if (c->nodes.v[i]->id >= b->known || !b->cut[c->nodes.v[i]->id])
      hlo_in_order(c->nodes.v[i], mark, c, &order, &n, &cap);
  c->nodes.n = 0;
  for (int i = 0; i < n; i++) *vec_push(&c->nodes) = order[i];
  free(order);
  free(mark);
}

void tpu_space_to_batch(HGraph *g, double limit) {
  Batch b = {.g = g, .known = g->n_nodes, .limit = limit};
  bool any = false;
  for (const HComp *c = g->comps; c && !any; c = c->next)
    for (int i = 0; i < c->nodes.n && !any; i++)
      any = !c->nodes.v[i]->dead && suits(&b, c->nodes.v[i]);
  if (!any) return;
  size_t n = (size_t)g->n_nodes + 1;
  b.cut = xcalloc(n, sizeof *b.cut);
  b.now = xcalloc(n, sizeof *b.now);
  b.seen = xcalloc(n, sizeof *b.seen);
  b.make = (Maker){.g = g, .cse = map_new()};
  for (HComp *c = g->comps; c; c = c->next) {
    int before = c->nodes.n;
    move_space(&b, c);
    for (int i = before; i < c->nodes.n; i++) c->nodes.v[i]->part = true;
    if (c->nodes.n > before) sort_nodes(&b, c);
  }
  map_free(b.make.cse);
  vec_free(&b.waiting);
  free(b.cut);
  free(b.now);
  free(b.seen);
  int id = 0;
  for (HComp *c = g->comps; c; c = c->next)
    for (int i = 0; i < c->nodes.n; i++) c->nodes.v[i]->id = id++;
  hlo_users(g, g->main);
}
