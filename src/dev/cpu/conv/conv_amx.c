/* Convolutions of bf16 as products by AMX's tiles (dot/amx.h): windows are gathered, a step of k at a
 * time, to where the tiles read them. Gradients of weights, [channels of Y][window], are summed over places in parts of
 * these where they are many. */
#include "dev/cpu/conv/conv_im2col.h"
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

static bool results(const Im2col *c, const void *weights) {
  GemmArgs x = im2col_args(c, weights);
  AmxGather g = {
      .a = c->straight ? NULL : im2col_gather, .c_at = c->plain ? NULL : im2col_result, .of = c};
  Amx plan;
  amx_plan(&plan, c->places, c->depth, c->elements, (GemmTypes){DT_BF16, DT_BF16, c->to_type}, 1,
           c->straight ? AMX_RUNS : AMX_GATHERED);
  return amx_run(&plan, &x, &g, NULL, true);
}

/* ---- gradients of weights ---- */

typedef struct Part { /* places from `first` on */
  const Im2col *c;
  int64_t first;
} Part;

static void gather_part(const void *of, int64_t row, int64_t rows, int64_t at, int64_t n, char *out,
                        int64_t pitch) {
  const Part *p = of;
  im2col_gather(p->c, p->first + row, rows, at, n, out, pitch);
}

typedef struct Sums {
  const Im2col *c;
  int64_t each; /* places of a part */
  float *sums;  /* of the parts */
} Sums;

static GemmArgs product_args(const Part *p, void *sums) {
  const ConvWindows *w = p->c->w;
  return (GemmArgs){.a = p->c->to + p->first * w->to_steps[2] * SIZE,
                    .a_row = 1,
                    .a_k = w->to_steps[2],
                    .b = p->c->from +
                         p->first * w->steps[2] * SIZE, /* where they are not gathered */
                    .b_col = 1,
                    .b_k = w->steps[2],
                    .c = sums,
                    .c_row = p->c->elements};
}

static AmxGather part_gather(const Part *p) {
  return (AmxGather){.b = p->c->straight ? NULL : gather_part, .of = p};
}

static Amx product_plan(const Im2col *c, int64_t places, DType t, int64_t parts) {
  Amx g;
  amx_plan(&g, c->depth, c->elements, places, (GemmTypes){DT_BF16, DT_BF16, t}, parts, AMX_TURNED);
  if (parts > 1) g.ahead_a = false;
  if (parts > 1 || !c->straight) g.ahead_b = false;
  return g;
}

static void sum_parts(void *arg, int64_t begin, int64_t end) {
  const Sums *s = arg;
  const Im2col *c = s->c;
  for (int64_t p = begin; p < end; p++) {
    Part part = {c, p * s->each};
    Amx g = product_plan(c, MIN(s->each, c->places - part.first), DT_F32, MOST_PARTS);
    GemmArgs x = product_args(&part, s->sums + p * c->depth * c->elements);
    AmxGather gathered = part_gather(&part);
    char *scratch = cpu_scratch((size_t)amx_scratch_bytes(&g));
    for (int64_t t = 0; t < g.tiles_m * g.tiles_n; t++)
      amx_tile(&g, &x, &gathered, NULL, t, scratch);
    amx_release(&g);
  }
}

/* Of all parts, as the first one's. */
static void add_parts(void *arg, int64_t begin, int64_t end) {
  const Sums *s = arg;
  int64_t n = s->c->depth * s->c->elements;
  for (int64_t first = s->each; first < s->c->places; first += s->each) {
    const float *from = s->sums + first / s->each * n;
    for (int64_t i = begin; i < end; i++) s->sums[i] += from[i];
  }
}

static bool weights_in_parts(const Im2col *c, void *sums, int64_t parts) {
  Sums s = {.c = c, .each = (c->places + parts - 1) / parts};
  int64_t n = c->depth * c->elements;
  size_t bytes = (size_t)(parts * n) * sizeof(float);
  if (!(s.sums = cpu_block_alloc(bytes))) return false;
  cpu_parallel(parts, 1, sum_parts, &s);
  cpu_parallel(n, ADDED, add_parts, &s);
  if (c->w_type == DT_BF16) cpu_narrow(DT_BF16, s.sums, sums, n);
  else memcpy(sums, s.sums, (size_t)n * sizeof(float));
  cpu_block_free(s.sums, bytes);
  return true;
}

static bool weights(const Im2col *c, void *sums) {
  int64_t parts = MIN(MOST_PARTS, c->places / PART_PLACES);
  if (parts >= 2 && c->depth * c->elements <= PARTED) return weights_in_parts(c, sums, parts);
  Part all = {c, 0};
  Amx g = product_plan(c, c->places, c->w_type, 1);
  GemmArgs x = product_args(&all, sums);
  AmxGather gathered = part_gather(&all);
  return amx_run(&g, &x, &gathered, NULL, true);
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
  if (conv_group_macs(s) < MIN_MACS || (s->groups > 1 && MIN(w.channels, w.depth) < LEAST_GROUP))
    return false;
  bool steps = has_steps(s);
  if (s->form != CONV_WEIGHTS)
    return conv_straight(&w) || w.depth >= (steps ? STEPS_DEPTH : LEAST_DEPTH);
  conv_forwards(&w);
  if (!conv_together(w.places, w.to_steps, w.images, w.to_image)) return false;
  return conv_straight(&w) || steps || s->swapped || w.channels < FEW_CHANNELS ||
         w.depth >= STEPS_DEPTH;
}

bool conv_amx_run(const ConvShape *s, void *const *data) {
  static const Im2colProduct product = {results, weights, .turned = true};
  return conv_im2col(s, data, &product);
}
