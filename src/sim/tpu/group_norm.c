/* Normalisation over groups of channels. A program reshapes an image so that its channels become
 * groups of channels, works on that element by element with one mean and one variance a group, and
 * reshapes it back. A compiler for TPUs leaves the image as it lies: what belongs to a group is
 * repeated over its channels first, and sums are made over positions before they are made over the
 * channels of a group. So everything around can go on as if nothing had been reshaped. Read off what
 * libtpu's passes "tpu-broadcast-rewriter" and "tpu-reduce-rewriter" print. Linear in the graph. */
#include <stdlib.h>

#include "sim/hlo/hlo.h"
#include "sim/tpu/tpu.h"

#define RANK 16

typedef struct Groups {
  HGraph *g;
  Maker make;
  int known;    /* nodes with smaller numbers were there before */
  HNode **now;  /* by number: what stands for it */
  HNode **flat; /* by number: the same elements in the shape before the reshape */
} Groups;

typedef struct Shape { /* that was reshaped, and how */
  int rank, fine;      /* dimensions before and after */
  const int64_t *d;
  int of[RANK]; /* which of those before each one after is a part of */
} Shape;

/* Is n's shape made of this one by taking some dimensions apart? */
static bool apart_from(const HNode *n, int rank, const int64_t *d, Shape *s) {
  if (n->rank <= rank || n->rank > RANK) return false;
  bool parts = false;
  int i = 0;
  for (int k = 0; k < rank; k++) {
    int64_t left = d[k];
    int pieces = 0;
    for (; i < n->rank && (left > 1 || n->d[i] == 1) && n->d[i] > 0 && left % n->d[i] == 0; i++) {
      left /= n->d[i];
      pieces += n->d[i] > 1;
      s->of[i] = k;
    }
    if (left != 1) return false;
    parts |= pieces > 1;
  }
  s->rank = rank;
  s->fine = n->rank;
  s->d = d;
  return parts && i == n->rank;
}

/* What is repeated, in the shape before; NULL when it is not repeated over any whole dimension. */
static HNode *repeated(Groups *b, const HNode *n, const Shape *s) {
  bool has[RANK] = {false};
  int64_t fine[RANK], flat[RANK], at[RANK], map[RANK];
  int pos[RANK], nf = 0, nc = 0;
  for (int i = 0; i < n->n_dims; i++) has[s->of[n->dims[i]]] = true;
  for (int i = 0; i < s->fine; i++) {
    pos[i] = nf;
    if (has[s->of[i]]) fine[nf++] = n->d[i];
  }
  for (int k = 0; k < s->rank; k++)
    if (has[k]) at[nc] = k, flat[nc++] = s->d[k];
  if (nc == s->rank) return NULL;
  for (int i = 0; i < n->n_dims; i++) map[i] = pos[n->dims[i]];
  HNode *x = hlo_bcast(&b->make, n->src, n->in[0], nf, fine, map);
  return hlo_bcast(&b->make, n->src, hlo_reshape(&b->make, n->src, x, nc, flat), s->rank, s->d, at);
}

/* n in the shape before, where it is made of reshaped arrays and of what is repeated. */
static HNode *flat(Groups *b, HNode *n, const Shape *s, int depth) {
  if (n->comp != b->make.comp || n->id >= b->known || depth > 32) return NULL;
  HNode *f = b->flat[n->id];
  if (f) return hlo_same_shape(f, s->rank, s->d) ? f : NULL;
  if (n->kind == H_CONST && n->splat)
    return hlo_const(&b->make, n->src, n->dt, s->rank, s->d, n->value);
  if (n->rank != s->fine) return NULL;
  if (n->kind == H_RESHAPE) f = hlo_same_shape(n->in[0], s->rank, s->d) ? n->in[0] : NULL;
  else if (n->kind == H_BCAST) f = repeated(b, n, s);
  else if (n->kind == H_EWISE && n->op != OP_UNKNOWN && n->op != OP_COPY && !n->apart) {
    HNode *in[4];
    if (n->n_in > 4) return NULL;
    for (int i = 0; i < n->n_in; i++)
      if (!hlo_same_shape(n->in[i], n->rank, n->d) || !(in[i] = flat(b, n->in[i], s, depth + 1)))
        return NULL;
    f = hlo_ewise(&b->make, n->op, n->src, n->dt, s->rank, s->d, n->n_in, in);
  }
  return b->flat[n->id] = f;
}

/* The array that n is a reshape of, element by element; NULL: none. */
static const HNode *reshaped(const Groups *b, const HNode *n, int depth) {
  if (n->comp != b->make.comp || depth > 32) return NULL;
  if (n->kind == H_RESHAPE) return n->in[0];
  for (int i = 0; n->kind == H_EWISE && i < n->n_in; i++) {
    const HNode *x = reshaped(b, n->in[i], depth + 1);
    if (x) return x;
  }
  return NULL;
}

static HNode *reduced(Groups *b, const HNode *like, HNode *x, const int64_t *dims, int n) {
  int64_t d[RANK];
  int r = 0;
  for (int i = 0, k = 0; i < x->rank; i++) {
    if (k < n && dims[k] == i) k++;
    else d[r++] = x->d[i];
  }
  HNode *in[2] = {x, like->in[1]};
  HNode *m = hlo_node(b->g, b->make.comp, H_REDUCE, like->op, like->src, like->dt, r, d, 2, in);
  m->n_dims = n;
  m->dims = hlo_ints(b->g, dims, n);
  m->index = like->index;
  return m;
}

/* A sum over positions and over the channels of a group: one after the other. */
static HNode *in_two(Groups *b, HNode *n) {
  Shape s;
  const HNode *before =
      n->n_in == 2 && n->n_results == 1 && n->dt == n->in[0]->dt ? reshaped(b, n->in[0], 0) : NULL;
  if (!before || !apart_from(n->in[0], before->rank, before->d, &s)) return NULL;
  bool gone[RANK] = {false};
  int left[RANK] = {0}, cut[RANK] = {0}; /* of each dimension: what stays and what goes */
  for (int i = 0; i < n->n_dims; i++) gone[n->dims[i]] = true;
  for (int i = 0; i < s.fine; i++)
    if (n->in[0]->d[i] > 1) *(gone[i] ? &cut[s.of[i]] : &left[s.of[i]]) += 1;
  int64_t first[RANK], then[RANK], d[RANK];
  int nf = 0, nt = 0, r = 0;
  for (int k = 0; k < s.rank; k++)
    if (cut[k] && !left[k]) first[nf++] = k;
  for (int i = 0; i < s.fine; i++) {
    bool whole = cut[s.of[i]] && !left[s.of[i]];
    if (whole) continue;
    if (gone[i]) then[nt++] = r;
    d[r++] = n->in[0]->d[i];
  }
  if (nf == 0 || nt == 0) return NULL;
  HNode *x = flat(b, n->in[0], &s, 0);
  if (!x) return NULL;
  x = hlo_reshape(&b->make, n->src, reduced(b, n, x, first, nf), r, d);
  return hlo_reshape(&b->make, n->src, reduced(b, n, x, then, nt), n->rank, n->d);
}

static HNode *rewritten(Groups *b, HNode *n) {
  Shape s;
  if (n->kind == H_REDUCE) return in_two(b, n);
  if (n->kind != H_RESHAPE || n->in[0]->kind != H_EWISE || !reshaped(b, n->in[0], 0)) return NULL;
  return apart_from(n->in[0], n->rank, n->d, &s) ? flat(b, n->in[0], &s, 0) : NULL;
}

void tpu_group_norm(HGraph *g) {
  Groups b = {.g = g, .known = g->n_nodes, .make = {g, map_new(), NULL}};
  size_t size = (size_t)g->n_nodes + 1;
  b.now = xcalloc(size, sizeof *b.now);
  b.flat = xcalloc(size, sizeof *b.flat);
  bool any = false;
  for (HComp *c = g->comps; c; c = c->next) {
    HNode **old = c->nodes.v;
    int n = c->nodes.n;
    memset(&c->nodes, 0, sizeof c->nodes);
    b.make.comp = c;
    for (int i = 0; i < n; i++) { /* what is made of operands stands before who reads it */
      HNode *x = old[i];
      for (int k = 0; k < x->n_in; k++)
        if (x->in[k]->id < b.known && b.now[x->in[k]->id]) x->in[k] = b.now[x->in[k]->id];
      if (!x->dead && (b.now[x->id] = rewritten(&b, x))) any = true;
      *vec_push(&c->nodes) = x;
    }
    free(old);
  }
  map_free(b.make.cse);
  int id = 0;
  for (HComp *c = g->comps; c && any; c = c->next) {
    for (int i = 0; i < c->nodes.n; i++) {
      HNode *x = c->nodes.v[i];
      for (int k = 0; k < x->n_in; k++)
        if (x->in[k]->id < b.known && b.now[x->in[k]->id]) x->in[k] = b.now[x->in[k]->id];
      for (int k = 0; k < x->n_after; k++)
        if (x->after[k]->id < b.known && b.now[x->after[k]->id])
          x->after[k] = b.now[x->after[k]->id];
    }
    for (int i = 0; i < c->outputs.n; i++) {
      HNode *o = c->outputs.v[i];
      if (o->id < b.known && b.now[o->id]) c->outputs.v[i] = b.now[o->id];
    }
  }
  free(b.now);
  free(b.flat);
  if (!any) return;
  for (HComp *c = g->comps; c; c = c->next)
    for (int i = 0; i < c->nodes.n; i++) c->nodes.v[i]->id = id++;
  hlo_users(g, g->main);
}
