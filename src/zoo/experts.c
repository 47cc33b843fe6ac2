/* A mixture of experts: gated feed-forward networks of which each token uses two, chosen by a router
 * (Mixtral, Jiang et al. 2024). In training an expert takes so many tokens of a sequence and no more, first
 * choices first (GShard, Lepikhin et al. 2020); asked, all that choose it. */
#include "zoo/zoo_priv.h"

#include <math.h>

#define CAPACITY 1.25 /* of its even share of a sequence */

typedef struct Choice {
  Value *gates;      /* (B, T, E) f32: weights of the experts, two of them above zero */
  Value *chosen[2];  /* (B, T, E) i1 */
  Value *likelihood; /* (B, T, E) f32: the router's softmax */
} Choice;

static Value *over_experts(Build *b, Value *x, const Type *t) { /* (B, T) -> (B, T, E) */
  return b_bcast_like(b, x, t, (int[]){0, 1});
}

/* Where p is largest along the last dimension; the first of equals. */
static Value *largest(Build *b, Value *p) {
  Type *ids = b_type_as(b, p->type, DT_I32);
  int64_t last = 2;
  Value *most = over_experts(b, b_reduce(b, OP_MAXIMUM, p, 1, &last), p->type);
  Value *which = b_iota(b, ids, 2), *none = b_full(b, ids, (double)b_dim(p, 2));
  Value *at = b_select(b, b_compare(b, "EQ", p, most), which, none);
  at = over_experts(b, b_reduce(b, OP_MINIMUM, at, 1, &last), ids);
  return b_compare(b, "EQ", which, at);
}

static Choice choose(Net *n, Value *x, int64_t experts) {
  Build *b = &n->b;
  DType compute = n->compute;
  n->compute = DT_F32; /* a rounded router chooses others */
  Value *z = net_dense(n, "router", x, experts, false, INIT(INIT_NORMAL, 0.02));
  n->compute = compute;
  Choice c = {.likelihood = net_softmax(n, z)};
  Value *p = c.likelihood; /* comparisons let no gradient through */
  int64_t last = 2;
  c.chosen[0] = largest(b, p);
  c.chosen[1] = largest(b, b_select(b, c.chosen[0], b_full(b, p->type, -1), p));
  Value *either = b_binary(b, OP_OR, c.chosen[0], c.chosen[1]);
  Value *kept = b_select(b, either, c.likelihood, b_full(b, p->type, 0));
  c.gates = b_div(b, kept, over_experts(b, b_reduce(b, OP_ADD, kept, 1, &last), p->type));
  return c;
}

typedef struct Weights {
  Value *gate, *up, *down; /* (E, C, I), (E, C, I), (E, I, C) */
} Weights;

static Weights weights(Net *n, int64_t experts, int64_t width, int64_t inner, double proj) {
  Build *b = &n->b;
  int64_t in[] = {experts, width, inner}, out[] = {experts, inner, width};
  Init normal = INIT(INIT_NORMAL, 0.02);
  return (Weights){
      b_convert(b, net_param(n, "gate", 3, in, normal, 0), n->compute),
      b_convert(b, net_param(n, "up", 3, in, normal, 0), n->compute),
      b_convert(b, net_param(n, "down", 3, out, INIT(INIT_NORMAL, proj), 0), n->compute)};
}

static Value *silu_times(Build *b, Value *gate, Value *up) {
  return b_mul(b, b_mul(b, gate, b_logistic(b, gate)), up);
}

/* Every expert for every token, weighted: exact, and as much work as there are experts. */
static Value *all_of_them(Net *n, Value *x, const Choice *c, const Weights *w) {
  Build *b = &n->b;
  DotDims into = {.n_contract = 1, .lhs_contract = {2}, .rhs_contract = {1}};
  Value *h = silu_times(b, net_f8(n, b_dot(b, x, w->gate, &into, n->compute, NULL)),
                        net_f8(n, b_dot(b, x, w->up, &into, n->compute, NULL))); /* (B, T, E, I) */
  Value *g = b_convert(b, c->gates, n->compute);
  h = b_mul(b, h, b_bcast_like(b, g, h->type, (int[]){0, 1, 2}));
  DotDims back = {.n_contract = 2, .lhs_contract = {2, 3}, .rhs_contract = {0, 1}};
  return net_f8(n, b_dot(b, h, w->down, &back, n->compute, NULL));
}

/* How many before each token of its sequence have chosen the same expert: (B, T, E) i32. */
static Value *before(Build *b, Value *chosen) {
  int64_t t = b_dim(chosen, 1);
  Window all = {.size = (int64_t[]){1, t, 1}, .padding = (int64_t[]){0, 0, t - 1, 0, 0, 0}};
  return b_sub(b, b_reduce_window(b, OP_ADD, chosen, &all), chosen);
}

/* (B, T, E, places): 1 where a token has that place of that expert. */
static Value *places(Net *n, const Choice *c, int64_t count) {
  Build *b = &n->b;
  const Type *t = c->gates->type;
  int64_t dims[] = {t->dims[0], t->dims[1], t->dims[2], count}, sequence = 1;
  Type *ids = b_type_as(b, t, DT_I32), *wide = b_type(b, DT_I32, 4, dims);
  Value *out = NULL, *taken = NULL, *slot = b_iota(b, wide, 3);
  for (int k = 0; k < 2; k++) {
    Value *chosen = b_convert(b, c->chosen[k], DT_I32), *at = before(b, chosen);
    if (taken) at = b_add(b, at, b_bcast_like(b, taken, ids, (int[]){0, 2}));
    taken = b_reduce(b, OP_ADD, chosen, 1, &sequence);
    at = b_select(b, c->chosen[k], at, b_full(b, ids, -1)); /* no place is below zero */
    Value *is = b_compare(b, "EQ", b_bcast_like(b, at, wide, (int[]){0, 1, 2}), slot);
    out = out ? b_binary(b, OP_OR, out, is) : is;
  }
  return b_convert(b, out, n->compute);
}

/* The tokens go to their experts' places, through them, and back; what finds no place is left out. */
static Value *two_of_them(Net *n, Value *x, const Choice *c, const Weights *w) {
  Build *b = &n->b;
  int64_t experts = b_dim(c->gates, 2);
  int64_t count = (int64_t)ceil(CAPACITY * 2 * (double)b_dim(x, 1) / (double)experts);
  Value *at = places(n, c, count);
  DotDims go = {.n_batch = 1,
                .lhs_batch = {0},
                .rhs_batch = {0},
                .n_contract = 1,
                .lhs_contract = {1},
                .rhs_contract = {1}};
  Value *there = b_dot(b, at, x, &go, n->compute, NULL); /* (B, E, places, C) */
  DotDims into = {.n_batch = 1,
                  .lhs_batch = {1},
                  .rhs_batch = {0},
                  .n_contract = 1,
                  .lhs_contract = {3},
                  .rhs_contract = {1}};
  Value *h = silu_times(
      b, net_f8(n, b_dot(b, there, w->gate, &into, n->compute, NULL)),
      net_f8(n, b_dot(b, there, w->up, &into, n->compute, NULL))); /* (E, B, places, I) */
  DotDims out = {.n_batch = 1,
                 .lhs_batch = {0},
                 .rhs_batch = {0},
                 .n_contract = 1,
                 .lhs_contract = {3},
                 .rhs_contract = {1}};
  Value *y = net_f8(n, b_dot(b, h, w->down, &out, n->compute, NULL)); /* (E, B, places, C) */
  Value *g = b_convert(b, c->gates, n->compute);
  at = b_mul(b, at, b_bcast_like(b, g, at->type, (int[]){0, 1, 2}));
  DotDims back = {.n_batch = 1,
                  .lhs_batch = {0},
                  .rhs_batch = {1},
                  .n_contract = 2,
                  .lhs_contract = {2, 3},
                  .rhs_contract = {0, 2}};
  return b_dot(b, at, y, &back, n->compute, NULL);
}

/* How unevenly they are used: 1 when all are alike (Switch, Fedus et al. 2021). */
static Value *unevenness(Build *b, const Choice *c) {
  int64_t experts = b_dim(c->gates, 2), dims[] = {0, 1};
  Value *used = b_mean(b, b_convert(b, c->chosen[0], DT_F32), 2, dims);
  Value *likely = b_mean(b, c->likelihood, 2, dims);
  return b_muls(b, b_reduce_all(b, OP_ADD, b_mul(b, used, likely)), (double)experts);
}

Value *zoo_experts(Net *n, Value *x, int64_t experts, int64_t inner, double proj, Value **uneven) {
  NetScope s = net_enter(n, "experts");
  Choice c = choose(n, x, experts);
  Weights w = weights(n, experts, b_dim(x, 2), inner, proj);
  x = b_convert(&n->b, x, n->compute);
  Value *y = n->training ? two_of_them(n, x, &c, &w) : all_of_them(n, x, &c, &w);
  if (n->training) {
    Value *u = unevenness(&n->b, &c);
    *uneven = *uneven ? b_add(&n->b, *uneven, u) : u;
  }
  net_leave(n, s);
  return y;
}
