/* Convolutions of images in parts of the batch, and the gradients of their filters. */
#include "sim/tpu/space_to_batch.h"

static int64_t parts(int64_t n, int64_t of) { return (n + of - 1) / of; }

Reach batch_window(const HNode *conv, const ConvDims *d) {
  int last = d->n - 1;
  Reach w = {.kernel = conv->in[1]->d[d->k_spatial[last]],
             .low = d->padding[2 * last],
             .high = d->padding[2 * last + 1],
             .stride = d->strides[last],
             .image = d->lhs_dilation[last],
             .filter = d->rhs_dilation[last]};
  if (w.filter > 1 && w.kernel < conv->d[d->out_spatial[last]])
    w.kernel = (w.kernel - 1) * w.filter + 1;
  bool spread = w.image > 1;
  int64_t reach = w.image == w.low ? w.kernel : w.kernel - 1;
  w.size = conv->in[0]->d[d->in_spatial[last]] + (spread ? 0 : w.low) + w.high;
  w.halo = spread ? reach / w.image : w.kernel - 1;
  if (spread) {
    w.high_left = w.low == 0 ? w.image - 1 : reach % w.image;
    w.low_left = w.image != w.low ? w.low : 0;
  }
  return w;
}

HNode *batch_arrange(Maker *b, HNode *x, int batch, int space, Cut *cut) {
  int64_t from[CUT_RANK];
  int n = 0;
  for (int i = 0; i < x->rank; i++) {
    if (i == batch && space != batch + 1) continue;
    if (i == space && space != batch + 1) from[n++] = batch;
    from[n++] = i;
  }
  for (int i = 0; i < x->rank; i++) cut->to[from[i]] = i;
  cut->batch = batch;
  cut->space = space;
  return hlo_transpose(b, NULL, x, from);
}

/* The convolution of parts with their halos, in a result that is laid out [rows.., batch, part, features]. */
static void convolve(Maker *b, HNode *conv, const ConvDims *d, const Reach *w, HNode *image,
                     const Cut *in, Cut *out) {
  const HConv *old = conv->conv;
  HConv *c = arena_dup(b->g->arena, old, sizeof *old);
  int last = d->n - 1, n = 0, r = conv->rank;
  char *lhs = arena_alloc(b->g->arena, (size_t)r + 1),
       *res = arena_alloc(b->g->arena, (size_t)r + 1);
  int64_t size[CUT_RANK];
  for (int i = 0; i < d->n; i++) {
    if (i == last) out->to[d->out_batch] = n++;
    out->to[d->out_spatial[i]] = n++;
  }
  out->to[d->out_feature] = n;
  for (int i = 0; i < r; i++) {
    lhs[in->to[i]] = old->lhs[i];
    res[out->to[i]] = old->out[i];
    size[out->to[i]] = conv->d[i];
  }
  lhs[r] = res[r] = 0;
  out->batch = (int)d->out_batch;
  out->space = (int)d->out_spatial[last];
  int at = out->to[out->batch];
  int64_t part = image->d[in->to[in->space]];
  size[at] *= SPLITS;
  size[at + 1] =
      ((part - 1) * w->image + 1 + w->low_left + w->high_left - w->kernel) / w->stride + 1;
  c->lhs = lhs;
  c->out = res;
  c->m = old->m / conv->d[out->batch] / conv->d[out->space] * size[at] * size[at + 1];
  HNode *ops[2] = {image, conv->in[1]};
  out->now = hlo_node(b->g, b->comp, H_CONV, conv->op, conv->src, conv->dt, r, size, 2, ops);
  out->now->conv = c;
}

void batch_start_conv(Maker *b, HNode *conv, int64_t pool_stride, Cut *out) {
  ConvDims d = b_conv_dims(conv->src);
  Reach w = batch_window(conv, &d);
  int last = d.n - 1;
  int64_t made = conv->d[d.out_spatial[last]];
  int64_t part = parts(parts(made, SPLITS), w.image) * w.stride;
  while (part * SPLITS < w.size) part += w.stride;
  while (part / w.stride % pool_stride) part += w.stride;
  int64_t before = w.image > 1 && w.image == w.low ? 1 : 0;
  bool pad = part * SPLITS - w.size > before;
  Cut in;
  HNode *x = batch_arrange(b, conv->in[0], (int)d.in_batch, (int)d.in_spatial[last], &in);
  int at = in.to[in.batch];
  x = halo_start(b, conv->src, x, at,
                 w.image == 1 ? w.low
                 : pad        ? before
                              : 0,
                 part, pad ? 0 : before, w.halo);
  convolve(b, conv, &d, &w, x, &in, out);
  out->now = halo_valid(b, conv->src, out->now, out->to[out->batch], made, 0);
}

void batch_conv(Maker *b, HNode *conv, const Cut *image, Cut *out) {
  ConvDims d = b_conv_dims(conv->src);
  Reach w = batch_window(conv, &d);
  int last = d.n - 1, at = image->to[image->batch];
  const Op *src = conv->src;
  int64_t made = conv->d[d.out_spatial[last]], have = image->now->d[at + 1];
  HNode *x = halo_valid(b, src, image->now, at, conv->in[0]->d[image->space], 0);
  int64_t part = parts(parts(made, SPLITS), w.image) * w.stride;
  while (part * SPLITS + w.halo < w.size || part < w.halo - w.low) part += w.stride;
  int64_t halo = w.halo;
  if (part > have || (part < have && (have % w.stride || w.image != 1)))
    x = halo_resize(b, src, x, at, part);
  else if (part < have) halo = MAX(w.kernel - w.stride - part % w.stride, 0);
  int64_t low = w.image != 1 && w.low != 0 ? w.low == w.image : w.low;
  x = halo_add(b, src, x, at, low, halo, 0, true);
  convolve(b, conv, &d, &w, x, image, out);
}

static bool spatial_only(const Cut *c, const int64_t *spatial, int n) {
  if (spatial[n - 1] != c->space) return false;
  for (int i = 0; i < n; i++)
    if (spatial[i] == c->batch) return false;
  return true;
}

bool batch_filter_fits(const HNode *conv, const Cut *image, const Cut *grad) {
  ConvDims d = b_conv_dims(conv->src);
  int last = d.n - 1;
  if (d.n < 1 || (!image && !grad) || d.strides[last] != 1 || d.lhs_dilation[last] != 1 ||
      d.feature_groups != 1 || d.batch_groups != 1 || conv->in[1]->kind == H_REVERSE)
    return false;
  int64_t spread = d.rhs_dilation[last], x = 0, g = 0;
  if (image) {
    if (image->batch != d.in_feature || !spatial_only(image, d.in_spatial, d.n)) return false;
    x = image->now->d[image->to[image->space]];
  }
  if (grad) {
    if (grad->batch != d.k_in || !spatial_only(grad, d.k_spatial, d.n)) return false;
    g = grad->now->d[grad->to[grad->space]];
  }
  return image && grad ? x <= spread * g : grad || x % spread == 0;
}

HNode *batch_filter(Maker *b, HNode *conv, const Cut *image, const Cut *grad) {
  ConvDims d = b_conv_dims(conv->src);
  const Op *src = conv->src;
  int last = d.n - 1, r = conv->rank;
  int64_t spread = d.rhs_dilation[last], low = d.padding[2 * last], high = d.padding[2 * last + 1];
  HNode *x = image ? image->now : NULL, *g = grad ? grad->now : NULL;
  const HNode *old_x = conv->in[0], *old_g = conv->in[1];
  int64_t image_size = old_x->d[d.in_spatial[last]], grad_size = old_g->d[d.k_spatial[last]];
  Cut xs, gs;
  if (image) xs = *image;
  else x = batch_arrange(b, conv->in[0], (int)d.in_feature, (int)d.in_spatial[last], &xs);
  if (grad) gs = *grad;
  else g = batch_arrange(b, conv->in[1], (int)d.k_in, (int)d.k_spatial[last], &gs);
  int at = xs.to[xs.batch], gat = gs.to[gs.batch];
  if (!grad) g = halo_cut(b, src, g, gat, 0, parts(x->d[at + 1], spread));
  int64_t part = spread * g->d[gat + 1];
  if (!image) x = halo_cut(b, src, x, at, 0, part);
  else if (x->d[at + 1] != part) x = halo_resize(b, src, x, at, part);
  if (image) x = halo_valid(b, src, x, at, image_size, 0);
  if (grad) g = halo_valid(b, src, g, gat, grad_size, 0);
  /* the image as each position of the filter sees it: moved by one more */
  int64_t inside = image_size - ((grad_size - 1) * spread + 1) + 1 + MIN(low, 0) + MIN(high, 0);
  int n = 0, most = (int)(MAX(low, 0) + MAX(inside, 0) + MAX(high, 0));
  HNode **seen = ARENA_ARRAY(b->g->arena, HNode *, most + 1), *to = x;
  for (int64_t i = 0; i < low; i++)
    seen[low - 1 - i] = to = halo_add(b, src, to, at, 1, 0, 0, false);
  n = (int)MAX(low, 0);
  to = low > 0 ? to : x;
  for (int64_t i = 0; i < MAX(inside, 0) + MAX(high, 0); i++, n++) {
    if (i == 0) seen[n] = low < 0 ? halo_add(b, src, x, at, low, 0, 0, false) : x;
    else seen[n] = halo_add(b, src, seen[n - 1], at, -1, 0, 0, false);
  }
  int64_t size[CUT_RANK + 1];
  memcpy(size, x->d, sizeof *size * (size_t)r);
  size[r] = 1;
  for (int i = 0; i < n; i++) seen[i] = hlo_reshape(b, src, seen[i], r + 1, size);
  size[r] = n;
  HNode *ops[2] = {seen[0], NULL};
  if (n > 1) {
    ops[0] = hlo_node(b->g, b->comp, H_CONCAT, OP_CONCATENATE, src, x->dt, r + 1, size, n, seen);
    ops[0]->index = r;
  }
  memcpy(size, g->d, sizeof *size * (size_t)r);
  size[r] = 1;
  ops[1] = hlo_reshape(b, src, g, r + 1, size);
  HConv *c = arena_dup(b->g->arena, conv->conv, sizeof *c);
  char *roles[3];
  for (int i = 0; i < 3; i++) {
    roles[i] = arena_alloc(b->g->arena, (size_t)r + 2);
    const char *old = i == 0 ? conv->conv->lhs : i == 1 ? conv->conv->rhs : conv->conv->out;
    for (int k = 0; k < r; k++) roles[i][i == 0 ? xs.to[k] : i == 1 ? gs.to[k] : k] = old[k];
    roles[i][r] = 's';
    roles[i][r + 1] = 0;
  }
  c->lhs = roles[0];
  c->rhs = roles[1];
  c->out = roles[2];
  c->k = x->d[at];
  c->n_spatial = d.n + 1;
  c->window = ARENA_ARRAY(b->g->arena, int64_t, 4 * (d.n + 1));
  c->stride = c->window + d.n + 1;
  c->lhs_dil = c->stride + d.n + 1;
  c->rhs_dil = c->lhs_dil + d.n + 1;
  c->taps = 1;
  for (int i = 0; i <= d.n; i++) {
    bool more = i == d.n;
    c->window[i] = more ? 1 : i == last ? g->d[gat + 1] : conv->conv->window[i];
    c->stride[i] = more ? 1 : conv->conv->stride[i];
    c->lhs_dil[i] = more ? 1 : conv->conv->lhs_dil[i];
    c->rhs_dil[i] = more ? 1 : conv->conv->rhs_dil[i];
    c->taps *= c->window[i];
  }
  memcpy(size, conv->d, sizeof *size * (size_t)r);
  size[r] = 1;
  HNode *made = hlo_node(b->g, b->comp, H_CONV, conv->op, src, conv->dt, r + 1, size, 2, ops);
  made->conv = c;
  return hlo_reshape(b, src, made, r, conv->d);
}
