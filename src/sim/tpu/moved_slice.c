/* Slices and pads on their other side: of a product's result that nothing reads whole only the rows and columns
 * that are kept are computed, and what is rounded after it was padded is padded when it is rounded. */
#include "sim/tpu/tpu.h"

static bool converts(const HNode *n) { return n->kind == H_EWISE && n->op == OP_CONVERT; }

static bool only_for(const HNode *x, const HNode *user) {
  return x->n_users == 1 && !x->is_output && x->comp == user->comp;
}

static bool cuts(const HNode *slice, int d) { return slice->d[d] != slice->in[0]->d[d]; }

/* May the product's operands be cut in place of its result? A batch stays as it is. */
static bool cut_before(const HNode *slice, const HNode *product) {
  if (product->kind != H_CONV || product->conv->is_conv || product->attention || !product->src)
    return false;
  for (int d = 0; d < slice->rank; d++)
    if (slice->step[d] != 1 || (cuts(slice, d) && product->conv->out[d] == 'b')) return false;
  return true;
}

/* The operand's dimension with this role that is the result's dimension d. */
static int dimension_of(const HNode *product, int side, char role, int d) {
  const char *own = side ? product->conv->rhs : product->conv->lhs, *out = product->conv->out;
  int before = 0, at = 0;
  for (int i = 0; i < d; i++) before += out[i] == role;
  for (; own[at]; at++)
    if (own[at] == role && before-- == 0) return at;
  return -1;
}

static HNode *cut_operand(HGraph *g, HComp *c, const HNode *slice, const HNode *product, int side) {
  HNode *x = product->in[side];
  char role = side ? 'n' : 'm';
  int64_t d[64], lo[64], hi[64], step[64];
  bool any = false;
  for (int i = 0; i < x->rank; i++) lo[i] = 0, d[i] = hi[i] = x->d[i], step[i] = 1;
  for (int i = 0; i < slice->rank; i++) {
    int at = product->conv->out[i] == role ? dimension_of(product, side, role, i) : -1;
    if (at < 0 || !cuts(slice, i)) continue;
    lo[at] = slice->lo[i], hi[at] = slice->hi[i], d[at] = slice->d[i];
    any = true;
  }
  if (!any) return x;
  HNode *s = hlo_node(g, c, H_SLICE, OP_SLICE, slice->src, x->dt, x->rank, d, 1, &x);
  s->lo = hlo_ints(g, lo, x->rank), s->hi = hlo_ints(g, hi, x->rank);
  s->step = hlo_ints(g, step, x->rank);
  return s;
}

static bool cut_product(HGraph *g, HComp *c, HNode *slice, const HNode *product) {
  if (!cut_before(slice, product)) return false;
  HConv *conv = arena_dup(g->arena, product->conv, sizeof *conv);
  for (int d = 0; d < slice->rank; d++) {
    int64_t *size = conv->out[d] == 'm' ? &conv->m : conv->out[d] == 'n' ? &conv->n : NULL;
    if (!size || !cuts(slice, d)) continue;
    *size = *size / product->d[d] * slice->d[d];
    conv->flops = conv->flops / product->d[d] * slice->d[d];
  }
  HNode *in[2] = {cut_operand(g, c, slice, product, 0), cut_operand(g, c, slice, product, 1)};
  slice->kind = H_CONV;
  slice->op = product->op;
  slice->src = product->src;
  slice->conv = conv;
  slice->n_in = 2;
  slice->in = arena_dup(g->arena, in, sizeof in);
  return true;
}

static void become_conversion(HGraph *g, HNode *n, HNode *of) {
  n->kind = H_EWISE;
  n->op = OP_CONVERT;
  n->n_in = 1;
  n->in = arena_dup(g->arena, &of, sizeof of);
}

void tpu_move_slice(HGraph *g, HComp *c, HNode *n) {
  HNode *x = n->in[0];
  if (n->rank > 64 || !n->step || !only_for(x, n)) return;
  if (x->kind == H_CONV) {
    cut_product(g, c, n, x);
    return;
  }
  HNode *product = converts(x) ? x->in[0] : NULL;
  if (!product || product->kind != H_CONV || !only_for(product, x) || !cut_before(n, product))
    return;
  HNode *s = hlo_node(g, c, H_SLICE, OP_SLICE, n->src, product->dt, n->rank, n->d, 1, &product);
  s->lo = n->lo, s->hi = n->hi, s->step = n->step;
  cut_product(g, c, s, product);
  become_conversion(g, n, s);
}

/* A number is rounded at once. */
static HNode *converted(HGraph *g, HComp *c, const HNode *to, HNode *x) {
  bool number = x->kind == H_CONST && x->splat;
  HNode *n = hlo_node(g, c, number ? H_CONST : H_EWISE, number ? x->op : OP_CONVERT, to->src,
                      to->dt, x->rank, x->d, !number, &x);
  n->splat = number;
  n->value = x->value;
  return n;
}

void tpu_move_pad(HGraph *g, HComp *c, HNode *n) {
  HNode *pad = n->in[0];
  if (!converts(n) || pad->kind != H_PAD || !only_for(pad, n) ||
      hlo_bits(n->dt) >= hlo_bits(pad->dt))
    return;
  HNode *x = converted(g, c, n, pad->in[0]), *value = converted(g, c, n, pad->in[1]);
  n->kind = H_PAD;
  n->op = OP_PAD;
  n->lo = pad->lo, n->hi = pad->hi, n->step = pad->step;
  n->n_in = 2;
  n->in = arena_dup(g->arena, ((HNode *[]){x, value}), 2 * sizeof *n->in);
}
