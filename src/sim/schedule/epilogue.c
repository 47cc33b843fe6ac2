/* What a product's kernel does with its result before it is stored. */
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"

static bool dear(const HNode *n) {
  return n->op == OP_EXPONENTIAL || n->op == OP_TANH || n->op == OP_LOGISTIC;
}

/* Is a product's narrow result what is stored of it, as several read what is made of it without much work? */
static bool stored_narrow(const HNode *n) {
  if (hlo_bits(n->dt) > 16) return false;
  for (; n->n_users == 1; n = n->users[0])
    if (n->is_output || n->users[0]->kind != H_EWISE || dear(n->users[0])) return false;
  return !n->is_output;
}

/* Is it made, element by element, of one product's narrow result and what is repeated? */
static bool of_narrow(const HNode *n, int depth) {
  if (n->kind == H_CONV) return stored_narrow(n);
  if (n->kind != H_EWISE || depth > 16) return false;
  int made = 0;
  for (int i = 0; i < n->n_in; i++) {
    if (hlo_const_only(n->in[i]) || n->in[i]->kind == H_BCAST) continue;
    if (!of_narrow(n->in[i], depth + 1)) return false;
    made++;
  }
  return made == 1;
}

HNode *sched_narrow_end(HNode *conv, HNode *v) {
  /* a widening conversion at the end, and scaling after it, is repeated by every reader, so that
   * the narrow array is stored */
  HNode *narrow = NULL;
  for (HNode *t = conv; t != v && !v->is_output; t = t->users[0]) {
    HNode *u = t->users[0];
    bool cheap = u->kind == H_EWISE && !dear(u);
    for (int i = 0; i < u->n_in; i++)
      cheap &= u->in[i] == t || hlo_const_only(u->in[i]) || u->in[i]->kind == H_BCAST ||
               of_narrow(u->in[i], 0);
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
