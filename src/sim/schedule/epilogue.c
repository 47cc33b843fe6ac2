/* What a product's kernel does with its result before it is stored. */
#include "sim/gpu/gpu.h"
#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"

#define DIAMOND 64 /* nodes */

HNode *sched_meets_again(HNode *v, const unsigned char *claimed) {
  HNode *set[DIAMOND] = {v};
  for (int n = 1; n < DIAMOND; n++) {
    HNode *next = NULL; /* the first user outside */
    int open = 0;       /* nodes that are needed outside */
    bool last = false;
    for (int i = 0; i < n; i++) {
      last = set[i]->is_output;
      for (int u = 0; u < set[i]->n_users; u++) {
        HNode *w = set[i]->users[u];
        bool inside = false;
        for (int k = 0; k < n; k++) inside |= set[k] == w;
        last |= !inside;
        if (!inside && (!next || w->id < next->id)) next = w;
      }
      open += last;
    }
    if (n > 1 && open == 1 && last) return set[n - 1];
    if (!next || next->comp != v->comp || claimed[next->id] || next->kind != H_EWISE ||
        hlo_count(next) != hlo_count(v))
      return NULL;
    set[n] = next;
  }
  return NULL;
}

/* What GPUs' libraries compute with a product's or convolution's result on the way: a bias or what it
 * is added to, clipping, the operands' type; with a convolution's gradients nothing. */
static bool library_epilogue(const HNode *conv, const HNode *u) {
  if (conv->src && conv->dt != op_type(conv->src)->dtype)
    return false; /* widened: rounded between */
  if (conv->conv->is_conv && gpu_conv_way(conv) != GPU_CONV_FORWARD) return false;
  if (u->op == OP_CONVERT && u->dt != conv->in[0]->dt) return false;
  return u->op == OP_ADD || u->op == OP_MAXIMUM || u->op == OP_CONVERT;
}

bool sched_library_adds(const HNode *product, const HNode *n) {
  return product->n_users == 1 && !product->is_output && hlo_count(n) == hlo_count(product) &&
         n->op != OP_CONVERT && library_epilogue(product, n);
}

HNode *sched_library_end(const Schedule *p, HNode *conv) {
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

/* Does a product take in the conversion that widens its result before the readers of that do? The
 * compiler joins first what saves most: there two kernels' base, here each reader's bytes, which it
 * counts at a quarter of the bandwidth. */
static bool takes_widening(const Schedule *p, int64_t count, int readers) {
  double cycles =
      4 * (2.0 * readers + 6) * (double)count * p->params->clock / p->chip->hbm_bandwidth;
  return cycles < 2 * p->params->lbase;
}

HNode *sched_epilogue_end(const Schedule *p, HNode *conv, const unsigned char *claimed) {
  HNode *v = conv;
  int64_t count = hlo_count(conv);
  for (int steps = 0; steps < 200; steps++) {
    if (v->is_output) break;
    HNode *u = v->n_users == 1 ? v->users[0] : NULL;
    if (v->n_users > 1 && p->params->tpu && v->kind == H_EWISE) {
      u = sched_meets_again(v, claimed);
      if (u) v = u;
      if (u) continue;
    }
    if (!u || u->comp != conv->comp || claimed[u->id]) break;
    bool ew = u->kind == H_EWISE || u->kind == H_RESHAPE || u->kind == H_TRANSPOSE;
    if (!ew || hlo_count(u) != count || u->rows || (u->lies && u->kind == H_RESHAPE && v->lies))
      break;
    if (!p->params->tpu && u->kind != H_EWISE) break;
    if (!p->params->tpu && conv->kind == H_CONV && !library_epilogue(conv, u)) break;
    if (u->kind == H_TRANSPOSE && v != conv) break;
    v = u;
  }
  if (p->params->weighs && takes_widening(p, count, v->n_users)) return v;
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
