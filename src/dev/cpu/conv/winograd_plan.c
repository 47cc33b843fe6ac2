/* Which convolutions Winograd's algorithm is worth while for, and their tiles. */
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/conv/winograd.h"

/* What the steps cost, counted in multiplications of a direct sum. Measured on a Zen 4 with AVX2 and
 * AVX-512; both do 16 of these a cycle. */
#define PRODUCT 1.15  /* a multiplication between transforms */
#define SOURCE 55.0   /* a transformed element of the source, */
#define NEAR 42.0     /* of the few channels of a block that stays in a core's cache, */
#define FEW 128       /* so many; */
#define FLAT 45.0     /* of a flat tile, */
#define RESULT 25.0   /* of the result, */
#define SHIFTED 0.75  /* what is left of the gain with shifts of more channels, beside bf16 */
#define KERNEL 65.0   /* of the kernels: with many channels and few places the most of all */
#define WEIGHTS 1.1   /* direct gradients of weights are slower */
#define GAIN_AVX2 0.9 /* at least; direct sums are slower there */
#define GAIN 1.0
#define KERNEL_BYTES 64e6 /* of transformed kernels that are cut into shifts */

const WinoSimd *wino_simd(int taps, bool flat) {
#if defined(__x86_64__)
  int bits = cpu_vector_bits();
  if (bits >= 512) return &wino_avx512[flat][taps - 2];
  if (bits >= 256) return &wino_avx2[flat][taps - 2];
#endif
  (void)taps, (void)flat;
  return NULL;
}

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Adds the blocks of `block` taps out of n: tap i is first + step * i. In reverse their order is
 * that of the places they read. reads: the place that tap 0 reads; apart: from tap to tap. */
static bool cut(WinoAxis *a, int64_t n, int64_t first, int64_t step, int64_t block, bool reverse,
                int64_t reads, int64_t apart) {
  for (int64_t i = 0; i < n; i += block) {
    if (a->n == WINO_SHIFTS) return false;
    int64_t many = MIN(block, n - i), from = reverse ? i + many - 1 : i;
    a->shift[a->n++] = (WinoShift){reads + from * apart, first + step * from, many};
  }
  a->tap_step = reverse ? -step : step;
  return n > 0;
}

/* Spatial dimension d of the views; `rest`: the remainder of this run. */
static bool axis_of(const ConvShape *s, int d, int64_t block, int64_t rest, WinoAxis *a) {
  bool data = s->form == CONV_DATA;
  int64_t k = s->v[W].dims[3 + d], step = s->strides[d], apart = s->dilates[d] + 1, low = s->low[d];
  *a = (WinoAxis){.result = s->v[data ? X : Y].dims[2 + d],
                  .source = s->v[data ? Y : X].dims[2 + d],
                  .out = block == 1 ? 1 : WINO_OUT,
                  .lanes = 1,
                  .step = 1,
                  .source_step = step};
  a->in = a->out + block - 1;
  bool ok = true;
  if (apart > 1 && (block > 1 || data)) {
    a->lanes = a->step = a->source_step = apart;
    ok = step == 1 && cut(a, k, 0, 1, block, data, data ? low : -low, data ? -apart : apart);
  } else if (data) {
    a->first = ((rest - low) % step + step) % step;
    a->step = step;
    a->source_step = 1;
    ok = cut(a, k > rest ? up(k - rest, step) : 0, rest, step, block, true,
             (a->first + low - rest) / step, -1);
  } else if (block == 1) {
    ok = cut(a, k, 0, 1, 1, false, -low, apart);
  } else {
    for (int64_t p = 0; p < MIN(step, k); p++)
      ok &= cut(a, up(k - p, step), p, step, block, false, p - low, step);
  }
  a->tiles = a->result > a->first ? up(up(a->result - a->first, a->step), a->out) : 0;
  return ok;
}

static bool axes_of(const ConvShape *s, const WinoPlan *p, int run, WinoAxis axes[WINO_DIMS]) {
  int n = s->v[X].n - 2;
  axes[0] = axes[1] = (WinoAxis){1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, {{0, 0, 1}}};
  bool ok = true;
  for (int d = n - 1; d >= 0; d--) {
    int64_t rests = s->form == CONV_DATA ? s->strides[d] : 1;
    int at = d + WINO_DIMS - n;
    ok &= axis_of(s, d, at > (p->flat ? 1 : 0) ? p->taps : 1, run % rests, &axes[at]);
    run /= (int)rests;
  }
  return ok;
}

bool wino_axes(const ConvShape *s, const WinoPlan *p, int run, WinoAxis axes[WINO_DIMS]) {
  axes_of(s, p, run, axes);
  return axes[0].tiles && axes[1].tiles && axes[2].tiles;
}

/* All steps of a group; 0: it cannot be cut. *shifts: the most of a run. */
static double cost(const ConvShape *s, const WinoPlan *p, double in, double out, int *shifts) {
  double sum = 0;
  *shifts = 0;
  for (int run = 0; run < p->runs; run++) {
    WinoAxis a[WINO_DIMS];
    if (!axes_of(s, p, run, a)) return 0;
    double places = (double)(a[1].in * a[2].in), tiles = (double)s->v[X].dims[0];
    int n = a[0].n * a[1].n * a[2].n;
    double source = p->flat ? FLAT : n * in <= FEW ? NEAR : SOURCE;
    for (int d = 0; d < WINO_DIMS; d++) tiles *= (double)(a[d].lanes * a[d].tiles);
    *shifts = MAX(*shifts, n);
    sum += places *
           (tiles * (n * in * (PRODUCT * out + source) + RESULT * out) + KERNEL * n * in * out);
  }
  return sum;
}

/* Spatial dimension d and the last one change places. */
static ConvShape with_last(const ConvShape *s, int d) {
  ConvShape t = *s;
  int last = s->v[X].n - 3;
  t.strides[d] = s->strides[last], t.strides[last] = s->strides[d];
  t.dilates[d] = s->dilates[last], t.dilates[last] = s->dilates[d];
  t.low[d] = s->low[last], t.low[last] = s->low[d];
  t.high[d] = s->high[last], t.high[last] = s->high[d];
  for (int i = 0; i < 3; i++) {
    int first = i == W ? 3 : 2;
    const ConvView *v = &s->v[i];
    t.v[i].dims[first + d] = v->dims[first + last], t.v[i].dims[first + last] = v->dims[first + d];
    t.v[i].strides[first + d] = v->strides[first + last];
    t.v[i].strides[first + last] = v->strides[first + d];
  }
  return t;
}

bool wino_plan(ConvShape *s, WinoPlan *best) {
  const ConvView *w = &s->v[W], *y = &s->v[Y];
  int n = s->v[X].n - 2;
  if (n < 1 || n > WINO_DIMS || !wino_simd(3, false)) return false;
  int64_t in = w->dims[s->form == CONV_DATA ? 1 : 2], out = w->dims[s->form == CONV_DATA ? 2 : 1];
  if (in < PANEL || out < PANEL) return false;
  WinoPlan p = {.runs = 1};
  double direct = (double)y->dims[0], least = 0;
  for (int d = 0; d < n; d++) {
    if (s->form == CONV_DATA) p.runs *= (int)MIN(s->strides[d], 8);
    if (s->strides[d] > 7) return false;
    direct *= (double)(y->dims[2 + d] * w->dims[3 + d]);
  }
  double padded_in = (double)(up(in, PANEL) * PANEL), padded_out = (double)(up(out, PANEL) * PANEL);
  for (int k = n > 1 ? 0 : 2; k < 2 * (n + 1); k++) { /* squares; then flat along each dimension */
    p.taps = 2 + k % 2;
    p.flat = k >= 2;
    p.along = p.flat ? k / 2 - 1 : n - 1;
    ConvShape turned = with_last(s, p.along);
    int shifts;
    double c = cost(&turned, &p, padded_in, padded_out, &shifts), places = p.taps + 3;
    if (!p.flat) places *= places;
    bool large = 4.0 * shifts * padded_in * padded_out * places > KERNEL_BYTES;
    if (c == 0 || (shifts > 1 && large) || (least > 0 && c >= least)) continue;
    least = c;
    *best = p;
    best->far = shifts > 1 && shifts * padded_in > FEW;
  }
  if (least == 0) return false;
  *s = with_last(s, best->along);
  direct *= (double)(in * out);
  if (s->form == CONV_WEIGHTS) direct *= WEIGHTS;
  else if (conv_inside(s) < CONV_SPARSE) direct *= conv_inside(s);
  double gain = cpu_vector_bits() >= 512 ? GAIN : GAIN_AVX2;
  best->gain = direct / least;
  return best->gain > gain && direct > 1e6;
}

bool conv_winograd_fits(const ConvShape *s) {
  WinoPlan p;
  ConvShape turned = *s;
  return wino_plan(&turned, &p);
}

double conv_winograd_gain(const ConvShape *s) {
  WinoPlan p;
  ConvShape turned = *s;
  return wino_plan(&turned, &p) ? p.gain * (p.far ? SHIFTED : 1) : 0;
}
