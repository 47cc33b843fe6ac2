/* Convolutions of integers that 16 bits hold, exact modulo the result's width: products of windows
 * and the weights to sums of 32 bits. Bytes go by AMX's tiles (dot/amx.h), which ask for the
 * windows where they need them; else, and where results are narrower, windows are gathered a piece of all places at
 * a time and multiplied as bytes or pairs (dot/gemm.h). */
#include "dev/cpu/conv/conv_im2col.h"
#include "dev/cpu/dot/amx.h"
#include "dev/cpu/kernel/kernel.h"
#include "dev/cpu/kernel/mem.h"

#define DIMS CONV_DIMS
#define MIN_MACS 1e5  /* smaller ones are not worth it, */
#define LEAST_DEPTH 8 /* nor fewer channels of results in a group: vectors hold so many at least */
#define TASK_BYTES 65536 /* of windows, or sums */

/* As what the products take it; DT_NONE: they do not. */
static DType held_as(DType t) {
  if (t == DT_I1 || (dtype_is_int(t) && dtype_bits(t) < 8)) return DT_I8;
  return t == DT_I8 || t == DT_U8 || t == DT_I16 ? t : DT_NONE;
}

static GemmTypes types_of(const Im2col *c) {
  return (GemmTypes){held_as(c->from_type), held_as(c->w_type), DT_I32};
}

static bool are_bytes(GemmTypes t) { return dtype_bytes(t.a) == 1 && dtype_bytes(t.b) == 1; }

/* ---- piece by piece ---- */

typedef struct Pieces {
  const Im2col *c;
  const char *weights;
  int64_t first, places; /* of the piece */
  char *windows;         /* of the piece */
  int32_t *sums;
} Pieces;

static void gather(void *arg, int64_t begin, int64_t end) {
  const Pieces *j = arg;
  int64_t row = j->c->elements * dtype_bytes(j->c->from_type);
  im2col_gather(j->c, j->first + begin, end - begin, 0, j->c->elements, j->windows + begin * row,
                row);
}

static void put(void *arg, int64_t begin, int64_t end) {
  const Pieces *j = arg;
  int64_t size = dtype_bytes(j->c->to_type), depth = j->c->depth;
  for (int64_t i = begin; i < end; i++) {
    const int32_t *sums = j->sums + i * depth;
    char *to = im2col_result(j->c, j->first + i);
    if (size == 4) memcpy(to, sums, (size_t)depth * 4);
    else
      for (int64_t o = 0; o < depth; o++) elem_set_i64(j->c->to_type, to + o * size, sums[o]);
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

static bool plan(const Im2col *c, int64_t places, Plan *p) {
  GemmTypes t = types_of(c);
  *p = (Plan){.places = places};
  p->tiles = are_bytes(t) && amx_plan(&p->amx, places, c->depth, c->elements, t, 1, AMX_RUNS);
  if (p->tiles) p->amx.ahead_a = false, p->amx.ahead_b = true;
  else gemm_plan(&p->gemm, places, c->depth, c->elements, t, 1, GEMM_B, true);
  p->bytes = (size_t)(p->tiles ? amx_ahead_bytes(&p->amx) : gemm_ahead_floats(&p->gemm) * 4);
  return (p->packed = cpu_block_alloc(p->bytes)) != NULL;
}

static bool multiply(const Pieces *j, const Plan *p, const char *a, int64_t a_row, void *c,
                     int64_t c_row, bool fresh) {
  GemmArgs x = {.a = a,
                .a_row = a_row,
                .a_k = 1,
                .b = j->weights,
                .b_col = 1,
                .b_k = j->c->depth,
                .c = c,
                .c_row = c_row};
  return p->tiles ? amx_run(&p->amx, &x, NULL, p->packed, fresh)
                  : gemm_run(&p->gemm, &x, (float *)(void *)p->packed, fresh);
}

/* Piece by piece; without copies where windows are pixels as they lie, or results lie as the product has
 * them. */
static bool results_in_pieces(const Im2col *c, const void *weights) {
  const ConvWindows *w = c->w;
  int64_t row = c->elements *
                dtype_bytes(c->from_type), /* of windows, which stay in the second cache */
      most = MIN(c->places, MAX(cpu_second_cache() / row, 1)), depth = c->depth;
  bool plain = c->plain && dtype_bytes(c->to_type) == 4, ok = true;
  size_t windows = c->straight ? 0 : (size_t)(most * row),
         sums = plain ? 0 : (size_t)(most * depth) * 4;
  Pieces all = {.c = c, .weights = weights}, *j = &all;
  if (windows && !(j->windows = cpu_block_alloc(windows))) ok = false;
  if (sums && !(j->sums = cpu_block_alloc(sums))) ok = false;
  Plan p = {0};
  for (int64_t at = 0; ok && at < c->places; at += j->places) {
    j->first = at;
    j->places = MIN(most, c->places - at);
    bool fresh = p.places != j->places;
    if (fresh) {
      cpu_block_free(p.packed, p.bytes);
      if (!(ok = plan(c, j->places, &p))) break;
    }
    if (!c->straight) cpu_parallel(j->places, TASK_BYTES / row + 1, gather, j);
    const char *a =
        c->straight ? c->from + at * w->steps[2] * dtype_bytes(c->from_type) : j->windows;
    void *to = plain ? (void *)im2col_result(c, at) : (void *)j->sums;
    ok = multiply(j, &p, a, c->straight ? w->steps[2] : c->elements, to,
                  plain ? w->to_steps[2] : depth, fresh);
    if (ok && !plain) cpu_parallel(j->places, TASK_BYTES / (depth * 4) + 1, put, j);
  }
  cpu_block_free(p.packed, p.bytes);
  cpu_block_free(j->windows, windows);
  cpu_block_free(j->sums, sums);
  return ok;
}

/* ---- by AMX's tiles, straight to where they read the windows and to the results ---- */

static bool results(const Im2col *c, const void *weights) {
  Amx plan;
  GemmTypes t = types_of(c);
  if (!are_bytes(t) || dtype_bytes(c->to_type) != 4 ||
      !amx_plan(&plan, c->places, c->depth, c->elements, t, 1,
                c->straight ? AMX_RUNS : AMX_GATHERED))
    return results_in_pieces(c, weights);
  GemmArgs x = im2col_args(c, weights);
  AmxGather g = {
      .a = c->straight ? NULL : im2col_gather, .c_at = c->plain ? NULL : im2col_result, .of = c};
  return amx_run(&plan, &x, &g, NULL, true);
}

bool conv_int_fits(const ConvShape *s) {
  int n = s->v[X].n - 2;
  DType out = s->t[s->result];
  if (!gemm_kernels() || n < 1 || n > DIMS || s->form == CONV_WEIGHTS) return false;
  if (held_as(s->t[s->form == CONV_DATA ? Y : X]) == DT_NONE || held_as(s->t[W]) == DT_NONE ||
      !dtype_is_int(out) || dtype_bytes(out) > 4)
    return false;
  ConvWindows w = conv_windows(s, NULL, 0);
  return conv_group_macs(s) >= MIN_MACS && w.depth >= LEAST_DEPTH;
}

bool conv_int_run(const ConvShape *s, void *const *data) {
  static const Im2colProduct product = {.results = results};
  return conv_im2col(s, data, &product);
}
