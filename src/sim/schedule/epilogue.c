/* What a product's kernel does with its result before it is stored. */
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"

HNode *sched_narrow_end(HNode *conv, HNode *v) {
  /* a widening conversion at the end, and scaling after it, is repeated by every reader, so that
   * the narrow array is stored */
  HNode *narrow = NULL;
  for (HNode *t = conv; t != v && !v->is_output; t = t->users[0]) {
    HNode *u = t->users[0];
    bool cheap =
        u->kind == H_EWISE && u->op != OP_EXPONENTIAL && u->op != OP_TANH && u->op != OP_LOGISTIC;
    for (int i = 0; i < u->n_in; i++)
      cheap &= u->in[i] == t || hlo_const_only(u->in[i]) || u->in[i]->kind == H_BCAST;
    if (!cheap) narrow = NULL;
    else if (u->op == OP_CONVERT && hlo_bits(u->dt) > hlo_bits(t->dt)) narrow = t;
    else if (u->op == OP_CONVERT) narrow = NULL;
  }
  if (narrow) return narrow;
  HNode *prev = NULL;
  for (HNode *t = conv; t != v; t = t->users[0])
    if (t->users[0] == v) prev = t;
  if (prev && v->kind == H_EWISE && v->op == OP_CONVERT && !v->is_output &&
      hlo_bits(v->dt) > hlo_bits(prev->dt))
    v = prev;
  return v;
}
