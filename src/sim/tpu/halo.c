/* Cutting images into parts of the batch, putting them together again, and the halos between. */
#include "sim/tpu/halo.h"

static int64_t *fill(Maker *b, int n, int64_t v) {
  int64_t *a = ARENA_ARRAY(b->g->arena, int64_t, n + 1);
  for (int i = 0; i < n; i++) a[i] = v;
  return a;
}

/* Elements lo to hi of dimension `dim`, and all but one of dimension `but`: skip 1 leaves out its first,
 * -1 its last, 0 none. */
static HNode *slice(Maker *b, const Op *src, HNode *x, int dim, int64_t lo, int64_t hi, int but,
                    int skip) {
  int64_t d[64];
  if (lo == 0 && hi == x->d[dim] && !skip) return x;
  memcpy(d, x->d, sizeof *d * (size_t)x->rank);
  d[dim] = hi - lo;
  d[but] -= skip != 0;
  if (x->kind == H_CONST && x->splat) return hlo_const(b, src, x->dt, x->rank, d, x->value);
  HNode *n = hlo_node(b->g, b->comp, H_SLICE, OP_SLICE, src, x->dt, x->rank, d, 1, &x);
  n->lo = fill(b, x->rank, 0);
  n->lo[dim] = lo;
  n->hi = hlo_ints(b->g, x->d, x->rank);
  n->hi[dim] = hi;
  if (skip) n->lo[but] = skip > 0, n->hi[but] -= skip < 0;
  n->step = fill(b, x->rank, 1);
  return hlo_unique(b, n);
}

static HNode *pad(Maker *b, const Op *src, HNode *x, int dim, int64_t lo, int64_t hi,
                  double value) {
  int64_t d[64];
  if (lo == 0 && hi == 0) return x;
  memcpy(d, x->d, sizeof *d * (size_t)x->rank);
  d[dim] += lo + hi;
  HNode *in[2] = {x, hlo_const(b, src, x->dt, 0, NULL, value)};
  HNode *n = hlo_node(b->g, b->comp, H_PAD, OP_PAD, src, x->dt, x->rank, d, 2, in);
  n->lo = fill(b, x->rank, 0);
  n->lo[dim] = lo;
  n->hi = fill(b, x->rank, 0);
  n->hi[dim] = hi;
  n->step = fill(b, x->rank, 0);
  return hlo_unique(b, n);
}

/* [.., batch * SPLITS, part, ..] as [.., batch, SPLITS, part, ..]. */
static HNode *apart(Maker *b, const Op *src, HNode *x, int at) {
  int64_t d[64];
  for (int i = 0; i < x->rank; i++) d[i + (i > at)] = x->d[i];
  d[at] = x->d[at] / SPLITS;
  d[at + 1] = SPLITS;
  return hlo_reshape(b, src, x, x->rank + 1, d);
}
static HNode *together(Maker *b, const Op *src, HNode *x, int at) {
  int64_t d[64];
  for (int i = 0; i < x->rank; i++) d[i - (i > at)] = x->d[i];
  d[at] = x->d[at] * SPLITS;
  return hlo_reshape(b, src, x, x->rank - 1, d);
}

/* [.., batch * SPLITS, part, ..] as [.., batch, SPLITS * part, ..], and back. */
static HNode *whole(Maker *b, const Op *src, HNode *x, int at) {
  int64_t d[64];
  memcpy(d, x->d, sizeof *d * (size_t)x->rank);
  d[at] /= SPLITS;
  d[at + 1] *= SPLITS;
  return hlo_reshape(b, src, x, x->rank, d);
}
static HNode *cut(Maker *b, const Op *src, HNode *x, int at) {
  int64_t d[64];
  memcpy(d, x->d, sizeof *d * (size_t)x->rank);
  d[at] *= SPLITS;
  d[at + 1] /= SPLITS;
  return hlo_reshape(b, src, x, x->rank, d);
}

/* So much larger is a dimension of d elements in sublanes. */
static double padding(int64_t d) {
  int64_t to = d <= 2 ? 2 : d <= 4 ? 4 : (d + 7) / 8 * 8;
  return (double)to / (double)d;
}

/* The last dimension before the batch that a tile could have instead of the one that is cut into
 * parts, because it pads less: 1 + its number, else 0. */
static int rows_of(const HNode *x, int at, int64_t part) {
  int rows = 0;
  for (int i = 0; i < at; i++)
    if (x->d[i] > 1) rows = i + 1;
  return rows && padding(part) > padding(x->d[rows - 1]) ? rows : 0;
}

static HNode *relaid(Maker *b, const Op *src, HNode *x, int rows) {
  HNode *n = hlo_node(b->g, b->comp, H_EWISE, OP_COPY, src, x->dt, x->rank, x->d, 1, &x);
  n->apart = true;
  n->rows = rows;
  return n;
}

HNode *halo_cut(Maker *b, const Op *src, HNode *x, int at, int64_t low, int64_t part) {
  int64_t high = part * SPLITS - low - x->d[at + 1];
  HNode *p = pad(b, src, x, at + 1, low, high, 0);
  if (p != x) p->apart = true;
  return cut(b, src, p, at);
}

HNode *halo_start(Maker *b, const Op *src, HNode *x, int at, int64_t low, int64_t part,
                  int64_t before, int64_t halo) {
  int rows = rows_of(x, at, part);
  if (rows) x = relaid(b, src, x, rows);
  x = halo_cut(b, src, x, at, low, part);
  if (!rows && at > 0) x = relaid(b, src, x, at + 1);
  return halo_add(b, src, x, at, before, halo, 0, !rows && at > 0);
}

HNode *halo_join(Maker *b, const Op *src, HNode *x, int at, int64_t size) {
  int rows = rows_of(x, at, x->d[at + 1]);
  if (at > 0) x = relaid(b, src, x, rows ? rows : at + 2);
  x = slice(b, src, whole(b, src, x, at), at + 1, 0, size, at, 0);
  if (at > 0) x->apart = true;
  return x;
}

HNode *halo_resize(Maker *b, const Op *src, HNode *x, int at, int64_t part) {
  int64_t more = (part - x->d[at + 1]) * SPLITS;
  x = whole(b, src, x, at);
  x = more > 0 ? pad(b, src, x, at + 1, 0, more, 0)
               : slice(b, src, x, at + 1, 0, part * SPLITS, at, 0);
  return cut(b, src, x, at);
}

HNode *halo_valid(Maker *b, const Op *src, HNode *x, int at, int64_t size, double other) {
  if (size >= x->d[at + 1] * SPLITS) return x;
  int64_t side[2] = {x->d[at], x->d[at + 1]}, map[2] = {at, at + 1};
  HNode *mask = hlo_node(b->g, b->comp, H_CONST, OP_CONSTANT, src, DT_I1, 2, side, 0, NULL);
  HNode *in[3] = {hlo_bcast(b, src, mask, x->rank, x->d, map), x,
                  hlo_const(b, src, x->dt, x->rank, x->d, other)};
  return hlo_node(b->g, b->comp, H_EWISE, OP_SELECT, src, x->dt, x->rank, x->d, 3, in);
}

HNode *halo_add(Maker *b, const Op *src, HNode *x, int at, int64_t low, int64_t halo, double other,
                bool inside) {
  int64_t part = x->d[at + 1], d[64];
  int split = at + 1, space = at + 2, n = 0;
  if (low == 0 && halo == 0) return x;
  HNode *all = apart(b, src, x, at), *in[3];
  if (low > 0) {
    HNode *end = slice(b, src, all, space, part - low, part, split, -1);
    in[n++] = pad(b, src, end, split, 1, 0, other);
  }
  bool moved = halo == 0 || low < 0;
  if (!moved) in[n++] = all;
  else if (low > 0) in[n++] = slice(b, src, all, space, 0, part - low, split, 0);
  else in[n++] = slice(b, src, all, space, -low, part, split, 0);
  if (halo - low > 0) {
    HNode *start = slice(b, src, all, space, 0, halo - low, split, 1);
    in[n++] = pad(b, src, start, split, 0, 1, other);
  }
  memcpy(d, all->d, sizeof *d * (size_t)all->rank);
  d[space] = 0;
  for (int i = 0; i < n; i++) d[space] += in[i]->d[space];
  HNode *sum =
      n == 1 ? in[0]
             : hlo_node(b->g, b->comp, H_CONCAT, OP_CONCATENATE, src, x->dt, all->rank, d, n, in);
  if (n > 1) sum->index = space, sum->joined = inside;
  return together(b, src, sum, at);
}
