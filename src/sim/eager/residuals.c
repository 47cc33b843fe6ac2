/* What a loop over layers keeps for the loop that goes back through them, where operations run one
 * at a time. A program that was differentiated before it came here stacks whatever its gradient
 * reads: six arrays for one GELU. A framework's operations save what they were given or gave, and
 * their backward kernels compute the rest from it. So every stack whose rounds are computed from
 * one array alone, statistics of its rows and constants aside, gives way to a stack of that array.
 *
 * The array is the nearest one that is there anyway: what comes into the layer, the result of a
 * product, a sum of arrays that have nothing to do with each other, what a product reads (it saves
 * its operand), a mask. It is done where that takes less memory than before. */
#include <stdlib.h>

#include "sim/eager/eager.h"
#include "sim/hlo/hlo.h"

#define NEEDS 16
#define SMALL 8 /* an array with so many times fewer elements is a statistic or a bias */

typedef struct Stack { /* state i of the first loop is state j of the second */
  HNode *value;        /* what a round writes, without its leading dimension */
  HNode *read;         /* the slice that the second reads */
  int j;
} Stack;

typedef struct Back {
  HGraph *g;
  Maker make;
  HNode *w, *r;       /* the loop and the one that goes back */
  HNode *at_w, *at_r; /* the round's number in their stacks */
  Stack *stacks;      /* by state of w; value NULL: none */
  HNode **leaf;       /* by node: the one array that it is computed from; NULL: small ones */
  int *state;         /* by node: 1 + its stack */
  HNode **now;        /* by node of the first body: the same in the second */
} Back;

typedef struct Needs {
  HNode *v[NEEDS];
  int n;
} Needs;

static bool moves(const HNode *n) {
  return hlo_light(n) && n->kind != H_DSLICE && n->kind != H_BARRIER;
}
static bool full(const HNode *x, const HNode *n) { return hlo_count(x) * SMALL > hlo_count(n); }

/* Does a product read it as it is? */
static bool multiplied(const HNode *n, int depth) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *u = n->users[i];
    if (u->kind == H_CONV) return true;
    if (depth < 4 && (u->kind == H_RESHAPE || u->kind == H_TRANSPOSE) && multiplied(u, depth + 1))
      return true;
  }
  return false;
}

static bool constant(const HNode *n, int depth) {
  if (n->kind == H_CONST || n->kind == H_IOTA) return true;
  if (!moves(n) || depth > 16) return false;
  for (int i = 0; i < n->n_in; i++)
    if (!constant(n->in[i], depth + 1)) return false;
  return true;
}

static void find_leaves(Back *b) {
  const HComp *body = b->w->comps[1];
  for (int i = 0; i < body->nodes.n; i++) {
    HNode *n = body->nodes.v[i], *one = NULL;
    bool own = n->n_in == 0 && n->kind != H_CONST && n->kind != H_IOTA;
    own |= n->n_in && (!moves(n) || multiplied(n, 0) || (n->dt == DT_I1 && !constant(n, 0)));
    for (int k = 0; k < n->n_in && !own; k++) {
      HNode *x = n->in[k], *of = x->comp == body ? b->leaf[x->id] : NULL;
      if (!of || !full(x, n)) continue;
      own = one && one != of;
      one = of;
    }
    b->leaf[n->id] = own ? n : one;
  }
}

/* An array that both loops have as a whole: its state in the second. */
static HNode *shared(const Back *b, const HNode *n) {
  const HComp *one = b->w->comps[1], *two = b->r->comps[1];
  for (int i = 0; n->kind == H_PARAM && i < one->params.n; i++) {
    if (one->params.v[i] != n || one->outputs.v[i] != n) continue;
    for (int j = 0; j < two->params.n; j++)
      if (b->r->in[j] == b->w->in[i] && two->outputs.v[j] == two->params.v[j])
        return two->params.v[j];
  }
  return NULL;
}
static bool at_hand(const Back *b, const HNode *n) {
  if (n->comp != b->w->comps[1]) return true;
  if (n->kind != H_DSLICE) return shared(b, n) != NULL;
  if (n->in[1] != b->at_w || !shared(b, n->in[0])) return false;
  for (int k = 2; k < n->n_in; k++)
    if (n->in[k]->kind != H_CONST) return false;
  return true;
}

/* What has to be stacked for n to be computed in the second loop. */
static bool gather(const Back *b, HNode *n, Needs *needs) {
  if (constant(n, 0) || at_hand(b, n)) return true;
  if (b->leaf[n->id] != n && moves(n) && !b->state[n->id]) {
    for (int k = 0; k < n->n_in; k++)
      if (!gather(b, n->in[k], needs)) return false;
    return true;
  }
  for (int i = 0; i < needs->n; i++)
    if (needs->v[i] == n) return true;
  if (needs->n == NEEDS || n->n_results != 1) return false;
  needs->v[needs->n++] = n;
  return true;
}

/* The slice of a stack that a round of the second loop reads. */
static HNode *slice(Back *b, const HNode *like, int j) {
  HComp *c = b->r->comps[1];
  HNode *s = c->params.v[j], *in[66] = {s, b->at_r};
  int64_t d[64] = {1};
  for (int k = 1; k < s->rank; k++) {
    d[k] = s->d[k];
    in[1 + k] = hlo_const(&b->make, like->src, b->at_r->dt, 0, NULL, 0);
  }
  return hlo_node(b->g, c, H_DSLICE, OP_DYNAMIC_SLICE, like->src, s->dt, s->rank, d, 1 + s->rank,
                  in);
}

static HNode *again(Back *b, HNode *n) {
  if (n->comp != b->w->comps[1]) return n;
  if (b->now[n->id]) return b->now[n->id];
  HComp *c = b->r->comps[1];
  HNode *x = shared(b, n);
  if (!x && b->state[n->id]) {
    const Stack *s = &b->stacks[b->state[n->id] - 1];
    x = hlo_reshape(&b->make, n->src, slice(b, n, s->j), n->rank, n->d);
  } else if (!x) {
    x = hlo_copy(b->g, c, n);
    for (int k = 0; k < n->n_in; k++)
      x->in[k] = n->kind == H_DSLICE && k == 1 ? b->at_r : again(b, n->in[k]);
  }
  return b->now[n->id] = x;
}

static HNode *zeros(Back *b, DType dt, int rank, const int64_t *d) {
  HNode *n = hlo_node(b->g, b->w->comp, H_CONST, OP_CONSTANT, NULL, dt, rank, d, 0, NULL);
  n->splat = true;
  return n;
}

/* A stack becomes that of another value. */
static void restack(Back *b, int i, HNode *value) {
  Stack *s = &b->stacks[i];
  HComp *body = b->w->comps[1];
  HNode *old = body->outputs.v[i], *in[66];
  int64_t d[64] = {old->d[0]}, one[64] = {1};
  for (int k = 0; k < value->rank; k++) d[k + 1] = one[k + 1] = value->d[k];
  int rank = value->rank + 1;
  hlo_retype(b->w, i, zeros(b, value->dt, rank, d));
  hlo_retype(b->r, s->j, hlo_result(b->w, i));
  b->make.comp = body;
  in[0] = body->params.v[i];
  in[1] = hlo_node(b->g, body, H_RESHAPE, OP_RESHAPE, value->src, value->dt, rank, one, 1, &value);
  in[2] = b->at_w;
  for (int k = 1; k < rank; k++) in[2 + k] = hlo_const(&b->make, old->src, b->at_w->dt, 0, NULL, 0);
  body->outputs.v[i] =
      hlo_node(b->g, body, H_DUS, old->op, old->src, value->dt, rank, d, 2 + rank, in);
  s->value = value;
  b->state[value->id] = 1 + i;
}

/* A state that nobody needs: a number handed through. */
static void retire(Back *b, int i) {
  int j = b->stacks[i].j;
  hlo_retype(b->w, i, zeros(b, DT_F32, 0, NULL));
  b->w->comps[1]->outputs.v[i] = b->w->comps[1]->params.v[i];
  hlo_retype(b->r, j, hlo_result(b->w, i));
}

/* Everything stacked that is computed from `leaf`: from a stack of it, if that is smaller. */
static bool give_way(Back *b, HNode *leaf) {
  int members[NEEDS], n = 0, fresh = 0;
  Needs needs = {0};
  double before = 0, after = 0;
  for (int i = 0; i < b->w->n_in && n < NEEDS; i++) {
    HNode *v = b->stacks[i].value;
    if (!v || b->leaf[v->id] != leaf || v == leaf) continue;
    members[n++] = i;
    before += hlo_bytes(v);
    b->state[v->id] = 0; /* none is made from another of them */
  }
  bool good = n > 0;
  for (int k = 0; k < n && good; k++) good = gather(b, b->stacks[members[k]].value, &needs);
  HNode *add[NEEDS];
  for (int k = 0; k < needs.n; k++)
    if (!b->state[needs.v[k]->id]) add[fresh++] = needs.v[k], after += hlo_bytes(needs.v[k]);
  good &= fresh <= n && after < before;
  HNode *reads[NEEDS], *values[NEEDS];
  for (int k = 0; k < n; k++) {
    Stack *s = &b->stacks[members[k]];
    reads[k] = s->read, values[k] = s->value;
    if (!good) b->state[s->value->id] = 1 + members[k];
  }
  if (!good) return false;
  for (int k = 0; k < n; k++) {
    if (k < fresh) restack(b, members[k], add[k]);
    else b->stacks[members[k]].value = NULL, retire(b, members[k]);
  }
  b->make.comp = b->r->comps[1];
  for (int k = 0; k < n; k++) {
    HNode *s = reads[k], *x = again(b, values[k]);
    x = hlo_reshape(&b->make, s->src, x, s->rank, s->d);
    for (int u = 0; u < s->n_users; u++)
      for (int q = 0; q < s->users[u]->n_in; q++)
        if (s->users[u]->in[q] == s) s->users[u]->in[q] = x;
  }
  return true;
}

/* Is state i of w a stack that the loop r alone reads, a slice a round? */
static bool find_stack(Back *b, int i) {
  const HComp *one = b->w->comps[1], *two = b->r->comps[1];
  HNode *d = one->outputs.v[i], *p = one->params.v[i], *out = hlo_result(b->w, i);
  if (d->kind != H_DUS || d->in[0] != p || p->n_users != 1 || d->n_users || !out) return false;
  if (out->n_users != 1 || out->users[0] != b->r || out->is_output || out->rank > 60) return false;
  if (b->w->comps[0]->params.v[i]->n_users) return false;
  int j = -1;
  for (int k = 0; k < b->r->n_in; k++)
    if (b->r->in[k] == out) j = j < 0 ? k : b->r->n_in;
  if (j < 0 || j >= b->r->n_in || two->outputs.v[j] != two->params.v[j]) return false;
  HNode *state = two->params.v[j], *s = state->n_users ? state->users[0] : NULL;
  if (state->n_users != 1 || s->kind != H_DSLICE || s->in[0] != state || s->comp != two)
    return false;
  if (hlo_result(b->r, j) || b->r->comps[0]->params.v[j]->n_users || s->is_output) return false;
  HNode *v = d->in[1];
  if (v->rank < 2 || v->d[0] != 1 || s->d[0] != 1 || hlo_count(s) != hlo_count(v)) return false;
  if (v->kind == H_RESHAPE && v->n_users == 1) v = v->in[0];
  if (v->comp != one || b->state[v->id]) return false;
  if ((b->at_w && b->at_w != d->in[2]) || (b->at_r && b->at_r != s->in[1])) return false;
  b->at_w = d->in[2], b->at_r = s->in[1];
  b->stacks[i] = (Stack){.value = v, .read = s, .j = j};
  b->state[v->id] = 1 + i;
  return true;
}

static bool go_back(HGraph *g, HNode *w, HNode *r) {
  size_t size = (size_t)g->n_nodes + 1;
  Back b = {.g = g, .w = w, .r = r, .make = {g, map_new(), NULL}};
  int known = g->n_nodes, found = 0;
  b.stacks = xcalloc((size_t)w->n_in + 1, sizeof *b.stacks);
  b.leaf = xcalloc(size, sizeof *b.leaf);
  b.state = xcalloc(size, sizeof *b.state);
  b.now = xcalloc(size, sizeof *b.now);
  for (int i = 0; i < w->n_in; i++) found += find_stack(&b, i);
  bool any = false;
  if (found) {
    find_leaves(&b);
    HComp *body = w->comps[1];
    int n = body->nodes.n;
    any |= give_way(&b, NULL);
    for (int i = 0; i < n; i++)
      if (body->nodes.v[i]->id < known && b.leaf[body->nodes.v[i]->id] == body->nodes.v[i])
        any |= give_way(&b, body->nodes.v[i]);
  }
  map_free(b.make.cse);
  free(b.stacks);
  free(b.leaf);
  free(b.state);
  free(b.now);
  return any;
}

static bool loop(const HNode *n) {
  return n->kind == H_WHILE && !n->dead && n->n_results > 1 && n->comps[1]->outputs.n == n->n_in;
}

void eager_residuals(HGraph *g) {
  bool any = false;
  for (HComp *c = g->comps; c; c = c->next) {
    bool here = false;
    for (int i = 0; i < c->nodes.n; i++) {
      HNode *w = c->nodes.v[i];
      for (int k = i + 1; loop(w) && k < c->nodes.n; k++)
        if (loop(c->nodes.v[k])) here |= go_back(g, w, c->nodes.v[k]);
    }
    any |= here;
  }
  if (!any) return;
  for (HComp *c = g->comps; c; c = c->next) hlo_sort(g, c);
  hlo_users(g, g->main);
}
