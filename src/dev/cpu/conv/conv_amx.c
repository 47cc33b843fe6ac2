/* Convolutions of bf16 as products by AMX's tiles (dot/amx.h): windows are gathered, a step of k at a
 * time, to where the tiles read them. Results are places' windows times the weights; gradients of images
 * the same of Y, one product for each remainder (conv_residues); gradients of weights Y's channels times
 * the windows, summed over places, in parts of these where they are many. */
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define SIZE 2 /* bytes of an element */
/* Gradients of weights: */
#define PART_PLACES 2048 /* of a part, at least, */
#define MOST_PARTS 16    /* and so many parts, of no more results than: */
#define PARTED ((int64_t)1 << 20)
#define MIN_MACS 1e5 /* smaller ones are not worth it */
/* Measured beside oneDNN 2.6.3 on a Granite Rapids (U-Net, DavidNet, ResNet-50, a VAE): */
#define LEAST_DEPTH 256
#define STEPS_DEPTH 128 /* with steps, gradients of weights */
#define FEW_CHANNELS 16 /* gradients of weights */
#define LEAST_GROUP 32
#define ADDED 16384 /* sums, of a task */

typedef struct Job { /* one group, or one remainder of it */
  const ConvShape *s;
  const ConvWindows *w;
  const char *from;
  char *to, *weights;
  int64_t first; /* gradients of weights: place */
} Job;

static Job job_of(const ConvShape *s, const ConvWindows *w, void *const *data) {
  int from = s->form == CONV_DATA ? Y : X, to = s->form == CONV_DATA ? X : Y;
  return (Job){.s = s,
               .w = w,
               .from = conv_at(data[from], w->from, s->t[from]),
               .to = conv_at(data[to], w->to, s->t[to]),
               .weights = conv_at(data[W], w->w, s->t[W])};
}

/* Of places, elements of the window. */
static void gather(const void *of, int64_t row, int64_t rows, int64_t at, int64_t n, char *out,
                   int64_t pitch) {
  const Job *j = of;
  conv_gather(j->w, j->from, SIZE, j->first + row, rows, at, n, out, pitch);
}

static DType result_type(const Job *j) { return j->s->t[j->s->result]; }

/* The weights in the order [window][channels of the results]. */
typedef struct Order {
  int64_t dims[DIMS + 2], strides[DIMS + 2];
  bool dense; /* they lie so */
} Order;

static Order order_of(const ConvWindows *w) {
  Order o = {{w->taps[0], w->taps[1], w->taps[2], w->channels, w->depth},
             {w->tap_steps[0], w->tap_steps[1], w->tap_steps[2], w->in_step, w->out_step},
             true};
  int64_t n = 1;
  for (int i = DIMS + 1; i >= 0; n *= o.dims[i--]) o.dense &= o.dims[i] == 1 || o.strides[i] == n;
  return o;
}

/* ---- results ---- */

static char *result_at(const void *of, int64_t place) {
  const Job *j = of;
  return j->to + conv_result_at(j->w, place) * dtype_bytes(result_type(j));
}

typedef struct Call {
  const ConvShape *s;
  void *const *data;
} Call;

static bool results(void *arg, const ConvWindows *w) {
  const Call *call = arg;
  Job j = job_of(call->s, w, call->data);
  int64_t places = w->images * conv_volume(w->places), k = conv_volume(w->taps) * w->channels;
  if (k == 0) {
    conv_clear(w, j.to, w->depth, dtype_bytes(result_type(&j)));
    return true;
  }
  bool straight = conv_straight(w),
       plain = conv_together(w->places, w->to_steps, w->images, w->to_image);
  GemmArgs x = {.a = j.from,
                .a_row = w->steps[2],
                .a_k = 1,
                .b_col = 1,
                .b_k = w->depth,
                .c = j.to,
                .c_row = w->to_steps[2]};
  AmxGather g = {.a = straight ? NULL : gather, .c_at = plain ? NULL : result_at, .of = &j};
  Amx plan;
  Order order = order_of(w);
  size_t bytes = order.dense ? 0 : (size_t)(k * w->depth * SIZE);
  char *own = bytes ? cpu_block_alloc(bytes) : NULL;
  if (bytes && !own) return false;
  if (own) cpu_permute(SIZE, DIMS + 2, order.dims, order.strides, j.weights, own);
  x.b = own ? own : j.weights;
  amx_plan(&plan, places, w->depth, k, (GemmTypes){DT_BF16, DT_BF16, result_type(&j)}, 1,
           straight ? AMX_RUNS : AMX_GATHERED);
  bool ok = amx_run(&plan, &x, &g, NULL, true);
  cpu_block_free(own, bytes);
  return ok;
}

/* ---- gradients of weights: [channels of Y][window] ---- */

typedef struct Sums {
  const Job *j;
  int64_t depth, elements, places, each; /* each: places of a part */
  bool straight;                         /* windows are pixels as they lie */
  float *sums;                           /* of the parts */
} Sums;

/* Places from `first` on. */
static GemmArgs product_args(const Sums *s, int64_t first, void *c) {
  const ConvWindows *w = s->j->w;
  return (GemmArgs){.a = s->j->to + first * w->to_steps[2] * SIZE,
                    .a_row = 1,
                    .a_k = w->to_steps[2],
                    .b = s->j->from + first * w->steps[2] * SIZE, /* where they are not gathered */
                    .b_col = 1,
                    .b_k = w->steps[2],
                    .c = c,
                    .c_row = s->elements};
}

static Amx product_plan(const Sums *s, int64_t places, DType t, int64_t parts) {
  Amx g;
  amx_plan(&g, s->depth, s->elements, places, (GemmTypes){DT_BF16, DT_BF16, t}, parts, AMX_TURNED);
  if (parts > 1) g.ahead_a = false;
  if (parts > 1 || !s->straight) g.ahead_b = false;
  return g;
}

static void sum_parts(void *arg, int64_t begin, int64_t end) {
  const Sums *s = arg;
  for (int64_t p = begin; p < end; p++) {
    Job j = *s->j;
    j.first = p * s->each;
    Amx g = product_plan(s, MIN(s->each, s->places - j.first), DT_F32, MOST_PARTS);
    GemmArgs x = product_args(s, j.first, s->sums + p * s->depth * s->elements);
    AmxGather gathered = {.b = s->straight ? NULL : gather, .of = &j};
    char *scratch = cpu_scratch((size_t)amx_scratch_bytes(&g));
    for (int64_t t = 0; t < g.tiles_m * g.tiles_n; t++)
      amx_tile(&g, &x, &gathered, NULL, t, scratch);
    amx_release(&g);
  }
}

/* Of all parts, as the first one's. */
static void add_parts(void *arg, int64_t begin, int64_t end) {
  const Sums *s = arg;
  int64_t n = s->depth * s->elements;
  for (int64_t first = s->each; first < s->places; first += s->each) {
    const float *from = s->sums + first / s->each * n;
    for (int64_t i = begin; i < end; i++) s->sums[i] += from[i];
  }
}

typedef struct Put { /* of [channels of Y][window] to where the user has them */
  const Job *j;
  const char *from;
} Put;

static void put_elements(void *arg, int64_t begin, int64_t end) {
  const Put *p = arg;
  const ConvWindows *w = p->j->w;
  int64_t size = dtype_bytes(result_type(p->j)), all = conv_volume(w->taps) * w->channels;
  for (int64_t i = begin; i < end; i++) {
    int64_t tap = i / w->channels, at = i % w->channels * w->in_step;
    for (int d = DIMS - 1; d >= 0; d--) at += tap % w->taps[d] * w->tap_steps[d], tap /= w->taps[d];
    for (int64_t o = 0; o < w->depth; o++)
      memcpy(p->j->weights + (at + o * w->out_step) * size, p->from + (o * all + i) * size,
             (size_t)size);
  }
}

static void put(const Job *j, const void *from) {
  const ConvWindows *w = j->w;
  int64_t elements = conv_volume(w->taps) * w->channels;
  Put p = {j, from};
  if (order_of(w).dense)
    cpu_permute((size_t)dtype_bytes(result_type(j)), 2, (int64_t[]){elements, w->depth},
                (int64_t[]){1, elements}, from, j->weights);
  else cpu_parallel(elements, MAX(1, ADDED / w->depth), put_elements, &p);
}

static bool weights(const Job *j) {
  const ConvWindows *w = j->w;
  DType t = result_type(j);
  Sums s = {.j = j,
            .depth = w->depth,
            .elements = conv_volume(w->taps) * w->channels,
            .places = w->images * conv_volume(w->places),
            .straight = conv_straight(w)};
  int64_t n = s.depth * s.elements, parts = MIN(MOST_PARTS, s.places / PART_PLACES);
  if (parts < 2 || n > PARTED) parts = 1;
  s.each = (s.places + parts - 1) / parts;
  size_t bytes = (size_t)(parts * n) * sizeof(float);
  if (!(s.sums = cpu_block_alloc(bytes))) return false;
  bool ok = true;
  float *total = s.sums;
  if (parts > 1) {
    cpu_parallel(parts, 1, sum_parts, &s);
    cpu_parallel(n, ADDED, add_parts, &s);
    if (t == DT_BF16) cpu_narrow(t, s.sums, total = s.sums + n, n); /* the second part's place */
  } else {
    Amx g = product_plan(&s, s.places, t, 1);
    GemmArgs x = product_args(&s, 0, s.sums);
    AmxGather gathered = {.b = s.straight ? NULL : gather, .of = j};
    ok = amx_run(&g, &x, &gathered, NULL, true);
  }
  if (ok) put(j, total);
  cpu_block_free(s.sums, bytes);
  return ok;
}

/* ---- both ---- */

static bool has_steps(const ConvShape *s) {
  for (int i = 0; i < s->v[X].n - 2; i++)
    if (s->strides[i] > 1) return true;
  return false;
}

/* Where oneDNN has nothing as fast, whose kernels take what a gather has to copy where it is: with so
 * many channels of results that the copy is little beside the product, with steps, or pixels that lie as the
 * product wants them. */
bool conv_amx_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (!amx_bf16() || n < 1 || n > DIMS) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  double macs = (double)(w.images * conv_volume(s->form == CONV_DATA ? w.size : w.places)) *
                (double)(conv_volume(w.taps) * w.channels) * (double)w.depth;
  if (macs < MIN_MACS || (s->groups > 1 && MIN(w.channels, w.depth) < LEAST_GROUP)) return false;
  bool steps = has_steps(s);
  if (s->form != CONV_WEIGHTS)
    return conv_straight(&w) || w.depth >= (steps ? STEPS_DEPTH : LEAST_DEPTH);
  conv_forwards(&w);
  if (!conv_together(w.places, w.to_steps, w.images, w.to_image)) return false;
  return conv_straight(&w) || steps || s->swapped || w.channels < FEW_CHANNELS ||
         w.depth >= STEPS_DEPTH;
}

bool conv_amx_run(const ConvShape *s, void *const *data) {
  bool ok = true;
  Call call = {s, data};
  for (int64_t g = 0; g < s->groups && ok; g++) {
    ConvWindows w = conv_windows(s, data, g);
    if (s->form == CONV_WEIGHTS) {
      conv_forwards(&w);
      Job j = job_of(s, &w, data);
      ok = weights(&j);
    } else {
      ok = conv_residues(&w, s->form == CONV_DATA, results, &call);
    }
  }
  return ok;
}
