/* Stacks that loops fill slice by slice, and the constants that they start with; results that are copied to where
 * they are to lie. */
#include "sim/hlo/query.h"
#include "sim/schedule/compiler.h"

/* Does a loop write one slice of state i in each round, the last one first? *stack: does it write
 * slices at all? */
static bool from_the_end(const HComp *body, int i, bool *stack) {
  const HNode *o = i < body->outputs.n ? body->outputs.v[i] : NULL;
  *stack = o && o->kind == H_DUS && o->in[0] == body->params.v[i];
  if (!*stack) return false;
  for (int k = 2; k < o->n_in; k++)
    for (const HNode *n = o->in[k]; n->n_in > 0; n = n->in[n->op == OP_SELECT ? n->n_in - 1 : 0])
      if (n->op == OP_SUBTRACT) return true;
  return false;
}

/* A stack that is written from its first slice on starts as it is found, if it is of the only loop whose stacks begin as
 * that constant. One that is written from the end is filled with it, and so are then all that begin so. */
static bool filled(const HNode *init) {
  const HNode *loop = NULL;
  for (int i = 0; i < init->n_users; i++) {
    const HNode *w = init->users[i];
    for (int k = 0; w->kind == H_WHILE && k < w->n_in; k++) {
      bool stack = false;
      if (w->in[k] != init) continue;
      if (from_the_end(w->comps[1], k, &stack) || (stack && loop && loop != w)) return true;
      if (stack) loop = w;
    }
  }
  return false;
}

static void add_kernel(Schedule *p, HKind kind, OpKind op, HNode *of, const HValue *v,
                       void (*cost)(Schedule *p, Kernel *k, const HValue *v)) {
  Kernel *c = sched_kernel(p);
  *vec_push(&c->roots) =
      hlo_node(p->g, p->comp, kind, op, of->src, of->dt, of->rank, of->d, 1, &of);
  c->pos = p->kernels.n - 1;
  cost(p, c, v);
  c->start_s = p->time_s;
  c->bound = SIM_MEMORY;
  c->util = 1;
  sched_limit(p, c);
  p->cycles += c->cycles;
  p->time_s += c->time_s;
  sched_dump(p, c);
}

void sched_fill_stacks(Schedule *p, bool all,
                       void (*cost)(Schedule *p, Kernel *k, const HValue *stack)) {
  for (int i = p->kernels.n - 1; i >= 0; i--) {
    const Kernel *k = p->kernels.v[i];
    const HNode *w = k->roots.n ? k->roots.v[0] : NULL;
    for (int s = 0; k->dearest && w->kind == H_WHILE && s < w->n_in; s++) {
      bool stack;
      from_the_end(w->comps[1], s, &stack);
      if (stack && hlo_const_only(w->in[s]) && (all || filled(w->in[s])))
        add_kernel(p, H_BCAST, OP_BROADCAST_IN_DIM, w->in[s], w->comps[1]->params.v[s]->val, cost);
    }
  }
}

void sched_copy_to_given(Schedule *p, void (*cost)(Schedule *p, Kernel *k, const HValue *v)) {
  for (int i = 0; i < p->comp->outputs.n && !p->comp->parent; i++) {
    HNode *o = p->comp->outputs.v[i];
    if (o->val && sched_copied_to_given(p, o->val))
      add_kernel(p, H_EWISE, OP_COPY, o, o->val, cost);
  }
}
