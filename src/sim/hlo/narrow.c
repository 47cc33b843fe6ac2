/* State of loops that is only ever rounded: an f32 array that a loop carries, or leaves as a stack
 * of its rounds' values, and that nothing reads but products (which round their operands to bf16)
 * and conversions to bf16. The compiler carries it as bf16: half the memory. What comes in as f32
 * is converted once, before the loop. Linear in the graph for each round of the fixed point. */
#include <stdlib.h>

#include "sim/hlo/hlo.h"

typedef struct Narrow {
  HGraph *g;
  bool **state; /* by id of a WHILE: which of its state may be narrow */
} Narrow;

static bool rounds(const HNode *u) {
  return u->kind == H_EWISE && u->op == OP_CONVERT && u->dt == DT_BF16;
}
static bool moves(const HNode *u, const HNode *x) { /* hands elements of x on as they are */
  return u->kind == H_RESHAPE || u->kind == H_TRANSPOSE || u->kind == H_SLICE ||
         u->kind == H_BARRIER ||
         ((u->kind == H_DSLICE || (u->kind == H_DUS && u->in[1] != x)) && u->in[0] == x);
}

/* Does nobody need more of x than its rounded elements? */
static bool only_rounded(const Narrow *w, const HNode *x, int depth) {
  const HComp *c = x->comp;
  if (depth > 32) return false;
  for (int i = 0; i < x->n_users; i++) {
    const HNode *u = x->users[i];
    if (u->comp != c) return false;
    if (rounds(u) || (u->kind == H_CONV && u->conv->passes == 1)) continue;
    if (u->kind == H_WHILE && w->state[u->id]) {
      for (int k = 0; k < u->n_in; k++)
        if (u->in[k] == x && !w->state[u->id][k]) return false;
      continue;
    }
    if (!moves(u, x) || !only_rounded(w, u, depth + 1)) return false;
  }
  if (!x->is_output) return true;
  if (!c->owner || c->owner->kind != H_WHILE || !w->state[c->owner->id]) return false;
  for (int k = 0; k < c->outputs.n; k++)
    if (c->outputs.v[k] == x && !w->state[c->owner->id][k]) return false;
  return true;
}

static HNode *result(const HNode *loop, int k) {
  for (int i = 0; i < loop->n_users; i++)
    if (loop->users[i]->kind == H_GET && loop->users[i]->index == k) return loop->users[i];
  return NULL;
}

static bool stays(const Narrow *w, const HNode *loop, int k) {
  const HComp *body = loop->comps[1];
  for (int i = 0; i < loop->n_users; i++) { /* a result may be read in several places */
    const HNode *r = loop->users[i];
    if (r->kind != H_GET || (r->index == k && !only_rounded(w, r, 0))) return false;
  }
  return only_rounded(w, body->params.v[k], 0) && !loop->comps[0]->params.v[k]->n_users;
}

static void candidates(Narrow *w) {
  for (const HComp *c = w->g->comps; c; c = c->next)
    for (int i = 0; i < c->nodes.n; i++) {
      const HNode *n = c->nodes.v[i];
      if (n->dead || n->kind != H_WHILE || n->comps[1]->outputs.n != n->n_in) continue;
      bool *s = w->state[n->id] = ARENA_ARRAY(w->g->arena, bool, n->n_in + 1);
      for (int k = 0; k < n->n_in; k++) {
        const HNode *p = n->comps[1]->params.v[k];
        s[k] = p->dt == DT_F32 && p->rank > 1 && (p->n_users || result(n, k));
      }
    }
}

/* x and what only moves its elements become bf16; conversions of it fall away. */
static void narrow(HNode *x) {
  if (x->dt != DT_F32) return;
  x->dt = DT_BF16;
  for (int i = 0; i < x->n_users; i++) {
    HNode *u = x->users[i];
    if (moves(u, x)) narrow(u);
    if (!rounds(u)) continue;
    for (int q = 0; q < u->n_users; q++)
      for (int k = 0; k < u->users[q]->n_in; k++)
        if (u->users[q]->in[k] == u) u->users[q]->in[k] = x;
    for (int k = 0; k < x->comp->outputs.n; k++)
      if (x->comp->outputs.v[k] == u) x->comp->outputs.v[k] = x;
  }
}

static HNode *rounded(Narrow *w, HComp *c, HNode *x) {
  if (x->dt != DT_F32) return x;
  HKind kind = x->kind == H_CONST && x->splat ? H_CONST : H_EWISE;
  for (int i = 0; i < c->nodes.n && kind == H_EWISE; i++) {
    HNode *n = c->nodes.v[i];
    if (rounds(n) && n->in[0] == x) return n;
  }
  HNode *n = hlo_node(w->g, c, kind, kind == H_CONST ? x->op : OP_CONVERT, x->src, DT_BF16, x->rank,
                      x->d, kind == H_EWISE, &x);
  n->splat = x->splat;
  n->value = x->value;
  return n;
}

/* What is written into narrow state is rounded first. */
static void round_inputs(Narrow *w, HComp *c) {
  HNode **old = c->nodes.v;
  int n = c->nodes.n;
  memset(&c->nodes, 0, sizeof c->nodes);
  for (int i = 0; i < n; i++) {
    HNode *u = old[i];
    const bool *s = u->dead || u->kind != H_WHILE ? NULL : w->state[u->id];
    for (int k = 0; s && k < u->n_in; k++)
      if (s[k]) u->in[k] = rounded(w, c, u->in[k]), u->res_dt[k] = DT_BF16;
    if (!u->dead && u->kind == H_DUS && u->dt == DT_BF16) u->in[1] = rounded(w, c, u->in[1]);
    *vec_push(&c->nodes) = u;
  }
  free(old);
  const bool *s =
      c->owner && !c->owner->dead && c->owner->kind == H_WHILE && c == c->owner->comps[1]
          ? w->state[c->owner->id]
          : NULL;
  for (int k = 0; s && k < c->outputs.n; k++)
    if (s[k]) c->outputs.v[k] = rounded(w, c, c->outputs.v[k]);
}

void hlo_narrow(HGraph *g) {
  Narrow w = {g, ARENA_ARRAY(g->arena, bool *, g->n_nodes + 1)};
  int loops = g->n_nodes + 1;
  memset(w.state, 0, sizeof *w.state * (size_t)loops);
  candidates(&w);
  bool changed = true, any = false;
  while (changed) {
    changed = any = false;
    for (const HComp *c = g->comps; c; c = c->next)
      for (int i = 0; i < c->nodes.n; i++) {
        const HNode *n = c->nodes.v[i];
        bool *s = n->dead || n->kind != H_WHILE ? NULL : w.state[n->id];
        for (int k = 0; s && k < n->n_in; k++) {
          if (s[k] && !stays(&w, n, k)) s[k] = false, changed = true;
          any |= s[k];
        }
      }
  }
  if (!any) return;
  for (const HComp *c = g->comps; c; c = c->next)
    for (int i = 0; i < c->nodes.n; i++) {
      HNode *n = c->nodes.v[i];
      const bool *s = n->dead || n->kind != H_WHILE ? NULL : w.state[n->id];
      for (int k = 0; s && k < n->n_in; k++) {
        if (!s[k]) continue;
        narrow(n->comps[1]->params.v[k]);
        n->comps[0]->params.v[k]->dt = DT_BF16;
        for (int u = 0; u < n->n_users; u++)
          if (n->users[u]->kind == H_GET && n->users[u]->index == k) narrow(n->users[u]);
      }
    }
  for (HComp *c = g->comps; c; c = c->next) round_inputs(&w, c);
  hlo_users(g, g->main);
}

/* A sum that is widened on the way in and narrowed on the way out is one of narrow numbers, as the
 * compiler's propagation of bf16 has it. */
void hlo_narrow_sums(HComp *c) {
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *n = c->nodes.v[i];
    for (int k = 0; k < n->n_comps; k++) hlo_narrow_sums(n->comps[k]);
    if (n->dead || n->kind != H_EWISE || n->op != OP_CONVERT) continue;
    HNode *r = n->in[0], *shape = NULL;
    if (r->kind == H_RESHAPE && r->n_users == 1 && !r->is_output) shape = r, r = r->in[0];
    if (r->kind != H_REDUCE || r->n_results != 1 || r->n_users != 1 || r->is_output) continue;
    HNode *wide = r->in[0];
    if (wide->kind != H_EWISE || wide->op != OP_CONVERT || wide->in[0]->dt != n->dt) continue;
    r->in[0] = wide->in[0];
    r->dt = n->dt;
    if (shape) shape->dt = n->dt, r = shape;
    for (int u = 0; u < n->n_users; u++)
      for (int k = 0; k < n->users[u]->n_in; k++)
        if (n->users[u]->in[k] == n) n->users[u]->in[k] = r;
    for (int k = 0; k < c->outputs.n; k++)
      if (c->outputs.v[k] == n) c->outputs.v[k] = r;
  }
}
