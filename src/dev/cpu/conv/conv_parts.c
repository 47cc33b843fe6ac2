/* Convolutions of complex numbers as those of real ones: see the header. */
#include "dev/cpu/conv/conv.h"

/* The dimension of the weights along which results lie, and that of what is multiplied. */
static int results_of(const ConvShape *s) { return s->form == CONV_DATA ? 2 : 1; }
static int sources_of(const ConvShape *s) { return s->form == CONV_DATA ? 1 : 2; }

void conv_parts_shape(const ConvShape *s, ConvShape *out) {
  *out = *s;
  out->flip = false;
  for (int i = X; i <= Y; i++) {
    ConvView *v = &out->v[i];
    out->t[i] = dtype_real_of(s->t[i]);
    v->dims[1] *= 2;
    v->offset *= 2;
    for (int d = 0; d < v->n; d++)
      if (d != 1) v->strides[d] *= 2;
  }
  ConvView *w = &out->v[W]; /* [group][taps][sources][results] */
  int order[12] = {results_of(s), sources_of(s)}, n = 2;
  for (int d = w->n - 1; d >= 0; d--)
    if (d != 1 && d != 2) order[n++] = d;
  w->dims[2] *= 2;
  w->offset = 0;
  for (int64_t i = 0, step = 1; i < n; i++) w->strides[order[i]] = step, step *= w->dims[order[i]];
}

/* Weights along the results' channels: where they are, and where their real ones are, that of the imaginary part
 * of what is multiplied `source` behind that of the real part. */
typedef struct Row {
  int64_t n, at, step, real, source;
} Row;

/* Calls with every row. */
static void rows(const ConvShape *s, void (*each)(DType t, const Row *r, void *weights, void *real),
                 void *weights, void *real) {
  ConvShape parts;
  conv_parts_shape(s, &parts);
  const ConvView *v = &s->v[W], *to = &parts.v[W];
  int along = results_of(s), source = sources_of(s);
  Row r = {.n = v->dims[along], .step = v->strides[along], .source = to->strides[source]};
  int64_t at[12] = {0}, many = 1;
  for (int d = 0; d < v->n; d++) many *= d == along ? 1 : v->dims[d];
  for (int64_t i = 0; i < many; i++) {
    r.at = v->offset, r.real = 0;
    for (int d = 0; d < v->n; d++) {
      r.at += at[d] * v->strides[d];
      r.real += at[d] * to->strides[d] * (d == source ? 2 : 1);
    }
    each(parts.t[W], &r, weights, real);
    for (int d = v->n - 1; d >= 0; d--) {
      if (d == along) continue;
      if (++at[d] < v->dims[d]) break;
      at[d] = 0;
    }
  }
}

#define ROWS_OF(T)                                                    \
  static void spread_##T(const Row *r, const T *w, T *real) {         \
    for (int64_t i = 0; i < r->n; i++, w += 2 * r->step, real += 2) { \
      real[0] = real[r->source + 1] = w[0];                           \
      real[1] = w[1];                                                 \
      real[r->source] = -w[1];                                        \
    }                                                                 \
  }                                                                   \
  static void collect_##T(const Row *r, T *w, const T *real) {        \
    for (int64_t i = 0; i < r->n; i++, w += 2 * r->step, real += 2) { \
      w[0] = real[0] - real[r->source + 1];                           \
      w[1] = real[r->source] + real[1];                               \
    }                                                                 \
  }
ROWS_OF(float)
ROWS_OF(double)

static void spread(DType t, const Row *r, void *w, void *real) {
  if (t == DT_F32) spread_float(r, (float *)w + 2 * r->at, (float *)real + r->real);
  else spread_double(r, (double *)w + 2 * r->at, (double *)real + r->real);
}

static void collect(DType t, const Row *r, void *w, void *real) {
  if (t == DT_F32) collect_float(r, (float *)w + 2 * r->at, (float *)real + r->real);
  else collect_double(r, (double *)w + 2 * r->at, (double *)real + r->real);
}

void conv_parts_spread(const ConvShape *s, const void *weights, void *out) {
  rows(s, spread, (void *)(uintptr_t)weights, out);
}

void conv_parts_collect(const ConvShape *s, const void *sums, void *weights) {
  rows(s, collect, weights, (void *)(uintptr_t)sums);
}
