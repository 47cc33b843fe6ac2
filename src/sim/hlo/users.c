/* Who reads what in a graph, and which nodes nobody needs; its printed form and its end. */
#include <stdlib.h>

#include "sim/hlo/hlo.h"

static void mark_live(HNode *n) {
  /* explicit stack: graphs are deep */
  VEC(HNode *) stack = {0};
  *vec_push(&stack) = n;
  while (stack.n) {
    HNode *x = stack.v[--stack.n];
    if (!x->dead) continue;
    x->dead = false;
    for (int i = 0; i < x->n_in; i++)
      if (x->in[i]->dead) *vec_push(&stack) = x->in[i];
    for (int k = 0; k < x->n_comps; k++)
      for (int i = 0; i < x->comps[k]->outputs.n; i++)
        if (x->comps[k]->outputs.v[i]->dead) *vec_push(&stack) = x->comps[k]->outputs.v[i];
  }
  vec_free(&stack);
}

static bool side_effect(const HNode *n) {
  return n->kind == H_COLL ||
         (n->kind == H_OTHER && n->src && op_bool(n->src, "has_side_effect", false));
}

static void set_dead(HComp *c) {
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    n->dead = true;
    n->n_users = 0;
    n->is_output = false;
    for (int k = 0; k < n->n_comps; k++) set_dead(n->comps[k]);
  }
}
static void live_roots(HComp *c) {
  for (int i = 0; i < c->nodes.n; i++)
    if (side_effect(c->nodes.v[i])) mark_live(c->nodes.v[i]);
}
static void count_users(HGraph *g, HComp *c, bool fill) {
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    if (n->dead) continue;
    for (int k = 0; k < n->n_in; k++) {
      HNode *x = n->in[k];
      if (fill) x->users[x->n_users] = n;
      x->n_users++;
    }
    for (int k = 0; k < n->n_comps; k++) count_users(g, n->comps[k], fill);
  }
  for (int i = 0; i < c->outputs.n; i++) c->outputs.v[i]->is_output = true;
}
static void alloc_users(HGraph *g, HComp *c) {
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    n->users = n->n_users ? ARENA_ARRAY(g->arena, HNode *, n->n_users) : NULL;
    n->n_users = 0;
    for (int k = 0; k < n->n_comps; k++) alloc_users(g, n->comps[k]);
  }
}

void hlo_users(HGraph *g, HComp *c) {
  set_dead(c);
  for (int i = 0; i < c->outputs.n; i++) mark_live(c->outputs.v[i]);
  for (int i = 0; i < c->params.n; i++) c->params.v[i]->dead = false;
  live_roots(c);
  count_users(g, c, false);
  alloc_users(g, c);
  count_users(g, c, true);
}

/* Operands before what reads them, the first one's first. */
void hlo_in_order(HNode *root, unsigned char *mark, HComp *c, HNode ***list, int *n, int *cap) {
  VEC(HNode *) stack = {0};
  *vec_push(&stack) = root;
  while (stack.n) {
    HNode *x = stack.v[stack.n - 1];
    if (mark[x->id] == 0) {
      mark[x->id] = 1;
      for (int i = x->n_in - 1; i >= 0; i--)
        if (!mark[x->in[i]->id] && x->in[i]->comp == c) *vec_push(&stack) = x->in[i];
      for (int i = 0; i < x->n_after; i++)
        if (!mark[x->after[i]->id] && x->after[i]->comp == c) *vec_push(&stack) = x->after[i];
      continue;
    }
    stack.n--;
    if (mark[x->id] == 2) continue;
    mark[x->id] = 2;
    if (*n == *cap) *list = xrealloc(*list, sizeof **list * (size_t)(*cap = 2 * *cap + 64));
    (*list)[(*n)++] = x;
  }
  vec_free(&stack);
}

/* Nodes that were made late stand where they are needed. */
void hlo_sort(const HGraph *g, HComp *c) {
  unsigned char *mark = xcalloc((size_t)g->n_nodes + 1, 1);
  HNode **order = NULL;
  int n = 0, cap = 0;
  for (int i = 0; i < c->nodes.n; i++) hlo_in_order(c->nodes.v[i], mark, c, &order, &n, &cap);
  for (int i = 0; i < n; i++) c->nodes.v[i] = order[i];
  free(order);
  free(mark);
}

void hlo_free(HGraph *g) {
  for (HComp *c = g ? g->comps : NULL; c; c = c->next) {
    vec_free(&c->nodes);
    vec_free(&c->params);
    vec_free(&c->outputs);
  }
}

static const char *kind_names[] = {
    "param",   "const",  "iota",   "ewise", "bcast", "reshape", "transpose", "slice",   "pad",
    "reverse", "concat", "reduce", "conv",  "rwin",  "selscat", "gather",    "scatter", "dslice",
    "dus",     "sort",   "rng",    "while", "cond",  "coll",    "other",     "barrier", "get"};
void hlo_dump(const HGraph *g, const HComp *c, int indent, Buf *out) {
  for (int i = 0; i < c->nodes.n; i++) {
    const HNode *n = c->nodes.v[i];
    if (n->dead) continue;
    buf_printf(out, "%*s%%%d = %s %s %s[", indent, "", n->id, kind_names[n->kind],
               op_info[n->op].id, dtype_name(n->dt));
    for (int k = 0; k < n->rank; k++) buf_printf(out, "%s%lld", k ? "," : "", (long long)n->d[k]);
    buf_cstr(out, "] (");
    for (int k = 0; k < n->n_in; k++) buf_printf(out, "%s%%%d", k ? ", " : "", n->in[k]->id);
    buf_printf(out, ") users %d%s", n->n_users, n->is_output ? " out" : "");
    if (n->kind == H_WHILE) buf_printf(out, " trip %lld", (long long)n->trip);
    if (n->conv)
      buf_printf(out, " b%lld m%lld n%lld k%lld taps%lld %s,%s->%s", (long long)n->conv->batch,
                 (long long)n->conv->m, (long long)n->conv->n, (long long)n->conv->k,
                 (long long)n->conv->taps, n->conv->lhs, n->conv->rhs, n->conv->out);
    buf_byte(out, '\n');
    for (int k = 0; k < n->n_comps; k++) hlo_dump(g, n->comps[k], indent + 4, out);
  }
}
