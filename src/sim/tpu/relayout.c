/* Copies of values in another order, and who reads them. */
#include "sim/tpu/tpu.h"

HValue *tpu_copy_by(Schedule *p, HValue *v, const int *order, const char *rule) {
  Kernel *k = sched_kernel(p);
  sched_why(v->node, "relaid", rule);
  k->copy = true;
  k->copy_of = v;
  HNode *n = hlo_node(p->g, p->comp, H_EWISE, OP_COPY, v->node->src, v->node->dt, v->node->rank,
                      v->node->d, 1, &v->node);
  HValue *w = sched_store(p, n);
  n->kernel = w->kernel = p->kernels.n - 1;
  *vec_push(&k->roots) = n;
  *vec_push(&k->inner) = n;
  *vec_push(&k->reads) = v;
  w->rounded = v->rounded;
  value_layout(p->params, w, order);
  k->alone = true;
  k->turns = order && v->order[0] != order[0];
  return w;
}

void tpu_reread_by(Schedule *p, int i, int q, const int *order, bool rounded, const char *rule) {
  HValue *v = p->kernels.v[i]->reads.v[q], *w = NULL;
  rounded |= v->rounded;
  for (int k = 0; k < p->kernels.n && !w; k++) {
    HValue *c = p->kernels.v[k]->copy_of == v ? p->kernels.v[k]->roots.v[0]->val : NULL;
    if (c && c->order[0] == order[0] && c->order[1] == order[1] && c->rounded == rounded) w = c;
  }
  if (!w) w = tpu_copy_by(p, v, order, rule);
  if (w->rounded != rounded) {
    w->rounded = rounded;
    value_layout(p->params, w, order);
  }
  p->kernels.v[i]->reads.v[q] = w;
}

void tpu_read_instead(Schedule *p, const HValue *v, HValue *w, int kernels) {
  for (int i = 0; i < kernels; i++)
    for (int q = 0; q < p->kernels.v[i]->reads.n; q++)
      if (p->kernels.v[i]->reads.v[q] == v) p->kernels.v[i]->reads.v[q] = w;
}

bool tpu_same_order(const HValue *a, const HValue *b) {
  return a->node->rank == b->node->rank && a->order[0] == b->order[0] && a->order[1] == b->order[1];
}
