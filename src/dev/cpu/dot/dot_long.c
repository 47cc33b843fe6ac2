/* Products with few results that are sums of many terms (gradients of small layers over large
 * batches): k is cut into parts, each a task with results of its own; both operands are read where
 * they are, a block of k at a time that stays in the second cache. Parts are added up in order, in
 * f64. */
#include "dev/cpu/dot/dot.h"

#include "dev/cpu/kernel/mem.h"

#define RESULTS 16384 /* at most: they stay in the second cache too */
#define LEAST_K 4096  /* and so many times the sides: */
#define RATIO 8
#define BLOCK 128       /* of k */
#define LEAST_PART 1024 /* of k */
#define PARTS 64        /* at most */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

bool dot_long_plan(Dot *d) {
  if (!gemm_kernels() || d->in != DT_F32 || d->out != DT_F32 || !d->lhs.direct || !d->rhs.direct ||
      d->rhs.free_stride != 1 || d->b != 1)
    return false;
  if (MIN(d->m, d->n) < 4 || d->m * d->n > RESULTS || d->k < LEAST_K ||
      d->k < RATIO * MAX(d->m, d->n))
    return false;
  d->part = parts_of(parts_of(d->k, MIN(PARTS, d->k / LEAST_PART)), BLOCK) * BLOCK;
  return true;
}

typedef struct Call {
  const Dot *d;
  const float *lhs, *rhs;
  float *out, *parts; /* [part][m][n] */
} Call;

/* c (+)= a b, over k <= BLOCK. */
static void block(const Dot *d, const float *a, const float *b, float *c, int64_t k, bool add,
                  GemmComing next[2]) {
  const GemmKernels *kern = gemm_kernels();
  GemmAt at = {
      .a_row = d->lhs.free_stride, .a_k = d->lhs.k_stride, .b_k = d->rhs.k_stride, .c_row = d->n};
  int64_t wide = 2 * kern->lanes, panels = parts_of(d->m, kern->mr), thin = d->m / panels,
          thick = d->m % panels;
  for (int64_t j = 0; j < d->n; j += wide) {
    int64_t w = MIN(wide, d->n - j);
    const GemmPanelFn *fn = kern->panel[w > kern->lanes];
    const float *x = a;
    float *z = c + j;
    for (int64_t i = 0, rows; i < panels; i++, x += rows * at.a_row, z += rows * d->n) {
      rows = thin + (i < thick);
      gemm_ask(&next[0]);
      gemm_ask(&next[1]);
      fn[rows - 1](&at, k, x, b + j, z, w, add);
    }
  }
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Side *l = &d->lhs, *r = &d->rhs;
  const GemmKernels *kern = gemm_kernels();
  int64_t calls = parts_of(d->m, kern->mr) * parts_of(d->n, 2 * kern->lanes);
  for (int64_t t = begin; t < end; t++) {
    int64_t p0 = t * d->part, p1 = MIN(p0 + d->part, d->k);
    for (int64_t p = p0; p < p1; p += BLOCK) {
      int64_t q = p + BLOCK, k = MIN(BLOCK, p1 - p), after = MIN(BLOCK, p1 - q);
      GemmComing next[2] = {0};
      if (after > 0) {
        next[0] = gemm_coming(DT_F32, c->lhs + q * l->k_stride, d->m, l->free_stride, after,
                              l->k_stride, calls);
        next[1] = gemm_coming(DT_F32, c->rhs + q * r->k_stride, d->n, 1, after, r->k_stride, calls);
      }
      block(d, c->lhs + p * l->k_stride, c->rhs + p * r->k_stride, c->parts + t * d->m * d->n, k,
            p > p0, next);
    }
  }
}

static void join(void *arg, int64_t begin, int64_t end) { /* results */
  const Call *c = arg;
  const Dot *d = c->d;
  int64_t parts = parts_of(d->k, d->part), n = end - begin;
  double *sums = cpu_scratch(sizeof *sums * (size_t)n);
  memset(sums, 0, sizeof *sums * (size_t)n);
  for (int64_t p = 0; p < parts; p++)
    for (int64_t i = 0; i < n; i++) sums[i] += (double)c->parts[p * d->m * d->n + begin + i];
  for (int64_t i = 0; i < n; i++) c->out[begin + i] = (float)sums[i];
}

Err *dot_long_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  int64_t parts = parts_of(d->k, d->part);
  size_t bytes = sizeof(float) * (size_t)(parts * d->m * d->n);
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0], .parts = cpu_block_alloc(bytes)};
  if (!c.parts) return op_err(op, ERR_EXHAUSTED, "no memory for sums of parts");
  cpu_parallel(parts, 1, tasks, &c);
  cpu_parallel(d->m * d->n, 1024, join, &c);
  cpu_block_free(c.parts, bytes);
  return NULL;
}
