/* Operations that a compiler for TPUs writes as others before it fuses: stable sorts carry a
 * number for each element, small top-k are sorts, running sums go block by block, images are laid
 * out anew before their dimensions are joined, narrow arrays stay narrow through maxima, rows that
 * are added up go to what their sums are added to, and a matrix times a vector is multiplied and added
 * up. Linear in the graph; a node that is expanded
 * becomes the last of its expansion. */
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

/* Rows are sorted for their largest elements if they are at most so many times as many: of 33 shapes with
 * 2 to 64 largest, the longest rows that are sorted are 64 to 85 times as long. */
#define TOP_SORTED 78

typedef struct Expand {
  HGraph *g;
  HComp *c;
  const CostParams *params;
} Expand;

static HNode *before(Expand *x, const HNode *n, HKind kind, OpKind op, DType dt, int rank,
                     const int64_t *d, int n_in, HNode *const *in) {
  HNode *m = hlo_node(x->g, x->c, kind, op, n->src, dt, rank, d, n_in, in);
  return m;
}

static void become(HNode *n, HKind kind, OpKind op, Expand *x, int n_in, HNode *const *in) {
  n->kind = kind;
  n->op = op;
  n->n_in = n_in;
  n->in = arena_dup(x->g->arena, in, sizeof *in * (size_t)n_in);
}

static bool widens(const HNode *n) {
  return n->kind == H_EWISE && n->op == OP_CONVERT && n->in[0]->dt == DT_BF16 && n->dt == DT_F32;
}

/* The largest of widened elements is found before they are widened. */
static void stay_narrow(Expand *x, HNode *n) {
  HNode *w = n->in[0];
  if (n->n_results != 1 || !widens(w)) return;
  const Region *r = n->src && n->src->n_regions ? n->src->regions[0] : NULL;
  if (!r || !r->first || r->first->kind != OP_MAXIMUM || n->n_in < 1) return;
  HNode *m = before(x, n, n->kind, n->op, w->in[0]->dt, n->rank, n->d, n->n_in, n->in);
  m->in[0] = w->in[0];
  m->n_dims = n->n_dims;
  m->dims = n->dims;
  m->index = n->index;
  n->n_dims = 0;
  n->dims = NULL;
  become(n, H_EWISE, OP_CONVERT, x, 1, &m);
}

/* A vector whose largest element is looked for is stored, where it is made of an array's rows that are not
 * of 128: such lie as a vector does. */
static void store_flat(const HNode *n) {
  HNode *flat = n->in[0];
  if (n->n_results < 2 || flat->kind != H_RESHAPE || flat->rank != 1) return;
  const HNode *x = flat->in[0];
  flat->apart = x->rank > 1 && x->d[x->rank - 1] != 128 && !hlo_same_dimensions(flat);
}

static HNode *positions(Expand *x, const HNode *n, const HNode *like, int dim) {
  HNode *i = before(x, n, H_IOTA, OP_IOTA, DT_I32, like->rank, like->d, 0, NULL);
  i->index = dim;
  return i;
}

/* Stable sorts, unless numbers along the sorted side are sorted as well. */
static void number_elements(Expand *x, HNode *n) {
  HNode *in[16];
  if (!n->src || !op_bool(n->src, "is_stable", false) || n->in[0]->rank < 1 ||
      n->n_in >= (int)COUNT_OF(in))
    return;
  for (int i = 0; i < n->n_in; i++) {
    in[i] = n->in[i];
    if (hlo_const_only(in[i])) return;
  }
  in[n->n_in] = positions(x, n, n->in[0], (int)op_int(n->src, "dimension", 0));
  become(n, H_SORT, n->op, x, n->n_in + 1, in);
}

/* It lies in its natural order. */
static HNode *naturally(Expand *x, HNode *n) {
  int order[64];
  value_order_rest(order, 0, n->rank);
  tpu_lie(x->g, n, order);
  return n;
}

/* The largest few of short rows: the rows are sorted, the first elements taken. Of 16-bit elements, with the
 * number of each in the other half of a word. */
static void sort_for_top(Expand *x, HNode *n) {
  HNode *v = n->in[0];
  if (v->rank < 1 || n->n_results != 2) return;
  bool packed = v->dt == DT_BF16;
  bool sorted = v->d[v->rank - 1] <= TOP_SORTED * n->res_d[0][v->rank - 1];
  if (packed) {
    if (!sorted) v = naturally(x, before(x, n, H_EWISE, OP_COPY, v->dt, v->rank, v->d, 1, &v));
    v = before(x, n, H_EWISE, OP_OR, DT_I32, v->rank, v->d, 1, &v);
    v->apart = true;
    become(n, n->kind, n->op, x, 1, &v);
    n->n_results = 1;
    n->dt = DT_I32;
    n->rank = v->rank;
    n->d = n->res_d[0];
    if (!sorted) naturally(x, v), naturally(x, n);
  }
  if (!sorted) return;
  HNode *in[2] = {v, packed ? NULL : positions(x, n, v, v->rank - 1)};
  become(n, H_SORT, n->op, x, packed ? 1 : 2, in);
  if (packed) n->rank = v->rank, n->d = v->d;
  for (int i = 0; i < 2; i++) n->res_d[i] = v->d;
}

/* A result of such a sort is cut to what was asked for, and taken out of its word. */
static void cut_result(Expand *x, HNode *n) {
  HNode *s = n->in[0];
  if (s->op != OP_CHLO_TOP_K || (s->kind != H_SORT && s->n_results > 1)) return;
  bool packed = s->n_results == 1;
  int64_t *zero = ARENA_ARRAY(x->g->arena, int64_t, n->rank);
  int64_t *one = ARENA_ARRAY(x->g->arena, int64_t, n->rank);
  for (int i = 0; i < n->rank; i++) zero[i] = 0, one[i] = 1;
  HNode *whole = s;
  if (!packed) {
    whole = before(x, n, H_GET, n->op, n->dt, n->rank, s->in[0]->d, 1, &s);
    whole->index = n->index;
  }
  OpKind op = n->index ? OP_AND : OP_CONVERT;
  if (packed && s->kind != H_SORT) {
    int order[64];
    value_order_default(x->params, n, order);
    if (n->is_output) whole = before(x, n, H_EWISE, op, n->dt, n->rank, n->d, 1, &whole);
    become(n, H_EWISE, n->is_output ? OP_COPY : op, x, 1, &whole);
    if (n->is_output) naturally(x, whole), tpu_lie(x->g, n, order);
    return;
  }
  HNode *cut = n;
  if (packed) cut = before(x, n, H_SLICE, OP_SLICE, DT_I32, n->rank, n->d, 1, &whole);
  if (packed) become(n, H_EWISE, op, x, 1, &cut);
  else become(n, H_SLICE, OP_SLICE, x, 1, &whole);
  cut->lo = zero;
  cut->hi = hlo_ints(x->g, n->d, n->rank);
  cut->step = one;
}

/* Images whose batch lies in lanes, joined to rows of a matrix: the joined dimensions must lie in
 * their natural order and fill their tiles, else a kernel moves them first. */
static void join_images(Expand *x, HNode *n) {
  HNode *p = n->in[0];
  int order[64];
  if (p->kind != H_PARAM || p->comp->parent || n->rank != 2 || p->rank < 3 || p->rank > 64 ||
      n->d[0] != p->d[0] || n->is_output)
    return;
  value_order_default(x->params, p, order);
  if (order[0] != 0) return;
  int last = p->rank - 1;
  while (last > 1 && p->d[last] == 1) last--;
  if (order[1] == last && p->d[last] % 8 == 0) return;
  HNode *cv = n->n_users == 1 && n->users[0]->kind == H_EWISE && n->users[0]->op == OP_CONVERT
                  ? n->users[0]
                  : NULL;
  HNode *from = p;
  if (p->d[order[1]] == 1 && cv) { /* one channel: narrowed and moved at once */
    cv->apart = true;
    return;
  }
  if (cv) {
    from = before(x, n, H_EWISE, OP_CONVERT, cv->dt, p->rank, p->d, 1, &p);
    from->apart = true;
    cv->op = OP_COPY;
    n->dt = cv->dt;
  }
  HNode *flat = before(x, n, H_RESHAPE, OP_RESHAPE, n->dt, n->rank, n->d, 1, &from);
  become(n, H_EWISE, OP_COPY, x, 1, &flat);
  n->apart = true;
}

/* Rows are gathered from the wide array, everybody else widens the narrow one again. */
static void widen_for_rows(Expand *x, HNode *n) {
  HNode *w = n->in[0];
  if (!widens(w) || w->n_users < 2 || w->is_output) return;
  n->in[0] = before(x, n, H_EWISE, OP_CONVERT, w->dt, w->rank, w->d, 1, w->in);
}

/* A row that each round of a loop repeats is a matrix of one row, which lies otherwise than the vector
 * that is repeated: every round it is made one. */
static void row_to_vector(Expand *x, HNode *n) {
  HNode *flat = n->in[0], *p = flat->n_in ? flat->in[0] : NULL;
  const HNode *w = x->c->owner;
  if (!w || w->kind != H_WHILE || flat->kind != H_RESHAPE || p->kind != H_PARAM ||
      p->comp != x->c || p->rank != 2 || p->d[0] != 1 || p->d[1] < 128 || flat->rank != 1)
    return;
  HNode *row = before(x, n, H_EWISE, OP_COPY, p->dt, 1, p->d + 1, 1, &flat);
  row->apart = true;
  become(n, n->kind, n->op, x, 1, &row);
}

static HNode *as_f32(Expand *x, const HNode *n, HNode *v) {
  return v->dt == DT_F32 ? v : before(x, n, H_EWISE, OP_CONVERT, DT_F32, v->rank, v->d, 1, &v);
}

/* Where dimension d of the vector's side of a product lies on the other one; -1: it has no match. */
static int matching(const HNode *n, int side, int d) {
  static const char *const names[2][2] = {
      {"lhs_batching_dimensions", "rhs_batching_dimensions"},
      {"lhs_contracting_dimensions", "rhs_contracting_dimensions"}};
  for (int kind = 0; kind < 2; kind++) {
    const int64_t *own, *other;
    int count = op_ints(n->src, names[kind][side], &own);
    op_ints(n->src, names[kind][1 - side], &other);
    for (int i = 0; i < count; i++)
      if (own[i] == d) return (int)other[i];
  }
  return -1;
}

/* The sums of a product over its one wide side, whose dimensions at[] they keep, as the product has
 * them: batch dimensions first, in their own order. */
static HNode *batch_first(Expand *x, const HNode *n, int side, HNode *sums, const int64_t *at) {
  const int64_t *batch;
  int64_t perm[64], d[64];
  int nb = op_ints(n->src, side ? "rhs_batching_dimensions" : "lhs_batching_dimensions", &batch);
  int w = 0;
  bool moves = false;
  for (int i = 0; i < nb; i++)
    for (int q = 0; q < sums->rank; q++)
      if (at[q] == batch[i]) perm[w++] = q;
  for (int q = 0; q < sums->rank; q++) {
    bool in_batch = false;
    for (int i = 0; i < nb; i++) in_batch |= at[q] == batch[i];
    if (!in_batch) perm[w++] = q;
  }
  for (int q = 0; q < w; q++) moves |= perm[q] != q, d[q] = sums->d[perm[q]];
  if (!moves) return sums;
  HNode *t = before(x, n, H_TRANSPOSE, OP_TRANSPOSE, sums->dt, w, d, 1, &sums);
  t->n_dims = w;
  t->dims = hlo_ints(x->g, perm, w);
  return t;
}

#define WIDE 64 /* elements: both sides of matrices that stay products with a vector each */

/* A matrix times a vector, or several times one each: a product where the chip's compiler has it so at all, as
 * others have several wide ones that are an argument; unless vectors meet vectors, or matrices lie beside each other in lanes. */
static bool stays_product(const CostParams *params, const HConv *c, const HNode *big,
                          const char *roles) {
  int order[64];
  bool argument = big->rank == 3 && big->kind == H_PARAM && !big->comp->parent;
  bool wide = argument && c->batch > 1 && MIN(c->k, MAX(c->m, c->n)) >= WIDE;
  if (c->m == c->n || (params->matvec && !wide)) return false;
  value_order_default(params, big, order);
  return c->batch == 1 || roles[order[0]] != 'b';
}

/* A matrix times a vector is multiplied and added up on the vector unit, in 32 bits. */
static void multiply_and_add(Expand *x, HNode *n) {
  const HConv *c = n->conv;
  if (c->is_conv || c->k == 1 || (c->m != 1 && c->n != 1) || n->attention ||
      n->src->kind != OP_DOT_GENERAL || hlo_bits(n->dt) > 32)
    return;
  int side = c->n == 1 ? 1 : 0, dims = 0; /* the vector's */
  HNode *v = n->in[side], *big = n->in[1 - side];
  const char *roles = side ? c->rhs : c->lhs, *wide = side ? c->lhs : c->rhs;
  int64_t kept[64], map[64], sum[64], left[64], at[64];
  if (v->rank > 32 || big->rank > 32 || stays_product(x->params, c, big, wide)) return;
  for (int d = 0; d < v->rank; d++) {
    if (roles[d] != 'b' && roles[d] != 'k') continue;
    map[dims] = matching(n, side, d);
    kept[dims++] = v->d[d];
  }
  if (dims != v->rank) {
    bool apart = v->kind == H_PARAM && v->rank == 2;
    v = before(x, n, H_RESHAPE, OP_RESHAPE, v->dt, dims, kept, 1, &v);
    if (apart) v = before(x, n, H_EWISE, OP_COPY, v->dt, dims, kept, 1, &v);
    v->apart = apart;
  }
  if (v->kind != H_PARAM) v = as_f32(x, n, v); /* an argument is widened where it is multiplied */
  if (dims != big->rank) {
    v = before(x, n, H_BCAST, OP_BROADCAST_IN_DIM, v->dt, big->rank, big->d, 1, &v);
    v->n_dims = dims;
    v->dims = hlo_ints(x->g, map, dims);
  }
  HNode *pair[2] = {as_f32(x, n, big), as_f32(x, n, v)};
  HNode *both = before(x, n, H_EWISE, OP_MULTIPLY, DT_F32, big->rank, big->d, 2, pair);
  HNode *zero = before(x, n, H_CONST, OP_CONSTANT, DT_F32, 0, NULL, 0, NULL);
  zero->splat = true;
  int sums = 0, rest = 0;
  for (int d = 0; d < big->rank; d++)
    if (wide[d] == 'k') sum[sums++] = d;
    else at[rest] = d, left[rest++] = big->d[d];
  HNode *r = before(x, n, H_REDUCE, OP_REDUCE, n->dt, rest, left, 2, (HNode *[]){both, zero});
  r->n_dims = sums;
  r->dims = hlo_ints(x->g, sum, sums);
  r = batch_first(x, n, 1 - side, r, at);
  n->conv = NULL;
  become(n, H_RESHAPE, OP_RESHAPE, x, 1, &r);
}

/* What is put together and then again along the same dimension is put together at once. */
static void join_at_once(Expand *x, HNode *n) {
  for (int i = 0; i < n->n_in; i++) {
    HNode *y = n->in[i], *all[64];
    if (y->kind != H_CONCAT || y->index != n->index || y->comp != n->comp || y->n_users != 1 ||
        y->is_output || y->part || n->part || n->n_in + y->n_in > COUNT_OF(all))
      continue;
    int k = 0;
    for (int q = 0; q < i; q++) all[k++] = n->in[q];
    for (int q = 0; q < y->n_in; q++) all[k++] = y->in[q];
    for (int q = i + 1; q < n->n_in; q++) all[k++] = n->in[q];
    y->dead = true;
    become(n, n->kind, n->op, x, k, all);
  }
}

static void expand(Expand *x, HNode *n) {
  switch (n->kind) {
  case H_CONCAT: join_at_once(x, n); break;
  case H_BCAST: row_to_vector(x, n); break;
  case H_CONV:
    if (!n->conv->is_conv) multiply_and_add(x, n);
    else if (!tpu_scale_channels(x->g, n)) tpu_split_groups(x->g, n);
    break;
  case H_GATHER:
    widen_for_rows(x, n);
    tpu_lay_indices(x->g, x->params, x->c, n);
    break;
  case H_REDUCE:
    stay_narrow(x, n);
    store_flat(n);
    break;
  case H_SORT: number_elements(x, n); break;
  case H_OTHER:
    if (n->op == OP_CHLO_TOP_K) sort_for_top(x, n);
    break;
  case H_GET: cut_result(x, n); break;
  case H_RESHAPE:
    join_images(x, n);
    if (n->kind == H_RESHAPE) tpu_lay_reshape(x->g, x->params, x->c, n);
    break;
  case H_SLICE:
    tpu_move_slice(x->g, x->c, n);
    if (n->kind == H_CONV) multiply_and_add(x, n);
    break;
  case H_EWISE:
    hlo_add_rows_to(x->g, n);
    tpu_move_pad(x->g, x->c, n);
    break;
  case H_COLL: tpu_collective(x->g, x->params, x->c, n); break;
  default: break;
  }
}

void tpu_expand(HGraph *g, const CostParams *params) {
  int id = 0;
  hlo_narrow(g);
  for (HComp *c = g->comps; c; c = c->next) {
    Expand x = {g, c, params};
    HNode **old = c->nodes.v;
    int n = c->nodes.n;
    memset(&c->nodes, 0, sizeof c->nodes);
    for (int i = 0; i < n; i++) {
      if (!old[i]->dead) expand(&x, old[i]);
      *vec_push(&c->nodes) = old[i];
    }
    free(old);
    for (int i = 0; i < c->nodes.n; i++) c->nodes.v[i]->id = id++;
  }
  hlo_users(g, g->main);
}
