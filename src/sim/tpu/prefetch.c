/* Which reads of arguments are worth having on chip before the first kernel: those that take the array as
 * it lies. */
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

/* Is the kernel all that the program does? */
static bool only_one(const Schedule *p, const Kernel *k) {
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *o = p->kernels.v[i];
    bool takes = false; /* its one number */
    for (int q = 0; q < o->reads.n; q++) takes |= o->reads.v[q]->kernel == k->pos;
    if (o != k && (!o->scalar || takes)) return false;
  }
  return true;
}

/* Does the kernel add up, or seek the largest of, the array itself and nothing made of it, once? */
static bool as_it_is(const Kernel *k, const HValue *v) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_REDUCE && k->inner.v[i]->in[0] == v->node) return true;
  return false;
}

/* Does a product lay this operand, its first, out anew as it takes it? A convolution so treats images
 * with a spatial dimension in sublanes, where its result has other dimensions in the tile. */
static bool relaid(const Kernel *k, const HValue *v) {
  const HConv *c = k->conv->conv;
  const HNode *x = k->conv->in[0];
  if (!c->is_conv) return v->node == x && tpu_turned_inside(v, c, c->lhs);
  const HValue *o = k->roots.v[0]->val;
  if (v->node->rank != x->rank || v->node->rank < 2 || hlo_count(v->node) != hlo_count(x))
    return false;
  if (!o || o->node->rank != k->conv->rank || c->lhs[v->order[1]] != 's') return false;
  char in = c->lhs[v->order[0]], lanes = c->out[o->order[0]], sublanes = c->out[o->order[1]];
  bool dilated = false;
  for (int i = 0; i < c->n_spatial; i++) dilated |= c->rhs_dil[i] > 1;
  if (in == 'k') return lanes == 'm' || (lanes == 'n' && sublanes == 'm');
  return in == 'm' && (lanes == 'm' || dilated);
}

bool tpu_fetch_first(const Schedule *p, const Kernel *k, const HValue *v) {
  if (k->conv) return !relaid(k, v);
  if (k->soft) return false;
  if (k->pool) {
    const HNode *n = NULL;
    for (int i = 0; i < k->inner.n; i++)
      if (k->inner.v[i]->kind == H_RWIN) n = k->inner.v[i];
    if (!n || !n->lo || n->rank != v->node->rank) return false;
    const int64_t *win = n->lo;
    const HNode *x = n->in[0];
    while (x->kind == H_EWISE && x->op == OP_CONVERT) x = x->in[0];
    return x == v->node && win[v->order[0]] == 1 && win[v->order[1]] == 1;
  }
  const HNode *root = k->roots.v[0];
  if (root->kind == H_GATHER || root->kind == H_DSLICE) return v->node == root->in[0];
  if (root->kind == H_REDUCE && root->src && root->src->kind == OP_DOT_GENERAL) return false;
  return k->reduce ? v->last_read > k->pos || (k->roots.n == 1 && as_it_is(k, v) && only_one(p, k))
                   : k->alone;
}

bool tpu_product_or_reduce(const Kernel *k) {
  return k->conv != NULL || k->reduce || k->pool || k->roots.v[0]->kind == H_GATHER ||
         k->roots.v[0]->kind == H_DSLICE;
}

bool tpu_is_operand(const Kernel *k, const HNode *x) {
  for (int i = 0; i < k->inner.n; i++) {
    const HNode *n = k->inner.v[i];
    for (int q = 0; q < n->n_in; q++) {
      if (n->in[q] != x || n == k->conv || (!k->conv && n->kind == H_REDUCE)) continue;
      bool view = n->kind == H_RESHAPE || n->kind == H_TRANSPOSE || n->kind == H_PAD;
      if (hlo_light(n) && !(view && !n->val && tpu_is_operand(k, n))) return false;
    }
  }
  return true;
}
