/* Convolutions of integers that 16 bits hold, exact modulo the result's width: products of windows, which are
 * gathered as they are, and the weights to sums of 32 bits. Bytes go by AMX's tiles (dot/amx.h), which ask for the
 * windows where they need them; else, and where results are narrower, windows are gathered a piece of all places at
 * a time and multiplied as bytes or pairs (dot/gemm.h). */
#include "dev/cpu/conv/conv_gather.h"
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define MIN_MACS 1e5  /* smaller ones are not worth it, */
#define LEAST_DEPTH 8 /* nor fewer channels of results in a group: vectors hold so many at least */
#define TASK_BYTES 65536 /* of windows, or sums */

typedef struct Job { /* one group, or one remainder of it */
  const ConvShape *s;
  const ConvWindows *w;
  const char *from;
  char *to, *weights; /* weights: [window][channels of results] */
  DType in, by, out;
  int64_t k;
  int64_t first, places; /* of the piece */
  char *windows;         /* of the piece */
  int32_t *sums;
} Job;

/* As what the products take it; DT_NONE: they do not. */
static DType held_as(DType t) {
  if (t == DT_I1 || (dtype_is_int(t) && dtype_bits(t) < 8)) return DT_I8;
  return t == DT_I8 || t == DT_U8 || t == DT_I16 ? t : DT_NONE;
}

static int in_of(const ConvShape *s) { return s->form == CONV_DATA ? Y : X; }

static void gather(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  int64_t size = dtype_bytes(j->in), row = j->k * size;
  conv_gather(j->w, j->from, (size_t)size, j->first + begin, end - begin, 0, j->k,
              j->windows + begin * row, row);
}

static char *result_at(const Job *j, int64_t place) {
  return j->to + conv_result_at(j->w, place) * dtype_bytes(j->out);
}

static void put(void *arg, int64_t begin, int64_t end) {
  const Job *j = arg;
  int64_t size = dtype_bytes(j->out), depth = j->w->depth;
  for (int64_t i = begin; i < end; i++) {
    const int32_t *sums = j->sums + i * depth;
    char *to = result_at(j, j->first + i);
    if (size == 4) memcpy(to, sums, (size_t)depth * 4);
    else
      for (int64_t c = 0; c < depth; c++) elem_set_i64(j->out, to + c * size, sums[c]);
  }
}

typedef struct Plan {
  bool tiles; /* AMX's */
  Amx amx;
  Gemm gemm;
  int64_t places; /* for so many; the weights are packed ahead: */
  char *packed;
  size_t bytes;
} Plan;

static bool plan(const Job *j, int64_t places, Plan *p) {
  GemmTypes t = {j->in, j->by, DT_I32};
  *p = (Plan){.places = places};
  p->tiles = dtype_bytes(j->in) == 1 && dtype_bytes(j->by) == 1 &&
             amx_plan(&p->amx, places, j->w->depth, j->k, t, 1, AMX_RUNS);
  if (p->tiles) p->amx.ahead_a = false, p->amx.ahead_b = true;
  else gemm_plan(&p->gemm, places, j->w->depth, j->k, t, 1, GEMM_B, true);
  p->bytes = (size_t)(p->tiles ? amx_ahead_bytes(&p->amx) : gemm_ahead_floats(&p->gemm) * 4);
  return (p->packed = cpu_block_alloc(p->bytes)) != NULL;
}

static bool multiply(const Job *j, const Plan *p, const char *a, int64_t a_row, void *c,
                     int64_t c_row, bool fresh) {
  GemmArgs x = {.a = a,
                .a_row = a_row,
                .a_k = 1,
                .b = j->weights,
                .b_col = 1,
                .b_k = j->w->depth,
                .c = c,
                .c_row = c_row};
  return p->tiles ? amx_run(&p->amx, &x, NULL, p->packed, fresh)
                  : gemm_run(&p->gemm, &x, (float *)(void *)p->packed, fresh);
}

/* Piece by piece; without copies where windows are pixels as they lie, or results lie as the product has
 * them. */
static bool pieces(Job *j, int64_t places, int64_t most) {
  const ConvWindows *w = j->w;
  int64_t in = dtype_bytes(j->in), depth = w->depth;
  bool straight = conv_straight(w), ok = true,
       plain = dtype_bytes(j->out) == 4 &&
               conv_together(w->places, w->to_steps, w->images, w->to_image);
  size_t windows = straight ? 0 : (size_t)(most * j->k * in),
         sums = plain ? 0 : (size_t)(most * depth) * 4;
  if (windows && !(j->windows = cpu_block_alloc(windows))) ok = false;
  if (sums && !(j->sums = cpu_block_alloc(sums))) ok = false;
  Plan p = {0};
  for (int64_t at = 0; ok && at < places; at += j->places) {
    j->first = at;
    j->places = MIN(most, places - at);
    bool fresh = p.places != j->places;
    if (fresh) {
      cpu_block_free(p.packed, p.bytes);
      if (!(ok = plan(j, j->places, &p))) break;
    }
    if (!straight) cpu_parallel(j->places, TASK_BYTES / (j->k * in) + 1, gather, j);
    const char *a = straight ? j->from + at * w->steps[2] * in : j->windows;
    void *c = plain ? (void *)result_at(j, at) : (void *)j->sums;
    ok =
        multiply(j, &p, a, straight ? w->steps[2] : j->k, c, plain ? w->to_steps[2] : depth, fresh);
    if (ok && !plain) cpu_parallel(j->places, TASK_BYTES / (depth * 4) + 1, put, j);
  }
  cpu_block_free(p.packed, p.bytes);
  cpu_block_free(j->windows, windows);
  cpu_block_free(j->sums, sums);
  return ok;
}

static void gather_tiles(const void *of, int64_t row, int64_t rows, int64_t at, int64_t n,
                         char *out, int64_t pitch) {
  const Job *j = of;
  conv_gather(j->w, j->from, (size_t)dtype_bytes(j->in), row, rows, at, n, out, pitch);
}

static char *sums_at(const void *of, int64_t place) { return result_at(of, place); }

/* By AMX's tiles, straight to where they read the windows and to the results. */
static bool tiles(const Job *j, const Amx *plan, bool straight) {
  const ConvWindows *w = j->w;
  bool plain = conv_together(w->places, w->to_steps, w->images, w->to_image);
  GemmArgs x = {.a = j->from,
                .a_row = w->steps[2],
                .a_k = 1,
                .b = j->weights,
                .b_col = 1,
                .b_k = w->depth,
                .c = j->to,
                .c_row = w->to_steps[2]};
  AmxGather g = {.a = straight ? NULL : gather_tiles, .c_at = plain ? NULL : sums_at, .of = j};
  return amx_run(plan, &x, &g, NULL, true);
}

typedef struct Call {
  const ConvShape *s;
  void *const *data;
} Call;

static bool results(void *arg, const ConvWindows *w) {
  const Call *call = arg;
  const ConvShape *s = call->s;
  int in = in_of(s), out = in == X ? Y : X;
  int64_t places = w->images * conv_volume(w->places), k = conv_volume(w->taps) * w->channels,
          size = dtype_bytes(s->t[in]);
  Job j = {.s = s,
           .w = w,
           .from = conv_at(call->data[in], w->from, s->t[in]),
           .to = conv_at(call->data[out], w->to, s->t[out]),
           .in = held_as(s->t[in]),
           .by = held_as(s->t[W]),
           .out = s->t[out],
           .k = k};
  if (k == 0) {
    conv_clear(w, j.to, w->depth, dtype_bytes(j.out));
    return true;
  }
  size_t room = (size_t)(k * w->depth * dtype_bytes(j.by));
  if (!(j.weights = cpu_block_alloc(room))) return false;
  cpu_permute(
      (size_t)dtype_bytes(j.by), DIMS + 2,
      (int64_t[]){w->taps[0], w->taps[1], w->taps[2], w->channels, w->depth},
      (int64_t[]){w->tap_steps[0], w->tap_steps[1], w->tap_steps[2], w->in_step, w->out_step},
      conv_at(call->data[W], w->w, s->t[W]), j.weights);
  int64_t most = MIN(places, MAX(cpu_second_cache() / (k * size), 1)); /* windows that stay there */
  bool straight = conv_straight(w),
       bytes = dtype_bytes(j.in) == 1 && dtype_bytes(j.by) == 1 && dtype_bytes(j.out) == 4, ok;
  Amx amx;
  if (bytes && amx_plan(&amx, places, w->depth, k, (GemmTypes){j.in, j.by, DT_I32}, 1,
                        straight ? AMX_RUNS : AMX_GATHERED))
    ok = tiles(&j, &amx, straight);
  else ok = pieces(&j, places, most);
  cpu_block_free(j.weights, room);
  return ok;
}

bool conv_int_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  DType out = s->t[s->result];
  if (!gemm_kernels() || n < 1 || n > DIMS || s->form == CONV_WEIGHTS) return false;
  if (held_as(s->t[in_of(s)]) == DT_NONE || held_as(s->t[W]) == DT_NONE || !dtype_is_int(out) ||
      dtype_bytes(out) > 4)
    return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  double macs = (double)(w.images * conv_volume(s->form == CONV_DATA ? w.size : w.places)) *
                (double)(conv_volume(w.taps) * w.channels) * (double)w.depth;
  return macs >= MIN_MACS && w.depth >= LEAST_DEPTH;
}

bool conv_int_run(const ConvShape *s, void *const *data) {
  bool ok = true;
  Call call = {s, data};
  for (int64_t g = 0; g < s->groups && ok; g++) {
    ConvWindows w = conv_windows(s, data, g);
    ok = conv_residues(&w, s->form == CONV_DATA, results, &call);
  }
  return ok;
}
