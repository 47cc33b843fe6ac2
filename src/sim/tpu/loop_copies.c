/* Copies that a loop needs: of its state, of stacks that come in another layout, of constants into stacks. */
#include <math.h>

#include "sim/schedule/compiler.h"
#include "sim/tpu/tpu.h"

/* A copy of a loop's state: an array on chip costs what narrowing it does, and half a cycle a
 * tile. */
static double copy_cycles(const CostParams *params, const HValue *v, bool far) {
  double b = hlo_bits(v->node->dt) / 8;
  int w = b >= 4 ? 4 : b >= 2 ? 2 : 1;
  if (far) return params->lbase + v->tiles * (params->loop.r[w] + params->loop.o[w]);
  if (params->cmem > 0)
    return params->lbase +
           v->tiles * (w == 4 ? params->loop.r[4] : params->loop.r[w] + 0.8 * params->loop.o[w]);
  if (w == 4) return 0.5 * v->tiles;
  return params->lbase + v->tiles * (0.5 + params->loop.o[w] - params->loop.r[w]);
}

/* Does the kernel's product, or what it makes beside a sum, need that array, for more than to write a part
 * of it in place? */
static bool walks_over(const Kernel *k, const HNode *of) {
  if (k->conv) return sched_made_from(k, k->conv, of, 0);
  for (int i = 0; i < k->inner.n && k->reduce; i++)
    for (int q = k->inner.v[i]->kind == H_DUS; q < k->inner.v[i]->n_in; q++)
      if (k->inner.v[i]->in[q] == of) return true;
  return false;
}

/* A copy that belongs to a loop, of no value of its own. */
static void loop_copy(Schedule *p, HNode *n, double cycles, double bytes) {
  Kernel *k = sched_kernel(p);
  *vec_push(&k->roots) =
      hlo_node(p->g, p->comp, H_EWISE, OP_COPY, n->src, n->dt, n->rank, n->d, 1, &n);
  k->copy = k->costed = true;
  k->pos = p->kernels.n - 1;
  k->cycles = k->est = cycles;
  k->time_s = cycles / p->params->clock;
  k->start_s = p->time_s;
  k->bytes = bytes;
  k->bound = SIM_MEMORY;
  k->util = 1;
  sched_limit(p, k);
  p->cycles += cycles;
  p->time_s += k->time_s;
  sched_dump(p, k);
}

/* Stacks that are laid out anew before the loop: the part of it that falls on one round. */
static void retiled_stacks(Schedule *p) {
  const CostParams *params = p->params;
  for (int i = 0; i < p->comp->params.n && p->parent && p->mult > 0; i++) {
    const HValue *v = p->comp->params.v[i]->val;
    if (!v || !v->retiled) continue;
    double once = p->parent->mult / p->mult, windows = ceil(2 * v->bytes / params->cwin);
    double cycles = params->lbase + v->tiles * (params->loop.r[2] + params->loop.o[2]) +
                    (windows - 1) * params->lq;
    loop_copy(p, p->comp->params.v[i], cycles * once, v->bytes * once);
  }
}

/* A loop's state that is still read while its next value is written needs a copy in every
 * iteration: when the read comes later, or is of a product's operand or a reduction's. */
static void loop_copies(Schedule *p) {
  const HComp *c = p->comp;
  const CostParams *params = p->params;
  for (int i = 0; i < c->outputs.n && i < c->params.n; i++) {
    const HNode *o = c->outputs.v[i];
    const HValue *v = o->val;
    if (!v || v->is_param || v->kernel < 0 || v->tiles < 1 || v->node->comp != p->comp) continue;
    const Kernel *k = p->kernels.v[v->kernel];
    const HValue *old = c->params.v[i]->val;
    bool clash = old->last > v->kernel;
    for (int r = 0; r < k->reads.n && !clash; r++)
      clash = k->reads.v[r] == old && walks_over(k, old->node);
    if (!clash) continue;
    bool far = old->space == SP_HBM;
    double cyc = copy_cycles(params, v, far);
    if ((far || params->cmem > 0) && params->rotates && p->parent && p->mult > 0) /* once before */
      cyc += copy_cycles(params, v, true) * p->parent->mult / p->mult;
    loop_copy(p, c->outputs.v[i], cyc, far ? 2 * v->bytes : 0);
  }
}

static void fill(Schedule *p, Kernel *k, const HValue *stack) {
  const CostParams *params = p->params;
  double b = hlo_bits(stack->node->dt) / 8;
  int width = b >= 4 ? 4 : b >= 2 ? 2 : 1;
  bool far = stack->space == SP_HBM;
  double n = stack->tiles * 4096 <= params->one_bytes ? 1 : ceil(stack->tiles / params->lwin);
  double tile = far || params->cmem > 0 ? params->loop.o[width]
                : width == 4            ? 0.25
                                        : params->loop.o[width] - params->loop.r[width] + 0.25;
  k->costed = true;
  k->windows = (int)n;
  k->cycles = k->est = params->lbase + stack->tiles * tile +
                       (ceil(n / (n > 1 ? params->cores : 1)) - 1) * params->lq;
  k->time_s = k->cycles / params->clock;
  k->bytes = far ? stack->bytes : 0;
}

static void copy_to_given(Schedule *p, Kernel *k, const HValue *v) {
  k->copy = k->costed = true;
  k->cycles = k->est = copy_cycles(p->params, v, true);
  k->time_s = k->cycles / p->params->clock;
  k->bytes = 2 * v->bytes;
}

void tpu_finish(Schedule *p) {
  if (p->loop_body) {
    loop_copies(p);
    retiled_stacks(p);
  }
  sched_fill_stacks(p, false, fill);
  sched_copy_to_given(p, copy_to_given);
}
