/* Which nodes of the graph are stored; everything else is computed inside its readers. The rules
 * come from comparing with the compiler's own plans (tests/sim/oracle): products keep their
 * element-wise epilogue, a softmax stays in one kernel, what several products would recompute
 * dearly is stored once. */
#include <math.h>
#include <stdlib.h>

#include "sim/hlo/query.h"
#include "sim/schedule/compiler.h"
#include "sim/tpu/tpu.h"

/* Rows that are gathered only to be scattered, perhaps masked in between, are not stored. */
static bool scattered_rows(const HNode *x) {
  for (int depth = 0; depth < 4 && x->n_users == 1 && !x->is_output; depth++) {
    const HNode *u = x->users[0];
    if (u->comp != x->comp) return false;
    if (u->kind == H_SCATTER)
      return u->n_in == 3 && u->in[2] == x && u->in[0] != x && u->in[1] != x;
    if (u->kind != H_EWISE || hlo_count(u) != hlo_count(x)) return false;
    x = u;
  }
  return false;
}
static bool gathered(const HNode *x) {
  for (int depth = 0; depth < 4; depth++) {
    if (x->kind == H_GATHER) return scattered_rows(x);
    const HNode *next = NULL;
    for (int i = 0; i < x->n_in && x->kind == H_EWISE; i++)
      if (x->in[i]->kind == H_GATHER ||
          (x->in[i]->kind == H_EWISE && x->in[i]->n_users == 1 && !next))
        next = x->in[i];
    if (!next) return false;
    x = next;
  }
  return false;
}

/* Rows that are only added up, made or cut out of others as they lie: each when its turn comes. Narrow ones
 * lie otherwise where they are made, with their elements in sublanes. */
static bool made_to_scatter(const HNode *user, const HNode *x) {
  const HNode *rows = x->kind == H_SLICE ? x->in[0] : x;
  return (x->kind == H_SLICE || x->kind == H_EWISE) && x->rank == 2 && rows->d[1] % 128 == 0 &&
         x->n_users == 1 && !x->is_output && user->n_in == 3 && user->in[2] == x;
}

/* Is it the edge that windows reach over? */
static bool edges(const HNode *n) {
  for (int i = 0; i < n->n_users; i++)
    if (n->users[i]->kind != H_RWIN) return false;
  return n->kind == H_PAD && n->n_users > 0;
}

/* Does the user compute this operand inside itself? A TPU's kernels put things together, and take
 * them apart, as they lie in memory. */
static bool absorbs(const Schedule *p, const HNode *user, const HNode *x) {
  bool moves = user->kind == H_PAD || user->kind == H_SLICE || user->kind == H_CONCAT;
  if (user->kind == H_REVERSE) return false;
  if (x->kind == H_PAD && x->part && user->kind == H_CONCAT) return true;
  if (x->kind == H_PAD && user->kind == H_SLICE) return true; /* moved by a few rows */
  if (moves && !edges(user)) return hlo_const_only(x) || tpu_written_in_place(p->params, user);
  switch (user->kind) {
  case H_CONV: return x->kind != H_REVERSE;
  case H_SCATTER: return !p->params->offload && (gathered(x) || made_to_scatter(user, x));
  case H_RWIN:
    return user->n_results == 1 && user->in[0] == x &&
           (x->kind == H_PAD || tpu_pool_emitter(p, user));
  default: return sched_absorbs(user, x);
  }
}

/* Two images side by side, neither of them rows that are looked up: a convolution puts them together itself. */
static bool joins_images(const HNode *n) {
  if (n->kind != H_CONCAT || n->part || n->n_in != 2) return false;
  for (int i = 0; i < n->n_in; i++) {
    const HNode *x = n->in[i];
    while (x->n_in && (x->kind == H_TRANSPOSE || x->kind == H_RESHAPE)) x = x->in[0];
    if (x->kind == H_GATHER) return false;
  }
  return true;
}

/* Do only products and sums read it in the end, or is it written into a stack? */
static bool read_in_parts(const HNode *n, int depth) {
  if (n->is_output || !n->n_users) return false;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    bool moved = u->kind == H_TRANSPOSE || (u->kind == H_RESHAPE && hlo_same_dimensions(u)) ||
                 (u->kind == H_EWISE && u->op == OP_CONVERT);
    if (moved && depth < 3 && read_in_parts(u, depth + 1)) continue;
    bool stack = u->kind == H_DUS && n->comp->parent;
    bool product = u->kind == H_CONV && (!u->conv->is_conv || joins_images(n));
    if (u->kind != H_REDUCE && !stack && !product) return false;
  }
  return true;
}

/* Is it a concatenation whose readers put it together from its padded operands themselves? */
static bool joined_inside(const HNode *n) {
  return n->kind == H_CONCAT && !n->is_output && (n->joined || read_in_parts(n, 0));
}

/* An array that several products read is stored once when repeating its making would read more than
 * that: its inputs weigh at least three times the result (twice when it takes an exponential or its
 * like). */
static int product_readers(const HNode *n, int depth) {
  int r = 0;
  for (int i = 0; i < n->n_users && depth < 4; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_CONV) r++;
    else if (u->kind == H_TRANSPOSE || u->kind == H_RESHAPE || joined_inside(u) ||
             (u->kind == H_EWISE && u->op == OP_CONVERT && !u->val))
      r += product_readers(u, depth + 1);
  }
  return r;
}
/* Where an element-wise value ends up, through others of its size. */
static void endings(const HNode *n, int depth, int *budget, int *convs, int *reduces, int *others) {
  for (int i = 0; i < n->n_users && depth < 24 && *budget > 0; i++, --*budget) {
    const HNode *u = n->users[i];
    if (u->kind == H_CONV) ++*convs;
    else if (u->kind == H_REDUCE) ++*reduces;
    else if (hlo_count(u) != hlo_count(n)) continue;
    else if (u->is_output) ++*others;
    else if (hlo_light(u)) endings(u, depth + 1, budget, convs, reduces, others);
    else ++*others;
  }
}

/* Who else reads it: whether a sum does, and how many kernels that write an array of its size, be
 * it in a product's epilogue. */
static void read_beside(const HNode *n, const unsigned char *claimed, int depth, int *budget,
                        int *sum, int *rest) {
  for (int i = 0; i < n->n_users && depth < 8 && *budget > 0; i++, --*budget) {
    const HNode *u = n->users[i];
    if (u->kind == H_REDUCE) *sum = MAX(*sum, (int)hlo_bits(u->dt));
    else if (u->kind == H_CONV || hlo_count(u) != hlo_count(n)) continue;
    else if (claimed[u->id] || u->is_output || !hlo_light(u)) ++*rest;
    else read_beside(u, claimed, depth + 1, budget, sum, rest);
  }
}

/* How many times its own size an array that convolutions of single pixels, or of groups, read with the
 * batch in lanes may be made from for each of them to make it again; where windows step over pixels,
 * some generations store it. */
static double batch_in_lanes(const CostParams *params, const HNode *n) {
  int order[64];
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind != H_CONV || !u->conv->is_conv || u->in[0] != n || n->rank > 64) continue;
    tpu_conv_order(params, n, u->conv, u->conv->lhs, order);
    if (u->conv->lhs[order[0]] != 'm') return HUGE_VAL;
    bool steps = false;
    for (int s = 0; s < u->conv->n_spatial; s++)
      steps |= u->conv->stride[s] > 1 || u->conv->lhs_dil[s] > 1;
    if (steps) return params->stepped ? 1 : 2;
    return u->conv->taps > 1 && u->conv->groups == 1 ? HUGE_VAL : 2;
  }
  return HUGE_VAL;
}

/* The convolution that an array of images is made of, element by element. */
static const HNode *image_of(const HNode *n) {
  for (int depth = 0; depth < 24; depth++) {
    if (n->kind == H_CONV) return n->conv->is_conv ? n : NULL;
    const HNode *next = NULL;
    for (int i = 0; i < n->n_in && n->kind == H_EWISE && !next; i++)
      if (n->in[i]->rank == n->rank && n->in[i]->kind != H_BCAST && n->in[i]->kind != H_CONST)
        next = n->in[i];
    if (!next) return NULL;
    n = next;
  }
  return NULL;
}

/* Does a convolution write the images with the batch in sublanes, and a product want a side of them there?
 * What it has to turn is not made inside of it. */
static bool turned_by_product(const CostParams *params, const HNode *n) {
  const HNode *image = n->rank > 3 && n->rank <= 64 ? image_of(n) : NULL;
  if (!image) return false;
  int order[64];
  tpu_conv_order(params, image, image->conv, image->conv->out, order);
  if (image->conv->out[order[1]] != 'm') return false;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_CONV && !u->conv->is_conv && u->conv->batch == 1 && u->in[0] == n &&
        u->conv->lhs[order[1]] == 'm' && tpu_dot_row(n, u->conv, -1) != order[1])
      return true;
  }
  return false;
}

static int64_t in_eights(int64_t rows) { return (rows + 7) / 8 * 8; }

/* Does a product whose result is turned, so that its operands change places, meet it with what a loop wrote
 * round by round? Rows of the array lie by the last of its two sides if that pads no more than the
 * first, and rounds have to be turned then, inside the product, which does not make the other operand as well. */
static bool meets_rounds(const HNode *n) {
  if (n->rank != 3 || in_eights(n->d[1]) * n->d[0] > in_eights(n->d[0]) * n->d[1]) return false;
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind != H_CONV || u->conv->is_conv || u->n_in < 2 || u->n_users != 1) continue;
    const HNode *x = u->in[u->in[0] == n];
    if (x->kind == H_TRANSPOSE && x->in[0]->kind == H_GET && x->in[0]->in[0]->kind == H_WHILE &&
        u->users[0]->kind == H_TRANSPOSE)
      return true;
  }
  return false;
}

#define HIDDEN \
  8 /* times as many queries as columns: while products have to wait for their array anyway */

/* Has a key more queries, in the gradient n of scores that products read? */
static bool many_queries(const HNode *n, int depth) {
  for (int i = 0; i < n->n_users && depth < 4; i++) {
    const HNode *u = n->users[i];
    const HConv *c = u->conv;
    if (u->kind == H_CONV)
      return MAX(c->k, u->in[0] == n ? c->m : c->n) > HIDDEN * (u->in[0] == n ? c->n : c->m);
    if ((u->kind == H_TRANSPOSE || u->kind == H_RESHAPE) && many_queries(u, depth + 1)) return true;
  }
  return false;
}

#define REPEAT 3  /* times its own size: what a value of two readers may be made of */
#define GATED 3.5 /* of several products */
#define LONG 30   /* slots of an operation: a sine */

/* How many kernels would each make n again; 0: fewer than two. */
static int makers(const HNode *n, const unsigned char *claimed, bool *summed) {
  if (n->op == OP_SELECT &&
      n->n_users > 1) { /* a masked gradient that the residual path needs as well */
    int budget = 400, convs = 0, reduces = 0, others = 0;
    endings(n, 0, &budget, &convs, &reduces, &others);
    return convs < 2 || reduces < 1 || others < 1 ? 0 : 3;
  }
  int readers = product_readers(n, 0), budget = 200, sum = 0, rest = 0;
  if (readers < 2) return 0;
  read_beside(n, claimed, 0, &budget, &sum, &rest);
  for (int i = 0; n->op == OP_CONVERT && i < n->in[0]->n_users; i++) /* before it is rounded */
    sum |= n->in[0]->users[i]->kind == H_REDUCE;
  *summed = sum;
  return readers + *summed + MIN(rest, 1);
}

/* What a value is made of, element by element, up to what is stored. */
typedef struct Making {
  const HNode *stack[64], *leaf[32];
  int ns, nl;
  double in;           /* bytes */
  double slots, moved; /* cycles: of the vector unit, to bring what it is made of */
  int products;        /* that it takes in */
  bool dear;           /* an exponential or its like */
  bool gate;           /* of a gated unit */
  bool softmax, again; /* exponentials that are summed up; that are made again from scores */
  bool apart;          /* scores that a reshape parts from their softmax */
  bool quotient;       /* stored exponentials of a softmax, in rows that are divided again */
  bool wide;           /* of elements of 32 bits */
} Making;

static void note_operation(Making *m, const HNode *x) {
  bool exponential = x->op == OP_EXPONENTIAL, again = exponential && x->soft;
  m->slots += op_weight(x);
  m->gate |= x->op == OP_TANH || x->op == OP_LOGISTIC || (exponential && x->in[0]->op == OP_NEGATE);
  for (int i = 0; exponential && i < x->n_users; i++) m->softmax |= x->users[i]->kind == H_REDUCE;
  m->dear |= !x->soft && (exponential || x->op == OP_TANH || x->op == OP_LOGISTIC);
  m->again |= again;
}

static void note_array(Making *m, const CostParams *params, const HNode *y) {
  m->in += hlo_bytes(y);
  m->wide |= hlo_bits(y->dt) > 16;
  m->moved += params->product.r[MIN(4, (int)hlo_bits(y->dt) / 8)] * (double)hlo_count(y) / 1024;
  m->products += y->kind == H_CONV;
  m->apart |= y->kind == H_CONV && y->conv->cut_to_one;
}

static void note_operand(Making *m, const CostParams *params, const HNode *n, const HNode *x,
                         int i) {
  const HNode *y = x->in[i];
  if (x->kind == H_PAD && !hlo_const_only(y)) m->in += hlo_bytes(y);
  if (hlo_count(y) != hlo_count(n)) return;
  if (y->kind == H_BCAST && !hlo_const_only(y)) m->in += hlo_bytes(y->in[0]);
  for (int k = 0; k < m->nl; k++)
    if (m->leaf[k] == y) return;
  if (y->kind == H_CONST || y->kind == H_BCAST) return;
  if (m->nl < COUNT_OF(m->leaf)) m->leaf[m->nl++] = y;
  m->quotient |= y->soft && y->val && (double)y->d[y->rank - 1] >= params->quotient_row;
  if (!hlo_light(y) || y->val) note_array(m, params, y);
  else if (m->ns < COUNT_OF(m->stack)) m->stack[m->ns++] = y;
}

static Making making(const CostParams *params, const HNode *n) {
  Making m = {.stack = {n}, .ns = 1};
  for (int steps = 0; m.ns && steps < 400; steps++) {
    const HNode *x = m.stack[--m.ns];
    note_operation(&m, x);
    if (x->kind == H_SLICE || x->kind == H_DSLICE)
      m.in += hlo_bytes(x); /* of something that is stored */
    else
      for (int i = 0; i < x->n_in; i++) note_operand(&m, params, n, x, i);
  }
  return m;
}

/* Does it save bytes to store n, rather than that each reader makes it? Stored, it is written once and read by each; made again,
 * what it is made of is read by all but the one that makes it anyway. What takes long to make counts as if one more reader did. Of
 * several products that are stored anyway, as in a gated unit, even that is repeated. */
static bool worth_storing(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  const CostParams *params = p->params;
  bool summed = false;
  if (n->kind != H_EWISE || hlo_count(n) < (n->comp->parent ? 1024 : 65536)) return false;
  int readers = makers(n, claimed, &summed);
  if (!readers) return false;
  if (op_weight(n) >= LONG || turned_by_product(params, n) ||
      (summed && hlo_bits(n->dt) == 16 && meets_rounds(n)))
    return true;
  Making m = making(params, n);
  double out = hlo_bytes(n);
  if (m.again) { /* what attention goes backwards through, several heads to a key */
    bool quotients = params->quotient < REPEAT, any = params->quotient_row <= 0;
    const HNode *e = quotients && !m.wide && n->op == OP_CONVERT ? hlo_exponentials(n) : NULL;
    if (e && (double)e->d[e->rank - 1] >= params->quotient_row)
      return params->weighs || n->in[0]->n_users == 1;
    bool stored = quotients ? any || !m.wide : params->weighs && !m.wide && many_queries(n, 0);
    m.dear |= stored && (m.apart || hlo_sides(n) >= GROUPED);
  }
  /* of a softmax of scores that are made of vectors: its sum makes them as well */
  if ((summed || (m.softmax && m.in < out)) && tpu_comes_with_sum(params, n, m.slots, m.moved))
    return true;
  if (m.gate && m.products >= 2) return m.in >= GATED * out;
  readers += m.dear && readers < 3;
  double limit = MIN((readers + 1.0) / (readers - 1), batch_in_lanes(params, n));
  return m.in >= (m.quotient ? MIN(limit, params->quotient) : limit) * out;
}

#define VECTOR 65536 /* elements */
#define LEAVES 3

/* Is it a short array that several others are made of, itself made of several? It costs a kernel each to
 * make it again, and nothing to keep. */
static bool shared_vector(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)p;
  int64_t count = hlo_count(n);
  return n->kind == H_EWISE && n->n_users >= 2 && count >= 16 && count < VECTOR &&
         !n->comp->parent && !tpu_meets_again((HNode *)n, claimed) &&
         tpu_leaves(n, false) >= LEAVES;
}

/* Is it a mask made of wider stored arrays, which its users would each read instead? The compiler fuses
 * what saves bytes: the mask, written once and read by each, against what it is made of. */
static bool shared_mask(const HNode *n) {
  if (n->kind != H_EWISE || n->op != OP_COMPARE || n->n_users < 2 || hlo_count(n) < VECTOR)
    return false;
  double in = 0, out = (double)hlo_count(n);
  for (int i = 0; i < n->n_in; i++) {
    const HNode *x = n->in[i];
    if (hlo_const_only(x) || hlo_count(x) != hlo_count(n)) continue;
    if ((!x->val && hlo_light(x)) || x->n_users > 1) return false; /* they may read it anyway */
    in += hlo_bytes(x);
  }
  return in * (n->n_users - 1) > out * (n->n_users + 1);
}

/* Is it a gate in a loop, made of two arrays or more, that several others are made of? It is not
 * computed again for each. */
static bool shared_gate(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)p, (void)claimed;
  if (!n->comp->parent || n->kind != H_EWISE || n->n_users < 2 || hlo_count(n) < 1024 || n->soft)
    return false;
  bool gate = n->op == OP_TANH || n->op == OP_LOGISTIC;
  const HNode *d = n->op == OP_DIVIDE && hlo_const_only(n->in[0]) ? n->in[1] : NULL;
  for (int i = 0; d && d->op == OP_ADD && i < d->n_in; i++) /* 1 / (1 + exp(-x)) */
    gate |= d->in[i]->op == OP_EXPONENTIAL;
  return gate && tpu_leaves(n, false) >= 2;
}

static bool computed_inside(const HNode *n) { /* made from a reduction inside the same kernel */
  for (int depth = 0; depth < 8; depth++) {
    if (n->inlined) return true;
    if (n->kind != H_EWISE && n->kind != H_RESHAPE && n->kind != H_BCAST) return false;
    n = n->in[0];
  }
  return false;
}

/* Does the user repeat each element of x, perhaps behind a change of shape? */
static bool spreads(const HNode *user, const HNode *x) {
  if (user->kind == H_BCAST) return hlo_count(user) > hlo_count(x);
  if (user->kind != H_RESHAPE || user->val) return false;
  for (int i = 0; i < user->n_users; i++)
    if (user->users[i]->kind == H_BCAST && hlo_count(user->users[i]) > hlo_count(x)) return true;
  return false;
}

/* What a convolution makes, clipped (relu) and needed again only to know where it was clipped: the
 * clipped array and one bit an element are stored, up to 32 along a side of the image in a word, and
 * the array itself is not. Where the clipped one is pooled, a kernel of its own finds the bits; but if
 * only a pool reads it (no gradient of a maximum), that clips for itself. */
static void store_mask(Schedule *p, HNode *x) {
  HNode *mask = NULL, *clipped = NULL;
  for (int i = 0; i < x->n_users; i++) {
    HNode *u = x->users[i];
    if (u->kind != H_EWISE || u->n_in != 2 ||
        !(hlo_const_only(u->in[0]) || hlo_const_only(u->in[1])))
      return;
    if (u->op == OP_COMPARE && !mask) mask = u;
    else if (u->op == OP_MAXIMUM && !clipped) clipped = u;
    else return;
  }
  if (!mask || !clipped || x->is_output || mask->is_output || x->rank < 3) return;
  for (int i = 0; i < mask->n_users; i++)
    if (mask->users[i]->kind != H_EWISE || mask->users[i]->op != OP_SELECT) return;
  int64_t side = 0;
  for (int i = 1; i < x->rank - 1; i++)
    if (x->d[i] <= 32) side = MAX(side, x->d[i]);
  if (side < 8) return;
  HValue *v = sched_store(p, mask);
  v->packed = (int)side;
  if (clipped->n_users == 1 && clipped->users[0]->kind == H_RWIN) {
    sched_store(p, x);
    return;
  }
  for (int i = 0; i < clipped->n_users; i++) v->lone |= clipped->users[i]->kind == H_RWIN;
  sched_store(p, clipped);
}

/* Where a clipped array is stored, what asks for the places where it was clipped reads that, not
 * what it was made from. */
static void ask_clipped(Schedule *p, HNode *m) {
  for (int side = 0; side < 2; side++) {
    HNode *x = m->in[side], *limit = m->in[1 - side];
    if (!hlo_const_only(limit)) continue;
    for (int i = 0; i < x->n_users; i++) {
      HNode *u = x->users[i];
      if (u->kind != H_EWISE || u->op != OP_COMPARE || u->in[0] != x || !hlo_const_only(u->in[1]) ||
          u->comp != m->comp || !u->src || !str_is(op_str(u->src, "comparison_direction"), "GT"))
        continue;
      HNode **users = ARENA_ARRAY(p->arena, HNode *, m->n_users + 1);
      memcpy(users, m->users, sizeof *users * (size_t)m->n_users);
      users[m->n_users++] = u;
      m->users = users;
      u->in[0] = m;
      x->users[i--] = x->users[--x->n_users];
    }
  }
}

/* Does it leave elements out, or put some between, along a side that lies in tiles? No kernel does that
 * on the way. */
static bool strides_in_tiles(const HNode *n) {
  int i = n->rank - 2;
  if (i < 0) return false;
  return (n->kind == H_SLICE && n->step[i] > 1) ||
         (n->kind == H_PAD && n->step[i] > 0 && !edges(n));
}

/* Is it turned about along a side of its tiles? That is an operation of its own. */
static bool reversed_in_tiles(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)claimed;
  int order[64];
  if (n->kind != H_REVERSE || n->rank > 64) return false;
  value_order_default(p->params, n, order);
  for (int i = 0; i < n->n_dims; i++)
    if (n->rank < 2 || n->dims[i] == order[0] || n->dims[i] == order[1]) return true;
  return false;
}

/* Products and pools, with what their kernels go on to compute. */
static void store_products(Schedule *p, unsigned char *claimed) {
  HComp *c = p->comp;
  for (int i = c->nodes.n - 1; i >= 0; i--) {
    HNode *n = c->nodes.v[i];
    if (n->dead || n->attention) continue;
    if (n->kind != H_CONV && !(n->kind == H_RWIN && tpu_pool_emitter(p, n))) continue;
    if (n->kind == H_RWIN && claimed[n->id]) continue;
    HNode *end = tpu_epilogue_end(p, n, claimed);
    for (HNode *v = n; v != end; v = v->users[0]) claimed[v->users[0]->id] = 1;
    if (n->kind == H_RWIN && end != n) claimed[n->id] = 1;
    sched_why(end, "stored", "the end of a product's or pool's kernel");
    sched_store(p, end);
    end->val->on_demand = false;
    if (n->kind == H_CONV && n->conv->is_conv) store_mask(p, end);
  }
}

static bool is_result(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)p, (void)claimed;
  return n->is_output;
}

static bool lies_apart(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)p, (void)claimed;
  return n->apart;
}

static bool upsampled(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)p, (void)claimed;
  return tpu_upsampled(n);
}

static bool cuts_number(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)p, (void)claimed;
  return hlo_cuts_number(n);
}

/* Has it a reader that does not compute it inside itself, or repeats each of its elements? */
static bool reader_asks(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  (void)claimed;
  for (int k = 0; k < n->n_users; k++) {
    const HNode *u = n->users[k];
    if (u->comp != n->comp || !absorbs(p, u, n)) return true;
    if (spreads(u, n) && hlo_count(n) > 1 && !hlo_const_only(n) && n->kind != H_RESHAPE &&
        n->kind != H_TRANSPOSE && !computed_inside(n))
      return true;
  }
  return false;
}

/* Why a node that readers could compute is stored all the same, on all chips unless their files say otherwise (params.def); the first
 * rule that asks for it counts. Small programs that show it, with libtpu's figures, are in tests/sim/cases/tpu. */
typedef struct StoreRule {
  const char *name;
  bool (*asks)(const Schedule *p, const HNode *n, const unsigned char *claimed);
  const char *cases;
} StoreRule;
static const StoreRule store_rules[] = {
    {"a result of the program", is_result, "all"},
    {"turned about in its tiles", reversed_in_tiles, "free_turned"},
    {"a kernel of its own", lies_apart, "what marks HNode.apart has its own"},
    {"pixels repeated for a convolution", upsampled, "batch_repeats_twice, grouped_repeated"},
    {"one element cut out", cuts_number, "walked_number"},
    {"a short array that several are made of", shared_vector, "none: blocks and steps of the sets"},
    {"a gate that several are made of, in a loop", shared_gate,
     "none: blocks and steps of the sets"},
    {"cheaper to store than to compute again", worth_storing, "store_*"},
    {"a reader that does not compute it", reader_asks, "all"}};

/* NULL: none. */
static const char *why_stored(const Schedule *p, const HNode *n, const unsigned char *claimed) {
  for (int i = 0; i < COUNT_OF(store_rules); i++)
    if (store_rules[i].asks(p, n, claimed)) return store_rules[i].name;
  return NULL;
}

static void store_rest(Schedule *p, const unsigned char *claimed) {
  HComp *c = p->comp;
  for (int i = c->nodes.n - 1; i >= 0; i--) {
    HNode *n = c->nodes.v[i];
    if (n->dead || n->val ||
        (n->kind != H_CONST && (n->kind == H_CONV || n->inlined || n->attention)))
      continue;
    if (n->kind == H_CONST) {
      if (!n->splat || n->is_output) sched_store(p, n);
    } else if (!hlo_light(n)) {
      bool rows = !p->params->offload && n->kind == H_GATHER && scattered_rows(n);
      if (!claimed[n->id] && !rows && !joined_inside(n)) sched_store(p, n);
    } else if (!claimed[n->id] || n->is_output) {
      bool alone = (!n->is_output && strides_in_tiles(n)) || tpu_slices_tiles(p, n);
      const char *rule = alone ? "cut in its tiles" : why_stored(p, n, claimed);
      if (!rule) continue;
      sched_why(n, "stored", rule);
      sched_store(p, n)->lone |= alone;
    }
  }
}

void tpu_fuse(Schedule *p) {
  HComp *c = p->comp;
  unsigned char *claimed = xcalloc((size_t)p->g->n_nodes + 1, 1);
  if (p->params->softmax) tpu_softmax(p);
  tpu_split_tiles(c);
  sched_start_store(p);
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    const char *rule = n->dead               ? NULL
                       : shared_mask(n)      ? "a mask that several read"
                       : tpu_walked_again(n) ? "summed and walked over again"
                                             : NULL;
    if (rule) sched_why(n, "stored", rule), sched_store(p, n);
    if (n->dead || n->kind != H_EWISE || n->op != OP_MAXIMUM || !worth_storing(p, n, claimed))
      continue;
    sched_store(p, n);
    ask_clipped(p, n);
  }
  store_products(p, claimed);
  store_rest(p, claimed);
  free(claimed);
}
