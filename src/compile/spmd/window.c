#include "compile/spmd/window.h"

#include "ir/build.h"

static int conv_sides(const Op *op, Side *sides) {
  ConvDims d = b_conv_dims(op);
  for (int i = 0; i < d.n; i++)
    sides[i] = (Side){.in_dim = (int)d.in_spatial[i],
                      .taps_dim = (int)d.k_spatial[i],
                      .out_dim = (int)d.out_spatial[i],
                      .stride = d.strides[i],
                      .low = d.padding[2 * i],
                      .dil_in = d.lhs_dilation[i],
                      .dil_taps = d.rhs_dilation[i],
                      .reversed = d.reversal[i]};
  return d.n;
}

static int64_t at_or(const Op *op, const char *name, int i, int64_t otherwise) {
  const int64_t *v;
  return op_ints(op, name, &v) > i ? v[i] : otherwise;
}

static int pool_sides(const Op *op, Side *sides) {
  int rank = op->operands[0]->type->rank;
  for (int i = 0; i < rank; i++)
    sides[i] = (Side){.in_dim = i,
                      .taps_dim = -1,
                      .out_dim = i,
                      .taps = at_or(op, "window_dimensions", i, 1),
                      .stride = at_or(op, "window_strides", i, 1),
                      .low = at_or(op, "padding", 2 * i, 0),
                      .dil_in = at_or(op, "base_dilations", i, 1),
                      .dil_taps = at_or(op, "window_dilations", i, 1)};
  return rank;
}

int window_sides(const Op *op, Side *sides) {
  bool conv = op->kind == OP_CONVOLUTION, scatters = op->kind == OP_SELECT_AND_SCATTER;
  const Type *in = op->operands[0]->type;
  const Type *out = scatters ? op->operands[1]->type : op->results[0].type;
  int n = conv ? conv_sides(op, sides) : pool_sides(op, sides);
  for (int i = 0; i < n; i++) {
    Side *w = &sides[i];
    w->in = in->dims[w->in_dim];
    w->out = out->dims[w->out_dim];
    if (conv) w->taps = op->operands[1]->type->dims[w->taps_dim];
  }
  return n;
}

/* The constant that a number is; NULL: none. */
static const Tensor *number_of(const Value *v) {
  const Op *def = v->def;
  while (def && def->kind == OP_BROADCAST_IN_DIM) def = def->operands[0]->def;
  const Attr *a = def && def->kind == OP_CONSTANT ? op_attr(def, "value") : NULL;
  return a && a->kind == AT_TENSOR && a->tensor && a->tensor->count == 1 ? a->tensor : NULL;
}

static bool same_number(const Value *a, const Value *b) {
  if (a == b) return true;
  const Tensor *x = number_of(a), *y = number_of(b);
  return x && y && x->dtype == y->dtype && !memcmp(x->data, y->data, dtype_bytes(x->dtype));
}

Value *window_before_pad(const Op *op, Side *sides, const Op **pad) {
  const Op *def = op->operands[0]->def;
  if (op->kind != OP_REDUCE_WINDOW || op->n_operands != 2 || !def || def->kind != OP_PAD ||
      !same_number(def->operands[1], op->operands[1]))
    return NULL;
  for (int i = 0, n = window_sides(op, sides); i < n; i++) {
    int64_t low = at_or(def, "edge_padding_low", i, 0),
            high = at_or(def, "edge_padding_high", i, 0);
    if (sides[i].dil_in != 1 || low < 0 || high < 0 || sides[i].low < 0 ||
        at_or(op, "padding", 2 * i + 1, 0) < 0)
      return NULL;
    sides[i].dil_in = at_or(def, "interior_padding", i, 0) + 1;
    sides[i].low += low;
    sides[i].in = def->operands[0]->type->dims[i];
  }
  *pad = def;
  return def->operands[0];
}

static int64_t reach_of(const Side *w, Cut cut) {
  return cut == CUT_TAPS ? w->taps * w->dil_taps : w->out * w->stride;
}

static bool is_ordered(const Side *w, Cut cut) {
  return w->in > 0 && w->out > 0 && w->taps > 0 && !(cut == CUT_TAPS && w->reversed);
}

bool window_follows(const Side *w, Cut cut) {
  return reach_of(w, cut) == w->in * w->dil_in && w->low >= 0 && is_ordered(w, cut);
}

bool window_goes_along(const Side *w, Cut cut) {
  int64_t off = reach_of(w, cut) - w->in * w->dil_in;
  int64_t over = cut == CUT_TAPS ? w->out * w->stride : w->taps * w->dil_taps + w->stride;
  bool few = MAX(off, -off) <= MIN(over, w->in * w->dil_in / 2);
  return few && MAX(w->low, -w->low) <= over && is_ordered(w, cut);
}

static int64_t div_up(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

bool window_halo(const Side *w, Cut cut, int64_t n, Halo *out) {
  if (!window_goes_along(w, cut) || w->in % n || (cut == CUT_TAPS ? w->taps : w->out) % n)
    return false;
  int64_t taps = cut == CUT_TAPS ? w->taps / n : w->taps,
          outs = cut == CUT_OUTPUTS ? w->out / n : w->out, apart = reach_of(w, cut) / n;
  int64_t last = (outs - 1) * w->stride + (taps - 1) * w->dil_taps - w->low; /* of device 0 */
  if (apart % w->dil_in) return false;
  out->step = apart / w->dil_in;
  out->begin = div_up(-w->low, w->dil_in);
  out->len = div_up(last + 1, w->dil_in) - out->begin;
  out->low = out->begin * w->dil_in + w->low;
  out->high = last - (out->begin + out->len - 1) * w->dil_in;
  return out->len > 0;
}

bool op_slices_along(const Op *op, int dim) {
  const int64_t *strides;
  if (!op || op->kind != OP_SLICE) return false;
  if (op_ints(op, "strides", &strides) > dim && strides[dim] != 1) return false;
  for (int d = 0; d < op->results[0].type->rank; d++)
    if (d != dim && op->results[0].type->dims[d] != op->operands[0]->type->dims[d]) return false;
  return true;
}
