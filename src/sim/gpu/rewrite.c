/* What is done to products for a GPU's libraries before anything is fused.
 *
 * Libraries multiply matrices that lie in memory as one stride for the batch, one for rows: batch dimensions
 * first, then all dimensions of one side together, then all of the other. An operand that lies otherwise, as
 * the heads of attention between time and features, is turned first, by a kernel that computes on the way
 * what it is made of. XLA asks for this order of every product, frameworks copy what their libraries cannot
 * read.
 *
 * XLA multiplies what several matrices share once: they are put side by side first, and the results cut out
 * of the product, unless they are large. */
#include <stdlib.h>

#include "sim/gpu/gpu.h"
#include "sim/gpu/rewrite.h"
#include "sim/hlo/query.h"

#define MERGED (64 << 20) /* bytes of operands and result: larger products are left apart */

/* ---- operands as libraries read them --------------------------------------------------------- */

typedef struct Side { /* an operand: what each dimension is in the product */
  char roles[64];
  int nth[64]; /* of batch dimensions: which one it is in the result */
} Side;

static Side side_of(const HNode *n, int side) {
  Side s;
  const HNode *x = n->in[side];
  const char *roles = side ? n->conv->rhs : n->conv->lhs;
  const int64_t *batch = NULL;
  int count =
      !n->src || n->src->kind != OP_DOT_GENERAL
          ? 0
          : op_ints(n->src, side ? "rhs_batching_dimensions" : "lhs_batching_dimensions", &batch);
  for (int i = 0; i < x->rank; i++) {
    s.roles[i] = roles[i];
    s.nth[i] = 0;
    for (int q = 0; q < count; q++)
      if (batch[q] == i) s.nth[i] = q;
  }
  return s;
}

/* Batch dimensions in order, then one side, then the other? */
static bool reads(const HNode *x, const Side *s) {
  int last = -1, sides = 0;
  char now = 'b';
  for (int i = 0; i < x->rank; i++) {
    if (x->d[i] == 1) continue;
    if (s->roles[i] == 'b') {
      if (now != 'b' || s->nth[i] < last) return false;
      last = s->nth[i];
    } else if (s->roles[i] != now) {
      now = s->roles[i];
      if (++sides > 2) return false;
    }
  }
  return true;
}

/* Matrices and vectors by the batch are multiplied and added up as they lie, by no library. */
static bool matrix_times_vector(const HConv *c) { return c->batch > 1 && (c->m == 1 || c->n == 1); }

static void turn_operand(Expand *x, HNode *n, int side) {
  HNode *v = n->in[side];
  if (v->rank < 2 || v->rank > 64 || matrix_times_vector(n->conv)) return;
  Side s = side_of(n, side);
  if (v->kind == H_TRANSPOSE) { /* a product reads both ways round */
    Side t;
    for (int i = 0; i < v->rank; i++) {
      t.roles[v->dims[i]] = s.roles[i];
      t.nth[v->dims[i]] = s.nth[i];
    }
    s = t;
    v = v->in[0];
  }
  int64_t perm[64];
  if (!reads(v, &s)) {
    const char *groups = side ? "bkn" : "bmk";
    int w = 0;
    for (int g = 0; g < 3; g++)
      for (int nth = 0; nth < (g ? 1 : v->rank); nth++)
        for (int i = 0; i < v->rank; i++)
          if (s.roles[i] == groups[g] && (g || s.nth[i] == nth)) perm[w++] = i;
    if (w != v->rank) return;
    Side t;
    for (int i = 0; i < w; i++) t.roles[i] = s.roles[perm[i]];
    s = t;
    v = gpu_transposed(x, v, n, perm);
  }
  if (v == n->in[side]) return;
  HConv *c = arena_dup(x->g->arena, n->conv, sizeof *c);
  char *roles = arena_alloc(x->g->arena, (size_t)v->rank + 1);
  memcpy(roles, s.roles, (size_t)v->rank);
  roles[v->rank] = 0;
  *(side ? &c->rhs : &c->lhs) = roles;
  n->conv = c;
  n->in[side] = v;
}

/* ---- products the other way round ------------------------------------------------------------ */

static bool product(const HNode *n) {
  return n->kind == H_CONV && !n->dead && !n->attention && !n->conv->is_conv && n->conv->batch == 1;
}

static char *swapped(Expand *x, const char *roles) {
  char *r = arena_dup(x->g->arena, roles, strlen(roles) + 1);
  for (char *c = r; *c; c++) *c = *c == 'm' ? 'n' : *c == 'n' ? 'm' : *c;
  return r;
}

/* A matrix that is turned as soon as it is multiplied, as gradients of weights are in JAX, is the product of the
 * operands in the other order. */
static void turn_product(Expand *x, HNode *n) {
  HNode *p = n->kind == H_TRANSPOSE && n->rank == 2 && !n->dead ? n->in[0] : NULL;
  if (!p || !product(p) || p->comp != x->c || p->n_users != 1 || p->is_output) return;
  HConv *c = arena_dup(x->g->arena, p->conv, sizeof *c);
  char out[3] = {p->conv->out[1], p->conv->out[0], 0};
  c->lhs = swapped(x, p->conv->rhs);
  c->rhs = swapped(x, p->conv->lhs);
  c->out = swapped(x, out);
  c->m = p->conv->n;
  c->n = p->conv->m;
  n->kind = H_CONV;
  n->op = p->op;
  n->src = p->src;
  n->conv = c;
  n->in = arena_dup(x->g->arena, (HNode *[]){p->in[1], p->in[0]}, 2 * sizeof *n->in);
  n->n_in = 2;
  n->n_dims = 0;
  n->dims = NULL;
}

/* ---- products that share an operand ---------------------------------------------------------- */

typedef struct Merge {
  VEC(HNode *) parts;
  int side;     /* of the operand that they do not share */
  double bytes; /* of operands and results */
} Merge;

static double moved_bytes(const HNode *n) {
  return hlo_bytes(n) + hlo_bytes(n->in[0]) + hlo_bytes(n->in[1]);
}

/* Is the operand a matrix, its summed dimensions together before or behind the others? *first: before. */
static bool matrix(const HNode *n, int side, bool *first) {
  const char *roles = side ? n->conv->rhs : n->conv->lhs;
  int rank = n->in[side]->rank, changes = 0;
  if (rank < 2) return false;
  for (int i = 1; i < rank; i++) changes += roles[i] != roles[i - 1];
  *first = roles[0] == 'k';
  return changes == 1;
}

/* Is b made from a? */
static bool needs(Expand *x, HNode *b, const HNode *a) {
  VEC(HNode *) stack = {0};
  *vec_push(&stack) = b;
  bool hit = false;
  x->walk++;
  while (stack.n && !hit) {
    HNode *n = stack.v[--stack.n];
    for (int i = 0; i < n->n_in && !hit; i++) {
      HNode *y = n->in[i];
      hit = y == a;
      if (y->visit == x->walk || y->comp != x->c) continue;
      y->visit = x->walk;
      *vec_push(&stack) = y;
    }
  }
  vec_free(&stack);
  return hit;
}

static bool alike(const HNode *a, const HNode *b, int side) {
  bool first, other;
  return a->dt == b->dt && a->in[0]->dt == b->in[0]->dt && a->in[1]->dt == b->in[1]->dt &&
         a->conv->passes == b->conv->passes && matrix(a, side, &first) && matrix(b, side, &other) &&
         first == other &&
         !strcmp(side ? a->conv->lhs : a->conv->rhs, side ? b->conv->lhs : b->conv->rhs);
}

static HNode *reshaped(Expand *x, HNode *v, const HNode *n, int rank, const int64_t *d) {
  if (hlo_same_shape(v, rank, d)) return v;
  return hlo_node(x->g, x->c, H_RESHAPE, OP_RESHAPE, n->src, v->dt, rank, d, 1, &v);
}

/* The operand as a matrix. */
static HNode *flat(Expand *x, const HNode *n, int side, bool first) {
  const HConv *c = n->conv;
  int64_t own = side ? c->n : c->m, d[2] = {first ? c->k : own, first ? own : c->k};
  return reshaped(x, n->in[side], n, 2, d);
}

static void merge(Expand *x, Merge *m) {
  HNode *a = m->parts.v[0], *shared = a->in[1 - m->side];
  int count = m->parts.n, side = m->side, kept = 0;
  bool first;
  matrix(a, side, &first);
  HNode **flats = ARENA_ARRAY(x->g->arena, HNode *, count);
  int64_t all = 0, flops = 0, d[64];
  for (int i = 0; i < count; i++) {
    const HConv *c = m->parts.v[i]->conv;
    flats[i] = flat(x, m->parts.v[i], side, first);
    all += side ? c->n : c->m;
    flops += c->flops;
  }
  int64_t wide[2] = {first ? a->conv->k : all, first ? all : a->conv->k};
  HNode *beside =
      hlo_node(x->g, x->c, H_CONCAT, OP_CONCATENATE, a->src, flats[0]->dt, 2, wide, count, flats);
  beside->index = first;
  const char *roles = side ? a->conv->lhs : a->conv->rhs;
  for (int i = 0; i < shared->rank; i++)
    if (roles[i] != 'k') d[side ? kept++ : ++kept] = shared->d[i];
  int at = side ? kept : 0; /* the dimension that is cut */
  d[at] = all;
  HConv *c = arena_dup(x->g->arena, a->conv, sizeof *c);
  char *out = arena_alloc(x->g->arena, (size_t)kept + 2);
  memset(out, side ? 'm' : 'n', (size_t)kept + 1);
  out[at] = side ? 'n' : 'm';
  out[kept + 1] = 0;
  *(side ? &c->rhs : &c->lhs) = side ? (first ? "kn" : "nk") : first ? "km" : "mk";
  *(side ? &c->n : &c->m) = all;
  c->out = out;
  c->flops = flops;
  HNode *in[2] = {side ? shared : beside, side ? beside : shared};
  HNode *whole = hlo_node(x->g, x->c, H_CONV, a->op, a->src, a->dt, kept + 1, d, 2, in);
  whole->conv = c;
  int64_t from = 0;
  for (int i = 0; i < count; i++) {
    HNode *n = m->parts.v[i];
    int64_t lo[64] = {0}, hi[64], step[64];
    d[at] = side ? n->conv->n : n->conv->m;
    for (int q = 0; q <= kept; q++) hi[q] = d[q], step[q] = 1;
    lo[at] = from;
    hi[at] = from += d[at];
    HNode *cut = n;
    if (!hlo_same_shape(n, kept + 1, d)) {
      cut = hlo_node(x->g, x->c, H_SLICE, OP_SLICE, n->src, n->dt, kept + 1, d, 1, &whole);
      n->kind = H_RESHAPE;
      n->op = OP_RESHAPE;
    } else {
      n->kind = H_SLICE;
      n->op = OP_SLICE;
    }
    cut->lo = hlo_ints(x->g, lo, kept + 1);
    cut->hi = hlo_ints(x->g, hi, kept + 1);
    cut->step = hlo_ints(x->g, step, kept + 1);
    n->conv = NULL;
    n->n_in = 1;
    n->in[0] = cut == n ? whole : cut;
  }
}

static void merge_products(Expand *x) {
  int nodes = x->c->nodes.n;
  for (int i = 0; i < nodes; i++) x->c->nodes.v[i]->visit = 0;
  for (int i = 0; i < nodes; i++) {
    HNode *a = x->c->nodes.v[i];
    for (int side = 1; side >= 0 && product(a); side--) {
      const HNode *shared = a->in[1 - side];
      Merge m = {.side = side, .bytes = moved_bytes(a)};
      *vec_push(&m.parts) = a;
      for (int u = 0; u < shared->n_users; u++) {
        HNode *b = shared->users[u];
        if (b->id <= a->id || b->comp != x->c || !product(b) || b->in[1 - side] != shared ||
            b->in[side] == shared || !alike(a, b, side) || m.bytes > MERGED ||
            moved_bytes(b) > MERGED)
          continue;
        bool apart = true;
        for (int q = 0; q < m.parts.n && apart; q++)
          apart = b != m.parts.v[q] && !needs(x, b, m.parts.v[q]) && !needs(x, m.parts.v[q], b);
        if (!apart) continue;
        *vec_push(&m.parts) = b;
        m.bytes += moved_bytes(b) - hlo_bytes(shared);
      }
      if (m.parts.n > 1) merge(x, &m);
      vec_free(&m.parts);
    }
  }
}

/* What a compiler does that a framework does not. */
static void compiled(HGraph *g, const Chip *chip) {
  for (HComp *c = g->comps; c; c = c->next) {
    Expand x = {.g = g, .c = c};
    for (int i = 0; i < c->nodes.n; i++) turn_product(&x, c->nodes.v[i]);
  }
  gpu_types(g, chip);
  hlo_users(g, g->main);
  for (HComp *c = g->comps; c; c = c->next) {
    Expand x = {.g = g, .c = c};
    merge_products(&x);
    gpu_split_sums(g, c);
  }
}

/* Operands and convolutions as the libraries take them. */
static void call_libraries(HGraph *g, bool compiled) {
  int id = 0;
  for (HComp *c = g->comps; c; c = c->next) {
    Expand x = {.g = g, .c = c};
    for (int i = 0, n = c->nodes.n; i < n; i++) {
      HNode *p = c->nodes.v[i];
      if (p->kind == H_EWISE && compiled) hlo_add_rows_to(g, p);
      if (p->kind == H_CONV && p->conv->is_conv && !p->dead && compiled) gpu_expand_conv(&x, p);
      for (int side = 0;
           side < 2 && p->kind == H_CONV && !p->conv->is_conv && !p->dead && !p->attention; side++)
        turn_operand(&x, p, side);
    }
    vec_free(&x.made);
    hlo_sort(g, c);
    for (int i = 0; i < c->nodes.n; i++) c->nodes.v[i]->id = id++;
  }
  hlo_users(g, g->main);
}

void gpu_turn_operands(HGraph *g) { call_libraries(g, false); }

void gpu_rewrite(HGraph *g, const Chip *chip, const CostParams *params) {
  (void)params;
  compiled(g, chip);
  call_libraries(g, true);
}
