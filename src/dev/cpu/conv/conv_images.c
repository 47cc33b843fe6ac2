/* Results and gradients of images by windows of one pixel where channels come before pixels: for each
 * image a product (gemm.h) of the weights, packed once, and its pixels, which are runs. Nothing is
 * copied into another order. */
#include "dev/cpu/conv/conv_windows.h"
#include "dev/cpu/dot/gemm.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define LEAST_CHANNELS 16
#define FULL 7 / 8 /* of the vectors that pixels take: copies cost less than more emptiness */

typedef struct Job {
  const ConvWindows *w;
  Gemm g;
  float *ahead; /* the weights, packed */
} Job;

static Gemm plan_of(const ConvWindows *w) {
  Gemm g;
  gemm_plan(&g, w->depth, conv_volume(w->places), w->channels, (GemmTypes){DT_F32, DT_F32, DT_F32},
            w->images, GEMM_A, true);
  return g;
}

static GemmArgs args_of(const ConvWindows *w, int64_t image) {
  return (GemmArgs){.a = w->w,
                    .a_row = w->out_step,
                    .a_k = w->in_step,
                    .b = w->from + image * w->image_step,
                    .b_col = 1,
                    .b_k = w->channel_step,
                    .c = w->to + image * w->to_image,
                    .c_row = w->to_channel};
}

static void pack(void *arg, int64_t begin, int64_t end) { /* parts of the weights */
  const Job *j = arg;
  GemmArgs x = args_of(j->w, 0);
  gemm_ahead(&j->g, &x, j->ahead, begin, end);
}

static void tiles(void *arg, int64_t begin, int64_t end) { /* (image, tile) */
  const Job *j = arg;
  int64_t each = j->g.tiles_m * j->g.tiles_n;
  float *scratch = cpu_scratch(sizeof(float) * (size_t)gemm_scratch_floats(&j->g));
  for (int64_t t = begin; t < end; t++) {
    GemmArgs x = args_of(j->w, t / each);
    gemm_tile(&j->g, &x, j->ahead, NULL, t % each, scratch);
  }
}

static bool results(void *arg, const ConvWindows *w) {
  (void)arg;
  Job j = {.w = w, .g = plan_of(w)};
  size_t bytes = sizeof(float) * (size_t)gemm_ahead_floats(&j.g);
  if (!(j.ahead = cpu_block_alloc(bytes))) return false;
  cpu_parallel(gemm_ahead_parts(&j.g), 1, pack, &j);
  cpu_parallel(w->images * j.g.tiles_m * j.g.tiles_n, 1, tiles, &j);
  cpu_block_free(j.ahead, bytes);
  return true;
}

/* Pixels of an image follow one another. */
static bool runs(const int64_t *size, const int64_t *steps) {
  return steps[2] == 1 && conv_together(size, steps, 1, 0);
}

bool conv_images_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  if (!gemm_kernels() || s->form == CONV_WEIGHTS || n < 1 || n > CONV_DIMS || s->groups != 1 ||
      s->swapped || s->flip)
    return false;
  for (int i = 0; i < n; i++)
    if (s->strides[i] != 1) return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  for (int i = 0; i < CONV_DIMS; i++)
    if (w.taps[i] != 1 || w.low[i] != 0 || w.places[i] != w.size[i]) return false;
  int64_t pixels = conv_volume(w.places), lanes = gemm_kernels()->lanes,
          filled = (pixels + lanes - 1) / lanes * lanes;
  return MIN(w.channels, w.depth) >= LEAST_CHANNELS && runs(w.size, w.steps) &&
         runs(w.places, w.to_steps) && (w.in_step == 1 || w.out_step == 1) &&
         pixels >= filled * FULL && !plan_of(&w).both;
}

bool conv_images_run(const ConvShape *s, void *const *data) {
  ConvWindows w = conv_windows(s, data, 0);
  return conv_residues(&w, s->form == CONV_DATA, results, NULL);
}
