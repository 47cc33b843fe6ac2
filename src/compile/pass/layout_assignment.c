/* pass_layout_assignment: convolutions are computed with channels last, which is the order that their kernels are made for. Programs of
 * PyTorch have the channels before the spatial dimensions; a kernel then copies its images and results, each time.
 *
 * Every convolution asks for channels last. From there layouts spread over the operations that can be computed in any
 * (layout_rules.c), as far as these reach: biases, normalisation, activations, poolings, sums, and their gradients. Where such a chain begins and
 * ends values are transposed. A chain is changed if that moves fewer bytes than its convolutions no longer copy;
 * those of few channels, which are not copied, count against it. */
#include <stdlib.h>

#include "compile/pass/layout_rules.h"
#include "compile/pass/pass_priv.h"

typedef struct Node {
  Op *op;
  Layout main;
  int chain;           /* another node of its chain; itself: it stands for all of them */
  double saved, spent; /* bytes, of the whole chain */
  bool moved;
} Node;

typedef struct Copy { /* of a value, in a layout */
  Layout at;
  Value *made;
  int next; /* of the same value; -1 */
} Copy;

typedef struct State {
  Module *m;
  Region *r;
  VEC(Node) nodes;
  int *node_of; /* by the id of a value: who makes it, if a node does; -1 */
  Uses uses;
  VEC(int) open; /* nodes whose neighbours are still to be looked at */
  /* Of values, by id: as it is computed now, in `at`; in the plain layout; other copies of it. */
  Value **moved, **plain;
  Layout *at;
  int *copy_of;
  VEC(Copy) copies;
} State;

static double bytes(const Value *v) { return (double)type_bytes(v->type); }

/* ---- chains ---- */

static int chain_of(State *s, int i) {
  while (s->nodes.v[i].chain != i) i = s->nodes.v[i].chain = s->nodes.v[s->nodes.v[i].chain].chain;
  return i;
}

static void join(State *s, int a, int b) { s->nodes.v[chain_of(s, a)].chain = chain_of(s, b); }

static int node_of(const State *s, const Op *op) {
  return op->n_results ? s->node_of[op->results[0].id] : -1;
}

static int add_node(State *s, Op *op, const Layout *main) {
  int i = s->nodes.n;
  *vec_push(&s->nodes) = (Node){.op = op, .main = *main, .chain = i, .moved = true};
  for (int k = 0; k < op->n_results; k++) s->node_of[op->results[k].id] = i;
  *vec_push(&s->open) = i;
  return i;
}

/* Node i has a value in layout `at` that is a port of op. */
static void meet(State *s, int i, Op *op, int port, const Layout *at) {
  Layout main;
  int other = node_of(s, op);
  if (other < 0) {
    if (op->parent == s->r && layout_follow(op, port, at, &main))
      join(s, add_node(s, op, &main), i);
    return;
  }
  if (layout_port(op, &s->nodes.v[other].main, port, &main) &&
      layout_same(&main, at, layout_port_type(op, port)))
    join(s, other, i);
}

static void spread(State *s, int i) {
  Op *op = s->nodes.v[i].op;
  for (int port = 0; port < op->n_operands + op->n_results; port++) {
    Layout main = s->nodes.v[i].main, at;
    if (!layout_port(op, &main, port, &at) || !layout_moves(&at, layout_port_type(op, port)))
      continue;
    if (port < op->n_operands) {
      Value *v = op->operands[port];
      if (v->def) meet(s, i, v->def, v->def->n_operands + v->index, &at);
      continue;
    }
    const Value *v = &op->results[port - op->n_operands];
    for (int u = uses_first(&s->uses, v); u < s->uses.all.n && s->uses.all.v[u].v == v; u++)
      meet(s, i, s->uses.all.v[u].by, s->uses.all.v[u].operand, &at);
  }
}

/* Bytes of a convolution's images and results that do not have channels last. */
static double bytes_copied(const Op *op) {
  double sum = 0;
  Layout main = {.n = 0}, at;
  for (int port = 0; port < 3; port++)
    if (layout_port(op, &main, port, &at) && layout_moves(&at, layout_port_type(op, port)))
      sum += (double)type_bytes(layout_port_type(op, port));
  return sum;
}

/* A kernel for so few channels takes them in any order: it copies nothing as it is, and more with channels last. */
#define FEW_CHANNELS 8

static double bytes_saved(const Op *op) {
  int64_t least = INT64_MAX;
  bool groups = op_int(op, "feature_group_count", 1) > 1 || op_int(op, "batch_group_count", 1) > 1;
  Layout main = {.n = 0}, at;
  for (int port = 0; port < 3; port++)
    if (layout_port(op, &main, port, &at))
      least = MIN(least, layout_port_type(op, port)->dims[at.d[at.n - 1]]);
  return least < FEW_CHANNELS && !groups ? -bytes_copied(op) : bytes_copied(op);
}

static void find_chains(State *s) {
  Layout main = {.n = 0};
  for (Op *op = s->r->first; op; op = op->next)
    if (op->kind == OP_CONVOLUTION && bytes_copied(op) > 0) add_node(s, op, &main);
  for (int k = 0; k < s->open.n; k++) spread(s, s->open.v[k]);
}

/* ---- what a chain costs ---- */

/* Made in any layout as fast. */
static bool is_free(const Value *v) {
  const Op *op = v->def;
  if (value_splat(v)) return true;
  return op &&
         (op->kind == OP_IOTA || (op->kind == OP_BROADCAST_IN_DIM &&
                                  2 * type_count(op->operands[0]->type) <= type_count(v->type)));
}

/* As v is computed, be it plain. */
static Layout layout_now(const State *s, const Value *v) {
  Layout at = layout_plain(v->type->rank);
  int i = s->node_of[v->id];
  if (i < 0 || !s->nodes.v[i].moved) return at;
  const Node *n = &s->nodes.v[i];
  return layout_port(n->op, &n->main, n->op->n_operands + v->index, &at)
             ? at
             : layout_plain(v->type->rank);
}

/* Does anybody read it in the plain layout? */
static bool is_read_plain(const State *s, const Value *v) {
  for (int u = uses_first(&s->uses, v); u < s->uses.all.n && s->uses.all.v[u].v == v; u++) {
    const Use *use = &s->uses.all.v[u];
    int i = use->by->parent == s->r ? node_of(s, use->by) : -1;
    Layout at;
    if (i < 0 || !s->nodes.v[i].moved ||
        !layout_port(use->by, &s->nodes.v[i].main, use->operand, &at))
      return true;
  }
  return false;
}

/* What is wanted in a layout twice is transposed once. */
static double spent_before(const State *s, const Node *n, bool *counted) {
  double sum = 0;
  for (int k = 0; k < n->op->n_operands; k++) {
    const Value *v = n->op->operands[k];
    Layout at, now;
    if (!layout_port(n->op, &n->main, k, &at) || counted[v->id] || is_free(v)) continue;
    now = layout_now(s, v);
    if (layout_same(&now, &at, v->type)) continue;
    counted[v->id] = true;
    sum += bytes(v);
  }
  return sum;
}

static double spent_after(const State *s, const Node *n) {
  double sum = 0;
  for (int k = 0; k < n->op->n_results; k++) {
    const Value *v = &n->op->results[k];
    Layout at = layout_now(s, v);
    if (layout_moves(&at, v->type) && is_read_plain(s, v)) sum += bytes(v);
  }
  return sum;
}

/* false: no chain is worth it. */
static bool choose(State *s, int n_values) {
  bool *counted = xcalloc((size_t)n_values, sizeof *counted), any = false;
  for (int i = 0; i < s->nodes.n; i++) {
    Node *n = &s->nodes.v[i], *chain = &s->nodes.v[chain_of(s, i)];
    chain->spent += spent_before(s, n, counted) + spent_after(s, n);
    if (n->op->kind == OP_CONVOLUTION) chain->saved += bytes_saved(n->op);
  }
  free(counted);
  for (int i = 0; i < s->nodes.n; i++) {
    const Node *chain = &s->nodes.v[chain_of(s, i)];
    s->nodes.v[i].moved = chain->saved > chain->spent;
    any |= s->nodes.v[i].moved;
  }
  return any;
}

/* ---- the new program ---- */

static Value *plain_of(const State *s, Value *v) {
  return v->id >= 0 && s->plain[v->id] ? s->plain[v->id] : v;
}

static Value *broadcast(State *s, Build *b, const Op *op, const Layout *at) {
  Value *x = op->operands[0];
  const int64_t *to;
  int64_t dims[B_MAX_RANK];
  int map[B_MAX_RANK], n = op_ints(op, "broadcast_dimensions", &to);
  bool moved = s->moved[x->id] != NULL;
  for (int i = 0; i < at->n; i++) dims[i] = op_type(op)->dims[at->d[i]];
  for (int i = 0; i < n; i++) map[i] = layout_find(at, to[moved ? s->at[x->id].d[i] : i]);
  return b_bcast(b, moved ? s->moved[x->id] : plain_of(s, x), at->n, dims, map);
}

static Value *make(State *s, Build *b, Value *v, const Layout *at) {
  Type *type = layout_type(s->m, at, v->type);
  const void *splat = value_splat(v);
  if (s->moved[v->id]) return layout_change(b, s->moved[v->id], &s->at[v->id], at, v->type);
  if (splat) return b_bcast_scalar(b, b_const(b, b_type(b, b_dtype(v), 0, NULL), splat), type);
  if (v->def && v->def->kind == OP_IOTA)
    return b_iota(b, type, layout_find(at, op_int(v->def, "iota_dimension", 0)));
  if (v->def && v->def->kind == OP_BROADCAST_IN_DIM && is_free(v))
    return broadcast(s, b, v->def, at);
  Layout plain = layout_plain(at->n);
  return layout_change(b, plain_of(s, v), &plain, at, v->type);
}

/* v in a layout, made where b builds if it is not there. */
static Value *in_layout(State *s, Build *b, Value *v, const Layout *at) {
  if (s->moved[v->id] && !memcmp(&s->at[v->id], at, sizeof *at)) return s->moved[v->id];
  for (int i = s->copy_of[v->id]; i >= 0; i = s->copies.v[i].next)
    if (!memcmp(&s->copies.v[i].at, at, sizeof *at)) return s->copies.v[i].made;
  Value *made = make(s, b, v, at);
  *vec_push(&s->copies) = (Copy){*at, made, s->copy_of[v->id]};
  s->copy_of[v->id] = s->copies.n - 1;
  return made;
}

static void results(State *s, Build *b, const Node *n, Value *first) {
  for (int k = 0; k < n->op->n_results; k++) {
    Value *v = &n->op->results[k];
    Layout at, plain = layout_plain(v->type->rank);
    if (!layout_port(n->op, &n->main, n->op->n_operands + k, &at)) at = plain;
    s->moved[v->id] = &first[k];
    s->at[v->id] = at;
    if (!memcmp(&at, &plain, sizeof at)) s->plain[v->id] = &first[k];
    else if (is_read_plain(s, v))
      s->plain[v->id] = layout_change(b, &first[k], &at, &plain, v->type);
  }
}

static void rebuild(State *s, const Node *n) {
  Op *op = n->op, *end = s->r->last;
  Build b = {.m = s->m, .r = s->r, .loc = op->loc};
  Value **in = xmalloc((size_t)op->n_operands * sizeof *in), *out;
  for (int k = 0; k < op->n_operands; k++) {
    Layout at;
    bool any = layout_port(op, &n->main, k, &at);
    in[k] = any ? in_layout(s, &b, op->operands[k], &at) : plain_of(s, op->operands[k]);
  }
  out = op->kind == OP_TRANSPOSE ? in[0] : layout_rebuild(&b, op, &n->main, in)->results;
  results(s, &b, n, out);
  compile_move_built(end, op);
  free(in);
}

static void read_new_values(const State *s, Region *r) {
  for (Op *op = r->first; op; op = op->next) {
    for (int i = 0; i < op->n_operands; i++) op->operands[i] = plain_of(s, op->operands[i]);
    for (int i = 0; i < op->n_regions; i++) read_new_values(s, op->regions[i]);
  }
}

static void rewrite(State *s) {
  Op *last = s->r->last;
  for (Op *op = s->r->first; op; op = op->next) {
    int i = node_of(s, op);
    if (i >= 0 && s->nodes.v[i].moved) rebuild(s, &s->nodes.v[i]);
  }
  read_new_values(s, s->r);
  for (Op *op = last, *prev; op; op = prev) {
    int i = op->n_results && op->results[0].id >= 0 ? node_of(s, op) : -1;
    prev = op->prev;
    if (i >= 0 && s->nodes.v[i].op == op && s->nodes.v[i].moved) op_remove(op);
  }
}

static int *none(int n) {
  int *a = xmalloc((size_t)n * sizeof *a);
  for (int i = 0; i < n; i++) a[i] = -1;
  return a;
}

static void region(Module *m, Func *f, Region *r) {
  int n = ir_number(f);
  size_t size = (size_t)n + 1;
  State s = {.m = m,
             .r = r,
             .node_of = none(n + 1),
             .copy_of = none(n + 1),
             .uses = uses_of(f->body, OP_COUNT),
             .moved = xcalloc(size, sizeof *s.moved),
             .plain = xcalloc(size, sizeof *s.plain),
             .at = xcalloc(size, sizeof *s.at)};
  find_chains(&s);
  if (s.nodes.n && choose(&s, n + 1)) rewrite(&s);
  vec_free(&s.nodes), vec_free(&s.open), vec_free(&s.copies), vec_free(&s.uses.all);
  free(s.node_of), free(s.copy_of), free(s.moved), free(s.plain), free(s.at);
}

/* Regions that have convolutions to look at. */
static void walk(Module *m, Func *f, Region *r) {
  bool any = false;
  for (Op *op = r->first; op; op = op->next)
    any |= op->kind == OP_CONVOLUTION && bytes_copied(op) > 0;
  if (any) region(m, f, r);
  for (Op *op = r->first; op; op = op->next)
    for (int i = 0; i < op->n_regions; i++) walk(m, f, op->regions[i]);
}

Err *pass_layout_assignment(Module *m) {
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) walk(m, m->funcs.v[i], m->funcs.v[i]->body);
  return NULL;
}
