/* Products of bf16 on hosts that multiply it in pairs, with a rhs that stays in a core's second
 * cache (the products of attention). The rhs becomes panels of pairs; a lhs whose runs are along k is
 * read where it is, pairs lie there as they are wanted, another becomes panels too. Tasks are whole products, or
 * pieces of the rows of one. */
#include "dev/cpu/dot/dot.h"

#define RHS 131072         /* elements of the rhs */
#define TURNED 128         /* columns, worth a copy of a lhs whose runs are not along k */
#define LONGEST 1024       /* k: sums are not cut */
#define NEAR_FLOATS 4096   /* of the lhs: with a panel of the rhs in the first cache */
#define RESULT_ELEMS 16384 /* written column by column: longer rows one panel at a time */
#define PACK_ROWS 128      /* of a task: each makes its own copy of the rhs; */
#define MANY 2048          /* of so many rows in all */
#define PACK_MANY 256
#define BATCH 16  /* products that are tasks enough */
#define GRAIN 5e5 /* multiplications of a task */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

bool dot_pairs_plan(Dot *d) {
  const GemmKernels *kern = gemm_pairs();
  Small *s = &d->small;
  if (!kern || d->in != DT_BF16 || d->b * d->m * d->n * d->k == 0) return false;
  bool along = d->lhs.k_stride == 1;
  if (!d->lhs.direct || !d->rhs.direct || d->k > LONGEST || d->n * d->k > RHS ||
      (!along && (d->lhs.free_stride != 1 || d->n < TURNED)))
    return false;
  int64_t odd = d->k | (along ? d->lhs.free_stride : 0);
  for (int i = 0; i < d->n_batch && along; i++) odd |= d->lhs_batch[i];
  if (odd & 1) return false;
  s->wide = d->n > kern->lanes ? 2 * kern->lanes : kern->lanes;
  s->b_k = s->wide;
  s->b_step = s->wide * (d->k / 2);
  s->near = MAX(1, MIN(2 * NEAR_FLOATS / d->k, RESULT_ELEMS / d->n) / kern->mr);
  int64_t least = d->b * d->m >= MANY ? PACK_MANY : PACK_ROWS,
          want = MAX(least, (int64_t)(GRAIN / (double)(d->n * d->k))),
          rows = d->b >= BATCH ? d->m : MIN(d->m, parts_of(want, kern->mr) * kern->mr);
  s->rows[0].rows = rows;
  s->pieces = parts_of(d->m, rows);
  return true;
}

typedef struct Call {
  const Dot *d;
  const uint16_t *lhs, *rhs;
  char *out;
} Call;

/* Rows of one product; `turned` is for a panel of the lhs. */
static void product(const Dot *d, int64_t rows, const uint16_t *a, const float *b, char *c,
                    float *turned, GemmComing next[2]) {
  const Small *s = &d->small;
  const GemmKernels *kern = gemm_pairs();
  bool narrow = d->out == DT_BF16, along = d->lhs.k_stride == 1;
  GemmAt at = {.a_row = d->lhs.free_stride / 2, .a_k = 1, .b_k = s->b_k, .c_row = d->n};
  int64_t panels = parts_of(rows, kern->mr), thin = rows / panels, thick = rows % panels, row = 0;
  for (int64_t i0 = 0; i0 < panels; i0 += s->near) {
    int64_t i1 = MIN(i0 + s->near, panels), first = row;
    for (int64_t i = i0, r = first, n; !along && i < i1; i++, r += n) {
      n = thin + (i < thick);
      gemm_pack_pairs(kern, DT_BF16, a + r, 1, d->lhs.k_stride, (int)n, (int)n, d->k, 1, 0,
                      turned + (r - first) * d->k / 2);
    }
    for (int64_t j = 0; j < d->n; j += s->wide) {
      int64_t w = MIN(s->wide, d->n - j);
      const GemmPanelFn *fn = (narrow ? kern->narrow_panel : kern->panel)[w > kern->lanes];
      row = first;
      for (int64_t i = i0, n; i < i1; i++, row += n) {
        n = thin + (i < thick);
        char *z = c + (row * d->n + j) * (narrow ? 2 : 4);
        for (int64_t r = 0; narrow && r < n; r++) __builtin_prefetch(z + r * d->n * 2, 1);
        gemm_ask(&next[0]);
        gemm_ask(&next[1]);
        const float *x = turned + (row - first) * d->k / 2;
        if (along) x = (const float *)(const void *)(a + row * d->lhs.free_stride);
        else at.a_row = 1, at.a_k = n;
        fn[n - 1](&at, d->k / 2, x, b + j / s->wide * s->b_step, (float *)(void *)z, w, false);
      }
    }
  }
}

static void pack(const Dot *d, const uint16_t *rhs, float *copy) {
  const Small *s = &d->small;
  const GemmKernels *kern = gemm_pairs();
  int64_t step = d->rhs.free_stride, k_step = d->rhs.k_stride, whole = d->n / s->wide,
          left = d->n % s->wide;
  if (whole)
    gemm_pack_pairs(kern, DT_BF16, rhs, step, k_step, (int)s->wide, (int)s->wide, d->k, whole,
                    s->b_step, copy);
  if (left)
    gemm_pack_pairs(kern, DT_BF16, rhs + whole * s->wide * step, step, k_step, (int)left,
                    (int)s->wide, d->k, 1, s->b_step, copy + whole * s->b_step);
}

static void tasks(void *arg, int64_t begin, int64_t end) {
  const Call *c = arg;
  const Dot *d = c->d;
  const Small *s = &d->small;
  const Side *l = &d->lhs, *r = &d->rhs;
  const GemmKernels *kern = gemm_pairs();
  int64_t copy = parts_of(d->n, s->wide) * s->b_step, rows = s->rows[0].rows, lo, ro,
          calls = parts_of(rows, kern->mr) * parts_of(d->n, s->wide);
  int64_t turned = l->k_stride == 1 ? 0 : s->near * kern->mr * (d->k / 2);
  float *own = cpu_scratch(sizeof *own * (size_t)(copy + turned));
  const uint16_t *packed = NULL;
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / s->pieces, row = t % s->pieces * rows;
    dot_batch_at(d, b, &lo, &ro);
    if (packed != c->rhs + ro) pack(d, packed = c->rhs + ro, own);
    /* The lhs's panels after the first ones, with whatever follows the last; the next rhs. */
    const uint16_t *a = c->lhs + lo + row * l->free_stride;
    int64_t near = MIN(rows, s->near * kern->mr), l1, r1;
    GemmComing next[2] = {gemm_coming(DT_BF16, a + near * l->free_stride, rows, l->free_stride,
                                      d->k, l->k_stride, calls)};
    if (t + 1 < end && row + rows >= d->m) {
      dot_batch_at(d, b + 1, &l1, &r1);
      next[1] = gemm_coming(DT_BF16, c->rhs + r1, d->n, r->free_stride, d->k, r->k_stride, calls);
    }
    product(d, MIN(rows, d->m - row), a, own,
            c->out + (b * d->m + row) * d->n * dtype_bytes(d->out), own + copy, next);
  }
}

Err *dot_pairs_run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)op;
  const Dot *d = state;
  const Small *s = &d->small;
  Call c = {.d = d, .lhs = in[0], .rhs = in[1], .out = out[0]};
  double each = (double)s->rows[0].rows * (double)d->n * (double)d->k;
  cpu_parallel(d->b * s->pieces, (int64_t)(GRAIN / each) + 1, tasks, &c);
  return NULL;
}
