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

bool window_follows(const Side *w, Cut cut) {
  int64_t reach = cut == CUT_TAPS ? w->taps * w->dil_taps : w->out * w->stride;
  return reach == w->in * w->dil_in && w->low >= 0 && w->in > 0 && w->out > 0 && w->taps > 0 &&
         !(cut == CUT_TAPS && w->reversed);
}

bool window_halo(const Side *w, Cut cut, int64_t n, Halo *out) {
  if (!window_follows(w, cut) || w->in % n || (cut == CUT_TAPS ? w->taps : w->out) % n)
    return false;
  int64_t in = w->in / n, taps = cut == CUT_TAPS ? w->taps / n : w->taps,
          outs = cut == CUT_OUTPUTS ? w->out / n : w->out;
  int64_t last =
      (outs - 1) * w->stride + (taps - 1) * w->dil_taps - w->low; /* from where the part begins */
  if (last < 0) return false;
  out->left = w->low / w->dil_in;
  out->low = w->low % w->dil_in;
  out->right = MAX(0, last / w->dil_in - (in - 1));
  out->high = last - (in - 1 + out->right) * w->dil_in;
  return out->left <= in && out->right <= in;
}
