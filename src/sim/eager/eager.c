/* A framework that runs one operation at a time: which arrays its operations leave in memory, so
 * that what comes after has only the inside of operations to decide.
 *
 * A program does not say which of its operations were one call. What the frameworks' own kernels
 * compute in one go is found by its shape instead:
 *   - element-wise work on one array is one operation, whatever it takes (GELU, a scaling, a cast),
 *     sums along rows included (softmax, normalisation) and with a second array multiplied in
 *     (their gradients, gates);
 *   - arrays that have nothing to do with each other and are added or chosen between (a residual
 *     connection, a mask, summed gradients) meet in an operation of its own;
 *   - so does clipping at a constant, what random numbers decide (dropout), adding an array that is
 *     repeated along some dimension (a mask, positions) and a product's result times a constant;
 *   - a product takes along what cuBLAS does: a bias and the narrower type; a convolution the type;
 *   - updating what comes back as a result is one kernel an array, as in fused optimizers.
 * That is the fewest operations that a framework can do with, so a lower bound of its time. */
#include <stdlib.h>

#include "sim/eager/eager.h"
#include "sim/hlo/query.h"
#include "sim/schedule/compiler.h"

#define SOURCES 4
#define SMALL 1024 /* elements: below, an array is not worth an operation */

typedef struct Sources { /* whole operations' results that a node is computed from */
  int n;
  const HNode *v[SOURCES];
} Sources;

static bool has(const Sources *s, const HNode *n) {
  for (int i = 0; i < s->n; i++)
    if (s->v[i] == n) return true;
  return false;
}
static void unite(Sources *s, const Sources *t) {
  for (int i = 0; i < t->n; i++)
    if (!has(s, t->v[i]) && s->n < SOURCES) s->v[s->n++] = t->v[i];
}
static bool meet(const Sources *s, const Sources *t) {
  for (int i = 0; i < t->n; i++)
    if (has(s, t->v[i])) return true;
  return false;
}

/* What is small beside the node is a bias, a scale, a statistic's parameter. */
static Sources large(const Sources *s, const HNode *n) {
  Sources t = {0};
  for (int i = 0; i < s->n; i++)
    if (hlo_count(s->v[i]) * 8 > hlo_count(n)) t.v[t.n++] = s->v[i];
  return t;
}

static bool light(const HNode *n) { return hlo_light(n) && n->kind != H_BARRIER; }

/* Nodes that only lead to results which replace an argument of their shape. */
static bool *find_updates(const Schedule *p) {
  const HComp *c = p->comp;
  bool *late = xcalloc((size_t)p->g->n_nodes + 1, sizeof *late);
  for (int i = c->nodes.n - 1; i >= 0 && !c->parent; i--) {
    const HNode *n = c->nodes.v[i];
    bool own = !n->is_output;
    for (int q = 0; q < c->params.n && !own; q++) {
      const HNode *a = c->params.v[q];
      own = p->g->donated[a->index] && a->dt == n->dt && hlo_same_shape(a, n->rank, n->d);
    }
    late[n->id] = own && (light(n) || n->kind == H_REDUCE) && (n->is_output || n->n_users);
    for (int u = 0; u < n->n_users; u++)
      late[n->id] &= n->users[u]->comp == c && late[n->users[u]->id];
  }
  return late;
}

static bool random_made(const Sources *s) {
  for (int i = 0; i < s->n; i++) {
    const HNode *n = s->v[i];
    if (n->kind == H_GET) n = n->in[0];
    if (n->kind == H_RNG) return true;
  }
  return false;
}

static bool only_summed(const HNode *n) {
  for (int i = 0; i < n->n_users; i++)
    if (n->users[i]->kind != H_REDUCE) return false;
  return !n->is_output && n->n_users > 0;
}

static void ends(Schedule *p, HNode *n, Sources *of) {
  sched_store(p, n);
  n->ends = true;
  of[n->id] = (Sources){1, {n}};
}

/* An operand that an operation before this one made. */
static void ended(Schedule *p, HNode *x, const bool *claimed, Sources *of) {
  while ((x->kind == H_RESHAPE || x->kind == H_TRANSPOSE) && !x->val) x = x->in[0];
  if (x->kind == H_EWISE && !x->val && !claimed[x->id] && hlo_bits(x->dt) > 1 &&
      x->op != OP_COMPARE && of[x->id].n)
    ends(p, x, of);
}

/* An array of several dimensions repeated along others, nothing that the rest is made from: a mask,
 * positions. What has one dimension is a bias or a scale, which kernels take along. */
static bool repeats(const HNode *n, const Sources *of) {
  if (n->op != OP_ADD && n->op != OP_SUBTRACT) return false;
  for (int i = 0; i < n->n_in && n->n_in == 2; i++) {
    const HNode *x = n->in[i];
    if (x->kind != H_BCAST || !of[x->id].n || meet(&of[x->id], &of[n->in[1 - i]->id])) continue;
    int long_ones = 0;
    for (int k = 0; k < x->in[0]->rank; k++) long_ones += x->in[0]->d[k] > 1;
    if (long_ones > 1 && of[n->in[1 - i]->id].n) return true;
  }
  return false;
}

/* A product's result times a constant, wanted for nothing else: the scale of attention's scores. */
static bool scales_product(const HNode *n, const Sources *of) {
  if ((n->op != OP_MULTIPLY && n->op != OP_DIVIDE) || n->n_in != 2) return false;
  for (int i = 0; i < 2; i++) {
    const HNode *x = n->in[i];
    bool product = x->kind == H_CONV || (of[x->id].n == 1 && of[x->id].v[0] == x);
    if (product && x->n_users == 1 && hlo_const_only(n->in[1 - i]))
      return x->ends || x->kind == H_CONV;
  }
  return false;
}

static void meeting(Schedule *p, HNode *n, const bool *claimed, Sources *of) {
  Sources all = {0}, parts[8];
  bool apart = n->n_in <= 8, chance = false;
  int full = 0;
  for (int i = 0; i < n->n_in && i < 8; i++) {
    parts[i] = large(&of[n->in[i]->id], n);
    if (!parts[i].n) continue;
    apart &= !meet(&all, &parts[i]);
    chance |= random_made(&parts[i]);
    unite(&all, &parts[i]);
    full++;
  }
  bool clips = (n->op == OP_MAXIMUM || n->op == OP_MINIMUM || n->op == OP_CLAMP);
  bool adds = n->op == OP_ADD || n->op == OP_SUBTRACT || n->op == OP_SELECT ||
              n->op == OP_MAXIMUM || n->op == OP_MINIMUM;
  of[n->id] = all;
  if (n->op == OP_COMPARE) return;
  bool own = full == 1 && (clips || repeats(n, of) || scales_product(n, of));
  if (!own && !(full > 1 && apart && (adds || chance))) return;
  for (int i = 0; i < n->n_in; i++) ended(p, n->in[i], claimed, of);
  if (!only_summed(n)) ends(p, n, of);
}

/* Where every operation is a call: cuBLAS adds a bias, both libraries write the narrower type. */
static HNode *library_end(const Schedule *p, HNode *conv, const unsigned char *claimed) {
  (void)claimed;
  HNode *v = conv;
  while (!v->is_output && v->n_users == 1) {
    HNode *u = v->users[0];
    if (u->comp != p->comp || u->kind != H_EWISE || hlo_count(u) != hlo_count(v)) break;
    const HNode *other = u->n_in == 2 ? u->in[u->in[0] == v] : NULL;
    bool bias = u->op == OP_ADD && other && other->kind == H_BCAST && other->in[0]->rank <= 1;
    bool narrows = u->op == OP_CONVERT && hlo_bits(u->dt) <= hlo_bits(v->dt);
    if (!narrows && !(bias && !conv->conv->is_conv)) break;
    v = u;
  }
  return v;
}

static void store_operations(Schedule *p) {
  HComp *c = p->comp;
  bool *late = find_updates(p), *claimed = xcalloc((size_t)p->g->n_nodes + 1, sizeof *claimed);
  Sources *of = xcalloc((size_t)p->g->n_nodes + 1, sizeof *of);
  for (int i = 0; i < c->params.n; i++) of[c->params.v[i]->id] = (Sources){1, {c->params.v[i]}};
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    if (n->dead || n->attention || n->kind == H_CONST || n->kind == H_IOTA) continue;
    if (late[n->id]) continue;
    if (n->kind == H_CONV) { /* the end of what it takes along is the operation's result */
      HNode *end = library_end(p, n, NULL);
      for (HNode *v = n; v != end; v = v->users[0]) claimed[v->users[0]->id] = true;
      of[end->id] = (Sources){1, {end}};
      if (end == n) continue;
    }
    if (claimed[n->id]) {
      if (n->kind == H_EWISE && !of[n->id].n) of[n->id] = (Sources){1, {n}};
    } else if (n->kind == H_EWISE && hlo_count(n) >= SMALL) {
      meeting(p, n, claimed, of);
    } else if (light(n) || n->kind == H_REDUCE) {
      for (int q = 0; q < n->n_in; q++) unite(&of[n->id], &of[n->in[q]->id]);
    } else if (hlo_count(n) >= SMALL || n->n_results > 1) {
      of[n->id] = (Sources){1, {n}};
    }
  }
  free(of);
  free(claimed);
  free(late);
}

void eager_fuse(Schedule *p) {
  unsigned char *claimed = xcalloc((size_t)p->g->n_nodes + 1, 1);
  sched_start_store(p);
  store_operations(p);
  sched_store_products(p, claimed, library_end);
  sched_store_rest(p, claimed, false, sched_absorbs);
  free(claimed);
}
