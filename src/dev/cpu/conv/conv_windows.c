/* Groups of convolutions as windows: see the header. */
#include "dev/cpu/conv/conv_windows.h"

#define DIMS CONV_DIMS

/* NULL where only the shapes are asked for. */
static float *moved(float *data, int64_t by) { return data ? data + by : NULL; }

ConvWindows conv_windows(const ConvShape *s, void *const *data, int64_t group) {
  static void *const nothing[3];
  if (!data) data = nothing;
  bool back = s->form == CONV_DATA;
  const ConvView *from = &s->v[back ? Y : X], *to = &s->v[back ? X : Y], *k = &s->v[W];
  int n = s->v[X].n - 2;
  ConvWindows w = {.images = s->v[X].dims[0],
                   .channels = k->dims[back ? 1 : 2],
                   .depth = k->dims[back ? 2 : 1],
                   .image_step = from->strides[0],
                   .channel_step = from->strides[1],
                   .to_image = to->strides[0],
                   .to_channel = to->strides[1],
                   .in_step = k->strides[back ? 1 : 2],
                   .out_step = k->strides[back ? 2 : 1]};
  w.from = moved(data[back ? Y : X], from->offset + group * w.channels * w.channel_step);
  w.to = moved(data[back ? X : Y], to->offset + group * w.depth * w.to_channel);
  w.w = moved(data[W], k->offset + group * k->strides[0]);
  for (int i = 0; i < DIMS; i++) {
    int d = i - (DIMS - n); /* spatial dimension of the view */
    bool is = d >= 0;
    w.steps[i] = is ? from->strides[2 + d] : 0;
    w.to_steps[i] = is ? to->strides[2 + d] : 0;
    w.tap_steps[i] = is ? k->strides[3 + d] : 0;
    w.size[i] = is ? from->dims[2 + d] : 1;
    w.places[i] = is ? to->dims[2 + d] : 1;
    w.taps[i] = is ? k->dims[3 + d] : 1;
    w.stride[i] = is ? s->strides[d] : 1;
    w.apart[i] = is ? s->dilates[d] + 1 : 1;
    w.low[i] = is ? s->low[d] : 0;
  }
  return w;
}

void conv_forwards(ConvWindows *w) {
  for (int i = 0; i < DIMS; i++) {
    if (w->to_steps[i] >= 0) continue;
    int64_t last = w->places[i] - 1;
    w->to = moved(w->to, last * w->to_steps[i]);
    w->to_steps[i] = -w->to_steps[i];
    w->low[i] -= last * w->stride[i];
    w->stride[i] = -w->stride[i];
  }
}

static int64_t gcd(int64_t a, int64_t b) { return b ? gcd(b, a % b) : a; }

/* The places of X that leave the remainders `rest` when divided by the steps: place rest + step * q
 * gets Y at (rest + low - tap * apart) / step + q, of the taps where that is whole. */
static ConvWindows residue(const ConvWindows *all, const int64_t *rest) {
  ConvWindows w = *all;
  for (int i = 0; i < DIMS; i++) {
    int64_t step = all->stride[i], apart = all->apart[i], first = 0,
            every = step / gcd(step, apart);
    while (first < every && (rest[i] + all->low[i] - first * apart) % step) first++;
    w.places[i] = (all->places[i] - rest[i] + step - 1) / step;
    w.to = moved(w.to, rest[i] * all->to_steps[i]);
    w.to_steps[i] = step * all->to_steps[i];
    w.stride[i] = 1;
    w.taps[i] =
        first < every && first < all->taps[i] ? (all->taps[i] - first + every - 1) / every : 0;
    if (w.taps[i] == 0) continue;
    w.w = moved(w.w, first * all->tap_steps[i]);
    w.tap_steps[i] = every * all->tap_steps[i];
    w.low[i] = -(rest[i] + all->low[i] - first * apart) / step;
    w.apart[i] = every * apart / step;
    if (w.taps[i] == 1) continue;
    w.low[i] += (w.taps[i] - 1) * w.apart[i]; /* the last of these is the first in the source */
    w.w = moved(w.w, (w.taps[i] - 1) * w.tap_steps[i]);
    w.tap_steps[i] = -w.tap_steps[i];
  }
  return w;
}

bool conv_residues(const ConvWindows *all, bool data, bool (*each)(void *arg, const ConvWindows *w),
                   void *arg) {
  if (!data) return each(arg, all);
  int64_t rest[DIMS], n[DIMS];
  for (int i = 0; i < DIMS; i++) n[i] = MIN(all->stride[i], all->places[i]);
  for (rest[0] = 0; rest[0] < n[0]; rest[0]++)
    for (rest[1] = 0; rest[1] < n[1]; rest[1]++)
      for (rest[2] = 0; rest[2] < n[2]; rest[2]++) {
        ConvWindows w = residue(all, rest);
        if (!each(arg, &w)) return false;
      }
  return true;
}

static ConvStretch inside_at(const ConvWindows *w, int d, int64_t place) {
  ConvStretch r = {.first = place, .n = 1};
  for (int64_t t = 0; t < w->taps[d]; t++) { /* a run of taps */
    int64_t at = place * w->stride[d] - w->low[d] + t * w->apart[d];
    if (at < 0 || at >= w->size[d]) continue;
    if (r.taps++ == 0) r.tap = t;
  }
  return r;
}

ConvStretch conv_stretch(const ConvWindows *w, int d, int64_t place) {
  ConvStretch r = inside_at(w, d, place);
  for (; place + r.n < w->places[d]; r.n++) {
    ConvStretch next = inside_at(w, d, place + r.n);
    if (next.tap != r.tap || next.taps != r.taps) break;
  }
  return r;
}

static void cut(ConvWindows *w, int d, ConvStretch r) {
  w->to += r.first * w->to_steps[d];
  w->places[d] = r.n;
  w->w += r.tap * w->tap_steps[d];
  w->taps[d] = r.taps;
  w->low[d] -= r.first * w->stride[d] + r.tap * w->apart[d];
}

static bool regions_from(const ConvWindows *all, int d,
                         bool (*each)(void *arg, const ConvWindows *w), void *arg) {
  if (d == DIMS) return each(arg, all);
  for (int64_t at = 0; at < all->places[d];) {
    ConvStretch r = conv_stretch(all, d, at);
    ConvWindows w = *all;
    cut(&w, d, r);
    if (!regions_from(&w, d + 1, each, arg)) return false;
    at += r.n;
  }
  return true;
}

bool conv_regions(const ConvWindows *all, bool (*each)(void *arg, const ConvWindows *w),
                  void *arg) {
  return regions_from(all, 0, each, arg);
}

ConvBand conv_band(const ConvWindows *w, const int64_t *bands, const int64_t *band, int64_t i) {
  ConvBand b;
  for (int d = CONV_DIMS - 1; d >= 0; d--) {
    b.place[d] = i % bands[d] * band[d];
    b.n[d] = MIN(band[d], w->places[d] - b.place[d]);
    i /= bands[d];
  }
  b.image = i;
  return b;
}

bool conv_together(const int64_t *sizes, const int64_t *steps, int64_t images, int64_t image) {
  int64_t step = steps[2];
  for (int i = DIMS - 1; i >= 0; i--) {
    if (sizes[i] > 1 && steps[i] != step) return false;
    step *= sizes[i];
  }
  return images == 1 || image == step;
}

bool conv_straight(const ConvWindows *w) {
  if (conv_volume(w->taps) != 1) return false;
  for (int i = 0; i < DIMS; i++)
    if (w->stride[i] != 1 || w->low[i] != 0 || w->places[i] != w->size[i]) return false;
  return conv_together(w->size, w->steps, w->images, w->image_step);
}
