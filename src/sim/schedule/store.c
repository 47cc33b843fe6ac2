/* Which nodes are stored, as far as the compilers of all kinds of chips decide it alike. */
#include "sim/hlo/query.h"
#include "sim/schedule/compiler.h"

HValue *sched_store(Schedule *p, HNode *n) {
  if (n->val) return n->val;
  HValue *v = ARENA_NEW(p->arena, HValue);
  v->node = n;
  v->kernel = -1;
  v->first = v->last = -1;
  n->val = v;
  *vec_push(&p->values) = v;
  return v;
}

bool sched_absorbs(const HNode *user, const HNode *x) {
  if (user->kind == H_BARRIER) return false;
  if (hlo_light(user) || user->kind == H_REDUCE || user->kind == H_CONCAT) return true;
  return user->kind == H_DUS && user->n_in > 1 && user->in[1] == x && user->in[0] != x;
}

void sched_start_store(Schedule *p) {
  HComp *c = p->comp;
  for (int i = 0; i < c->params.n; i++) {
    HValue *v = sched_store(p, c->params.v[i]);
    v->is_param = true;
    if (!c->parent) v->donated = p->g->donated[c->params.v[i]->index];
  }
}

void sched_store_products(Schedule *p, unsigned char *claimed,
                          HNode *(*last)(const Schedule *p, HNode *product,
                                         const unsigned char *claimed)) {
  HComp *c = p->comp;
  for (int i = c->nodes.n - 1; i >= 0; i--) {
    HNode *n = c->nodes.v[i];
    if (n->dead || n->attention || n->kind != H_CONV) continue;
    HNode *end = last(p, n, claimed);
    for (HNode *v = n; v != end; v = v->users[0]) claimed[v->users[0]->id] = 1;
    sched_store(p, end)->on_demand = false;
  }
}

void sched_store_rest(Schedule *p, const unsigned char *claimed, bool joins_parts,
                      bool (*absorbs)(const HNode *user, const HNode *x)) {
  HComp *c = p->comp;
  for (int i = c->nodes.n - 1; i >= 0; i--) {
    HNode *n = c->nodes.v[i];
    if (n->dead || n->val ||
        (n->kind != H_CONST && (n->kind == H_CONV || n->inlined || n->attention)))
      continue;
    bool light = hlo_light(n) || (joins_parts && n->kind == H_CONCAT);
    if (n->kind == H_CONST) {
      if (!n->splat || n->is_output) sched_store(p, n);
    } else if (!light) {
      if (!claimed[n->id]) sched_store(p, n);
    } else if (!claimed[n->id] || n->is_output) {
      bool need = n->is_output;
      for (int k = 0; k < n->n_users && !need; k++)
        need = n->users[k]->comp != n->comp || !absorbs(n->users[k], n);
      if (need) sched_store(p, n);
    }
  }
}
