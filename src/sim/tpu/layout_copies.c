/* The relayouts that follow from the orders of layout_assignment.c: copies in another order for readers
 * that want one. */
#include <math.h>

#include "sim/hlo/query.h"
#include "sim/schedule/schedule.h"
#include "sim/tpu/tpu.h"

static double up(double x, double m) { return ceil(x / m) * m; }

/* Is it only what loops read and do not change? */
static bool for_loops(const HNode *n) {
  for (int i = 0; i < n->n_users; i++) {
    const HNode *w = n->users[i];
    if (w->kind != H_WHILE) return false;
    const HComp *body = w->comps[1];
    for (int k = 0; k < w->n_in; k++)
      if (w->in[k] == n && (k >= body->outputs.n || body->outputs.v[k] != body->params.v[k]))
        return false;
  }
  return n->n_users > 0;
}

/* A transposition that renames the dimensions of an array which lies in the wanted order already. */
static void transposed_views(Schedule *p) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->copy || k->copy_of || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    HValue *v = n->val, *x = n->in[0]->val;
    if (n->kind != H_TRANSPOSE || n->rank < 2 || n->rank > 64 || !x ||
        (x->alias && !x->node->lies) || v->alias || v->rounded != x->rounded)
      continue;
    int order[64]; /* of the result, when nothing moves */
    for (int d = 0; d < n->rank; d++)
      for (int q = 0; q < n->rank; q++)
        if (n->dims[q] == x->order[d]) order[d] = q;
    bool other = false;
    for (int d = 0; d < n->rank && n->lies; d++) other |= order[d] != n->lies[d];
    if (other) continue;
    if (n->is_output) {
      int want[64];
      value_order_default(p->params, n, want);
      if (p->comp->parent || want[0] != order[0] || want[1] != order[1]) continue;
      if (x->is_param) continue; /* a result has memory of its own */
    } else if ((order[0] != v->order[0] || order[1] != v->order[1]) && !for_loops(n)) {
      continue;
    }
    value_layout(p->params, v, order);
    v->alias = x;
    k->copy = false;
    k->scalar = true;
  }
}

/* Does this value, element by element, become the operand x of a product? */
static bool becomes(const HNode *n, const HNode *x) {
  if (x == n) return true;
  for (int depth = 0; depth < 12 && !x->val && x->kind == H_EWISE; depth++) {
    const HNode *next = NULL;
    for (int z = 0; z < x->n_in; z++) {
      if (x->in[z] == n) return true;
      if (hlo_count(x->in[z]) == hlo_count(x) && x->in[z]->kind == H_EWISE) next = x->in[z];
    }
    if (!next) break;
    x = next;
  }
  return false;
}

/* An operand of a product that lies in an order which does not serve. */
static void turn_operands(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->conv) continue;
    const HConv *c = k->conv->conv;
    for (int side = 0; side < 2; side++) {
      const HNode *x = k->conv->in[side];
      const char *roles = side ? c->rhs : c->lhs;
      for (int q = 0; q < k->reads.n; q++) {
        HValue *v = k->reads.v[q];
        HNode *n = v->node;
        int order[64];
        if (n->rank < 2 || n->rank > 64 || v->bytes < TURN_MIN) continue;
        if (!hlo_same_shape(n, x->rank, x->d) || tpu_order_serves(v, c, roles, false) ||
            !becomes(n, x))
          continue;
        tpu_conv_order(p->params, n, c, roles, order);
        bool rounds = v->is_param && n->dt == DT_F32 && (x->dt == DT_BF16 || c->passes == 1);
        tpu_reread_by(p, i, q, order, rounds, __func__);
      }
    }
  }
}

/* An argument that a convolution's kernel reads beside its operands, element by element, is turned first where
 * it has another dimension in lanes than the kernel's result: OIHW weights and their slots, updated by a gradient
 * that is made with features in lanes. Other orders it reads as they lie. */
static void turn_updated(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->conv || !k->conv->conv->is_conv) continue;
    const HNode *n = k->roots.v[0];
    for (int q = 0; q < k->reads.n && n->rank > 1 && n->rank <= 64; q++) {
      HValue *v = k->reads.v[q];
      const int *order = n->val->order;
      if (!v->is_param || v->bytes < TURN_MIN || !hlo_same_shape(v->node, n->rank, n->d) ||
          v->order[0] == order[0] || becomes(v->node, k->conv->in[0]) ||
          becomes(v->node, k->conv->in[1]))
        continue;
      tpu_reread(p, i, q, order);
    }
  }
}

/* Splitting the lanes of a product's result into heads needs them out of the lanes first. */
static void turn_heads(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->conv || k->conv->conv->is_conv || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    if (n->kind != H_RESHAPE || n->is_output || n->rank != n->in[0]->rank + 1 || n->rank < 3)
      continue;
    const HNode *x = n->in[0];
    int64_t lanes = x->d[x->rank - 1], rows = x->d[x->rank - 2];
    if (n->d[n->rank - 1] >= 128 || lanes <= 128 || rows >= MIN(lanes, 1024) ||
        n->val->bytes < 65536)
      continue;
    HValue *w = tpu_copy(p, n->val, n->val->order);
    p->kernels.v[w->kernel]->turns = true; /* the heads' features are in lanes before */
    tpu_read_instead(p, n->val, w, nk);
  }
}

/* Padding and concatenation work in the order of their result, an update in that of what it goes into; parts of an image are
 * taken as they lie. */
static void turn_pieces(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || k->conv || k->copy || k->roots.n != 1) continue;
    HNode *n = k->roots.v[0];
    bool update = n->kind == H_DUS;
    if ((n->kind != H_PAD && n->kind != H_CONCAT && !update) || n->rank < 2 || n->rank > 64 ||
        (n->val->bytes < TURN_MIN && !update))
      continue;
    int order[64];
    value_order_default(p->params, n, order);
    if (n->is_output && !update && !hlo_stacked(n)) value_layout(p->params, n->val, order);
    const int *want = n->val->order;
    for (int q = 0; q < k->reads.n; q++) {
      HValue *v = k->reads.v[q];
      bool operand = false;
      for (int z = update; z < n->n_in; z++) operand |= n->in[z] == v->node;
      if (!operand || v->node->rank != n->rank || (v->alias && v->node->part)) continue;
      if (update ? !v->is_param : v->bytes < TURN_MIN) continue; /* made in that order; or small */
      if (v->order[0] == want[0] &&
          (v->order[1] == want[1] || (n->kind == H_CONCAT && v->node->d[v->order[1]] == 1)))
        continue;
      tpu_reread(p, i, q, want);
    }
  }
}

/* A reshape that moves elements works in the natural order of operand and result, or by way of lanes where
 * the first dimension stays and the others are joined with less padding so. */
static void turn_reshaped(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) {
    Kernel *k = p->kernels.v[i];
    if (k->dead || !k->copy || k->copy_of || k->roots.n != 1 || k->roots.v[0]->kind != H_RESHAPE ||
        k->reads.n != 1)
      continue;
    HValue *v = k->reads.v[0];
    const HNode *o = k->roots.v[0], *n = v->node;
    int r = n->rank, order[64];
    if (n != o->in[0] || r < 2 || r > 64 || v->bytes < TURN_MIN || n->rows || o->lies) continue;
    bool first_stays = o->d[0] == n->d[0];
    if (v->order[0] == 0 && o->rank > 1 && first_stays)
      continue; /* with the batch in lanes the others are joined as they lie */
    if (v->order[0] == r - 1 && o->rank > 2 && o->val->order[0] == 0) continue; /* turned */
    double batch = (double)o->d[0], last = (double)n->d[r - 1];
    bool lanes = hlo_bits(n->dt) == 16 && o->rank == 2 && first_stays && v->order[0] == r - 1 &&
                 v->order[1] == 0 && r > 2 && up(batch, 128) * last <= up(last, 128) * batch;
    for (int d = 0; d < r; d++) order[d] = lanes && d == 0 ? 0 : lanes ? r - d : r - 1 - d;
    if (lanes || v->order[0] != order[0] || v->order[1] != order[1]) tpu_reread(p, i, 0, order);
    for (int d = 0; d < o->rank && o->rank <= 64; d++) order[d] = o->rank - 1 - d;
    if (o->is_output && o->rank > 1 && !lanes) value_layout(p->params, o->val, order);
  }
}

/* Gathered rows of three sides or more land in any order that keeps their lanes. */
static bool lands_anywhere(const Kernel *k, const HValue *v, const int *order) {
  return k->roots.v[0]->kind == H_GATHER && order[0] == v->order[0] && v->node->rank > 2;
}

static const HNode *argument(const HNode *n) { /* that this is, perhaps converted; or NULL */
  if (n->kind == H_EWISE && n->op == OP_CONVERT) n = n->in[0];
  return n->kind == H_PARAM && !n->comp->parent ? n : NULL;
}

/* The gradient of a weight, made as its transposition. */
static const HNode *transposed_gradient(const Kernel *k) {
  for (int i = 0; i < k->inner.n; i++)
    if (k->inner.v[i]->kind == H_TRANSPOSE && k->inner.v[i]->in[0] == k->conv) return k->inner.v[i];
  return NULL;
}

/* Does it update weights of these sizes by a gradient that it makes? */
static bool updates_weights(const Kernel *k, const HNode *like) {
  if (k->dead || !k->conv || k->conv->conv->is_conv || !k->roots.n) return false;
  bool reads = false, writes = false;
  for (int q = 0; q < k->reads.n; q++)
    reads |= k->reads.v[q]->is_param && hlo_same_shape(k->reads.v[q]->node, like->rank, like->d);
  for (int q = 0; q < k->roots.n; q++)
    writes |= k->roots.v[q]->is_output && hlo_same_shape(k->roots.v[q], like->rank, like->d);
  return reads && writes;
}

/* The compiler turns the gradients of weights around, to make them as the weights lie, but on some
 * generations not where the other operand is an argument: the weights of the first layer. Where either
 * order pads alike, the product then lies in its natural order, and everything that meets it in the
 * other one: through the constants that all updates of one shape share also the weights of other layers
 * of that shape, if it is the last of their gradients. Weights and slots are turned there and back. */
static void turn_weights(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = nk - 1; i >= 0 && p->params->keeps_turned; i--) {
    const Kernel *k = p->kernels.v[i];
    const HNode *t = k->dead || !k->conv ? NULL : transposed_gradient(k);
    if (!t || t->rank != 2 || !argument(k->conv->in[1]) || !updates_weights(k, t)) continue;
    static const int natural[] = {1, 0}, other[] = {0, 1};
    HNode as = *t;
    double plain, across;
    as.dt = DT_F32;
    value_padded(p->params, &as, natural, &plain);
    value_padded(p->params, &as, other, &across);
    bool last = plain == across;
    for (int j = 0; j < nk && last; j++)
      if (updates_weights(p->kernels.v[j], t)) last = p->kernels.v[j]->conv->id <= k->conv->id;
    for (int j = 0; j < nk && last; j++) {
      Kernel *u = p->kernels.v[j];
      if (!updates_weights(u, t)) continue;
      for (int q = 0; q < u->reads.n; q++) {
        HValue *v = u->reads.v[q];
        if (!v->is_param || !hlo_same_shape(v->node, t->rank, t->d) ||
            argument(u->conv->in[1]) == v->node)
          continue;
        tpu_reread(p, j, q, other);
      }
      for (int q = 0; q < u->roots.n; q++)
        if (hlo_same_shape(u->roots.v[q], t->rank, t->d))
          value_layout(p->params, u->roots.v[q]->val, other);
    }
  }
}

/* Results of the program have the default order. */
static void turn_results(Schedule *p) {
  int nk = p->kernels.n;
  for (int i = 0; i < nk; i++) tpu_update_rows(p, i);
  turn_weights(p);
  for (int i = 0; i < p->comp->outputs.n; i++) {
    HValue *v = p->comp->outputs.v[i]->val;
    if (!v || v->is_param || (v->alias && !v->node->lies) || v->node->rank < 2 ||
        v->node->rank > 64 || v->kernel < 0)
      continue;
    int order[64];
    value_order_default(p->params, v->node, order);
    if (v->bytes < TURN_MIN) continue;
    bool moved = false;
    for (int d = 0; d < (v->node->lies ? v->node->rank : 2); d++) moved |= order[d] != v->order[d];
    if (!moved) continue;
    if (!v->alias && lands_anywhere(p->kernels.v[v->kernel], v, order)) {
      value_layout(p->params, v, order);
      continue;
    }
    HValue *w = tpu_copy(p, v, order);
    w->is_output = true;
    p->comp->outputs.v[i] = w->node;
  }
}

/* What lies as a reshape wants it: copies that move another dimension into lanes. */
static void find_turns(Schedule *p) {
  for (int i = 0; i < p->kernels.n; i++) {
    Kernel *k = p->kernels.v[i];
    const HNode *n = k->roots.n == 1 ? k->roots.v[0] : NULL;
    if (k->dead || !k->copy || !n->lies || k->reads.n != 1) continue;
    const HNode *t = n->view && n->in[0]->kind == H_TRANSPOSE && !n->in[0]->val ? n->in[0] : NULL;
    int lanes = k->reads.v[0]->order[0];
    k->turns = n->turned || (n->op == OP_COPY && lanes != n->lies[0]) ||
               (t && lanes != t->dims[t->lies[0]]);
  }
}

void tpu_copies(Schedule *p) {
  find_turns(p);
  transposed_views(p);
  turn_operands(p);
  turn_updated(p);
  turn_heads(p);
  turn_pieces(p);
  turn_reshaped(p);
  tpu_turn_indexed(p);
  if (p->comp->parent) return;
  turn_results(p);
}
