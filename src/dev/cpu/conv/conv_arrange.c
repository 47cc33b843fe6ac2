/* How convolutions are arranged for what computes them: see conv_prepared.h. */
#include "dev/cpu/conv/conv_prepared.h"

int64_t conv_elements(const ConvView *v) {
  int64_t n = 1;
  for (int i = 0; i < v->n; i++) n *= v->dims[i];
  return n;
}

void conv_merge_groups(Conv *c) {
  ConvView *w = &c->s.v[W];
  int64_t g = c->s.groups, m = conv_merged(&c->s);
  c->merged = 1;
  c->w = *w;
  if (m < 2) return;
  c->merged = m;
  c->s.groups = w->dims[0] = g / m;
  w->dims[1] *= m;
  w->dims[2] *= m;
  int64_t step = 1;
  for (int i = w->n - 1; i >= 0; i--) w->strides[i] = step, step *= w->dims[i];
}

void conv_as_they_lie(Conv *c) {
  c->at = c->s;
  for (int i = 0; i < 3; i++) c->copied[i] = false;
}

void conv_channels_last(Conv *c) {
  c->at = c->s;
  for (int i = X; i <= Y; i += Y - X) {
    ConvView *v = &c->at.v[i];
    c->copied[i] = false;
    int64_t step = v->dims[1];
    bool dense = true; /* the pixels of a row */
    if (v->n > 2) dense = v->strides[v->n - 1] == step || v->dims[v->n - 1] == 1;
    if ((v->strides[1] == 1 || v->dims[1] == 1) && dense) {
      v->strides[1] = 1;
      if (v->n > 2) v->strides[v->n - 1] = step; /* products read it, be there one pixel alone */
      continue;
    }
    c->copied[i] = true;
    v->strides[1] = 1;
    v->offset = 0;
    for (int d = v->n - 1; d >= 2; d--) v->strides[d] = step, step *= v->dims[d];
    v->strides[0] = step;
  }
}

#define COPIED_MACS 256

/* X and Y: so many multiplications for each of their elements hide what copies of them cost. */
bool conv_worth_copies(const ConvShape *s) {
  double macs = (double)conv_elements(&s->v[W]) * (double)s->v[X].dims[0];
  for (int i = 2; i < s->v[Y].n; i++) macs *= (double)s->v[Y].dims[i];
  return macs >= COPIED_MACS * (double)(conv_elements(&s->v[X]) + conv_elements(&s->v[Y]));
}

void conv_copy_weights(Conv *c) {
  ConvView *w = &c->s.v[W];
  c->turned = true;
  c->w = *w;
  w->offset = 0;
  int64_t step = 1;
  for (int i = w->n - 1; i >= 0; i--) w->strides[i] = step, step *= w->dims[i];
}

#define TURN_PLACES 2048 /* from here on turning the weights round is nothing */

/* Gradients of images of step 1 as results with the kernel turned: oneDNN leaves channels last as
 * they are for those, and its other kernels are slow with gaps. */
bool conv_turn_for_onednn(Conv *c) {
  const ConvView *y = &c->s.v[Y];
  int64_t places = y->dims[0];
  bool gaps = false;
  for (int i = 2; i < y->n; i++) places *= y->dims[i], gaps |= c->s.dilates[i - 2] > 0;
  if (c->s.form != CONV_DATA || c->merged > 1 || c->s.flip || (places < TURN_PLACES && !gaps))
    return false;
  ConvShape to;
  if (!conv_turned(&c->s, &to)) return false;
  for (int i = 0; i < y->n - 2; i++)
    if (to.low[i] < 0 || to.high[i] < 0) return false;
  c->s = to;
  conv_copy_weights(c);
  return true;
}

/* A result that is filled from its end goes by way of memory of our own. */
void conv_straighten(Conv *c) {
  bool back = false;
  for (int i = 0; i < c->s.v[W].n; i++) back |= c->s.v[W].strides[i] < 0;
  if (back) conv_copy_weights(c);
}
