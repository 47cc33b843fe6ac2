/* Recognises the form of a convolution and brings its operands into one order of dimensions. */
#include "dev/cpu/conv/conv.h"
#include "ir/build.h"

#define DIMS 3 /* spatial dimensions at most */

typedef struct Given { /* as the program has it; strides of the three */
  const Type *l, *r, *o;
  ConvDims d;
  int64_t ls[CPU_MAX_RANK], rs[CPU_MAX_RANK], os[CPU_MAX_RANK];
} Given;

static void dim(ConvView *v, int i, int64_t size, int64_t step) {
  v->dims[i] = size;
  v->strides[i] = step;
}

/* The rhs will be a dense copy, turned round along some of its dimensions. */
static void flip_rhs(const Given *g, ConvShape *c) {
  const Type *r = g->r;
  c->flip_rank = r->rank;
  for (int i = 0; i < r->rank; i++) c->flip_dims[i] = r->dims[i], c->flip_strides[i] = g->rs[i];
  for (int i = 0; i < g->d.n; i++) {
    int64_t k = g->d.k_spatial[i];
    c->flipped[i] = r->dims[k] > 1 && g->d.reversal[i] != (c->form == CONV_DATA);
    if (!c->flipped[i]) continue;
    c->flip_strides[k] = -g->rs[k];
    c->flip_offset += (r->dims[k] - 1) * g->rs[k];
  }
}

/* All dimensions but the spatial ones. */
static void channels(const Given *g, ConvShape *c) {
  const ConvDims *d = &g->d;
  const int64_t *l = g->l->dims, *r = g->r->dims, *o = g->o->dims;
  ConvView *x = &c->v[X], *w = &c->v[W], *y = &c->v[Y];
  int64_t b = d->in_batch, f = d->in_feature, ki = d->k_in, ko = d->k_out, ob = d->out_batch,
          of = d->out_feature;
  if (c->form == CONV_WEIGHTS) { /* images and channels have changed places */
    dim(x, 0, l[f], g->ls[f]), dim(x, 1, l[b], g->ls[b]);
    dim(y, 0, r[ki], g->rs[ki]), dim(y, 1, r[ko], g->rs[ko]);
    int64_t depth = o[of] / c->groups;
    dim(w, 0, c->groups, depth * g->os[of]);
    dim(w, 1, depth, g->os[of]), dim(w, 2, o[ob], g->os[ob]);
    return;
  }
  bool data = c->form == CONV_DATA;
  ConvView *in = data ? y : x, *out = data ? x : y;
  dim(in, 0, l[b], g->ls[b]), dim(in, 1, l[f], g->ls[f]);
  dim(out, 0, o[ob], g->os[ob]), dim(out, 1, o[of], g->os[of]);
  int64_t depth = r[ko] / c->groups;
  dim(w, 0, c->groups, depth * g->rs[ko]);
  dim(w, data ? 2 : 1, depth, g->rs[ko]), dim(w, data ? 1 : 2, r[ki], g->rs[ki]);
}

/* Spatial dimension i of a gradient of images. false: the far end of it gets nothing, which is rare. */
static bool data_dim(const Given *g, ConvShape *c, int i) {
  const ConvDims *d = &g->d;
  int64_t in = g->l->dims[d->in_spatial[i]], k = g->r->dims[d->k_spatial[i]],
          out = g->o->dims[d->out_spatial[i]], step = d->lhs_dilation[i],
          reach = (k - 1) * d->rhs_dilation[i];
  c->strides[i] = step;
  c->dilates[i] = d->rhs_dilation[i] - 1;
  c->low[i] = reach - d->padding[2 * i];
  c->high[i] = (in - 1) * step + reach + 1 - out - c->low[i];
  dim(&c->v[Y], 2 + i, in, g->ls[d->in_spatial[i]]);
  dim(&c->v[X], 2 + i, out, g->os[d->out_spatial[i]]);
  dim(&c->v[W], 3 + i, k, g->rs[d->k_spatial[i]]);
  return c->high[i] > -step;
}

/* Of the other forms; negative padding cuts X. false: nothing of it is left. */
static bool window_dim(const Given *g, ConvShape *c, int i) {
  const ConvDims *d = &g->d;
  bool weights = c->form == CONV_WEIGHTS;
  int64_t low = d->padding[2 * i], in = g->l->dims[d->in_spatial[i]],
          k = g->r->dims[d->k_spatial[i]], out = g->o->dims[d->out_spatial[i]],
          in_step = g->ls[d->in_spatial[i]], k_step = g->rs[d->k_spatial[i]],
          out_step = g->os[d->out_spatial[i]], stride = d->strides[i], apart = d->rhs_dilation[i];
  c->strides[i] = weights ? apart : stride;
  c->dilates[i] = (weights ? stride : apart) - 1;
  if (low < 0) {
    c->v[X].offset += -low * in_step;
    in += low;
    low = 0;
  }
  c->low[i] = low;
  c->high[i] = (out - 1) * stride + (k - 1) * apart + 1 - in - low;
  if (c->high[i] <= -c->strides[i]) {
    in += c->high[i];
    c->high[i] = 0;
  }
  dim(&c->v[X], 2 + i, in, in_step);
  dim(&c->v[Y], 2 + i, weights ? k : out, weights ? k_step : out_step);
  dim(&c->v[W], 3 + i, weights ? out : k, weights ? out_step : k_step);
  return in >= 1;
}

static void types(const Given *g, ConvShape *c) {
  c->result = c->form == CONV_FORWARD ? Y : c->form == CONV_DATA ? X : W;
  c->t[c->form == CONV_DATA ? Y : X] = g->l->dtype;
  c->t[c->form == CONV_WEIGHTS ? Y : W] = g->r->dtype;
  c->t[c->result] = g->o->dtype;
}

bool conv_shape(const Op *op, ConvShape *c) {
  Given g = {.l = op->operands[0]->type, .r = op->operands[1]->type, .o = op_type(op)};
  if (g.l->rank > DIMS + 2) return false;
  g.d = b_conv_dims(op);
  if (type_count(g.l) == 0 || type_count(g.r) == 0 || type_count(g.o) == 0 ||
      (g.d.feature_groups > 1 && g.d.batch_groups > 1) ||
      !b_conv_form(op, &g.d, &c->form, &c->flip))
    return false;
  cpu_strides(g.l, g.ls);
  cpu_strides(g.r, g.rs);
  cpu_strides(g.o, g.os);
  c->groups = MAX(g.d.feature_groups, g.d.batch_groups);
  int spatial = MAX(1, g.d.n);
  c->v[X].n = c->v[Y].n = 2 + spatial;
  c->v[W].n = 3 + spatial;
  if (c->flip) flip_rhs(&g, c);
  channels(&g, c);
  for (int i = 0; i < g.d.n; i++)
    if (!(c->form == CONV_DATA ? data_dim : window_dim)(&g, c, i)) return false;
  if (g.d.n == 0) { /* one of size 1 */
    dim(&c->v[X], 2, 1, 1), dim(&c->v[Y], 2, 1, 1), dim(&c->v[W], 3, 1, 1);
    c->strides[0] = 1;
  }
  types(&g, c);
  return true;
}

static void same_dim(ConvView *v, int i, const ConvView *from, int j) {
  dim(v, i, from->dims[j], from->strides[j]);
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
  same_dim(ox, 0, w, 1), same_dim(ox, 1, w, 2);
  same_dim(oy, 0, y, 1), same_dim(oy, 1, y, 0);
  ow->dims[0] = 1, ow->strides[0] = 0;
  same_dim(ow, 1, x, 0), same_dim(ow, 2, x, 1);
  for (int i = 2; i < x->n; i++) {
    int64_t last = y->dims[i] - 1, step = s->strides[i - 2], low = last * step - s->low[i - 2];
    same_dim(ox, i, w, i + 1), same_dim(ow, i + 1, x, i);
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
