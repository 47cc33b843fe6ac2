/* Dense layers, experts and convolutions in 8 bits (Micikevicius et al. 2022): operands of the forward product and its
 * two gradients are rounded to f8E4M3FN, gradients that come in to f8E5M2 (of convolutions, whose operands have one
 * type, to f8E4M3FN), each divided by its largest magnitude first so that this
 * lands on the type's largest number: current scaling, as Transformer Engine's Float8CurrentScaling, which unlike
 * delayed scaling needs no state. Sums are f32. Master weights are f32, all else is bf16.
 *
 * Layers mark their products (GRAD_F8), gradients of these come out marked as well, and here the marked are replaced. */
#include "train/train_priv.h"

#include "compile/grad/grad.h"

#include <float.h>
#include <stdlib.h>

typedef struct Quantised {
  Value *q, *scale; /* f32: the value is q times scale */
} Quantised;

typedef struct F8 {
  Net *n;
  Build b;   /* what is made before the product that wants it */
  Map *seen; /* value and type -> Quantised: the forward product and a gradient read the same */
} F8;

static double largest_of(DType t) { return t == DT_F8E5M2 ? 57344 : 448; } /* finite */

static Quantised *quantised(F8 *f, Value *x, DType t) {
  struct {
    Value *x;
    uintptr_t t;
  } key = {x, t};
  Str bytes = {(const char *)&key, sizeof key};
  Quantised *q = map_get(f->seen, bytes);
  if (q) return q;
  Build *b = &f->b;
  Value *wide = b_convert(b, x, DT_F32), *largest = b_scalar(b, DT_F32, largest_of(t));
  Value *most = b_reduce_all(b, OP_MAXIMUM, b_abs(b, wide));
  q = xcalloc(1, sizeof *q);
  q->scale = b_div(b, b_max(b, most, b_scalar(b, DT_F32, FLT_MIN)), largest); /* of zeros: not 0 */
  Value *y = b_div(b, wide, b_bcast_scalar(b, q->scale, wide->type));
  y = b_clamp(b, b_neg(b, largest), y, largest); /* the quotient may be rounded up */
  q->q = b_convert(b, y, t);
  map_set(f->seen, bytes, q);
  return q;
}

static void insert_before(Op *at, Region *made) {
  for (Op *op = made->first, *next; op; op = next) {
    next = op->next;
    op_remove(op);
    op_insert_before(at, op);
  }
}

/* What pointed to the product points to the last op of what stands for it. */
static void replace_op(Net *n, Op **forward_end, Op *old, Op *new) {
  if (*forward_end == old) *forward_end = new;
  for (int i = 0; i < n->blocks.n; i++) {
    NetBlock *k = &n->blocks.v[i];
    if (k->before == old) k->before = new;
    if (k->last == old) k->last = new;
  }
  op_remove(old);
}

static Value *product_of(Build *b, const Op *op, Value *x, Value *y) {
  if (op->kind == OP_CONVOLUTION) {
    ConvDims d = b_conv_dims(op);
    return b_conv(b, x, y, &d, DT_F32, NULL);
  }
  DotDims d = b_dot_dims(op);
  return b_dot(b, x, y, &d, DT_F32, NULL);
}

/* cotangent: which operand is a gradient, -1: none. */
static void narrow(F8 *f, Op **forward_end, Op *op, int cotangent) {
  Build *b = &f->b;
  b->loc = op->loc;
  DType arriving = op->kind == OP_CONVOLUTION ? DT_F8E4M3FN : DT_F8E5M2;
  Quantised *x = quantised(f, op->operands[0], cotangent == 0 ? arriving : DT_F8E4M3FN);
  Quantised *y = quantised(f, op->operands[1], cotangent == 1 ? arriving : DT_F8E4M3FN);
  Value *r = product_of(b, op, x->q, y->q);
  r = b_mul(b, r, b_bcast_scalar(b, b_mul(b, x->scale, y->scale), r->type));
  r = b_convert(b, r, op->results[0].type->dtype);
  insert_before(op, b->r);
  value_replace_all(f->n->f, &op->results[0], r);
  replace_op(f->n, forward_end, op, r->def);
}

void f8_products(Net *n, Op **forward_end) {
  F8 f = {n, {n->b.m, region_new(n->b.m, 0, NULL), NULL}, map_new()};
  for (Op *op = n->b.r->first, *next; op; op = next) {
    next = op->next;
    if (op_attr(op, GRAD_F8)) narrow(&f, forward_end, op, -1);
    else if (op_attr(op, GRAD_F8_COTANGENT_LEFT)) narrow(&f, forward_end, op, 0);
    else if (op_attr(op, GRAD_F8_COTANGENT_RIGHT)) narrow(&f, forward_end, op, 1);
  }
  Str key;
  void *q;
  for (int i = 0; map_at(f.seen, i, &key, &q); i++) free(q);
  map_free(f.seen);
}
