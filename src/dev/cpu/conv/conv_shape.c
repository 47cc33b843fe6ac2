/* Recognises the form of a convolution and brings its operands into one order of dimensions. */
#include "dev/cpu/conv/conv.h"
#include "ir/build.h"

#define DIMS 3 /* spatial dimensions at most */

bool conv_shape(const Op *op, ConvShape *c) {
  const Type *l = op->operands[0]->type, *r = op->operands[1]->type, *o = op_type(op);
  if (l->rank > DIMS + 2) return false;
  const ConvDims d = b_conv_dims(op);
  int ns = d.n;
  const int64_t *isd = d.in_spatial, *ksd = d.k_spatial, *osd = d.out_spatial;
  int64_t ib = d.in_batch, inf = d.in_feature, kif = d.k_in, kof = d.k_out, ob = d.out_batch,
          of = d.out_feature;
  int64_t fg = d.feature_groups, bg = d.batch_groups;
  if (type_count(l) == 0 || type_count(r) == 0 || type_count(o) == 0 || (fg > 1 && bg > 1))
    return false;
  int64_t ls[CPU_MAX_RANK], rs[CPU_MAX_RANK], os[CPU_MAX_RANK], out_n = 1, window_n = 1;
  cpu_strides(l, ls);
  cpu_strides(r, rs);
  cpu_strides(o, os);
  bool dilated = false, strided = false, any_turned = false, all_turned = true;
  bool apart = ns > 0, beside = ns > 0; /* windows that do not overlap; their gradient */
  for (int i = 0; i < ns; i++) {
    int64_t k = r->dims[ksd[i]];
    bool turned = d.reversal[i];
    dilated |= d.lhs_dilation[i] > 1;
    strided |= d.strides[i] > 1;
    apart &= d.strides[i] > 1 && d.strides[i] >= k;
    beside &= d.rhs_dilation[i] > 1 && d.rhs_dilation[i] >= o->dims[osd[i]];
    out_n *= o->dims[osd[i]];
    window_n *= k;
    if (k > 1) any_turned |= turned, all_turned &= turned;
  }
  c->groups = MAX(fg, bg);
  bool data_ok = bg == 1 && !strided;
  for (int i = 0; i < ns; i++)
    if ((r->dims[ksd[i]] - 1) * d.rhs_dilation[i] < d.padding[2 * i]) data_ok = false;
  if (dilated && !data_ok) return false;
  c->form = dilated                                                         ? CONV_DATA
            : bg > 1 || (fg == 1 && !apart && (beside || out_n < window_n)) ? CONV_WEIGHTS
            : any_turned && all_turned && data_ok                           ? CONV_DATA
                                                                            : CONV_FORWARD;
  c->flip = c->form == CONV_DATA ? !all_turned : any_turned;
  ConvView *x = &c->v[X], *w = &c->v[W], *y = &c->v[Y];
  int fake = ns == 0; /* no spatial dimension: one of size 1 */
  x->n = y->n = 2 + ns + fake;
  w->n = 3 + ns + fake;
  int64_t g = c->groups;
  int64_t *rhs_strides = rs, flipped[CPU_MAX_RANK];
  if (c->flip) { /* a dense copy, turned round */
    c->flip_rank = r->rank;
    for (int i = 0; i < r->rank; i++)
      c->flip_dims[i] = r->dims[i], c->flip_strides[i] = flipped[i] = rs[i];
    for (int i = 0; i < ns; i++) {
      bool turned = d.reversal[i];
      c->flipped[i] = r->dims[ksd[i]] > 1 && turned != (c->form == CONV_DATA);
      if (!c->flipped[i]) continue;
      c->flip_strides[ksd[i]] = -rs[ksd[i]];
      c->flip_offset += (r->dims[ksd[i]] - 1) * rs[ksd[i]];
    }
    rhs_strides = flipped;
  }
#define DIM(view, i, size, step) ((view)->dims[i] = (size), (view)->strides[i] = (step))
  switch (c->form) {
  case CONV_FORWARD:
    DIM(x, 0, l->dims[ib], ls[ib]), DIM(x, 1, l->dims[inf], ls[inf]);
    DIM(y, 0, o->dims[ob], os[ob]), DIM(y, 1, o->dims[of], os[of]);
    DIM(w, 0, g, r->dims[kof] / g * rhs_strides[kof]);
    DIM(w, 1, r->dims[kof] / g, rhs_strides[kof]), DIM(w, 2, r->dims[kif], rhs_strides[kif]);
    break;
  case CONV_DATA:
    DIM(y, 0, l->dims[ib], ls[ib]), DIM(y, 1, l->dims[inf], ls[inf]);
    DIM(x, 0, o->dims[ob], os[ob]), DIM(x, 1, o->dims[of], os[of]);
    DIM(w, 0, g, r->dims[kof] / g * rhs_strides[kof]);
    DIM(w, 1, r->dims[kif], rhs_strides[kif]), DIM(w, 2, r->dims[kof] / g, rhs_strides[kof]);
    break;
  default:
    DIM(x, 0, l->dims[inf], ls[inf]), DIM(x, 1, l->dims[ib], ls[ib]);
    DIM(y, 0, r->dims[kif], rhs_strides[kif]), DIM(y, 1, r->dims[kof], rhs_strides[kof]);
    DIM(w, 0, g, o->dims[of] / g * os[of]);
    DIM(w, 1, o->dims[of] / g, os[of]), DIM(w, 2, o->dims[ob], os[ob]);
    break;
  }
  for (int i = 0; i < ns; i++) {
    int64_t lo = d.padding[2 * i], in = l->dims[isd[i]], k = r->dims[ksd[i]], out = o->dims[osd[i]];
    int64_t st = d.strides[i], rd = d.rhs_dilation[i], ld = d.lhs_dilation[i];
    int64_t istep = ls[isd[i]], kstep = rhs_strides[ksd[i]], ostep = os[osd[i]];
    if (c->form == CONV_DATA) {
      c->strides[i] = ld;
      c->dilates[i] = rd - 1;
      c->low[i] = (k - 1) * rd - lo;
      c->high[i] = (in - 1) * ld + (k - 1) * rd + 1 - out - c->low[i];
      if (c->high[i] <= -ld) return false; /* the far end of out gets nothing: rare */
      DIM(y, 2 + i, in, istep), DIM(x, 2 + i, out, ostep), DIM(w, 3 + i, k, kstep);
      continue;
    }
    bool weights = c->form == CONV_WEIGHTS;
    c->strides[i] = weights ? rd : st;
    c->dilates[i] = (weights ? st : rd) - 1;
    if (lo < 0) {
      x->offset += -lo * istep;
      in += lo;
      lo = 0;
    }
    c->low[i] = lo;
    c->high[i] = (out - 1) * st + (k - 1) * rd + 1 - in - lo;
    if (c->high[i] <= -c->strides[i]) {
      in += c->high[i];
      c->high[i] = 0;
    }
    if (in < 1) return false;
    DIM(x, 2 + i, in, istep);
    if (weights) DIM(y, 2 + i, k, kstep), DIM(w, 3 + i, out, ostep);
    else DIM(w, 3 + i, k, kstep), DIM(y, 2 + i, out, ostep);
  }
  if (fake) {
    DIM(x, 2, 1, 1), DIM(y, 2, 1, 1), DIM(w, 3, 1, 1);
    c->strides[0] = 1;
  }
#undef DIM
  DType lt = l->dtype, rt = r->dtype, ot = o->dtype;
  c->result = c->form == CONV_FORWARD ? Y : c->form == CONV_DATA ? X : W;
  c->t[c->form == CONV_DATA ? Y : X] = lt;
  c->t[c->form == CONV_WEIGHTS ? Y : W] = rt;
  c->t[c->result] = ot;
  return true;
}

bool conv_swapped(const ConvShape *s, ConvShape *out) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  if (s->form != CONV_DATA || s->groups != 1) return false;
  double window = 1, image = 1;
  for (int i = 2; i < x->n; i++) {
    if (s->dilates[i - 2] || y->dims[i] < 2) return false;
    window *= (double)w->dims[i + 1], image *= (double)x->dims[i];
  }
  if (window <= image) return false;
  *out = *s;
  out->form = CONV_WEIGHTS;
  out->result = W;
  out->swapped = true;
  out->flip = false;
  ConvView *ox = &out->v[X], *ow = &out->v[W], *oy = &out->v[Y];
  ox->n = y->n, ox->offset = w->offset;
  ow->n = w->n, ow->offset = x->offset;
#define DIM(view, i, from, j) \
  ((view)->dims[i] = (from)->dims[j], (view)->strides[i] = (from)->strides[j])
  DIM(ox, 0, w, 1), DIM(ox, 1, w, 2);
  DIM(oy, 0, y, 1), DIM(oy, 1, y, 0);
  ow->dims[0] = 1, ow->strides[0] = 0;
  DIM(ow, 1, x, 0), DIM(ow, 2, x, 1);
  for (int i = 2; i < x->n; i++) {
    int64_t last = y->dims[i] - 1, step = s->strides[i - 2], low = last * step - s->low[i - 2];
    DIM(ox, i, w, i + 1), DIM(ow, i + 1, x, i);
    if (s->flip && s->flipped[i - 2]) { /* all three the other way round: nothing is to be turned */
      low = x->dims[i] + last * step - ox->dims[i] - low;
      ow->offset += (x->dims[i] - 1) * x->strides[i];
      ow->strides[i + 1] = -x->strides[i];
    } else {
      oy->offset += last * y->strides[i];
      oy->strides[i] = -y->strides[i];
    }
    if (low < 0) {
      ox->offset += -low * ox->strides[i];
      ox->dims[i] += low;
      low = 0;
    }
    out->low[i - 2] = low;
    out->high[i - 2] = x->dims[i] + last * step - ox->dims[i] - low;
    if (out->high[i - 2] <= -step) {
      ox->dims[i] += out->high[i - 2];
      out->high[i - 2] = 0;
    }
    if (ox->dims[i] < 1) return false;
  }
#undef DIM
  for (int i = X; i <= Y; i++) out->t[i] = s->t[i == X ? W : i == W ? X : Y];
  return true;
}

bool conv_turned(const ConvShape *s, ConvShape *out) {
  if (s->form == CONV_WEIGHTS) return false;
  *out = *s;
  bool data = s->form == CONV_DATA;
  out->form = data ? CONV_FORWARD : CONV_DATA;
  out->result = data ? Y : X;
  out->v[X] = s->v[Y], out->v[Y] = s->v[X];
  out->t[X] = s->t[Y], out->t[Y] = s->t[X];
  ConvView *w = &out->v[W];
  w->dims[1] = s->v[W].dims[2], w->dims[2] = s->v[W].dims[1];
  w->strides[1] = s->v[W].strides[2], w->strides[2] = s->v[W].strides[1];
  for (int i = 0; i < w->n - 3; i++) {
    if (s->strides[i] != 1) return false;
    int64_t reach = (w->dims[3 + i] - 1) * (s->dilates[i] + 1);
    out->low[i] = reach - s->low[i];
    out->high[i] = reach - s->high[i];
    w->offset += (w->dims[3 + i] - 1) * w->strides[3 + i];
    w->strides[3 + i] = -w->strides[3 + i];
  }
  return true;
}

int64_t conv_merged(const ConvShape *s) {
  const ConvView *w = &s->v[W];
  if (s->groups == 1 || (w->dims[1] == 1 && w->dims[2] == 1)) return 1;
  for (int64_t m = 1; m <= MIN(8, s->groups); m++)
    if (s->groups % m == 0 && w->dims[1] * m % 8 == 0 && w->dims[2] * m % 8 == 0) return m;
  return s->groups <= 8 ? s->groups : 1;
}

bool conv_patches(const ConvShape *s) {
  const ConvView *w = &s->v[W];
  int64_t elements = w->dims[2];
  for (int i = 3; i < w->n; i++) {
    if (s->strides[i - 3] < w->dims[i] || s->dilates[i - 3]) return false;
    elements *= w->dims[i];
  }
  return s->form != CONV_DATA && s->groups == 1 && elements >= 192 && w->dims[1] >= 16;
}

int64_t conv_fan(const ConvShape *s) {
  const ConvView *w = &s->v[W], *x = &s->v[X];
  int last = x->n - 3;
  for (int i = 0; i <= last; i++)
    if (s->strides[i] != w->dims[3 + i] || s->dilates[i] || s->low[i] ||
        x->dims[2 + i] != s->strides[i] * s->v[Y].dims[2 + i])
      return 1;
  int64_t fan = w->dims[3 + last], depth = w->dims[2];
  bool together = x->strides[2 + last] == depth && fan * depth >= 32;
  return s->form == CONV_DATA && s->groups == 1 && together ? fan : 1;
}

double conv_inside(const ConvShape *s) {
  double share = 1;
  for (int d = 0; d < s->v[X].n - 2; d++) {
    int64_t places = s->v[Y].dims[2 + d], taps = s->v[W].dims[3 + d], size = s->v[X].dims[2 + d],
            apart = s->dilates[d] + 1, step = s->strides[d], sum = 0;
    if (apart == 1) continue;
    for (int64_t t = 0; t < taps; t++) { /* place i reads i * step + far */
      int64_t far = t * apart - s->low[d], first = far < 0 ? (-far + step - 1) / step : 0,
              last = far < size ? MIN(places, (size - far + step - 1) / step) : 0;
      sum += MAX(0, last - first);
    }
    share *= (double)sum / (double)(places * taps);
  }
  return share;
}

ConvPlane conv_plane(const ConvShape *s) {
  const ConvView *x = &s->v[X], *w = &s->v[W], *y = &s->v[Y];
  bool flat = x->n == 3;
  int j = flat ? 2 : 3; /* the columns' dimension */
  return (ConvPlane){.images = x->dims[0],
                     .height = flat ? 1 : x->dims[2],
                     .width = x->dims[j],
                     .channels = x->dims[1],
                     .x_image = x->strides[0],
                     .x_row = flat ? 0 : x->strides[2],
                     .down = flat ? 1 : y->dims[2],
                     .across = y->dims[j],
                     .depth = y->dims[1],
                     .y_image = y->strides[0],
                     .y_row = flat ? 0 : y->strides[2],
                     .y_pixel = y->strides[j],
                     .rows = flat ? 1 : w->dims[3],
                     .columns = w->dims[j + 1],
                     .step = {flat ? 1 : s->strides[0], s->strides[j - 2]},
                     .apart = {flat ? 1 : s->dilates[0] + 1, s->dilates[j - 2] + 1},
                     .low = {flat ? 0 : s->low[0], s->low[j - 2]},
                     .w_row = flat ? 0 : w->strides[3],
                     .w_column = w->strides[j + 1]};
}
