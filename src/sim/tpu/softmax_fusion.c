/* Which parts of a softmax the compiler keeps in one kernel. */
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

static const HNode *through_shape(const HNode *n) {
  while (n->kind == H_BCAST || n->kind == H_RESHAPE) n = n->in[0];
  return n;
}
static const HNode *from_product(const HNode *n, bool *narrow) {
  for (int depth = 0; depth < 16; depth++) {
    *narrow |= hlo_bits(n->dt) < 32;
    if (n->kind == H_CONV) return n;
    if (n->kind != H_EWISE && n->kind != H_RESHAPE && n->kind != H_TRANSPOSE) return NULL;
    const HNode *next = NULL;
    for (int i = 0; i < n->n_in; i++)
      if (n->in[i]->kind == H_CONV || n->in[i]->kind == H_EWISE || n->in[i]->kind == H_TRANSPOSE) {
        if (hlo_count(n->in[i]) == hlo_count(n)) next = n->in[i];
      }
    if (!next) return NULL;
    n = next;
  }
  return NULL;
}
/* Matrices times matrices, one side each left of both, and the softmax reads that itself? Not where several heads
 * share their keys, nor where partitioning left one of a batch: XLA takes that side out of the product alone. */
static bool of_matrices(const HNode *product) {
  if (product->conv->cut_to_one) return false;
  int rows = 0, columns = 0;
  for (int i = 0; i < product->rank; i++) {
    rows += product->conv->out[i] == 'm' && product->d[i] > 1;
    columns += product->conv->out[i] == 'n' && product->d[i] > 1;
  }
  return rows <= 1 && columns <= 1;
}
/* Is the last side, alone reduced by r, in tiles of x, which has three sides or more? */
static bool along_tiles(const Schedule *p, const HNode *x, const HNode *r) {
  int order[64];
  if (x->rank < 3 || r->n_dims != 1 || r->dims[0] != x->rank - 1) return false;
  value_order_default(p->params, x, order);
  return order[0] == x->rank - 1 || order[1] == x->rank - 1;
}
/* The sum of exponentials e whose logarithm is taken from their exponents `sub`; or NULL. */
static HNode *logarithm_of(const HNode *sub, const HNode *e) {
  if (sub->n_users != 2 || sub->is_output || e->n_users != 1 || e->is_output) return NULL;
  const HNode *u = sub->users[sub->users[0] == e];
  HNode *sum = e->users[0];
  if (u->kind != H_EWISE || u->op != OP_SUBTRACT || u->in[0] != sub) return NULL;
  const HNode *l = through_shape(u->in[1]);
  while (l->kind == H_EWISE && l->op == OP_CONVERT) l = through_shape(l->in[0]);
  if (l->kind != H_EWISE || l->op != OP_LOG || l->is_output) return NULL;
  l = through_shape(l->in[0]);
  while (l->kind == H_EWISE && l->op == OP_CONVERT) l = through_shape(l->in[0]);
  while (sum->kind == H_EWISE && sum->op == OP_CONVERT && sum->n_users == 1) sum = sum->users[0];
  return l == sum && sum->kind == H_REDUCE && sum->n_results == 1 && !sum->is_output ? sum : NULL;
}

/* A softmax over a side that lies in tiles, of a narrow array of rank 3 and more, is one kernel. */
static void inline_softmax(Schedule *p, HNode *e, HNode *mx) {
  HNode *sum = logarithm_of(e->in[0], e);
  if (sum && !mx->is_output && along_tiles(p, mx->in[0], mx)) { /* two kernels */
    mx->inlined = sum->inlined = true;
    sched_store(p, e->in[0])->lone = true;
    return;
  }
  sum = NULL;
  bool others = false; /* the exponentials are read again: they are stored, the quotient is not */
  const HNode *x = mx->in[0];
  if (!along_tiles(p, x, mx) || x->d[x->rank - 1] < 64) return;
  if (e->is_output || mx->is_output) return;
  for (int u = 0; u < e->n_users; u++) {
    HNode *r = e->users[u];
    while (r->kind == H_EWISE && r->op == OP_CONVERT && r->n_users == 1) r = r->users[0];
    if (r->kind == H_REDUCE && !sum) sum = r;
    else if (r->kind != H_EWISE) return;
    else others |= r->op != OP_DIVIDE;
  }
  if (!sum || sum->is_output || sum->n_results != 1) return;
  mx->inlined = true;
  if (others) sched_store(p, e);
  else sum->inlined = true;
}
/* Is the softmax of exponentials e for one product alone, as where nothing goes backwards? */
static bool forward_only(const HNode *e) {
  int sums = 0, products = 0;
  if (e->is_output || e->n_users != 2) return false;
  for (int u = 0; u < 2; u++) {
    const HNode *r = e->users[u];
    while (r->kind == H_EWISE && r->n_users == 1 && !r->is_output) r = r->users[0];
    while ((r->kind == H_RESHAPE || r->kind == H_TRANSPOSE) && r->n_users == 1 && !r->is_output)
      r = r->users[0];
    sums += r->kind == H_REDUCE;
    products += r->kind == H_CONV;
  }
  return sums == 1 && products == 1;
}

void tpu_softmax(Schedule *p) {
  HComp *c = p->comp;
  for (int i = 0; i < c->nodes.n; i++) {
    HNode *e = c->nodes.v[i];
    if (e->dead || e->attention || e->kind != H_EWISE || e->op != OP_EXPONENTIAL) continue;
    HNode *sub = e->in[0];
    if (sub->kind != H_EWISE || sub->op != OP_SUBTRACT) continue;
    const HNode *mx = through_shape(sub->in[1]);
    if (mx->kind != H_REDUCE || mx->n_results != 1 || hlo_count(mx->in[0]) != hlo_count(e))
      continue;
    bool narrow = false;
    const HNode *product = from_product(mx->in[0], &narrow);
    if (!product) {
      inline_softmax(p, e, (HNode *)mx);
      continue;
    }
    /* else the scores are stored, and their rows' maxima; v4 alone stores their quotients as well */
    bool joined = of_matrices(product);
    e->soft = true;
    if (!joined) continue;
    if (!narrow) continue; /* scores that were never rounded: the exponentials are repeated */
    /* of short rows the scores are stored, all else is repeated */
    if (p->params->scores && forward_only(e) && e->d[e->rank - 1] < 512) {
      ((HNode *)mx)->inlined = true;
      HNode *scores = mx->in[0];
      while (scores->kind == H_EWISE && scores->n_in &&
             hlo_count(scores->in[0]) == hlo_count(scores))
        scores = scores->in[0];
      if (scores->kind == H_CONV) sched_store(p, scores)->lone = true;
      continue;
    }
    bool summed = false;
    for (int u = 0; u < e->n_users; u++) summed |= e->users[u]->kind == H_REDUCE;
    if (!summed) continue;
    e->soft = true;
    ((HNode *)mx)->soft = true;
    sched_store(p, e);
  }
}
