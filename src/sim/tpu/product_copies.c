/* Copies for products and convolutions: operands in an order that does not serve, what their results update, heads. */
#include "sim/hlo/query.h"
#include "sim/tpu/layout_copies.h"

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

static bool is_product(Relayout *r) { return r->k->conv; }

static bool operand_read(Relayout *r, const HValue *v, int *order) {
  const HNode *n = v->node;
  const HConv *c = r->k->conv->conv;
  for (int side = 0; side < 2; side++) {
    const HNode *x = r->k->conv->in[side];
    const char *roles = side ? c->rhs : c->lhs;
    if (!hlo_same_shape(n, x->rank, x->d) || tpu_order_serves(v, c, roles, false) || !becomes(n, x))
      continue;
    tpu_conv_order(r->p->params, n, c, roles, order);
    r->rounded = v->is_param && n->dt == DT_F32 && (x->dt == DT_BF16 || c->passes == 1);
    return true;
  }
  return false;
}

/* An argument that a convolution's kernel reads beside its operands, element by element, is turned first where
 * it has another dimension in lanes than the kernel's result: OIHW weights and their slots, updated by a gradient
 * that is made with features in lanes. Other orders it reads as they lie. */
static bool convolution_updates(Relayout *r) {
  if (!r->k->conv || !r->k->conv->conv->is_conv || r->n->rank < 2 || r->n->rank > 64) return false;
  tpu_copy_order(r->order, r->n->val->order, r->n->rank);
  return true;
}

static bool updated_read(Relayout *r, const HValue *v, int *order) {
  const HNode *c = r->k->conv;
  return v->is_param && hlo_same_shape(v->node, r->n->rank, r->n->d) && v->order[0] != order[0] &&
         !becomes(v->node, c->in[0]) && !becomes(v->node, c->in[1]);
}

/* Splitting the lanes of a product's result into heads needs them out of the lanes first. */
static bool splits_heads(Relayout *r) {
  const HNode *n = r->n, *x = n->n_in ? n->in[0] : NULL;
  if (!r->k->conv || r->k->conv->conv->is_conv || r->k->roots.n != 1 || n->kind != H_RESHAPE ||
      n->is_output || n->rank != x->rank + 1 || n->rank < 3)
    return false;
  int64_t lanes = x->d[x->rank - 1], rows = x->d[x->rank - 2];
  r->back =
      n->d[n->rank - 1] < 128 && lanes > 128 && rows < MIN(lanes, 1024) && n->val->bytes >= 65536;
  tpu_copy_order(r->copied, n->val->order, n->rank);
  return r->back;
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
static bool updates_weights(const Schedule *p, const Kernel *k, const HNode *like) {
  if (k->dead || !k->conv || k->conv->conv->is_conv || !k->roots.n) return false;
  bool reads = false, writes = false;
  for (int q = 0; q < k->reads.n; q++) {
    const HValue *v = k->reads.v[q];
    if (v->kernel >= 0 && p->kernels.v[v->kernel]->copy_of) v = p->kernels.v[v->kernel]->copy_of;
    reads |= v->is_param && hlo_same_shape(v->node, like->rank, like->d);
  }
  for (int q = 0; q < k->roots.n; q++)
    writes |= k->roots.v[q]->is_output && hlo_same_shape(k->roots.v[q], like->rank, like->d);
  return reads && writes;
}

/* The update of weights of those sizes whose gradient is made last; NULL: none. */
static const Kernel *last_update(const Schedule *p, const HNode *like) {
  const Kernel *last = NULL;
  for (int i = 0; i < p->kernels.n; i++) {
    const Kernel *k = p->kernels.v[i];
    if (updates_weights(p, k, like) && (!last || k->conv->id > last->conv->id)) last = k;
  }
  return last;
}

static bool pads_alike(const CostParams *params, const HNode *n, const int *a, const int *b) {
  HNode as = *n;
  double plain, across;
  as.dt = DT_F32;
  value_padded(params, &as, a, &plain);
  value_padded(params, &as, b, &across);
  return plain == across;
}

/* The compiler turns the gradients of weights around, to make them as the weights lie, but on some
 * generations not where the other operand is an argument: the weights of the first layer. Where either
 * order pads alike, the product then lies in its natural order, and everything that meets it in the
 * other one: through the constants that all updates of one shape share also the weights of other layers
 * of that shape, if it is the last of their gradients. Weights and slots are turned there and back. */
static bool turned_gradient(Relayout *r) {
  static const int natural[] = {1, 0}, other[] = {0, 1};
  const Kernel *last = r->p->params->keeps_turned && updates_weights(r->p, r->k, r->n)
                           ? last_update(r->p, r->n)
                           : NULL;
  const HNode *t = last ? transposed_gradient(last) : NULL;
  if (!t || t->rank != 2 || !hlo_same_shape(t, r->n->rank, r->n->d) ||
      !argument(last->conv->in[1]) || !pads_alike(r->p->params, t, natural, other))
    return false;
  tpu_copy_order(r->order, other, 2);
  tpu_copy_order(r->made, other, 2);
  r->writes = true;
  return true;
}

static bool weight_read(Relayout *r, const HValue *v, int *order) {
  (void)order;
  return v->is_param && hlo_same_shape(v->node, r->n->rank, r->n->d) &&
         argument(r->k->conv->in[1]) != v->node;
}

const CopyRule tpu_operands = {"a product's operand", true, is_product, operand_read,
                               "relayout_turned_on_chip, join_sums_sum_order"};
const CopyRule tpu_updated = {"what a convolution updates", true, convolution_updates, updated_read,
                              "filter_update"};
const CopyRule tpu_heads = {"features split into heads", true, splits_heads, NULL,
                            "product_attention"};
const CopyRule tpu_weights = {"a gradient made in its natural order", false, turned_gradient,
                              weight_read, "rows_weights_turn"};
