/* pass_products: convolutions that are matrix products become dot_general, which has the faster
 * kernels and needs no format of its own: a spatial dimension whose window is one place is free,
 * one whose window is all that is left of the operand is summed over. So are 1x1 convolutions, with
 * steps or without, the gradients of both kinds, and layers that cover the whole map. Only where
 * the product's order of dimensions is the result's. */
#include "compile/pass/pass_priv.h"
#include "ir/build.h"

typedef struct Cut { /* of the operand along a spatial dimension, and how the result is spread out
                        afterwards */
  bool summed, spread;
  int64_t start, step, size;
  int64_t low, high, interior;
} Cut;

static Value *emit(Module *m, Op *at, OpKind kind, int n, Value *const *operands, DType t, int rank,
                   const int64_t *dims, int n_attrs, const NamedAttr *attrs) {
  Type *type = type_tensor(m, t, rank, dims);
  Op *op = op_new(m, kind, n, operands, 1, &type, n_attrs, attrs, 0, NULL);
  op->loc = at->loc;
  op->line = at->line;
  op->col = at->col;
  op_insert_before(at, op);
  return &op->results[0];
}

static NamedAttr ints(Module *m, const char *name, int n, const int64_t *v) {
  return (NamedAttr){str_from(name), attr_ints(m, DT_I64, n, v)};
}

static bool cut_of(const ConvDims *d, int i, int64_t in, int64_t window, int64_t out, Cut *c) {
  int64_t low = d->padding[2 * i];
  *c = (Cut){.size = in, .step = 1};
  if (window == 1) {
    if (d->lhs_dilation[i] == 1 && low <= 0 && (out - 1) * d->strides[i] - low < in) {
      *c = (Cut){.start = -low, .step = d->strides[i], .size = out};
      return true;
    }
    c->spread = true;
    c->low = low;
    c->interior = d->lhs_dilation[i] - 1;
    c->high = out - low - ((in - 1) * d->lhs_dilation[i] + 1);
    return d->strides[i] == 1;
  }
  *c = (Cut){.summed = true, .start = -low, .step = d->rhs_dilation[i], .size = window};
  return out == 1 && d->lhs_dilation[i] == 1 && !d->reversal[i] && low <= 0 &&
         (window - 1) * d->rhs_dilation[i] - low < in;
}

/* The operand where the windows lie. */
static Value *cut_operand(Module *m, Op *op, const ConvDims *d, const Cut *cut, Value *x) {
  int64_t start[B_MAX_RANK], limit[B_MAX_RANK], step[B_MAX_RANK], dims[B_MAX_RANK];
  bool whole = true;
  for (int i = 0; i < x->type->rank; i++)
    start[i] = 0, step[i] = 1, dims[i] = limit[i] = x->type->dims[i];
  for (int i = 0; i < d->n; i++) {
    int64_t k = d->in_spatial[i];
    whole &= cut[i].size == dims[k];
    start[k] = cut[i].start;
    step[k] = cut[i].step;
    dims[k] = cut[i].size;
    limit[k] = start[k] + (dims[k] - 1) * step[k] + 1;
  }
  if (whole) return x;
  int n = x->type->rank;
  NamedAttr a[] = {ints(m, "start_indices", n, start), ints(m, "limit_indices", n, limit),
                   ints(m, "strides", n, step)};
  return emit(m, op, OP_SLICE, 1, &x, x->type->dtype, n, dims, 3, a);
}

static Value *spread_out(Module *m, Op *op, const ConvDims *d, const Cut *cut, Value *y) {
  const Type *t = op_type(op);
  int64_t low[B_MAX_RANK] = {0}, high[B_MAX_RANK] = {0}, interior[B_MAX_RANK] = {0};
  for (int i = 0; i < d->n; i++) {
    int64_t k = d->out_spatial[i];
    low[k] = cut[i].low, high[k] = cut[i].high, interior[k] = cut[i].interior;
  }
  double none[2] = {0};
  Tensor *zero = tensor_make(t->dtype, 0, NULL);
  memcpy(zero->data, none, (size_t)dtype_bytes(t->dtype));
  NamedAttr value = {STR("value"), attr_tensor(m, zero, NULL)};
  Value *in[2] = {y, emit(m, op, OP_CONSTANT, 0, NULL, t->dtype, 0, NULL, 1, &value)};
  NamedAttr a[] = {ints(m, "edge_padding_low", t->rank, low),
                   ints(m, "edge_padding_high", t->rank, high),
                   ints(m, "interior_padding", t->rank, interior)};
  return emit(m, op, OP_PAD, 2, in, t->dtype, t->rank, t->dims, 3, a);
}

/* One convolution; NULL: it is no product. */
static Value *product_of(Module *m, Op *op) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (l->quant || r->quant || o->quant || l->dtype != r->dtype || !type_is_static(l) ||
      !type_is_static(r) || !type_is_static(o) || l->rank > B_MAX_RANK || type_count(l) == 0 ||
      type_count(r) == 0 || type_count(o) == 0)
    return NULL;
  ConvDims d = b_conv_dims(op);
  if (d.feature_groups != 1 || d.batch_groups != 1) return NULL;
  Cut cut[B_MAX_RANK];
  bool spread = false;
  for (int i = 0; i < d.n; i++) {
    if (!cut_of(&d, i, l->dims[d.in_spatial[i]], r->dims[d.k_spatial[i]], o->dims[d.out_spatial[i]],
                &cut[i]))
      return NULL;
    spread |= cut[i].spread;
  }
  /* Where each free dimension of the operand stands in the result; the dimensions of both, in the
   * product's order. */
  int64_t place[B_MAX_RANK], lc[B_MAX_RANK], rc[B_MAX_RANK], left[B_MAX_RANK], before[B_MAX_RANK];
  int nc = 0, nl = 0;
  lc[nc] = d.in_feature, rc[nc++] = d.k_in;
  for (int i = 0; i < l->rank; i++) place[i] = -1;
  place[d.in_batch] = d.out_batch;
  for (int i = 0; i < o->rank; i++) before[i] = o->dims[i];
  for (int i = 0; i < d.n; i++) {
    if (cut[i].summed) {
      lc[nc] = d.in_spatial[i], rc[nc++] = d.k_spatial[i];
    } else {
      place[d.in_spatial[i]] = d.out_spatial[i];
      before[d.out_spatial[i]] = cut[i].size;
    }
  }
  int64_t last = -1;
  bool in_order = true;
  for (int i = 0; i < l->rank; i++) {
    if (place[i] < 0) continue;
    left[nl++] = before[place[i]];
    if (before[place[i]] == 1) continue;
    in_order &= place[i] > last;
    last = place[i];
  }
  int64_t channels = o->dims[d.out_feature];
  bool after = true, ahead = true; /* the channels of the result come after, ahead of all others */
  for (int i = 0; i < o->rank && channels > 1; i++) {
    if (before[i] == 1 || i == d.out_feature) continue;
    after &= i < d.out_feature;
    ahead &= i > d.out_feature;
  }
  if (!in_order || (!after && !ahead)) return NULL;
  Value *x = cut_operand(m, op, &d, cut, op->operands[0]);
  Value *in[2] = {after ? x : op->operands[1], after ? op->operands[1] : x};
  int64_t dims[2 * B_MAX_RANK], n = 0;
  for (int side = 0; side < 2; side++) {
    bool is_x = (side == 0) == after;
    if (is_x)
      for (int i = 0; i < nl; i++) dims[n++] = left[i];
    else
      for (int i = 0; i < r->rank; i++) {
        bool summed = i == d.k_in;
        for (int k = 0; k < d.n; k++) summed |= cut[k].summed && i == d.k_spatial[k];
        if (!summed) dims[n++] = r->dims[i];
      }
  }
  NamedAttr a[3] = {ints(m, "lhs_contracting_dimensions", nc, after ? lc : rc),
                    ints(m, "rhs_contracting_dimensions", nc, after ? rc : lc)};
  int n_attrs = 2;
  Attr *p = op_attr(op, "precision_config");
  if (p && p->kind == AT_ARRAY && p->n == 2) {
    Attr *swap[2] = {p->items[after ? 0 : 1], p->items[after ? 1 : 0]};
    a[n_attrs++] = (NamedAttr){STR("precision_config"), attr_array(m, 2, swap)};
  }
  Value *y = emit(m, op, OP_DOT_GENERAL, 2, in, o->dtype, (int)n, dims, n_attrs, a);
  y = emit(m, op, OP_RESHAPE, 1, &y, o->dtype, o->rank, before, 0, NULL);
  return spread ? spread_out(m, op, &d, cut, y) : y;
}

static void walk(Module *m, Region *r) {
  for (Op *op = r->first, *next; op; op = next) {
    next = op->next;
    for (int i = 0; i < op->n_regions; i++) walk(m, op->regions[i]);
    Value *y = op->kind == OP_CONVOLUTION ? product_of(m, op) : NULL;
    if (!y) continue;
    value_replace_all(r->func, &op->results[0], y);
    op_remove(op);
  }
}

Err *pass_products(Module *m) {
  for (int i = 0; i < m->funcs.n; i++)
    if (m->funcs.v[i]->body) walk(m, m->funcs.v[i]->body);
  return NULL;
}
