/* Few rows of int8 times a matrix with runs along k (a decoder's next token, its weights quantised),
 * on hosts that multiply bytes in quads: the matrix is read once, where it is. The instruction wants
 * rows without a sign: signed ones are moved by 128, and a row of ones more tells what that adds to
 * the results. */
#include "dev/cpu/dot/dot.h"

#include "dev/cpu/kernel/mem.h"

#define ROWS 12      /* at most; from so many on packing pays */
#define RATIO 4      /* and the matrix has so many times more; */
#define LEAST_K 64   /* for each of them: a vector, and sums are worth their end */
#define TASK 131072  /* elements of the matrix, wanted of a task */
#define COLUMNS 1024 /* of a task, at most */

static int64_t parts_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

bool dot_few_quads_plan(Dot *d) {
  Few *f = &d->few;
  if (!gemm_quads() || d->b * d->m * d->n * d->k == 0 || !d->lhs.direct || !d->rhs.direct)
    return false;
  if (d->m > ROWS || d->n < RATIO * d->m || d->rhs.k_stride != 1) return false;
  if (d->k % 4 || d->rhs.free_stride % 4 || d->k < LEAST_K * d->m) return false;
  f->far = d->b * d->n * d->k > cpu_second_cache();
  f->columns = MIN(MIN(COLUMNS, d->n), parts_of(TASK, d->k));
  f->pieces = parts_of(d->n, f->columns);
  return true;
}

typedef struct Call {
  const Dot *d;
  const uint8_t *lhs;
  const char *rhs;
  uint32_t *out;
  uint8_t *rows; /* [b][1 + m][k], the first one of ones */
} Call;

static void pack(const Dot *d, const uint8_t *lhs, uint8_t *rows) {
  uint8_t flip = d->in == DT_U8 ? 0 : 0x80;
  memset(rows, 1, (size_t)d->k);
  for (int64_t i = 0; i < d->m; i++, lhs += d->lhs.free_stride)
    for (int64_t p = 0; p < d->k; p++) rows[(i + 1) * d->k + p] = lhs[p * d->lhs.k_stride] ^ flip;
}

static void packs(void *arg, int64_t begin, int64_t end) { /* products */
  const Call *c = arg;
  for (int64_t b = begin; b < end; b++) {
    int64_t lo, ro;
    dot_batch_at(c->d, b, &lo, &ro);
    pack(c->d, c->lhs + lo, c->rows + b * (1 + c->d->m) * c->d->k);
  }
}

static void tasks(void *arg, int64_t begin, int64_t end) { /* (product, piece) */
  const Call *c = arg;
  const Dot *d = c->d;
  const Few *f = &d->few;
  int64_t rows = 1 + d->m, lo, ro;
  uint32_t *sums = cpu_scratch(sizeof *sums * (size_t)(rows * f->columns)),
           moved = d->in == DT_U8 ? 0 : 128;
  for (int64_t t = begin; t < end; t++) {
    int64_t b = t / f->pieces, j0 = t % f->pieces * f->columns, n = MIN(f->columns, d->n - j0);
    dot_batch_at(d, b, &lo, &ro);
    memset(sums, 0, sizeof *sums * (size_t)(rows * f->columns));
    const void *a = c->rows + b * rows * d->k;
    gemm_quads()->dots[0](rows, a, d->k / 4, c->rhs + ro + j0 * d->rhs.free_stride,
                          d->rhs.free_stride / 4, n, d->k / 4, (float *)(void *)sums, f->columns,
                          f->far);
    for (int64_t i = 0; i < d->m; i++)
      for (int64_t j = 0; j < n; j++)
        c->out[(b * d->m + i) * d->n + j0 + j] = sums[(i + 1) * f->columns + j] - moved * sums[j];
  }
}

Err *dot_few_quads_run(void *state, const Op *op, void *const *in, void *const *out) {
  const Dot *d = state;
  size_t bytes = (size_t)(d->b * (1 + d->m) * d->k);
  Call c = {d, in[0], in[1], out[0], cpu_block_alloc(bytes)};
  if (!c.rows) return op_err(op, ERR_EXHAUSTED, "no memory for the rows");
  cpu_parallel(d->b, MAX(1, TASK / (d->m * d->k)), packs, &c);
  int64_t task = d->few.columns * d->k;
  cpu_parallel(d->b * d->few.pieces, MAX(1, TASK / task), tasks, &c);
  cpu_block_free(c.rows, bytes);
  return NULL;
}
