/* What products of windows have in common: see the header. */
#include "dev/cpu/conv/conv_im2col.h"
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define MOVED 16384 /* weights, of a task */

typedef struct Call {
  const ConvShape *s;
  void *const *data;
  const Im2colProduct *product;
  int64_t
      fan; /* so many results along the last dimension, with weights of their own, come from a place */
} Call;

static Im2col im2col_of(const Call *call, const ConvWindows *w) {
  const ConvShape *s = call->s;
  int from = s->form == CONV_DATA ? Y : X, to = s->form == CONV_DATA ? X : Y;
  return (Im2col){.w = w,
                  .from_type = s->t[from],
                  .w_type = s->t[W],
                  .to_type = s->t[to],
                  .from = conv_at(call->data[from], w->from, s->t[from]),
                  .to = conv_at(call->data[to], w->to, s->t[to]),
                  .weights = conv_at(call->data[W], w->w, s->t[W]),
                  .places = w->images * conv_volume(w->places),
                  .elements = conv_volume(w->taps) * w->channels,
                  .depth = call->fan * w->depth,
                  .straight = conv_straight(w),
                  .plain = conv_together(w->places, w->to_steps, w->images, w->to_image)};
}

void im2col_gather(const void *of, int64_t place, int64_t places, int64_t element, int64_t n,
                   char *out, int64_t pitch) {
  const Im2col *c = of;
  conv_gather(c->w, c->from, (size_t)dtype_bytes(c->from_type), place, places, element, n, out,
              pitch);
}

char *im2col_result(const void *of, int64_t place) {
  const Im2col *c = of;
  return c->to + conv_result_at(c->w, place) * dtype_bytes(c->to_type);
}

GemmArgs im2col_args(const Im2col *c, const void *weights) {
  return (GemmArgs){.a = c->from,
                    .a_row = c->w->steps[2],
                    .a_k = 1,
                    .b = weights,
                    .b_col = 1,
                    .b_k = c->depth,
                    .c = c->to,
                    .c_row = c->w->to_steps[2]};
}

double conv_group_macs(const ConvShape *s) {
  const ConvView *y = &s->v[Y], *w = &s->v[W];
  double macs = 1;
  for (int i = 0; i < y->n; i++) macs *= i == 1 ? 1 : (double)y->dims[i];
  for (int i = 1; i < w->n; i++) macs *= (double)w->dims[i];
  return macs;
}

/* ---- the weights in the order [taps][channels][fan][depth] ---- */

typedef struct Order {
  int64_t dims[DIMS + 3], strides[DIMS + 3];
  bool dense; /* the user has them so */
} Order;

static Order order_of(const Im2col *c) {
  const ConvWindows *w = c->w;
  int64_t column = w->tap_steps[2], n = 1;
  Order o = {{w->taps[0], w->taps[1], w->taps[2], w->channels, c->depth / w->depth, w->depth},
             {w->tap_steps[0], w->tap_steps[1], column, w->in_step, column, w->out_step},
             true};
  for (int i = DIMS + 2; i >= 0; n *= o.dims[i--]) o.dense &= o.dims[i] == 1 || o.strides[i] == n;
  return o;
}

static bool results(void *arg, const ConvWindows *w) {
  const Call *call = arg;
  Im2col c = im2col_of(call, w);
  if (c.elements == 0) {
    conv_clear(w, c.to, c.depth, dtype_bytes(c.to_type));
    return true;
  }
  Order order = order_of(&c);
  size_t size = (size_t)dtype_bytes(c.w_type),
         bytes = order.dense ? 0 : (size_t)(c.elements * c.depth) * size;
  char *own = bytes ? cpu_block_alloc(bytes) : NULL;
  if (bytes && !own) return false;
  if (own) cpu_permute(size, DIMS + 3, order.dims, order.strides, c.weights, own);
  bool ok = call->product->results(&c, own ? own : c.weights);
  cpu_block_free(own, bytes);
  return ok;
}

static bool results_in_regions(void *arg, const ConvWindows *w) {
  return conv_regions(w, results, arg);
}

/* ---- gradients of weights ---- */

typedef struct Put { /* of sums to where the user has the weights */
  const Im2col *c;
  const char *sums;
  int64_t element_step, depth_step; /* of the sums */
} Put;

#define PUT_ROW(T)                                                                        \
  do {                                                                                    \
    const T *from = (const T *)(const void *)p->sums + i * p->element_step;               \
    T *to = (T *)(void *)p->c->weights + at;                                              \
    for (int64_t o = 0; o < w->depth; o++) to[o * w->out_step] = from[o * p->depth_step]; \
  } while (0)

static void put_elements(void *arg, int64_t begin, int64_t end) {
  const Put *p = arg;
  const ConvWindows *w = p->c->w;
  int64_t size = dtype_bytes(p->c->w_type);
  for (int64_t i = begin; i < end; i++) {
    int64_t tap = i / w->channels, at = i % w->channels * w->in_step;
    for (int d = DIMS - 1; d >= 0; d--) at += tap % w->taps[d] * w->tap_steps[d], tap /= w->taps[d];
    if (size == 8) PUT_ROW(uint64_t);
    else if (size == 4) PUT_ROW(uint32_t);
    else PUT_ROW(uint16_t);
  }
}

/* Where the user has them without gaps, in any order, all is one permutation. */
static bool put_dense(const Put *p) {
  enum { N = DIMS + 2 };
  const ConvWindows *w = p->c->w;
  int64_t channel = p->element_step, column = channel * w->channels, row = column * w->taps[2],
          plane = row * w->taps[1];
  int64_t dims[N] = {w->depth, w->channels, w->taps[2], w->taps[1], w->taps[0]},
          from[N] = {p->depth_step, channel, column, row, plane},
          to[N] = {w->out_step, w->in_step, w->tap_steps[2], w->tap_steps[1], w->tap_steps[0]},
          sorted[N], strides[N], step = 1;
  for (int i = N - 1; i >= 0; i--) { /* the dimension whose elements lie `step` apart */
    int k = 0;
    while (k < N && (dims[k] == 0 || (dims[k] > 1 && to[k] != step))) k++;
    if (k == N) return false;
    sorted[i] = dims[k], strides[i] = from[k];
    step *= dims[k];
    dims[k] = 0;
  }
  cpu_permute((size_t)dtype_bytes(p->c->w_type), N, sorted, strides, p->sums, p->c->weights);
  return true;
}

static void put(const Im2col *c, const void *sums, bool turned) {
  int64_t n = c->elements;
  Put p = {c, sums, turned ? 1 : c->depth, turned ? n : 1};
  if (!put_dense(&p)) cpu_parallel(n, MAX(1, MOVED / c->depth), put_elements, &p);
}

static bool weights(const Call *call, ConvWindows *w) {
  conv_forwards(w);
  Im2col c = im2col_of(call, w);
  bool turned = call->product->turned, dense = order_of(&c).dense;
  if (dense && !turned) return call->product->weights(&c, c.weights);
  size_t bytes = (size_t)(c.elements * c.depth * dtype_bytes(c.w_type));
  void *sums = cpu_block_alloc(bytes);
  if (!sums) return false;
  bool ok = call->product->weights(&c, sums);
  if (ok) put(&c, sums, turned);
  cpu_block_free(sums, bytes);
  return ok;
}

/* ---- both ---- */

bool conv_im2col(const ConvShape *s, void *const *data, const Im2colProduct *p) {
  bool ok = true, back = s->form == CONV_DATA;
  Call call = {s, data, p, p->fans ? conv_fan(s) : 1};
  bool sparse = p->regions && conv_inside(s) < CONV_SPARSE;
  for (int64_t g = 0; g < s->groups && ok; g++) {
    ConvWindows w = conv_windows(s, data, g);
    if (call.fan > 1) {
      w.taps[2] = w.stride[2] = 1;
      w.places[2] = w.size[2];
      w.to_steps[2] *= call.fan;
    }
    if (s->form == CONV_WEIGHTS) ok = weights(&call, &w);
    else ok = conv_residues(&w, back, sparse ? results_in_regions : results, &call);
  }
  return ok;
}
