/* Convolutions: the list of all ways to compute one, fastest first; the first that takes it does. A row is what computes
 * (an implementation, oneDNN or im2col for any type and form), for which numbers, and how the convolution is arranged for it
 * (conv_prepared.h). Which was taken shows in WEFT_VERBOSE as conv:NAME. */
#include <pthread.h>

#include "dev/cpu/conv/conv_prepared.h"
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/dot/gemm.h"

/* What a row computes with; a convolution may have several of them. */
typedef enum Numbers {
  PAIRS = 1,    /* bf16, on hosts with instructions for pairs of them */
  INTEGERS = 2, /* as they are */
  DOUBLES = 4,
  COMPLEX = 8,
  FLOATS = 16, /* f32; also bf16, f16 and small integers, as f32 */
  ANY_NUMBERS = 32
} Numbers;

/* How a convolution is arranged for a row. */
enum {
  SWAPPED = 1,        /* as the gradient of weights that it is also (conv_swapped), or not at all */
  MERGED = 2,         /* with groups joined */
  TURNED = 4,         /* a result as a gradient of images, or back (conv_turned), or not at all */
  AS_IT_LIES = 8,     /* in any order of dimensions */
  NO_COPIES = 16,     /* not where X and Y would have to be copied, */
  FEW_COPIES = 32,    /* or are, and that does not pay */
  NATIVE = 64,        /* in the types at hand; else in f32, */
  KEEPS_BF16 = 128,   /* but for X and Y of bf16 that need not be copied */
  FREE_SUMS = 256,    /* only where sums need not be the plain ones */
  WHOLE_VECTORS = 512 /* only where vectors have 512 bits */
};

typedef enum Sums {
  ANY_SUMS,
  DIRECT_SUMS,
  OWN_SUMS /* of nothing but what a result reads */
} Sums;

typedef struct Wanted { /* of a convolution */
  const Op *op;
  unsigned numbers;
  Sums sums;
  bool narrow; /* not all f32: what computes in f32 gets copies */
  bool whole;  /* integers that f32 adds up exactly */
} Wanted;

typedef struct Row {
  const char *name;
  const ConvImpl *impl;
  Numbers numbers;
  unsigned arranged;
  bool (*when)(const Conv *c, const Wanted *w); /* NULL: always */
  bool (*make)(Conv *c, const Wanted *w); /* in place of impl. false: it has nothing for this one */
} Row;

/* ---- arranging ---- */

static bool swap(Conv *c) {
  ConvShape s;
  if (!conv_swapped(&c->s, &s)) return false;
  c->s = s;
  return true;
}

static bool turn(Conv *c) {
  ConvShape s;
  if (c->merged > 1 || !conv_turned(&c->s, &s)) return false;
  c->s = s;
  return true;
}

/* false: this row does not arrange it. */
static bool arrange(Conv *c, unsigned how, const Wanted *w) {
  bool plain = w->sums != ANY_SUMS || w->whole;
  if (((how & FREE_SUMS) && plain) || ((how & WHOLE_VECTORS) && cpu_vector_bits() < 512) ||
      ((how & SWAPPED) && !swap(c)))
    return false;
  if ((how & MERGED) && w->sums != OWN_SUMS) conv_merge_groups(c);
  if ((how & TURNED) && !turn(c)) return false;
  (how & AS_IT_LIES ? conv_as_they_lie : conv_channels_last)(c);
  bool copied = c->copied[X] || c->copied[Y];
  for (int i = 0; i < 3 && !(how & NATIVE); i++)
    if (i == W || c->at.t[i] != DT_BF16 || copied || !(how & KEEPS_BF16)) c->at.t[i] = DT_F32;
  if (copied && (how & NO_COPIES)) return false;
  return !copied || !(how & FEW_COPIES) || conv_worth_copies(&c->at);
}

/* ---- when ---- */

/* What decides between products of our own and oneDNN's kernels for AVX-512. */
typedef struct Size {
  int64_t taps, places, least; /* least: of the channels on both sides */
  bool steps, gaps;
} Size;

static Size size_of(const ConvShape *s) {
  const ConvView *w = &s->v[W], *y = &s->v[Y];
  Size z = {.taps = 1, .places = y->dims[0], .least = MIN(w->dims[1], w->dims[2])};
  for (int i = 3; i < w->n; i++) {
    z.taps *= w->dims[i], z.places *= y->dims[i - 1];
    z.steps |= s->strides[i - 3] > 1, z.gaps |= s->dilates[i - 3] > 0;
  }
  return z;
}

#define FEW_PLACES 800
#define FEW_CHANNELS 8
#define SOME_CHANNELS 32
#define MORE_CHANNELS 64
#define MANY_CHANNELS 128

/* Few places of many channels, that is, much to read of the weights; it would have to copy them. */
static bool few_places(const Conv *c, const Size *z, int64_t least) {
  bool copied = c->copied[X] || c->copied[Y];
  return z->places < FEW_PLACES && z->least >= least && (!copied || c->at.form == CONV_WEIGHTS);
}

/* Plain products, the kernels of transposed convolutions, gradients of weights with gaps, or with steps and many channels; few
 * places. */
static bool as_product(const Conv *c, const Wanted *wanted) {
  (void)wanted;
  const ConvShape *s = &c->at;
  Size z = size_of(s);
  return cpu_vector_bits() < 512 || conv_patches(s) || conv_fan(s) > 1 || z.taps == 1 ||
         few_places(c, &z, MORE_CHANNELS) ||
         (s->form == CONV_WEIGHTS && (z.gaps || (z.steps && z.least >= MANY_CHANNELS)));
}

/* Windows that mostly lie outside, steps in three dimensions or of gradients of images, few places; elsewhere the same. */
static bool few_windows(const Conv *c, const Wanted *wanted) {
  (void)wanted;
  const ConvShape *s = &c->at;
  const ConvView *w = &s->v[W];
  Size z = size_of(s);
  if (cpu_vector_bits() < 512) return true;
  if (s->groups > 1) return false;
  return (z.steps && ((w->n == 6 && z.least >= MORE_CHANNELS) ||
                      (s->form == CONV_DATA && w->n < 6 && z.least >= SOME_CHANNELS))) ||
         few_places(c, &z, SOME_CHANNELS) ||
         (MAX(w->dims[1], w->dims[2]) >= MANY_CHANNELS && conv_inside(s) < CONV_SPARSE);
}

static bool cannot_swap(const Conv *c, const Wanted *w) {
  (void)w;
  ConvShape s;
  return !conv_swapped(&c->s, &s);
}

/* ---- oneDNN ---- */

/* With one of its kernels for AVX-512. */
static bool onednn_full(Conv *c, const Wanted *w) {
  (void)w;
  c->dnnl = conv_dnnl_new(&c->s, c->wide);
  if (c->dnnl && conv_dnnl_full(c->dnnl)) return true;
  conv_dnnl_free(c->dnnl);
  c->dnnl = NULL;
  return false;
}

static bool onednn_turned(Conv *c, const Wanted *w) {
  return conv_turn_for_onednn(c) && onednn_full(c, w);
}

static bool onednn_swapped(Conv *c, const Wanted *w) {
  conv_straighten(c);
  return onednn_full(c, w);
}

/* Its vectors are along the results' channels, two of the source's go together: where these are few, or windows of images do not
 * overlap, others are faster. */
static bool wastes_pairs(const Conv *c) {
  const ConvView *w = &c->s.v[W];
  bool back = c->s.form == CONV_DATA, apart = back;
  int64_t results = w->dims[back ? 2 : 1], source = w->dims[back ? 1 : 2];
  for (int i = 3; i < w->n; i++) apart &= c->s.strides[i - 3] >= w->dims[i];
  if (c->s.groups > 1) return conv_depthwise_fits(&c->at);
  return apart || source == 1 || results <= 2 || MAX(source, results) <= FEW_CHANNELS;
}

/* Direct sums of bf16 are so many times faster than of f32. */
#define PAIRS_GAIN 1.4

/* As products of windows that do not overlap, or with so many multiplications less that f32 is faster; never
 * than AMX's, which oneDNN uses too. */
static bool wide_before_pairs(const Conv *c, const Wanted *w) {
  Conv other = *c;
  if (arrange(&other, SWAPPED, w)) return conv_patches(&other.s) && conv_gemm_fits(&other.at);
  return !amx_bf16() && arrange(&other, KEEPS_BF16 | FREE_SUMS, w) &&
         conv_winograd_fits(&other.at) && conv_winograd_gain(&other.at) > PAIRS_GAIN;
}

static bool onednn_pairs(Conv *c, const Wanted *w) {
  if (wastes_pairs(c) || wide_before_pairs(c, w)) return false;
  return (c->dnnl = conv_dnnl_new(&c->s, false)) != NULL;
}

/* Whatever it has. */
static bool onednn_native(Conv *c, const Wanted *w) {
  c->wide = false;
  if (c->s.t[c->s.form == CONV_DATA ? Y : X] == DT_F16 || w->whole || c->merged > 1 ||
      w->sums == OWN_SUMS)
    return false;
  return (c->dnnl = conv_dnnl_new(&c->s, false)) != NULL;
}

static bool onednn_wide(Conv *c, const Wanted *w) {
  c->wide = true;
  return (w->narrow || c->merged > 1) && (c->dnnl = conv_dnnl_new(&c->s, true));
}

/* ---- the list ---- */

static bool real_parts(Conv *c, const Wanted *w);

static bool im2col(Conv *c, const Wanted *w) {
  c->general = conv_general_new(w->op);
  return true;
}

static const ConvImpl amx = {.fits = conv_amx_fits, .run = conv_amx_run},
                      integers = {.fits = conv_int_fits, .run = conv_int_run},
                      doubles = {.fits = conv_f64_fits, .run = conv_f64_run},
                      winograd = {.fits = conv_winograd_fits, .run_checked = conv_winograd_run},
                      planar = {.fits = conv_planar_fits, .run_checked = conv_planar_run},
                      images = {.fits = conv_images_fits, .run = conv_images_run},
                      rows = {.fits = conv_rows_fits, .run = conv_rows_run},
                      spread = {.fits = conv_spread_fits, .run = conv_spread_run},
                      runs = {.fits = conv_runs_fits, .run = conv_runs_run},
                      depthwise = {.fits = conv_depthwise_fits, .run = conv_depthwise_run},
                      gemm = {.fits = conv_gemm_fits, .run = conv_gemm_run};

/* clang-format off */
static const Row list[] = {
  {"conv:amx",       &amx,           PAIRS,    SWAPPED | NATIVE,                NULL,        NULL},
  {"conv:amx",       &amx,           PAIRS,    NATIVE,                          cannot_swap, NULL},
  {"conv:onednn",    NULL,           PAIRS,    SWAPPED | NATIVE,                NULL,        onednn_swapped},
  {"conv:onednn",    NULL,           PAIRS,    NATIVE,                          NULL,        onednn_pairs},
  {"conv:int",       &integers,      INTEGERS, NATIVE,                          NULL,        NULL},
  {"conv:depthwise", &depthwise,     DOUBLES,  NATIVE,                          NULL,        NULL},
  {"conv:f64",       &doubles,       DOUBLES,  NATIVE,                          NULL,        NULL},
  {"conv:complex",   NULL,           COMPLEX,  NATIVE,                          NULL,        real_parts},
  {"conv:rows",      &rows,          FLOATS,   SWAPPED,                         NULL,        NULL},
  {"conv:gemm",      &gemm,          FLOATS,   SWAPPED,                         NULL,        NULL},
  {"conv:depthwise", &depthwise,     FLOATS,   NO_COPIES | KEEPS_BF16,          NULL,        NULL},
  {"conv:planar",    &planar,        FLOATS,   AS_IT_LIES | FREE_SUMS,          NULL,        NULL},
  {"conv:images",    &images,        FLOATS,   AS_IT_LIES,                      NULL,        NULL},
  {"conv:winograd",  &winograd,      FLOATS,   MERGED | KEEPS_BF16 | FREE_SUMS, NULL,        NULL},
  {"conv:rows",      &rows,          FLOATS,   MERGED,                          NULL,        NULL},
  {"conv:spread",    &spread,        FLOATS,   MERGED,                          NULL,        NULL},
  {"conv:runs",      &runs,          FLOATS,   MERGED | FEW_COPIES,             few_windows, NULL},
  {"conv:gemm",      &gemm,          FLOATS,   MERGED,                          as_product,  NULL},
  {"conv:onednn",    NULL,           FLOATS,   MERGED | WHOLE_VECTORS,          NULL,        onednn_turned},
  {"conv:onednn",    NULL,           FLOATS,   MERGED | WHOLE_VECTORS,          NULL,        onednn_full},
  {"conv:depthwise", &depthwise,     FLOATS,   MERGED,                          NULL,        NULL},
  {"conv:runs",      &runs,          FLOATS,   MERGED | FEW_COPIES,             NULL,        NULL},
  {"conv:gemm",      &gemm,          FLOATS,   MERGED,                          NULL,        NULL},
  {"conv:spread",    &spread,        FLOATS,   MERGED | TURNED,                 NULL,        NULL},
  {"conv:runs",      &runs,          FLOATS,   MERGED | TURNED | FEW_COPIES,    NULL,        NULL},
  {"conv:onednn",    NULL,           FLOATS,   MERGED,                          NULL,        onednn_native},
  {"conv:onednn",    NULL,           FLOATS,   MERGED,                          NULL,        onednn_wide},
  {"conv:im2col",    NULL,           ANY_NUMBERS, AS_IT_LIES | NATIVE,          NULL,        im2col},
};
/* clang-format on */

/* The first row that takes it. false: none. */
static bool choose(Conv *c, const Wanted *w) {
  Conv given = *c;
  for (int i = 0; i < COUNT_OF(list); i++) {
    const Row *r = &list[i];
    if (!(r->numbers & w->numbers)) continue;
    *c = given;
    c->name = r->name, c->impl = r->impl;
    c->wide = w->narrow && r->numbers == FLOATS;
    if (arrange(c, r->arranged, w) && (!r->when || r->when(c, w)) &&
        (r->make ? r->make(c, w) : r->impl->fits(&c->at)))
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

/* Groups are not merged: only this convolution's own numbers are looked at when a result may have come from others
 * that are not finite. */
static bool real_parts(Conv *c, const Wanted *w) {
  Conv *p = c->parts = xcalloc(1, sizeof *p);
  p->merged = 1;
  conv_parts_shape(&c->at, &p->s);
  Wanted real = {.op = w->op,
                 .numbers = p->s.t[X] == DT_F64 ? DOUBLES : FLOATS,
                 .sums = p->s.groups > 1 ? OWN_SUMS : w->sums};
  if (choose(p, &real)) return true;
  release(p);
  return false;
}

/* ---- what is wanted ---- */

/* Products of bytes of which so many are added up are whole numbers that f32 has, in any order. */
static bool exact_in_f32(const Op *op) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  const Type *w = op->operands[1]->type;
  if (l != r || (l != DT_I8 && l != DT_U8) || !dtype_is_int(o) || dtype_bytes(o) > 4) return false;
  int64_t most = l == DT_I8 ? 128 * 128 : 255 * 255,
          of = w->dims[op_int(op, "kernel_output_feature_dimension", 0)];
  return of && type_count(w) / of * most <= (int64_t)1 << 24;
}

static Wanted wanted(const Op *op, Sums sums) {
  DType l = op->operands[0]->type->dtype, r = op->operands[1]->type->dtype, o = op_type(op)->dtype;
  Wanted w = {.op = op,
              .numbers = ANY_NUMBERS,
              .sums = sums,
              .narrow = l != DT_F32 || o != DT_F32,
              .whole = exact_in_f32(op)};
  bool floats = (l == DT_F32 || l == DT_BF16 || l == DT_F16) && r == l && (o == l || o == DT_F32);
  if (floats || w.whole) w.numbers |= FLOATS;
  if (floats && l == DT_BF16 && sums != OWN_SUMS && gemm_pairs()) w.numbers |= PAIRS;
  if (dtype_is_int(o) && dtype_bytes(l) == dtype_bytes(r)) w.numbers |= INTEGERS;
  if (o == DT_F64) w.numbers |= DOUBLES;
  if (dtype_is_complex(o)) w.numbers |= COMPLEX;
  return w;
}

static Conv *prepared(const Op *op, Sums sums) {
  Conv *c = xcalloc(1, sizeof *c);
  Wanted w = wanted(op, sums);
  c->merged = 1;
  if (!conv_shape(op, &c->s)) w.numbers = ANY_NUMBERS;
  choose(c, &w);
  return c;
}

/* ---- the row of the kernel list ---- */

static Err *prepare(const Op *op, void **state) {
  *state = prepared(op, op_attr(op, "precision_config") ? DIRECT_SUMS : ANY_SUMS);
  return NULL;
}

static const Conv *plain_of(Conv *c, const Op *op) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (!c->plain) c->plain = prepared(op, OWN_SUMS);
  pthread_mutex_unlock(&lock);
  return c->plain;
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  bool finite = true;
  TRY(conv_run(state, op, in, out, &finite));
  return finite ? NULL : conv_run(plain_of(state, op), op, in, out, &finite);
}

static const char *chosen(const void *state) { return ((const Conv *)state)->name; }

static double flops(const Op *op) {
  const Type *r = op->operands[1]->type;
  double of = (double)r->dims[op_int(op, "kernel_output_feature_dimension", 0)];
  return of == 0 ? 0 : 2.0 * (double)type_count(op_type(op)) * (double)type_count(r) / of;
}

const CpuKernel cpu_kernels_conv[] = {
    {.name = "conv",
     .kind = OP_CONVOLUTION,
     .accepts = conv_general_accepts,
     .prepare = prepare,
     .run = run,
     .release = release,
     .chosen = chosen,
     .flops = flops},
    {0},
};
