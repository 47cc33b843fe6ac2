/* weft.segment_sum: rows of one value, each times a weight, added to rows of another, as nets on graphs do.
 * The messages are put in order of the rows they go to, those of a row stay in the order they have: the row
 * stays in the cache while it is summed, rows are divided among threads, and no message is stored. */
#include "dev/cpu/kernel/clones.h"
#include "dev/cpu/ops/indexed.h"

#define TASK_ELEMENTS 32768 /* of all messages to some rows */

typedef struct SegmentSum {
  const int32_t *from;
  const int32_t *first, *order; /* of row r: messages order[first[r]] .. order[first[r + 1] - 1] */
  const char *rows, *weights;   /* weights: NULL when all are 1 */
  char *sums;
  int64_t n_rows, width, n_weights; /* weights of a message, each for width / n_weights elements */
} SegmentSum;

/* A message from no row is zeros: nothing, but for a weight that is no number. */
#define SUM_ROWS(T)                                                                     \
  CLONES_FUSED static void sum_rows_##T(void *arg, int64_t begin, int64_t end) {        \
    const SegmentSum *m = arg;                                                          \
    const T *weights = (const T *)(const void *)m->weights;                             \
    int64_t part = m->width / m->n_weights;                                             \
    for (int64_t r = begin; r < end; r++)                                               \
      for (int32_t k = m->first[r]; k < m->first[r + 1]; k++) {                         \
        int64_t i = m->order[k], from = m->from[i];                                     \
        bool none = from < 0 || from >= m->n_rows;                                      \
        T *to = (T *)(void *)m->sums + r * m->width;                                    \
        const T *row = (const T *)(const void *)m->rows + (none ? 0 : from * m->width); \
        for (int64_t p = 0; p < m->n_weights; p++, to += part, row += part) {           \
          T w = weights ? weights[i * m->n_weights + p] : 1;                            \
          if (none) {                                                                   \
            w *= 0;                                                                     \
            IVDEP for (int64_t x = 0; x < part; x++) to[x] += w;                        \
          } else {                                                                      \
            IVDEP for (int64_t x = 0; x < part; x++) to[x] += w * row[x];               \
          }                                                                             \
        }                                                                               \
      }                                                                                 \
  }
SUM_ROWS(float)
SUM_ROWS(double)

/* Puts n messages to `rows` rows in order; those to no row are left out. first: rows + 2 numbers. */
static void put_in_order(const int32_t *to, int64_t n, int64_t rows, int32_t *first,
                         int32_t *order) {
  memset(first, 0, sizeof *first * (size_t)(rows + 2));
  int32_t *next = first + 1; /* counts, then where the row's next message goes, then its end */
  for (int64_t i = 0; i < n; i++)
    if (to[i] >= 0 && to[i] < rows) next[to[i] + 1]++;
  for (int64_t r = 1; r <= rows; r++) next[r] += next[r - 1];
  for (int64_t i = 0; i < n; i++)
    if (to[i] >= 0 && to[i] < rows) order[next[to[i]]++] = (int32_t)i;
}

static Err *run(void *state, const Op *op, void *const *in, void *const *out) {
  (void)state;
  const Type *t = op_type(op);
  int64_t rows = t->dims[0], width = t->dims[1], n = op->operands[1]->type->dims[0];
  copy_sums(op, in, out);
  int32_t *first = xmalloc(sizeof *first * (size_t)(rows + 2 + n)), *order = first + rows + 2;
  put_in_order(in[1], n, rows, first, order);
  SegmentSum m = {.from = in[3],
                  .first = first,
                  .order = order,
                  .rows = in[2],
                  .sums = out[0],
                  .n_rows = op->operands[2]->type->dims[0],
                  .width = width,
                  .n_weights = 1};
  if (op->n_operands == 5) m.weights = in[4], m.n_weights = op->operands[4]->type->dims[1];
  int64_t grain = TASK_ELEMENTS * rows / MAX(1, n * width);
  cpu_parallel(rows, MAX(1, grain), t->dtype == DT_F32 ? sum_rows_float : sum_rows_double, &m);
  free(first);
  return NULL;
}

static double flops(const Op *op) {
  return 2.0 * (double)(op->operands[1]->type->dims[0] * op_type(op)->dims[1]);
}

static bool accepts(const Op *op) {
  return op_type(op)->dtype == DT_F32 || op_type(op)->dtype == DT_F64;
}

const CpuKernel cpu_kernels_segment_sum[] = {
    {.name = "segment_sum",
     .kind = OP_SEGMENT_SUM,
     .accepts = accepts,
     .run = run,
     .in_place = 1,
     .flops = flops},
    {0},
};
