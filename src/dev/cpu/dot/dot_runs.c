/* Products by runs.h: rows of the lhs are runs, and there are so many of them that packing the rhs is
 * nothing. */
#include "dev/cpu/dot/dot.h"

#include "dev/cpu/dot/runs.h"

#define LEAST_ROWS 96
#define LEAST_TURNED 64 /* rows on a big core, where dot:gemm would turn the rhs too; */
#define MOST_COLUMNS 4  /* times as many columns, */
#define NEAR_TURNED 2   /* that take no more than one part of so many of the second cache */
#define LEAST_COLUMNS 17
#define LEAST_K 48
#define LEAST_RHS 4096 /* smaller ones stay in the first cache as they are */
#define WIDE 256       /* columns and less than so many terms: */
#define WIDE_K 96
#define FAR_RESULTS 4 /* second caches full of results */
#define WIDER 1000    /* columns of more results than one holds, for any k */

typedef struct Call {
  const Dot *d;
  const float *lhs, *rhs;
  float *out;
} Call;

/* Wide vectors wait for results that are not in the caches: gemm.h asks for them. */
static bool waits_for_results(const Dot *d, const GemmKernels *kern) {
  int64_t results = d->m * d->n * (int64_t)sizeof(float);
  if (cpu_big_core() && d->n >= WIDER && results > cpu_second_cache()) return true;
  return kern->lanes == 16 && d->n > WIDE && d->k < WIDE_K &&
         results > FAR_RESULTS * cpu_second_cache();
}

/* Rows enough beside the columns: those are packed, and pass by the rows. */
static bool has_rows(const Dot *d) {
  int64_t rhs = d->n * d->k * (int64_t)sizeof(float);
  if (cpu_big_core() && d->rhs.free_stride != 1 && NEAR_TURNED * rhs <= cpu_second_cache() &&
      d->m >= LEAST_TURNED && d->n <= MOST_COLUMNS * d->m)
    return true;
  return d->m >= LEAST_ROWS && 2 * d->m >= 3 * d->n;
}

/* With AVX2 reading rows where they are takes longer than packing a block of them, where dot:blocks
 * may: 4 % over 44 shapes (Granite Rapids at 256 bits). */
static bool is_packed_better(Dot *d, const GemmKernels *kern) {
  return kern->lanes == runs_avx2.lanes && dot_blocks_plan(d);
}

bool dot_runs_plan(Dot *d) {
  const GemmKernels *kern = gemm_kernels();
  return kern && !waits_for_results(d, kern) && d->in == DT_F32 && d->out == DT_F32 && d->b == 1 &&
         d->lhs.direct && d->rhs.direct && d->lhs.k_stride == 1 && has_rows(d) &&
         d->n >= LEAST_COLUMNS && d->k >= LEAST_K && d->n * d->k >= LEAST_RHS &&
         !dot_long_plan(d) && !is_packed_better(d, kern);
}

static void rows(const void *of, int64_t row, int64_t count, int64_t pitch, const float **from,
                 float **to) {
  const Call *c = of;
  (void)pitch;
  for (int64_t i = 0; i < count; i++) {
    from[i] = c->lhs + (row + i) * c->d->lhs.free_stride;
    to[i] = c->out + (row + i) * c->d->n;
  }
}

static const float *columns(const void *of, int64_t group, int64_t run) {
  const Call *c = of;
  (void)group;
  (void)run;
  return c->rhs;
}

static Runs product(const Call *c) {
  const Dot *d = c->d;
  return (Runs){.m = d->m,
                .n = d->n,
                .runs = 1,
                .k = d->k,
                .groups = 1,
                .rows = rows,
                .columns = columns,
                .of = c,
                .b_k = d->rhs.k_stride,
                .b_col = d->rhs.free_stride};
}

static Err *run_as(const Dot *d, const Op *op, void *const *in, void *const *out, float *prepacked,
                   bool fresh) {
  Call c = {d, in[0], in[1], out[0]};
  Runs x = product(&c);
  return runs_run(&x, prepacked, fresh) ? NULL
                                        : op_err(op, ERR_EXHAUSTED, "no memory for packed columns");
}

Err *dot_runs_run(void *state, const Op *op, void *const *in, void *const *out) {
  return run_as(state, op, in, out, NULL, false);
}

/* A rhs that stays the same is packed once a loop. */
size_t dot_runs_prepack_bytes(void *state, unsigned fixed) {
  Call c = {.d = state};
  Runs x = product(&c);
  return fixed & 2 ? sizeof(float) * (size_t)runs_floats(&x) : 0;
}

Err *dot_runs_run_prepacked(void *state, const Op *op, void *const *in, void *const *out,
                            unsigned fixed, void *prepacked, bool fresh) {
  (void)fixed;
  return run_as(state, op, in, out, prepacked, fresh);
}
