/* Convolutions, by the first way that fits: Winograd's algorithm and those of the table in f32 with
 * channels last, where other orders and narrower floats go through copies; else oneDNN
 * (conv_dnnl.c), whose kernels for AVX-512 come before some of the table; else im2col and a product
 * for any type and form (conv_general.c). Small integers as products of them (conv_int.c), f64 as products of windows (conv_f64.c), complex numbers as real ones (conv_parts.c), bf16 on hosts with instructions for it: by AMX's tiles
 * (conv_amx.c), else by oneDNN's kernels for it. */
#include <pthread.h>

#include "dev/cpu/conv/conv.h"
#include "dev/cpu/conv/conv_general.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/gemm.h"

typedef struct Way {
  bool (*fits)(const ConvShape *s);
  bool (*run)(const ConvShape *s, float *const *data);
  bool (*checked)(const ConvShape *s, void *const *data, bool *finite); /* instead */
  bool (*ahead)(const ConvShape *s); /* of oneDNN's kernels for AVX-512; NULL: always */
  bool as_is;                        /* only where copies of X and Y are worth it */
} Way;

/* These may spread what is not finite. */
static const Way winograd = {.fits = conv_winograd_fits, .checked = conv_winograd_run},
                 planar = {.fits = conv_planar_fits, .checked = conv_planar_run};

static const Way images = {.fits = conv_images_fits, .run = conv_images_run};
static const Way amx = {.fits = conv_amx_fits, .checked = conv_amx_run};
static const Way ints = {.fits = conv_int_fits, .checked = conv_int_run};
static const Way doubles = {.fits = conv_f64_fits, .checked = conv_f64_run};
static const Way lanes = {.fits = conv_lanes_fits, .checked = conv_lanes_run};

#define FEW_PLACES 800

/* Plain products, the kernels of transposed convolutions, steps in three dimensions, gradients of weights with gaps or by few places. */
static bool as_product(const ConvShape *s) {
  const ConvView *w = &s->v[W], *y = &s->v[Y];
  int64_t taps = 1, places = y->dims[0];
  bool steps = false, gaps = false;
  for (int i = 3; i < w->n; i++) {
    taps *= w->dims[i], places *= y->dims[i - 1];
    steps |= s->strides[i - 3] > 1, gaps |= s->dilates[i - 3] > 0;
  }
  return s->swapped || conv_patches(s) || conv_fan(s) > 1 || taps == 1 ||
         (s->form == CONV_FORWARD && y->n == 5 && steps) ||
         (s->form == CONV_WEIGHTS && (places < FEW_PLACES || steps || gaps));
}

#define MANY_CHANNELS 128

/* Groups with steps or of one pixel, windows that mostly lie outside, one dimension, steps in three. */
static bool few_windows(const ConvShape *s) {
  const ConvView *w = &s->v[W];
  bool pixels = true, steps = false;
  for (int i = 3; i < w->n; i++) pixels &= w->dims[i] == 1, steps |= s->strides[i - 3] > 1;
  if (s->groups > 1) return pixels || (steps && s->form == CONV_FORWARD);
  if (MAX(w->dims[1], w->dims[2]) >= MANY_CHANNELS && conv_inside(s) < CONV_SPARSE) return true;
  return w->n == 4 || (steps && w->n == 6);
}

static const Way ways[] = {
    {.fits = conv_rows_fits, .run = conv_rows_run},
    {.fits = conv_spread_fits, .run = conv_spread_run},
    {.fits = conv_lanes_fits, .checked = conv_lanes_run},
    {.fits = conv_runs_fits, .run = conv_runs_run, .ahead = few_windows, .as_is = true},
    {.fits = conv_depthwise_fits, .run = conv_depthwise_run},
    {.fits = conv_gemm_fits, .run = conv_gemm_run, .ahead = as_product},
};

typedef struct Conv {
  const Way *way;
  bool wide;       /* compute in f32 what is narrower */
  ConvShape s, at; /* as the user has it; with channels last, and the types it is computed with */
  bool copied[3];  /* where these differ */
  int64_t
      merged;  /* so many groups count as one, with zeros for the weights between them; 1: none */
  bool turned; /* the weights are copied for oneDNN, or from it */
  ConvView w;  /* the weights as they were before */
  ConvDnnl *dnnl;
  ConvGeneral *general;
  struct Conv *parts; /* of complex numbers: the same of real ones (conv_parts_shape) */
  struct Conv *plain; /* by plain sums of what a result reads; made when a result was not finite */
} Conv;

static int64_t count(const ConvView *v) {
  int64_t n = 1;
  for (int i = 0; i < v->n; i++) n *= v->dims[i];
  return n;
}

static void merge_groups(Conv *c) {
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

/* The weights of groups into those of merged ones (zeros stand there), or back. */
static void move_weights(const Conv *c, float *user, float *merged, bool back) {
  const ConvView *from = &c->w, *to = &c->s.v[W];
  int64_t at[12] = {0}, n = 1;
  for (int i = 0; i < from->n; i++) n *= from->dims[i];
  for (int64_t k = 0; k < n; k++) {
    int64_t u = 0, sub = at[0] % c->merged;
    int64_t m = at[0] / c->merged * to->strides[0] +
                sub * (from->dims[1] * to->strides[1] + from->dims[2] * to->strides[2]);
    for (int i = 0; i < from->n; i++) u += at[i] * from->strides[i];
    for (int i = 1; i < from->n; i++) m += at[i] * to->strides[i];
    if (back) user[u] = merged[m];
    else merged[m] = user[u];
    for (int i = from->n - 1; i >= 0 && ++at[i] == from->dims[i]; i--) at[i] = 0;
  }
}

static void channels_last(Conv *c) {
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

/* Without copies of X and Y. */
static bool by_lanes(Conv *c) {
  channels_last(c);
  if (c->copied[X] || c->copied[Y] || !lanes.fits(&c->at)) return false;
  for (int i = 0; i < 3; i++)
    if (i == W || c->at.t[i] != DT_BF16) c->at.t[i] = DT_F32;
  c->way = &lanes;
  return true;
}

/* In the types at hand. */
static bool by_way(Conv *c, const Way *way) {
  channels_last(c);
  c->way = way;
  return way->fits(&c->at);
}

/* In any order of dimensions: nothing is copied. */
static bool in_place(Conv *c, const Way *way) {
  if (!way->fits(&c->s)) return false;
  c->at = c->s;
  for (int i = 0; i < 3; i++) c->at.t[i] = DT_F32, c->copied[i] = false;
  c->way = way;
  return true;
}

#define COPIED_MACS 256

/* X and Y: so many multiplications for each of their elements hide what copies of them cost. */
static bool worth_copies(const ConvShape *s) {
  double macs = (double)count(&s->v[W]) * (double)s->v[X].dims[0];
  for (int i = 2; i < s->v[Y].n; i++) macs *= (double)s->v[Y].dims[i];
  return macs >= COPIED_MACS * (double)(count(&s->v[X]) + count(&s->v[Y]));
}

typedef enum Among { ALL, AHEAD } Among; /* the ways of the table */

/* direct: plain sums only. */
static bool find_way(Conv *c, bool direct, Among among) {
  channels_last(c);
  bool as_is = !c->copied[X] && !c->copied[Y];
  for (int i = 0; i < 3; i++)
    if (i == W || c->at.t[i] != DT_BF16 || !as_is) c->at.t[i] = DT_F32;
  if (!direct && winograd.fits(&c->at)) {
    c->way = &winograd;
    return true;
  }
  c->at.t[X] = c->at.t[Y] = DT_F32;
  for (int i = 0; i < COUNT_OF(ways); i++) {
    if ((ways[i].as_is && !as_is && !worth_copies(&c->at)) || !ways[i].fits(&c->at)) continue;
    if (among == AHEAD && ways[i].ahead && !ways[i].ahead(&c->at)) continue;
    c->way = &ways[i];
    return true;
  }
  return false;
}

static void release(void *state) {
  Conv *c = state;
  if (!c) return;
  conv_dnnl_free(c->dnnl);
  conv_general_free(c->general);
  release(c->parts);
  release(c->plain);
  free(c);
}

#define BF16_CHANNELS 16 /* that oneDNN takes together */

/* oneDNN sees the weights in memory of our own, in the order of their dimensions. */
static void copy_weights(Conv *c) {
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
static bool turn(const Conv *c, Conv *to) {
  const ConvView *y = &c->s.v[Y];
  int64_t places = y->dims[0];
  bool gaps = false;
  for (int i = 2; i < y->n; i++) places *= y->dims[i], gaps |= c->s.dilates[i - 2] > 0;
  if (c->s.form != CONV_DATA || c->merged > 1 || c->s.flip || (places < TURN_PLACES && !gaps))
    return false;
  *to = *c;
  if (!conv_turned(&c->s, &to->s)) return false;
  for (int i = 0; i < y->n - 2; i++)
    if (to->s.low[i] < 0 || to->s.high[i] < 0) return false;
  copy_weights(to);
  return true;
}

/* With one of its kernels for AVX-512. */
static bool by_onednn(Conv *c) {
  c->dnnl = conv_dnnl_new(&c->s, c->wide);
  if (c->dnnl && conv_dnnl_full(c->dnnl)) return true;
  conv_dnnl_free(c->dnnl);
  c->dnnl = NULL;
  return false;
}

typedef enum Sums {
  ANY_SUMS,
  DIRECT_SUMS,
  OWN_SUMS /* of nothing but what a result reads */
} Sums;

/* Products of bytes of which so many are added up are whole numbers that f32 has, in any order. */
static bool exact_in_f32(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  const Type *w = op->operands[1]->type;
  if (l != r || (l != DT_I8 && l != DT_U8) || !dtype_is_int(o) || dtype_bytes(o) > 4) return false;
  int64_t most = l == DT_I8 ? 128 * 128 : 255 * 255,
          of = w->dims[op_int(op, "kernel_output_feature_dimension", 0)];
  return of && type_count(w) / of * most <= (int64_t)1 << 24;
}

/* c->s in f32, or of what is narrower; whole: of numbers that f32 adds up exactly. false: no way fits. */
static bool choose(Conv *c, Sums sums, bool narrow, bool whole) {
  bool direct = sums != ANY_SUMS || whole;
  DType t = c->s.t[c->s.form == CONV_DATA ? Y : X];
  c->wide = narrow;
  Conv swapped = *c, turned;
  if (conv_swapped(&c->s, &swapped.s) && find_way(&swapped, direct, ALL)) {
    *c = swapped;
    return true;
  }
  if (by_lanes(c)) return true;
  if (!direct && in_place(c, &planar)) return true;
  if (in_place(c, &images)) return true;
  if (sums != OWN_SUMS) merge_groups(c);
  if (cpu_vector_bits() >= 512) {
    if (find_way(c, direct, AHEAD)) return true;
    if (turn(c, &turned) && by_onednn(&turned)) {
      *c = turned;
      return true;
    }
    if (by_onednn(c)) return true;
  }
  if (find_way(c, direct, ALL)) return true;
  turned = *c;
  if (c->merged == 1 && conv_turned(&c->s, &turned.s) && find_way(&turned, true, ALL)) {
    *c = turned;
    return true;
  }
  if (t != DT_F16 && !whole && c->merged == 1 && sums != OWN_SUMS)
    c->dnnl = conv_dnnl_new(&c->s, c->wide = false);
  if (!c->dnnl && (narrow || c->merged > 1)) c->dnnl = conv_dnnl_new(&c->s, c->wide = true);
  return c->dnnl != NULL;
}

/* Complex numbers. Groups are not merged: only this convolution's own numbers are looked at when a result may
 * have come from others that are not finite. */
static bool by_parts(Conv *c, Sums sums) {
  Conv *p = c->parts = xcalloc(1, sizeof *p);
  channels_last(c);
  p->merged = 1;
  conv_parts_shape(&c->at, &p->s);
  if (p->s.groups > 1) sums = OWN_SUMS;
  if (p->s.t[X] == DT_F64 ? by_way(p, &doubles) : choose(p, sums, false, false)) return true;
  release(p);
  c->parts = NULL;
  return false;
}

static Err *make(const Op *op, Sums sums, Conv *c) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  bool narrow = l != DT_F32 || o != DT_F32, whole = exact_in_f32(op),
       floats = (l == DT_F32 || l == DT_BF16 || l == DT_F16) && r == l && (o == l || o == DT_F32);
  c->merged = 1;
  if (conv_shape(op, &c->s)) {
    if (dtype_is_int(o) && dtype_bytes(l) == dtype_bytes(r) && by_way(c, &ints)) return NULL;
    if (o == DT_F64 && by_way(c, &doubles)) return NULL;
    if (dtype_is_complex(o) && by_parts(c, sums)) return NULL;
    if ((floats || whole) && choose(c, sums, narrow, whole)) return NULL;
  }
  return conv_general_new(op, &c->general);
}

static Err *prepare(const Op *op, void **state) {
  Conv *c = xcalloc(1, sizeof *c);
  *state = c;
  return make(op, op_attr(op, "precision_config") ? DIRECT_SUMS : ANY_SUMS, c);
}

/* For groups of several channels it is faster. */
static bool lanes_before_onednn(Conv *c) {
  const ConvView *w = &c->s.v[W];
  return by_lanes(c) && (c->s.form == CONV_WEIGHTS || (w->dims[1] == 1 && w->dims[2] == 1));
}

/* Direct sums of bf16 are so many times faster than of f32. */
#define PAIRS_GAIN 1.4

/* As products of windows that do not overlap, or with so many multiplications less that f32 is faster; never
 * than AMX's, which oneDNN uses too. */
static bool wide_before_onednn(const Op *op, Conv *c) {
  Conv swapped = *c;
  bool direct = op_attr(op, "precision_config") != NULL;
  if (conv_swapped(&c->s, &swapped.s))
    return conv_patches(&swapped.s) && find_way(&swapped, direct, ALL);
  return !amx_bf16() && !direct && find_way(c, direct, ALL) && c->way == &winograd &&
         conv_winograd_gain(&c->at) > PAIRS_GAIN;
}

/* Without copies to f32. */
static bool by_amx(Conv *c) {
  Conv swapped = *c;
  if (conv_swapped(&c->s, &swapped.s)) *c = swapped;
  return by_way(c, &amx);
}

/* A result that is filled from its end goes by way of memory of our own. */
static void straighten(Conv *c) {
  bool back = false;
  for (int i = 0; i < c->s.v[W].n; i++) back |= c->s.v[W].strides[i] < 0;
  if (back) copy_weights(c);
}

/* By oneDNN's kernels for bf16, on hosts with instructions for it; not gradients of images with few
 * channels, where it has nothing fast. */
static Conv *in_bf16(const Op *op) {
  if (op->operands[0]->type->dtype != DT_BF16 || op->operands[1]->type->dtype != DT_BF16 ||
      !gemm_pairs())
    return NULL;
  Conv *c = xcalloc(1, sizeof *c);
  c->merged = 1;
  bool shaped = conv_shape(op, &c->s);
  Conv tiles = *c, swapped = *c;
  if (shaped && by_amx(&tiles)) {
    *c = tiles;
    return c;
  }
  if (shaped && conv_swapped(&c->s, &swapped.s)) {
    straighten(&swapped);
    if (by_onednn(&swapped)) {
      *c = swapped;
      return c;
    }
  }
  if (shaped && !conv_spread_fits(&c->s) && !lanes_before_onednn(c) && !wide_before_onednn(op, c))
    c->dnnl = conv_dnnl_new(&c->s, false);
  if (c->dnnl) return c;
  release(c);
  return NULL;
}

static bool accepts_bf16(const Op *op) {
  DType o = op_type(op)->dtype;
  if (!conv_general_accepts(op) || (o != DT_BF16 && o != DT_F32)) return false;
  Conv *c = in_bf16(op);
  release(c);
  return c != NULL;
}

static Err *prepare_bf16(const Op *op, void **state) {
  *state = in_bf16(op);
  return *state ? NULL : prepare(op, state);
}

static Err *make_plain(const Op *op, Conv *c) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  Err *e = NULL;
  pthread_mutex_lock(&lock);
  if (!c->plain) {
    Conv *plain = xcalloc(1, sizeof *plain);
    e = make(op, OWN_SUMS, plain);
    if (e) release(plain);
    else c->plain = plain;
  }
  pthread_mutex_unlock(&lock);
  return e;
}

/* ---- running ---- */

/* What is not finite could reach results that do not read it: zeros stand between merged groups, and
 * where oneDNN's pairs of bf16 reach beyond a group's channels or a row's places. */
static bool may_leak(const Conv *c) {
  if (!dtype_is_float(c->s.t[c->s.result])) return false;
  if (c->merged > 1) return c->s.form != CONV_WEIGHTS;
  if (!c->dnnl || c->wide || c->s.t[X] != DT_BF16) return false;
  const ConvView *w = &c->s.v[W];
  return c->s.form == CONV_WEIGHTS || w->dims[c->s.form == CONV_DATA ? 1 : 2] % BF16_CHANNELS;
}

typedef struct Copies { /* memory of this run */
  void *p[8];
  size_t bytes[8];
  int n;
  bool failed;
} Copies;

static void *room(Copies *k, int64_t elements, size_t size) {
  size_t n = (size_t)elements * size;
  void *p = cpu_block_alloc(n);
  if (!p) k->failed = true;
  else k->p[k->n] = p, k->bytes[k->n++] = n;
  return p;
}

/* The elements of `to`, in the order of its strides (dense), from where `from` has them. */
static void copy_view(const ConvView *from, const ConvView *to, size_t size, const char *in,
                      char *out) {
  int64_t dims[12], strides[12];
  bool done[12] = {false};
  for (int k = 0; k < to->n; k++) {
    int next = -1;
    for (int i = 0; i < to->n; i++)
      if (!done[i] && (next < 0 || to->strides[i] > to->strides[next] ||
                       (to->strides[i] == to->strides[next] && to->dims[i] == 1)))
        next = i;
    done[next] = true;
    dims[k] = to->dims[next], strides[k] = from->strides[next];
  }
  cpu_permute(size, to->n, dims, strides, in + from->offset * (int64_t)size,
              out + to->offset * (int64_t)size);
}

/* From memory of our own to a result that is filled from its end: the other way round, to its first element. */
static void turn_back(const Conv *c, const void *mine, void *user) {
  ConvView from = c->s.v[W], to = c->w;
  for (int i = 0; i < to.n; i++) {
    if (to.strides[i] >= 0) continue;
    int64_t last = to.dims[i] - 1;
    to.offset += last * to.strides[i], to.strides[i] = -to.strides[i];
    from.offset += last * from.strides[i], from.strides[i] = -from.strides[i];
  }
  copy_view(&from, &to, c->wide ? 4 : (size_t)dtype_bytes(c->s.t[W]), mine, user);
}

static DType computed_as(const Conv *c, int i) { return c->dnnl ? DT_F32 : c->at.t[i]; }
static size_t size_of(const Conv *c, int i) { return (size_t)dtype_bytes(computed_as(c, i)); }

typedef struct Outcome {
  Copies k;
  int status; /* of oneDNN */
  bool finite;
} Outcome;

/* Which of X, W and Y the two operands are. */
static void roles(const ConvShape *s, int *role) {
  role[0] = s->form == CONV_DATA || s->swapped ? Y : X;
  role[1] = s->swapped ? X : s->form == CONV_WEIGHTS ? Y : W;
}

/* In copies where it wants other orders. */
static void run_way(const Conv *c, void *const *data, Outcome *o) {
  void *mine[3];
  int result = c->s.result;
  for (int i = 0; i < 3; i++) {
    mine[i] = data[i];
    if (!c->copied[i]) continue;
    if (!(mine[i] = room(&o->k, count(&c->s.v[i]), size_of(c, i)))) return;
    if (i != result) copy_view(&c->s.v[i], &c->at.v[i], size_of(c, i), data[i], mine[i]);
  }
  if (!(c->way->run ? c->way->run(&c->at, (float *const *)(void *)mine)
                    : c->way->checked(&c->at, mine, &o->finite)))
    o->k.failed = true;
  else if (c->copied[result])
    copy_view(&c->at.v[result], &c->s.v[result], size_of(c, result), mine[result], data[result]);
}

static void run_shape(const Conv *c, void *const *operand, void *result, Outcome *o) {
  void *data[3];
  int role[2];
  roles(&c->s, role);
  data[role[0]] = operand[0];
  data[role[1]] = operand[1];
  data[c->s.result] = result;
  float *user = data[W];
  if (c->merged > 1) {
    int64_t n = count(&c->s.v[W]);
    if (!(data[W] = room(&o->k, n, 4))) return;
    if (c->s.result != W) {
      memset(data[W], 0, sizeof(float) * (size_t)n);
      move_weights(c, user, data[W], false);
    }
  }
  if (c->turned) {
    if (!(data[W] = room(&o->k, count(&c->w), 4))) return;
    if (c->s.result != W) copy_view(&c->w, &c->s.v[W], 4, (const char *)user, data[W]);
  }
  if (!c->dnnl) run_way(c, data, o);
  else if (!conv_dnnl_run(c->dnnl, data, &o->status)) o->k.failed = true;
  if (c->turned && c->s.result == W && !o->k.failed) turn_back(c, data[W], user);
  if (c->merged > 1 && c->s.result == W && !o->k.failed) move_weights(c, user, data[W], true);
}

static void run_parts(const Conv *c, void *const *operand, void *result, Outcome *o) {
  void *data[3], *mine[3];
  int role[2], to = c->s.result;
  roles(&c->s, role);
  data[role[0]] = operand[0];
  data[role[1]] = operand[1];
  data[to] = result;
  for (int i = 0; i < 3; i++) {
    size_t size = (size_t)dtype_bytes(c->s.t[i]);
    mine[i] = data[i];
    if (i != W && !c->copied[i]) continue;
    if (!(mine[i] = room(&o->k, count(&c->s.v[i]) * (i == W ? 2 : 1), size))) return;
    if (i == to) continue;
    if (i == W) conv_parts_spread(&c->at, data[W], mine[W]);
    else copy_view(&c->s.v[i], &c->at.v[i], size, data[i], mine[i]);
  }
  run_shape(c->parts, (void *[]){mine[role[0]], mine[role[1]]}, mine[to], o);
  if (o->k.failed || o->status) return;
  if (to == W) conv_parts_collect(&c->at, mine[W], data[W]);
  else if (c->copied[to])
    copy_view(&c->at.v[to], &c->s.v[to], (size_t)dtype_bytes(c->s.t[to]), mine[to], data[to]);
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  Conv *c = state;
  if (c->general) return conv_general_run(c->general, op, in, out);
  Outcome done = {.finite = true};
  Copies *k = &done.k;
  void *operand[2] = {in[0], in[1]}, *result = out[0];
  DType t = op->operands[0]->type->dtype, o = op_type(op)->dtype;
  int64_t results = type_count(op_type(op));
  int role[2];
  roles(&c->s, role);
  for (int i = 0; i < 2 && c->wide; i++) {
    int64_t n = type_count(op->operands[i]->type);
    if (t == computed_as(c, role[i])) continue;
    if (!(operand[i] = room(k, n, 4))) goto done;
    cpu_widen(t, in[i], operand[i], n);
  }
  if (c->wide && o != computed_as(c, c->s.result) && !(result = room(k, results, 4))) goto done;
  if (c->s.flip) {
    size_t size = c->wide ? (size_t)dtype_bytes(computed_as(c, role[1])) : (size_t)dtype_bytes(t);
    void *turned = room(k, type_count(op->operands[1]->type), size);
    if (!turned) goto done;
    cpu_permute(size, c->s.flip_rank, c->s.flip_dims, c->s.flip_strides,
                (const char *)operand[1] + c->s.flip_offset * (int64_t)size, turned);
    operand[1] = turned;
  }
  (c->parts ? run_parts : run_shape)(c, operand, result, &done);
  if (k->failed || done.status) goto done;
  if (may_leak(c))
    done.finite &= c->s.form == CONV_WEIGHTS
                       ? cpu_finite(o, result, results)
                       : cpu_finite(t, in[0], type_count(op->operands[0]->type));
  if (result != out[0]) cpu_narrow(o, result, out[0], results);
done:
  for (int i = 0; i < k->n; i++) cpu_block_free(k->p[i], k->bytes[i]);
  if (k->failed) return op_err(op, ERR_EXHAUSTED, "no memory for copies of its operands");
  if (done.status) return op_err(op, ERR_INTERNAL, "oneDNN fails with status %d", done.status);
  if (done.finite) return NULL;
  TRY(make_plain(op, c));
  return run(c->plain, op, in, out);
}

/* ---- rows ---- */

static double flops(const Op *op) {
  const Type *r = op->operands[1]->type;
  double of = (double)r->dims[op_int(op, "kernel_output_feature_dimension", 0)];
  return of == 0 ? 0 : 2.0 * (double)type_count(op_type(op)) * (double)type_count(r) / of;
}

const CpuKernel cpu_kernels_conv[] = {
    {.name = "conv:bf16",
     .kind = OP_CONVOLUTION,
     .accepts = accepts_bf16,
     .prepare = prepare_bf16,
     .run = run,
     .release = release,
     .flops = flops},
    {.name = "conv",
     .kind = OP_CONVOLUTION,
     .accepts = conv_general_accepts,
     .prepare = prepare,
     .run = run,
     .release = release,
     .flops = flops},
    {0},
};
